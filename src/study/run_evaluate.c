/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations: all variants of a set that are not done go over its pictures in one pass, beside one reference. What
 * each picture gave is kept in the evidence file every second or so; the end makes figures and samples of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "eval/keep.h"
#include "study/run_internal.h"

/* Records of a pass that about 1 GB holds: a detector's has all its tokens. */
#define PASS_CLASSIFIED 1000000
#define PASS_DETECTED 50000

/* One variant of the pass. */
typedef struct pass_side {
    study_task *task;
    eval_figures figures;
    json_t *records; /* of all pictures, in order */
} pass_side;

typedef struct pass {
    running *r;
    study_role role;
    pass_side *sides;
    study_subject *subjects;
    size_t count;        /* of sides */
    size_t at, kept;     /* pictures measured; committed */
    double last;         /* commit, by the monotonic clock */
    octet_status status; /* of what went wrong in a callback */
} pass;

static double seconds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the verdict set is opened */

static octet_status opened_before(running *r, const json_t *wanted, bool *found) {
    evidence_rows rows;
    static const char *const keys[] = {"recipe", "scales", "pictures"};
    OCT_TRY(evidence_list(r->evidence, EVIDENCE_OPENING,
                          &(evidence_query){.variant = json_string_value(json_object_get(wanted, "variant"))}, &rows));
    *found = false;
    for (size_t i = 0; i < rows.count; i++) {
        bool same = true;
        for (size_t k = 0; k < 3; k++)
            same = same && json_equal(json_object_get(rows.items[i].body, keys[k]), json_object_get(wanted, keys[k]));
        *found = *found || same;
    }
    evidence_rows_free(&rows);
    return OCTET_OK;
}

static octet_status record_opening(running *r, const study_task *task) {
    const running_variant *v = &r->variants[task->variant];
    char when[32];
    bool found;
    time_t now = time(NULL);
    struct tm utc;
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *body = json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "variant", v->variant->name, "recipe", v->recipe,
                             "scales", v->scales[0] != '\0' ? json_string(v->scales) : json_null(), "pictures",
                             r->sets[ROLE_VERDICT].id, "study", r->file, "when", when);
    if (body == NULL) return oct_fail_memory();
    octet_status status = opened_before(r, body, &found);
    if (status == OCTET_OK && !found) return evidence_add(r->evidence, EVIDENCE_OPENING, body, NULL);
    json_decref(body);
    return status;
}

/* ---- the pictures */

static octet_status commit_kept(pass *p) {
    octet_status status = evidence_begin(p->r->evidence);
    for (size_t s = 0; s < p->count; s++) {
        for (size_t i = p->kept; status == OCTET_OK && i < p->at; i++)
            status = evidence_keep(p->r->evidence, p->sides[s].task->run, (int64_t)i,
                                   json_incref(json_array_get(p->sides[s].records, i)));
    }
    if (status == OCTET_OK) status = evidence_commit(p->r->evidence);
    if (status != OCTET_OK) evidence_rollback(p->r->evidence);
    if (status == OCTET_OK) p->kept = p->at;
    p->last = seconds_now();
    return status;
}

static octet_status take_record(pass_side *side, json_t *record) {
    if (!eval_restore(&side->figures, record))
        return oct_fail(OCTET_INTERNAL, "a picture's record is not as it should be");
    return json_array_append(side->records, record) == 0 ? OCTET_OK : oct_fail_memory();
}

static bool on_picture(void *user, json_t **records) {
    pass *p = user;
    running *r = p->r;
    for (size_t s = 0; s < p->count; s++) {
        if (p->status == OCTET_OK) p->status = take_record(&p->sides[s], records[s]);
        json_decref(records[s]);
    }
    p->at++;
    bool stopped = running_stopped(r);
    if (p->status == OCTET_OK && (stopped || seconds_now() - p->last >= r->options->commit_seconds))
        p->status = commit_kept(p);
    running_show(r, p->sides[0].task, r->study->variants[p->sides[0].task->variant].name, p->at * p->count,
                 r->sets[p->role].part.count * p->count);
    if (p->status == OCTET_OK && stopped && p->at < r->sets[p->role].part.count)
        p->status = oct_fail(OCTET_CANCELLED, "%s: stopped; run it again to go on", r->study->path);
    return p->status == OCTET_OK;
}

/* Takes up what an earlier process has kept of these runs: as many pictures as all of them have. */
static octet_status take_up(pass *p) {
    size_t all = p->r->sets[p->role].part.count, common = all;
    for (size_t s = 0; s < p->count; s++) {
        OCT_TRY(evidence_kept(p->r->evidence, p->sides[s].task->run, &p->sides[s].records));
        if (json_array_size(p->sides[s].records) < common) common = json_array_size(p->sides[s].records);
    }
    for (size_t s = 0; s < p->count; s++) {
        json_t *records = p->sides[s].records;
        while (json_array_size(records) > common) (void)json_array_remove(records, json_array_size(records) - 1);
        for (size_t i = 0; i < common; i++)
            if (!eval_restore(&p->sides[s].figures, json_array_get(records, i)))
                return oct_fail(OCTET_BAD_FORMAT, "%s: what run %.12s has so far is damaged", p->r->options->evidence,
                                p->sides[s].task->run);
    }
    p->at = p->kept = common;
    return OCTET_OK;
}

static octet_status measure(pass *p) {
    running *r = p->r;
    const study_part *all = &r->sets[p->role].part;
    study_subject reference = {.variant = study_find_variant(r->study, r->study->reference)};
    OCT_TRY(take_up(p));
    if (p->at == all->count) return OCTET_OK;
    OCT_TRY(running_scales(r, running_variant_index(r, r->study->reference), &reference.scales));
    p->last = seconds_now();
    const study_evaluation evaluation = {.tested = p->subjects,
                                         .tested_count = p->count,
                                         .reference = &reference,
                                         .part = {all->place, all->numbers + p->at, all->count - p->at},
                                         .threshold = r->study->threshold,
                                         .batch = r->study->batch,
                                         .picture = on_picture,
                                         .user = p};
    octet_status status = r->engine->evaluate(r->engine->user, &evaluation);
    if (p->status != OCTET_OK) return p->status;
    if (status == OCTET_OK && p->at != all->count)
        return oct_fail(OCTET_MISMATCH, "%s: expected %zu pictures, found %zu", all->place, all->count, p->at);
    return status;
}

/* ---- figures and samples */

/* A token as a sample has it: what is drawn and counted, not measured, in few digits (multiples of a power of two are
 * short in decimals): the label whole, the score to 1/1024, the box to 1/16 pixel. */
static json_t *detection_of(const json_t *token) {
    json_t *out = json_pack("[I]", (json_int_t)json_number_value(json_array_get(token, 0)));
    for (size_t i = 1; out != NULL && i < json_array_size(token); i++) {
        double steps = i == 1 ? 1024.0 : 16.0;
        json_array_append_new(out, json_float(nearbyint(json_number_value(json_array_get(token, i)) * steps) / steps));
    }
    return out;
}

/* What of a record goes into a sample: a detector's tokens only above the threshold, and no truths. */
static json_t *sample_of(const json_t *record, double threshold) {
    json_t *out = json_copy((json_t *)(uintptr_t)record), *tokens = json_object_get(record, "tokens");
    if (out == NULL || tokens == NULL) return out;
    json_t *detections = json_array();
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *token = json_array_get(tokens, i);
        if (json_number_value(json_array_get(token, 1)) > threshold)
            json_array_append_new(detections, detection_of(token));
    }
    json_object_del(out, "tokens");
    json_object_del(out, "truths");
    json_object_set_new(out, "detections", detections);
    return out;
}

static octet_status put_samples(running *r, const pass_side *side) {
    size_t count = json_array_size(side->records);
    for (size_t at = 0; at < count; at += EVIDENCE_CHUNK) {
        json_t *pictures = json_array();
        for (size_t i = at; i < count && i < at + EVIDENCE_CHUNK; i++)
            json_array_append_new(pictures, sample_of(json_array_get(side->records, i), r->study->threshold));
        OCT_TRY(evidence_add(
            r->evidence, EVIDENCE_SAMPLE,
            json_pack("{s:s, s:I, s:o}", "run", side->task->run, "at", (json_int_t)at, "pictures", pictures), NULL));
    }
    return OCTET_OK;
}

static json_t *interval_of_figure(const json_t *report, const char *name, int64_t n) {
    char key[96];
    (void)snprintf(key, sizeof key, "%s_interval", name);
    const json_t *pair = json_object_get(report, key);
    json_t *extra = json_pack("{s:I}", "n", (json_int_t)n);
    if (extra != NULL && json_array_size(pair) == 2) {
        json_object_set(extra, "low", json_array_get(pair, 0));
        json_object_set(extra, "high", json_array_get(pair, 1));
    }
    return extra;
}

/* 1 - figure, its interval turned round. */
static octet_status put_complement(running *r, const pass_side *side, const json_t *report, const char *of,
                                   const char *name) {
    const json_t *value = json_object_get(report, of);
    int64_t n = json_integer_value(json_object_get(report, "n"));
    if (value == NULL) return OCTET_OK;
    json_t *extra = interval_of_figure(report, of, n);
    const json_t *low = json_object_get(extra, "low"), *high = json_object_get(extra, "high");
    if (json_is_number(low) && json_is_number(high)) {
        double l = json_number_value(low), h = json_number_value(high);
        json_object_set_new(extra, "low", json_real(1.0 - h));
        json_object_set_new(extra, "high", json_real(1.0 - l));
    }
    /* None there and none found: nothing unmatched. */
    double complement = json_is_number(value) ? 1.0 - json_number_value(value) : 0.0;
    return running_figure(r, side->task, r->study->variants[side->task->variant].name, name, complement, extra);
}

static octet_status put_figures(running *r, const pass_side *side, const json_t *report) {
    const char *name;
    json_t *value;
    octet_status status = OCTET_OK;
    int64_t n = json_integer_value(json_object_get(report, "n"));
    json_object_foreach((json_t *)(uintptr_t)report, name, value) {
        bool number = json_is_number(value) || (json_is_null(value) && study_find_figure(name) != NULL);
        if (status == OCTET_OK && number && strcmp(name, "n") != 0)
            status = running_figure(r, side->task, r->study->variants[side->task->variant].name, name,
                                    json_is_number(value) ? json_number_value(value) : (double)NAN,
                                    interval_of_figure(report, name, n));
    }
    if (status == OCTET_OK) status = put_complement(r, side, report, "precision", "unmatched_tested");
    if (status == OCTET_OK) status = put_complement(r, side, report, "recall", "unmatched_reference");
    return status;
}

static octet_status finish_side(running *r, pass_side *side) {
    json_t *report = eval_report(&side->figures);
    if (report == NULL) return oct_fail_memory();
    octet_status status = running_begin_result(r, side->task);
    if (status == OCTET_OK) status = put_samples(r, side);
    if (status == OCTET_OK) status = put_figures(r, side, report);
    json_decref(report);
    return running_end_result(r, side->task, status);
}

/* ---- the pass */

static size_t most_records(const running *r) {
    if (r->options->pass_pictures > 0) return r->options->pass_pictures;
    return r->task == OCTET_DETECTION ? PASS_DETECTED : PASS_CLASSIFIED;
}

/* The variants of the task's set that are not done, as many as fit; a later pass takes the others. */
static octet_status gather(pass *p, const study_task *first) {
    running *r = p->r;
    p->role = first->role;
    p->sides = calloc(r->task_count, sizeof *p->sides);
    p->subjects = calloc(r->task_count, sizeof *p->subjects);
    if (p->sides == NULL || p->subjects == NULL) return oct_fail_memory();
    for (size_t i = 0; i < r->task_count; i++) {
        study_task *task = &r->tasks[i];
        if (task->kind != TASK_EVALUATE || task->role != first->role || task->done) continue;
        if (p->count > 0 && (p->count + 1) * r->sets[first->role].part.count > most_records(r)) break;
        study_subject *subject = &p->subjects[p->count];
        subject->variant = r->variants[task->variant].variant;
        OCT_TRY(running_scales(r, task->variant, &subject->scales));
        p->sides[p->count++] = (pass_side){.task = task,
                                           .figures = {.task = r->task,
                                                       .with_reference = true,
                                                       .threshold = r->study->threshold,
                                                       .draws = (size_t)r->study->draws}};
        if (task->role == ROLE_VERDICT) OCT_TRY(record_opening(r, task));
    }
    return OCTET_OK;
}

octet_status running_evaluate(running *r, study_task *task) {
    pass p = {.r = r};
    octet_status status = gather(&p, task);
    if (status == OCTET_OK) status = measure(&p);
    for (size_t s = 0; status == OCTET_OK && s < p.count; s++) status = finish_side(r, &p.sides[s]);
    for (size_t s = 0; p.sides != NULL && s < p.count; s++) {
        eval_figures_free(&p.sides[s].figures);
        json_decref(p.sides[s].records);
    }
    free(p.sides);
    free(p.subjects);
    return status;
}
