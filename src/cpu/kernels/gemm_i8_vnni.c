/* SPDX-License-Identifier: Apache-2.0 */
/* 14 rows x 32 columns: 28 sums, two vectors of weights and four codes of a row, broadcast. Weights are the unsigned
 * side of vpdpbusd, shifted by 128; the rows' offsets undo it. Sums wrap around 2^32 on the way and are right at the
 * end. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx512.h"

#define ROWS 14
#define UNIT 4

OCT_INLINE __m512i four(const int8_t *a) {
    int32_t codes;
    memcpy(&codes, a, sizeof codes);
    return _mm512_set1_epi32(codes);
}

/* The last one to three codes of a piece. */
OCT_INLINE __m512i some(const int8_t *a, int64_t count) {
    int32_t codes = 0;
    memcpy(&codes, a, (size_t)count);
    return _mm512_set1_epi32(codes);
}

OCT_INLINE const uint8_t *piece(__m512i (*acc)[2], const int rows, const int vectors, const int8_t *a,
                                int64_t row_stride, int64_t length, const uint8_t *panel) {
    const int8_t *base[5];
#pragma GCC unroll 5
    for (int b = 0; b < 5; b++) base[b] = a + (3 * b < rows ? 3 * b : 0) * row_stride;
    int64_t k = 0;
    for (; k + UNIT <= length; k += UNIT, panel += 32 * UNIT) {
        const __m512i w0 = _mm512_loadu_si512(panel);
        const __m512i w1 = vectors == 2 ? _mm512_loadu_si512(panel + 64) : w0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            const __m512i x = four(base[r / 3] + r % 3 * row_stride + k);
            acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], w0, x);
            if (vectors == 2) acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], w1, x);
        }
    }
    if (k == length) return panel;
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        const __m512i x = some(base[r / 3] + r % 3 * row_stride + k, length - k);
        acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], w0, x);
        if (vectors == 2) acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], w1, x);
    }
    return panel + 32 * UNIT;
}

/* One vector of sums, as numbers, to where it belongs. */
OCT_INLINE void finish(const oct_gemm_i8 *g, __m512 sum, int64_t r, int v, __mmask16 mask, const bool curved) {
    __m512 scale = _mm512_loadu_ps(g->scales + 16 * v);
    if (g->row_scales != NULL) scale = _mm512_mul_ps(_mm512_set1_ps(g->row_scales[r]), scale);
    __m512 x = _mm512_fmadd_ps(sum, scale, _mm512_loadu_ps(g->bias + 16 * v));
    if (g->residual != NULL)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, g->residual + r * g->residual_stride + 16 * v));
    if (curved) {
        x = oct_v_activate(g->activation, x);
    } else if (g->activation != OCT_ACTIVATION_NONE) {
        const float top = g->activation == OCT_ACTIVATION_RELU6 ? 6.0f : INFINITY;
        x = _mm512_min_ps(_mm512_set1_ps(top), _mm512_max_ps(_mm512_setzero_ps(), x));
    }
    if (g->out != NULL) _mm512_mask_storeu_ps(g->out + r * g->out_stride + 16 * v, mask, x);
    if (g->codes != NULL)
        _mm_mask_storeu_epi8(g->codes + r * g->code_stride + 16 * v, mask, oct_v_int8(x, _mm512_set1_ps(g->inverse)));
}

/* GELU and sigmoid need registers of their own: their sums go through memory. */
static __attribute__((noinline)) void finish_curved(const oct_gemm_i8 *g, const float *sums, int64_t row, int rows) {
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; 16 * v < g->columns; v++)
            finish(g, _mm512_loadu_ps(sums + r * 32 + 16 * v), row + r, v, oct_mask(g->columns - 16 * v), true);
}

OCT_INLINE void tile(const oct_gemm_i8 *g, int64_t row, const int rows, const int vectors) {
    __m512i acc[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm512_set1_epi32(g->offsets[row + r]);
    const uint8_t *panel = g->panel;
    const int8_t *a = g->a + row * g->row_stride;
    for (int64_t s = 0; s < g->segments; s++)
        panel = piece(acc, rows, vectors, a + s * g->segment_stride, g->row_stride, g->length, panel);
    if (g->activation == OCT_ACTIVATION_GELU || g->activation == OCT_ACTIVATION_SIGMOID) {
        float sums[ROWS * 32];
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) _mm512_storeu_ps(sums + r * 32 + 16 * v, _mm512_cvtepi32_ps(acc[r][v]));
        finish_curved(g, sums, row, rows);
        return;
    }
    const __mmask16 mask[2] = {oct_mask(g->columns), oct_mask(g->columns - 16)};
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) finish(g, _mm512_cvtepi32_ps(acc[r][v]), row + r, v, mask[v], false);
}

/* A function for each number of rows, one and two vectors wide. */
typedef void tile_function(const oct_gemm_i8 *g, int64_t row);
#define TILE(rows, vectors)                                                                                            \
    static __attribute__((noinline)) void tile_##rows##_##vectors(const oct_gemm_i8 *g, int64_t row) {                 \
        tile(g, row, rows, vectors);                                                                                   \
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

void oct_gemm_i8_14x32_vnni(const oct_gemm_i8 *g) {
    int64_t left = (g->rows + ROWS - 1) / ROWS;
    for (int64_t row = 0; row < g->rows; left--) {
        const int64_t rows = (g->rows - row + left - 1) / left;
        tiles[rows - 1][g->columns > 16](g, row);
        row += rows;
    }
}
