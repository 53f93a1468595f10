/* SPDX-License-Identifier: Apache-2.0 */
/* 32 rows x 32 columns: four tiles of sums, two of codes, two of weights. The tiles multiply the next block of rows
 * while the vector units finish the last; their sums go to memory between its halves, so that nobody waits for them.
 * The last block of a call begins early enough to be whole; rows that an earlier one has had are not finished twice. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/gemm_i8_avx512.h"

#define TILE 16 /* rows */
#define WIDTH OCT_GEMM_I8_WIDTH

/* What LDTILECFG reads. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the instruction's format");

/* Sums in tiles 0 to 3, codes in 4 and 5, weights in 6 and 7. */
static void configure(int64_t rows, int64_t chunk) {
    tile_config config = {.palette = 1};
    for (int t = 0; t < 6; t++) config.rows[t] = (uint8_t)(rows < TILE ? rows : TILE);
    for (int t = 6; t < 8; t++) config.rows[t] = (uint8_t)(chunk / 4);
    for (int t = 0; t < 8; t++) config.row_bytes[t] = 64;
    config.row_bytes[4] = config.row_bytes[5] = (uint16_t)chunk;
    __asm__ volatile("" : : "r"(&config) : "memory"); /* gcc's intrinsic says that it reads the first bytes alone */
    _tile_loadconfig(&config);
}

/* Rows of a block, from `start` on in the call, in one or two tiles, the second of which ends with the block. */
typedef struct block {
    int64_t start, rows;
} block;

OCT_INLINE void multiply(const oct_gemm_i8 *g, const block *b, const bool tall, const bool wide) {
    const int64_t chunk = g->depth < OCT_AMX_DEPTH ? oct_gemm_i8_places(g->depth) : OCT_AMX_DEPTH;
    const int8_t *a = g->a + b->start * g->row_stride, *second = a + (b->rows - TILE) * g->row_stride;
    const uint8_t *panel = g->panel;
    _tile_zero(0);
    if (wide) _tile_zero(1);
    if (tall) _tile_zero(2);
    if (tall && wide) _tile_zero(3);
    for (int64_t k = 0; k < g->depth; k += chunk, panel += chunk * WIDTH) {
        const int64_t at = k > 0 && k > g->depth - chunk ? g->depth - chunk : k;
        _tile_loadd(6, panel, WIDTH * 4);
        if (wide) _tile_loadd(7, panel + 64, WIDTH * 4);
        _tile_loadd(4, a + at, g->row_stride);
        _tile_dpbssd(0, 4, 6);
        if (wide) _tile_dpbssd(1, 4, 7);
        if (!tall) continue;
        _tile_loadd(5, second + at, g->row_stride);
        _tile_dpbssd(2, 5, 6);
        if (wide) _tile_dpbssd(3, 5, 7);
    }
}

OCT_INLINE void store(const block *b, int32_t *sums, const bool tall, const bool wide) {
    _tile_stored(0, sums, WIDTH * 4);
    if (wide) _tile_stored(1, sums + 16, WIDTH * 4);
    if (!tall) return;
    _tile_stored(2, sums + (b->rows - TILE) * WIDTH, WIDTH * 4);
    if (wide) _tile_stored(3, sums + (b->rows - TILE) * WIDTH + 16, WIDTH * 4);
}

static void multiply_any(const oct_gemm_i8 *g, const block *b) {
    if (b->rows > TILE && g->columns > 16)
        multiply(g, b, true, true);
    else if (b->rows > TILE)
        multiply(g, b, true, false);
    else if (g->columns > 16)
        multiply(g, b, false, true);
    else
        multiply(g, b, false, false);
}

static void store_any(const oct_gemm_i8 *g, const block *b, int32_t *sums) {
    store(b, sums, b->rows > TILE, g->columns > 16);
}

/* The block that holds row `row` first. */
static block block_at(const oct_gemm_i8 *g, int64_t row) {
    const int64_t left = g->rows - row;
    if (left >= 2 * TILE) return (block){row, 2 * TILE};
    const int64_t rows = left > TILE ? 2 * TILE : TILE;
    return g->rows >= rows ? (block){g->rows - rows, rows} : (block){0, g->rows};
}

void oct_gemm_i8_32x32_amx(const oct_gemm_i8 *g) {
    int32_t sums[2][2 * TILE * WIDTH] __attribute__((aligned(64)));
    configure(g->rows, g->depth < OCT_AMX_DEPTH ? oct_gemm_i8_places(g->depth) : OCT_AMX_DEPTH);
    block b = block_at(g, 0);
    multiply_any(g, &b);
    store_any(g, &b, sums[0]);
    int at = 0;
    for (int64_t row = 0; row < g->rows; at = 1 - at) {
        const block done = b;
        const int64_t end = done.start + done.rows, half = row + (end - row) / 2;
        const int32_t *from = sums[at];
        if (end < g->rows) {
            b = block_at(g, end);
            multiply_any(g, &b);
        }
        oct_gemm_i8_finish(g, from + (row - done.start) * WIDTH, row, half - row);
        if (end < g->rows) store_any(g, &b, sums[1 - at]);
        oct_gemm_i8_finish(g, from + (half - done.start) * WIDTH, half, end - half);
        row = end;
    }
    _tile_release();
}
