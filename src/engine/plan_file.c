/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/plan_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "graph/ops.h"

#define TEXT_LIMIT 4096
/* fewest bytes of a tensor, a step and a constant: bounds counts before memory is asked for */
#define TENSOR_LEAST 47
#define STEP_LEAST 100
/* bits of a step */
#define RESIDUAL 1u
#define SECOND 2u
#define PROBABILITIES 4u

/* ---- writing */

static void put_shape(oct_text *out, const oct_shape *shape) {
    oct_put_u8(out, (uint8_t)shape->rank);
    for (int i = 0; i < shape->rank; i++) oct_put_i64(out, shape->dims[i]);
}

static void put_tensor(oct_text *out, const oct_plan_tensor *tensor) {
    oct_put_text(out, tensor->name);
    put_shape(out, &tensor->shape);
    oct_put_text(out, oct_format_name(tensor->form.format));
    oct_form_put(out, &tensor->form);
    oct_put_i32(out, tensor->form.channel_stride);
    oct_put_u64(out, tensor->offset);
    oct_put_u64(out, tensor->size);
    oct_put_i32(out, tensor->first);
    oct_put_i32(out, tensor->last);
    oct_put_u8(out, tensor->is_output);
}

static void put_attributes(oct_text *out, const oct_attributes *a, bool second) {
    oct_put_i32(out, a->stride_h);
    oct_put_i32(out, a->stride_w);
    oct_put_i32(out, a->pad_top);
    oct_put_i32(out, a->pad_left);
    oct_put_i32(out, a->pad_bottom);
    oct_put_i32(out, a->pad_right);
    oct_put_i32(out, a->groups);
    oct_put_u8(out, (uint8_t)a->activation);
    oct_put_f64(out, a->epsilon);
    oct_put_i32(out, a->heads);
    oct_put_f64(out, a->scale);
    oct_put_i64(out, a->start);
    oct_put_i64(out, a->length);
    put_shape(out, &a->shape);
    oct_put_u8(out, a->has_bias);
    const bool probabilities = a->probabilities != OCT_FORMAT_FP32;
    oct_put_u8(
        out, (uint8_t)((a->has_residual ? RESIDUAL : 0) | (second ? SECOND : 0) | (probabilities ? PROBABILITIES : 0)));
    if (probabilities) oct_put_text(out, oct_format_name(a->probabilities));
}

static void put_step(oct_text *out, const oct_plan_step *step) {
    oct_put_text(out, oct_op_rows[step->op].name);
    oct_put_text(out, step->name);
    oct_put_text(out, step->tactic);
    put_attributes(out, &step->attributes, step->has_second);
    oct_put_u32(out, (uint32_t)step->input_count);
    for (int i = 0; i < step->input_count; i++) {
        oct_put_u8(out, (uint8_t)step->inputs[i].kind);
        oct_put_i32(out, step->inputs[i].index);
    }
    oct_put_i32(out, step->output);
    if (step->has_second) oct_put_i32(out, step->second);
    oct_put_u64(out, step->flops);
    oct_put_u64(out, step->bytes);
}

void oct_plan_write(const oct_plan *plan, oct_text *out) {
    oct_put_text(out, plan->backend);
    oct_put_i64(out, plan->batch);
    oct_put_i32(out, plan->input);
    oct_put_u32(out, (uint32_t)plan->output_count);
    for (size_t i = 0; i < plan->output_count; i++) oct_put_i32(out, plan->outputs[i]);
    oct_put_u32(out, (uint32_t)plan->tensor_count);
    for (size_t i = 0; i < plan->tensor_count; i++) put_tensor(out, &plan->tensors[i]);
    oct_put_u32(out, (uint32_t)plan->step_count);
    for (size_t i = 0; i < plan->step_count; i++) put_step(out, &plan->steps[i]);
    oct_put_u64(out, plan->arena_size);
}

/* ---- reading: `reader` carries where we are and what the failure was, checked once a tensor or step */

typedef struct reader {
    oct_bytes bytes;
    oct_arena *arena;
    const char *name;    /* of the section */
    octet_status status; /* first failure with a text of its own */
} reader;

static octet_status bad(reader *in, const char *what, const char *found, size_t length) {
    if (in->status == OCTET_OK) {
        in->status = oct_fail(OCTET_BAD_FORMAT, "%s: byte %zu: no %s called \"%.*s\"", in->name, in->bytes.at, what,
                              (int)length, found);
    }
    return in->status;
}

static octet_status ended(reader *in) {
    if (in->status != OCTET_OK) return in->status;
    if (!in->bytes.failed) return OCTET_OK;
    in->status = oct_fail(OCTET_BAD_FORMAT, "%s: byte %zu: expected more, or a smaller number", in->name, in->bytes.at);
    return in->status;
}

static const char *get_name(reader *in) {
    size_t length;
    const char *text = oct_get_text(&in->bytes, TEXT_LIMIT, &length);
    if (text == NULL) return "";
    char *kept = oct_arena_strndup(in->arena, text, length);
    if (kept == NULL && in->status == OCTET_OK) in->status = oct_fail_memory();
    return kept != NULL ? kept : "";
}

/* A number below `count`, as u8. */
static unsigned get_choice(reader *in, unsigned count) {
    unsigned value = oct_get_u8(&in->bytes);
    if (value >= count) in->bytes.failed = true;
    return value < count ? value : 0;
}

static oct_shape get_shape(reader *in) {
    oct_shape shape = {.rank = (int)get_choice(in, OCT_RANK + 1)};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = oct_get_i64(&in->bytes);
    return shape;
}

static oct_format get_format(reader *in) {
    size_t length;
    const char *text = oct_get_text(&in->bytes, TEXT_LIMIT, &length);
    for (int i = 0; text != NULL && i < OCT_FORMAT_COUNT; i++) {
        const char *name = oct_format_name((oct_format)i);
        if (strlen(name) == length && memcmp(name, text, length) == 0) return (oct_format)i;
    }
    if (text != NULL) bad(in, "format", text, length);
    return OCT_FORMAT_FP32;
}

static oct_op get_op(reader *in) {
    size_t length;
    const char *text = oct_get_text(&in->bytes, TEXT_LIMIT, &length);
    for (int i = 0; text != NULL && i < OCT_OP_COUNT; i++) {
        if (strlen(oct_op_rows[i].name) == length && memcmp(oct_op_rows[i].name, text, length) == 0) return (oct_op)i;
    }
    if (text != NULL) bad(in, "op", text, length);
    return (oct_op)0;
}

static void get_tensor(reader *in, oct_plan_tensor *tensor) {
    tensor->name = get_name(in);
    tensor->shape = get_shape(in);
    tensor->form = oct_form_get(&in->bytes, get_format(in));
    tensor->form.channel_stride = oct_get_i32(&in->bytes);
    tensor->offset = oct_get_u64(&in->bytes);
    tensor->size = oct_get_u64(&in->bytes);
    tensor->first = oct_get_i32(&in->bytes);
    tensor->last = oct_get_i32(&in->bytes);
    tensor->is_output = get_choice(in, 2) != 0;
}

/* Whether a second output follows. */
static bool get_attributes(reader *in, oct_attributes *a) {
    a->stride_h = oct_get_i32(&in->bytes);
    a->stride_w = oct_get_i32(&in->bytes);
    a->pad_top = oct_get_i32(&in->bytes);
    a->pad_left = oct_get_i32(&in->bytes);
    a->pad_bottom = oct_get_i32(&in->bytes);
    a->pad_right = oct_get_i32(&in->bytes);
    a->groups = oct_get_i32(&in->bytes);
    a->activation = (oct_activation)get_choice(in, OCT_ACTIVATION_COUNT);
    a->epsilon = oct_get_f64(&in->bytes);
    a->heads = oct_get_i32(&in->bytes);
    a->scale = oct_get_f64(&in->bytes);
    a->start = oct_get_i64(&in->bytes);
    a->length = oct_get_i64(&in->bytes);
    a->shape = get_shape(in);
    a->has_bias = get_choice(in, 2) != 0;
    const unsigned bits = get_choice(in, (RESIDUAL | SECOND | PROBABILITIES) + 1);
    a->has_residual = (bits & RESIDUAL) != 0;
    if ((bits & PROBABILITIES) != 0) {
        a->probabilities = get_format(in);
        if (a->probabilities == OCT_FORMAT_FP32) in->bytes.failed = true;
    }
    return (bits & SECOND) != 0;
}

static void get_step(reader *in, oct_plan_step *step) {
    step->op = get_op(in);
    step->name = get_name(in);
    step->tactic = get_name(in);
    step->has_second = get_attributes(in, &step->attributes);
    size_t inputs = oct_get_u32(&in->bytes);
    if (inputs > OCT_PLAN_INPUTS) in->bytes.failed = true;
    step->input_count = in->bytes.failed ? 0 : (int)inputs;
    for (int i = 0; i < step->input_count; i++) {
        step->inputs[i].kind = (oct_operand_kind)get_choice(in, OCT_OPERAND_CONSTANT + 1);
        step->inputs[i].index = oct_get_i32(&in->bytes);
    }
    step->output = oct_get_i32(&in->bytes);
    step->second = step->has_second ? oct_get_i32(&in->bytes) : OCT_NONE;
    step->flops = oct_get_u64(&in->bytes);
    step->bytes = oct_get_u64(&in->bytes);
}

/* `*array` gets room for a count read here. */
static size_t get_array(reader *in, size_t least, size_t element, void **array) {
    size_t count = oct_get_count(&in->bytes, least);
    *array = oct_calloc(count, element);
    if (*array == NULL && in->status == OCTET_OK) in->status = oct_fail_memory();
    return *array != NULL ? count : 0;
}

static octet_status get_plan(reader *in, oct_plan *plan) {
    plan->backend = get_name(in);
    plan->batch = oct_get_i64(&in->bytes);
    plan->input = oct_get_i32(&in->bytes);
    plan->output_count = get_array(in, 4, sizeof *plan->outputs, (void **)&plan->outputs);
    for (size_t i = 0; i < plan->output_count; i++) plan->outputs[i] = oct_get_i32(&in->bytes);
    plan->tensor_count = get_array(in, TENSOR_LEAST, sizeof *plan->tensors, (void **)&plan->tensors);
    for (size_t i = 0; i < plan->tensor_count && ended(in) == OCTET_OK; i++) get_tensor(in, &plan->tensors[i]);
    plan->step_count = get_array(in, STEP_LEAST, sizeof *plan->steps, (void **)&plan->steps);
    for (size_t i = 0; i < plan->step_count && ended(in) == OCTET_OK; i++) get_step(in, &plan->steps[i]);
    plan->arena_size = oct_get_u64(&in->bytes);
    OCT_TRY(ended(in));
    if (in->bytes.at != in->bytes.size) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: %zu bytes after the plan", in->name, in->bytes.size - in->bytes.at);
    }
    return OCTET_OK;
}

octet_status oct_plan_read(oct_plan **plan, const char *name, const uint8_t *data, size_t size) {
    *plan = NULL;
    oct_plan *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    reader in = {.bytes = {.data = data, .size = size}, .arena = &made->arena, .name = name, .status = OCTET_OK};
    octet_status status = get_plan(&in, made);
    if (status != OCTET_OK) {
        oct_plan_free(made);
        return status;
    }
    *plan = made;
    return OCTET_OK;
}
