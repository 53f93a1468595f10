/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

octet_status oct_result_new(octet_result **result, octet_model *model, int width, int height, size_t rows,
                            size_t columns) {
    *result = NULL;
    octet_result *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    bool detection = model->facts.task == OCT_TASK_DETECTION;
    made->logits = oct_calloc(rows * (columns + (detection ? 4 : 0)), sizeof(float));
    if (made->logits == NULL) {
        oct_free(made);
        return oct_fail_memory();
    }
    made->model = oct_model_retain(model);
    made->task = detection ? OCTET_DETECTION : OCTET_CLASSIFICATION;
    made->width = width;
    made->height = height;
    made->rows = rows;
    made->columns = columns;
    made->boxes = detection ? made->logits + rows * columns : NULL;
    *result = made;
    return OCTET_OK;
}

void octet_result_free(octet_result **result) {
    if (result == NULL || *result == NULL) return;
    oct_model_release((*result)->model);
    oct_free((*result)->logits);
    oct_free(*result);
    *result = NULL;
}

octet_task octet_result_task(const octet_result *result) {
    return result->task;
}

void octet_result_picture_size(const octet_result *result, int32_t *width, int32_t *height) {
    if (width != NULL) *width = result->width;
    if (height != NULL) *height = result->height;
}

const float *octet_result_logits(const octet_result *result, size_t *rows, size_t *columns) {
    if (rows != NULL) *rows = result->rows;
    if (columns != NULL) *columns = result->columns;
    return result->logits;
}

const float *octet_result_boxes(const octet_result *result, size_t *rows) {
    if (rows != NULL) *rows = result->boxes != NULL ? result->rows : 0;
    return result->boxes;
}

/* log of the sum of exp over a row, in double, so that softmax of column i is exp(row[i] - this). */
static double log_sum_exp(const float *row, size_t count) {
    double largest = row[0], sum = 0.0;
    for (size_t i = 1; i < count; i++) largest = row[i] > largest ? row[i] : largest;
    for (size_t i = 0; i < count; i++) sum += exp((double)row[i] - largest);
    return largest + log(sum);
}

/* Better: larger; a NaN is worse than any number; ties go to the lower index. */
static bool better(const float *row, size_t a, size_t b) {
    if (isnan(row[b])) return !isnan(row[a]) || a < b;
    return row[a] > row[b] || (row[a] == row[b] && a < b);
}

size_t octet_result_top(const octet_result *result, octet_class *classes, size_t count) {
    if (result->task != OCTET_CLASSIFICATION) return 0;
    size_t kept = 0;
    const float *row = result->logits;
    for (size_t i = 0; i < result->columns; i++) {
        size_t at = kept;
        while (at > 0 && better(row, i, (size_t)classes[at - 1].index)) at--;
        if (at >= count) continue;
        if (kept < count) kept++;
        memmove(&classes[at + 1], &classes[at], (kept - 1 - at) * sizeof *classes);
        classes[at].index = (int32_t)i;
    }
    double total = log_sum_exp(row, result->columns);
    for (size_t i = 0; i < kept; i++) {
        size_t index = (size_t)classes[i].index;
        classes[i].label = octet_model_label(result->model, index);
        classes[i].logit = row[index];
        classes[i].probability = (float)exp((double)row[index] - total);
    }
    return kept;
}

/* DETR's rule: softmax with no-object (the last column), which is then dropped; centre and size to corners in pixels.
 */
static octet_detection detection_of(const octet_result *result, size_t token) {
    const float *row = result->logits + token * result->columns, *box = result->boxes + token * 4;
    size_t best = 0;
    for (size_t i = 1; i + 1 < result->columns; i++) {
        if (better(row, i, best)) best = i;
    }
    float width = (float)result->width, height = (float)result->height;
    return (octet_detection){
        .index = (int32_t)best,
        .label = octet_model_label(result->model, best),
        .score = (float)exp((double)row[best] - log_sum_exp(row, result->columns)),
        .box = {(box[0] - 0.5f * box[2]) * width, (box[1] - 0.5f * box[3]) * height, (box[0] + 0.5f * box[2]) * width,
                (box[1] + 0.5f * box[3]) * height},
        .token = (int32_t)token,
    };
}

size_t octet_result_detections(const octet_result *result, float threshold, octet_detection *detections, size_t count) {
    if (result->task != OCTET_DETECTION) return 0;
    size_t found = 0;
    for (size_t token = 0; token < result->rows; token++) {
        octet_detection detection = detection_of(result, token);
        if (!(detection.score > threshold)) continue;
        if (found < count) detections[found] = detection;
        found++;
    }
    return found;
}

/* ---- drawing */

#define CAPTION_CLASSES 3

static octet_status draw_classes(const octet_result *result, oct_image *image) {
    octet_class top[CAPTION_CLASSES];
    char text[CAPTION_CLASSES][160];
    const char *lines[CAPTION_CLASSES];
    size_t count = octet_result_top(result, top, CAPTION_CLASSES);
    for (size_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%5.1f%%  %s", 100.0 * (double)top[i].probability, top[i].label);
        lines[i] = text[i];
    }
    return oct_image_draw_caption(image, lines, count);
}

static octet_status draw_detections(const octet_result *result, float threshold, oct_image *image) {
    size_t count = octet_result_detections(result, threshold, NULL, 0);
    octet_detection *detections = oct_calloc(count, sizeof *detections);
    oct_drawn_box *boxes = oct_calloc(count, sizeof *boxes);
    octet_status status = OCTET_OUT_OF_MEMORY;
    if (detections != NULL && boxes != NULL) {
        octet_result_detections(result, threshold, detections, count);
        for (size_t i = 0; i < count; i++) {
            const octet_detection *d = &detections[i];
            boxes[i] = (oct_drawn_box){d->box[0], d->box[1], d->box[2], d->box[3], d->score, d->index, d->label};
        }
        status = oct_image_draw_boxes(image, boxes, count);
    } else {
        oct_fail_memory();
    }
    oct_free(boxes);
    oct_free(detections);
    return status;
}

octet_status octet_draw(const octet_result *result, const char *path, octet_orientation orientation, float threshold,
                        const char *output) {
    oct_image image = {0};
    if (result == NULL || path == NULL || output == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "draw: expected a result and two paths, found NULL");
    if (orientation != OCTET_UPRIGHT && orientation != OCTET_STORED)
        return oct_fail(OCTET_INVALID_ARGUMENT, "orientation: unknown %d", (int)orientation);
    OCT_TRY(
        oct_image_read(&image, path, orientation == OCTET_STORED ? OCT_ORIENTATION_STORED : OCT_ORIENTATION_UPRIGHT));
    octet_status status = result->task == OCTET_CLASSIFICATION ? draw_classes(result, &image)
                                                               : draw_detections(result, threshold, &image);
    if (status == OCTET_OK) status = oct_image_write(&image, output);
    oct_image_free(&image);
    return status;
}
