/* SPDX-License-Identifier: Apache-2.0 */
/* Global pool: an item a picture and CHANNELS of its channels, or all where they share a scale. */
#include "cpu/kernels/pool_f32.h"
#include "cpu/steps/shared.h"

#define CHANNELS 256

typedef struct pooling {
    oct_packed head;
    oct_pool_f32_body *body;
    oct_storing storing;
    uint64_t in;
    int64_t batch, height, width, channels, part, in_stride;
} pooling;

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static void describe(const oct_site *site, const oct_kernel *kernel, pooling *p) {
    const oct_strided x = oct_site_input(site, 0);
    *p = (pooling){.head = p->head,
                   .body = (oct_pool_f32_body *)kernel->body,
                   .storing = oct_site_storing(site, kernel->isa),
                   .in = x.offset,
                   .batch = x.shape.dims[0],
                   .height = x.shape.dims[1],
                   .width = x.shape.dims[2],
                   .channels = x.channels,
                   .in_stride = x.stride};
    p->part = p->storing.whole_rows ? p->channels : CHANNELS;
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    pooling p = {0};
    describe(site, kernel, &p);
    choice->packed = sizeof p;
    choice->worker = oct_storing_scratch(&p.storing, 1, p.part);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    describe(site, kernel, packed);
}

typedef struct job {
    const pooling *p;
    uint8_t *arena;
    const float *in;
} job;

static void item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const pooling *p = j->p;
    const oct_storing *s = &p->storing;
    const int64_t parts = oct_ceil_div(p->channels, p->part);
    const int64_t n = (int64_t)index / parts, c = (int64_t)index % parts * p->part;
    const oct_pool_f32 one = {.in = j->in + n * p->height * p->width * p->in_stride + c,
                              .height = p->height,
                              .width = p->width,
                              .in_stride = p->in_stride,
                              .out = s->wide ? oct_at(j->arena, s->out) + n * s->stride + c : worker,
                              .channels = oct_least(p->part, p->channels - c)};
    p->body(&one);
    oct_store(s, j->arena, one.out, one.channels, n, c, 1, one.channels);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const pooling *p = packed;
    const job j = {p, arena, oct_at(arena, p->in)};
    oct_items_run(pool, (size_t)(p->batch * oct_ceil_div(p->channels, p->part)), item, &j, scratch,
                  (size_t)oct_storing_scratch(&p->storing, 1, p->part));
}

const oct_driver oct_driver_pool = {refuses, size, pack, run, oct_forms_float};
