/* SPDX-License-Identifier: Apache-2.0 */
/* E8M0, and MXFP8 with E4M3 elements: 32 values share a power of two.
 *
 *     value = 2^(scale code - 127) * E4M3(code)
 *     scale, floor rule:     2^(floor(log2 amax) - 8): the elements' largest lies in [256, 512), above 448 it saturates
 *     scale, round-up rule:  2^ceil(log2(amax / 448)): nothing saturates
 *
 * Source: OCP Microscaling Formats (MX) 1.0, 5.1, 5.4.1 and 6.3 (floor); the round-up rule is NVIDIA's, for training.
 * Error, in parts of the block's amax: 2^-3 by the floor rule (448 for what is almost 512), 2^-4 by the other, where
 * the scale is not at its end, 2^-127. */
#include "format/format.h"
#include "format/minifloat.h"

#define E4M3_EXPONENT 8 /* of its largest value, 1.75 * 2^8 */

float oct_e8m0_decode(uint8_t code) {
    if (code == OCT_E8M0_NAN) return oct_float_of(0x7fc00000u);
    return oct_float_of(code == 0 ? 0x00400000u : (uint32_t)code << 23);
}

uint8_t oct_e8m0_encode(float value) {
    uint32_t bits = oct_bits_of(value);
    if (bits == 0 || bits >= OCT_FLOAT_INFINITY) return OCT_E8M0_NAN; /* and whatever has a sign */
    uint32_t exponent = bits >> 23, fraction = bits & 0x7fffffu;
    if (exponent == 0) return fraction > 0x400000u;
    return (uint8_t)(exponent + (fraction >= 0x400000u)); /* beyond 2^127: 255, NaN */
}

uint8_t oct_mxfp8_scale(float amax, oct_e8m0_rule rule) {
    uint32_t bits = oct_bits_of(amax) & 0x7fffffffu;
    if (bits >= OCT_FLOAT_INFINITY) return OCT_E8M0_NAN;
    int exponent = (int)(bits >> 23); /* a subnormal's scale is the smallest by either rule */
    if (rule == OCT_E8M0_CEIL && (bits & 0x7fffffu) > 0x600000u) exponent++; /* above 1.75 * 2^k */
    return (uint8_t)(exponent > E4M3_EXPONENT ? exponent - E4M3_EXPONENT : 0);
}

void oct_mxfp8_encode(const float *values, size_t count, oct_e8m0_rule rule, uint8_t *scales, uint8_t *codes) {
    for (size_t begin = 0; begin < count; begin += OCT_MXFP8_BLOCK) {
        size_t end = count - begin < OCT_MXFP8_BLOCK ? count : begin + OCT_MXFP8_BLOCK;
        float amax = oct_amax(values + begin, end - begin);
        uint8_t scale = oct_mxfp8_scale(amax, rule);
        scales[begin / OCT_MXFP8_BLOCK] = scale;
        /* Exact: a power of two in double. Back in float only what lies far below E4M3's half of 2^-9 is rounded. */
        double inverse = oct_power_of_two(127 - (int)scale);
        for (size_t i = begin; i < end; i++)
            codes[i] = scale == OCT_E8M0_NAN ? OCT_E4M3_NAN : oct_e4m3_encode((float)((double)values[i] * inverse));
    }
}

void oct_mxfp8_decode(const uint8_t *scales, const uint8_t *codes, size_t count, float *values) {
    for (size_t i = 0; i < count; i++) {
        uint8_t scale = scales[i / OCT_MXFP8_BLOCK];
        double factor = oct_power_of_two((int)scale - 127);
        values[i] = scale == OCT_E8M0_NAN ? oct_e8m0_decode(scale) : (float)(oct_e4m3_decode(codes[i]) * factor);
    }
}
