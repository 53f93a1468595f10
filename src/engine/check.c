/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is data from outside: all of it is checked before anything runs.
 *
 * Memory is checked by walking the steps with the set of tensors whose contents still stand. A step makes its output
 * stand and what lies under it fall; reading a fallen tensor, or one not made yet, is the error. So a cycle, a step out
 * of order and two live tensors in one place are found by one rule, whatever the lifetimes in the plan claim; those are
 * checked apart. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/internal.h"
#include "graph/stored.h"

#define PLAN_LIMIT ((size_t)1 << 20) /* tensors, steps */

/* What became of each tensor so far. */
typedef enum standing { NOT_MADE, STANDS, FALLEN } standing;

/* A vector of the form: a constant of `count` numbers, finite and at least `least`. */
static octet_status check_vector(const oct_plan_tensor *tensor, const oct_weights *weights, int32_t index,
                                 float least) {
    if (index < 0 || (size_t)index >= weights->count)
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: its form names constant %d of %zu", tensor->name, index,
                        weights->count);
    const oct_constant *constant = &weights->items[index];
    const int64_t count = tensor->shape.rank > 0 ? tensor->shape.dims[tensor->shape.rank - 1] : 0;
    if (constant->data == NULL || constant->shape.rank != 1 || constant->shape.dims[0] != count)
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: %s is no vector of its channels", tensor->name, constant->name);
    for (int64_t i = 0; i < count; i++)
        if (!(constant->data[i] >= least && isfinite(constant->data[i])))
            return oct_fail(OCTET_BAD_FORMAT, "tensor %s: %s: number %lld is %g", tensor->name, constant->name,
                            (long long)i, (double)constant->data[i]);
    return OCTET_OK;
}

static bool block_is_possible(const oct_form *form) {
    if (form->granularity != OCT_PER_BLOCK) return form->block == 0;
    if (form->format == OCT_FORMAT_MXFP8) return form->block == OCT_MXFP8_BLOCK;
    if (form->format == OCT_FORMAT_NVFP4) return form->block == OCT_NVFP4_BLOCK;
    return form->block > 0;
}

/* What kind of scale goes with what: graph/stored.h. Scales of blocks and channels are not kept beside codes. */
static bool granularity_is_possible(const oct_form *form) {
    const bool scaled = oct_format_has_scale(form->format);
    switch (form->granularity) {
    case OCT_PER_TENSOR:
        return form->format != OCT_FORMAT_MXFP8 && form->format != OCT_FORMAT_NVFP4;
    case OCT_PER_CHANNEL:
        return form->held_wide && (scaled || form->format == OCT_FORMAT_UINT8);
    case OCT_PER_ROW:
        return scaled;
    case OCT_PER_BLOCK:
        return form->held_wide && (scaled || form->format == OCT_FORMAT_MXFP8 || form->format == OCT_FORMAT_NVFP4);
    }
    return false;
}

static octet_status check_form(const oct_plan_tensor *tensor, const oct_weights *weights) {
    const oct_form *form = &tensor->form;
    if (oct_format_get(form->format) == NULL || !oct_format_is_stored(form->format))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: activations are not stored in %s", tensor->name,
                        oct_format_name(form->format));
    if (!granularity_is_possible(form) || !block_is_possible(form) ||
        (form->scales != OCT_NONE) != (form->granularity == OCT_PER_CHANNEL) ||
        (unsigned)form->scale_rule > OCT_E8M0_CEIL || (form->held_wide && form->format == OCT_FORMAT_FP32) ||
        (form->factors != OCT_NONE && form->format == OCT_FORMAT_FP32))
        return oct_fail(OCTET_BAD_FORMAT, "tensor %s: no scale of this kind goes with %s", tensor->name,
                        oct_format_name(form->format));
    if (form->scales != OCT_NONE) OCT_TRY(check_vector(tensor, weights, form->scales, OCT_SCALE_LEAST));
    if (form->factors != OCT_NONE) OCT_TRY(check_vector(tensor, weights, form->factors, OCT_SCALE_LEAST));
    const float least = form->format == OCT_FORMAT_NVFP4 ? FLT_TRUE_MIN : OCT_SCALE_LEAST;
    if (!(form->scale >= least && isfinite(form->scale)))
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

static const oct_form *form_of(const oct_plan *plan, const oct_weights *weights, oct_operand operand) {
    return operand.kind == OCT_OPERAND_TENSOR ? &plan->tensors[operand.index].form
                                              : &weights->items[operand.index].form;
}

/* What only moves numbers stores the form it reads, or says nothing of it. */
static octet_status check_moved(const oct_plan *plan, const oct_weights *weights, const oct_plan_step *step) {
    const oct_form *to = &plan->tensors[step->output].form;
    if (step->has_second) return oct_fail(OCTET_BAD_FORMAT, "step %s: two forms of what it moves", step->name);
    for (int j = 0; j < step->input_count && to->format != OCT_FORMAT_FP32; j++) {
        const oct_form *from = form_of(plan, weights, step->inputs[j]);
        if (from->format != to->format || from->granularity != to->granularity || from->scale != to->scale ||
            from->zero_point != to->zero_point || to->granularity != OCT_PER_TENSOR)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: moves %s to %s", step->name, oct_format_name(from->format),
                            oct_format_name(to->format));
    }
    return OCTET_OK;
}

/* The forms a step reads and stores go together, by the rules of the graph (graph/stored.h). */
static octet_status check_forms(const oct_plan *plan, const oct_weights *weights, const oct_plan_step *step) {
    const oct_plan_tensor *out = &plan->tensors[step->output];
    if (step->has_second) {
        const oct_plan_tensor *second = &plan->tensors[step->second];
        if (step->second == step->output || second->is_output || !oct_shape_equal(&second->shape, &out->shape) ||
            second->form.format == OCT_FORMAT_FP32)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: %s and %s are not two forms of one value", step->name,
                            out->name, second->name);
    }
    if (step->op == OCT_OP_QUANTIZE && (out->form.format == OCT_FORMAT_FP32 || step->has_second))
        return oct_fail(OCTET_BAD_FORMAT, "step %s: quantizes to %s", step->name, oct_format_name(out->form.format));
    if (step->attributes.probabilities != OCT_FORMAT_FP32 &&
        (step->op != OCT_OP_ATTENTION || !oct_stored_is_probability(step->attributes.probabilities)))
        return oct_fail(OCTET_BAD_FORMAT, "step %s: probabilities in %s", step->name,
                        oct_format_name(step->attributes.probabilities));
    for (int j = 0; j < step->input_count; j++) {
        const oct_operand operand = step->inputs[j];
        if (operand.kind != OCT_OPERAND_CONSTANT || oct_form_is_float(&weights->items[operand.index].form)) continue;
        if ((step->op != OCT_OP_CONV2D && step->op != OCT_OP_LINEAR) || j != 1)
            return oct_fail(OCTET_BAD_FORMAT, "step %s: reads %s, a constant of codes", step->name,
                            weights->items[operand.index].name);
    }
    return oct_op_moves(step->op) ? check_moved(plan, weights, step) : OCTET_OK;
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
    if (!oct_form_is_float(&in->form) || !oct_form_is_float(&out->form) ||
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
            out->form.channel_stride != out->shape.dims[out->shape.rank - 1] ||
            oct_form_is_float(&in->form) != oct_form_is_float(&out->form))
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

static octet_status check_ends(const oct_plan *plan, const oct_backend *backend) {
    if (plan->input < 0 || (size_t)plan->input >= plan->tensor_count)
        return oct_fail(OCTET_BAD_FORMAT, "the input is tensor %d of %zu", plan->input, plan->tensor_count);
    const oct_plan_tensor *input = &plan->tensors[plan->input];
    if (input->first != -1) return oct_fail(OCTET_BAD_FORMAT, "tensor %s: the input is made by no step", input->name);
    const bool held = oct_form_is_float(&input->form) || backend->run == NULL; /* else the device rounds what it gets */
    if (!held || input->form.factors != OCT_NONE ||
        (input->form.granularity != OCT_PER_TENSOR && input->form.granularity != OCT_PER_CHANNEL))
        return oct_fail(OCTET_BAD_FORMAT, "the input is not float32 that comes out of rounding the same again");
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
    OCT_TRY(check_ends(plan, backend));
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
