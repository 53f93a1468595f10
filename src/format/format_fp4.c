/* SPDX-License-Identifier: Apache-2.0 */
/* E2M1, the elements of NVFP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
 *
 *     value = (-1)^sign 2^(exponent - 1) 1.fraction, or 0.fraction where the exponent field is 0
 *
 * Source: OCP Microscaling Formats (MX) 1.0, 5.3.3. No infinity, no NaN: a NaN gives a zero, of the other sign, as
 * ml_dtypes' cast does. Error: half a unit in the last place, 2^-2 of the value. */
#include "format/format.h"
#include "format/minifloat.h"

float oct_e2m1_decode(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 8u) << 28;
    return oct_float_of(sign | oct_minifloat_decode(code & 7u, 1, 1));
}

uint8_t oct_e2m1_encode(float value) {
    uint32_t bits = oct_bits_of(value), sign = bits >> 31 << 3, magnitude = bits & 0x7fffffffu;
    if (magnitude > OCT_FLOAT_INFINITY) return (uint8_t)(sign ^ 8u);
    uint32_t code = oct_minifloat_encode(magnitude, 1, 1);
    return (uint8_t)(sign | (code < 7u ? code : 7u));
}
