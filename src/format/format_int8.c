/* SPDX-License-Identifier: Apache-2.0 */
/* int8 symmetric and uint8 asymmetric.
 *
 *     int8:   value = code * scale, scale = amax / 127; codes -127 .. 127, so that a code's negative is a code
 *     uint8:  value = (code - zero point) * scale, scale = (high - low) / 255, the range widened to hold 0
 *
 * Source: ONNX QuantizeLinear-13 (division by the scale, half to even, zero point added after rounding), int8
 * restricted to 127 on both sides as TensorRT and the LiteRT quantization specification (weights) have it. Error: half
 * a code inside the range. A scale is positive and finite whatever the data. The rounding mode must be to nearest (C's
 * default). */
#include <float.h>

#include "format/format.h"
#include "format/minifloat.h"

/* to nearest even, of |x| below 2^22: beyond 1.5 * 2^23 a float has no fraction */
static float round_half_even(float x) {
    const float magic = 12582912.0f;
    volatile float sum = x + magic; /* kept from being simplified by options that a user may add */
    return sum - magic;
}

/* value / scale cut to [low, high] and rounded; 0 for NaN */
static float to_code(float value, float scale, float low, float high) {
    float x = value / scale;
    if (!(x == x)) return 0;
    x = x < low ? low : x;
    x = x > high ? high : x;
    return round_half_even(x);
}

int8_t oct_int8_encode(float value, float scale) {
    return (int8_t)to_code(value, scale, -127.0f, 127.0f);
}

float oct_int8_decode(int8_t code, float scale) {
    return (float)code * scale;
}

void oct_uint8_range(float low, float high, float *scale, uint8_t *zero_point) {
    if (!(low < 0)) low = 0; /* NaN too */
    if (!(high > 0)) high = 0;
    low = low < -FLT_MAX ? -FLT_MAX : low;
    high = high > FLT_MAX ? FLT_MAX : high;
    float step = (float)(((double)high - (double)low) / 255.0);
    if (!(high > low)) step = 1;
    if (!(step > 0)) step = OCT_FLOAT_SMALLEST;
    *scale = step;
    *zero_point = (uint8_t)to_code(-low, step, 0, 255.0f);
}

uint8_t oct_uint8_encode(float value, float scale, uint8_t zero_point) {
    float code = to_code(value, scale, -255.0f, 255.0f) + (float)zero_point;
    return (uint8_t)(code < 0 ? 0 : code > 255.0f ? 255.0f : code);
}

float oct_uint8_decode(uint8_t code, float scale, uint8_t zero_point) {
    return (float)((int)code - (int)zero_point) * scale;
}
