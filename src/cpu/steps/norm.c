/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm and batch norm: rows in blocks, two vectors of constants. */
#include <math.h>
#include <string.h>

#include "cpu/kernels/batch_norm_f32.h"
#include "cpu/kernels/layer_norm_f32.h"
#include "cpu/steps/shared.h"

#define ITEM_NUMBERS ((int64_t)1 << 14)

typedef struct norm {
    oct_packed head;
    oct_body *body;
    oct_storing storing;
    uint64_t in;
    int64_t rows, channels, in_stride, out_stride, block;
    float epsilon;
} norm;

static const char *refuses_layer(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, 1, 2);
}

static const char *refuses_batch(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, 1, 4);
}

static void describe(const oct_site *site, const oct_kernel *kernel, norm *n) {
    const oct_packed head = n->head;
    const oct_strided x = oct_site_input(site, 0);
    *n = (norm){.head = head,
                .body = kernel->body,
                .in = x.offset,
                .storing = oct_site_storing(site, kernel->isa),
                .rows = x.rows,
                .channels = x.channels,
                .in_stride = x.stride,
                .out_stride = x.channels,
                .block = oct_ceil_div(ITEM_NUMBERS, x.channels),
                .epsilon = (float)site->step->attributes.epsilon};
    if (n->storing.wide) n->out_stride = n->storing.stride;
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    norm n = {0};
    describe(site, kernel, &n);
    choice->worker = oct_storing_scratch(&n.storing, n.block, n.channels);
    choice->packed = oct_round_up(sizeof(norm)) + (uint64_t)(2 * oct_site_output(site).channels) * sizeof(float);
}

static void pack_layer(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    norm *n = packed;
    describe(site, kernel, n);
    float *gamma = oct_packed_floats(packed, sizeof *n);
    memcpy(gamma, oct_site_input(site, 1).constant, (size_t)n->channels * sizeof *gamma);
    memcpy(gamma + n->channels, oct_site_input(site, 2).constant, (size_t)n->channels * sizeof *gamma);
}

static void pack_batch(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    norm *n = packed;
    describe(site, kernel, n);
    float *scale = oct_packed_floats(packed, sizeof *n), *shift = scale + n->channels;
    const float *gamma = oct_site_input(site, 1).constant, *beta = oct_site_input(site, 2).constant;
    const float *mean = oct_site_input(site, 3).constant, *variance = oct_site_input(site, 4).constant;
    for (int64_t c = 0; c < n->channels; c++) {
        const double factor = (double)gamma[c] / sqrt((double)variance[c] + site->step->attributes.epsilon);
        scale[c] = (float)factor;
        shift[c] = (float)((double)beta[c] - (double)mean[c] * factor);
    }
}

typedef struct job {
    const norm *n;
    uint8_t *arena;
    const float *in, *first, *second;
} job;

/* Where row `row` of the output goes, or a block of rows in the worker's scratch. */
static float *out_at(const job *j, int64_t row, void *worker) {
    const oct_storing *s = &j->n->storing;
    return s->wide ? oct_at(j->arena, s->out) + row * s->stride : worker;
}

static void layer_item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const norm *n = j->n;
    const int64_t row = (int64_t)index * n->block;
    const oct_layer_norm_f32 block = {.in = j->in + row * n->in_stride,
                                      .in_stride = n->in_stride,
                                      .gamma = j->first,
                                      .beta = j->second,
                                      .epsilon = n->epsilon,
                                      .out = out_at(j, row, worker),
                                      .out_stride = n->out_stride,
                                      .rows = oct_least(n->block, n->rows - row),
                                      .channels = n->channels};
    ((oct_layer_norm_f32_body *)n->body)(&block);
    oct_store(&n->storing, j->arena, block.out, block.out_stride, row, 0, block.rows, block.channels);
}

static void batch_item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const norm *n = j->n;
    const int64_t row = (int64_t)index * n->block;
    const oct_batch_norm_f32 block = {.in = j->in + row * n->in_stride,
                                      .scale = j->first,
                                      .shift = j->second,
                                      .out = out_at(j, row, worker),
                                      .rows = oct_least(n->block, n->rows - row),
                                      .channels = n->channels,
                                      .in_stride = n->in_stride,
                                      .out_stride = n->out_stride};
    ((oct_batch_norm_f32_body *)n->body)(&block);
    oct_store(&n->storing, j->arena, block.out, block.out_stride, row, 0, block.rows, block.channels);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool, oct_item item) {
    const norm *n = packed;
    const float *first = oct_packed_floats_const(packed, sizeof *n);
    const job j = {n, arena, oct_at(arena, n->in), first, first + n->channels};
    oct_items_run(pool, (size_t)oct_ceil_div(n->rows, n->block), item, &j, scratch,
                  (size_t)oct_storing_scratch(&n->storing, n->block, n->channels));
}

static void run_layer(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    run(packed, arena, scratch, pool, layer_item);
}

static void run_batch(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    run(packed, arena, scratch, pool, batch_item);
}

const oct_driver oct_driver_layer_norm = {refuses_layer, size, pack_layer, run_layer, oct_forms_float};
const oct_driver oct_driver_batch_norm = {refuses_batch, size, pack_batch, run_batch, oct_forms_float};
