/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, an output line at a time. Weights are packed [kernel row][kernel column][channels], lanes
 * padded to 16. */
#include <string.h>

#include "cpu/kernels/depthwise_f32.h"
#include "cpu/steps/shared.h"

#define LANES 16
#define ITEM_NUMBERS ((int64_t)1 << 14) /* output numbers an item should have at least */

typedef struct depthwise {
    oct_packed head;
    oct_depthwise_f32_body *body;
    oct_depthwise_f32 row; /* what all rows share */
    oct_storing storing;
    int64_t height, out_h, lines, step_h, pad_top;
    uint64_t in, residual;
    bool has_residual;
    int64_t block; /* lines an item */
} depthwise;

static void describe(const oct_site *site, const oct_kernel *kernel, depthwise *d) {
    const oct_attributes *a = &site->step->attributes;
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1), out = oct_site_output(site);
    *d = (depthwise){.body = (oct_depthwise_f32_body *)kernel->body,
                     .height = x.shape.dims[1],
                     .out_h = out.shape.dims[1],
                     .lines = out.shape.dims[0] * out.shape.dims[1],
                     .step_h = a->stride_h,
                     .pad_top = a->pad_top,
                     .storing = oct_site_storing(site, kernel->isa),
                     .in = x.offset};
    d->row = (oct_depthwise_f32){.kernel_h = (int)weight.shape.dims[1],
                                 .kernel_w = (int)weight.shape.dims[2],
                                 .width = x.shape.dims[2],
                                 .in_stride = x.stride,
                                 .step = a->stride_w,
                                 .pad = a->pad_left,
                                 .channels = x.channels,
                                 .lanes = oct_ceil_div(x.channels, LANES) * LANES,
                                 .out_width = out.shape.dims[2],
                                 .out_stride = d->storing.wide ? d->storing.stride : out.channels,
                                 .activation = a->activation};
    const int residual = oct_residual_input(site->step);
    if (residual >= 0) {
        const oct_strided r = oct_site_input(site, residual);
        d->has_residual = true;
        d->residual = r.offset;
        d->row.residual_stride = r.stride;
    }
    d->block = oct_least(oct_ceil_div(ITEM_NUMBERS, d->row.out_width * d->row.channels), d->lines);
}

/* kernel->rows x kernel->columns is the window the body is made for; 0: any. */
static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1);
    if (site->step->attributes.groups != x.channels || weight.shape.dims[0] != x.channels) return "not depthwise";
    const int64_t h = weight.shape.dims[1], w = weight.shape.dims[2];
    if (kernel->rows > 0 && (h != kernel->rows || w != kernel->columns)) return "a window of another size";
    if (h > OCT_DEPTHWISE_SIDE || w > INT16_MAX) return "a window that is too large";
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    depthwise d;
    describe(site, kernel, &d);
    choice->worker = oct_storing_scratch(&d.storing, d.row.out_width, d.row.channels);
    choice->packed =
        oct_round_up(sizeof d) + (uint64_t)((d.row.kernel_h * d.row.kernel_w + 1) * d.row.lanes) * sizeof(float);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    depthwise *d = packed;
    const oct_packed head = d->head;
    describe(site, kernel, d);
    d->head = head;
    float *bias = oct_packed_floats(packed, sizeof *d), *weights = bias + d->row.lanes;
    const oct_weight from = oct_site_weight(site, 1);
    const int taps = d->row.kernel_h * d->row.kernel_w;
    for (int64_t c = 0; c < d->row.channels; c++)
        for (int t = 0; t < taps; t++) weights[t * d->row.lanes + c] = oct_weight_at(&from, c, t);
    const int bias_input = oct_bias_input(site->step);
    if (bias_input >= 0)
        memcpy(bias, oct_site_input(site, bias_input).constant, (size_t)d->row.channels * sizeof *bias);
}

typedef struct job {
    const depthwise *d;
    oct_depthwise_f32 row;
    uint8_t *arena;
    const float *in, *residual;
} job;

static void item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const depthwise *d = j->d;
    oct_depthwise_f32 row = j->row;
    const int64_t begin = (int64_t)index * d->block, end = oct_least(begin + d->block, d->lines);
    for (int64_t line = begin; line < end; line++) {
        const int64_t n = line / d->out_h, top = line % d->out_h * d->step_h - d->pad_top;
        for (int i = 0; i < row.kernel_h; i++) {
            const int64_t y = top + i;
            row.in[i] = y < 0 || y >= d->height ? NULL : j->in + (n * d->height + y) * row.width * row.in_stride;
        }
        row.out = worker;
        if (d->storing.wide) row.out = oct_at(j->arena, d->storing.out) + line * row.out_width * row.out_stride;
        row.residual = d->has_residual ? j->residual + line * row.out_width * row.residual_stride : NULL;
        d->body(&row);
        oct_store(&d->storing, j->arena, row.out, row.out_stride, line * row.out_width, 0, row.out_width, row.channels);
    }
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const depthwise *d = packed;
    job j = {.d = d, .row = d->row, .arena = arena, .in = oct_at(arena, d->in), .residual = oct_at(arena, d->residual)};
    j.row.bias = oct_packed_floats_const(packed, sizeof *d);
    j.row.weights = j.row.bias + d->row.lanes;
    oct_items_run(pool, (size_t)oct_ceil_div(d->lines, d->block), item, &j, scratch,
                  (size_t)oct_storing_scratch(&d->storing, d->row.out_width, d->row.channels));
}

const oct_driver oct_driver_depthwise = {refuses, size, pack, run, oct_forms_product};
