/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is data from outside: all of it is checked before anything runs.
 *
 * Memory is checked by walking the steps with the set of tensors whose contents still stand. A step makes its output
 * stand and what lies under it fall; reading a fallen tensor, or one not made yet, is the error. So a cycle, a step out
 * of order and two live tensors in one place are found by one rule, whatever the lifetimes in the plan claim; those are
 * checked apart. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/internal.h"
#include "graph/stored.h"

#define PLAN_LIMIT ((size_t)1 << 20) /* tensors, steps */

/* What became of each tensor so far. */
typedef enum standing { NOT_MADE, STANDS, FALLEN } standing;

static octet_status check_form(const oct_plan_tensor *tensor, const oct_weights *weights) {
    const oct_form *form = &tensor->form;
    if (oct_format_get(form->format) == NULL)
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: no such format", tensor->name);
    if (form->granularity < OCT_PER_TENSOR || form->granularity > OCT_PER_BLOCK)
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: no such granularity", tensor->name);
    if (form->scales != OCT_NONE && (form->scales < 0 || (size_t)form->scales >= weights->count))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: scales are constant %d of %zu", tensor->name, form->scales,
                        weights->count);
    if (!oct_format_is_stored(form->format))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: activations are not stored in %s", tensor->name,
                        oct_format_name(form->format));
    if (form->scales != OCT_NONE || (form->granularity != OCT_PER_TENSOR && form->granularity != OCT_PER_ROW) ||
        (form->granularity == OCT_PER_ROW && !oct_format_has_scale(form->format)))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: no scale of this kind goes with %s", tensor->name,
                        oct_format_name(form->format));
    if (oct_format_has_scale(form->format) && form->granularity == OCT_PER_TENSOR &&
        !(form->scale >= OCT_SCALE_LEAST && isfinite(form->scale)))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: a scale of %g", tensor->name, (double)form->scale);
    return OCTET_OK;
}

static octet_status check_tensors(const oct_plan *plan, const oct_weights *weights) {
    uint64_t end = 0;
    for (size_t i = 0; i < plan->tensor_count; i++) {
        const oct_plan_tensor *tensor = &plan->tensors[i];
        if (tensor->name == NULL) return oct_fail(OCTET_BAD_FORMAT, "tensor %zu has no name", i);
        OCT_TRY(check_form(tensor, weights));
        uint64_t bytes = 0;
        if (!oct_tensor_bytes(&tensor->shape, &tensor->form, &bytes))
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: bad shape or channel stride", tensor->name);
        if (tensor->shape.dims[0] != plan->batch)
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: batch %lld in a plan of batch %lld", tensor->name,
                            (long long)tensor->shape.dims[0], (long long)plan->batch);
        if (tensor->size != bytes)
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: expected %llu bytes, found %llu", tensor->name,
                            (unsigned long long)bytes, (unsigned long long)tensor->size);
        if (tensor->offset % OCT_MEMORY_ALIGNMENT != 0)
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: offset %llu is not a multiple of %u", tensor->name,
                            (unsigned long long)tensor->offset, OCT_MEMORY_ALIGNMENT);
        if (tensor->offset > plan->arena_size || bytes > plan->arena_size - tensor->offset)
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: ends beyond the arena of %llu bytes", tensor->name,
                            (unsigned long long)plan->arena_size);
        if (tensor->offset + bytes > end) end = tensor->offset + bytes;
    }
    if (plan->arena_size > end)
        return oct_fail(OCTET_BAD_FORMAT, "an arena of %llu bytes, of which tensors take %llu",
                        (unsigned long long)plan->arena_size, (unsigned long long)end);
    return OCTET_OK;
}

static octet_status check_operands(const oct_plan *plan, const oct_weights *weights, size_t index, oct_shape *shapes) {
    const oct_plan_step *step = &plan->steps[index];
    if (step->name == NULL) return oct_fail(OCTET_BAD_FORMAT, "step %zu has no name", index);
    if ((unsigned)step->op >= OCT_OP_COUNT) return oct_fail(OCTET_BAD_FORMAT, "step %s: no such op", step->name);
    if (step->input_count < 1 || step->input_count > OCT_PLAN_INPUTS)
        return oct_fail(OCTET_BAD_FORMAT, "step %s: %d inputs", step->name, step->input_count);
    if (step->output < 0 || (size_t)step->output >= plan->tensor_count)
        return oct_fail(OCTET_BAD_FORMAT, "step %s: output is tensor %d of %zu", step->name, step->output,
                        plan->tensor_count);
    if (step->has_second && (step->second < 0 || (size_t)step->second >= plan->tensor_count))
        return oct_fail(OCTET_BAD_FORMAT, "step %s: its second output is tensor %d of %zu", step->name, step->second,
                        plan->tensor_count);
    if ((unsigned)step->attributes.activation >= OCT_ACTIVATION_COUNT)
        return oct_fail(OCTET_BAD_FORMAT, "step %s: no such activation", step->name);
    for (int j = 0; j < step->input_count; j++) {
        const oct_operand operand = step->inputs[j];
        size_t count = 0;
        if (operand.kind == OCT_OPERAND_TENSOR) count = plan->tensor_count;
        if (operand.kind == OCT_OPERAND_CONSTANT) count = weights->count;
        if (operand.index < 0 || (size_t)operand.index >= count)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: input %d is %s %d of %zu", step->name, j,
                            operand.kind == OCT_OPERAND_CONSTANT ? "constant" : "tensor", operand.index, count);
        shapes[j] = operand.kind == OCT_OPERAND_TENSOR ? plan->tensors[operand.index].shape
                                                       : weights->items[operand.index].shape;
    }
    return OCTET_OK;
}

/* The forms a step reads and stores go together, by the rules of the graph (graph/stored.h). */
static octet_status check_forms(const oct_plan *plan, const oct_weights *weights, const oct_plan_step *step) {
    const oct_plan_tensor *out = &plan->tensors[step->output];
    const oct_operand first = step->inputs[0];
    const bool tensor = first.kind == OCT_OPERAND_TENSOR;
    const oct_form *x = tensor ? &plan->tensors[first.index].form : &weights->items[first.index].form;
    if (step->has_second) {
        const oct_plan_tensor *second = &plan->tensors[step->second];
        if (step->second == step->output || second->is_output || !oct_shape_equal(&second->shape, &out->shape) ||
            out->form.format != OCT_FORMAT_FP32 || second->form.format == OCT_FORMAT_FP32)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: %s and %s are not two forms of one value", step->name,
                            out->name, second->name);
    }
    const bool from = x->format != OCT_FORMAT_FP32, to = out->form.format != OCT_FORMAT_FP32;
    if ((step->op == OCT_OP_QUANTIZE && (from || !to || step->has_second)) ||
        (step->op == OCT_OP_DEQUANTIZE && (!from || to)))
        return oct_fail(OCTET_BAD_FORMAT, "step %s: from %s to %s", step->name, oct_format_name(x->format),
                        oct_format_name(out->form.format));
    if (tensor && x->granularity == OCT_PER_ROW && step->op != OCT_OP_LINEAR && step->op != OCT_OP_DEQUANTIZE)
        return oct_fail(OCTET_BAD_FORMAT, "step %s: reads a scale a row", step->name);
    for (int j = 0; j < step->input_count; j++) {
        const oct_operand operand = step->inputs[j];
        if (operand.kind != OCT_OPERAND_CONSTANT || weights->items[operand.index].form.format == OCT_FORMAT_FP32)
            continue;
        const oct_shape *shape = &weights->items[operand.index].shape;
        if ((step->op != OCT_OP_CONV2D && step->op != OCT_OP_LINEAR) || j != 1)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: reads %s, a constant of codes", step->name,
                            weights->items[operand.index].name);
        if (oct_shape_count(shape) / shape->dims[0] > OCT_INT8_DEPTH && x->format == OCT_FORMAT_INT8)
            return oct_fail(OCTET_LIMIT, "step %s: int8 products take at most %lld terms", step->name,
                            (long long)OCT_INT8_DEPTH);
    }
    return OCTET_OK;
}

static octet_status check_step(const oct_plan *plan, const oct_weights *weights, const oct_backend *backend,
                               size_t index) {
    const oct_plan_step *step = &plan->steps[index];
    oct_shape shapes[OCT_PLAN_INPUTS];
    memset(shapes, 0, sizeof shapes);
    OCT_TRY(check_operands(plan, weights, index, shapes));
    oct_shape expected;
    memset(&expected, 0, sizeof expected);
    OCT_TRY(oct_op_rows[step->op].shape(step->name, &step->attributes, shapes, step->input_count, &expected));
    if (!oct_shape_equal(&expected, &plan->tensors[step->output].shape)) {
        oct_text text = {0};
        oct_shape_print(&expected, &text);
        oct_text_puts(&text, ", found ");
        oct_shape_print(&plan->tensors[step->output].shape, &text);
        const octet_status status =
            text.failed ? oct_fail_memory()
                        : oct_fail(OCTET_BAD_FORMAT, "step %s: output shape: expected %s", step->name, text.data);
        oct_text_free(&text);
        return status;
    }
    OCT_TRY(check_forms(plan, weights, step));
    if (step->tactic == NULL || !backend->knows(step->op, step->tactic))
        return oct_fail(OCTET_BAD_FORMAT, "step %s: backend %s has no tactic %s for %s", step->name, backend->name,
                        step->tactic != NULL ? step->tactic : "(none)", oct_op_rows[step->op].name);
    return OCTET_OK;
}

static bool overlap(const oct_plan_tensor *a, const oct_plan_tensor *b) {
    return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static octet_status check_reads(const oct_plan *plan, const standing *stands, const oct_plan_step *step, int32_t *last,
                                int32_t s) {
    for (int j = 0; j < step->input_count; j++) {
        if (step->inputs[j].kind != OCT_OPERAND_TENSOR) continue;
        const int32_t index = step->inputs[j].index;
        if (stands[index] == NOT_MADE)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: reads %s before it is made", step->name,
                            plan->tensors[index].name);
        if (stands[index] == FALLEN)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: reads %s, which was overwritten", step->name,
                            plan->tensors[index].name);
        last[index] = s;
    }
    return OCTET_OK;
}

/* Whether a step may write its output over tensor `index`, one of its inputs. */
static bool may_overwrite(const oct_plan *plan, const oct_plan_step *step, int32_t index) {
    const oct_plan_tensor *in = &plan->tensors[index], *out = &plan->tensors[step->output];
    if (in->offset != out->offset || !oct_shape_equal(&in->shape, &out->shape)) return false;
    if (in->form.format != OCT_FORMAT_FP32 || out->form.format != OCT_FORMAT_FP32 ||
        in->form.channel_stride != out->form.channel_stride)
        return false;
    for (int j = 0; j < step->input_count; j++)
        if (step->inputs[j].kind == OCT_OPERAND_TENSOR && step->inputs[j].index == index && !oct_step_in_place(step, j))
            return false;
    return true;
}

static octet_status check_write(const oct_plan *plan, standing *stands, const oct_plan_step *step, int32_t output) {
    const oct_plan_tensor *out = &plan->tensors[output];
    if (stands[output] != NOT_MADE)
        return oct_fail(OCTET_BAD_FORMAT, "step %s: %s is made twice", step->name, out->name);
    stands[output] = STANDS;
    if (oct_step_is_view(plan, step)) {
        const oct_plan_tensor *in = &plan->tensors[step->inputs[0].index];
        if (in->size != out->size || in->form.channel_stride != in->shape.dims[in->shape.rank - 1] ||
            out->form.channel_stride != out->shape.dims[out->shape.rank - 1] || in->form.format != out->form.format ||
            in->form.granularity != out->form.granularity || in->form.scale != out->form.scale || step->has_second)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: %s cannot be a view of %s", step->name, out->name, in->name);
        return OCTET_OK;
    }
    for (size_t i = 0; i < plan->tensor_count; i++) {
        if ((int32_t)i == output || stands[i] != STANDS || !overlap(&plan->tensors[i], out)) continue;
        for (int j = 0; j < step->input_count; j++)
            if (step->inputs[j].kind == OCT_OPERAND_TENSOR && overlap(&plan->tensors[step->inputs[j].index], out) &&
                (output != step->output || !may_overwrite(plan, step, step->inputs[j].index)))
                return oct_fail(OCTET_BAD_FORMAT, "step %s: writes %s over its own input %s", step->name, out->name,
                                plan->tensors[step->inputs[j].index].name);
        if (step->has_second && ((int32_t)i == step->output || (int32_t)i == step->second))
            return oct_fail(OCTET_BAD_FORMAT, "step %s: its two outputs overlap", step->name);
        stands[i] = FALLEN;
    }
    return OCTET_OK;
}

/* A tensor made by step `s`. */
static octet_status check_made(const oct_plan *plan, standing *stands, int32_t *last, int32_t s, int32_t output) {
    OCT_TRY(check_write(plan, stands, &plan->steps[s], output));
    const oct_plan_tensor *out = &plan->tensors[output];
    if (out->first != s)
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: made by step %d, not %d as the plan says", out->name, s,
                        out->first);
    if (last[output] < s) last[output] = s;
    return OCTET_OK;
}

static octet_status check_flow(const oct_plan *plan, standing *stands, int32_t *last) {
    const int32_t end = (int32_t)plan->step_count;
    stands[plan->input] = STANDS;
    for (int32_t s = 0; s < end; s++) {
        const oct_plan_step *step = &plan->steps[s];
        OCT_TRY(check_reads(plan, stands, step, last, s));
        OCT_TRY(check_made(plan, stands, last, s, step->output));
        if (step->has_second) OCT_TRY(check_made(plan, stands, last, s, step->second));
    }
    if (stands[plan->input] != STANDS) return oct_fail(OCTET_BAD_FORMAT, "the input is overwritten");
    last[plan->input] = end;
    for (size_t i = 0; i < plan->output_count; i++) {
        const int32_t index = plan->outputs[i];
        if (stands[index] != STANDS)
            return oct_fail(OCTET_BAD_FORMAT, "output %s is %s", plan->tensors[index].name,
                            stands[index] == FALLEN ? "overwritten" : "never made");
        last[index] = end;
    }
    for (size_t i = 0; i < plan->tensor_count; i++) {
        const oct_plan_tensor *tensor = &plan->tensors[i];
        if (stands[i] == NOT_MADE) return oct_fail(OCTET_BAD_FORMAT, "tensor %s is never made", tensor->name);
        if (tensor->last != last[i])
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: last read by step %d, not %d as the plan says", tensor->name,
                            last[i], tensor->last);
    }
    return OCTET_OK;
}

static octet_status check_ends(const oct_plan *plan) {
    if (plan->input < 0 || (size_t)plan->input >= plan->tensor_count)
        return oct_fail(OCTET_BAD_FORMAT, "the input is tensor %d of %zu", plan->input, plan->tensor_count);
    const oct_plan_tensor *input = &plan->tensors[plan->input];
    if (input->first != -1) return oct_fail(OCTET_BAD_FORMAT, "tensor %s: the input is made by no step", input->name);
    if (input->form.format != OCT_FORMAT_FP32) return oct_fail(OCTET_BAD_FORMAT, "the input is not fp32");
    if (plan->output_count == 0) return oct_fail(OCTET_BAD_FORMAT, "the plan has no output");
    for (size_t i = 0; i < plan->output_count; i++) {
        const int32_t index = plan->outputs[i];
        if (index < 0 || (size_t)index >= plan->tensor_count)
            return oct_fail(OCTET_BAD_FORMAT, "output %zu is tensor %d of %zu", i, index, plan->tensor_count);
        if (!plan->tensors[index].is_output || plan->tensors[index].form.format != OCT_FORMAT_FP32)
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s cannot be an output", plan->tensors[index].name);
    }
    return OCTET_OK;
}

octet_status oct_plan_check(const oct_plan *plan, const oct_weights *weights, const oct_backend *backend) {
    if (plan->backend == NULL || strcmp(plan->backend, backend->name) != 0)
        return oct_fail(OCTET_MISMATCH, "plan for backend %s, not %s", plan->backend != NULL ? plan->backend : "(none)",
                        backend->name);
    if (plan->batch < 1) return oct_fail(OCTET_BAD_FORMAT, "plan of batch %lld", (long long)plan->batch);
    if (plan->tensor_count < 1 || plan->tensor_count > PLAN_LIMIT || plan->step_count > PLAN_LIMIT)
        return oct_fail(OCTET_LIMIT, "plan of %zu tensors and %zu steps", plan->tensor_count, plan->step_count);
    OCT_TRY(check_tensors(plan, weights));
    OCT_TRY(check_ends(plan));
    for (size_t i = 0; i < plan->step_count; i++) OCT_TRY(check_step(plan, weights, backend, i));
    standing *stands = oct_calloc(plan->tensor_count, sizeof *stands);
    int32_t *last = oct_calloc(plan->tensor_count, sizeof *last);
    octet_status status = OCTET_OK;
    if (stands == NULL || last == NULL) {
        status = oct_fail_memory();
    } else {
        for (size_t i = 0; i < plan->tensor_count; i++) last[i] = -1;
        status = check_flow(plan, stands, last);
    }
    oct_free(stands);
    oct_free(last);
    return status;
}
