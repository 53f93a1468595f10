/* SPDX-License-Identifier: Apache-2.0 */
/* Inverted-residual blocks as one launch: expansion (or the stem), depthwise, projection (kernels/block.cu). A tactic a
 * shape of the kernel and number of thread blocks that share a tile. */
#include "cuda/kernels/block_layout.h"

#include <string.h>

#include "cuda/tactic.h"
#include "graph/ops/rules.h"

#define SHARED_MOST 232448 /* bytes a thread block of compute capability 9.0 may have */
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
    b->inputs = b->stem ? 27 : oct_cuda_channels(b->x);
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

static oct_block_layout layout_of(const block *b, const oct_block_shape *shape) {
    return oct_block_layout_of(*shape, b->bytes, b->inputs, b->outputs, (int)b->map->dims[1], (int)b->map->dims[2]);
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
 * one multiprocessor overlap waiting, not work. Clocks; the constants were fitted to bench_cuda --tune. */
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
    const double halo = (double)(y.middle - y.wide) / y.chunk_pitch, pixels = s->tile_h * s->tile_w;
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

/* ---- packed weights: offsets */

typedef struct packed_block {
    uint64_t expand, depthwise, project, vectors[6], size; /* vectors: biases of the three, then scales */
    int row;                                               /* elements of a row of `expand` */
} packed_block;

static packed_block packed_of(const block *b) {
    packed_block p = {.row = (b->inputs * b->bytes + 31) / 32 * 32 / b->bytes};
    const uint64_t expanded = (uint64_t)b->expanded, outputs = (uint64_t)b->outputs, bytes = (uint64_t)b->bytes;
    p.expand = 0;
    p.depthwise = oct_cuda_round_up(expanded * (uint64_t)p.row * bytes, 64);
    p.project = p.depthwise + oct_cuda_round_up(expanded * (b->int8 ? 12 : 18), 64);
    p.size = p.project + oct_cuda_round_up(outputs * expanded * bytes, 64);
    for (int i = 0; i < 6; i++) {
        p.vectors[i] = p.size;
        p.size += oct_cuda_round_up((i % 3 < 2 ? expanded : outputs) * sizeof(float), 64);
    }
    return p;
}

static uint64_t packed(const oct_cuda_site *site) {
    block b;
    return find(site, &b) == NULL ? packed_of(&b).size : 0;
}

/* Element `from` of the constant as an element of the format. */
static void put(const oct_constant *constant, int64_t from, bool int8, uint8_t *to, int64_t at) {
    if (int8) {
        to[at] = constant->codes[from];
    } else {
        const uint16_t half = oct_fp16_encode(constant->data[from]);
        memcpy(to + at * 2, &half, sizeof half);
    }
}

static void pack(const oct_cuda_site *site, uint8_t *to) {
    block b;
    if (find(site, &b) != NULL) return;
    const packed_block p = packed_of(&b);
    const oct_constant *expand = oct_cuda_input(&b.expand, 1).constant;
    const oct_constant *depthwise = oct_cuda_input(&b.depthwise, 1).constant;
    const oct_constant *project = oct_cuda_input(&b.project, 1).constant;
    for (int64_t o = 0; o < b.expanded; o++)
        for (int64_t k = 0; k < b.inputs; k++) put(expand, o * b.inputs + k, b.int8, to + p.expand, o * p.row + k);
    for (int64_t o = 0; o < b.expanded; o++)
        for (int64_t tap = 0; tap < 9;
             tap++) { /* int8: a word a column of the window, a byte a row, one byte of zeros */
            const int64_t at = b.int8 ? (tap % 3 * b.expanded + o) * 4 + tap / 3 : tap * b.expanded + o;
            put(depthwise, o * 9 + tap, b.int8, to + p.depthwise, at);
        }
    for (int64_t i = 0; i < (int64_t)b.outputs * b.expanded; i++) put(project, i, b.int8, to + p.project, i);
    const oct_cuda_site *const steps[3] = {&b.expand, &b.depthwise, &b.project};
    for (int i = 0; i < 3; i++) {
        oct_cuda_bias(steps[i], (float *)(void *)(to + p.vectors[i]));
        if (b.int8)
            oct_cuda_scales(steps[i], oct_cuda_input(steps[i], 0).form->scale,
                            (float *)(void *)(to + p.vectors[3 + i]));
    }
}

static size_t lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                    oct_launch *launch) {
    block b;
    if (find(site, &b) != NULL) return 0;
    const packed_block p = packed_of(&b);
    const float *vectors[6];
    for (int i = 0; i < 6; i++) vectors[i] = (const float *)(const void *)(memory->packed + p.vectors[i]);
    const oct_plan_tensor *wide = oct_cuda_output(&b.expand), *middle = oct_cuda_output(&b.depthwise);
    launch->kind = OCT_LAUNCH_BLOCK;
    launch->u.block = (oct_block_launch){
        .x = oct_cuda_view(site, memory, oct_cuda_input(site, 0).index),
        .expand = memory->packed + p.expand,
        .depthwise = memory->packed + p.depthwise,
        .project = memory->packed + p.project,
        .expand_bias = vectors[0],
        .depthwise_bias = vectors[1],
        .expand_scales = vectors[3],
        .depthwise_scales = vectors[4],
        .expanded = oct_cuda_form_view(&wide->form, b.expanded),
        .middle = oct_cuda_form_view(&middle->form, b.expanded),
        .inputs = b.inputs,
        .input_stride = p.row,
        .expanded_channels = b.expanded,
        .outputs = b.outputs,
        .in_h = (int32_t)b.map->dims[1],
        .in_w = (int32_t)b.map->dims[2],
        .out_h = (int32_t)b.out->dims[1],
        .out_w = (int32_t)b.out->dims[2],
        .stride = b.stride,
        .batch = (int32_t)b.out->dims[0],
        .stem = b.stem,
        .int8 = b.int8,
        .expand_activation = (int32_t)oct_cuda_step(&b.expand)->attributes.activation,
        .depthwise_activation = (int32_t)oct_cuda_step(&b.depthwise)->attributes.activation,
        .variant = self->variant,
        .split = self->split,
        .epilogue = oct_cuda_epilogue(&b.project, memory),
    };
    launch->u.block.epilogue.bias = vectors[2];
    launch->u.block.epilogue.scales = vectors[5];
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
    TACTIC(name, 2) TACTIC(name, 3) TACTIC(name, 4) TACTIC(name, 6) TACTIC(name, 8) TACTIC(name, 10) TACTIC(name, 15)
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
    {.name = NULL},
};
