/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 14 query rows x 32 keys for the scores, 14 rows x 32 channels for the sums; the softmax between them works
 * on rows of scores still in the first cache. */
#include <float.h>

#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx512.h"

#include "cpu/kernels/stored_number.inc"

#define ROWS 14
#define WIDTH 32

/* The scratch of a block of rows. */
typedef struct room {
    float *p, *sums, *top, *factor, *total;
    int64_t padded; /* depth in whole panels: a row of sums */
} room;

OCT_INLINE void score_tile(const oct_attention_f32 *t, const float *q, const float *keys, float *p, const int rows) {
    __m512 acc[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    oct_v_tile(acc, rows, 2, q, t->q_stride, t->depth, keys);
    const __m512 scale = _mm512_set1_ps(t->scale);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            _mm512_storeu_ps(p + r * OCT_ATTENTION_BLOCK + 16 * v, _mm512_mul_ps(acc[r][v], scale));
}

/* sums = sums factor + p values; from 0 at the first block */
OCT_INLINE void sum_tile(const float *p, const float *values, int64_t keys, float *sums, int64_t padded,
                         const float *factor, bool first, const int rows) {
    __m512 acc[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        const __m512 f = _mm512_set1_ps(factor[r]);
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            acc[r][v] = first ? _mm512_setzero_ps() : _mm512_mul_ps(_mm512_loadu_ps(sums + r * padded + 16 * v), f);
    }
    oct_v_tile(acc, rows, 2, p, OCT_ATTENTION_BLOCK, keys, values);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) _mm512_storeu_ps(sums + r * padded + 16 * v, acc[r][v]);
}

/* A function for each number of rows. */
typedef void score_function(const oct_attention_f32 *t, const float *q, const float *keys, float *p);
typedef void sum_function(const float *p, const float *values, int64_t keys, float *sums, int64_t padded,
                          const float *factor, bool first);
#define TILES(rows)                                                                                                    \
    static __attribute__((noinline)) void score_##rows(const oct_attention_f32 *t, const float *q, const float *keys,  \
                                                       float *p) {                                                     \
        score_tile(t, q, keys, p, rows);                                                                               \
    }                                                                                                                  \
    static __attribute__((noinline)) void sum_##rows(const float *p, const float *values, int64_t keys, float *sums,   \
                                                     int64_t padded, const float *factor, bool first) {                \
        sum_tile(p, values, keys, sums, padded, factor, first, rows);                                                  \
    }
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
static score_function *const scores[ROWS] = {score_1, score_2, score_3,  score_4,  score_5,  score_6,  score_7,
                                             score_8, score_9, score_10, score_11, score_12, score_13, score_14};
static sum_function *const sums_of[ROWS] = {sum_1, sum_2, sum_3,  sum_4,  sum_5,  sum_6,  sum_7,
                                            sum_8, sum_9, sum_10, sum_11, sum_12, sum_13, sum_14};

/* The largest of a row's m so far and its scores. */
static float row_top(const room *o, int r, int64_t keys) {
    const float *p = o->p + r * OCT_ATTENTION_BLOCK;
    __m512 most = _mm512_set1_ps(o->top[r]);
    for (int64_t j = 0; j < keys; j += 16) {
        const __mmask16 mask = oct_mask(keys - j);
        most = _mm512_mask_max_ps(most, mask, most, _mm512_loadu_ps(p + j));
    }
    return _mm512_reduce_max_ps(most);
}

/* Scores of one row become weights; m, l and the factor for what was summed before are brought up to date. */
static void soften(const room *o, int r, int64_t keys, oct_format probabilities) {
    float *p = o->p + r * OCT_ATTENTION_BLOCK;
    const float top = row_top(o, r, keys);
    const float factor = oct_exp(o->top[r] - top);
    const __m512 m = _mm512_set1_ps(top);
    __m512 total = _mm512_mul_ps(_mm512_loadu_ps(o->total + r * 16), _mm512_set1_ps(factor));
    for (int64_t j = 0; j < keys; j += 16) {
        __m512 e = oct_v_exp(_mm512_sub_ps(_mm512_loadu_ps(p + j), m));
        total = _mm512_mask_add_ps(total, oct_mask(keys - j), total, e);
        if (probabilities != OCT_FORMAT_FP32) e = oct_v_probability(probabilities, e);
        _mm512_storeu_ps(p + j, e);
    }
    _mm512_storeu_ps(o->total + r * 16, total);
    o->top[r] = top;
    o->factor[r] = factor;
}

/* Scores of all rows with keys first .. first + keys - 1. */
static void score(const oct_attention_f32 *t, const room *o, int64_t first, int64_t keys) {
    const int tiles = (t->rows + ROWS - 1) / ROWS, rows = (t->rows + tiles - 1) / tiles;
    for (int64_t key = 0; key < keys; key += WIDTH)
        for (int r = 0; r < t->rows; r += rows) {
            const int count = t->rows - r < rows ? t->rows - r : rows;
            scores[count - 1](t, t->q + r * t->q_stride, t->keys + (first + key) * t->depth,
                              o->p + r * OCT_ATTENTION_BLOCK + key);
        }
}

static void attend(const oct_attention_f32 *t, const room *o, int64_t first, int64_t keys) {
    const int tiles = (t->rows + ROWS - 1) / ROWS, rows = (t->rows + tiles - 1) / tiles;
    score(t, o, first, keys);
    for (int r = 0; r < t->rows; r++) soften(o, r, keys, t->probabilities);
    for (int64_t column = 0; column < o->padded; column += WIDTH)
        for (int r = 0; r < t->rows; r += rows) {
            const int count = t->rows - r < rows ? t->rows - r : rows;
            sums_of[count - 1](o->p + r * OCT_ATTENTION_BLOCK, t->values + column * t->tokens + first * WIDTH, keys,
                               o->sums + r * o->padded + column, o->padded, o->factor + r, first == 0);
        }
}

void oct_attention_f32_14x32_avx512(const oct_attention_f32 *t) {
    room o = {.p = t->scratch, .padded = (t->depth + WIDTH - 1) / WIDTH * WIDTH};
    o.sums = o.p + t->rows * OCT_ATTENTION_BLOCK;
    o.total = o.sums + t->rows * o.padded;
    o.top = o.total + t->rows * OCT_ATTENTION_LANES;
    o.factor = o.top + (t->rows + 15) / 16 * 16;
    for (int r = 0; r < t->rows; r++) {
        o.top[r] = -FLT_MAX;
        _mm512_storeu_ps(o.total + r * OCT_ATTENTION_LANES, _mm512_setzero_ps());
    }
    for (int64_t first = 0; t->probabilities != OCT_FORMAT_FP32 && first < t->tokens; first += OCT_ATTENTION_BLOCK) {
        const int64_t left = t->tokens - first, keys = left < OCT_ATTENTION_BLOCK ? left : OCT_ATTENTION_BLOCK;
        score(t, &o, first, keys);
        for (int r = 0; r < t->rows; r++) o.top[r] = row_top(&o, r, keys);
    }
    for (int64_t first = 0; first < t->tokens; first += OCT_ATTENTION_BLOCK) {
        const int64_t left = t->tokens - first;
        attend(t, &o, first, left < OCT_ATTENTION_BLOCK ? left : OCT_ATTENTION_BLOCK);
    }
    for (int r = 0; r < t->rows; r++) {
        const __m512 inverse = _mm512_set1_ps(1.0f / oct_v_fold(_mm512_loadu_ps(o.total + r * OCT_ATTENTION_LANES)));
        for (int64_t c = 0; c < t->depth; c += 16)
            _mm512_mask_storeu_ps(t->out + r * t->out_stride + c, oct_mask(t->depth - c),
                                  _mm512_mul_ps(_mm512_loadu_ps(o.sums + r * o.padded + c), inverse));
    }
}
