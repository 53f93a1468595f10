/* SPDX-License-Identifier: Apache-2.0 */
/* 6 rows x 16 columns in 16-bit multiplications, which never saturate: pairs of K, the rows' widened a chunk at a time,
 * the weights' when they were packed. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/finish_i8_avx2.h"

#define ROWS 6
#define UNIT 2
#define WIDTH 16
#define CHUNK 256 /* codes of a row widened at once */

/* Pairs of a row's codes as two 16-bit numbers each. */
static void widen(const int8_t *a, int64_t count, int32_t *pairs) {
    int64_t k = 0;
    for (; k + 16 <= count; k += 16) {
        const __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)(a + k));
        _mm256_storeu_si256((__m256i *)(void *)(pairs + k / UNIT), _mm256_cvtepi8_epi16(codes));
    }
    for (; k < count; k += UNIT) {
        const int16_t both[2] = {a[k], k + 1 < count ? a[k + 1] : 0};
        memcpy(pairs + k / UNIT, both, sizeof *pairs);
    }
}

OCT_INLINE __m256i weights_at(const int16_t *panel) {
    return _mm256_loadu_si256((const __m256i *)(const void *)panel);
}

OCT_INLINE void chunk(__m256i (*acc)[2], int32_t (*pairs)[CHUNK / UNIT], const int rows, int64_t steps,
                      const int16_t *panel) {
    for (int64_t k = 0; k < steps; k++, panel += WIDTH * UNIT) {
        const __m256i w0 = weights_at(panel), w1 = weights_at(panel + WIDTH);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            const __m256i x = _mm256_set1_epi32(pairs[r][k]);
            acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, w0));
            acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(x, w1));
        }
    }
}

/* Codes alone, of bounded numbers, two rows at once. */
OCT_INLINE void finish_codes(const oct_gemm_i8 *g, __m256i (*sums)[2], int64_t row, int64_t rows) {
    const __m256 inverse = _mm256_set1_ps(g->finish.inverse);
    const __m256 s0 = _mm256_loadu_ps(g->scales), s1 = _mm256_loadu_ps(g->scales + 8);
    const __m256 b0 = _mm256_loadu_ps(g->bias), b1 = _mm256_loadu_ps(g->bias + 8);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int64_t r = 0; r < rows; r += 2) {
        const int64_t second = r + 1 < rows ? r + 1 : r;
        const __m256i packed = oct_v_pack_codes(
            &g->finish, oct_v_code(sums[r][0], s0, b0, inverse), oct_v_code(sums[r][1], s1, b1, inverse),
            oct_v_code(sums[second][0], s0, b0, inverse), oct_v_code(sums[second][1], s1, b1, inverse));
        const __m256i codes = _mm256_permutevar8x32_epi32(packed, order);
        int8_t *to = g->codes + (row + r) * g->code_stride;
        oct_v_store_codes(to, _mm256_castsi256_si128(codes), g->columns);
        if (second > r) oct_v_store_codes(to + g->code_stride, _mm256_extracti128_si256(codes, 1), g->columns);
    }
}

OCT_INLINE void finish_vector(const oct_gemm_i8 *g, __m256i sum, int64_t r, int v) {
    const int64_t count = g->columns - 8 * v;
    if (count <= 0) return;
    const __m256i mask = oct_mask(count);
    __m256 scale = _mm256_loadu_ps(g->scales + 8 * v);
    if (g->row_scales != NULL) scale = _mm256_mul_ps(_mm256_set1_ps(g->row_scales[r]), scale);
    __m256 x = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_loadu_ps(g->bias + 8 * v));
    if (g->residual != NULL)
        x = _mm256_add_ps(x, _mm256_maskload_ps(g->residual + r * g->residual_stride + 8 * v, mask));
    x = oct_v_activate(g->finish.activation, x);
    if (g->out != NULL) _mm256_maskstore_ps(g->out + r * g->out_stride + 8 * v, mask, x);
    if (g->codes != NULL)
        oct_v_store_bytes((uint8_t *)g->codes + r * g->code_stride + 8 * v,
                          oct_v_int8(x, _mm256_set1_ps(g->finish.inverse)), count);
}

/* Sums come through memory: what is done with them is many lines, and so stands here once. */
static __attribute__((noinline)) void finish(const oct_gemm_i8 *g, __m256i (*sums)[2], int64_t row, int64_t rows) {
    if (g->out == NULL && g->finish.bounded) {
        finish_codes(g, sums, row, rows);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) finish_vector(g, sums[r][v], row + r, v);
}

OCT_INLINE void tile(const oct_gemm_i8 *g, int64_t row, const int rows) {
    int32_t pairs[ROWS][CHUNK / UNIT];
    __m256i acc[ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
    const int16_t *panel = (const int16_t *)(const void *)g->panel;
    const int8_t *a = g->a + row * g->row_stride;
    for (int64_t k = 0; k < g->depth; k += CHUNK) {
        const int64_t count = g->depth - k < CHUNK ? g->depth - k : CHUNK;
        const int64_t steps = (count + UNIT - 1) / UNIT;
        for (int r = 0; r < rows; r++) widen(a + r * g->row_stride + k, count, pairs[r]);
        chunk(acc, pairs, rows, steps, panel);
        panel += steps * WIDTH * UNIT;
    }
    __m256i sums[ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) sums[r][0] = acc[r][0], sums[r][1] = acc[r][1];
    finish(g, sums, row, rows);
}

typedef void tile_function(const oct_gemm_i8 *g, int64_t row);
#define TILE(rows)                                                                                                     \
    static __attribute__((noinline)) void tile_##rows(const oct_gemm_i8 *g, int64_t row) {                             \
        tile(g, row, rows);                                                                                            \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
static tile_function *const tiles[ROWS] = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

void oct_gemm_i8_6x16_avx2(const oct_gemm_i8 *g) {
    int64_t left = (g->rows + ROWS - 1) / ROWS;
    for (int64_t row = 0; row < g->rows; left--) {
        const int64_t rows = (g->rows - row + left - 1) / left;
        tiles[rows - 1](g, row);
        row += rows;
    }
}
