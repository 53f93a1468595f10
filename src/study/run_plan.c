/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a study: its runs, each named by what decides its outcome, so that one that is there need not be done. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "study/plan.h"
#include "study/run_internal.h"

const char *const study_task_names[] = {"calibrate", "evaluate", "size", "stress", "time", "premerge"};

/* Keys that every run has. */
static json_t *run_body(const running *r, task_kind kind, size_t variant) {
    const running_variant *v = &r->variants[variant];
    json_t *body = json_pack("{s:s, s:s, s:s, s:s, s:s}", "task", study_task_names[kind], "variant", v->variant->name,
                             "environment", r->environment, "model", r->model, "recipe", v->recipe);
    if (v->calibration[0] != '\0') json_object_set_new(body, "calibration", json_string(v->calibration));
    return body;
}

static void put_set(const running *r, json_t *body, study_role role) {
    json_object_set_new(body, "set", json_string(study_role_names[role]));
    json_object_set_new(body, "pictures", json_string(r->sets[role].id));
}

/* What the reference's side of a comparison is made of. */
static void put_reference(const running *r, json_t *body, json_t *options) {
    const running_variant *v = &r->variants[running_variant_index(r, r->study->reference)];
    json_object_set_new(body, "reference", json_string(v->variant->name));
    json_object_set_new(options, "reference_recipe", json_string(v->recipe));
    if (v->calibration[0] != '\0') json_object_set_new(options, "reference_calibration", json_string(v->calibration));
}

static json_t *evaluate_body(const running *r, size_t variant, study_role role) {
    const study_file *study = r->study;
    json_t *body = run_body(r, TASK_EVALUATE, variant);
    json_t *options = json_pack("{s:I, s:f, s:s}", "draws", (json_int_t)study->draws, "threshold", study->threshold,
                                "orientation", study->orientation);
    put_set(r, body, role);
    put_reference(r, body, options);
    json_object_set_new(body, "options", options);
    return body;
}

static json_t *time_body(const running *r, size_t base, int64_t batch) {
    const study_timing *timing = &r->study->timing;
    json_t *body = run_body(r, TASK_TIME, base), *others = json_array();
    for (size_t i = 0; i < timing->variant_count; i++) {
        const running_variant *v = &r->variants[running_variant_index(r, timing->variants[i])];
        json_array_append_new(others, json_pack("{s:s, s:s, s:s}", "variant", v->variant->name, "recipe", v->recipe,
                                                "calibration", v->calibration));
    }
    json_object_set_new(body, "options",
                        json_pack("{s:I, s:I, s:I, s:I, s:f, s:o}", "batch", (json_int_t)batch, "rounds",
                                  (json_int_t)timing->rounds, "threads", (json_int_t)timing->threads, "warm_up",
                                  (json_int_t)timing->warm_up, "seconds", timing->seconds, "variants", others));
    return body;
}

static json_t *premerge_body(const running *r, size_t variant) {
    json_t *body = run_body(r, TASK_PREMERGE, variant), *options = json_object(), *cases = json_array();
    for (size_t i = 0; i < r->study->premerge_count; i++)
        json_array_append_new(cases, json_pack("{s:s, s:f}", "name", r->study->premerge[i].name, "tolerance",
                                               r->study->premerge[i].tolerance));
    put_reference(r, body, options);
    json_object_set_new(options, "cases", cases);
    json_object_set_new(options, "threshold", json_real(r->study->threshold));
    json_object_set_new(body, "options", options);
    return body;
}

/* ---- the list */

static octet_status add_task(running *r, task_kind kind, size_t variant, study_role role, int64_t batch, json_t *body) {
    study_task *grown = realloc(r->tasks, (r->task_count + 1) * sizeof *grown);
    if (grown == NULL || body == NULL) {
        json_decref(body);
        return oct_fail_memory();
    }
    r->tasks = grown;
    study_task *task = &r->tasks[r->task_count++];
    *task = (study_task){.kind = kind, .variant = variant, .role = role, .batch = batch, .body = body};
    return evidence_id(EVIDENCE_RUN, json_incref(body), task->run);
}

static octet_status add_calibrations(running *r) {
    for (size_t i = 0; i < r->study->variant_count; i++) {
        running_variant *v = &r->variants[i];
        if (!v->needs_scales) continue;
        json_t *body = run_body(r, TASK_CALIBRATE, i);
        put_set(r, body, ROLE_CALIBRATE);
        OCT_TRY(add_task(r, TASK_CALIBRATE, i, ROLE_CALIBRATE, 0, body));
        memcpy(v->calibration, r->tasks[r->task_count - 1].run, sizeof v->calibration);
    }
    return OCTET_OK;
}

static octet_status add_evaluations(running *r, study_role role) {
    for (size_t i = 0; r->sets[role].part.count > 0 && i < r->study->variant_count; i++) {
        if (role == ROLE_VERDICT && !r->study->variants[i].judged) continue;
        OCT_TRY(add_task(r, TASK_EVALUATE, i, role, 0, evaluate_body(r, i, role)));
    }
    return OCTET_OK;
}

static octet_status add_times(running *r) {
    const study_timing *timing = &r->study->timing;
    if (!timing->is_set) return OCTET_OK;
    size_t base = running_variant_index(r, timing->base);
    for (size_t i = 0; i < timing->batch_count; i++)
        OCT_TRY(add_task(r, TASK_TIME, base, ROLE_VERDICT, timing->batches[i], time_body(r, base, timing->batches[i])));
    return OCTET_OK;
}

/* The base of sizes first, since the others' are held against it. */
static octet_status add_sizes(running *r) {
    size_t base = running_variant_index(r, r->study->timing.is_set ? r->study->timing.base : r->study->reference);
    OCT_TRY(add_task(r, TASK_SIZE, base, ROLE_VERDICT, 0, run_body(r, TASK_SIZE, base)));
    for (size_t i = 0; i < r->study->variant_count; i++)
        if (i != base && r->study->variants[i].judged)
            OCT_TRY(add_task(r, TASK_SIZE, i, ROLE_VERDICT, 0, run_body(r, TASK_SIZE, i)));
    return OCTET_OK;
}

static octet_status add_checks(running *r) {
    for (size_t i = 0; i < r->study->variant_count; i++) {
        if (!r->study->variants[i].judged) continue;
        if (r->study->stress) OCT_TRY(add_task(r, TASK_STRESS, i, ROLE_VERDICT, 0, run_body(r, TASK_STRESS, i)));
        if (r->study->premerge_count > 0) OCT_TRY(add_task(r, TASK_PREMERGE, i, ROLE_VERDICT, 0, premerge_body(r, i)));
    }
    return OCTET_OK;
}

/* Whether a run is there. */
static octet_status find_done(running *r, study_task *task) {
    evidence_rows rows;
    octet_status status = evidence_find(r->evidence, task->run, &rows);
    task->done = status == OCTET_OK;
    if (task->done) evidence_rows_free(&rows);
    return status == OCTET_NOT_FOUND ? OCTET_OK : status;
}

octet_status running_plan(running *r) {
    OCT_TRY(add_calibrations(r));
    OCT_TRY(add_evaluations(r, ROLE_SELECT));
    OCT_TRY(add_sizes(r));
    OCT_TRY(add_checks(r));
    OCT_TRY(add_times(r));
    OCT_TRY(add_evaluations(r, ROLE_VERDICT)); /* last: it is opened once */
    json_t *list = json_array();
    for (size_t i = 0; i < r->task_count; i++) {
        study_task *task = &r->tasks[i];
        OCT_TRY(find_done(r, task));
        json_t *set = json_object_get(task->body, "set");
        json_array_append_new(list, json_pack("{s:s, s:s, s:O, s:s}", "task", study_task_names[task->kind], "variant",
                                              r->study->variants[task->variant].name, "set",
                                              set != NULL ? set : json_null(), "run", task->run));
    }
    return study_plan_write(r->evidence, r->study, r->environment, list);
}
