/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence held against evidence: what moved, and whether what was measured holds when it is measured again. */
#ifndef OCT_STUDY_COMPARE_H
#define OCT_STUDY_COMPARE_H

#include "study/engine.h"
#include "study/evidence.h"
#include "study/run.h"

typedef enum compared_word {
    COMPARED_SAME,   /* equal to the last bit */
    COMPARED_WITHIN, /* each value lies in the other's interval, or the intervals meet */
    COMPARED_MOVED,  /* they do not, or a figure without interval differs */
    COMPARED_OLD_ONLY,
    COMPARED_NEW_ONLY
} compared_word;
const char *compared_word_text(compared_word word); /* "same", "within its interval", "moved", "old only", "new only" */

typedef struct compared_figure {
    const char *variant, *set, *name; /* set "" where there is none */
    const evidence_row *old, *fresh;  /* NULL: not there */
    compared_word word;
} compared_figure;

/* Calls `each` for every figure of either file, by variant, set and name. Where a file has several of one key (several
 * environments, an earlier recipe), those with the key of the study's plan are compared if `study` is not NULL, else
 * the first. */
octet_status study_compare(const study_file *study, evidence_file *old, evidence_file *fresh,
                           void (*each)(void *user, const compared_figure *figure), void *user);
compared_word compare_figures(const evidence_row *old, const evidence_row *fresh);

/* Measures `sample` runs of the study again, drawn by `seed`, into a file of its own beside the evidence, which is then
 * removed; `each` gets their figures. On the same environment all but times must be the same to the last bit, elsewhere
 * within their intervals: *held says whether all were. `options` as of study_run. */
octet_status study_rerun(const study_file *study, const study_engine *engine, const study_run_options *options,
                         size_t sample, uint64_t seed, void (*each)(void *user, const compared_figure *figure),
                         void *user, bool *held);

#endif
