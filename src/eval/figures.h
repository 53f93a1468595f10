/* SPDX-License-Identifier: Apache-2.0 */
/* Quality of a model on a set: what is kept of each picture, and the figures made of it at the end. */
#ifndef OCT_EVAL_FIGURES_H
#define OCT_EVAL_FIGURES_H

#include "eval/agree.h"
#include "eval/classify.h"
#include "eval/coco.h"
#include "octet/lab.h"
#include "eval/json.h"

#define EVAL_SEED 1

/* What a picture of a detection set leaves. */
typedef struct eval_picture {
    int64_t image_id;
    agree_sums sums;
    double kl; /* mean over tokens */
    bool finite, reference_finite;
} eval_picture;

typedef struct eval_figures {
    octet_task task;
    bool with_reference;
    double threshold;
    size_t draws;
    size_t n;
    picture_figures *classified; /* classification: n */
    size_t classified_capacity;
    eval_picture *pictures; /* detection: n */
    size_t picture_capacity;
    coco_truth *truths; /* `picture` is the place in `pictures` until the end */
    size_t truth_count, truth_capacity;
    coco_detection *detections;
    size_t detection_count, detection_capacity;
} eval_figures;

/* Takes a picture in; `reference` NULL: none. *line is its line of --samples (a JSON object to json_decref), if wanted.
 * False: no memory. */
bool eval_add(eval_figures *figures, const octet_lab_sample *sample, const octet_result *result,
              const octet_result *reference, json_t **line);
/* The same in parts, for detections of another's making: a picture's truths, then a detection of picture `picture`. */
bool eval_add_picture(eval_figures *figures, const octet_lab_sample *sample);
bool eval_add_detection(eval_figures *figures, const coco_detection *detection);
/* And of pictures measured before (eval/keep.h): the next picture's truths and detections first, `picture` = n. */
bool eval_add_truth(eval_figures *figures, const coco_truth *truth);
bool eval_add_detected(eval_figures *figures, const eval_picture *picture);
bool eval_add_classified(eval_figures *figures, const picture_figures *picture);
/* All figures as a JSON object, as octet eval --json prints them. NULL: no memory. */
json_t *eval_report(eval_figures *figures);
void eval_figures_free(eval_figures *figures);

#endif
