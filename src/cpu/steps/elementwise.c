/* SPDX-License-Identifier: Apache-2.0 */
/* ADD and ACTIVATION: rows in blocks; where nothing is padded, a block is one run. A constant summand is kept in packed
 * memory, one of batch 1 is read anew for every picture. */
#include <string.h>

#include "cpu/kernels/elementwise_f32.h"
#include "cpu/steps/shared.h"

#define ITEM_NUMBERS ((int64_t)1 << 14)

typedef struct elementwise {
    oct_packed head;
    oct_elementwise_f32_body *body;
    oct_storing storing;
    uint64_t x, y;
    bool has_y, constant_y;
    int64_t rows, y_rows, channels, x_stride, y_stride, out_stride;
    int64_t block; /* rows an item; divides y_rows into whole blocks or none */
    bool dense;
    oct_activation activation;
} elementwise;

static void describe(const oct_site *site, const oct_kernel *kernel, elementwise *e) {
    const oct_strided x = oct_site_input(site, 0);
    *e = (elementwise){.body = (oct_elementwise_f32_body *)kernel->body,
                       .storing = oct_site_storing(site, kernel->isa),
                       .x = x.offset,
                       .rows = x.rows,
                       .y_rows = x.rows,
                       .channels = x.channels,
                       .x_stride = x.stride,
                       .out_stride = x.channels,
                       .activation = site->step->attributes.activation};
    if (e->storing.wide) e->out_stride = e->storing.stride;
    e->dense = x.stride == x.channels && e->out_stride == x.channels;
    if (site->step->op == OCT_OP_ADD) {
        const oct_strided y = oct_site_input(site, 1);
        e->has_y = true;
        e->constant_y = y.is_constant;
        e->y = y.offset;
        e->y_rows = y.rows;
        e->y_stride = y.stride;
        e->dense = e->dense && y.stride == y.channels;
    }
    e->block = oct_least(oct_ceil_div(ITEM_NUMBERS, e->channels), e->y_rows);
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    if (site->step->inputs[0].kind != OCT_OPERAND_TENSOR) return "constants where activations are expected";
    return NULL;
}

static uint64_t constant_floats(const elementwise *e) {
    return e->constant_y ? (uint64_t)(e->y_rows * e->channels) : 0;
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    elementwise e;
    describe(site, kernel, &e);
    choice->worker = oct_storing_scratch(&e.storing, e.block, e.channels);
    choice->packed = oct_round_up(sizeof e) + constant_floats(&e) * sizeof(float);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    elementwise *e = packed;
    const oct_packed head = e->head;
    describe(site, kernel, e);
    e->head = head;
    if (e->constant_y)
        memcpy(oct_packed_floats(packed, sizeof *e), oct_site_input(site, 1).constant,
               constant_floats(e) * sizeof(float));
}

typedef struct job {
    const elementwise *e;
    uint8_t *arena;
    const float *x, *y;
} job;

/* Items tile y's rows; those of further pictures follow. */
static void item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const elementwise *e = j->e;
    const int64_t each = oct_ceil_div(e->y_rows, e->block);
    const int64_t first = (int64_t)index % each * e->block, base = (int64_t)index / each * e->y_rows;
    const int64_t count = oct_least(e->block, e->y_rows - first);
    const int64_t runs = e->dense ? 1 : count;
    float *out = worker; /* of the block's first row */
    if (e->storing.wide) out = oct_at(j->arena, e->storing.out) + (base + first) * e->out_stride;
    for (int64_t r = 0; r < runs; r++) {
        const int64_t row = base + first + r;
        const oct_elementwise_f32 one = {.x = j->x + row * e->x_stride,
                                         .y = e->has_y ? j->y + (first + r) * e->y_stride : NULL,
                                         .out = out + r * e->out_stride,
                                         .count = e->dense ? count * e->channels : e->channels,
                                         .activation = e->activation};
        e->body(&one);
    }
    oct_store(&e->storing, j->arena, out, e->out_stride, base + first, 0, count, e->channels);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const elementwise *e = packed;
    const job j = {e, arena, oct_at(arena, e->x),
                   e->constant_y ? oct_packed_floats_const(packed, sizeof *e) : oct_at(arena, e->y)};
    const int64_t items = e->rows / e->y_rows * oct_ceil_div(e->y_rows, e->block);
    oct_items_run(pool, (size_t)items, item, &j, scratch,
                  (size_t)oct_storing_scratch(&e->storing, e->block, e->channels));
}

const oct_driver oct_driver_elementwise = {refuses, size, pack, run, oct_forms_float};
