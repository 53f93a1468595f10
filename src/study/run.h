/* SPDX-License-Identifier: Apache-2.0 */
/* Running a study: its tasks in order, each result committed at once, so that a kill at any moment loses at most the
 * pictures of the last second. Run again, it goes on; the figures are those of one go, to the byte. */
#ifndef OCT_STUDY_RUN_H
#define OCT_STUDY_RUN_H

#include "study/engine.h"
#include "study/evidence.h"
#include "study/study_file.h"

typedef struct study_progress {
    const char *task, *variant, *set; /* variant and set may be "" */
    size_t task_number, task_count;   /* from 1 */
    size_t done, total;               /* pictures times variants of this task; total 0: not counted */
} study_progress;

typedef struct study_run_options {
    const char *evidence;  /* the file, made if it is not there */
    const char *scales;    /* folder of scale files, made if it is not there */
    size_t pass_pictures;  /* pictures times variants that one pass holds in memory; 0: what fits about 1 GB */
    double commit_seconds; /* between commits of pictures; 0: after each picture */
    void (*progress)(void *user, const study_progress *progress); /* may be NULL */
    bool (*stop)(void *user);                                     /* may be NULL */
    void *user;
    /* NULL: all tasks; else those it says yes to, and the calibrations they need. */
    bool (*wants)(void *user, const char *task, const char *variant, const char *set);
    void *wants_user;
} study_run_options;

/* CANCELLED: stopped by `stop`; run again to go on. LIMIT: a rule that its set can never pass, or a set with too few
 * pictures: nothing was measured. MISMATCH: sets that share pictures, or another process runs this study. */
octet_status study_run(const study_file *study, const study_engine *engine, const study_run_options *options);

/* What there is of it: tasks done and in all (0: it was never run), over all environments. */
typedef struct study_state_of {
    size_t tasks, done, environments;
} study_state_of;
octet_status study_count(const study_file *study, evidence_file *evidence, study_state_of *out);

/* Removes a folder of scale files that study_run made. */
void study_remove_scales(const study_file *study, const char *folder);

#endif
