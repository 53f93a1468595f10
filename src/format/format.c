/* SPDX-License-Identifier: Apache-2.0 */
/* The list of formats as a table, and the conversions, all on the float's bits: no arithmetic, so neither rounding mode
 * nor flush-to-zero changes a result. */
#include "format/format.h"

#include <string.h>

static const oct_format_row rows[OCT_FORMAT_COUNT] = {
#define OCT_FORMAT(identifier, name, bits, block, max_finite, min_normal, error)                                       \
    {name, bits, block, max_finite, min_normal, error},
#include "format/formats.def"
#undef OCT_FORMAT
};

const oct_format_row *oct_format_get(oct_format format) {
    return (unsigned)format < OCT_FORMAT_COUNT ? &rows[format] : NULL;
}

const char *oct_format_name(oct_format format) {
    const oct_format_row *row = oct_format_get(format);
    return row != NULL ? row->name : "unknown";
}

unsigned oct_format_bits(oct_format format) {
    const oct_format_row *row = oct_format_get(format);
    return row != NULL ? row->bits : 0;
}

int oct_format_by_name(const char *name) {
    for (int i = 0; i < OCT_FORMAT_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) return i;
    return -1;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define FLOAT_INFINITY 0x7f800000u

/* value / 2^shift, to nearest even; shift > 0 */
static uint32_t shift_to_nearest_even(uint32_t value, unsigned shift) {
    if (shift > 31) return 0; /* value < 2^24 there: less than half of the smallest code */
    uint32_t kept = value >> shift;
    uint32_t rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* The code, without sign, of the finite magnitude `bits` in a format of `mantissa` bits (at most 10) and `bias` (at
 * most 15), its exponent field without an upper end: callers cut at their largest code. */
static uint32_t encode_magnitude(uint32_t bits, unsigned mantissa, unsigned bias) {
    unsigned drop = 23 - mantissa;
    uint32_t exponent = bits >> 23, min_exponent = 128 - bias; /* biased float exponent of the smallest normal value */
    /* A carry out of the mantissa runs into the exponent, which is right: the next value is the next power of two. */
    if (exponent >= min_exponent) return shift_to_nearest_even(bits - ((127 - bias) << 23), drop);
    if (exponent == 0) return 0; /* float subnormals are far below half of the smallest code */
    uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
    return shift_to_nearest_even(significand, drop + (min_exponent - exponent));
}

/* `code` has no sign and is finite. */
static uint32_t decode_magnitude(uint32_t code, unsigned mantissa, unsigned bias) {
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

float oct_fp16_decode(uint16_t code) {
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = code & 0x7fffu;
    if (magnitude >= 0x7c00u) return float_of(sign | FLOAT_INFINITY | ((magnitude & 0x3ffu) << 13));
    return float_of(sign | decode_magnitude(magnitude, 10, 15));
}

float oct_bf16_decode(uint16_t code) {
    return float_of((uint32_t)code << 16);
}

float oct_e4m3_decode(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude == 0x7fu) return float_of(sign | 0x7fc00000u);
    return float_of(sign | decode_magnitude(magnitude, 3, 7));
}

float oct_e5m2_decode(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude >= 0x7cu) return float_of(sign | FLOAT_INFINITY | ((magnitude & 3u) << 21));
    return float_of(sign | decode_magnitude(magnitude, 2, 15));
}

uint16_t oct_fp16_encode(float value) {
    uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > FLOAT_INFINITY) {
        uint32_t payload = (magnitude >> 13) & 0x3ffu;
        return (uint16_t)(sign | 0x7c00u | (payload != 0 ? payload : 1));
    }
    uint32_t code = encode_magnitude(magnitude, 10, 15); /* infinity's exponent is beyond every finite one */
    return (uint16_t)(sign | (code < 0x7c00u ? code : 0x7c00u));
}

uint16_t oct_bf16_encode(float value) {
    uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > FLOAT_INFINITY) return (uint16_t)(sign | 0x7fc0u);
    return (uint16_t)(sign | shift_to_nearest_even(magnitude, 16)); /* carries into infinity by itself */
}

/* `over` is the code of what rounds beyond `last`, the largest finite code */
static uint8_t encode_eight(float value, unsigned mantissa, unsigned bias, uint32_t last, uint32_t over, uint32_t nan) {
    uint32_t bits = bits_of(value), sign = bits >> 31 << 7, magnitude = bits & 0x7fffffffu;
    if (magnitude > FLOAT_INFINITY) return (uint8_t)(sign | nan);
    uint32_t code = encode_magnitude(magnitude, mantissa, bias);
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
