/* SPDX-License-Identifier: Apache-2.0 */
/* A case laid out in memory. Between and around the tensors, and behind the scratch, lies a guard pattern; the output
 * and the scratch begin as NaN. After a run every byte outside the output must be what it was, padding lanes of the
 * output zero. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/random.h"
#include "opcheck/opcheck.h"

#define GUARD 256
#define GUARD_BYTE 0xa5

static float draw_number(uint64_t *random, fill f) {
    const float plain = oct_random_signed(random);
    const uint64_t die = oct_random_below(random, 8);
    switch (f) {
    case FILL_ZERO:
        return die < 4 ? 0.0f : (die < 6 ? -0.0f : plain);
    case FILL_SUBNORMAL:
        return die < 6 ? plain * 0x1p-130f : plain;
    case FILL_LARGE:
        return die < 4 ? plain * 0x1p60f : plain;
    case FILL_TIES:
        return (float)((int)oct_random_below(random, 17) - 8) * 0.5f;
    case FILL_NAN:
        return oct_random_below(random, 64) == 0 ? NAN : plain;
    case FILL_INFINITY:
        return oct_random_below(random, 64) == 0 ? (die < 4 ? INFINITY : -INFINITY) : plain;
    default:
        return plain;
    }
}

/* Constants are finite (the graph checks it), variances positive. */
static float *draw_array(bed *b, int input, int64_t count) {
    float *data = oct_alloc((size_t)count * sizeof *data);
    if (data == NULL) return NULL;
    fill f = b->c->fill;
    if (b->c->constant[input] && (f == FILL_NAN || f == FILL_INFINITY)) f = FILL_RANDOM;
    for (int64_t i = 0; i < count; i++) {
        data[i] = draw_number(&b->random, f);
        if (b->c->op == OCT_OP_BATCH_NORM && input == 4) data[i] = fabsf(data[i]) + 0.01f;
    }
    return data;
}

static int64_t rows_of(const oct_shape *shape) {
    return oct_shape_count(shape) / shape->dims[shape->rank - 1];
}

static uint64_t tensor_bytes(const oct_plan_tensor *t) {
    const uint64_t scales = oct_form_keeps_row_scales(&t->form) ? (uint64_t)rows_of(&t->shape) * sizeof(float) : 0;
    return oct_tensor_scales(t) + (scales + 63) / 64 * 64;
}

/* The next tensor, behind a guard. */
static oct_plan_tensor place(bed *b, const oct_shape *shape, const oct_form *form, int padding) {
    oct_plan_tensor t = {.name = "tensor", .shape = *shape, .form = *form};
    t.form.channel_stride = (int32_t)shape->dims[shape->rank - 1] + padding;
    t.offset = b->arena_size + GUARD;
    t.size = tensor_bytes(&t);
    b->arena_size = t.offset + t.size;
    return t;
}

/* Vector `v` of the forms stored, about `about`; the constant that it is. */
static int32_t draw_vector(bed *b, int v, int64_t channels, float about) {
    const int32_t index = OCT_NODE_INPUTS + 1 + v;
    b->vectors[v] = oct_alloc((size_t)channels * sizeof(float));
    if (b->vectors[v] == NULL) abort();
    for (int64_t i = 0; i < channels; i++)
        b->vectors[v][i] = about * (0.5f + (float)oct_random_below(&b->random, 1000) * 0.001f);
    b->constants[index] = (oct_constant){.name = "vector",
                                         .shape = oct_shape_of(1, (const int64_t[]){channels}),
                                         .data = b->vectors[v],
                                         .form = oct_form_of(OCT_FORMAT_FP32)};
    return index;
}

/* The forms of the output, with vectors. */
static void place_output(bed *b, const oct_shape *shape, int f) {
    const opcase *c = b->c;
    const int64_t channels = shape->dims[shape->rank - 1];
    oct_plan_tensor *t = &b->tensors[OCT_NODE_INPUTS + f];
    *t = place(b, shape, &c->out_forms[f], c->out_padding);
    if (t->form.granularity == OCT_PER_CHANNEL) t->form.scales = draw_vector(b, 2 * f, channels, t->form.scale);
    if (c->out_factors[f]) t->form.factors = draw_vector(b, 2 * f + 1, channels, 1.0f);
}

/* A constant: as it is, or as codes, which the array then holds the numbers of. */
static void make_constant(bed *b, int i) {
    const oct_form *form = &b->c->forms[i];
    const oct_shape *shape = &b->c->shapes[i];
    oct_stored *stored = &b->stored[i];
    oct_constant *constant = &b->constants[i];
    *constant = (oct_constant){.name = "constant", .shape = *shape, .form = *form};
    constant->form.scales = OCT_NONE;
    *stored = (oct_stored){.array = b->arrays[i], .form = &constant->form};
    if (form->format == OCT_FORMAT_FP32) {
        constant->data = b->arrays[i].data;
        return;
    }
    const bool channels = form->granularity == OCT_PER_CHANNEL;
    const size_t count = (size_t)oct_shape_count(shape), groups = channels ? (size_t)shape->dims[0] : 1;
    b->scales[i] = oct_alloc(groups * sizeof(float));
    stored->codes = oct_alloc(count);
    if (b->scales[i] == NULL || stored->codes == NULL) abort();
    oct_scaled_scales(form->format, b->arrays[i].data, groups, count / groups, count / groups, b->scales[i]);
    constant->codes = (uint8_t *)stored->codes;
    oct_scaled_encode(form->format, b->arrays[i].data, groups, count / groups, count / groups, b->scales[i],
                      constant->codes);
    oct_scaled_decode(form->format, constant->codes, groups, count / groups, count / groups, b->scales[i],
                      b->arrays[i].data);
    constant->form.scale = b->scales[i][0];
    if (!channels) return;
    constant->form.scales = OCT_NODE_INPUTS;
    stored->scales = b->scales[i];
    b->constants[OCT_NODE_INPUTS] = (oct_constant){.name = "scales",
                                                   .shape = oct_shape_of(1, (const int64_t[]){(int64_t)groups}),
                                                   .data = b->scales[i],
                                                   .form = oct_form_of(OCT_FORMAT_FP32)};
}

/* An activation where it lies, fp32 or int8 codes, and what is stored of it as the array. */
static void make_tensor(bed *b, int i) {
    const oct_plan_tensor *t = &b->tensors[i];
    uint8_t *base = b->pristine + t->offset;
    float *x = b->arrays[i].data;
    const int64_t channels = t->shape.dims[t->shape.rank - 1], rows = rows_of(&t->shape);
    const int64_t stride = t->form.channel_stride;
    oct_stored *stored = &b->stored[i];
    b->scales[i] = oct_alloc((size_t)rows * sizeof(float));
    stored->codes = oct_alloc((size_t)(rows * channels));
    if (b->scales[i] == NULL || stored->codes == NULL) abort();
    const oct_rounding rounding = {.form = &t->form};
    const bool coded = !oct_form_is_float(&t->form);
    if (coded) oct_stored_round(&rounding, rows, channels, x, x, stored->codes, b->scales[i]);
    stored->array = b->arrays[i];
    stored->form = &t->form;
    stored->scales = t->form.granularity == OCT_PER_ROW ? b->scales[i] : NULL;
    memset(base, 0, (size_t)(rows * stride) * (coded ? 1 : sizeof(float)));
    for (int64_t r = 0; r < rows; r++) {
        if (coded)
            memcpy(base + r * stride, stored->codes + r * channels, (size_t)channels);
        else
            memcpy(base + (size_t)(r * stride) * sizeof(float), x + r * channels, (size_t)channels * sizeof(float));
    }
    if (stored->scales != NULL) memcpy(base + oct_tensor_scales(t), stored->scales, (size_t)rows * sizeof(float));
}

static void lay_out(bed *b, const oct_shape *out) {
    const opcase *c = b->c;
    for (int i = 0; i < c->count; i++) {
        b->step.inputs[i].index = i;
        b->step.inputs[i].kind = c->constant[i] ? OCT_OPERAND_CONSTANT : OCT_OPERAND_TENSOR;
        b->tensors[i] = place(b, &c->shapes[i], &c->forms[i], c->padding[i]);
    }
    for (int f = 0; f < c->out_count; f++) place_output(b, out, f);
    if (c->in_place >= 0) b->tensors[OCT_NODE_INPUTS].offset = b->tensors[c->in_place].offset;
    b->arena_size += GUARD;
    b->step.op = c->op;
    b->step.name = "case";
    b->step.attributes = c->attributes;
    b->step.input_count = c->count;
    b->step.output = OCT_NODE_INPUTS;
    b->step.has_second = c->out_count > 1;
    b->step.second = b->step.has_second ? OCT_NODE_INPUTS + 1 : OCT_NONE;
    b->step.flops = UINT64_MAX; /* so that the threads given are used (cpu/backend.c) */
    b->plan = (oct_plan){.backend = "cpu",
                         .batch = out->dims[0],
                         .tensors = b->tensors,
                         .tensor_count = (size_t)(OCT_NODE_INPUTS + c->out_count),
                         .steps = &b->step,
                         .step_count = 1,
                         .arena_size = b->arena_size};
}

bool bed_make(bed *b, const opcase *c, bool reference) {
    memset(b, 0, sizeof *b);
    b->c = c;
    b->random = c->seed;
    oct_shape out;
    if (!case_shape(c, &out)) return false;
    lay_out(b, &out);
    b->random = c->seed; /* the inputs do not depend on what is stored */
    b->weights = (oct_weights){.items = b->constants, .count = OCT_NODE_INPUTS + 5, .references = 1};
    b->arena = oct_alloc(b->arena_size);
    b->pristine = oct_alloc(b->arena_size);
    b->reference = (oct_array){out, oct_alloc((size_t)oct_shape_count(&out) * sizeof(float))};
    b->terms = (oct_array){out, oct_alloc((size_t)oct_shape_count(&out) * sizeof(float))};
    if (b->arena == NULL || b->pristine == NULL || b->reference.data == NULL || b->terms.data == NULL) abort();
    memset(b->pristine, GUARD_BYTE, b->arena_size);
    for (int f = c->in_place < 0 ? 0 : 1; f < c->out_count; f++)
        memset(b->pristine + b->tensors[OCT_NODE_INPUTS + f].offset, 0xff, b->tensors[OCT_NODE_INPUTS + f].size);
    for (int i = 0; i < c->count; i++) {
        b->arrays[i] = (oct_array){c->shapes[i], draw_array(b, i, oct_shape_count(&c->shapes[i]))};
        if (b->arrays[i].data == NULL) abort();
        if (c->constant[i])
            make_constant(b, i);
        else
            make_tensor(b, i);
    }
    if (reference) reference_make(b);
    b->has_reference = reference;
    return true;
}

void bed_free(bed *b) {
    for (int i = 0; i < b->c->count; i++) {
        oct_free(b->arrays[i].data);
        oct_free(b->stored[i].codes);
        oct_free(b->scales[i]);
    }
    for (int v = 0; v < 4; v++) oct_free(b->vectors[v]);
    oct_free(b->arena);
    oct_free(b->pristine);
    oct_free(b->reference.data);
    oct_free(b->terms.data);
}

/* Nothing but the outputs' lanes, and their rows' scales, may differ from before; padding is zero. */
static const char *check_guards(bed *b) {
    static char text[80];
    for (int f = 0; f < b->c->out_count; f++) {
        const oct_plan_tensor *out = &b->tensors[OCT_NODE_INPUTS + f];
        const int64_t bytes = (int64_t)oct_form_bits(&out->form) / 8, rows = rows_of(&out->shape);
        const int64_t channels = out->shape.dims[out->shape.rank - 1] * bytes;
        const int64_t stride = out->form.channel_stride * bytes;
        uint8_t *at = b->arena + out->offset;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = channels; i < stride; i++)
                if (at[r * stride + i] != 0) return "padding lanes are not zero";
        /* then all of it is put back */
        memcpy(at, b->pristine + out->offset, (size_t)(rows * stride));
        const uint64_t scales = oct_tensor_scales(out);
        if (oct_form_keeps_row_scales(&out->form))
            memcpy(at + scales, b->pristine + out->offset + scales, (size_t)rows * sizeof(float));
    }
    for (size_t i = 0; i < b->arena_size; i++) {
        if (b->arena[i] == b->pristine[i]) continue;
        snprintf(text, sizeof text, "wrote outside its outputs, %lld bytes from the first",
                 (long long)i - (long long)b->tensors[OCT_NODE_INPUTS].offset);
        return text;
    }
    return NULL;
}

/* The step made ready: packed weights and scratch. */
typedef struct ready {
    void *packed;
    uint8_t *scratch;
    size_t scratch_size;
} ready;

static const char *make_ready(bed *b, const oct_kernel *kernel, oct_pool *pool, ready *r) {
    const oct_backend *backend = oct_cpu_backend();
    oct_tactic_choice choice;
    memset(r, 0, sizeof *r);
    if (backend->choose(&b->plan, &b->weights, 0, "", kernel->name, &choice, NULL) != OCTET_OK) return oct_error_fact();
    b->step.tactic = choice.tactic;
    const uint64_t threads = pool != NULL ? oct_pool_threads(pool) : 1;
    r->scratch_size = (choice.scratch + 63) / 64 * 64 + (choice.worker + 63) / 64 * 64 * threads;
    r->packed = oct_calloc(1, choice.packed);
    r->scratch = oct_alloc(r->scratch_size + GUARD);
    if (r->packed == NULL || r->scratch == NULL) abort();
    memset(r->scratch, 0xff, r->scratch_size);
    memset(r->scratch + r->scratch_size, GUARD_BYTE, GUARD);
    if (backend->pack(&b->plan, &b->weights, 0, r->packed, pool) != OCTET_OK) return oct_error_fact();
    return NULL;
}

const char *bed_run(bed *b, const oct_kernel *kernel, oct_pool *pool, float *out) {
    ready r;
    const char *error = make_ready(b, kernel, pool, &r);
    if (error == NULL) {
        memcpy(b->arena, b->pristine, b->arena_size);
        oct_cpu_backend()->run(&b->plan, 0, r.packed, b->arena, r.scratch, pool);
        const int64_t count = oct_shape_count(&b->reference.shape);
        for (int f = 0; f < b->c->out_count; f++) {
            const oct_plan_tensor *t = &b->tensors[OCT_NODE_INPUTS + f];
            oct_tensor_read(t, b->arena + t->offset, out + f * count);
        }
        error = check_guards(b);
        for (size_t i = 0; i < GUARD && error == NULL; i++)
            if (r.scratch[r.scratch_size + i] != GUARD_BYTE) error = "wrote behind its scratch";
    }
    oct_free(r.packed);
    oct_free(r.scratch);
    return error;
}

/* Of this thread alone: what others take on a shared machine does not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The shortest of many runs: on a shared machine the steadiest figure. */
double bed_time(bed *b, const oct_kernel *kernel, int runs) {
    enum { MOST = 101 };
    double least = INFINITY;
    ready r;
    if (make_ready(b, kernel, NULL, &r) != NULL) return NAN;
    memcpy(b->arena, b->pristine, b->arena_size);
    int count = 0;
    const double begin = now();
    while (count < MOST && (count < runs || now() - begin < 0.2)) {
        const double start = now();
        oct_cpu_backend()->run(&b->plan, 0, r.packed, b->arena, r.scratch, NULL);
        const double seconds = now() - start;
        if (seconds < least) least = seconds;
        count++;
    }
    oct_free(r.packed);
    oct_free(r.scratch);
    return least;
}
