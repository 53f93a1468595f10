/* SPDX-License-Identifier: Apache-2.0 */
/* 14 rows x 32 columns: 28 sums, two vectors of weights and four codes of a row, broadcast. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/gemm_i8_avx512.h"

#define ROWS 14
#define UNIT 4
#define WIDTH OCT_GEMM_I8_WIDTH

OCT_INLINE __m512i four(const int8_t *a) {
    int32_t codes;
    memcpy(&codes, a, sizeof codes);
    return _mm512_set1_epi32(codes);
}

/* Row addresses are three to a base, so that they fit the registers. */
OCT_INLINE void multiply(const oct_gemm_i8 *g, int64_t row, __m512i (*acc)[2], const int rows, const int vectors) {
    const int8_t *base[5];
#pragma GCC unroll 5
    for (int b = 0; b < 5; b++) base[b] = g->a + (row + (3 * b < rows ? 3 * b : 0)) * g->row_stride;
    const uint8_t *panel = g->panel;
    for (int64_t k = 0; k < g->depth; k += UNIT, panel += WIDTH * UNIT) {
        const __m512i w0 = _mm512_loadu_si512(panel);
        const __m512i w1 = vectors == 2 ? _mm512_loadu_si512(panel + 64) : w0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            const __m512i x = four(base[r / 3] + r % 3 * g->row_stride + k);
            acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], x, w0);
            if (vectors == 2) acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], x, w1);
        }
    }
}

OCT_INLINE void tile(const oct_gemm_i8 *g, int64_t row, const int rows, const int vectors) {
    const __m512i offsets[2] = {_mm512_loadu_si512(g->offsets), _mm512_loadu_si512(g->offsets + 16)};
    __m512i acc[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) acc[r][0] = offsets[0], acc[r][1] = offsets[1];
    multiply(g, row, acc, rows, vectors);
    int32_t sums[ROWS * WIDTH];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) _mm512_storeu_si512(sums + r * WIDTH + 16 * v, acc[r][v]);
    oct_gemm_i8_finish(g, sums, row, rows);
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
