/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of codes of int8, e4m3, fp16 or bf16 as numbers: out[r][c] = code[r][c] * scale, or scales[r] if not NULL (int8
 * and e4m3). Strides are in elements of their arrays. */
#ifndef OCT_CPU_KERNELS_DEQUANTIZE_F32_H
#define OCT_CPU_KERNELS_DEQUANTIZE_F32_H

#include "graph/graph.h"

typedef struct oct_dequantize_f32 {
    const void *x;
    int64_t x_stride;
    float *out;
    int64_t out_stride;
    int64_t rows, columns;
    oct_format format;
    float scale;
    const float *scales;
} oct_dequantize_f32;

typedef void oct_dequantize_f32_body(const oct_dequantize_f32 *q);

#endif
