/* SPDX-License-Identifier: Apache-2.0 */
/* E4M3 and E5M2.
 *
 *     value = (-1)^sign 2^(exponent - bias) 1.fraction, or 2^(1 - bias) 0.fraction where the exponent field is 0
 *
 * Source: OCP 8-bit Floating Point Specification (OFP8) 1.0. E4M3 (1 4 3, bias 7) has no infinity and one NaN a sign,
 * S.1111.111; E5M2 (1 5 2, bias 15) is IEEE-like. Error: half a unit in the last place, 2^-4 and 2^-3 of the value. */
#include "format/format.h"
#include "format/minifloat.h"

float oct_e4m3_decode(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude == 0x7fu) return oct_float_of(sign | 0x7fc00000u);
    return oct_float_of(sign | oct_minifloat_decode(magnitude, 3, 7));
}

float oct_e5m2_decode(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude >= 0x7cu) return oct_float_of(sign | OCT_FLOAT_INFINITY | ((magnitude & 3u) << 21));
    return oct_float_of(sign | oct_minifloat_decode(magnitude, 2, 15));
}

/* `over` is the code of what rounds beyond `last`, the largest finite code */
static uint8_t encode_eight(float value, unsigned mantissa, unsigned bias, uint32_t last, uint32_t over, uint32_t nan) {
    uint32_t bits = oct_bits_of(value), sign = bits >> 31 << 7, magnitude = bits & 0x7fffffffu;
    if (magnitude > OCT_FLOAT_INFINITY) return (uint8_t)(sign | nan);
    uint32_t code = oct_minifloat_encode(magnitude, mantissa, bias);
    return (uint8_t)(sign | (code <= last ? code : over));
}

uint8_t oct_e4m3_encode(float value) {
    return encode_eight(value, 3, 7, 0x7eu, 0x7eu, 0x7fu);
}

uint8_t oct_e4m3_encode_nan(float value) {
    return encode_eight(value, 3, 7, 0x7eu, 0x7fu, 0x7fu);
}

uint8_t oct_e5m2_encode(float value) {
    return encode_eight(value, 2, 15, 0x7bu, 0x7bu, 0x7eu);
}

uint8_t oct_e5m2_encode_inf(float value) {
    return encode_eight(value, 2, 15, 0x7bu, 0x7cu, 0x7eu);
}
