/* SPDX-License-Identifier: Apache-2.0 */
/* A block of rows times one panel of packed weights:
 *
 *     out[r][j] = activation(bias[j] + sum over k of a[r][k] panel[k][j]  + residual[r][j])      r < rows, j < columns
 *
 * Row r of a lies in `segments` pieces of `length` floats: piece s begins at a + r row_stride + s segment_stride
 * (floats), so that a convolution's window is read where it lies (a piece a kernel row). K = segments * length. The
 * panel is [K][width], width the row's tile columns in kernels.def; its columns beyond `columns` are zero and not
 * stored. bias holds `width` floats.
 *
 * Order: the sum starts at bias[j] and takes k = 0 .. K - 1 one fmaf each; then + residual, then the activation. So
 * bodies, tiles and threads all give the same bits. residual may be out's own memory. */
#ifndef OCT_CPU_KERNELS_GEMM_F32_H
#define OCT_CPU_KERNELS_GEMM_F32_H

#include "graph/graph.h"

typedef struct oct_gemm_f32 {
    const float *a;
    int64_t row_stride, segment_stride;
    int64_t segments, length;
    const float *panel, *bias;
    const float *residual; /* NULL: none */
    int64_t residual_stride;
    float *out;
    int64_t out_stride;
    int64_t rows;
    int columns;
    oct_activation activation;
} oct_gemm_f32;

typedef void oct_gemm_f32_body(const oct_gemm_f32 *g);

#endif
