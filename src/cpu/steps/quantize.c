/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE and DEQUANTIZE that no other step took over: rows in blocks. */
#include "cpu/kernels/dequantize_f32.h"
#include "cpu/steps/shared.h"

#define ITEM_NUMBERS ((int64_t)1 << 14)

typedef struct quantize {
    oct_packed head;
    oct_storing storing;
    oct_dequantize_f32_body *body; /* DEQUANTIZE */
    oct_format format;
    float scale;
    bool row_scales;
    uint64_t in, scales;
    int64_t in_stride, block;
} quantize;

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static const char *dequantize_forms(const oct_site *site) {
    if (oct_site_input(site, 0).form->format == OCT_FORMAT_FP32) return "fp32 already";
    return oct_refuse_outputs(site, 0);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)site, (void)kernel;
    choice->packed = sizeof(quantize);
}

static void describe(const oct_site *site, const oct_kernel *kernel, quantize *q) {
    const oct_packed head = q->head;
    const oct_strided x = oct_site_input(site, 0);
    *q = (quantize){.head = head,
                    .storing = oct_site_storing(site, kernel->isa),
                    .format = x.form->format,
                    .scale = x.form->scale,
                    .row_scales = x.form->granularity == OCT_PER_ROW,
                    .in = x.offset,
                    .scales = x.scales,
                    .in_stride = x.stride,
                    .block = oct_ceil_div(ITEM_NUMBERS, x.channels)};
}

static void pack_quantize(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    quantize *q = packed;
    describe(site, kernel, q);
    q->storing.narrow = (oct_quantize_f32_body *)kernel->body;
}

typedef struct job {
    const quantize *q;
    uint8_t *arena;
} job;

static void quantize_item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const quantize *q = j->q;
    const int64_t row = (int64_t)index * q->block, rows = oct_least(q->block, q->storing.row_count - row);
    oct_store_narrow(&q->storing, j->arena, oct_at(j->arena, q->in) + row * q->in_stride, q->in_stride, row, 0, rows,
                     q->storing.channels);
}

static void run_quantize(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const quantize *q = packed;
    const job j = {q, arena};
    oct_items_run(pool, (size_t)oct_ceil_div(q->storing.row_count, q->block), quantize_item, &j, scratch, 0);
}

static void pack_dequantize(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    quantize *q = packed;
    describe(site, kernel, q);
    q->body = (oct_dequantize_f32_body *)kernel->body;
}

static void dequantize_item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const quantize *q = j->q;
    const int64_t row = (int64_t)index * q->block;
    const int64_t bytes = (int64_t)oct_format_bits(q->format) / 8;
    const oct_dequantize_f32 d = {.x = j->arena + q->in + row * q->in_stride * bytes,
                                  .x_stride = q->in_stride,
                                  .out = oct_at(j->arena, q->storing.out) + row * q->storing.stride,
                                  .out_stride = q->storing.stride,
                                  .rows = oct_least(q->block, q->storing.row_count - row),
                                  .columns = q->storing.channels,
                                  .format = q->format,
                                  .scale = q->scale,
                                  .scales = q->row_scales ? oct_at(j->arena, q->scales) + row : NULL};
    q->body(&d);
}

static void run_dequantize(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const quantize *q = packed;
    const job j = {q, arena};
    oct_items_run(pool, (size_t)oct_ceil_div(q->storing.row_count, q->block), dequantize_item, &j, scratch, 0);
}

const oct_driver oct_driver_quantize = {refuses, size, pack_quantize, run_quantize, oct_forms_rows};
const oct_driver oct_driver_dequantize = {refuses, size, pack_dequantize, run_dequantize, dequantize_forms};
