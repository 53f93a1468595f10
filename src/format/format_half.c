/* SPDX-License-Identifier: Apache-2.0 */
/* fp16 and bf16.
 *
 *     value = (-1)^sign 2^(exponent - bias) 1.fraction, or 2^(1 - bias) 0.fraction where the exponent field is 0
 *
 * Source: IEEE 754-2008 binary16 (1 5 10, bias 15); bf16 is a float's upper half (1 8 7, bias 127), as Intel's
 * "BFLOAT16 Hardware Numerics Definition" and ml_dtypes have it. Error: half a unit in the last place, 2^-11 and 2^-8
 * of the value. */
#include "format/format.h"
#include "format/minifloat.h"

float oct_fp16_decode(uint16_t code) {
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = code & 0x7fffu;
    if (magnitude >= 0x7c00u) return oct_float_of(sign | OCT_FLOAT_INFINITY | ((magnitude & 0x3ffu) << 13));
    return oct_float_of(sign | oct_minifloat_decode(magnitude, 10, 15));
}

float oct_bf16_decode(uint16_t code) {
    return oct_float_of((uint32_t)code << 16);
}

uint16_t oct_fp16_encode(float value) {
    uint32_t bits = oct_bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > OCT_FLOAT_INFINITY) {
        uint32_t payload = (magnitude >> 13) & 0x3ffu;
        return (uint16_t)(sign | 0x7c00u | (payload != 0 ? payload : 1));
    }
    uint32_t code = oct_minifloat_encode(magnitude, 10, 15); /* infinity's exponent is beyond every finite one */
    return (uint16_t)(sign | (code < 0x7c00u ? code : 0x7c00u));
}

uint16_t oct_bf16_encode(float value) {
    uint32_t bits = oct_bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > OCT_FLOAT_INFINITY) return (uint16_t)(sign | 0x7fc0u);
    return (uint16_t)(sign | shift_to_nearest_even(magnitude, 16)); /* carries into infinity by itself */
}
