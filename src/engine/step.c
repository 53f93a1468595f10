/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about one step that planning and checking both ask. */
#include "engine/internal.h"

static uint64_t round_up(uint64_t size) {
    return (size + OCT_MEMORY_ALIGNMENT - 1) / OCT_MEMORY_ALIGNMENT * OCT_MEMORY_ALIGNMENT;
}

bool oct_tensor_bytes(const oct_shape *shape, const oct_form *form, uint64_t *bytes) {
    const uint64_t limit = (uint64_t)1 << 40;
    if (shape->rank < 1 || shape->rank > OCT_RANK) return false;
    uint64_t rows = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1 || (uint64_t)shape->dims[i] > limit / rows) return false;
        if (i < shape->rank - 1) rows *= (uint64_t)shape->dims[i];
    }
    if (form->channel_stride < shape->dims[shape->rank - 1]) return false;
    const unsigned bits = oct_form_bits(form);
    if (bits == 0 || bits % 8 != 0) return false;
    const uint64_t row = (uint64_t)form->channel_stride * (bits / 8);
    if (rows > limit / row) return false;
    *bytes = round_up(rows * row);
    if (oct_form_keeps_row_scales(form)) *bytes += round_up(rows * sizeof(float));
    return true;
}

uint64_t oct_tensor_scales(const oct_plan_tensor *tensor) {
    uint64_t rows = 1;
    for (int i = 0; i < tensor->shape.rank - 1; i++) rows *= (uint64_t)tensor->shape.dims[i];
    return round_up(rows * (uint64_t)tensor->form.channel_stride * (oct_form_bits(&tensor->form) / 8));
}

static float read_code(const oct_form *form, const void *bytes, int64_t at, float scale) {
    switch (form->format) {
    case OCT_FORMAT_INT8:
        return oct_int8_decode(((const int8_t *)bytes)[at], scale);
    case OCT_FORMAT_UINT8:
        return oct_uint8_decode(((const uint8_t *)bytes)[at], scale, form->zero_point);
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(((const uint8_t *)bytes)[at]) * scale;
    case OCT_FORMAT_E5M2:
        return oct_e5m2_decode(((const uint8_t *)bytes)[at]) * scale;
    case OCT_FORMAT_FP16:
        return oct_fp16_decode(((const uint16_t *)bytes)[at]);
    default:
        return oct_bf16_decode(((const uint16_t *)bytes)[at]);
    }
}

void oct_tensor_read(const oct_plan_tensor *tensor, const void *bytes, float *numbers) {
    const oct_form *form = &tensor->form;
    const int64_t channels = tensor->shape.dims[tensor->shape.rank - 1], stride = form->channel_stride;
    const int64_t rows = oct_shape_count(&tensor->shape) / channels;
    const float *scales = (const float *)(const void *)((const uint8_t *)bytes + oct_tensor_scales(tensor));
    for (int64_t r = 0; r < rows; r++) {
        const float scale = oct_form_keeps_row_scales(form) ? scales[r] : form->scale;
        for (int64_t c = 0; c < channels; c++)
            numbers[r * channels + c] = oct_form_is_float(form) ? ((const float *)bytes)[r * stride + c]
                                                                : read_code(form, bytes, r * stride + c, scale);
    }
}

int oct_step_residual(const oct_plan_step *step) {
    if ((step->op != OCT_OP_CONV2D && step->op != OCT_OP_LINEAR) || !step->attributes.has_residual) return -1;
    return 2 + (step->attributes.has_bias ? 1 : 0);
}

bool oct_step_in_place(const oct_plan_step *step, int input) {
    if (step->op == OCT_OP_ADD || step->op == OCT_OP_ACTIVATION) return true;
    return input >= 0 && input == oct_step_residual(step);
}

bool oct_step_is_view(const oct_plan *plan, const oct_plan_step *step) {
    if (step->op != OCT_OP_RESHAPE || step->input_count != 1 || step->inputs[0].kind != OCT_OPERAND_TENSOR)
        return false;
    return plan->tensors[step->inputs[0].index].offset == plan->tensors[step->output].offset;
}
