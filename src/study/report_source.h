/* SPDX-License-Identifier: Apache-2.0 */
/* What a report is made of: the evidence of a study's latest plans, looked at from the sides a report looks from. */
#ifndef OCT_STUDY_REPORT_SOURCE_H
#define OCT_STUDY_REPORT_SOURCE_H

#include "octet/octet.h"
#include "study/decision.h"
#include "study/evidence.h"
#include "study/plan.h"
#include "study/study_file.h"

/* What a variant's recipe makes narrow, read from the recipe's text in the evidence. */
typedef struct report_recipe {
    bool known; /* its text is there */
    bool weights, activations;
    char weights_format[16], activations_format[16]; /* "e4m3"; "several"; "" for what stays wide */
    bool beyond_int8;                                /* a narrow format that a CPU emulates */
    char id[EVIDENCE_ID];
} report_recipe;

/* One candidate in one environment. */
typedef struct report_decision {
    const evidence_row *environment;
    decision decided;
} report_decision;

typedef struct report_source {
    const study_file *study;
    evidence_file *evidence;
    char study_id[EVIDENCE_ID]; /* of the study file's artifact, or the hash of its text */
    study_plans plans;
    /* Of the plans' runs only; each run's environment. */
    evidence_rows environments, runs, figures, timings, openings, artifacts;
    report_recipe *recipes; /* a variant of the study each */
    report_decision *decisions;
    size_t decision_count;
    size_t tasks, done;
    octet_task task;
} report_source;

/* Owns copies of rows; points into `study` and `evidence`. */
octet_status report_source_load(report_source *source, const study_file *study, evidence_file *evidence);
void report_source_free(report_source *source);

/* The environment of a run; "" if there is no such run. */
const char *report_environment_of(const report_source *source, const char *run);
/* The figure of a variant in an environment; `set` "" for what has no set. NULL: not measured. */
const evidence_row *report_figure(const report_source *source, const evidence_row *environment, const char *variant,
                                  const char *set, const char *name);
/* The run of a variant; `set` NULL or "": none. NULL: not there. */
const evidence_row *report_run(const report_source *source, const evidence_row *environment, const char *task,
                               const char *variant, const char *set);
/* An artifact by its id, or the first of a kind and name (NULL: any). */
const evidence_row *report_artifact(const report_source *source, const char *id);
const evidence_row *report_artifact_named(const report_source *source, const char *kind, const char *name);
const report_recipe *report_recipe_of(const report_source *source, const char *variant); /* NULL: no such variant */
/* Whether anything of a variant was measured in this environment (NULL: any). */
bool report_measured(const report_source *source, const evidence_row *environment, const char *variant);
/* A variant that was evaluated and makes only the weights (else only the activations) narrow, in the format in which
 * `candidate` has them: what attributes a loss to them. NULL: none. */
const char *report_variant_apart(const report_source *source, const char *candidate, bool weights);

#endif
