/* SPDX-License-Identifier: Apache-2.0 */
/* 3 x 3 windows: 8 channels at a time, their nine weights at hand, two output pixels at once where the window lies
 * inside the row. */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx2.h"

#define PIXELS 2

/* What the pixels of one block of channels share. */
typedef struct block {
    const oct_depthwise_f32 *d;
    __m256 weights[9], bias;
    int64_t channel;
    __m256i mask;
} block;

OCT_INLINE void finish(const block *b, int64_t x, __m256 sum) {
    const oct_depthwise_f32 *d = b->d;
    if (d->residual != NULL)
        sum = _mm256_add_ps(sum, _mm256_maskload_ps(d->residual + x * d->residual_stride + b->channel, b->mask));
    _mm256_maskstore_ps(d->out + x * d->out_stride + b->channel, b->mask, oct_v_activate(d->activation, sum));
}

/* One pixel, its window perhaps over the edge. */
OCT_INLINE void pixel(const block *b, int64_t x) {
    const oct_depthwise_f32 *d = b->d;
    const int64_t left = x * d->step - d->pad;
    __m256 sum = b->bias;
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        if (d->in[i] == NULL) continue;
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            if (left + j < 0 || left + j >= d->width) continue;
            const float *in = d->in[i] + (left + j) * d->in_stride + b->channel;
            sum = _mm256_fmadd_ps(_mm256_maskload_ps(in, b->mask), b->weights[3 * i + j], sum);
        }
    }
    finish(b, x, sum);
}

/* PIXELS of them, all inside; step is a constant at the call. */
OCT_INLINE void pixels(const block *b, int64_t x, const int step) {
    const oct_depthwise_f32 *d = b->d;
    __m256 sum[PIXELS];
#pragma GCC unroll 2
    for (int p = 0; p < PIXELS; p++) sum[p] = b->bias;
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        if (d->in[i] == NULL) continue;
        const float *in = d->in[i] + (x * step - d->pad) * d->in_stride + b->channel;
        __m256 column[(PIXELS - 1) * 2 + 3];
#pragma GCC unroll 5
        for (int j = 0; j < (PIXELS - 1) * step + 3; j++)
            column[j] = _mm256_maskload_ps(in + j * d->in_stride, b->mask);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++)
#pragma GCC unroll 2
            for (int p = 0; p < PIXELS; p++)
                sum[p] = _mm256_fmadd_ps(column[p * step + j], b->weights[3 * i + j], sum[p]);
    }
#pragma GCC unroll 2
    for (int p = 0; p < PIXELS; p++) finish(b, x + p, sum[p]);
}

OCT_INLINE void row(const oct_depthwise_f32 *d, const int step) {
    /* pixels begin .. end - 1 have their windows inside */
    const int64_t begin = (d->pad + d->step - 1) / d->step;
    const int64_t end = d->width + d->pad >= 3 ? (d->width + d->pad - 3) / d->step + 1 : 0;
    for (int64_t channel = 0; channel < d->channels; channel += 8) {
        block b = {.d = d, .channel = channel, .mask = oct_mask(d->channels - channel)};
        b.bias = _mm256_loadu_ps(d->bias + channel);
#pragma GCC unroll 9
        for (int t = 0; t < 9; t++) b.weights[t] = _mm256_loadu_ps(d->weights + t * d->lanes + channel);
        int64_t x = 0;
        for (; x < begin && x < d->out_width; x++) pixel(&b, x);
        if (step != 0)
            for (; x + PIXELS <= end && x + PIXELS <= d->out_width; x += PIXELS) pixels(&b, x, step);
        for (; x < d->out_width; x++) pixel(&b, x);
    }
}

static void row_1(const oct_depthwise_f32 *d) {
    row(d, 1);
}
static void row_2(const oct_depthwise_f32 *d) {
    row(d, 2);
}
static void row_any(const oct_depthwise_f32 *d) {
    row(d, 0);
}

void oct_depthwise_f32_3x3_avx2(const oct_depthwise_f32 *d) {
    if (d->step == 1)
        row_1(d);
    else if (d->step == 2)
        row_2(d);
    else
        row_any(d);
}
