/* SPDX-License-Identifier: Apache-2.0 */
/* 3 x 3 windows, 64 channels at a time: a column's three rows are dealt into dwords once, four vectors of sixteen
 * channels, and serve up to three pixels; a pixel is three vpdpbusd a vector. Codes go in as unsigned, 128 more; the
 * offsets take that off again. Packing the sums to bytes undoes the order that unpacking made.
 *
 * A last block of at most 32 channels takes two pixels at once: the left half of the row in the lower 32 bytes, the
 * right half, `apart` pixels on, in the upper. Of an odd number of pixels the middle one is in both. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/finish_i8_avx512.h"

#define CHANNELS 64

/* Three rows of a column, as [4 vectors] of dwords: row 0, 1, 2, nothing. */
typedef struct column {
    __m512i v[4];
} column;

/* What the pixels of one block of channels share. */
typedef struct block {
    const oct_depthwise_i8 *d;
    const int8_t *in[3];    /* at the block's first channel; a row outside: NULL */
    const uint8_t *weights; /* [3][4] vectors */
    int64_t channel;
    __mmask64 mask;
    bool halves;
    int64_t apart, pixels; /* of the halves; pixels of one, or of the row */
} block;

OCT_INLINE __m512i codes_at(const block *b, int i, int64_t x) {
    const oct_depthwise_i8 *d = b->d;
    const __m512i shift = _mm512_set1_epi8((char)-128);
    if (b->in[i] == NULL) return shift;
    if (!b->halves) {
        if (x < 0 || x >= d->width) return shift;
        return _mm512_xor_si512(shift, _mm512_maskz_loadu_epi8(b->mask, b->in[i] + x * d->in_stride));
    }
    __m256i half[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const int64_t at = x + h * b->apart * d->step;
        half[h] = at < 0 || at >= d->width ? _mm256_setzero_si256()
                                           : _mm256_maskz_loadu_epi8((__mmask32)b->mask, b->in[i] + at * d->in_stride);
    }
    return _mm512_xor_si512(shift, _mm512_inserti64x4(_mm512_castsi256_si512(half[0]), half[1], 1));
}

OCT_INLINE column column_at(const block *b, int64_t x) {
    const __m512i rows[3] = {codes_at(b, 0, x), codes_at(b, 1, x), codes_at(b, 2, x)};
    const __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]), high = _mm512_unpackhi_epi8(rows[0], rows[1]);
    const __m512i low2 = _mm512_unpacklo_epi8(rows[2], _mm512_setzero_si512());
    const __m512i high2 = _mm512_unpackhi_epi8(rows[2], _mm512_setzero_si512());
    return (column){{_mm512_unpacklo_epi16(low, low2), _mm512_unpackhi_epi16(low, low2),
                     _mm512_unpacklo_epi16(high, high2), _mm512_unpackhi_epi16(high, high2)}};
}

/* Four vectors whose lanes are dealt out, to four of channels in their order. */
OCT_INLINE void gather_lanes(__m512 v[4]) {
    const __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[0], v[1], 0xee);
    const __m512 c = _mm512_shuffle_f32x4(v[2], v[3], 0x44), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_f32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_f32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

/* Products of one pixel, as numbers, to everywhere they are wanted; of a middle one once. */
static __attribute__((noinline)) void finish(const block *b, int64_t x, const __m512 *products) {
    const oct_depthwise_i8 *d = b->d;
    __m512 v[4] = {products[0], products[1], products[2], products[3]};
    gather_lanes(v);
    for (int i = 0; i < 4; i++) {
        const bool right = b->halves && i >= 2;
        if (right && x + b->apart < b->pixels) continue;
        const int64_t channel = b->channel + 16 * (right ? i - 2 : i), at = right ? x + b->apart : x;
        const __mmask16 mask = oct_mask(d->outputs - channel);
        if (d->residual != NULL)
            v[i] = _mm512_add_ps(v[i], _mm512_maskz_loadu_ps(mask, d->residual + at * d->residual_stride + channel));
        v[i] = oct_v_activate(d->finish.activation, v[i]);
        if (d->out != NULL) _mm512_mask_storeu_ps(d->out + at * d->out_stride + channel, mask, v[i]);
        if (d->codes != NULL)
            _mm_mask_storeu_epi8(d->codes + at * d->code_stride + channel, mask,
                                 oct_v_int8(v[i], _mm512_set1_ps(d->finish.inverse)));
    }
}

OCT_INLINE void store(const block *b, int64_t x, __m512i codes) {
    const oct_depthwise_i8 *d = b->d;
    int8_t *to = d->codes + x * d->code_stride + b->channel;
    if (!b->halves) {
        _mm512_mask_storeu_epi8(to, b->mask, codes);
        return;
    }
    _mm256_mask_storeu_epi8(to, (__mmask32)b->mask, _mm512_castsi512_si256(codes));
    _mm256_mask_storeu_epi8(to + b->apart * d->code_stride, (__mmask32)b->mask, _mm512_extracti64x4_epi64(codes, 1));
}

OCT_INLINE void pixel(const block *b, int64_t x, const column *left, const column *middle, const column *right,
                      const bool only_codes) {
    const oct_depthwise_i8 *d = b->d;
    const float *scales = d->scales + b->channel, *bias = d->bias + b->channel;
    const __m512 inverse = _mm512_set1_ps(d->finish.inverse);
    __m512i codes[4];
    __m512 numbers[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const uint8_t *w = b->weights + 64 * i;
        __m512i sum = _mm512_loadu_si512(d->offsets + b->channel + 16 * i);
        sum = _mm512_dpbusd_epi32(sum, left->v[i], _mm512_loadu_si512(w));
        sum = _mm512_dpbusd_epi32(sum, middle->v[i], _mm512_loadu_si512(w + 256));
        sum = _mm512_dpbusd_epi32(sum, right->v[i], _mm512_loadu_si512(w + 512));
        const __m512 scale = _mm512_loadu_ps(scales + 16 * i), more = _mm512_loadu_ps(bias + 16 * i);
        if (only_codes)
            codes[i] = oct_v_code(sum, scale, more, inverse);
        else
            numbers[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, more);
    }
    if (only_codes)
        store(b, x, oct_v_pack_codes(codes, _mm512_set1_epi8(d->finish.low), _mm512_set1_epi8(d->finish.top)));
    else
        finish(b, x, numbers);
}

/* All pixels of a row; step is a constant at the call, 0: any. Columns go round three places. */
OCT_INLINE void pixels(const block *b, const int step, const bool only_codes) {
    const oct_depthwise_i8 *d = b->d;
    column c[3];
    int64_t x = 0, at = -d->pad;
    if (step == 1) {
        c[0] = column_at(b, at), c[1] = column_at(b, at + 1);
        for (; x + 3 <= b->pixels; x += 3, at += 3) {
            c[2] = column_at(b, at + 2);
            pixel(b, x, &c[0], &c[1], &c[2], only_codes);
            c[0] = column_at(b, at + 3);
            pixel(b, x + 1, &c[1], &c[2], &c[0], only_codes);
            c[1] = column_at(b, at + 4);
            pixel(b, x + 2, &c[2], &c[0], &c[1], only_codes);
        }
    } else if (step == 2) {
        c[0] = column_at(b, at);
        for (; x + 2 <= b->pixels; x += 2, at += 4) {
            c[1] = column_at(b, at + 1), c[2] = column_at(b, at + 2);
            pixel(b, x, &c[0], &c[1], &c[2], only_codes);
            c[1] = column_at(b, at + 3), c[0] = column_at(b, at + 4);
            pixel(b, x + 1, &c[2], &c[1], &c[0], only_codes);
        }
    }
    for (; x < b->pixels; x++) {
        at = x * d->step - d->pad;
        c[0] = column_at(b, at), c[1] = column_at(b, at + 1), c[2] = column_at(b, at + 2);
        pixel(b, x, &c[0], &c[1], &c[2], only_codes);
    }
}

OCT_INLINE void row(const oct_depthwise_i8 *d, const int step, const bool only_codes) {
    for (int64_t channel = 0; channel < d->outputs; channel += CHANNELS) {
        const int64_t left = d->outputs - channel;
        block b = {.d = d,
                   .weights = (const uint8_t *)d->weights + channel * 12,
                   .channel = channel,
                   .mask = left >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1,
                   .pixels = d->out_width};
        for (int i = 0; i < 3; i++) {
            const int64_t y = d->top + i;
            b.in[i] = y < 0 || y >= d->height ? NULL : d->picture + y * d->row_stride + channel;
        }
        if (left > OCT_DEPTHWISE_I8_HALF) { /* a call each, so that each is compiled for its own kind */
            b.halves = false;
            pixels(&b, step, only_codes);
        } else {
            b.halves = true;
            b.pixels = (d->out_width + 1) / 2;
            b.apart = d->out_width - b.pixels;
            pixels(&b, step, only_codes);
        }
    }
}

#define ROW(name, step, only_codes)                                                                                    \
    static __attribute__((noinline)) void name(const oct_depthwise_i8 *d) {                                            \
        row(d, step, only_codes);                                                                                      \
    }
ROW(numbers, 0, false)
ROW(codes_any, 0, true)
ROW(codes_1, 1, true)
ROW(codes_2, 2, true)

void oct_depthwise_i8_3x3_vnni(const oct_depthwise_i8 *d) {
    if (d->out != NULL || !d->finish.bounded)
        numbers(d);
    else if (d->step == 1)
        codes_1(d);
    else if (d->step == 2)
        codes_2(d);
    else
        codes_any(d);
}
