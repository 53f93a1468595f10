/* SPDX-License-Identifier: Apache-2.0 */
/* 14 rows x 32 columns: 28 sums, two vectors of weights and one number of a in 31 registers; two loads and 14
 * broadcasts for 28 fused multiply-adds. Rows are shared out evenly among tiles, so that no tile is left with one or
 * two. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx512.h"

#define ROWS 14

OCT_INLINE void finish(const oct_gemm_f32 *g, __m512 (*acc)[2], const int rows, const int vectors,
                       const float *residual, float *out) {
    const __mmask16 mask[2] = {oct_mask(g->columns), oct_mask(g->columns - 16)};
    if (residual != NULL) {
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                acc[r][v] = _mm512_add_ps(acc[r][v],
                                          _mm512_maskz_loadu_ps(mask[v], residual + r * g->residual_stride + 16 * v));
    }
    if (g->activation == OCT_ACTIVATION_RELU || g->activation == OCT_ACTIVATION_RELU6) {
        const __m512 zero = _mm512_setzero_ps();
        const __m512 top = _mm512_set1_ps(g->activation == OCT_ACTIVATION_RELU6 ? 6.0f : INFINITY);
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) acc[r][v] = _mm512_min_ps(top, _mm512_max_ps(zero, acc[r][v]));
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) _mm512_mask_storeu_ps(out + r * g->out_stride + 16 * v, mask[v], acc[r][v]);
}

OCT_INLINE void tile(const oct_gemm_f32 *g, const float *a, const float *residual, float *out, const int rows,
                     const int vectors) {
    __m512 acc[ROWS][2];
    const __m512 bias[2] = {_mm512_loadu_ps(g->bias), _mm512_loadu_ps(g->bias + 16)};
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        acc[r][0] = bias[0];
        acc[r][1] = bias[1];
    }
    const float *panel = g->panel;
    for (int64_t s = 0; s < g->segments; s++)
        panel = oct_v_tile(acc, rows, vectors, a + s * g->segment_stride, g->row_stride, g->length, panel);
    finish(g, acc, rows, vectors, residual, out);
}

/* A function for each number of rows, one and two vectors wide. */
typedef void tile_function(const oct_gemm_f32 *g, const float *a, const float *residual, float *out);
#define TILE(rows, vectors)                                                                                            \
    static __attribute__((noinline)) void tile_##rows##_##vectors(const oct_gemm_f32 *g, const float *a,               \
                                                                  const float *residual, float *out) {                 \
        tile(g, a, residual, out, rows, vectors);                                                                      \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)
TILES(13)
TILES(14)
#define ENTRY(rows)                                                                                                    \
    { tile_##rows##_1, tile_##rows##_2 }
static tile_function *const tiles[ROWS][2] = {ENTRY(1),  ENTRY(2),  ENTRY(3),  ENTRY(4), ENTRY(5),
                                              ENTRY(6),  ENTRY(7),  ENTRY(8),  ENTRY(9), ENTRY(10),
                                              ENTRY(11), ENTRY(12), ENTRY(13), ENTRY(14)};

/* GELU and sigmoid need registers of their own: they pass once more over the tile just written, still in the first
 * cache. */
static void activate(const oct_gemm_f32 *g, float *out, int64_t rows) {
    const __mmask16 mask[2] = {oct_mask(g->columns), oct_mask(g->columns - 16)};
    for (int64_t r = 0; r < rows; r++) {
        for (int v = 0; v * 16 < g->columns; v++) {
            float *at = out + r * g->out_stride + 16 * v;
            const __m512 x = _mm512_maskz_loadu_ps(mask[v], at);
            _mm512_mask_storeu_ps(at, mask[v], g->activation == OCT_ACTIVATION_GELU ? oct_v_gelu(x) : oct_v_sigmoid(x));
        }
    }
}

void oct_gemm_f32_14x32_avx512(const oct_gemm_f32 *g) {
    const bool later = g->activation == OCT_ACTIVATION_GELU || g->activation == OCT_ACTIVATION_SIGMOID;
    const int wide = g->columns > 16;
    int64_t left = (g->rows + ROWS - 1) / ROWS;
    const float *a = g->a, *residual = g->residual;
    float *out = g->out;
    for (int64_t row = 0; row < g->rows; left--) {
        const int64_t rows = (g->rows - row + left - 1) / left;
        tiles[rows - 1][wide](g, a, residual, out);
        if (later) activate(g, out, rows);
        a += rows * g->row_stride;
        if (residual != NULL) residual += rows * g->residual_stride;
        out += rows * g->out_stride;
        row += rows;
    }
}
