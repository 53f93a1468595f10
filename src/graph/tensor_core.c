/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tensor_core.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>

#define FRACTION 13 /* bits behind the point, of every term and of the result */

/* value = significand * 2^(exponent - bits), the leading bit of a normal one at 2^bits; zero: significand 0 */
typedef struct term {
    int64_t significand;
    int exponent;
} term;

/* E4M3: 3 bits of fraction, bias 7. */
static term decode(uint8_t code) {
    const int exponent = (code >> 3) & 15, fraction = code & 7;
    const int64_t magnitude = exponent > 0 ? 8 + fraction : fraction;
    return (term){code & 0x80 ? -magnitude : magnitude, (exponent > 0 ? exponent : 1) - 7};
}

static bool is_nan(uint8_t code) {
    return (code & 0x7f) == 0x7f;
}

/* Towards zero, whatever the sign. `bits` may be negative: to the left. */
static int64_t shift_right(int64_t value, int bits) {
    if (bits <= 0) return value * ((int64_t)1 << -bits);
    if (bits > 62) return 0;
    return value / ((int64_t)1 << bits);
}

/* A float32 as the sum of a step before: at most 24 bits of significand, kept whole. */
static term split(float x) {
    int exponent;
    const float fraction = frexpf(x, &exponent); /* [0.5, 1) */
    return (term){(int64_t)ldexpf(fraction, 24), exponent - 1};
}

/* significand * 2^(exponent - FRACTION), cut to FRACTION bits behind its leading one. */
static float join(int64_t significand, int exponent) {
    int64_t magnitude = significand < 0 ? -significand : significand;
    int bits = 0;
    while (magnitude >> bits >= (int64_t)2 << FRACTION) bits++;
    const int64_t cut = (magnitude >> bits) * ((int64_t)1 << bits);
    return ldexpf((float)(significand < 0 ? -cut : cut), exponent - FRACTION);
}

float oct_tensor_core_step(const uint8_t *a, const uint8_t *b, int count, float sum) {
    term products[OCT_TENSOR_CORE_DEPTH];
    const term before = split(sum);
    int most = before.significand != 0 ? before.exponent : INT_MIN;
    if (isnan(sum)) return NAN;
    for (int i = 0; i < count; i++) {
        if (is_nan(a[i]) || is_nan(b[i])) return NAN;
        const term x = decode(a[i]), y = decode(b[i]);
        products[i] = (term){x.significand * y.significand, x.exponent + y.exponent}; /* 6 bits of fraction */
        if (products[i].significand != 0 && products[i].exponent > most) most = products[i].exponent;
    }
    if (most == INT_MIN) return 0.0f;
    int64_t total = 0;
    if (before.significand != 0) total = shift_right(before.significand, 23 - FRACTION + most - before.exponent);
    for (int i = 0; i < count; i++)
        if (products[i].significand != 0)
            total += shift_right(products[i].significand, 6 - FRACTION + most - products[i].exponent);
    return join(total, most);
}

float oct_tensor_core_dot(const uint8_t *a, const uint8_t *b, int64_t depth, int64_t promote) {
    float sum = 0.0f, total = 0.0f;
    for (int64_t k = 0; k < depth; k += OCT_TENSOR_CORE_DEPTH) {
        const int64_t left = depth - k;
        sum =
            oct_tensor_core_step(a + k, b + k, (int)(left < OCT_TENSOR_CORE_DEPTH ? left : OCT_TENSOR_CORE_DEPTH), sum);
        if (promote > 0 && (k + OCT_TENSOR_CORE_DEPTH) % promote == 0) {
            total += sum;
            sum = 0.0f;
        }
    }
    return total + sum;
}
