/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/attribute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE, WEIGHTS, ACTIVATIONS, FIRST_GROUP };

/* ---- one engine */

typedef struct measuring {
    attribution *a;
    size_t engine;
} measuring;

static size_t engines_of(const attribution *a) {
    return FIRST_GROUP + 2 * json_object_size(a->groups);
}

static bool after_picture(void *user, size_t done) {
    const measuring *m = user;
    const attribution *a = m->a;
    return a->tick == NULL || a->tick(a->user, m->engine, engines_of(a) + 1, done);
}

static evaluate_end open_engine(attribution *a, const char *text, octet_model **model, octet_session **session) {
    if (text == NULL) return EVALUATE_NO_MEMORY;
    if (octet_lab_open_recipe(a->place, a->open, a->recipe->name, text, model) == OCTET_OK &&
        octet_session_new(*model, a->session, session) == OCTET_OK)
        return EVALUATE_DONE;
    return EVALUATE_FAILED;
}

/* Takes over `text`: of a variant; its KL a picture into the next row. */
static evaluate_end measure(attribution *a, const char *what, char *text) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    measuring m = {a, a->engines};
    eval_figures figures = {.task = a->pictures->task, .with_reference = true, .threshold = 0.5};
    evaluate_end end = open_engine(a, text, &model, &session);
    if (end == EVALUATE_DONE) end = beside_measure(a->pictures, session, after_picture, &m, &figures);
    double *row = a->kl + a->engines * a->pictures->count;
    for (size_t i = 0; end == EVALUATE_DONE && i < a->pictures->count; i++) row[i] = beside_kl(&figures, i);
    if (end == EVALUATE_DONE) a->engines++;
    if (end == EVALUATE_FAILED)
        snprintf(a->failed, sizeof a->failed, "%s%s%s", what, a->pictures->failed[0] ? ", " : "", a->pictures->failed);
    eval_figures_free(&figures);
    octet_session_free(&session);
    octet_model_close(&model);
    free(text);
    return end;
}

/* ---- variants */

static json_t *names_where(const attribution *a, bool (*taken)(const json_t *op)) {
    json_t *names = json_array(), *op;
    size_t i;
    json_array_foreach(a->recipe->ops, i, op) {
        if (taken(op)) json_array_append(names, json_object_get(op, "op"));
    }
    return names;
}

static bool narrow_and_weighs(const json_t *op) {
    return variant_op_narrow(op) && variant_op_weighs(op);
}

static evaluate_end measure_without(attribution *a, const char *what, variant_change change, json_t *names) {
    const evaluate_end end = measure(a, what, variant_without(a->recipe, change, names));
    json_decref(names);
    return end;
}

/* Ops of all groups but one. */
static json_t *names_of_others(const attribution *a, const char *group) {
    json_t *names = json_array(), *list;
    const char *key;
    json_object_foreach(a->groups, key, list) {
        if (strcmp(key, group) != 0) json_array_extend(names, list);
    }
    return names;
}

static evaluate_end measure_all(attribution *a) {
    evaluate_end end = measure_without(a, "whole", VARIANT_KEEP, json_array());
    const char *key;
    json_t *list;
    if (end == EVALUATE_DONE)
        end = measure_without(a, "weights only", VARIANT_NO_ACTIVATIONS, names_where(a, variant_op_narrow));
    if (end == EVALUATE_DONE)
        end = measure_without(a, "activations only", VARIANT_NO_WEIGHTS, names_where(a, narrow_and_weighs));
    json_object_foreach(a->groups, key, list) {
        char what[256];
        snprintf(what, sizeof what, "%.200s alone", key);
        if (end == EVALUATE_DONE) end = measure_without(a, what, VARIANT_KEEP, names_of_others(a, key));
        snprintf(what, sizeof what, "all but %.200s", key);
        if (end == EVALUATE_DONE) end = measure_without(a, what, VARIANT_KEEP, json_incref(list));
    }
    return end;
}

/* ---- taps: each step's output beside float32's */

typedef struct tapped {
    char *name;
    float *numbers;
    size_t count;
} tapped;

typedef struct tap {
    attribution *a;
    bool is_reference, failed;
    tapped *steps; /* of the reference, of one picture */
    size_t count, capacity, at, picture;
} tap;

static size_t event_count(const octet_lab_event *event) {
    size_t count = 1;
    for (int i = 0; i < event->rank && i < 4; i++) count *= (size_t)event->shape[i];
    return count;
}

/* A step's event, none of decoding or of results. */
static bool is_step(const octet_lab_event *event) {
    return event->data != NULL && strcmp(event->format, "uint8") != 0 && strcmp(event->room, "image") != 0 &&
           strcmp(event->room, "runtime") != 0;
}

static void keep_step(tap *t, const octet_lab_event *event) {
    if (t->count == t->capacity) {
        const size_t wanted = t->capacity < 64 ? 64 : t->capacity * 2;
        tapped *grown = realloc(t->steps, wanted * sizeof *grown);
        t->failed = t->failed || grown == NULL;
        if (grown == NULL) return;
        t->steps = grown;
        t->capacity = wanted;
    }
    tapped made = {.name = strdup(event->what), .count = event_count(event)};
    made.numbers = malloc(made.count * sizeof *made.numbers + 1);
    t->steps[t->count++] = made;
    t->failed = t->failed || made.name == NULL || made.numbers == NULL;
    if (!t->failed) memcpy(made.numbers, event->data, made.count * sizeof *made.numbers);
}

static void drop_steps(tap *t) {
    for (size_t i = 0; i < t->count; i++) {
        free(t->steps[i].name);
        free(t->steps[i].numbers);
    }
    t->count = 0;
}

/* The row of a step of the tested engine; NULL: no memory. Steps come in one order for every picture. */
static attribute_step *step_of(tap *t, const char *name) {
    attribution *a = t->a;
    if (t->at < a->step_count && strcmp(a->steps[t->at].name, name) == 0) return &a->steps[t->at++];
    for (size_t i = 0; i < a->step_count; i++)
        if (strcmp(a->steps[i].name, name) == 0) return &a->steps[i];
    attribute_step *grown = realloc(a->steps, (a->step_count + 1) * sizeof *grown);
    if (grown == NULL) return NULL;
    a->steps = grown;
    attribute_step *made = &a->steps[a->step_count++];
    made->name = strdup(name);
    made->noise = calloc(a->pictures->count, sizeof(double));
    made->signal = calloc(a->pictures->count, sizeof(double));
    t->at = a->step_count;
    return made->name != NULL && made->noise != NULL && made->signal != NULL ? made : NULL;
}

static void compare_step(tap *t, const octet_lab_event *event) {
    const float *tested = event->data;
    const tapped *other = NULL;
    for (size_t i = 0; other == NULL && i < t->count; i++)
        if (strcmp(t->steps[i].name, event->what) == 0 && t->steps[i].count == event_count(event)) other = &t->steps[i];
    if (other == NULL) {
        t->a->unmatched += t->picture == 0;
        return;
    }
    attribute_step *step = step_of(t, event->what);
    t->failed = t->failed || step == NULL;
    for (size_t i = 0; step != NULL && i < other->count; i++) {
        const double r = (double)other->numbers[i], d = (double)tested[i] - r;
        step->noise[t->picture] += d * d;
        step->signal[t->picture] += r * r;
    }
}

static void on_event(void *user, const octet_lab_event *event) {
    tap *t = user;
    if (t->failed || !is_step(event)) return;
    if (t->is_reference)
        keep_step(t, event);
    else
        compare_step(t, event);
}

static evaluate_end run_tapped(tap *t, octet_session *session, bool is_reference) {
    const octet_lab_sample *sample = t->a->pictures->samples[t->picture];
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    octet_result *result = NULL;
    picture.kind = OCTET_PICTURE_MEMORY;
    picture.data = sample->data;
    picture.size = sample->size;
    t->is_reference = is_reference;
    t->at = 0;
    octet_lab_set_watch(on_event, t, 1);
    const octet_status status = octet_session_run(session, &picture, 1, &result);
    octet_lab_set_watch(NULL, NULL, 0);
    octet_result_free(&result);
    if (status == OCTET_OK) return t->failed ? EVALUATE_NO_MEMORY : EVALUATE_DONE;
    snprintf(t->a->failed, sizeof t->a->failed, "steps, %s", sample->name);
    return EVALUATE_FAILED;
}

static evaluate_end tap_steps(attribution *a) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    json_t *none = json_array();
    char *text = variant_without(a->recipe, VARIANT_KEEP, none);
    measuring m = {a, a->engines};
    tap t = {.a = a};
    evaluate_end end = open_engine(a, text, &model, &session);
    for (; end == EVALUATE_DONE && t.picture < a->pictures->count; t.picture++) {
        end = run_tapped(&t, a->reference, true);
        if (end == EVALUATE_DONE) end = run_tapped(&t, session, false);
        drop_steps(&t);
        if (end == EVALUATE_DONE && !after_picture(&m, t.picture + 1)) end = EVALUATE_STOPPED;
    }
    free(t.steps);
    octet_session_free(&session);
    octet_model_close(&model);
    free(text);
    json_decref(none);
    return end;
}

/* ---- */

evaluate_end attribute(attribution *a) {
    a->failed[0] = '\0';
    a->groups = variant_groups(a->recipe->ops, a->group, variant_op_narrow);
    a->kl = calloc(engines_of(a) * a->pictures->count + 1, sizeof *a->kl);
    if (a->groups == NULL || a->kl == NULL) return EVALUATE_NO_MEMORY;
    const evaluate_end end = measure_all(a);
    return end == EVALUATE_DONE ? tap_steps(a) : end;
}

void attribute_free(attribution *a) {
    for (size_t i = 0; i < a->step_count; i++) {
        free(a->steps[i].name);
        free(a->steps[i].noise);
        free(a->steps[i].signal);
    }
    free(a->steps);
    free(a->kl);
    json_decref(a->groups);
    a->steps = NULL;
    a->kl = NULL;
    a->groups = NULL;
    a->step_count = a->engines = a->unmatched = 0;
}

/* ---- report */

static double mean_of(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

/* The columns of the report: every engine's KL, then for each group the whole's less the KL without it. */
typedef struct columns {
    size_t count, pictures;
    const double **values, **none; /* none: no denominators, means */
    double *recovered;
    figure_interval *intervals;
} columns;

static void columns_free(columns *c) {
    free(c->values);
    free(c->none);
    free(c->recovered);
    free(c->intervals);
}

static bool columns_make(const attribution *a, columns *c) {
    const size_t groups = json_object_size(a->groups), n = a->pictures->count;
    *c = (columns){.count = a->engines + groups, .pictures = n};
    c->values = calloc(c->count, sizeof *c->values);
    c->none = calloc(c->count, sizeof *c->none);
    c->recovered = calloc(groups * n + 1, sizeof *c->recovered);
    c->intervals = calloc(c->count, sizeof *c->intervals);
    if (c->values == NULL || c->none == NULL || c->recovered == NULL || c->intervals == NULL) return false;
    for (size_t e = 0; e < a->engines; e++) c->values[e] = a->kl + e * n;
    for (size_t g = 0; g < groups; g++) {
        const double *kept = a->kl + (FIRST_GROUP + 2 * g + 1) * n;
        for (size_t i = 0; i < n; i++) c->recovered[g * n + i] = a->kl[i] - kept[i];
        c->values[a->engines + g] = c->recovered + g * n;
    }
    for (size_t i = 0; i < c->count; i++) c->intervals[i] = (figure_interval){NAN, NAN};
    return a->draws == 0 || bootstrap_ratios(c->values, c->none, c->count, n, a->draws, EVAL_SEED, c->intervals);
}

static json_t *figure(const columns *c, size_t column) {
    return json_pack("{s:o, s:o, s:o}", "kl", json_float(mean_of(c->values[column], c->pictures)), "low",
                     json_float(c->intervals[column].low), "high", json_float(c->intervals[column].high));
}

typedef struct ranked {
    size_t group;
    double alone;
} ranked;

static int by_loss(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->alone != y->alone) return x->alone > y->alone ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static json_t *report_groups(const attribution *a, const columns *c) {
    const size_t count = json_object_size(a->groups);
    const double whole = mean_of(c->values[WHOLE], c->pictures);
    ranked *order = calloc(count + 1, sizeof *order);
    json_t *out = json_array(), *list, *made = json_array();
    const char *key;
    size_t g = 0;
    json_object_foreach(a->groups, key, list) {
        const double recovered = mean_of(c->values[a->engines + g], c->pictures);
        json_array_append_new(made, json_pack("{s:s, s:O, s:o, s:o, s:o, s:o}", "group", key, "ops", list, "alone",
                                              figure(c, FIRST_GROUP + 2 * g), "kept",
                                              figure(c, FIRST_GROUP + 2 * g + 1), "recovered",
                                              figure(c, a->engines + g), "share", json_float(recovered / whole)));
        if (order != NULL) order[g] = (ranked){g, mean_of(c->values[FIRST_GROUP + 2 * g], c->pictures)};
        g++;
    }
    if (order != NULL) qsort(order, count, sizeof *order, by_loss);
    for (size_t i = 0; order != NULL && i < count; i++) json_array_append(out, json_array_get(made, order[i].group));
    json_decref(made);
    free(order);
    return out;
}

static double decibels(double ratio) {
    return -10.0 * log10(ratio);
}

static json_t *report_steps(const attribution *a) {
    json_t *out = json_array();
    for (size_t s = 0; s < a->step_count; s++) {
        const attribute_step *step = &a->steps[s];
        const double *over = step->noise, *under = step->signal;
        const size_t n = a->pictures->count;
        const double ratio = mean_of(over, n) / mean_of(under, n);
        figure_interval interval = {NAN, NAN};
        if (a->draws > 0 && !bootstrap_ratios(&over, &under, 1, n, a->draws, EVAL_SEED, &interval)) continue;
        json_t *line = json_pack("{s:o, s:o, s:o}", "step", json_text(step->name), "sqnr_db",
                                 json_float(decibels(ratio)), "relative_error", json_float(sqrt(ratio)));
        if (!isnan(interval.low))
            json_object_set_new(
                line, "sqnr_interval",
                json_pack("[o, o]", json_float(decibels(interval.high)), json_float(decibels(interval.low))));
        json_array_append_new(out, line);
    }
    return out;
}

json_t *attribute_report(const attribution *a) {
    columns c;
    json_t *out = NULL;
    if (columns_make(a, &c))
        out = json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "whole", figure(&c, WHOLE), "weights", figure(&c, WEIGHTS),
                        "activations", figure(&c, ACTIVATIONS), "groups", report_groups(a, &c), "steps",
                        report_steps(a), "unmatched_steps", (json_int_t)a->unmatched);
    columns_free(&c);
    return out;
}
