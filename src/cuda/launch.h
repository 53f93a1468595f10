/* SPDX-License-Identifier: Apache-2.0 */
/* What the host hands to the kernels: plain data, the same in C and CUDA C. A launch is one kernel with its operands;
 * an engine is a list of them. Addresses are the device's.
 *
 * Rows are places (pixels, tokens), in order; a row of a view starts `stride` elements after the one before. */
#ifndef OCT_CUDA_LAUNCH_H
#define OCT_CUDA_LAUNCH_H

#include <stdint.h>

#include "cuda/kernels/block_layout.h"
#include "format/format.h"
#include "graph/graph.h"

/* A tensor, or a constant, as it lies in device memory, in one stored form. */
typedef struct oct_view {
    void *data;    /* NULL: not there */
    float *scales; /* a scale a row (OCT_PER_ROW), else NULL */
    int32_t format;
    int32_t channels, stride; /* elements */
    float scale, inverse;     /* one scale a tensor; 1 where the format has none */
    int64_t rows;
} oct_view;

/* What follows the sum of a product: out = activation(sum + bias + residual), stored in each form of the output. */
typedef struct oct_epilogue {
    const float *bias;   /* a channel, or NULL */
    const float *scales; /* int8 products: the weight's scale a channel */
    oct_view residual;   /* data NULL: none */
    oct_view out[2];
    int32_t out_count, activation;
} oct_epilogue;

/* A window over pictures; LINEAR and 1 x 1: all ones. */
typedef struct oct_window {
    int32_t in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
} oct_window;

/* Product of every op and format by tiles in shared memory: fp32 sums of numbers, or int32 sums of codes. */
typedef struct oct_matrix_launch {
    oct_view x, weight; /* weight: rows outputs, [window][channels of a group] channels */
    oct_window window;
    int32_t groups, group_inputs, group_outputs;
    int64_t rows; /* of the output */
    int32_t int8; /* the rule of int8 products (graph/stored.h) */
    oct_epilogue epilogue;
} oct_matrix_launch;

/* What a row op computes of each element. */
typedef enum oct_row_kind {
    OCT_ROW_COPY, /* also QUANTIZE, DEQUANTIZE */
    OCT_ROW_ACTIVATE,
    OCT_ROW_ADD,    /* of y row r % y.rows */
    OCT_ROW_NORM,   /* LAYER_NORM */
    OCT_ROW_AFFINE, /* BATCH_NORM: as LAYER_NORM, with mean and variance given */
    OCT_ROW_RESHAPE /* element e of x is element e of the output, counted without padding */
} oct_row_kind;
typedef struct oct_rows_launch {
    oct_view x, y;
    const float *vectors[4]; /* gamma, beta, mean, variance */
    float epsilon;
    int32_t kind, activation;
    int64_t rows;
    int64_t group, x_group,
        x_first; /* CONCAT, SLICE: output row r is x's row (r / group) x_group + x_first + r % group; */
    int64_t out_group, out_first; /* and lies at (r / group) out_group + out_first + r % group */
    oct_view out[2];
    int32_t out_count;
} oct_rows_launch;

typedef struct oct_pool_launch {
    oct_view x;
    int64_t height, width;
    oct_view out[2];
    int32_t out_count;
} oct_pool_launch;

typedef struct oct_attention_launch {
    oct_view q, k, v;
    int64_t batch, tokens;
    int32_t heads;
    float scale;
    oct_view out[2];
    int32_t out_count;
} oct_attention_launch;

/* A product by tensor cores: x [rows][inputs] times weight [outputs][inputs], both fp16 or both int8, rows of 16-byte
 * multiples. With height > 0 the output is the mean over each height x width rows (GLOBAL_POOL fused), of numbers
 * rounded to `between`'s form first. */
typedef struct oct_tensor_launch {
    oct_view x;
    const void *weight;
    int64_t rows; /* of x */
    int32_t inputs, outputs, int8;
    int32_t height, width, pictures; /* pooling; else 0 */
    oct_view between;                /* likewise: a form, without data */
    oct_epilogue epilogue;
} oct_tensor_launch;

/* An inverted-residual block: 1 x 1 expansion (or the stem: a 3 x 3 convolution of stride 2 over 3 channels), 3 x 3
 * depthwise, 1 x 1 projection. The expanded map stays in shared memory. Activations after the first two. */
typedef struct oct_block_launch {
    oct_view x;
    const void *weights;       /* a chunk's after the other: block_layout.h */
    oct_view expanded, middle; /* forms of the two maps between, without data */
    int32_t expanded_channels, outputs;
    int32_t in_h, in_w, out_h, out_w; /* in: the map that the depthwise reads */
    int32_t batch, int8;
    int32_t expand_activation, depthwise_activation; /* RELU or RELU6 */
    int32_t variant;                                 /* row of kernels/block_variants.def */
    int32_t split;                                   /* thread blocks of a cluster that share a tile */
    oct_block_layout layout;
    oct_epilogue epilogue;
} oct_block_launch;

typedef enum oct_kernel_kind {
    OCT_LAUNCH_MATRIX,
    OCT_LAUNCH_DEPTHWISE, /* oct_matrix_launch, one channel a group */
    OCT_LAUNCH_ROWS,
    OCT_LAUNCH_POOL,
    OCT_LAUNCH_ATTENTION,
    OCT_LAUNCH_TENSOR,
    OCT_LAUNCH_BLOCK,
    OCT_LAUNCH_COUNT
} oct_kernel_kind;

typedef struct oct_launch {
    int32_t kind, step; /* oct_kernel_kind; the plan's step it begins with */
    union {
        oct_matrix_launch matrix;
        oct_rows_launch rows;
        oct_pool_launch pool;
        oct_attention_launch attention;
        oct_tensor_launch tensor;
        oct_block_launch block;
    } u;
} oct_launch;

#endif
