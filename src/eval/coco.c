/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/coco.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THRESHOLDS 10
#define RECALLS 101
#define AREAS 4
#define DETECTIONS_LIMIT 100 /* of a picture and class */

/* All, small, medium, large: both ends belong to a range. */
static const double area_ranges[AREAS][2] = {{0, 1e10}, {0, 1024}, {1024, 9216}, {9216, 1e10}};

/* NumPy's linspace, rounding and all: a recall of 29/100 is not 29 * 0.01. */
static double iou_threshold(int index) {
    return index == THRESHOLDS - 1 ? 0.95 : index * ((0.95 - 0.5) / (THRESHOLDS - 1)) + 0.5;
}

static double recall_threshold(int index) {
    return index == RECALLS - 1 ? 1.0 : index * 0.01;
}

double box_iou(const double box[4], const double other[4], bool crowd) {
    double width = fmin(box[0] + box[2], other[0] + other[2]) - fmax(box[0], other[0]);
    double height = fmin(box[1] + box[3], other[1] + other[3]) - fmax(box[1], other[1]);
    if (!(width > 0) || !(height > 0)) return 0.0;
    double shared = width * height, area = box[2] * box[3];
    return shared / (crowd ? area : area + other[2] * other[3] - shared);
}

/* ---- matches */

/* A detection in one range of areas: a bit a threshold. */
typedef struct match {
    double score;
    size_t picture;
    size_t order;            /* as it came, for ties */
    uint16_t found, ignored; /* matched to a truth; not counted */
    uint16_t rank;           /* in its picture and class */
} match;

/* One class in one range. */
typedef struct curve {
    match *matches; /* by falling score */
    size_t count;
    size_t *wanted; /* pictures that have truths to find, and how many: pairs */
    size_t wanted_count, total;
} curve;

struct coco_matches {
    curve (*curves)[AREAS];
    size_t classes, pictures, longest;
};

static int by_score(const void *a, const void *b) {
    const match *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* One picture's boxes of one class. */
typedef struct cell {
    const coco_truth **truths;
    size_t truth_count;
    const coco_detection **detections; /* by falling score, at most the limit */
    size_t detection_count;
    double *ious;          /* of detection d and truth t: d * truth_count + t */
    size_t *order;         /* scratch: truths, those not ignored first */
    bool *ignored, *taken; /* scratch, by place in `order` */
} cell;

/* The best free truth for a detection at a threshold; a place in `order`, or truth_count: none. */
static size_t best_truth(const cell *c, size_t detection, double threshold) {
    size_t best = c->truth_count;
    double least = fmin(threshold, 1 - 1e-10);
    for (size_t place = 0; place < c->truth_count; place++) {
        const coco_truth *truth = c->truths[c->order[place]];
        if (c->taken[place] && !truth->crowd) continue;
        /* What counts is found already, and only ignored ones are left. */
        if (best < c->truth_count && !c->ignored[best] && c->ignored[place]) break;
        double iou = c->ious[detection * c->truth_count + c->order[place]];
        if (iou < least) continue;
        least = iou;
        best = place;
    }
    return best;
}

static void match_at(cell *c, int threshold, const double range[2], match *out) {
    memset(c->taken, 0, c->truth_count * sizeof *c->taken);
    uint16_t bit = (uint16_t)(1u << threshold);
    for (size_t d = 0; d < c->detection_count; d++) {
        const double *box = c->detections[d]->box;
        size_t place = best_truth(c, d, iou_threshold(threshold));
        bool found = false, ignored = false;
        if (place < c->truth_count) {
            found = !c->truths[c->order[place]]->id_is_zero;
            ignored = c->ignored[place];
            c->taken[place] = true;
        }
        double area = box[2] * box[3];
        if (!found && (area < range[0] || area > range[1])) ignored = true;
        if (found) out[d].found |= bit;
        if (ignored) out[d].ignored |= bit;
    }
}

/* Appends the picture's matches to the curve. */
static void match_cell(cell *c, int area, size_t picture, curve *out) {
    const double *range = area_ranges[area];
    size_t wanted = 0, at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t t = 0; t < c->truth_count; t++) {
            const coco_truth *truth = c->truths[t];
            bool ignored = truth->crowd || truth->area < range[0] || truth->area > range[1];
            if (ignored != (pass == 1)) continue;
            c->order[at] = t;
            c->ignored[at++] = ignored;
            wanted += !ignored;
        }
    }
    match *to = out->matches + out->count;
    for (size_t d = 0; d < c->detection_count; d++)
        to[d] =
            (match){.score = c->detections[d]->score, .picture = picture, .order = out->count + d, .rank = (uint16_t)d};
    for (int t = 0; t < THRESHOLDS; t++) match_at(c, t, range, to);
    out->count += c->detection_count;
    if (wanted == 0) return;
    out->wanted[2 * out->wanted_count] = picture;
    out->wanted[2 * out->wanted_count + 1] = wanted;
    out->wanted_count++;
    out->total += wanted;
}

/* ---- classes and pictures in order */

typedef struct sorted_truth {
    const coco_truth *truth;
    size_t order;
} sorted_truth;

typedef struct sorted_detection {
    const coco_detection *detection;
    size_t order;
} sorted_detection;

static int by_class_and_picture(const void *a, const void *b) {
    const sorted_truth *x = a, *y = b;
    if (x->truth->label != y->truth->label) return x->truth->label < y->truth->label ? -1 : 1;
    if (x->truth->picture != y->truth->picture) return x->truth->picture < y->truth->picture ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int by_class_picture_and_score(const void *a, const void *b) {
    const sorted_detection *x = a, *y = b;
    if (x->detection->label != y->detection->label) return x->detection->label < y->detection->label ? -1 : 1;
    if (x->detection->picture != y->detection->picture) return x->detection->picture < y->detection->picture ? -1 : 1;
    if (x->detection->score != y->detection->score) return x->detection->score > y->detection->score ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

typedef struct work {
    sorted_truth *truths;
    sorted_detection *detections;
    size_t truth_count, detection_count;
    cell cell;
} work;

static bool fill_work(work *w, const coco_truth *truths, size_t truth_count, const coco_detection *detections,
                      size_t detection_count) {
    w->truths = calloc(truth_count + 1, sizeof *w->truths);
    w->detections = calloc(detection_count + 1, sizeof *w->detections);
    w->truth_count = truth_count;
    w->detection_count = detection_count;
    if (w->truths == NULL || w->detections == NULL) return false;
    for (size_t i = 0; i < truth_count; i++) w->truths[i] = (sorted_truth){&truths[i], i};
    for (size_t i = 0; i < detection_count; i++) w->detections[i] = (sorted_detection){&detections[i], i};
    qsort(w->truths, truth_count, sizeof *w->truths, by_class_and_picture);
    qsort(w->detections, detection_count, sizeof *w->detections, by_class_picture_and_score);
    return true;
}

static void drop_cell(cell *c) {
    free(c->truths);
    free(c->detections);
    free(c->ious);
    free(c->order);
    free(c->ignored);
    free(c->taken);
    *c = (cell){0};
}

/* Room for any picture and class: `most` truths in one of them. */
static bool make_cell(cell *c, size_t most) {
    size_t room = most + 1;
    c->truths = calloc(room, sizeof *c->truths);
    c->detections = calloc(DETECTIONS_LIMIT, sizeof *c->detections);
    c->ious = calloc(room * DETECTIONS_LIMIT, sizeof *c->ious);
    c->order = calloc(room, sizeof *c->order);
    c->ignored = calloc(room, sizeof *c->ignored);
    c->taken = calloc(room, sizeof *c->taken);
    return c->truths != NULL && c->detections != NULL && c->ious != NULL && c->order != NULL && c->ignored != NULL &&
           c->taken != NULL;
}

static size_t most_truths(const work *w) {
    size_t most = 0, run = 0;
    for (size_t i = 0; i < w->truth_count; i++) {
        bool same = i > 0 && w->truths[i].truth->label == w->truths[i - 1].truth->label &&
                    w->truths[i].truth->picture == w->truths[i - 1].truth->picture;
        run = same ? run + 1 : 1;
        if (run > most) most = run;
    }
    return most;
}

/* One class: its truths and detections are runs that begin at *t and *d. */
static bool match_class(work *w, int32_t label, size_t *t, size_t *d, coco_matches *out) {
    size_t truth_end = *t, detection_end = *d;
    while (truth_end < w->truth_count && w->truths[truth_end].truth->label == label) truth_end++;
    while (detection_end < w->detection_count && w->detections[detection_end].detection->label == label)
        detection_end++;
    curve *curves = out->curves[out->classes++];
    for (int a = 0; a < AREAS; a++) {
        curves[a].matches = calloc(detection_end - *d + 1, sizeof *curves[a].matches);
        curves[a].wanted = calloc(truth_end - *t + 1, 2 * sizeof *curves[a].wanted);
        if (curves[a].matches == NULL || curves[a].wanted == NULL) return false;
    }
    cell *c = &w->cell;
    while (*t < truth_end || *d < detection_end) {
        size_t picture = SIZE_MAX;
        if (*t < truth_end) picture = w->truths[*t].truth->picture;
        if (*d < detection_end && w->detections[*d].detection->picture < picture)
            picture = w->detections[*d].detection->picture;
        c->truth_count = c->detection_count = 0;
        for (; *t < truth_end && w->truths[*t].truth->picture == picture; (*t)++)
            c->truths[c->truth_count++] = w->truths[*t].truth;
        for (; *d < detection_end && w->detections[*d].detection->picture == picture; (*d)++)
            if (c->detection_count < DETECTIONS_LIMIT)
                c->detections[c->detection_count++] = w->detections[*d].detection;
        for (size_t i = 0; i < c->detection_count; i++)
            for (size_t j = 0; j < c->truth_count; j++)
                c->ious[i * c->truth_count + j] =
                    box_iou(c->detections[i]->box, c->truths[j]->box, c->truths[j]->crowd);
        for (int a = 0; a < AREAS; a++) match_cell(c, a, picture, &curves[a]);
    }
    for (int a = 0; a < AREAS; a++) {
        qsort(curves[a].matches, curves[a].count, sizeof *curves[a].matches, by_score);
        if (curves[a].count > out->longest) out->longest = curves[a].count;
    }
    return true;
}

/* Only classes with truths have figures. */
static size_t count_classes(const work *w) {
    size_t classes = 0;
    for (size_t i = 0; i < w->truth_count; i++)
        classes += i == 0 || w->truths[i].truth->label != w->truths[i - 1].truth->label;
    return classes;
}

coco_matches *coco_match(const coco_truth *truths, size_t truth_count, const coco_detection *detections,
                         size_t detection_count, size_t pictures) {
    work w = {0};
    coco_matches *made = calloc(1, sizeof *made);
    bool good = made != NULL && fill_work(&w, truths, truth_count, detections, detection_count);
    if (good) {
        made->pictures = pictures;
        made->curves = calloc(count_classes(&w) + 1, sizeof *made->curves);
        good = made->curves != NULL && make_cell(&w.cell, most_truths(&w));
    }
    for (size_t t = 0, d = 0; good && t < truth_count;) {
        int32_t label = w.truths[t].truth->label;
        while (d < detection_count && w.detections[d].detection->label < label) d++;
        good = match_class(&w, label, &t, &d, made);
    }
    drop_cell(&w.cell);
    free(w.truths);
    free(w.detections);
    if (good) return made;
    coco_matches_free(made);
    return NULL;
}

void coco_matches_free(coco_matches *matches) {
    if (matches == NULL) return;
    for (size_t k = 0; matches->curves != NULL && k < matches->classes; k++) {
        for (int a = 0; a < AREAS; a++) {
            free(matches->curves[k][a].matches);
            free(matches->curves[k][a].wanted);
        }
    }
    free(matches->curves);
    free(matches);
}

/* ---- figures */

/* Precisions at the 101 recalls, summed, and the last recall, for one curve and threshold. */
typedef struct point {
    double precision_sum, recall;
} point;

typedef struct scratch {
    double *recalls, *precisions; /* as many as the longest curve */
} scratch;

static size_t total_wanted(const curve *c, const uint32_t *counts) {
    if (counts == NULL) return c->total;
    size_t total = 0;
    for (size_t i = 0; i < c->wanted_count; i++) total += counts[c->wanted[2 * i]] * c->wanted[2 * i + 1];
    return total;
}

static point read_curve(const curve *c, int threshold, size_t limit, size_t total, const uint32_t *counts,
                        const scratch *s) {
    double found = 0.0, wrong = 0.0;
    size_t n = 0, place = 0;
    point out = {0.0, 0.0};
    for (size_t i = 0; i < c->count; i++) {
        const match *m = &c->matches[i];
        if (m->rank >= limit) continue;
        double times = counts != NULL ? counts[m->picture] : 1.0;
        if (!(m->ignored >> threshold & 1)) {
            if (m->found >> threshold & 1)
                found += times;
            else
                wrong += times;
        }
        s->recalls[n] = found / (double)total;
        s->precisions[n++] = found / (found + wrong + 0x1p-52);
    }
    if (n == 0) return out;
    out.recall = s->recalls[n - 1];
    for (size_t i = n - 1; i > 0; i--)
        if (s->precisions[i] > s->precisions[i - 1]) s->precisions[i - 1] = s->precisions[i];
    for (int r = 0; r < RECALLS; r++) {
        while (place < n && s->recalls[place] < recall_threshold(r)) place++;
        if (place == n) break;
        out.precision_sum += s->precisions[place];
    }
    return out;
}

static bool make_scratch(const coco_matches *matches, scratch *s) {
    s->recalls = malloc((2 * matches->longest + 1) * sizeof *s->recalls);
    s->precisions = s->recalls != NULL ? s->recalls + matches->longest : NULL;
    return s->recalls != NULL;
}

/* Means over classes and thresholds of one range and limit. */
typedef struct means {
    double ap, ar, by_threshold[THRESHOLDS];
} means;

static means average(const coco_matches *matches, int area, size_t limit, const uint32_t *counts, const scratch *s) {
    means out = {-1.0, -1.0, {0}};
    double precision = 0.0, recall = 0.0;
    size_t classes = 0;
    for (size_t k = 0; k < matches->classes; k++) {
        const curve *c = &matches->curves[k][area];
        size_t total = total_wanted(c, counts);
        if (total == 0) continue;
        classes++;
        for (int t = 0; t < THRESHOLDS; t++) {
            point p = read_curve(c, t, limit, total, counts, s);
            precision += p.precision_sum;
            recall += p.recall;
            out.by_threshold[t] += p.precision_sum;
        }
    }
    for (int t = 0; t < THRESHOLDS; t++)
        out.by_threshold[t] = classes > 0 ? out.by_threshold[t] / (double)(classes * RECALLS) : -1.0;
    if (classes == 0) return out;
    out.ap = precision / (double)(classes * THRESHOLDS * RECALLS);
    out.ar = recall / (double)(classes * THRESHOLDS);
    return out;
}

bool coco_summarize(const coco_matches *matches, coco_figures *out) {
    scratch s;
    if (!make_scratch(matches, &s)) return false;
    means all = average(matches, 0, 100, NULL, &s), small = average(matches, 1, 100, NULL, &s);
    means medium = average(matches, 2, 100, NULL, &s), large = average(matches, 3, 100, NULL, &s);
    *out = (coco_figures){.ap = all.ap,
                          .ap50 = all.by_threshold[0],
                          .ap75 = all.by_threshold[5],
                          .ap_small = small.ap,
                          .ap_medium = medium.ap,
                          .ap_large = large.ap,
                          .ar1 = average(matches, 0, 1, NULL, &s).ar,
                          .ar10 = average(matches, 0, 10, NULL, &s).ar,
                          .ar100 = all.ar,
                          .ar_small = small.ar,
                          .ar_medium = medium.ar,
                          .ar_large = large.ar};
    free(s.recalls);
    return true;
}

bool coco_bootstrap(const coco_matches *matches, size_t draws, uint64_t seed, figure_interval out[3]) {
    scratch s;
    double *values = malloc((3 * draws + 1) * sizeof *values);
    uint32_t *counts = malloc((matches->pictures + 1) * sizeof *counts);
    bool good = make_scratch(matches, &s) && values != NULL && counts != NULL;
    for (size_t draw = 0; good && draw < draws; draw++) {
        draw_pictures(&seed, matches->pictures, counts);
        means drawn = average(matches, 0, 100, counts, &s);
        values[draw] = drawn.ap >= 0 ? drawn.ap : NAN;
        values[draws + draw] = drawn.ap >= 0 ? drawn.by_threshold[0] : NAN;
        values[2 * draws + draw] = drawn.ap >= 0 ? drawn.by_threshold[5] : NAN;
    }
    for (size_t i = 0; good && i < 3; i++) out[i] = interval_of(values + i * draws, draws);
    free(counts);
    free(values);
    free(s.recalls);
    return good;
}
