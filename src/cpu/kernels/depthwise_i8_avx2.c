/* SPDX-License-Identifier: Apache-2.0 */
/* 3 x 3 windows, 16 channels at a time, in 16-bit multiplications, which never saturate: a column's rows 0 and 1 go in
 * pairs, row 2 alone. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/finish_i8_avx2.h"

#define CHANNELS 16

/* Three rows of a column: pairs of rows 0 and 1, pairs of row 2 and nothing; two vectors each. */
typedef struct column {
    __m256i v[2][2];
} column;

typedef struct block {
    const oct_depthwise_i8 *d;
    const int8_t *in[3];    /* at the block's first channel; a row outside: NULL */
    const int16_t *weights; /* [3][2][2] vectors */
    int64_t channel, count;
    bool only_codes;
} block;

OCT_INLINE __m256i codes_at(const block *b, int i, int64_t x) {
    if (b->in[i] == NULL || x < 0 || x >= b->d->width) return _mm256_setzero_si256();
    const int8_t *from = b->in[i] + x * b->d->in_stride;
    uint8_t some[CHANNELS] = {0};
    if (b->count < CHANNELS) from = memcpy(some, from, (size_t)b->count);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

OCT_INLINE column column_at(const block *b, int64_t x) {
    const __m256i r0 = codes_at(b, 0, x), r1 = codes_at(b, 1, x), r2 = codes_at(b, 2, x);
    const __m256i none = _mm256_setzero_si256();
    return (column){{{_mm256_unpacklo_epi16(r0, r1), _mm256_unpackhi_epi16(r0, r1)},
                     {_mm256_unpacklo_epi16(r2, none), _mm256_unpackhi_epi16(r2, none)}}};
}

OCT_INLINE void finish(const block *b, int64_t x, int v, __m256 number) {
    const oct_depthwise_i8 *d = b->d;
    const int64_t channel = b->channel + 8 * v, count = b->count - 8 * v;
    if (count <= 0) return;
    const __m256i mask = oct_mask(count);
    if (d->residual != NULL)
        number = _mm256_add_ps(number, _mm256_maskload_ps(d->residual + x * d->residual_stride + channel, mask));
    number = oct_v_activate(d->finish.activation, number);
    if (d->out != NULL) _mm256_maskstore_ps(d->out + x * d->out_stride + channel, mask, number);
    if (d->codes != NULL)
        oct_v_store_bytes((uint8_t *)d->codes + x * d->code_stride + channel,
                          oct_v_int8(number, _mm256_set1_ps(d->finish.inverse)), count);
}

OCT_INLINE void pixel(const block *b, int64_t x, const column *c0, const column *c1, const column *c2) {
    const oct_depthwise_i8 *d = b->d;
    const column *const columns[3] = {c0, c1, c2};
    __m256i sums[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; v++) {
        sums[v] = _mm256_setzero_si256();
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
#pragma GCC unroll 2
            for (int pair = 0; pair < 2; pair++) {
                const void *w = b->weights + ((j * 2 + pair) * 2 + v) * 16;
                sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(columns[j]->v[pair][v], _mm256_loadu_si256(w)));
            }
        }
    }
    const __m256 s0 = _mm256_loadu_ps(d->scales + b->channel), s1 = _mm256_loadu_ps(d->scales + b->channel + 8);
    const __m256 b0 = _mm256_loadu_ps(d->bias + b->channel), b1 = _mm256_loadu_ps(d->bias + b->channel + 8);
    if (b->only_codes) {
        const __m256 inverse = _mm256_set1_ps(d->finish.inverse);
        const __m256i first = oct_v_code(sums[0], s0, b0, inverse), second = oct_v_code(sums[1], s1, b1, inverse);
        const __m256i twice = oct_v_pack_codes(&d->finish, first, second, first, second);
        oct_v_store_codes(d->codes + x * d->code_stride + b->channel,
                          _mm256_castsi256_si128(_mm256_permute4x64_epi64(twice, 0xd8)), b->count);
        return;
    }
    const __m256 first = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[0]), s0, b0);
    const __m256 second = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), s1, b1);
    finish(b, x, 0, _mm256_permute2f128_ps(first, second, 0x20));
    finish(b, x, 1, _mm256_permute2f128_ps(first, second, 0x31));
}

static void block_row(const block *b) {
    const oct_depthwise_i8 *d = b->d;
    column c[3];
    int64_t x = 0, at = -d->pad;
    if (d->step == 1) {
        c[0] = column_at(b, at), c[1] = column_at(b, at + 1);
        for (; x + 3 <= d->out_width; x += 3, at += 3) {
            c[2] = column_at(b, at + 2);
            pixel(b, x, &c[0], &c[1], &c[2]);
            c[0] = column_at(b, at + 3);
            pixel(b, x + 1, &c[1], &c[2], &c[0]);
            c[1] = column_at(b, at + 4);
            pixel(b, x + 2, &c[2], &c[0], &c[1]);
        }
    }
    for (; x < d->out_width; x++) {
        at = x * d->step - d->pad;
        c[0] = column_at(b, at), c[1] = column_at(b, at + 1), c[2] = column_at(b, at + 2);
        pixel(b, x, &c[0], &c[1], &c[2]);
    }
}

void oct_depthwise_i8_3x3_avx2(const oct_depthwise_i8 *d) {
    for (int64_t channel = 0; channel < d->outputs; channel += CHANNELS) {
        const int64_t left = d->outputs - channel;
        block b = {.d = d,
                   .weights = (const int16_t *)d->weights + channel * 12,
                   .channel = channel,
                   .count = left < CHANNELS ? left : CHANNELS,
                   .only_codes = d->out == NULL && d->finish.bounded};
        for (int i = 0; i < 3; i++) {
            const int64_t y = d->top + i;
            b.in[i] = y < 0 || y >= d->height ? NULL : d->picture + y * d->row_stride + channel;
        }
        block_row(&b);
    }
}
