/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's average precision and recall for boxes, equal to pycocotools 2.0.11 to 1e-6: same matching, same order of ties
 * (a stable sort by falling score, pictures in order), same areas, same limits of 1, 10 and 100 detections a picture
 * and class, same 101 recalls. Its odd figure too: what matches an annotation with id 0 counts as wrong. */
#ifndef OCT_EVAL_COCO_H
#define OCT_EVAL_COCO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/statistics.h"

typedef struct coco_truth {
    size_t picture; /* place among the pictures in order of their COCO ids */
    int32_t label;
    bool crowd, id_is_zero;
    double box[4]; /* x, y, width, height */
    double area;   /* the annotation's, not the box's */
} coco_truth;

typedef struct coco_detection {
    size_t picture;
    int32_t label;
    double box[4];
    double score; /* finite */
} coco_detection;

/* In pycocotools' order; -1: nothing that could be found (a mean over no class). */
typedef struct coco_figures {
    double ap, ap50, ap75, ap_small, ap_medium, ap_large;
    double ar1, ar10, ar100, ar_small, ar_medium, ar_large;
} coco_figures;
#define COCO_FIGURES 12 /* doubles */

typedef struct coco_matches coco_matches;
/* Matches detections to truths, class by class and picture by picture; within a picture both keep their order. The
 * caller frees. NULL: no memory. */
coco_matches *coco_match(const coco_truth *truths, size_t truth_count, const coco_detection *detections,
                         size_t detection_count, size_t pictures);
void coco_matches_free(coco_matches *matches); /* NULL is fine */
/* False: no memory. */
bool coco_summarize(const coco_matches *matches, coco_figures *out);
/* Intervals of ap, ap50 and ap75 over pictures. A picture drawn twice counts twice. False: no memory. */
bool coco_bootstrap(const coco_matches *matches, size_t draws, uint64_t seed, figure_interval out[3]);

/* Intersection over union of boxes x, y, width, height; over the first box's area alone if `crowd`. */
double box_iou(const double box[4], const double other[4], bool crowd);

#endif
