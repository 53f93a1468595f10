/* SPDX-License-Identifier: Apache-2.0 */
/* Pruned channels (../shared/cases/33): weights that are zero by rows, one weight of 1e-38, an activation that is
 * always zero. In float32 and with FP8 weights the answers of timm and PyTorch; with activations in FP8 near them;
 * finite numbers, and scales that are positive and finite, in every recipe. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "models.h"
#include "quant/recipe.h"
#include "quant/scales.h"

#define WEIGHTS                                                                                                        \
    "recipe: case\nbase: fp32\nrules:\n  - ops: {kind: conv2d, kernel: [1, 1], pixels_from: 2}\n"                      \
    "    weights: {format: e4m3, granularity: channel}\n"
#define ACTIVATIONS "    activations: {format: e4m3, granularity: tensor}\n"
#define TENSORS 512

/* ---- the checkpoint */

typedef struct weights {
    oct_tensor_source tensors[TENSORS];
    float *data[TENSORS];
    size_t count;
} weights;

static int by_name(const void *a, const void *b) {
    return strcmp(((const oct_tensor_source *)a)->name, ((const oct_tensor_source *)b)->name);
}

/* The network as it is, in order of names. */
static void read_weights(oct_checkpoint *checkpoint, weights *w) {
    for (size_t i = 0; i < oct_checkpoint_tensor_count(checkpoint); i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        if (oct_ends_with(tensor->name, ".num_batches_tracked")) continue;
        assert_true(w->count < TENSORS);
        float *data = oct_alloc((size_t)tensor->count * sizeof *data);
        assert_non_null(data);
        RUNS_OK(oct_checkpoint_read(checkpoint, tensor, data));
        oct_tensor_source *source = &w->tensors[w->count];
        *source = (oct_tensor_source){tensor->name, OCT_DTYPE_F32, tensor->rank, {0}, data, NULL, NULL};
        memcpy(source->shape, tensor->shape, (size_t)tensor->rank * sizeof tensor->shape[0]);
        w->data[w->count++] = data;
    }
    qsort(w->tensors, w->count, sizeof w->tensors[0], by_name);
}

/* Rows first .. last - 1 of a tensor, each `step`-th, become `value`. */
static void fill(const oct_tensor_source *tensor, int64_t first, int64_t last, int64_t step, float value) {
    int64_t row = 1;
    for (int i = 1; i < tensor->rank; i++) row *= tensor->shape[i];
    for (int64_t o = first; o < last; o += step)
        for (int64_t i = 0; i < row; i++) ((float *)(uintptr_t)tensor->data)[o * row + i] = value;
}

static const oct_tensor_source *find(const weights *w, const char *name) {
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->tensors[i].name, name) == 0) return &w->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void fill_all(const weights *w, const char *name, float value) {
    const oct_tensor_source *tensor = find(w, name);
    fill(tensor, 0, tensor->shape[0], 1, value);
}

/* As the case's make.py says. */
static void prune(const weights *w) {
    size_t pointwise = 0;
    for (size_t i = 0; i < w->count; i++) {
        const oct_tensor_source *tensor = &w->tensors[i];
        if (!oct_ends_with(tensor->name, "conv_pw.weight") && !oct_ends_with(tensor->name, "conv_pwl.weight")) continue;
        if (pointwise++ % 3 == 0) fill(tensor, 0, tensor->shape[0], 4, 0);
    }
    assert_int_equal(pointwise, 33);
    const oct_tensor_source *head = find(w, "conv_head.weight");
    fill(head, 0, 101, 1, 0);
    ((float *)(uintptr_t)head->data)[100 * head->shape[1]] = 1e-38f;
    fill_all(w, "blocks.1.0.conv_pw.weight", 0);
    fill_all(w, "blocks.1.0.bn1.bias", -1);
    fill_all(w, "blocks.1.0.bn1.running_mean", 0);
    fill_all(w, "blocks.1.0.conv_dw.weight", 0);
    fill_all(w, "blocks.1.0.bn2.bias", -1);
    fill_all(w, "blocks.1.0.bn2.running_mean", 0);
}

/* The pruned checkpoint in a new directory, with a set of the one picture in "set". */
static char *write_case(const char *place, const char *picture) {
    static weights w;
    oct_checkpoint *checkpoint;
    char path[1024];
    size_t size = 0;
    char *directory = support_temporary_directory();
    RUNS_OK(oct_checkpoint_open(&checkpoint, place));
    memset(&w, 0, sizeof w);
    read_weights(checkpoint, &w);
    prune(&w);
    RUNS_OK(oct_safetensors_write(support_join(directory, "model.safetensors"), w.tensors, w.count));
    for (size_t i = 0; i < w.count; i++) oct_free(w.data[i]);
    oct_checkpoint_close(checkpoint);
    (void)snprintf(path, sizeof path, "%s/config.json", place);
    char *config = support_read_text(path, &size);
    support_write_file(support_join(directory, "config.json"), config, size);
    free(config);
    char *bytes = support_read_text(picture, &size);
    support_write_file(support_join(directory, "p.png"), bytes, size);
    free(bytes);
    support_write_text(support_join(directory, "labels.txt"), "p.png 0\n");
    return directory;
}

/* ---- the answers */

static octet_result *answer(const char *directory, const char *recipe, const char *text, const char *scales) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_model *model;
    octet_result *result;
    options.threads = 1;
    options.scales = scales;
    options.recipe = text == NULL ? recipe : NULL;
    RUNS_OK(text == NULL ? octet_model_open(directory, &options, &model)
                         : octet_lab_open_recipe(directory, &options, recipe, text, &model));
    octet_session *session = models_session(model, 1);
    char path[512];
    (void)snprintf(path, sizeof path, "%s/p.png", directory);
    RUNS_OK(octet_session_run_file(session, path, &result));
    octet_session_free(&session);
    octet_model_close(&model);
    size_t rows, columns;
    const float *logits = octet_result_logits(result, &rows, &columns);
    for (size_t i = 0; i < columns; i++)
        if (!isfinite(logits[i])) fail_msg("%s: logit %zu is %g", recipe, i, (double)logits[i]);
    return result;
}

/* Calibrates on the one picture; every scale is positive and finite, and what was always zero is told by its amax. */
static void calibrate(const char *directory, const char *recipe, const char *always_zero, const char *output) {
    octet_lab_calibrate_options options = OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT;
    oct_scale_file file;
    size_t zeros = 0;
    options.recipe = recipe;
    options.data = directory;
    options.threads = 1;
    RUNS_OK(octet_lab_calibrate(directory, &options, NULL, NULL, output));
    RUNS_OK(oct_scale_file_read(&file, output));
    assert_true(file.count >= 34);
    for (size_t i = 0; i < file.count; i++) {
        const oct_scale *scale = &file.scales[i];
        for (size_t k = 0; k < scale->count; k++)
            if (!(scale->scales[k] > 0 && isfinite(scale->scales[k])))
                fail_msg("%s: %s: scale %g", recipe, scale->op, (double)scale->scales[k]);
        if (scale->amax == 0 && strcmp(scale->op, always_zero) == 0) zeros++;
    }
    assert_int_equal(zeros, 1);
    oct_scale_file_free(&file);
}

static void test_zero_channels(void **state) {
    (void)state;
    oct_document document;
    char place[512], picture[512];
    const char *shared = support_shared("data/checkpoints/mobilenetv2_100");
    if (shared == NULL) SUPPORT_SKIP("shared data is not here");
    (void)snprintf(place, sizeof place, "%s", shared);
    (void)snprintf(picture, sizeof picture, "%s", support_shared("cases/33-zero-channels/p.png"));
    RUNS_OK(oct_document_read(&document, support_shared("cases/33-zero-channels/expected.json"), OCT_DOCUMENT_LIMIT));
    const oct_node *expected = models_get(document.root, "expect");
    char *directory = write_case(place, picture), scales[512], own[512];
    (void)snprintf(scales, sizeof scales, "%s/published.json", directory);

    octet_result *result = answer(directory, "fp32", NULL, NULL);
    models_check_case(result, models_get(expected, "fp32"), "fp32");
    octet_result_free(&result);
    result = answer(directory, "weights", WEIGHTS, NULL);
    models_check_case(result, models_get(expected, "fp8 weights only"), "weights in FP8");
    octet_result_free(&result);

    calibrate(directory, "published", "blocks.1.0.conv_pwl", scales);
    result = answer(directory, "activations", WEIGHTS ACTIVATIONS, scales);
    /* the case divides by scales where octet multiplies with their inverses, and codes that differ change what is
     * behind: the answers lie 0.6% of the largest logit apart */
    const oct_node *full = models_get(expected, "published fp8 recipe, calibrated on p.png");
    const oct_node *some = models_get(full, "every_40th_logit");
    size_t rows, columns;
    const float *logits = octet_result_logits(result, &rows, &columns);
    for (size_t i = 0; i < some->count; i++)
        models_near((double)logits[40 * i], some->items[i]->real, 0.03 * models_get(full, "max_abs_logit")->real,
                    "activations in FP8", 40 * i);
    octet_class top;
    assert_int_equal(octet_result_top(result, &top, 1), 1);
    assert_int_equal(top.index, models_get(models_get(full, "top")->items[0], "index")->integer);
    octet_result_free(&result);

    static const char *const others[] = {"published", "int8", "nvfp4", "whole", "uint8"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(own, sizeof own, "%s/%s.json", directory, others[i]);
        if (i > 0) calibrate(directory, others[i], "blocks.1.0.conv_pwl", own);
        result = answer(directory, others[i], NULL, own);
        octet_result_free(&result);
    }
    static const char *const dynamic[] = {"mxfp8", "rows", "row_blocks"};
    for (size_t i = 0; i < sizeof dynamic / sizeof dynamic[0]; i++) {
        result = answer(directory, dynamic[i], NULL, NULL);
        octet_result_free(&result);
    }
    oct_document_free(&document);
    models_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_zero_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
