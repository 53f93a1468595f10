/* SPDX-License-Identifier: Apache-2.0 */
/* What needs a format by number: rounding one value, scales from an amax, and groups of values that share a scale. */
#include <float.h>

#include "format/format.h"
#include "format/minifloat.h"

float oct_amax(const float *values, size_t count) {
    uint32_t largest = 0; /* magnitudes order as integers; NaN above infinity */
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = oct_bits_of(values[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return oct_float_of(largest);
}

float oct_format_round(oct_format format, float value) {
    switch (format) {
    case OCT_FORMAT_FP16:
        return oct_fp16_decode(oct_fp16_encode(value));
    case OCT_FORMAT_BF16:
        return oct_bf16_decode(oct_bf16_encode(value));
    case OCT_FORMAT_E4M3:
    case OCT_FORMAT_MXFP8:
        return oct_e4m3_decode(oct_e4m3_encode(value));
    case OCT_FORMAT_E5M2:
        return oct_e5m2_decode(oct_e5m2_encode(value));
    case OCT_FORMAT_INT8:
        return oct_int8_decode(oct_int8_encode(value, 1), 1);
    case OCT_FORMAT_UINT8:
        return oct_uint8_decode(oct_uint8_encode(value, 1, 0), 1, 0);
    case OCT_FORMAT_E2M1:
    case OCT_FORMAT_NVFP4:
        return oct_e2m1_decode(oct_e2m1_encode(value));
    case OCT_FORMAT_E8M0:
        return oct_e8m0_decode(oct_e8m0_encode(value));
    case OCT_FORMAT_FP32:
    case OCT_FORMAT_COUNT:
        break;
    }
    return value;
}

float oct_format_scale(oct_format format, float amax) {
    const oct_format_row *row = oct_format_get(format);
    if (row == NULL || !(amax > 0)) return 1; /* NaN too */
    if (amax > FLT_MAX) amax = FLT_MAX;
    float scale = amax / (float)row->element_max;
    return scale > 0 ? scale : OCT_FLOAT_SMALLEST;
}

bool oct_format_has_scale(oct_format format) {
    return format == OCT_FORMAT_E4M3 || format == OCT_FORMAT_E5M2 || format == OCT_FORMAT_INT8;
}

static uint8_t encode_scaled(oct_format format, float value, float scale) {
    if (format == OCT_FORMAT_INT8) return (uint8_t)oct_int8_encode(value, scale);
    return format == OCT_FORMAT_E4M3 ? oct_e4m3_encode(value / scale) : oct_e5m2_encode(value / scale);
}

static float decode_scaled(oct_format format, uint8_t code, float scale) {
    if (format == OCT_FORMAT_INT8) return oct_int8_decode((int8_t)code, scale);
    return (format == OCT_FORMAT_E4M3 ? oct_e4m3_decode(code) : oct_e5m2_decode(code)) * scale;
}

size_t oct_scaled_groups(size_t rows, size_t columns, size_t block) {
    return rows * ((columns + block - 1) / block);
}

void oct_scaled_scales(oct_format format, const float *values, size_t rows, size_t columns, size_t block,
                       float *scales) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t begin = 0; begin < columns; begin += block) {
            size_t length = columns - begin < block ? columns - begin : block;
            *scales++ = oct_format_scale(format, oct_amax_finite(values + row * columns + begin, length));
        }
    }
}

size_t oct_scaled_encode(oct_format format, const float *values, size_t rows, size_t columns, size_t block,
                         const float *scales, uint8_t *codes) {
    size_t groups = (columns + block - 1) / block, nans = 0;
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++) {
            float value = values[row * columns + column];
            codes[row * columns + column] = encode_scaled(format, value, scales[row * groups + column / block]);
            nans += value != value;
        }
    }
    return nans;
}

void oct_scaled_decode(oct_format format, const uint8_t *codes, size_t rows, size_t columns, size_t block,
                       const float *scales, float *values) {
    size_t groups = (columns + block - 1) / block;
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < columns; column++)
            values[row * columns + column] =
                decode_scaled(format, codes[row * columns + column], scales[row * groups + column / block]);
    }
}

float oct_amax_finite(const float *values, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = oct_bits_of(values[i]) & 0x7fffffffu;
        if (magnitude < OCT_FLOAT_INFINITY && magnitude > largest) largest = magnitude;
    }
    return oct_float_of(largest);
}
