/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/keep.h"

#include <math.h>
#include <string.h>

static void put(json_t *object, const char *key, double value) {
    json_object_set_new(object, key, json_float(value));
}

static void put_int(json_t *object, const char *key, int64_t value) {
    json_object_set_new(object, key, json_integer(value));
}

static void put_bool(json_t *object, const char *key, bool value) {
    json_object_set_new(object, key, json_boolean(value));
}

static double real(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool truth(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

/* ---- classification */

static json_t *keep_classified(const eval_figures *figures) {
    const picture_figures *p = &figures->classified[figures->n - 1];
    json_t *out = json_object();
    put_int(out, "label", p->label);
    put_int(out, "best", p->best);
    put_bool(out, "top1", p->top1);
    put_bool(out, "top5", p->top5);
    put_bool(out, "finite", p->finite);
    put(out, "ce", p->cross_entropy);
    if (!figures->with_reference) return out;
    put_int(out, "rbest", p->reference_best);
    put_bool(out, "rtop1", p->reference_top1);
    put_bool(out, "rfinite", p->reference_finite);
    put(out, "rce", p->reference_cross_entropy);
    put(out, "kl", p->kl);
    return out;
}

static bool restore_classified(eval_figures *figures, const json_t *record) {
    if (!json_is_integer(json_object_get(record, "best")) || !json_is_integer(json_object_get(record, "label")))
        return false;
    const picture_figures p = {
        .label = (int32_t)json_integer_value(json_object_get(record, "label")),
        .best = (int32_t)json_integer_value(json_object_get(record, "best")),
        .reference_best = (int32_t)json_integer_value(json_object_get(record, "rbest")),
        .top1 = truth(record, "top1"),
        .top5 = truth(record, "top5"),
        .finite = truth(record, "finite"),
        .reference_top1 = truth(record, "rtop1"),
        .reference_finite = truth(record, "rfinite"),
        .cross_entropy = real(record, "ce"),
        .reference_cross_entropy = real(record, "rce"),
        .kl = real(record, "kl"),
    };
    return eval_add_classified(figures, &p);
}

/* ---- detection */

static json_t *row_of(const double *values, size_t count) {
    json_t *row = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(row, json_float(values[i]));
    return row;
}

static bool row_values(const json_t *row, double *values, size_t count) {
    if (json_array_size(row) != count) return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(row, i);
        values[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    return true;
}

static bool is_label(double value) {
    return value >= -1.0 && value <= INT32_MAX;
}

static json_t *keep_detected(const eval_figures *figures) {
    const size_t last = figures->n - 1;
    const eval_picture *p = &figures->pictures[last];
    json_t *out = json_object(), *truths = json_array(), *tokens = json_array();
    size_t from = figures->truth_count;
    while (from > 0 && figures->truths[from - 1].picture == last) from--;
    for (size_t i = from; i < figures->truth_count; i++) {
        const coco_truth *t = &figures->truths[i];
        const double row[] = {t->label, t->crowd, t->id_is_zero, t->box[0], t->box[1], t->box[2], t->box[3], t->area};
        json_array_append_new(truths, row_of(row, 8));
    }
    from = figures->detection_count;
    while (from > 0 && figures->detections[from - 1].picture == last) from--;
    for (size_t i = from; i < figures->detection_count; i++) {
        const coco_detection *d = &figures->detections[i];
        const double row[] = {d->label, d->score, d->box[0], d->box[1], d->box[2], d->box[3]};
        json_array_append_new(tokens, row_of(row, 6));
    }
    put_int(out, "image_id", p->image_id);
    put_bool(out, "finite", p->finite);
    json_object_set_new(out, "truths", truths);
    json_object_set_new(out, "tokens", tokens);
    if (!figures->with_reference) return out;
    put_bool(out, "rfinite", p->reference_finite);
    put(out, "tested", p->sums.tested);
    put(out, "wanted", p->sums.reference);
    put(out, "matched", p->sums.matched);
    put(out, "iou", p->sums.iou);
    put(out, "drift", p->sums.score_change);
    put(out, "near", p->sums.near);
    put(out, "kl", p->kl);
    return out;
}

static bool restore_truths(eval_figures *figures, const json_t *truths) {
    for (size_t i = 0; i < json_array_size(truths); i++) {
        double row[8];
        if (!row_values(json_array_get(truths, i), row, 8) || !is_label(row[0])) return false;
        coco_truth t = {.picture = figures->n,
                        .label = (int32_t)row[0],
                        .crowd = row[1] != 0.0,
                        .id_is_zero = row[2] != 0.0,
                        .area = row[7]};
        memcpy(t.box, row + 3, sizeof t.box);
        if (!eval_add_truth(figures, &t)) return false;
    }
    return true;
}

static bool restore_tokens(eval_figures *figures, const json_t *tokens) {
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        double row[6];
        if (!row_values(json_array_get(tokens, i), row, 6) || !is_label(row[0])) return false;
        coco_detection d = {.picture = figures->n, .label = (int32_t)row[0], .score = row[1]};
        memcpy(d.box, row + 2, sizeof d.box);
        if (!eval_add_detection(figures, &d)) return false;
    }
    return true;
}

static bool restore_detected(eval_figures *figures, const json_t *record) {
    const eval_picture p = {
        .image_id = json_integer_value(json_object_get(record, "image_id")),
        .finite = truth(record, "finite"),
        .reference_finite = truth(record, "rfinite"),
        .sums = {.tested = real(record, "tested"),
                 .reference = real(record, "wanted"),
                 .matched = real(record, "matched"),
                 .iou = real(record, "iou"),
                 .score_change = real(record, "drift"),
                 .near = real(record, "near")},
        .kl = real(record, "kl"),
    };
    return json_is_integer(json_object_get(record, "image_id")) &&
           restore_truths(figures, json_object_get(record, "truths")) &&
           restore_tokens(figures, json_object_get(record, "tokens")) && eval_add_detected(figures, &p);
}

/* ---- */

json_t *eval_keep(const eval_figures *figures) {
    return figures->task == OCTET_CLASSIFICATION ? keep_classified(figures) : keep_detected(figures);
}

bool eval_restore(eval_figures *figures, const json_t *record) {
    return figures->task == OCTET_CLASSIFICATION ? restore_classified(figures, record)
                                                 : restore_detected(figures, record);
}
