/* SPDX-License-Identifier: Apache-2.0 */
#include "study/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "study/decision.h"
#include "study/plan.h"
#include "study/run_internal.h"

bool running_stopped(const running *r) {
    return r->options->stop != NULL && r->options->stop(r->options->user);
}

void running_show(const running *r, const study_task *task, const char *variant, size_t done, size_t total) {
    if (r->options->progress == NULL) return;
    study_progress shown = {.task = study_task_names[task->kind],
                            .variant = variant,
                            .set = task->kind == TASK_EVALUATE ? study_role_names[task->role] : "",
                            .task_number = (size_t)(task - r->tasks) + 1,
                            .task_count = r->task_count,
                            .done = done,
                            .total = total};
    r->options->progress(r->options->user, &shown);
}

size_t running_variant_index(const running *r, const char *name) {
    return (size_t)(study_find_variant(r->study, name) - r->study->variants);
}

/* ---- what does not change while it runs: environment, model, recipes */

static octet_status add_recipe(running *r, running_variant *v) {
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX];
    OCT_TRY(r->engine->recipe(r->engine->user, v->variant, &v->recipe_text, &v->needs_scales));
    OCT_TRY(oct_sha256_of(v->recipe_text, strlen(v->recipe_text), digest));
    oct_sha256_hex(digest, hex);
    return evidence_add(r->evidence, EVIDENCE_ARTIFACT,
                        json_pack("{s:s, s:s, s:s, s:s}", "kind", "recipe", "name", v->variant->recipe, "sha256", hex,
                                  "text", v->recipe_text),
                        v->recipe);
}

static octet_status add_facts(running *r) {
    const study_file *study = r->study;
    json_t *environment = NULL, *model = NULL;
    OCT_TRY(r->engine->environment(r->engine->user, &environment));
    OCT_TRY(evidence_add(r->evidence, EVIDENCE_ENVIRONMENT, environment, r->environment));
    OCT_TRY(r->engine->model(r->engine->user, &model, &r->task));
    if (study->revision != NULL) json_object_set_new(model, "revision", json_string(study->revision));
    OCT_TRY(evidence_add(r->evidence, EVIDENCE_ARTIFACT, model, r->model));
    OCT_TRY(evidence_add(r->evidence, EVIDENCE_ARTIFACT,
                         json_pack("{s:s, s:s, s:s, s:s%}", "kind", "study", "name", study->name, "sha256",
                                   study->sha256, "text", study->text, study->length),
                         r->file));
    for (size_t i = 0; i < study->variant_count; i++) OCT_TRY(add_recipe(r, &r->variants[i]));
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (r->sets[role].body == NULL) continue;
        OCT_TRY(evidence_add(r->evidence, EVIDENCE_ARTIFACT, json_incref(r->sets[role].body), NULL));
    }
    return OCTET_OK;
}

/* A recipe with static scales needs a set to calibrate on. */
static octet_status check_calibrate(const running *r) {
    for (size_t i = 0; i < r->study->variant_count; i++) {
        const study_variant *variant = &r->study->variants[i];
        if (r->variants[i].needs_scales && r->sets[ROLE_CALIBRATE].part.count == 0)
            return oct_fail(OCTET_BAD_FORMAT,
                            "%s:%d: variant %s has static scales, expected a set of the name calibrate", r->study->path,
                            variant->line, variant->name);
    }
    return OCTET_OK;
}

/* Rules of a classifier name no boxes, nor the other way round. */
static octet_status check_task(const running *r) {
    study_figure_source other = r->task == OCTET_DETECTION ? FROM_CLASSES : FROM_BOXES;
    for (size_t i = 0; i < r->study->rule_count; i++) {
        const study_rule *rule = &r->study->rules[i];
        for (size_t b = 0; rule->adopted && b < rule->bound_count; b++)
            if (study_find_figure(rule->bounds[b].figure)->source == other)
                return oct_fail(OCTET_BAD_FORMAT, "%s:%d: rule %s: %s is no figure of %s", r->study->path,
                                rule->bounds[b].line, rule->name, rule->bounds[b].figure,
                                r->task == OCTET_DETECTION ? "a detector" : "a classifier");
    }
    return OCTET_OK;
}

static octet_status prepare(running *r) {
    OCT_TRY(running_sets(r));
    OCT_TRY(decision_check_power(r->study, r->sets[ROLE_VERDICT].part.count));
    OCT_TRY(evidence_begin(r->evidence));
    octet_status status = add_facts(r);
    if (status == OCTET_OK) status = check_task(r);
    if (status == OCTET_OK) status = check_calibrate(r);
    if (status == OCTET_OK) status = running_plan(r);
    if (status == OCTET_OK) return evidence_commit(r->evidence);
    evidence_rollback(r->evidence);
    return status;
}

/* ---- the whole */

/* Whether a task runs a variant. */
static bool task_uses(const running *r, const study_task *task, size_t variant) {
    const study_timing *timing = &r->study->timing;
    bool uses = task->variant == variant || running_variant_index(r, r->study->reference) == variant;
    for (size_t i = 0; task->kind == TASK_TIME && i < timing->variant_count; i++)
        uses = uses || running_variant_index(r, timing->variants[i]) == variant;
    return uses;
}

/* Left out are tasks that are not wanted; a calibration is wanted by every task of its variant, and of the reference's.
 */
static bool is_wanted(const running *r, const study_task *task) {
    const study_run_options *o = r->options;
    if (o->wants == NULL) return true;
    for (size_t i = 0; i < r->task_count; i++) {
        const study_task *other = &r->tasks[i];
        if (other != task && task->kind != TASK_CALIBRATE) continue;
        const char *set = json_string_value(json_object_get(other->body, "set"));
        if (o->wants(o->wants_user, study_task_names[other->kind], r->study->variants[other->variant].name,
                     set != NULL ? set : ""))
            if (other == task || task_uses(r, other, task->variant)) return true;
    }
    return false;
}

static octet_status do_tasks(running *r) {
    for (size_t i = 0; i < r->task_count; i++) r->tasks[i].done = r->tasks[i].done || !is_wanted(r, &r->tasks[i]);
    for (size_t i = 0; i < r->task_count; i++) {
        if (r->tasks[i].done) continue;
        if (running_stopped(r)) return oct_fail(OCTET_CANCELLED, "%s: stopped; run it again to go on", r->study->path);
        octet_status status = running_do(r, &r->tasks[i]);
        if (status != OCTET_OK) evidence_rollback(r->evidence);
        if (status != OCTET_OK) return status;
    }
    OCT_TRY(evidence_drop_kept(r->evidence, NULL)); /* of tasks that are no more */
    evidence_compact(r->evidence);
    return OCTET_OK;
}

static void release(running *r) {
    for (size_t i = 0; r->variants != NULL && i < r->study->variant_count; i++) {
        free(r->variants[i].recipe_text);
        oct_free(r->variants[i].scales_path);
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        free(r->sets[role].numbers);
        json_decref(r->sets[role].body);
    }
    for (size_t i = 0; i < r->task_count; i++) json_decref(r->tasks[i].body);
    free(r->tasks);
    free(r->variants);
    evidence_close(&r->evidence);
}

octet_status study_run(const study_file *study, const study_engine *engine, const study_run_options *options) {
    running r = {.study = study, .engine = engine, .options = options};
    r.variants = calloc(study->variant_count, sizeof *r.variants);
    octet_status status = r.variants != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t i = 0; status == OCTET_OK && i < study->variant_count; i++) {
        r.variants[i].variant = &study->variants[i];
        r.variants[i].scales_path = oct_sprintf("%s/%s.json", options->scales, study->variants[i].name);
        if (r.variants[i].scales_path == NULL) status = oct_fail_memory();
    }
    if (status == OCTET_OK) status = evidence_open(options->evidence, EVIDENCE_WRITE, &r.evidence);
    if (status == OCTET_OK) status = prepare(&r);
    if (status == OCTET_OK) status = do_tasks(&r);
    release(&r);
    return status;
}

void study_remove_scales(const study_file *study, const char *folder) {
    for (size_t i = 0; i < study->variant_count; i++) {
        char *path = oct_sprintf("%s/%s.json", folder, study->variants[i].name);
        if (path != NULL) (void)unlink(path);
        oct_free(path);
    }
    (void)rmdir(folder);
}

octet_status study_count(const study_file *study, evidence_file *evidence, study_state_of *out) {
    study_plans plans;
    *out = (study_state_of){0};
    OCT_TRY(study_plans_load(evidence, study, &plans));
    octet_status status = OCTET_OK;
    out->environments = plans.rows.count;
    for (size_t i = 0; i < plans.rows.count; i++) {
        const json_t *tasks = json_object_get(plans.rows.items[i].body, "tasks");
        for (size_t k = 0; status == OCTET_OK && k < json_array_size(tasks); k++) {
            evidence_rows run;
            const char *id = json_string_value(json_object_get(json_array_get(tasks, k), "run"));
            out->tasks++;
            status = id != NULL ? evidence_find(evidence, id, &run) : OCTET_NOT_FOUND;
            out->done += status == OCTET_OK;
            if (status == OCTET_OK) evidence_rows_free(&run);
            if (status == OCTET_NOT_FOUND) status = OCTET_OK;
        }
    }
    study_plans_free(&plans);
    return status;
}
