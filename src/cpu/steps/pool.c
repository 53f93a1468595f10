/* SPDX-License-Identifier: Apache-2.0 */
/* Global pool: an item a picture and CHANNELS of its channels. */
#include "cpu/kernels/pool_f32.h"
#include "cpu/steps/shared.h"

#define CHANNELS 256

typedef struct pooling {
    oct_packed head;
    oct_pool_f32_body *body;
    uint64_t in, out;
    int64_t batch, height, width, channels, in_stride, out_stride;
} pooling;

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)site, (void)kernel;
    choice->packed = sizeof(pooling);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    pooling *p = packed;
    const oct_strided x = oct_site_input(site, 0), out = oct_site_output(site);
    *p = (pooling){.head = p->head,
                   .body = (oct_pool_f32_body *)kernel->body,
                   .in = x.offset,
                   .out = out.offset,
                   .batch = x.shape.dims[0],
                   .height = x.shape.dims[1],
                   .width = x.shape.dims[2],
                   .channels = x.channels,
                   .in_stride = x.stride,
                   .out_stride = out.stride};
}

typedef struct job {
    const pooling *p;
    const float *in;
    float *out;
} job;

static void item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const pooling *p = j->p;
    const int64_t parts = oct_ceil_div(p->channels, CHANNELS);
    const int64_t n = (int64_t)index / parts, c = (int64_t)index % parts * CHANNELS;
    const oct_pool_f32 one = {.in = j->in + n * p->height * p->width * p->in_stride + c,
                              .height = p->height,
                              .width = p->width,
                              .in_stride = p->in_stride,
                              .out = j->out + n * p->out_stride + c,
                              .channels = oct_least(CHANNELS, p->channels - c)};
    p->body(&one);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const pooling *p = packed;
    const job j = {p, oct_at(arena, p->in), oct_at(arena, p->out)};
    oct_items_run(pool, (size_t)(p->batch * oct_ceil_div(p->channels, CHANNELS)), item, &j, scratch, 0);
}

const oct_driver oct_driver_pool = {refuses, size, pack, run, oct_forms_f32};
