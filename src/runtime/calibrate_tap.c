/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "runtime/calibrate.h"

void oct_calibration_forget_plan(calibration *c) {
    oct_free(c->of_step);
    oct_free(c->next);
    c->of_step = c->next = NULL;
    c->plan = NULL;
}

/* The watches that look at a value, as a list: the first, or OCT_NONE. */
static int32_t watches_of(calibration *c, const char *value) {
    int32_t first = OCT_NONE;
    for (size_t i = c->list.watch_count; i-- > 0;) {
        if (strcmp(c->list.watches[i].of, value) != 0) continue;
        c->next[i] = first;
        first = (int32_t)i;
    }
    return first;
}

/* A model whose input follows the picture has a plan for each size. */
static bool know_plan(calibration *c, const oct_plan *plan) {
    if (c->plan == plan) return true;
    oct_calibration_forget_plan(c);
    c->of_step = oct_calloc(plan->step_count, sizeof *c->of_step);
    c->next = oct_calloc(c->list.watch_count, sizeof *c->next);
    if (c->of_step == NULL || c->next == NULL) return false;
    for (size_t i = 0; i < plan->step_count; i++)
        c->of_step[i] = watches_of(c, plan->tensors[plan->steps[i].output].name);
    c->of_input = watches_of(c, plan->tensors[plan->input].name);
    c->plan = plan;
    return true;
}

/* The numbers dense, and times the watch's factors; NULL: no memory. */
static const float *numbers_of(calibration *c, const oct_quant_watch *watch, const oct_plan_tensor *tensor,
                               const float *data, bool scale) {
    const size_t channels = (size_t)tensor->shape.dims[tensor->shape.rank - 1];
    const size_t rows = (size_t)oct_shape_count(&tensor->shape) / channels,
                 stride = (size_t)tensor->form.channel_stride;
    const float *factors = scale ? watch->factors : NULL;
    if (factors == NULL && stride == channels) return data;
    if (c->scaled_count < rows * channels) {
        oct_free(c->scaled);
        c->scaled_count = 0;
        c->scaled = oct_alloc(rows * channels * sizeof *c->scaled);
        if (c->scaled == NULL) return NULL;
        c->scaled_count = rows * channels;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < channels; i++)
            c->scaled[r * channels + i] = data[r * stride + i] * (factors != NULL ? factors[i] : 1.0f);
    return c->scaled;
}

static octet_status look(calibration *c, size_t index, const oct_plan_tensor *tensor, const float *data) {
    const oct_quant_watch *watch = &c->list.watches[index];
    oct_range *range = &c->ranges.items[index];
    const size_t channels = (size_t)tensor->shape.dims[tensor->shape.rank - 1];
    const size_t rows = (size_t)oct_shape_count(&tensor->shape) / channels;
    if (channels != watch->channels)
        return oct_fail(OCTET_INTERNAL, "calibration: %s: expected %zu channels, found %zu", watch->of, watch->channels,
                        channels);
    if (watch->histogram || watch->channel_ranges) {
        const float *numbers = numbers_of(c, watch, tensor, data, true);
        if (numbers == NULL) return oct_fail_memory();
        if (watch->histogram) oct_histogram_add_rows(range->histogram, numbers, rows, channels, channels);
        if (watch->channel_ranges) oct_channels_add(&range->channels, numbers, rows, channels);
    }
    if (!watch->rows) return OCTET_OK;
    const float *numbers = numbers_of(c, watch, tensor, data, false);
    return numbers == NULL ? oct_fail_memory() : oct_quant_see(&c->list, index, numbers, &tensor->shape);
}

static void look_all(calibration *c, int32_t first, const oct_plan_tensor *tensor, const float *data) {
    for (int32_t i = first; i != OCT_NONE && c->failed == OCTET_OK; i = c->next[i])
        c->failed = look(c, (size_t)i, tensor, data);
}

void oct_calibration_tap(void *user, const oct_plan *plan, size_t step, const void *output, double seconds) {
    calibration *c = user;
    int stride;
    (void)seconds;
    if (!know_plan(c, plan)) {
        c->failed = oct_fail_memory();
        return;
    }
    if (step == 0)
        look_all(c, c->of_input, &plan->tensors[plan->input], oct_context_input(c->session->context, &stride));
    look_all(c, c->of_step[step], &plan->tensors[plan->steps[step].output], output);
}
