/* SPDX-License-Identifier: Apache-2.0 */
/* A study while it runs: what run.c, run_sets.c and run_tasks.c share. */
#ifndef OCT_STUDY_RUN_INTERNAL_H
#define OCT_STUDY_RUN_INTERNAL_H

#include "study/run.h"

/* The sets that tasks take; one that the study has not is of no pictures. */
typedef enum study_role { ROLE_CALIBRATE, ROLE_SELECT, ROLE_VERDICT, ROLE_COUNT } study_role;
extern const char *const study_role_names[ROLE_COUNT];

typedef struct role_set {
    study_part part;
    int64_t *numbers; /* part's, owned */
    char id[EVIDENCE_ID];
    json_t *body; /* the artifact, until it is written */
} role_set;

typedef struct running_variant {
    const study_variant *variant;
    char recipe[EVIDENCE_ID];
    bool needs_scales;
    char *recipe_text;
    char calibration[EVIDENCE_ID]; /* the run; "" if it needs none */
    char scales[EVIDENCE_ID];      /* the artifact, once the file is there and right */
    char *scales_path;
} running_variant;

typedef enum task_kind { TASK_CALIBRATE, TASK_EVALUATE, TASK_SIZE, TASK_STRESS, TASK_TIME, TASK_PREMERGE } task_kind;
extern const char *const study_task_names[]; /* by kind */

/* One run of the plan. */
typedef struct study_task {
    task_kind kind;
    size_t variant; /* index; of TASK_TIME the base's */
    study_role role;
    int64_t batch;
    json_t *body; /* the run's row */
    char run[EVIDENCE_ID];
    bool done;
} study_task;

typedef struct running {
    const study_file *study;
    const study_engine *engine;
    const study_run_options *options;
    evidence_file *evidence;
    octet_task task;
    char environment[EVIDENCE_ID], model[EVIDENCE_ID], file[EVIDENCE_ID];
    running_variant *variants; /* study->variant_count */
    role_set sets[ROLE_COUNT];
    study_task *tasks;
    size_t task_count;
} running;

bool running_stopped(const running *r);
void running_show(const running *r, const study_task *task, const char *variant, size_t done, size_t total);
size_t running_variant_index(const running *r, const char *name);

/* Lists the data, resolves the sets, holds them apart by content, and makes their artifacts. */
octet_status running_sets(running *r);
/* All tasks, in order, with their runs' rows and ids, and whether they are done. */
octet_status running_plan(running *r);
/* Does a task that is not done, and with it others that go in the same pass; commits. */
octet_status running_do(running *r, study_task *task);

/* The scale file of a variant, there and right: made or made again if need be. NULL path if it needs none. */
octet_status running_scales(running *r, size_t variant, const char **path);
/* A figure of a run; `extra` (may be NULL) is taken over and merged into its row. */
octet_status running_figure(running *r, const study_task *task, const char *variant, const char *name, double value,
                            json_t *extra);
/* Begins, writes the run's row; the caller adds what came out and commits. */
octet_status running_begin_result(running *r, const study_task *task);
octet_status running_end_result(running *r, study_task *task, octet_status status);
/* The picture tasks: all variants of the task's set that are not done, in one pass. */
octet_status running_evaluate(running *r, study_task *task);

#endif
