/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE that no other step took over: rows in blocks. */
#include "cpu/steps/shared.h"

#define ITEM_NUMBERS ((int64_t)1 << 14)

typedef struct quantize {
    oct_packed head;
    oct_storing storing;
    uint64_t in;
    int64_t in_stride, block;
} quantize;

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)site, (void)kernel;
    choice->packed = sizeof(quantize);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    quantize *q = packed;
    const oct_packed head = q->head;
    const oct_strided x = oct_site_input(site, 0);
    *q = (quantize){.head = head,
                    .storing = oct_site_storing(site, kernel->isa),
                    .in = x.offset,
                    .in_stride = x.stride,
                    .block = oct_ceil_div(ITEM_NUMBERS, x.channels)};
    q->storing.round = (oct_round_f32_body *)kernel->body;
}

typedef struct job {
    const quantize *q;
    uint8_t *arena;
} job;

static void item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const quantize *q = j->q;
    const int64_t row = (int64_t)index * q->block, rows = oct_least(q->block, q->storing.rows - row);
    oct_store(&q->storing, j->arena, oct_at(j->arena, q->in) + row * q->in_stride, q->in_stride, row, 0, rows,
              q->storing.channels);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const quantize *q = packed;
    const job j = {q, arena};
    oct_items_run(pool, (size_t)oct_ceil_div(q->storing.rows, q->block), item, &j, scratch, 0);
}

const oct_driver oct_driver_quantize = {refuses, size, pack, run, oct_forms_float};
