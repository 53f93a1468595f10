/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence made by hand, in a situation of words.def or in none: a small study of a GPU whose candidate ships. */
#ifndef OCT_TESTS_REPORT_FIXTURE_H
#define OCT_TESTS_REPORT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/report.h"
#include "study/words.h"
#include "support/support.h"

#define NO_SITUATION WORDS_COUNT

typedef struct fixture {
    study_file study;
    evidence_file *evidence;
} fixture;

static void fixture_good(octet_status status) {
    if (status != OCTET_OK) fail_msg("%s", study_error_text());
}

static char *fixture_study(words_situation on, const char *title) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "study: s\ntitle: \"%s\"\nmodel: %s\n", title, on == WORDS_own_subject ? "../subjects/m" : "../m");
    if (on != WORDS_no_revision) fprintf(out, "revision: r1\n");
    fprintf(out, "data: {d: d}\nsets: {verdict: [data: d]}\nvariants:\n  fp32: fp32\n  fp16: fp16\n  both: both\n"
                 "  weights: {recipe: weights, judged: true}\n  activations: {recipe: activations, judged: true}\n");
    fprintf(out, "reference: fp32\n%scandidates: [both]\ntiming: {batches: [1], rounds: 40, base: fp32}\n",
            on != WORDS_no_floor ? "floor: fp16\n" : "");
    fprintf(out, "stress: true\nrules:\n  q: [{figure: kl, at_most: %s}%s]\nadopt: [q]\n",
            on == WORDS_none_ships      ? "0.0001"
            : on == WORDS_lack_of_power ? "0.011"
                                        : "0.1",
            on == WORDS_bound_not_measured ? ", {figure: agreement, at_least: 0.1}" : "");
    if (on == WORDS_gaps) fprintf(out, "not_measured: [{what: a moon, why: none at hand}]\n");
    fclose(out);
    return text;
}

static void fixture_recipe(evidence_file *evidence, const char *name, const char *format, char id[EVIDENCE_ID]) {
    bool weights = strcmp(name, "both") == 0 || strcmp(name, "weights") == 0;
    bool activations = strcmp(name, "both") == 0 || strcmp(name, "activations") == 0;
    char text[256];
    (void)snprintf(text, sizeof text, "recipe: %s\nbase: fp16\nrules:\n  - ops: {kind: conv2d}\n", name);
    if (weights) (void)snprintf(text + strlen(text), 100, "    weights: {format: %s, granularity: channel}\n", format);
    if (activations)
        (void)snprintf(text + strlen(text), 100, "    activations: {format: %s, granularity: tensor}\n", format);
    if (!weights && !activations) (void)snprintf(text, sizeof text, "recipe: %s\nbase: fp16\n", name);
    fixture_good(evidence_add(
        evidence, EVIDENCE_ARTIFACT,
        json_pack("{s:s, s:s, s:s, s:s}", "kind", "recipe", "name", name, "sha256", name, "text", text), id));
}

static void fixture_figure(evidence_file *evidence, const char *run, const char *variant, const char *set,
                           const char *name, double value, double low, double high, json_t *extra) {
    json_t *body = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:i}", "run", run, "variant", variant, "name", name,
                             "value", value, "low", low, "high", high, "n", 100);
    if (set != NULL) json_object_set_new(body, "set", json_string(set));
    if (extra != NULL) json_object_update(body, extra);
    json_decref(extra);
    fixture_good(evidence_add(evidence, EVIDENCE_FIGURE, body, NULL));
}

/* A variant's evaluation, stress inputs and premerge cases in one environment. */
static void fixture_variant(fixture *f, words_situation on, const char *environment, const char *model,
                            const char *variant) {
    char recipe[EVIDENCE_ID], run[EVIDENCE_ID], other[EVIDENCE_ID];
    const char *set = on == WORDS_select_only && strcmp(variant, "weights") == 0 ? "select" : "verdict";
    evidence_file *e = f->evidence;
    fixture_recipe(e, variant, on == WORDS_emulated ? "e4m3" : "int8", recipe);
    fixture_good(evidence_add(e, EVIDENCE_RUN,
                              json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "task", "evaluate", "variant", variant, "set",
                                        set, "environment", environment, "model", model, "recipe", recipe),
                              run));
    fixture_good(evidence_add(e, EVIDENCE_RUN,
                              json_pack("{s:s, s:s, s:s, s:s, s:s}", "task", "stress", "variant", variant,
                                        "environment", environment, "model", model, "recipe", recipe),
                              other));
    fixture_figure(e, run, variant, set, "kl", 0.01, 0.009, 0.012, NULL);
    fixture_figure(e, run, variant, set, "top1", 0.7, 0.6, 0.8, NULL);
    fixture_figure(e, run, variant, set, "nonfinite", on == WORDS_not_finite ? 2 : 0, 0, 0, NULL);
    if (on == WORDS_unmatched) fixture_figure(e, run, variant, set, "unmatched_tested", 0.1, 0.05, 0.2, NULL);
    if (on != WORDS_no_stress) fixture_figure(e, other, variant, NULL, "stress_nan", 0, 0, 0, NULL);
    if (on != WORDS_no_premerge) fixture_figure(e, other, variant, NULL, "premerge_drift", 0.2, 0.2, 0.2, NULL);
    if (on == WORDS_modelled) fixture_figure(e, other, variant, NULL, "modelled_ms_batch_1", 0.2, 0.2, 0.2, NULL);
}

static void fixture_times(fixture *f, words_situation on, const char *environment, const char *model) {
    static const char *const variants[] = {"fp32", "both"};
    char run[EVIDENCE_ID];
    double low = on == WORDS_spans_one ? 0.98 : 1.1;
    fixture_good(evidence_add(f->evidence, EVIDENCE_RUN,
                              json_pack("{s:s, s:s, s:s, s:s}", "task", "time", "variant", "fp32", "environment",
                                        environment, "model", model),
                              run));
    for (int i = 0; i < 2; i++) {
        json_t *body =
            json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:b, s:[f, f]}", "run", run, "variant",
                      variants[i], "name", "race", "scope", on == WORDS_scope_graph ? "graph" : "engine", "batch", 1,
                      "threads", 2, "warm_up", 3, "start", "a", "end", "b", "synchronize", "c", "inside", "d", "held",
                      on != WORDS_not_held, "seconds", 0.25, 0.5);
        if (on == WORDS_throttled) json_object_set_new(body, "throttled", json_true());
        fixture_good(evidence_add(f->evidence, EVIDENCE_TIMING, body, NULL));
        fixture_figure(f->evidence, run, variants[i], NULL, "median_ms_batch_1", 2.0 - i, 0, 0,
                       json_pack("{s:f, s:f}", "p25", 1.0, "p75", 3.0));
        if (on != WORDS_no_groups)
            fixture_figure(f->evidence, run, variants[i], NULL, "group_ms", 1.5, 0, 0,
                           json_pack("{s:s, s:b}", "group", "conv2d", "touched", 1));
        if (on != WORDS_no_groups)
            fixture_figure(f->evidence, run, variants[i], NULL, "group_ms", 0.5, 0, 0,
                           json_pack("{s:s, s:b}", "group", "pool", "touched", 0));
    }
    fixture_figure(f->evidence, run, "both", NULL, "speedup_batch_1", 1.2, low, 1.3,
                   json_pack("{s:s}", "verdict",
                             on == WORDS_unclear_times ? "unclear"
                             : on == WORDS_spans_one   ? "no measurable difference"
                                                       : "faster"));
}

static void fixture_opening(fixture *f, const char *recipe) {
    char id[EVIDENCE_ID];
    fixture_recipe(f->evidence, recipe, "int8", id);
    fixture_good(evidence_add(
        f->evidence, EVIDENCE_OPENING,
        json_pack("{s:s, s:s, s:s}", "variant", "both", "recipe", id, "when", "2026-01-01T00:00:00Z"), NULL));
}

static void fixture_environment(fixture *f, words_situation on, const char *device) {
    static const char *const variants[] = {"fp32", "fp16", "both", "weights", "activations"};
    char environment[EVIDENCE_ID], model[EVIDENCE_ID];
    const char *revision = on == WORDS_other_weights ? "r2" : "r1";
    json_t *body = json_pack("{s:s, s:s, s:s}", "kind", "model", "name", "m", "sha256", "ab");
    if (on != WORDS_revision_not_checked) json_object_set_new(body, "revision", json_string(revision));
    fixture_good(evidence_add(f->evidence, EVIDENCE_ARTIFACT, body, model));
    fixture_good(evidence_add(f->evidence, EVIDENCE_ENVIRONMENT,
                              json_pack("{s:s, s:s, s:{s:s}, s:s, s:s}", "octet", "0.1.0", "device", device, "machine",
                                        "cpu", "Some Processor 9", "system", "Linux", "release", "6.1"),
                              environment));
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        bool without = (on == WORDS_activations_alone && i == 3) || (on == WORDS_weights_alone && i == 4) ||
                       (on == WORDS_no_floor && i == 1);
        if (!without) fixture_variant(f, on, environment, model, variants[i]);
    }
    if (on != WORDS_no_times) fixture_times(f, on, environment, model);
    if (on == WORDS_unfinished)
        fixture_good(evidence_add(
            f->evidence, EVIDENCE_RUN,
            json_pack("{s:s, s:s, s:s}", "task", "size", "variant", "both", "environment", environment), NULL));
}

/* A plan of all runs that are there and one more. */
static void fixture_plan(fixture *f) {
    evidence_rows rows;
    json_t *tasks = json_pack("[{s:s}]", "run", "not done");
    fixture_good(evidence_list(f->evidence, EVIDENCE_RUN, NULL, &rows));
    for (size_t i = 0; i < rows.count; i++) json_array_append_new(tasks, json_pack("{s:s}", "run", rows.items[i].id));
    fixture_good(study_plan_write(f->evidence, &f->study, evidence_text(&rows.items[0], "environment"), tasks));
    evidence_rows_free(&rows);
}

/* In the file e.sqlite of `folder`; the study's title is `title`. */
static void fixture_make(fixture *f, const char *folder, words_situation on, const char *title) {
    char path[4200];
    char *text = fixture_study(on, title);
    (void)snprintf(path, sizeof path, "%s/e.sqlite", folder);
    (void)unlink(path);
    fixture_good(study_file_parse(&f->study, "study.yaml", text, strlen(text)));
    free(text);
    fixture_good(evidence_open(path, EVIDENCE_WRITE, &f->evidence));
    fixture_good(evidence_begin(f->evidence));
    fixture_environment(f, on, on == WORDS_cpu_only || on == WORDS_emulated ? "cpu" : "cuda");
    if (on == WORDS_several_machines) fixture_environment(f, on, "other");
    fixture_opening(f, "both");
    if (on == WORDS_recipe_changed) fixture_opening(f, "older");
    if (on == WORDS_unfinished) fixture_plan(f);
    fixture_good(evidence_commit(f->evidence));
}

static void fixture_free(fixture *f) {
    evidence_close(&f->evidence);
    study_file_free(&f->study);
}

#endif
