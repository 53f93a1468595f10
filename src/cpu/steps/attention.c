/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in two waves of items: keys and values of every (picture, head) are laid out in panels, then every block of
 * query rows attends: an item a head, or all heads where rows have scales of their own and are stored whole. */
#include <string.h>

#include "cpu/kernels/attention_f32.h"
#include "cpu/steps/shared.h"

typedef struct attention {
    oct_packed head;
    oct_attention_f32_body *body;
    int64_t batch, tokens, heads, depth, rows, width;
    int64_t q_stride, k_stride, v_stride;
    int64_t key_floats, value_floats; /* a head's panels */
    int64_t blocks;                   /* of query rows, a head */
    int64_t group;                    /* heads an item */
    uint64_t q, k, v;
    float scale;
    oct_format probabilities;
    oct_storing storing;
} attention;

static void describe(const oct_site *site, const oct_kernel *kernel, attention *a) {
    const oct_strided q = oct_site_input(site, 0), k = oct_site_input(site, 1), v = oct_site_input(site, 2);
    *a = (attention){.body = (oct_attention_f32_body *)kernel->body,
                     .batch = q.shape.dims[0],
                     .tokens = q.shape.dims[1],
                     .heads = site->step->attributes.heads,
                     .depth = q.channels / site->step->attributes.heads,
                     .rows = kernel->rows,
                     .width = kernel->columns,
                     .q_stride = q.stride,
                     .k_stride = k.stride,
                     .v_stride = v.stride,
                     .q = q.offset,
                     .k = k.offset,
                     .v = v.offset,
                     .scale = (float)site->step->attributes.scale,
                     .probabilities = site->step->attributes.probabilities,
                     .storing = oct_site_storing(site, kernel->isa)};
    a->key_floats = oct_ceil_div(a->tokens, a->width) * a->width * a->depth;
    a->value_floats = oct_ceil_div(a->depth, a->width) * a->width * a->tokens;
    a->blocks = oct_ceil_div(a->tokens, a->rows);
    a->group = a->storing.whole_rows ? a->heads : 1;
}

static uint64_t body_bytes(const attention *a) {
    return oct_round_up((uint64_t)oct_attention_f32_scratch(a->rows, a->depth, a->width) * sizeof(float));
}

static uint64_t worker_bytes(const attention *a) {
    return body_bytes(a) + oct_storing_scratch(&a->storing, a->rows, a->group * a->depth);
}

static uint64_t head_bytes(const attention *a) {
    return oct_round_up((uint64_t)(a->key_floats + a->value_floats) * sizeof(float));
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    attention a;
    describe(site, kernel, &a);
    choice->packed = sizeof a;
    choice->scratch = (uint64_t)(a.batch * a.heads) * head_bytes(&a);
    choice->worker = worker_bytes(&a);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    attention *a = packed;
    const oct_packed head = a->head;
    describe(site, kernel, a);
    a->head = head;
}

typedef struct job {
    const attention *a;
    uint8_t *arena, *panels;
} job;

static float *panels_of(const job *j, int64_t index) {
    return (float *)(void *)(j->panels + (uint64_t)index * head_bytes(j->a));
}

static void lay_item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const attention *a = j->a;
    const int64_t n = (int64_t)index / a->heads, h = (int64_t)index % a->heads;
    const float *k = oct_at(j->arena, a->k) + n * a->tokens * a->k_stride + h * a->depth;
    const float *v = oct_at(j->arena, a->v) + n * a->tokens * a->v_stride + h * a->depth;
    float *keys = panels_of(j, (int64_t)index), *values = keys + a->key_floats;
    const int64_t full = oct_ceil_div(a->tokens, a->width) * a->width;
    for (int64_t panel = 0; panel < full; panel += a->width, keys += a->depth * a->width) {
        const int64_t count = oct_least(a->width, a->tokens - panel);
        for (int64_t begin = 0; begin < a->depth; begin += 16) {
            const int64_t end = oct_least(begin + 16, a->depth);
            for (int64_t t = 0; t < count; t++)
                for (int64_t i = begin; i < end; i++) keys[i * a->width + t] = k[(panel + t) * a->k_stride + i];
        }
        for (int64_t i = 0; i < a->depth && count < a->width; i++)
            memset(keys + i * a->width + count, 0, (size_t)(a->width - count) * sizeof *keys);
    }
    for (int64_t first = 0; first < a->depth; first += a->width) {
        const int64_t count = oct_least(a->width, a->depth - first);
        for (int64_t t = 0; t < a->tokens; t++, values += a->width) {
            memcpy(values, v + t * a->v_stride + first, (size_t)count * sizeof *values);
            if (count < a->width) memset(values + count, 0, (size_t)(a->width - count) * sizeof *values);
        }
    }
}

static void attend_item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const attention *a = j->a;
    const oct_storing *s = &a->storing;
    const int64_t groups = a->heads / a->group, each = (int64_t)index / a->blocks;
    const int64_t first = (int64_t)index % a->blocks * a->rows, n = each / groups, head = each % groups * a->group;
    const int64_t token = n * a->tokens + first, column = head * a->depth, columns = a->group * a->depth;
    const int64_t stride = s->wide ? s->stride : columns;
    float *out = s->wide ? oct_at(j->arena, s->out) + token * stride + column
                         : (float *)(void *)((uint8_t *)worker + body_bytes(a));
    oct_attention_f32 t = {.q_stride = a->q_stride,
                           .tokens = a->tokens,
                           .depth = a->depth,
                           .scale = a->scale,
                           .probabilities = a->probabilities,
                           .out_stride = stride,
                           .rows = (int)oct_least(a->rows, a->tokens - first),
                           .scratch = worker};
    for (int64_t h = 0; h < a->group; h++) {
        t.q = oct_at(j->arena, a->q) + token * a->q_stride + column + h * a->depth;
        t.keys = panels_of(j, n * a->heads + head + h);
        t.values = t.keys + a->key_floats;
        t.out = out + h * a->depth;
        a->body(&t);
    }
    oct_store(s, j->arena, out, stride, token, column, t.rows, columns);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const attention *a = packed;
    const int64_t heads = a->batch * a->heads;
    const job j = {.a = a, .arena = arena, .panels = scratch};
    uint8_t *workers = scratch + (uint64_t)heads * head_bytes(a);
    oct_items_run(pool, (size_t)heads, lay_item, &j, workers, 0);
    oct_items_run(pool, (size_t)(heads / a->group * a->blocks), attend_item, &j, workers, (size_t)worker_bytes(a));
}

const oct_driver oct_driver_attention = {refuses, size, pack, run, oct_forms_float};
