/* SPDX-License-Identifier: Apache-2.0 */
/* A block of query rows of one head against all keys, by online softmax: the t x t scores are never stored.
 *
 *     out[r] = sum over j of p[r][j] v[j] / sum over j of p[r][j],   p[r][j] = exp(scale q[r].k[j] - m[r]),  m[r] = max
 * over j
 *
 * keys: panels [ceil(t / width)][d][width], values: panels [ceil(d / width)][t][width], padded with zeros; width is the
 * row's tile columns in kernels.def. Queries and outputs lie in their tensors, `q_stride` and `out_stride` floats a
 * token.
 *
 * Order (all bodies give the same bits). Keys come in blocks of OCT_ATTENTION_BLOCK. In a block: each score is a chain
 * of fmaf over d from 0, then times scale; m' = max(m, block), a = exp(m - m'); p by oct_exp; 16 partial sums l[i] =
 * l[i] a, then
 * + p[j] for j = i mod 16; each output sum is o = o a (0 at the first block), then fmaf over the keys. At the end l is
 * folded i + 8, i + 4, i + 2, i + 1, and out = o (1 / l). m starts at -FLT_MAX: rows whose scores are all -infinity
 * give NaN.
 *
 * Where p is rounded (graph/stored.h), m is found over all keys first, so that what is rounded does not depend on
 * blocks; l takes p before, o what it was rounded to. */
#ifndef OCT_CPU_KERNELS_ATTENTION_F32_H
#define OCT_CPU_KERNELS_ATTENTION_F32_H

#include "format/format.h"

#define OCT_ATTENTION_BLOCK 256
#define OCT_ATTENTION_LANES 16

typedef struct oct_attention_f32 {
    const float *q;
    int64_t q_stride;
    const float *keys, *values;
    int64_t tokens, depth; /* t, d */
    float scale;
    oct_format probabilities; /* fp32, or what p is rounded to */
    float *out;
    int64_t out_stride;
    int rows;       /* at most the row's tile rows */
    float *scratch; /* oct_attention_f32_scratch floats, 64-byte aligned */
} oct_attention_f32;

/* Scratch: scores [rows][OCT_ATTENTION_BLOCK], sums [rows][padded depth], then m, a [rows] and l [rows][16]. */
static inline int64_t oct_attention_f32_scratch(int64_t rows, int64_t depth, int64_t width) {
    const int64_t padded = (depth + width - 1) / width * width;
    return rows * (OCT_ATTENTION_BLOCK + padded + OCT_ATTENTION_LANES) + 2 * ((rows + 15) / 16 * 16);
}

typedef void oct_attention_f32_body(const oct_attention_f32 *t);

#endif
