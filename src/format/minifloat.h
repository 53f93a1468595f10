/* SPDX-License-Identifier: Apache-2.0 */
/* What the floating-point formats share: a magnitude to a code and back, on the float's bits. No arithmetic, so neither
 * rounding mode nor flush-to-zero changes a result. */
#ifndef OCT_FORMAT_MINIFLOAT_H
#define OCT_FORMAT_MINIFLOAT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t oct_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float oct_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define OCT_FLOAT_INFINITY 0x7f800000u
#define OCT_FLOAT_SMALLEST 0x1p-149f /* the least a scale may be: never 0 */

/* 2^exponent, exponent in -1022 .. 1023 */
static inline double oct_power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value / 2^shift, to nearest even; shift > 0 */
static inline uint32_t shift_to_nearest_even(uint32_t value, unsigned shift) {
    if (shift > 31) return 0; /* value < 2^24 there: less than half of the smallest code */
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* The code, without sign, of the finite magnitude `bits` in a format of `mantissa` bits (at most 10) and `bias` (at
 * most 15), its exponent field without an upper end: callers cut at their largest code. */
static inline uint32_t oct_minifloat_encode(uint32_t bits, unsigned mantissa, unsigned bias) {
    unsigned drop = 23 - mantissa;
    uint32_t exponent = bits >> 23, min_exponent = 128 - bias; /* biased float exponent of the smallest normal value */
    /* A carry out of the mantissa runs into the exponent, which is right: the next value is the next power of two. */
    if (exponent >= min_exponent) return shift_to_nearest_even(bits - ((127 - bias) << 23), drop);
    if (exponent == 0) return 0; /* float subnormals are far below half of the smallest code */
    uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
    return shift_to_nearest_even(significand, drop + (min_exponent - exponent));
}

/* `code` has no sign and is finite. */
static inline uint32_t oct_minifloat_decode(uint32_t code, unsigned mantissa, unsigned bias) {
    uint32_t exponent = code >> mantissa, fraction = code & ((1u << mantissa) - 1);
    if (exponent == 0) {
        if (fraction == 0) return 0;
        exponent = 1;
        for (; (fraction >> mantissa) == 0; fraction <<= 1)
            exponent--; /* wraps below 0 and is brought back by the bias */
        fraction &= (1u << mantissa) - 1;
    }
    return ((exponent + 127 - bias) << 23) | (fraction << (23 - mantissa));
}

#endif
