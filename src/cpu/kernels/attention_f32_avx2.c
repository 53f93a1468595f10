/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 6 query rows x 16 keys for the scores, 6 rows x 16 channels for the sums; the softmax between them works on
 * rows of scores still in the first cache. */
#include <float.h>

#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx2.h"

#include "cpu/kernels/stored_number.inc"

#define ROWS 6
#define WIDTH 16

/* The scratch of a block of rows. */
typedef struct room {
    float *p, *sums, *top, *factor, *total;
    int64_t padded; /* depth in whole panels: a row of sums */
} room;

OCT_INLINE void score_tile(const oct_attention_f32 *t, const float *q, const float *keys, float *p, const int rows) {
    __m256 acc[ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    oct_v_tile(acc, rows, q, t->q_stride, t->depth, keys);
    const __m256 scale = _mm256_set1_ps(t->scale);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            _mm256_storeu_ps(p + r * OCT_ATTENTION_BLOCK + 8 * v, _mm256_mul_ps(acc[r][v], scale));
}

/* sums = sums factor + p values; from 0 at the first block */
OCT_INLINE void sum_tile(const float *p, const float *values, int64_t keys, float *sums, int64_t padded,
                         const float *factor, bool first, const int rows) {
    __m256 acc[ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        const __m256 f = _mm256_set1_ps(factor[r]);
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            acc[r][v] = first ? _mm256_setzero_ps() : _mm256_mul_ps(_mm256_loadu_ps(sums + r * padded + 8 * v), f);
    }
    oct_v_tile(acc, rows, p, OCT_ATTENTION_BLOCK, keys, values);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) _mm256_storeu_ps(sums + r * padded + 8 * v, acc[r][v]);
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
static score_function *const scores[ROWS] = {score_1, score_2, score_3, score_4, score_5, score_6};
static sum_function *const sums_of[ROWS] = {sum_1, sum_2, sum_3, sum_4, sum_5, sum_6};

/* The largest of a row's m so far and its scores. Columns beyond the keys, up to 16, become -FLT_MAX: they weigh 0. */
static float row_top(const room *o, int r, int64_t keys) {
    float *p = o->p + r * OCT_ATTENTION_BLOCK;
    for (int64_t j = keys; j % 16 != 0; j++) p[j] = -FLT_MAX;
    __m256 most = _mm256_set1_ps(o->top[r]);
    for (int64_t j = 0; j < keys; j += 8) most = _mm256_max_ps(most, _mm256_loadu_ps(p + j));
    float top = o->top[r], lane[8];
    _mm256_storeu_ps(lane, most);
    for (int i = 0; i < 8; i++) top = oct_max(top, lane[i]);
    return top;
}

/* Scores of one row become weights; m, l and the factor for what was summed before are brought up to date. */
static void soften(const room *o, int r, int64_t keys, oct_format probabilities) {
    float *p = o->p + r * OCT_ATTENTION_BLOCK;
    const float top = row_top(o, r, keys);
    const float factor = oct_exp(o->top[r] - top);
    const __m256 m = _mm256_set1_ps(top);
    float *total = o->total + r * OCT_ATTENTION_LANES;
    __m256 sum[2];
    for (int v = 0; v < 2; v++) sum[v] = _mm256_mul_ps(_mm256_loadu_ps(total + 8 * v), _mm256_set1_ps(factor));
    for (int64_t j = 0; j < keys; j += 16)
        for (int v = 0; v < 2; v++) {
            __m256 e = oct_v_exp(_mm256_sub_ps(_mm256_loadu_ps(p + j + 8 * v), m));
            e = _mm256_and_ps(e, _mm256_castsi256_ps(oct_mask(keys - j - 8 * v)));
            sum[v] = _mm256_add_ps(sum[v], e);
            if (probabilities != OCT_FORMAT_FP32) e = oct_v_probability(probabilities, e);
            _mm256_storeu_ps(p + j + 8 * v, e);
        }
    for (int v = 0; v < 2; v++) _mm256_storeu_ps(total + 8 * v, sum[v]);
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

void oct_attention_f32_6x16_avx2(const oct_attention_f32 *t) {
    room o = {.p = t->scratch, .padded = (t->depth + WIDTH - 1) / WIDTH * WIDTH};
    o.sums = o.p + t->rows * OCT_ATTENTION_BLOCK;
    o.total = o.sums + t->rows * o.padded;
    o.top = o.total + t->rows * OCT_ATTENTION_LANES;
    o.factor = o.top + (t->rows + 15) / 16 * 16;
    for (int r = 0; r < t->rows; r++) {
        o.top[r] = -FLT_MAX;
        for (int v = 0; v < 2; v++) _mm256_storeu_ps(o.total + r * OCT_ATTENTION_LANES + 8 * v, _mm256_setzero_ps());
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
        const float *total = o.total + r * OCT_ATTENTION_LANES;
        const __m256 inverse = _mm256_set1_ps(1.0f / oct_v_fold(_mm256_loadu_ps(total), _mm256_loadu_ps(total + 8)));
        for (int64_t c = 0; c < t->depth; c += 8)
            _mm256_maskstore_ps(t->out + r * t->out_stride + c, oct_mask(t->depth - c),
                                _mm256_mul_ps(_mm256_loadu_ps(o.sums + r * o.padded + c), inverse));
    }
}
