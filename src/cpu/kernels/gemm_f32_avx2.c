/* SPDX-License-Identifier: Apache-2.0 */
/* 6 rows x 16 columns: 12 sums, two vectors of weights and one number of a in 15 registers. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx2.h"

#define ROWS 6

OCT_INLINE void tile(const oct_gemm_f32 *g, const float *a, const float *residual, float *out, const int rows) {
    __m256 acc[ROWS][2];
    const __m256 bias[2] = {_mm256_loadu_ps(g->bias), _mm256_loadu_ps(g->bias + 8)};
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        acc[r][0] = bias[0];
        acc[r][1] = bias[1];
    }
    const float *panel = g->panel;
    for (int64_t s = 0; s < g->segments; s++)
        panel = oct_v_tile(acc, rows, a + s * g->segment_stride, g->row_stride, g->length, panel);
    const __m256i mask[2] = {oct_mask(g->columns), oct_mask(g->columns - 8)};
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            __m256 sum = acc[r][v];
            if (residual != NULL)
                sum = _mm256_add_ps(sum, _mm256_maskload_ps(residual + r * g->residual_stride + 8 * v, mask[v]));
            _mm256_maskstore_ps(out + r * g->out_stride + 8 * v, mask[v], sum);
        }
}

typedef void tile_function(const oct_gemm_f32 *g, const float *a, const float *residual, float *out);
#define TILE(rows)                                                                                                     \
    static __attribute__((noinline)) void tile_##rows(const oct_gemm_f32 *g, const float *a, const float *residual,    \
                                                      float *out) {                                                    \
        tile(g, a, residual, out, rows);                                                                               \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
static tile_function *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

/* Activations pass once more over the tile just written, still in the first cache. */
static void activate(const oct_gemm_f32 *g, float *out, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) {
        for (int v = 0; v * 8 < g->columns; v++) {
            const __m256i mask = oct_mask(g->columns - 8 * v);
            float *at = out + r * g->out_stride + 8 * v;
            _mm256_maskstore_ps(at, mask, oct_v_activate(g->activation, _mm256_maskload_ps(at, mask)));
        }
    }
}

void oct_gemm_f32_6x16_avx2(const oct_gemm_f32 *g) {
    int64_t left = (g->rows + ROWS - 1) / ROWS;
    const float *a = g->a, *residual = g->residual;
    float *out = g->out;
    for (int64_t row = 0; row < g->rows; left--) {
        const int64_t rows = (g->rows - row + left - 1) / left;
        tiles[rows - 1](g, a, residual, out);
        if (g->activation != OCT_ACTIVATION_NONE) activate(g, out, rows);
        a += rows * g->row_stride;
        if (residual != NULL) residual += rows * g->residual_stride;
        out += rows * g->out_stride;
        row += rows;
    }
}
