/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of numbers rounded to int8, e4m3, fp16 or bf16, by the rules of graph/stored.h:
 *
 *     out[r][c] = round(x[r][c] * inverse)                               r < rows, c < columns
 *
 * scales, if not NULL, gets a scale a row, found from the row (all its columns), and the row takes that. Strides are in
 * elements of their arrays. */
#ifndef OCT_CPU_KERNELS_QUANTIZE_F32_H
#define OCT_CPU_KERNELS_QUANTIZE_F32_H

#include "graph/graph.h"

typedef struct oct_quantize_f32 {
    const float *x;
    int64_t x_stride;
    void *out;
    int64_t out_stride;
    int64_t rows, columns;
    oct_format format;
    float inverse;
    float *scales;
} oct_quantize_f32;

typedef void oct_quantize_f32_body(const oct_quantize_f32 *q);

#endif
