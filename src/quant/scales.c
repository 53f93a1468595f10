/* SPDX-License-Identifier: Apache-2.0 */
/* The scale file in memory: finding, checking, growing. */
#include "quant/scales.h"

#include <string.h>

#include "base/alloc.h"

void oct_scale_file_free(oct_scale_file *file) {
    oct_document_free(&file->document);
    *file = (oct_scale_file){0};
}

/* ---- use */

octet_status oct_scale_file_check(const oct_scale_file *file, const oct_scale_keys *expected) {
    const oct_scale_keys *found = &file->keys;
    const struct {
        const char *key, *expected, *found, *hint;
    } keys[] = {
        {"model", expected->model, found->model, "the scales are another model's"},
        {"configuration", expected->configuration, found->configuration, "config.json has changed: calibrate again"},
        {"weights", expected->weights, found->weights, "the scales are of other weights: calibrate again"},
        {"preprocessing", expected->preprocessing, found->preprocessing,
         "pictures are prepared in another way than for calibration: calibrate again"},
        {"data", expected->data, found->data, "the scales come from another calibration set"},
    };
    const char *path = file->document.path != NULL ? file->document.path : "scales";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].expected == NULL || strcmp(keys[i].expected, keys[i].found) == 0) continue;
        (void)oct_fail(OCTET_MISMATCH, "%s: %s: expected %s, found %s", path, keys[i].key, keys[i].expected,
                       keys[i].found);
        return oct_hint("%s", keys[i].hint);
    }
    return OCTET_OK;
}

const oct_scale *oct_scale_file_find(const oct_scale_file *file, const char *op) {
    for (size_t i = 0; file != NULL && i < file->count; i++) {
        if (strcmp(file->scales[i].op, op) == 0) return &file->scales[i];
    }
    return NULL;
}

static const oct_op_vector *find_vector(const oct_op_vector *vectors, size_t count, const char *op) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(vectors[i].op, op) == 0) return &vectors[i];
    }
    return NULL;
}

const oct_op_vector *oct_scale_file_smoothing(const oct_scale_file *file, const char *op) {
    return file == NULL ? NULL : find_vector(file->smoothing, file->smoothing_count, op);
}

const oct_op_vector *oct_scale_file_bias(const oct_scale_file *file, const char *op) {
    return file == NULL ? NULL : find_vector(file->bias, file->bias_count, op);
}

const oct_op_weight *oct_scale_file_weight(const oct_scale_file *file, const char *op) {
    for (size_t i = 0; file != NULL && i < file->rounded_count; i++) {
        if (strcmp(file->rounded[i].op, op) == 0) return &file->rounded[i];
    }
    return NULL;
}

/* ---- growing */

enum { OF_SCALES, OF_SMOOTHING, OF_BIAS, OF_ROUNDED };

void oct_scale_draft_free(oct_scale_draft *draft) {
    oct_arena_free(&draft->arena);
    *draft = (oct_scale_draft){0};
}

/* A copy in the draft's arena; *failed is set where there is no memory. */
static const void *keep(oct_scale_draft *draft, const void *data, size_t size, bool *failed) {
    if (data == NULL) return NULL;
    void *copy = oct_arena_alloc(&draft->arena, size + 1);
    if (copy != NULL)
        memcpy(copy, data, size);
    else
        *failed = true;
    return copy;
}

/* The array with room for one entry more, for writing: itself, or grown by doubling in the arena. NULL: no memory. */
static void *with_room(oct_scale_draft *draft, int which, const void *array, size_t element, size_t count) {
    size_t *capacity = &draft->capacities[which];
    if (count < *capacity) return (void *)(uintptr_t)array;
    const size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = oct_arena_alloc(&draft->arena, wanted * element);
    if (grown == NULL) return NULL;
    if (count > 0) memcpy(grown, array, count * element);
    *capacity = wanted;
    return grown;
}

octet_status oct_scale_draft_add(oct_scale_draft *draft, const oct_scale *scale) {
    oct_scale_file *file = &draft->file;
    const oct_scale *old = oct_scale_file_find(file, scale->op);
    const size_t index = old != NULL ? (size_t)(old - file->scales) : file->count;
    oct_scale own = *scale;
    bool failed = false;
    own.op = keep(draft, scale->op, strlen(scale->op), &failed);
    own.scales = keep(draft, scale->scales, scale->count * sizeof(float), &failed);
    own.channels = keep(draft, scale->channels, scale->channel_count * sizeof(float), &failed);
    oct_scale *all = with_room(draft, OF_SCALES, file->scales, sizeof *all, file->count);
    if (failed || all == NULL) return oct_fail_memory();
    all[index] = own;
    file->scales = all;
    file->count += old == NULL;
    return OCTET_OK;
}

static octet_status add_vector(oct_scale_draft *draft, int which, const oct_op_vector **vectors, size_t *count,
                               const oct_op_vector *vector) {
    const oct_op_vector *old = find_vector(*vectors, *count, vector->op);
    const size_t index = old != NULL ? (size_t)(old - *vectors) : *count;
    bool failed = false;
    const oct_op_vector own = {.op = keep(draft, vector->op, strlen(vector->op), &failed),
                               .values = keep(draft, vector->values, vector->count * sizeof(float), &failed),
                               .count = vector->count};
    oct_op_vector *all = with_room(draft, which, *vectors, sizeof *all, *count);
    if (failed || all == NULL) return oct_fail_memory();
    all[index] = own;
    *vectors = all;
    *count += old == NULL;
    return OCTET_OK;
}

octet_status oct_scale_draft_smoothing(oct_scale_draft *draft, const oct_op_vector *factors) {
    return add_vector(draft, OF_SMOOTHING, &draft->file.smoothing, &draft->file.smoothing_count, factors);
}

octet_status oct_scale_draft_bias(oct_scale_draft *draft, const oct_op_vector *bias) {
    return add_vector(draft, OF_BIAS, &draft->file.bias, &draft->file.bias_count, bias);
}

octet_status oct_scale_draft_weight(oct_scale_draft *draft, const oct_op_weight *weight) {
    oct_scale_file *file = &draft->file;
    const oct_op_weight *old = oct_scale_file_weight(file, weight->op);
    const size_t index = old != NULL ? (size_t)(old - file->rounded) : file->rounded_count;
    oct_op_weight own = *weight;
    bool failed = false;
    own.op = keep(draft, weight->op, strlen(weight->op), &failed);
    own.scales = keep(draft, weight->scales, weight->scale_count * sizeof(float), &failed);
    own.codes = keep(draft, weight->codes, weight->count, &failed);
    oct_op_weight *all = with_room(draft, OF_ROUNDED, file->rounded, sizeof *all, file->rounded_count);
    if (failed || all == NULL) return oct_fail_memory();
    all[index] = own;
    file->rounded = all;
    file->rounded_count += old == NULL;
    return OCTET_OK;
}
