/* SPDX-License-Identifier: Apache-2.0 */
/* Inverted-residual blocks as one launch: expansion (or the stem), depthwise, projection (kernels/block.cu). A tactic a
 * shape of the kernel and number of thread blocks that share a tile. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/tactic.h"
#include "graph/ops/rules.h"

/* Bytes of shared memory that a launch may ask for on compute capability 9.0, less what the kernel itself declares. */
#define SHARED_MOST (232448 - 256)
#define SPAN 3u

static const oct_block_shape shapes[] = {
#define OCT_BLOCK(name, ...) {__VA_ARGS__},
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
};

/* The three steps. */
typedef struct block {
    oct_cuda_site expand, depthwise, project;
    const oct_shape *x, *map, *out; /* map: what the depthwise reads */
    int inputs, expanded, outputs, stride, bytes;
    bool stem, int8;
} block;

static oct_cuda_site after(const oct_cuda_site *site, size_t steps) {
    oct_cuda_site next = *site;
    next.step += steps;
    return next;
}

static bool window_is(const oct_cuda_site *site, int64_t size, int stride, int pad) {
    const oct_attributes *a = &oct_cuda_step(site)->attributes;
    const oct_shape *weight = oct_cuda_input(site, 1).shape;
    return weight->dims[1] == size && weight->dims[2] == size && a->stride_h == stride && a->stride_w == stride &&
           a->pad_top == pad && a->pad_left == pad;
}

static bool clamps(const oct_cuda_site *site) {
    const oct_activation a = oct_cuda_step(site)->attributes.activation;
    return a == OCT_ACTIVATION_NONE || a == OCT_ACTIVATION_RELU || a == OCT_ACTIVATION_RELU6;
}

/* Weights in the format of the products, constants of the right kind. */
static bool operands_are(const oct_cuda_site *site, oct_format format) {
    const oct_cuda_operand x = oct_cuda_input(site, 0), weight = oct_cuda_input(site, 1);
    if (x.tensor == NULL || x.form->format != format || x.form->granularity != OCT_PER_TENSOR) return false;
    if (weight.constant == NULL || weight.form->format != format) return false;
    const oct_attributes *a = &oct_cuda_step(site)->attributes;
    return !a->has_bias || oct_cuda_input(site, 2).constant != NULL;
}

/* NULL and *b, or why the three steps are no such block. */
static const char *find(const oct_cuda_site *site, block *b) {
    *b = (block){.expand = *site, .depthwise = after(site, 1), .project = after(site, 2)};
    if (oct_cuda_step(&b->depthwise)->op != OCT_OP_CONV2D || oct_cuda_step(&b->project)->op != OCT_OP_CONV2D)
        return "no three convolutions";
    if (!oct_cuda_feeds_next(&b->expand) || !oct_cuda_feeds_next(&b->depthwise)) return "others read what is between";
    b->x = oct_cuda_input(&b->expand, 0).shape;
    b->map = &oct_cuda_output(&b->expand)->shape;
    b->out = &oct_cuda_output(&b->project)->shape;
    b->stem = window_is(&b->expand, 3, 2, 1) && b->x->dims[3] == 3;
    b->expanded = oct_cuda_channels(b->map);
    b->inputs = b->stem ? OCT_BLOCK_STEM_INPUTS : oct_cuda_channels(b->x);
    b->outputs = oct_cuda_channels(b->out);
    b->stride = oct_cuda_step(&b->depthwise)->attributes.stride_h;
    if (!b->stem && !window_is(&b->expand, 1, 1, 0)) return "the first is neither 1 x 1 nor the stem";
    if (b->stem && (b->x->dims[1] != 2 * b->map->dims[1] || b->x->dims[2] != 2 * b->map->dims[2]))
        return "an odd picture";
    if (!window_is(&b->depthwise, 3, b->stride, 1) || !window_is(&b->project, 1, 1, 0)) return "windows";
    if (oct_cuda_step(&b->expand)->attributes.groups != 1 || oct_cuda_step(&b->project)->attributes.groups != 1 ||
        oct_cuda_step(&b->depthwise)->attributes.groups != b->expanded)
        return "groups";
    if (oct_cuda_step(&b->expand)->attributes.has_residual || oct_cuda_step(&b->depthwise)->attributes.has_residual)
        return "a residual inside";
    if (!clamps(&b->expand) || !clamps(&b->depthwise)) return "an activation that is no clamp";
    const oct_format format = oct_cuda_input(&b->expand, 0).form->format;
    if (format != OCT_FORMAT_FP16 && format != OCT_FORMAT_INT8) return "neither fp16 nor int8";
    if (!operands_are(&b->expand, format) || !operands_are(&b->depthwise, format) || !operands_are(&b->project, format))
        return "operands of several formats";
    b->int8 = format == OCT_FORMAT_INT8;
    b->bytes = b->int8 ? 1 : 2;
    if (!b->stem && b->inputs * b->bytes % 8 != 0) return "rows of no multiple of 8 bytes";
    return oct_cuda_forms_refused(&b->project, false);
}

static int least(int a, int b) {
    return a < b ? a : b;
}

static oct_block_layout layout_of(const block *b, const oct_block_shape *s) {
    const int halo_h = (s->tile_h - 1) * s->stride + 3, halo_w = (s->tile_w - 1) * s->stride + 3;
    const int rows = (least(halo_h, (int)b->map->dims[1]) * least(halo_w, (int)b->map->dims[2]) + 15) / 16 * 16;
    const int tile_rows = (s->tile_h * s->tile_w + 15) / 16 * 16, pitch = OCT_BLOCK_CHUNK_PITCH(s->chunk, b->bytes);
    const int patch = OCT_BLOCK_PATCH_HEIGHT(halo_h) * OCT_BLOCK_PATCH_WIDTH(halo_w) * 8;
    oct_block_layout y = {.row_bytes = (b->inputs * b->bytes + 31) / 32 * 32};
    y.row_pitch = y.row_bytes + 16;
    y.x = y.table + rows * 4;
    y.wide = y.x + (b->stem && !b->int8 ? patch : rows * y.row_pitch);
    y.middle = y.wide + halo_h * halo_w * pitch;
    y.weights = y.middle + tile_rows * pitch;
    y.depthwise = s->chunk * y.row_pitch;
    y.vectors = y.depthwise + s->chunk * (b->int8 ? 12 : 18);
    y.project = y.vectors + 4 * s->chunk * 4;
    y.image = y.project + b->outputs * pitch;
    y.weights_size = y.project + s->wn * s->nt * 8 * pitch; /* rows for whole n-tiles of all warps */
    y.size = y.weights + 2 * y.weights_size;
    const int sums = y.x + tile_rows * (b->outputs + 4) * 4; /* at the end, over everything but the table */
    if (y.size < sums) y.size = sums;
    return y;
}

static const char *refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    const oct_block_shape *shape = &shapes[self->variant];
    block b;
    const char *why = find(site, &b);
    if (why != NULL) return why;
    if (b.stem != (shape->stem != 0) || b.stride != shape->stride) return "made for other strides";
    if (b.expanded % shape->chunk != 0 || b.expanded / shape->chunk < self->split) return "chunks do not divide it";
    if (b.outputs % 8 != 0 || b.outputs > shape->wn * shape->nt * 8) return "too many outputs";
    if (layout_of(&b, shape).size > SHARED_MOST) return "too much shared memory";
    return NULL;
}

/* A model of one H200: thread blocks in waves, each a start, then chunks whose phases wait for each other; blocks on
 * one multiprocessor overlap waiting, not work. In clocks, and rough:
 * on an H200 its choices for MobileNetV2-100 are 8 to 12% behind those of the clock (tune.c). */
#define MULTIPROCESSORS 132
#define CLOCKS_PER_US 1750.0
static double cost(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    const oct_block_shape *s = &shapes[self->variant];
    block b;
    if (find(site, &b) != NULL) return 1e30;
    const oct_block_layout y = layout_of(&b, s);
    const double tiles =
        (double)((b.out->dims[1] + s->tile_h - 1) / s->tile_h * ((b.out->dims[2] + s->tile_w - 1) / s->tile_w));
    const double blocks = tiles * self->split * (double)b.out->dims[0];
    const double halo = (double)(y.middle - y.wide) / OCT_BLOCK_CHUNK_PITCH(s->chunk, b.bytes),
                 pixels = s->tile_h * s->tile_w;
    int resident = SHARED_MOST / y.size, by_threads = 512 / (s->warps * 32);
    if (resident > by_threads) resident = by_threads;
    if (resident < 1) resident = 1;
    const double chunks = (double)((b.expanded / s->chunk + self->split - 1) / self->split);
    const double work =
        chunks * s->chunk * (halo * (y.row_bytes / 2.0 / 700.0 + 0.05) + pixels * (b.outputs / 700.0 + 0.2));
    const double waiting = 3000.0 + chunks * 1500.0 + (self->split > 1 ? 1500.0 : 0.0);
    const double waves = (double)(int64_t)((blocks + MULTIPROCESSORS * resident - 1) / (MULTIPROCESSORS * resident));
    double together = blocks / MULTIPROCESSORS;
    if (together > resident) together = resident;
    const double busy = together * work > waiting + work ? together * work : waiting + work;
    return waves * busy / CLOCKS_PER_US;
}

/* ---- packed: a chunk's weights after the other as layout_of says, then the projection's biases and scales */

typedef struct packed_block {
    uint64_t bias, scales, size;
    int chunks;
} packed_block;

static packed_block packed_of(const block *b, const oct_block_shape *s, const oct_block_layout *y) {
    packed_block p = {.chunks = b->expanded / s->chunk};
    p.bias = oct_cuda_round_up((uint64_t)p.chunks * (uint64_t)y->image, 64);
    p.scales = p.bias + oct_cuda_round_up((uint64_t)b->outputs * sizeof(float), 64);
    p.size = p.scales + oct_cuda_round_up((uint64_t)b->outputs * sizeof(float), 64);
    return p;
}

static uint64_t packed(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    block b;
    if (find(site, &b) != NULL) return 0;
    const oct_block_layout y = layout_of(&b, &shapes[self->variant]);
    return packed_of(&b, &shapes[self->variant], &y).size;
}

/* Element `from` of the constant as element `at` of the format. */
static void put(const oct_constant *constant, int64_t from, bool int8, uint8_t *to, int64_t at) {
    if (int8) {
        to[at] = constant->codes[from];
    } else {
        const uint16_t half = oct_fp16_encode(constant->data[from]);
        memcpy(to + at * 2, &half, sizeof half);
    }
}

static void pack_expand(const block *b, const oct_block_layout *y, int chunk, int first, uint8_t *to) {
    const oct_constant *weight = oct_cuda_input(&b->expand, 1).constant;
    const int64_t inputs = b->stem ? 27 : b->inputs;
    for (int64_t o = 0; o < chunk; o++)
        for (int64_t k = 0; k < inputs; k++) /* the stem's: 4 pixels of 4 channels a row of the window */
            put(weight, (first + o) * inputs + k, b->int8, to + o * y->row_pitch,
                b->stem ? k / 9 * 16 + k % 9 / 3 * 4 + k % 3 : k);
}

static void pack_depthwise(const block *b, int chunk, int first, uint8_t *to) {
    const oct_constant *weight = oct_cuda_input(&b->depthwise, 1).constant;
    for (int64_t o = 0; o < chunk; o++)
        for (int64_t tap = 0; tap < 9; tap++) /* int8: a word a column of the window, a byte a row, one byte of zeros */
            put(weight, (first + o) * 9 + tap, b->int8, to,
                b->int8 ? (tap % 3 * chunk + o) * 4 + tap / 3 : tap * chunk + o);
}

static void pack_project(const block *b, int chunk, int first, uint8_t *to) {
    const oct_constant *weight = oct_cuda_input(&b->project, 1).constant;
    const int pitch = OCT_BLOCK_CHUNK_PITCH(chunk, b->bytes);
    for (int64_t o = 0; o < b->outputs; o++)
        for (int64_t k = 0; k < chunk; k++) put(weight, o * b->expanded + first + k, b->int8, to + o * pitch, k);
}

/* [4][chunk]: biases of expansion and depthwise, then their scales; `all` has them for all channels. */
static void pack_vectors(const block *b, const float *all, int chunk, int first, uint8_t *to) {
    for (int v = 0; v < 4; v++)
        memcpy(to + (size_t)(v * chunk) * sizeof *all, all + v * b->expanded + first, (size_t)chunk * sizeof *all);
}

static octet_status pack(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *to) {
    const oct_block_shape *s = &shapes[self->variant];
    block b;
    if (find(site, &b) != NULL) return oct_fail(OCTET_INTERNAL, "%s: no block", oct_cuda_step(site)->name);
    const oct_block_layout y = layout_of(&b, s);
    const packed_block p = packed_of(&b, s, &y);
    float *all = oct_calloc((size_t)b.expanded * 4, sizeof *all);
    if (all == NULL) return oct_fail_memory();
    oct_cuda_bias(&b.expand, all);
    oct_cuda_bias(&b.depthwise, all + b.expanded);
    oct_cuda_bias(&b.project, (float *)(void *)(to + p.bias));
    if (b.int8) {
        oct_cuda_scales(&b.expand, oct_cuda_input(&b.expand, 0).form->scale, all + 2 * b.expanded);
        oct_cuda_scales(&b.depthwise, oct_cuda_input(&b.depthwise, 0).form->scale, all + 3 * b.expanded);
        oct_cuda_scales(&b.project, oct_cuda_input(&b.project, 0).form->scale, (float *)(void *)(to + p.scales));
    }
    for (int c = 0; c < p.chunks; c++, to += y.image) {
        const int first = c * s->chunk;
        pack_expand(&b, &y, s->chunk, first, to);
        pack_depthwise(&b, s->chunk, first, to + y.depthwise);
        pack_vectors(&b, all, s->chunk, first, to + y.vectors);
        pack_project(&b, s->chunk, first, to + y.project);
    }
    oct_free(all);
    return OCTET_OK;
}

static size_t lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                    oct_launch *launch) {
    const oct_block_shape *s = &shapes[self->variant];
    block b;
    if (find(site, &b) != NULL) return 0;
    const oct_block_layout y = layout_of(&b, s);
    const packed_block p = packed_of(&b, s, &y);
    launch->kind = OCT_LAUNCH_BLOCK;
    launch->u.block = (oct_block_launch){
        .x = oct_cuda_view(site, memory, oct_cuda_input(site, 0).index),
        .weights = memory->packed,
        .expanded = oct_cuda_form_view(&oct_cuda_output(&b.expand)->form, b.expanded),
        .middle = oct_cuda_form_view(&oct_cuda_output(&b.depthwise)->form, b.expanded),
        .expanded_channels = b.expanded,
        .outputs = b.outputs,
        .in_h = (int32_t)b.map->dims[1],
        .in_w = (int32_t)b.map->dims[2],
        .out_h = (int32_t)b.out->dims[1],
        .out_w = (int32_t)b.out->dims[2],
        .batch = (int32_t)b.out->dims[0],
        .int8 = b.int8,
        .expand_activation = (int32_t)oct_cuda_step(&b.expand)->attributes.activation,
        .depthwise_activation = (int32_t)oct_cuda_step(&b.depthwise)->attributes.activation,
        .variant = self->variant,
        .split = self->split,
        .layout = y,
        .epilogue = oct_cuda_epilogue(&b.project, memory),
    };
    launch->u.block.epilogue.bias = (const float *)(const void *)(memory->packed + p.bias);
    launch->u.block.epilogue.scales = (const float *)(const void *)(memory->packed + p.scales);
    return 1;
}

enum {
#define OCT_BLOCK(name, ...) VARIANT_##name,
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
};

#define TACTIC(name_, split_)                                                                                          \
    {.name = "block_" #name_ "_x" #split_,                                                                             \
     .op = OCT_OP_CONV2D,                                                                                              \
     .span = SPAN,                                                                                                     \
     .variant = VARIANT_##name_,                                                                                       \
     .split = split_,                                                                                                  \
     .refuses = refuses,                                                                                               \
     .cost = cost,                                                                                                     \
     .packed = packed,                                                                                                 \
     .pack = pack,                                                                                                     \
     .lower = lower},

const oct_cuda_tactic oct_cuda_block[] = {
#define OCT_BLOCK(name, ...)                                                                                           \
    TACTIC(name, 1)                                                                                                    \
    TACTIC(name, 2) TACTIC(name, 3) TACTIC(name, 4) TACTIC(name, 6) TACTIC(name, 9) TACTIC(name, 12) TACTIC(name, 15)
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
    {.name = NULL},
};
