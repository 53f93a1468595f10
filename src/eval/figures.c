/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool room(void **array, size_t element, size_t needed, size_t *capacity) {
    if (needed <= *capacity) return true;
    size_t wanted = *capacity < 64 ? 64 : *capacity * 2;
    while (wanted < needed) wanted *= 2;
    void *grown = realloc(*array, wanted * element);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

void eval_figures_free(eval_figures *figures) {
    free(figures->classified);
    free(figures->pictures);
    free(figures->truths);
    free(figures->detections);
}

static void put(json_t *object, const char *key, double value) {
    json_object_set_new(object, key, json_float(value));
}

static void put_int(json_t *object, const char *key, int64_t value) {
    json_object_set_new(object, key, json_integer(value));
}

static void put_interval(json_t *object, const char *key, const figure_interval *value) {
    if (isnan(value->low)) return;
    json_t *pair = json_array();
    json_array_append_new(pair, json_float(value->low));
    json_array_append_new(pair, json_float(value->high));
    json_object_set_new(object, key, pair);
}

/* ---- one picture */

static bool add_classified(eval_figures *figures, const octet_lab_sample *sample, const octet_result *result,
                           const octet_result *reference, json_t **line) {
    size_t rows, classes;
    const float *other = reference != NULL ? octet_result_logits(reference, &rows, &classes) : NULL;
    const float *logits = octet_result_logits(result, &rows, &classes);
    if (!room((void **)&figures->classified, sizeof *figures->classified, figures->n + 1,
              &figures->classified_capacity))
        return false;
    picture_figures *p = &figures->classified[figures->n++];
    classify_picture(logits, other, classes, sample->label, p);
    if (line == NULL) return true;
    *line = json_pack("{s:o, s:i, s:i, s:b, s:b}", "name", json_text(sample->name), "label", (int)p->label, "best",
                      (int)p->best, "top1", p->top1, "top5", p->top5);
    put(*line, "cross_entropy", p->cross_entropy);
    if (other == NULL) return *line != NULL;
    put_int(*line, "reference_best", p->reference_best);
    json_object_set_new(*line, "changed", json_boolean(p->best != p->reference_best || !p->finite));
    put(*line, "kl", p->kl);
    return *line != NULL;
}

/* Detections above a threshold, the caller's to free; NULL: no memory. */
static octet_detection *list_detections(const octet_result *result, float threshold, size_t *count) {
    *count = octet_result_detections(result, threshold, NULL, 0);
    octet_detection *list = calloc(*count + 1, sizeof *list);
    if (list != NULL) octet_result_detections(result, threshold, list, *count);
    return list;
}

static void corners_to_size(const float corners[4], double box[4]) {
    box[0] = (double)corners[0];
    box[1] = (double)corners[1];
    box[2] = (double)corners[2] - box[0];
    box[3] = (double)corners[3] - box[1];
}

/* For average precision: every token, its best class, whatever the score; what is not a number is left out. */
static bool add_detections(eval_figures *figures, const octet_result *result) {
    size_t count;
    octet_detection *list = list_detections(result, -1.0f, &count);
    bool good = list != NULL && room((void **)&figures->detections, sizeof *figures->detections,
                                     figures->detection_count + count, &figures->detection_capacity);
    for (size_t i = 0; good && i < count; i++) {
        coco_detection made = {.picture = figures->n, .label = list[i].index, .score = (double)list[i].score};
        corners_to_size(list[i].box, made.box);
        bool finite = isfinite(made.score);
        for (int k = 0; k < 4; k++) finite = finite && isfinite(made.box[k]);
        if (finite) figures->detections[figures->detection_count++] = made;
    }
    free(list);
    return good;
}

static bool add_truths(eval_figures *figures, const octet_lab_sample *sample) {
    if (!room((void **)&figures->truths, sizeof *figures->truths, figures->truth_count + sample->truth_count + 1,
              &figures->truth_capacity))
        return false;
    for (size_t i = 0; i < sample->truth_count; i++) {
        const octet_lab_truth *from = &sample->truths[i];
        coco_truth *to = &figures->truths[figures->truth_count++];
        *to = (coco_truth){.picture = figures->n,
                           .label = from->label,
                           .crowd = from->crowd != 0,
                           .id_is_zero = from->id == 0,
                           .area = from->area};
        memcpy(to->box, from->box, sizeof to->box);
    }
    return true;
}

bool eval_add_picture(eval_figures *figures, const octet_lab_sample *sample) {
    if (!room((void **)&figures->pictures, sizeof *figures->pictures, figures->n + 1, &figures->picture_capacity) ||
        !add_truths(figures, sample))
        return false;
    figures->pictures[figures->n++] =
        (eval_picture){.image_id = sample->image_id, .finite = true, .reference_finite = true};
    return true;
}

bool eval_add_detection(eval_figures *figures, const coco_detection *detection) {
    if (!room((void **)&figures->detections, sizeof *figures->detections, figures->detection_count + 1,
              &figures->detection_capacity))
        return false;
    figures->detections[figures->detection_count++] = *detection;
    return true;
}

bool eval_add_truth(eval_figures *figures, const coco_truth *truth) {
    if (!room((void **)&figures->truths, sizeof *figures->truths, figures->truth_count + 1, &figures->truth_capacity))
        return false;
    figures->truths[figures->truth_count++] = *truth;
    return true;
}

bool eval_add_detected(eval_figures *figures, const eval_picture *picture) {
    if (!room((void **)&figures->pictures, sizeof *figures->pictures, figures->n + 1, &figures->picture_capacity))
        return false;
    figures->pictures[figures->n++] = *picture;
    return true;
}

bool eval_add_classified(eval_figures *figures, const picture_figures *picture) {
    if (!room((void **)&figures->classified, sizeof *figures->classified, figures->n + 1,
              &figures->classified_capacity))
        return false;
    figures->classified[figures->n++] = *picture;
    return true;
}

static bool all_finite(const octet_result *result) {
    size_t rows, columns;
    const float *logits = octet_result_logits(result, &rows, &columns);
    for (size_t i = 0; i < rows * columns; i++)
        if (!isfinite(logits[i])) return false;
    const float *boxes = octet_result_boxes(result, &rows);
    for (size_t i = 0; boxes != NULL && i < rows * 4; i++)
        if (!isfinite(boxes[i])) return false;
    return true;
}

static agree_box *boxes_above(const octet_result *result, double threshold, size_t *count) {
    octet_detection *list = list_detections(result, (float)threshold, count);
    agree_box *boxes = calloc(*count + 1, sizeof *boxes);
    for (size_t i = 0; list != NULL && boxes != NULL && i < *count; i++) {
        boxes[i].label = list[i].index;
        boxes[i].score = (double)list[i].score;
        corners_to_size(list[i].box, boxes[i].box);
    }
    if (list == NULL) {
        free(boxes);
        boxes = NULL;
    }
    free(list);
    return boxes;
}

static bool compare_detections(const eval_figures *figures, const octet_result *result, const octet_result *reference,
                               eval_picture *out) {
    size_t tested_count, reference_count, rows, columns;
    agree_box *tested = boxes_above(result, figures->threshold, &tested_count);
    agree_box *other = boxes_above(reference, figures->threshold, &reference_count);
    const float *p = octet_result_logits(reference, &rows, &columns), *q = octet_result_logits(result, &rows, &columns);
    double *scratch = malloc(2 * columns * sizeof *scratch);
    bool good = tested != NULL && other != NULL && scratch != NULL &&
                agree_picture(tested, tested_count, other, reference_count, figures->threshold, &out->sums);
    out->reference_finite = all_finite(reference);
    for (size_t i = 0; good && i < rows; i++)
        out->kl += kl_divergence(p + i * columns, q + i * columns, columns, scratch) / (double)rows;
    free(scratch);
    free(other);
    free(tested);
    return good;
}

/* Above the threshold, as `octet run --json` says them. */
static json_t *detections_json(const eval_figures *figures, const octet_result *result) {
    size_t count;
    octet_detection *list = list_detections(result, (float)figures->threshold, &count);
    json_t *all = json_array();
    for (size_t i = 0; list != NULL && i < count; i++) {
        json_t *box = json_array(), *one = json_object();
        for (int k = 0; k < 4; k++) json_array_append_new(box, json_float((double)list[i].box[k]));
        put_int(one, "index", list[i].index);
        json_object_set_new(one, "label", json_text(list[i].label));
        put(one, "score", (double)list[i].score);
        json_object_set_new(one, "box", box);
        json_array_append_new(all, one);
    }
    free(list);
    return all;
}

static bool add_detected(eval_figures *figures, const octet_lab_sample *sample, const octet_result *result,
                         const octet_result *reference, json_t **line) {
    if (!room((void **)&figures->pictures, sizeof *figures->pictures, figures->n + 1, &figures->picture_capacity) ||
        !add_truths(figures, sample) || !add_detections(figures, result))
        return false;
    eval_picture *p = &figures->pictures[figures->n];
    *p = (eval_picture){.image_id = sample->image_id, .finite = all_finite(result)};
    if (reference != NULL && !compare_detections(figures, result, reference, p)) return false;
    figures->n++;
    if (line == NULL) return true;
    *line = json_pack("{s:o, s:I, s:I, s:b}", "name", json_text(sample->name), "image_id", (json_int_t)p->image_id,
                      "truths", (json_int_t)sample->truth_count, "finite", p->finite);
    if (*line == NULL) return false;
    json_object_set_new(*line, "detections", detections_json(figures, result));
    if (reference == NULL) return true;
    put_int(*line, "reference_detections", (int64_t)p->sums.reference);
    put_int(*line, "matched", (int64_t)p->sums.matched);
    put(*line, "kl", p->kl);
    return true;
}

bool eval_add(eval_figures *figures, const octet_lab_sample *sample, const octet_result *result,
              const octet_result *reference, json_t **line) {
    return figures->task == OCTET_CLASSIFICATION ? add_classified(figures, sample, result, reference, line)
                                                 : add_detected(figures, sample, result, reference, line);
}

/* ---- classification's figures */

static json_t *report_classification(const eval_figures *figures) {
    classification_figures f;
    if (!classification(figures->classified, figures->n, figures->with_reference, figures->draws, EVAL_SEED, &f))
        return NULL;
    json_t *out = json_object();
    json_object_set_new(out, "task", json_string("classification"));
    put_int(out, "n", (int64_t)f.n);
    put(out, "top1", f.top1);
    put(out, "top5", f.top5);
    if (figures->with_reference) {
        put(out, "agreement", f.agreement);
        put(out, "kl", f.kl);
        put(out, "kl_se", f.kl_se);
        put(out, "kl_p95", f.kl_p95);
        put(out, "kl_p99", f.kl_p99);
        put(out, "reference_top1", f.reference_top1);
        put(out, "top1_change", f.top1 - f.reference_top1);
        put(out, "cross_entropy_change", f.cross_entropy_change);
        put(out, "cross_entropy_change_se", f.cross_entropy_change_se);
        put(out, "mcnemar_p", f.mcnemar_p);
        put_int(out, "changed", (int64_t)f.changed);
        put_int(out, "gained", (int64_t)f.gained);
        put_int(out, "lost", (int64_t)f.lost);
        put_int(out, "reference_nonfinite", (int64_t)f.reference_nonfinite);
        put_interval(out, "agreement_interval", &f.agreement_interval);
        put_interval(out, "kl_interval", &f.kl_interval);
        put_interval(out, "top1_change_interval", &f.top1_change_interval);
        put_interval(out, "cross_entropy_change_interval", &f.cross_entropy_change_interval);
    }
    put(out, "cross_entropy", f.cross_entropy);
    put_int(out, "nonfinite", (int64_t)f.nonfinite);
    put_interval(out, "top1_interval", &f.top1_interval);
    put_interval(out, "top5_interval", &f.top5_interval);
    return out;
}

/* ---- detection's figures */

typedef struct place {
    int64_t image_id;
    size_t index;
} place;

static int by_image_id(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->image_id != y->image_id) return x->image_id < y->image_id ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Pictures take their places in order of COCO's ids, which decides ties as pycocotools does. */
static bool order_pictures(eval_figures *figures) {
    place *places = calloc(figures->n, sizeof *places);
    size_t *ranks = calloc(figures->n, sizeof *ranks);
    bool good = places != NULL && ranks != NULL;
    for (size_t i = 0; good && i < figures->n; i++) places[i] = (place){figures->pictures[i].image_id, i};
    if (good) qsort(places, figures->n, sizeof *places, by_image_id);
    for (size_t i = 0; good && i < figures->n; i++) ranks[places[i].index] = i;
    for (size_t i = 0; good && i < figures->truth_count; i++)
        figures->truths[i].picture = ranks[figures->truths[i].picture];
    for (size_t i = 0; good && i < figures->detection_count; i++)
        figures->detections[i].picture = ranks[figures->detections[i].picture];
    free(ranks);
    free(places);
    return good;
}

static bool measure_coco(const eval_figures *figures, coco_figures *out, figure_interval ranges[3]) {
    for (int i = 0; i < 3; i++) ranges[i] = (figure_interval){NAN, NAN};
    coco_matches *matches =
        coco_match(figures->truths, figures->truth_count, figures->detections, figures->detection_count, figures->n);
    bool good = matches != NULL && coco_summarize(matches, out) &&
                (figures->draws == 0 || coco_bootstrap(matches, figures->draws, EVAL_SEED, ranges));
    coco_matches_free(matches);
    return good;
}

/* A ratio a column: over, under. */
enum { PRECISION, RECALL, IOU, DRIFT, KL, AGREEMENTS };
static const char *const agreement_names[AGREEMENTS] = {"precision", "recall", "matched_iou", "score_drift", "kl"};

typedef struct agreements {
    double values[AGREEMENTS], kl_se;
    figure_interval ranges[AGREEMENTS];
    agree_sums all;
    size_t reference_nonfinite;
} agreements;

static bool measure_agreement(const eval_figures *figures, agreements *out) {
    size_t n = figures->n;
    double *block = calloc(6 * n, sizeof *block);
    if (block == NULL) return false;
    double *matched = block, *tested = block + n, *wanted = block + 2 * n, *iou = block + 3 * n, *drift = block + 4 * n;
    double *kl = block + 5 * n;
    const double *const over[AGREEMENTS] = {matched, matched, iou, drift, kl};
    const double *const under[AGREEMENTS] = {tested, wanted, matched, matched, NULL};
    *out = (agreements){0};
    double kl_sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const eval_picture *p = &figures->pictures[i];
        out->all.matched += matched[i] = p->sums.matched;
        out->all.tested += tested[i] = p->sums.tested;
        out->all.reference += wanted[i] = p->sums.reference;
        out->all.iou += iou[i] = p->sums.iou;
        out->all.score_change += drift[i] = p->sums.score_change;
        out->all.near += p->sums.near;
        kl_sum += kl[i] = p->kl;
        out->reference_nonfinite += !p->reference_finite;
    }
    out->values[PRECISION] = out->all.matched / out->all.tested;
    out->values[RECALL] = out->all.matched / out->all.reference;
    out->values[IOU] = out->all.iou / out->all.matched;
    out->values[DRIFT] = out->all.score_change / out->all.matched;
    out->values[KL] = kl_sum / (double)n;
    out->kl_se = standard_error(kl, n);
    for (int i = 0; i < AGREEMENTS; i++) out->ranges[i] = (figure_interval){NAN, NAN};
    bool good =
        figures->draws == 0 || bootstrap_ratios(over, under, AGREEMENTS, n, figures->draws, EVAL_SEED, out->ranges);
    free(block);
    return good;
}

static const char *const coco_names[COCO_FIGURES] = {"ap",  "ap50", "ap75",  "ap_small", "ap_medium", "ap_large",
                                                     "ar1", "ar10", "ar100", "ar_small", "ar_medium", "ar_large"};

static void report_coco(json_t *out, const double *values, const figure_interval ranges[3]) {
    for (int i = 0; i < COCO_FIGURES; i++) {
        double value = values[i] >= 0.0 ? values[i] : NAN; /* nothing to find is no quality of -1 */
        put(out, coco_names[i], value);
    }
    put_interval(out, "ap_interval", &ranges[0]);
    put_interval(out, "ap50_interval", &ranges[1]);
    put_interval(out, "ap75_interval", &ranges[2]);
}

static void report_agreement(json_t *out, const agreements *a) {
    for (int i = 0; i < AGREEMENTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_interval", agreement_names[i]);
        put(out, agreement_names[i], a->values[i]);
        put_interval(out, key, &a->ranges[i]);
    }
    put(out, "kl_se", a->kl_se);
    put_int(out, "tested_detections", (int64_t)a->all.tested);
    put_int(out, "reference_detections", (int64_t)a->all.reference);
    put_int(out, "matched_detections", (int64_t)a->all.matched);
    put_int(out, "unmatched_near_threshold", (int64_t)a->all.near);
    put_int(out, "reference_nonfinite", (int64_t)a->reference_nonfinite);
}

static json_t *report_detection(eval_figures *figures) {
    coco_figures coco;
    figure_interval ranges[3];
    agreements agreement;
    double values[COCO_FIGURES];
    size_t nonfinite = 0;
    if (!order_pictures(figures) || !measure_coco(figures, &coco, ranges)) return NULL;
    if (figures->with_reference && !measure_agreement(figures, &agreement)) return NULL;
    memcpy(values, &coco, sizeof values);
    for (size_t i = 0; i < figures->n; i++) nonfinite += !figures->pictures[i].finite;
    json_t *out = json_object();
    json_object_set_new(out, "task", json_string("detection"));
    put_int(out, "n", (int64_t)figures->n);
    report_coco(out, values, ranges);
    put_int(out, "truths", (int64_t)figures->truth_count);
    put_int(out, "nonfinite", (int64_t)nonfinite);
    if (figures->with_reference) {
        put(out, "threshold", figures->threshold);
        report_agreement(out, &agreement);
    }
    return out;
}

json_t *eval_report(eval_figures *figures) {
    return figures->task == OCTET_CLASSIFICATION ? report_classification(figures) : report_detection(figures);
}
