/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs of an evidence file belong to a study as its file stands now: those that its latest plan names, one plan
 * an environment. Runs of earlier recipes or rules stay in the file, and count no more. */
#ifndef OCT_STUDY_PLAN_H
#define OCT_STUDY_PLAN_H

#include "study/evidence.h"
#include "study/study_file.h"

typedef struct study_plans {
    evidence_rows rows; /* artifacts of kind plan: tasks: [{"task", "variant", "set", "run"}...], the latest each */
} study_plans;
octet_status study_plans_load(evidence_file *evidence, const study_file *study, study_plans *out);
void study_plans_free(study_plans *plans);
/* Whether a run counts; where the study has no plan at all (evidence made by hand), every run does. */
bool study_plans_have(const study_plans *plans, const char *run);

/* Writes the plan of `environment`, unless the latest one says the same; takes over `tasks`. */
octet_status study_plan_write(evidence_file *evidence, const study_file *study, const char *environment, json_t *tasks);

#endif
