/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in groups, int8 times int8, an output line at a time. The plain body takes any groups and window, the
 * others depthwise ones of 3 x 3. */
#include <string.h>

#include "cpu/kernels/depthwise_i8.h"
#include "cpu/steps/int8.h"

#define ITEM_NUMBERS ((int64_t)1 << 14) /* output numbers an item should have at least */

typedef struct depthwise {
    oct_packed head;
    oct_depthwise_i8_body *body;
    oct_depthwise_i8 row; /* what all rows share */
    oct_storing storing;
    bool direct_codes; /* the body stores int8 codes itself */
    oct_sink codes;
    int lanes;        /* of the body's vectors, or 0: weights in their own order */
    int64_t channels; /* rounded up to the body's blocks */
    int64_t out_h, lines, step_h, pad_top;
    uint64_t in, residual;
    bool has_residual;
    int64_t block; /* lines an item */
} depthwise;

static bool through_scratch(const depthwise *d) {
    return d->storing.count > 0 && !d->storing.wide;
}
static uint64_t worker_bytes(const depthwise *d) {
    return through_scratch(d) ? oct_storing_scratch(&d->storing, d->row.out_width, d->row.outputs) : 0;
}

static void describe(const oct_site *site, const oct_kernel *kernel, depthwise *d) {
    const oct_attributes *a = &site->step->attributes;
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1), out = oct_site_output(site);
    *d = (depthwise){.body = (oct_depthwise_i8_body *)kernel->body,
                     .storing = oct_site_storing(site, kernel->isa),
                     .lanes = kernel->rows == 0 ? 0 : (kernel->isa == OCT_ISA_AVX2 ? 2 : 4),
                     .out_h = out.shape.dims[1],
                     .lines = out.shape.dims[0] * out.shape.dims[1],
                     .step_h = a->stride_h,
                     .pad_top = a->pad_top,
                     .in = x.offset};
    d->direct_codes = oct_storing_take_codes(&d->storing, &d->codes);
    d->row = (oct_depthwise_i8){.height = x.shape.dims[1],
                                .width = x.shape.dims[2],
                                .row_stride = x.shape.dims[2] * x.stride,
                                .in_stride = x.stride,
                                .kernel_h = weight.shape.dims[1],
                                .kernel_w = weight.shape.dims[2],
                                .step = a->stride_w,
                                .pad = a->pad_left,
                                .depth = weight.shape.dims[3],
                                .outputs = out.channels,
                                .group = out.channels / a->groups,
                                .out_width = out.shape.dims[2],
                                .out_stride = d->storing.wide ? d->storing.stride : out.channels,
                                .code_stride = d->codes.stride};
    const int64_t unit = d->lanes == 0 ? 1 : 4 * d->lanes * d->lanes;
    d->channels = oct_ceil_div(out.channels, unit) * unit;
    const int residual = oct_residual_input(site->step);
    if (residual >= 0) {
        const oct_strided r = oct_site_input(site, residual);
        d->has_residual = true;
        d->residual = r.offset;
        d->row.residual_stride = r.stride;
    }
    d->block = oct_least(oct_ceil_div(ITEM_NUMBERS, d->row.out_width * d->row.outputs), d->lines);
}

/* kernel->rows x kernel->columns is the window the body is made for; 0: any. */
static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1);
    if (kernel->rows > 0) {
        if (site->step->attributes.groups != x.channels || weight.shape.dims[0] != x.channels) return "not depthwise";
        if (weight.shape.dims[1] != kernel->rows || weight.shape.dims[2] != kernel->columns)
            return "a window of another size";
    }
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

/* ---- packed: scales, bias, offsets, weights */

static uint64_t vector_bytes(const depthwise *d) {
    return oct_round_up((uint64_t)d->channels * sizeof(float));
}
static uint64_t weight_bytes(const depthwise *d) {
    const uint64_t taps = (uint64_t)(d->lanes == 0 ? d->row.kernel_h * d->row.kernel_w * d->row.depth : 3 * 4);
    return (uint64_t)d->channels * taps * (d->lanes == 2 ? sizeof(int16_t) : 1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    depthwise d;
    describe(site, kernel, &d);
    choice->worker = worker_bytes(&d);
    choice->packed = oct_round_up(sizeof d) + 3 * vector_bytes(&d) + weight_bytes(&d);
}

typedef struct vectors {
    float *scales, *bias;
    int32_t *offsets;
    uint8_t *weights;
} vectors;

static vectors vectors_of(const depthwise *d, const void *packed) {
    uint8_t *at = (uint8_t *)(uintptr_t)packed + oct_round_up(sizeof *d);
    const uint64_t bytes = vector_bytes(d);
    return (vectors){.scales = (float *)(void *)at,
                     .bias = (float *)(void *)(at + bytes),
                     .offsets = (int32_t *)(void *)(at + 2 * bytes),
                     .weights = at + 3 * bytes};
}

/* The channel at place `at` of the block that begins with channel `first`; outputs or more: none. */
static int64_t channel_at(const depthwise *d, int64_t first, int at) {
    const int channel = oct_depthwise_i8_channel(at, d->lanes);
    const bool twice = d->lanes == 4 && d->row.outputs - first <= OCT_DEPTHWISE_I8_HALF;
    return first + (twice ? channel % OCT_DEPTHWISE_I8_HALF : channel);
}

/* Numbers of channels, from their own order to the body's. */
static void deal(const depthwise *d, float *numbers) {
    const int64_t block = 4 * d->lanes * d->lanes;
    float own[64];
    for (int64_t first = 0; first < d->channels; first += block) {
        memcpy(own, numbers + first, (size_t)block * sizeof *own);
        for (int at = 0; at < block; at++) numbers[first + at] = own[channel_at(d, first, at) - first];
    }
}

/* Place `at` of the blocks from channel `first` on, whose weights are w [3][3]. */
static void pack_pairs(int16_t *block, int at, const int8_t *w) {
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++) block[((j * 2 + i / 2) * 16 + at) * 2 + i % 2] = w[i * 3 + j];
}
static void pack_fours(uint8_t *block, int32_t *offsets, int at, const int8_t *w) {
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) {
            block[(j * 64 + at) * 4 + i] = (uint8_t)w[i * 3 + j];
            offsets[at] -= 128 * w[i * 3 + j];
        }
    }
}

static void pack_blocks(const depthwise *d, const vectors *to, const int8_t *weights) {
    const int64_t block = 4 * d->lanes * d->lanes;
    for (int64_t first = 0; first < d->channels; first += block) {
        for (int at = 0; at < block; at++) {
            const int64_t channel = channel_at(d, first, at);
            if (channel >= d->row.outputs) continue;
            if (d->lanes == 2)
                pack_pairs((int16_t *)(void *)to->weights + first * 12, at, weights + channel * 9);
            else
                pack_fours(to->weights + first * 12, to->offsets + first, at, weights + channel * 9);
        }
    }
    deal(d, to->scales);
    deal(d, to->bias);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    depthwise *d = packed;
    const oct_packed head = d->head;
    describe(site, kernel, d);
    d->head = head;
    const vectors to = vectors_of(d, packed);
    oct_int8_vectors(site, d->row.outputs, to.scales, to.bias);
    d->row.finish =
        oct_int8_finish(site, d->direct_codes ? 1.0f / d->codes.form.scale : 1.0f,
                        d->row.kernel_h * d->row.kernel_w * d->row.depth, to.scales, to.bias, d->row.outputs);
    const uint8_t *codes = oct_site_input(site, 1).codes;
    if (d->lanes == 0)
        memcpy(to.weights, codes, weight_bytes(d));
    else
        pack_blocks(d, &to, (const int8_t *)codes);
}

typedef struct job {
    const depthwise *d;
    oct_depthwise_i8 row;
    uint8_t *arena;
    const float *residual;
} job;

static void item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const depthwise *d = j->d;
    const oct_storing *s = &d->storing;
    oct_depthwise_i8 row = j->row;
    const int64_t begin = (int64_t)index * d->block, end = oct_least(begin + d->block, d->lines);
    for (int64_t line = begin; line < end; line++) {
        const int64_t first = line * row.out_width;
        row.picture = (const int8_t *)j->arena + d->in + line / d->out_h * row.height * row.row_stride;
        row.top = line % d->out_h * d->step_h - d->pad_top;
        row.out = through_scratch(d) ? worker : NULL;
        if (s->wide) row.out = oct_at(j->arena, s->out) + first * row.out_stride;
        row.codes = d->direct_codes ? (int8_t *)j->arena + d->codes.at + first * row.code_stride : NULL;
        row.residual = d->has_residual ? j->residual + first * row.residual_stride : NULL;
        d->body(&row);
        oct_store(s, j->arena, row.out, row.out_stride, first, 0, row.out_width, row.outputs);
    }
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const depthwise *d = packed;
    const vectors from = vectors_of(d, packed);
    job j = {.d = d, .row = d->row, .arena = arena, .residual = oct_at(arena, d->residual)};
    j.row.scales = from.scales;
    j.row.bias = from.bias;
    j.row.offsets = from.offsets;
    j.row.weights = from.weights;
    oct_items_run(pool, (size_t)oct_ceil_div(d->lines, d->block), item, &j, scratch, (size_t)worker_bytes(d));
}

const oct_driver oct_driver_depthwise_i8 = {refuses, size, pack, run, oct_forms_int8};
