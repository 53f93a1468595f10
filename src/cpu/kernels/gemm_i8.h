/* SPDX-License-Identifier: Apache-2.0 */
/* A block of rows of int8 codes times one panel of packed int8 weights, by the rule of graph/stored.h:
 *
 *     sum = sum over k of a[r][k] w[j][k]                                    exact
 *     v[r][j] = activation(fmaf((float)sum, s, bias[j]) + residual[r][j])    s = scales[j], or row_scales[r] scales[j]
 *     out[r][j] = v, and codes[r][j] = v as int8; either may be NULL         r < rows, j < columns
 *
 * Row r of a begins at a + r row_stride and has `depth` codes. A panel holds, at place k of the depth, the weights
 * [k / unit][width][unit], zeros beyond depth and columns: `unit` neighbours for one column together. bias, scales and
 * offsets hold `width` numbers.
 *
 *     C         unit 4
 *     AVX2      unit 2, weights of 16 bits
 *     VNNI      unit 4; it multiplies unsigned by signed, so a holds codes + 128, readable up to a multiple of 4, and
 *               offsets are -128 times the sum of a column's weights; the others do not look at them
 *     AMX       unit 4; in chunks of OCT_AMX_DEPTH codes, the last of which ends with the row, so that it takes some
 *               codes twice: weights of the second time are zeros (oct_gemm_i8_place). A shorter row is one chunk, and
 *               readable up to a multiple of 4
 *
 * residual may be out's own memory. */
#ifndef OCT_CPU_KERNELS_GEMM_I8_H
#define OCT_CPU_KERNELS_GEMM_I8_H

#include "cpu/kernels/finish_i8.h"

#define OCT_AMX_DEPTH 64

typedef struct oct_gemm_i8 {
    const int8_t *a;
    int64_t row_stride, depth;
    const uint8_t *panel;
    const float *bias, *scales;
    const float *row_scales; /* NULL: none */
    const int32_t *offsets;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_stride;
    int8_t *codes;
    int64_t code_stride;
    int64_t rows;
    int columns;
    oct_finish_i8 finish;
} oct_gemm_i8;

/* Where an AMX panel has the weights of k, and how many places it has. */
static inline int64_t oct_gemm_i8_places(int64_t depth) {
    const int64_t unit = depth < OCT_AMX_DEPTH ? 4 : OCT_AMX_DEPTH;
    return (depth + unit - 1) / unit * unit;
}
static inline int64_t oct_gemm_i8_place(int64_t depth, int64_t k) {
    const int64_t places = oct_gemm_i8_places(depth);
    const bool last = depth >= OCT_AMX_DEPTH && k >= places - OCT_AMX_DEPTH;
    return last ? k + places - depth : k;
}

typedef void oct_gemm_i8_body(const oct_gemm_i8 *g);

#endif
