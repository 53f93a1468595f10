/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about one step that planning and checking both ask. */
#include "engine/internal.h"

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
    *bytes = (rows * row + OCT_MEMORY_ALIGNMENT - 1) / OCT_MEMORY_ALIGNMENT * OCT_MEMORY_ALIGNMENT;
    return true;
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
