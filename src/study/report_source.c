/* SPDX-License-Identifier: Apache-2.0 */
#include "study/report_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/document.h"
#include "base/error.h"

/* ---- rows */

static bool is(const evidence_row *row, const char *key, const char *text) {
    return strcmp(evidence_text(row, key), text) == 0;
}

const char *report_environment_of(const report_source *source, const char *run) {
    for (size_t i = 0; i < source->runs.count; i++)
        if (strcmp(source->runs.items[i].id, run) == 0) return evidence_text(&source->runs.items[i], "environment");
    return "";
}

/* Keeps the rows whose `key` names a run of the plans ("": the row itself is the run). */
static void keep_planned(const study_plans *plans, evidence_rows *rows, const char *key) {
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        evidence_row *row = &rows->items[i];
        if (study_plans_have(plans, key[0] == '\0' ? row->id : evidence_text(row, key)))
            rows->items[kept++] = *row;
        else
            json_decref(row->body);
    }
    rows->count = kept;
}

const evidence_row *report_figure(const report_source *source, const evidence_row *environment, const char *variant,
                                  const char *set, const char *name) {
    for (size_t i = 0; i < source->figures.count; i++) {
        const evidence_row *f = &source->figures.items[i];
        if (is(f, "variant", variant) && is(f, "set", set) && is(f, "name", name) &&
            strcmp(report_environment_of(source, evidence_text(f, "run")), environment->id) == 0)
            return f;
    }
    return NULL;
}

const evidence_row *report_run(const report_source *source, const evidence_row *environment, const char *task,
                               const char *variant, const char *set) {
    for (size_t i = 0; i < source->runs.count; i++) {
        const evidence_row *run = &source->runs.items[i];
        if (is(run, "task", task) && is(run, "variant", variant) && is(run, "environment", environment->id) &&
            is(run, "set", set != NULL ? set : ""))
            return run;
    }
    return NULL;
}

const evidence_row *report_artifact(const report_source *source, const char *id) {
    for (size_t i = 0; i < source->artifacts.count; i++)
        if (strcmp(source->artifacts.items[i].id, id) == 0) return &source->artifacts.items[i];
    return NULL;
}

const evidence_row *report_artifact_named(const report_source *source, const char *kind, const char *name) {
    for (size_t i = 0; i < source->artifacts.count; i++) {
        const evidence_row *row = &source->artifacts.items[i];
        if (is(row, "kind", kind) && (name == NULL || is(row, "name", name))) return row;
    }
    return NULL;
}

bool report_measured(const report_source *source, const evidence_row *environment, const char *variant) {
    for (size_t i = 0; i < source->figures.count; i++) {
        const evidence_row *f = &source->figures.items[i];
        if (is(f, "variant", variant) &&
            (environment == NULL ||
             strcmp(report_environment_of(source, evidence_text(f, "run")), environment->id) == 0))
            return true;
    }
    return false;
}

/* ---- recipes */

static bool is_narrow(const oct_node *numbers, char kept[16], bool *beyond_int8) {
    const oct_node *format = oct_node_get(numbers, "format");
    if (format == NULL || format->kind != OCT_NODE_STRING) return false;
    if (strcmp(format->string, "fp32") == 0 || strcmp(format->string, "fp16") == 0 ||
        strcmp(format->string, "bf16") == 0)
        return false;
    bool other = kept[0] != '\0' && strcmp(kept, format->string) != 0;
    (void)snprintf(kept, 16, "%s", other ? "several" : format->string);
    *beyond_int8 = *beyond_int8 || strcmp(format->string, "int8") != 0;
    return true;
}

static octet_status read_recipe(report_recipe *recipe, const char *text) {
    oct_document document = {0};
    octet_status status = oct_document_parse_yaml(&document, "recipe", text, strlen(text));
    if (status == OCTET_OUT_OF_MEMORY) return status;
    if (status != OCTET_OK) { /* a recipe that nobody can read is not known */
        oct_error_clear();
        return OCTET_OK;
    }
    const oct_node *rules = oct_node_get(document.root, "rules");
    for (size_t i = 0; rules != NULL && rules->kind == OCT_NODE_LIST && i < rules->count; i++) {
        const oct_node *weights = oct_node_get(rules->items[i], "weights");
        const oct_node *activations = oct_node_get(rules->items[i], "activations");
        if (is_narrow(weights, recipe->weights_format, &recipe->beyond_int8)) recipe->weights = true;
        if (is_narrow(activations, recipe->activations_format, &recipe->beyond_int8)) recipe->activations = true;
    }
    recipe->known = true;
    oct_document_free(&document);
    return OCTET_OK;
}

static octet_status load_recipes(report_source *source) {
    const study_file *study = source->study;
    source->recipes = calloc(study->variant_count + 1, sizeof *source->recipes);
    if (source->recipes == NULL) return oct_fail_memory();
    for (size_t v = 0; v < study->variant_count; v++) {
        report_recipe *recipe = &source->recipes[v];
        for (size_t i = 0; i < source->runs.count && recipe->id[0] == '\0'; i++)
            if (is(&source->runs.items[i], "variant", study->variants[v].name))
                (void)snprintf(recipe->id, sizeof recipe->id, "%s", evidence_text(&source->runs.items[i], "recipe"));
        const evidence_row *artifact = report_artifact(source, recipe->id);
        if (artifact != NULL && evidence_text(artifact, "text")[0] != '\0')
            OCT_TRY(read_recipe(recipe, evidence_text(artifact, "text")));
    }
    return OCTET_OK;
}

const report_recipe *report_recipe_of(const report_source *source, const char *variant) {
    for (size_t v = 0; v < source->study->variant_count; v++)
        if (strcmp(source->study->variants[v].name, variant) == 0) return &source->recipes[v];
    return NULL;
}

const char *report_variant_apart(const report_source *source, const char *candidate, bool weights) {
    const report_recipe *whole = report_recipe_of(source, candidate);
    for (size_t v = 0; whole != NULL && v < source->study->variant_count; v++) {
        const report_recipe *r = &source->recipes[v];
        bool same = weights ? strcmp(r->weights_format, whole->weights_format) == 0
                            : strcmp(r->activations_format, whole->activations_format) == 0;
        if (r->known && r->weights == weights && r->activations != weights && same &&
            report_measured(source, NULL, source->study->variants[v].name))
            return source->study->variants[v].name;
    }
    return NULL;
}

/* ---- loading */

static octet_status load_rows(report_source *source) {
    evidence_file *evidence = source->evidence;
    OCT_TRY(study_plans_load(evidence, source->study, &source->plans));
    OCT_TRY(evidence_list(evidence, EVIDENCE_ENVIRONMENT, NULL, &source->environments));
    OCT_TRY(evidence_list(evidence, EVIDENCE_RUN, NULL, &source->runs));
    OCT_TRY(evidence_list(evidence, EVIDENCE_FIGURE, NULL, &source->figures));
    OCT_TRY(evidence_list(evidence, EVIDENCE_TIMING, NULL, &source->timings));
    OCT_TRY(evidence_list(evidence, EVIDENCE_OPENING, NULL, &source->openings));
    OCT_TRY(evidence_list(evidence, EVIDENCE_ARTIFACT, NULL, &source->artifacts));
    keep_planned(&source->plans, &source->runs, "");
    keep_planned(&source->plans, &source->figures, "run");
    keep_planned(&source->plans, &source->timings, "run");
    return OCTET_OK;
}

/* Environments without a run of this study have no column. */
static void keep_environments(report_source *source) {
    evidence_rows *rows = &source->environments;
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        bool used = false;
        for (size_t k = 0; k < source->runs.count && !used; k++)
            used = is(&source->runs.items[k], "environment", rows->items[i].id);
        if (used)
            rows->items[kept++] = rows->items[i];
        else
            json_decref(rows->items[i].body);
    }
    rows->count = kept;
}

static void count_tasks(report_source *source) {
    for (size_t p = 0; p < source->plans.rows.count; p++)
        source->tasks += json_array_size(json_object_get(source->plans.rows.items[p].body, "tasks"));
    source->done = source->runs.count;
    if (source->plans.rows.count == 0) source->tasks = source->done;
}

static void find_study(report_source *source) {
    (void)snprintf(source->study_id, sizeof source->study_id, "%s", source->study->sha256);
    for (size_t i = 0; i < source->artifacts.count; i++) {
        const evidence_row *row = &source->artifacts.items[i];
        if (is(row, "kind", "study") && is(row, "sha256", source->study->sha256))
            memcpy(source->study_id, row->id, sizeof source->study_id);
    }
}

static octet_status decide_all(report_source *source) {
    const study_file *study = source->study;
    source->decisions = calloc(source->environments.count * study->candidate_count + 1, sizeof *source->decisions);
    if (source->decisions == NULL) return oct_fail_memory();
    for (size_t c = 0; c < study->candidate_count; c++)
        for (size_t e = 0; e < source->environments.count; e++) {
            report_decision *d = &source->decisions[source->decision_count];
            d->environment = &source->environments.items[e];
            OCT_TRY(decision_make(study, source->evidence, study->candidates[c], d->environment->id, &d->decided));
            source->decision_count++;
        }
    return OCTET_OK;
}

static octet_task find_task(const report_source *source) {
    for (size_t i = 0; i < source->figures.count; i++)
        if (is(&source->figures.items[i], "name", "ap")) return OCTET_DETECTION;
    return OCTET_CLASSIFICATION;
}

/* Evidence that has plans, but none of this file's text, is of another study than the one that would be reported. */
static octet_status check_plans(const report_source *source) {
    if (source->plans.rows.count > 0 || report_artifact_named(source, "plan", NULL) == NULL) return OCTET_OK;
    (void)oct_fail(OCTET_MISMATCH, "%s: was not run as it stands now", source->study->path);
    return oct_hint("octet study run measures what is missing; what is there is not measured again");
}

static octet_status load(report_source *source) {
    OCT_TRY(load_rows(source));
    OCT_TRY(check_plans(source));
    keep_environments(source);
    count_tasks(source);
    find_study(source);
    source->task = find_task(source);
    OCT_TRY(load_recipes(source));
    return decide_all(source);
}

octet_status report_source_load(report_source *source, const study_file *study, evidence_file *evidence) {
    *source = (report_source){.study = study, .evidence = evidence};
    octet_status status = load(source);
    if (status != OCTET_OK) report_source_free(source);
    return status;
}

void report_source_free(report_source *source) {
    for (size_t i = 0; i < source->decision_count; i++) decision_free(&source->decisions[i].decided);
    free(source->decisions);
    free(source->recipes);
    study_plans_free(&source->plans);
    evidence_rows_free(&source->environments);
    evidence_rows_free(&source->runs);
    evidence_rows_free(&source->figures);
    evidence_rows_free(&source->timings);
    evidence_rows_free(&source->openings);
    evidence_rows_free(&source->artifacts);
    *source = (report_source){0};
}
