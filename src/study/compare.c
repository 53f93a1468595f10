/* SPDX-License-Identifier: Apache-2.0 */
#include "study/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/random.h"
#include "study/plan.h"

const char *compared_word_text(compared_word word) {
    static const char *const words[] = {"same", "within its interval", "moved", "old only", "new only"};
    return words[word];
}

/* ---- two figures */

static bool equal(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Ends of the interval; quartiles where a median has no interval; the value itself where there is none. */
static void ends_of(const evidence_row *row, double *low, double *high) {
    *low = evidence_number(row, "low");
    *high = evidence_number(row, "high");
    if (isnan(*low)) *low = evidence_number(row, "p25");
    if (isnan(*high)) *high = evidence_number(row, "p75");
    if (isnan(*low)) *low = evidence_number(row, "value");
    if (isnan(*high)) *high = evidence_number(row, "value");
}

compared_word compare_figures(const evidence_row *old, const evidence_row *fresh) {
    double low, high, other_low, other_high;
    if (old == NULL) return COMPARED_NEW_ONLY;
    if (fresh == NULL) return COMPARED_OLD_ONLY;
    ends_of(old, &low, &high);
    ends_of(fresh, &other_low, &other_high);
    if (equal(evidence_number(old, "value"), evidence_number(fresh, "value")) && equal(low, other_low) &&
        equal(high, other_high))
        return COMPARED_SAME;
    return low <= other_high && other_low <= high ? COMPARED_WITHIN : COMPARED_MOVED;
}

/* ---- two files */

static int by_key(const evidence_row *a, const evidence_row *b) {
    static const char *const keys[] = {"variant", "set", "name", "case"};
    for (size_t i = 0; i < 4; i++) {
        int order = strcmp(evidence_text(a, keys[i]), evidence_text(b, keys[i]));
        if (order != 0) return order;
    }
    return 0;
}

static int by_key_of(const void *a, const void *b) {
    const evidence_row *x = a, *y = b;
    int order = by_key(x, y);
    return order != 0 ? order : strcmp(x->id, y->id);
}

/* The figures of a file that count, one a key. */
static octet_status figures_of(const study_file *study, evidence_file *evidence, evidence_rows *out) {
    study_plans plans = {0};
    OCT_TRY(evidence_list(evidence, EVIDENCE_FIGURE, NULL, out));
    octet_status status = study != NULL ? study_plans_load(evidence, study, &plans) : OCTET_OK;
    if (status != OCTET_OK) {
        evidence_rows_free(out);
        return status;
    }
    qsort(out->items, out->count, sizeof *out->items, by_key_of);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        evidence_row *row = &out->items[i];
        bool counts = study == NULL || study_plans_have(&plans, evidence_text(row, "run"));
        if (counts && (kept == 0 || by_key(&out->items[kept - 1], row) != 0))
            out->items[kept++] = *row;
        else
            json_decref(row->body);
    }
    out->count = kept;
    study_plans_free(&plans);
    return OCTET_OK;
}

octet_status study_compare(const study_file *study, evidence_file *old, evidence_file *fresh,
                           void (*each)(void *user, const compared_figure *figure), void *user) {
    evidence_rows a, b = {0};
    OCT_TRY(figures_of(study, old, &a));
    octet_status status = figures_of(study, fresh, &b);
    for (size_t i = 0, k = 0; status == OCTET_OK && (i < a.count || k < b.count);) {
        int order = i == a.count ? 1 : k == b.count ? -1 : by_key(&a.items[i], &b.items[k]);
        const evidence_row *x = order <= 0 ? &a.items[i++] : NULL, *y = order >= 0 ? &b.items[k++] : NULL;
        const evidence_row *any = x != NULL ? x : y;
        const compared_figure figure = {.variant = evidence_text(any, "variant"),
                                        .set = evidence_text(any, "set"),
                                        .name = evidence_text(any, "name"),
                                        .old = x,
                                        .fresh = y,
                                        .word = compare_figures(x, y)};
        each(user, &figure);
    }
    evidence_rows_free(&a);
    evidence_rows_free(&b);
    return status;
}

/* ---- measuring again */

typedef struct drawn_run {
    char task[16], variant[72], set[16];
} drawn_run;

typedef struct rerunning {
    drawn_run *runs;
    size_t count;
    bool same_environment, held;
    void (*each)(void *user, const compared_figure *figure);
    void *user;
} rerunning;

static bool is_drawn(void *user, const char *task, const char *variant, const char *set) {
    const rerunning *r = user;
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->runs[i].task, task) == 0 && strcmp(r->runs[i].variant, variant) == 0 &&
            strcmp(r->runs[i].set, set) == 0)
            return true;
    return false;
}

static bool is_done(evidence_file *evidence, const char *run) {
    evidence_rows rows;
    bool done = run != NULL && evidence_find(evidence, run, &rows) == OCTET_OK;
    if (done) evidence_rows_free(&rows);
    return done;
}

/* Runs that are done and stand by themselves: scales come with those that need them, sizes are held against a base. */
static octet_status list_runs(const study_file *study, evidence_file *evidence, rerunning *r) {
    study_plans plans;
    OCT_TRY(study_plans_load(evidence, study, &plans));
    octet_status status = OCTET_OK;
    for (size_t p = 0; status == OCTET_OK && p < plans.rows.count; p++) {
        const json_t *tasks = json_object_get(plans.rows.items[p].body, "tasks");
        drawn_run *grown = realloc(r->runs, (r->count + json_array_size(tasks) + 1) * sizeof *grown);
        if (grown == NULL) status = oct_fail_memory();
        if (grown != NULL) r->runs = grown;
        for (size_t i = 0; status == OCTET_OK && i < json_array_size(tasks); i++) {
            const json_t *task = json_array_get(tasks, i);
            const char *kind = json_string_value(json_object_get(task, "task"));
            const char *variant = json_string_value(json_object_get(task, "variant"));
            const char *set = json_string_value(json_object_get(task, "set"));
            if (kind == NULL || variant == NULL || strcmp(kind, "calibrate") == 0 || strcmp(kind, "size") == 0)
                continue;
            if (is_drawn(r, kind, variant, set != NULL ? set : "")) continue; /* of another environment, batch */
            if (!is_done(evidence, json_string_value(json_object_get(task, "run")))) continue;
            drawn_run *run = &r->runs[r->count++];
            (void)snprintf(run->task, sizeof run->task, "%s", kind);
            (void)snprintf(run->variant, sizeof run->variant, "%s", variant);
            (void)snprintf(run->set, sizeof run->set, "%s", set != NULL ? set : "");
        }
    }
    study_plans_free(&plans);
    if (status == OCTET_OK && r->count == 0)
        status = oct_fail(OCTET_NOT_FOUND, "%s: nothing of this study was measured yet", evidence_path(evidence));
    return status;
}

static void draw(rerunning *r, size_t sample, uint64_t seed) {
    for (size_t i = 0; i < sample && i < r->count; i++) {
        size_t other = i + (size_t)oct_random_below(&seed, r->count - i);
        drawn_run kept = r->runs[i];
        r->runs[i] = r->runs[other];
        r->runs[other] = kept;
    }
    if (sample < r->count) r->count = sample;
}

/* A figure of something that was timed. */
static bool is_time(const char *name) {
    return strncmp(name, "speedup_batch_", 14) == 0 || strncmp(name, "median_ms_batch_", 16) == 0;
}

static void on_figure(void *user, const compared_figure *figure) {
    rerunning *r = user;
    if (figure->fresh == NULL || strcmp(figure->name, "scales_bytes") == 0) return; /* not measured again */
    bool exact = r->same_environment && !is_time(figure->name);
    bool holds = figure->word == COMPARED_SAME || (!exact && figure->word == COMPARED_WITHIN);
    /* Medians of one machine drift with its load; their ratios are what is said to hold. */
    if (strncmp(figure->name, "median_ms_batch_", 16) != 0) r->held = r->held && holds;
    r->each(r->user, figure);
}

static octet_status same_environment(evidence_file *old, evidence_file *fresh, bool *same) {
    evidence_rows a, b = {0};
    *same = false;
    OCT_TRY(evidence_list(fresh, EVIDENCE_ENVIRONMENT, NULL, &a));
    octet_status status = evidence_list(old, EVIDENCE_ENVIRONMENT, NULL, &b);
    for (size_t i = 0; status == OCTET_OK && i < b.count; i++)
        *same = *same || (a.count > 0 && strcmp(a.items[0].id, b.items[i].id) == 0);
    evidence_rows_free(&a);
    evidence_rows_free(&b);
    return status;
}

static octet_status compare_rerun(const study_file *study, const char *path, evidence_file *old, rerunning *r) {
    evidence_file *fresh;
    OCT_TRY(evidence_open(path, EVIDENCE_READ, &fresh));
    octet_status status = same_environment(old, fresh, &r->same_environment);
    if (status == OCTET_OK) status = study_compare(study, old, fresh, on_figure, r);
    evidence_close(&fresh);
    return status;
}

octet_status study_rerun(const study_file *study, const study_engine *engine, const study_run_options *options,
                         size_t sample, uint64_t seed, void (*each)(void *user, const compared_figure *figure),
                         void *user, bool *held) {
    rerunning r = {.held = true, .each = each, .user = user};
    evidence_file *old = NULL;
    char *path = oct_sprintf("%s.%ld.rerun", options->evidence, (long)getpid());
    char *scales = oct_sprintf("%s.%ld.rerun.scales", options->evidence, (long)getpid());
    *held = false;
    octet_status status = path != NULL && scales != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) status = evidence_open(options->evidence, EVIDENCE_READ, &old);
    if (status == OCTET_OK) status = list_runs(study, old, &r);
    if (status == OCTET_OK) {
        study_run_options own = *options;
        draw(&r, sample, seed);
        own.evidence = path;
        own.scales = scales;
        own.wants = is_drawn;
        own.wants_user = &r;
        status = study_run(study, engine, &own);
        if (status == OCTET_OK) status = compare_rerun(study, path, old, &r);
        (void)unlink(path);
        study_remove_scales(study, scales);
    }
    *held = status == OCTET_OK && r.held;
    evidence_close(&old);
    free(r.runs);
    oct_free(path);
    oct_free(scales);
    return status;
}
