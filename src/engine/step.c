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
    const unsigned bits = oct_format_bits(form->format);
    if (bits == 0 || bits % 8 != 0) return false;
    const uint64_t row = (uint64_t)form->channel_stride * (bits / 8);
    if (rows > limit / row) return false;
    *bytes = round_up(rows * row);
    if (form->granularity == OCT_PER_ROW) *bytes += round_up(rows * sizeof(float));
    return true;
}

uint64_t oct_tensor_scales(const oct_plan_tensor *tensor) {
    uint64_t rows = 1;
    for (int i = 0; i < tensor->shape.rank - 1; i++) rows *= (uint64_t)tensor->shape.dims[i];
    return round_up(rows * (uint64_t)tensor->form.channel_stride * (oct_format_bits(tensor->form.format) / 8));
}

void oct_tensor_read(const oct_plan_tensor *tensor, const void *bytes, float *numbers) {
    const int64_t channels = tensor->shape.dims[tensor->shape.rank - 1], stride = tensor->form.channel_stride;
    const int64_t rows = oct_shape_count(&tensor->shape) / channels;
    const float *scales = (const float *)(const void *)((const uint8_t *)bytes + oct_tensor_scales(tensor));
    for (int64_t r = 0; r < rows; r++) {
        const float scale = tensor->form.granularity == OCT_PER_ROW ? scales[r] : tensor->form.scale;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t at = r * stride + c;
            float *number = &numbers[r * channels + c];
            switch (tensor->form.format) {
            case OCT_FORMAT_INT8:
                *number = oct_int8_decode(((const int8_t *)bytes)[at], scale);
                break;
            case OCT_FORMAT_E4M3:
                *number = oct_e4m3_decode(((const uint8_t *)bytes)[at]) * scale;
                break;
            case OCT_FORMAT_FP16:
                *number = oct_fp16_decode(((const uint16_t *)bytes)[at]);
                break;
            case OCT_FORMAT_BF16:
                *number = oct_bf16_decode(((const uint16_t *)bytes)[at]);
                break;
            default:
                *number = ((const float *)bytes)[at];
            }
        }
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
