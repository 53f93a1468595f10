/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of mxfp8 and nvfp4 as bytes: rows of scales, then codes. Memory has the numbers they stand for; the scale
 * of a block is found again from them. */
#include <string.h>

#include "engine/internal.h"

static size_t block_of(oct_format format) {
    return format == OCT_FORMAT_MXFP8 ? OCT_MXFP8_BLOCK : OCT_NVFP4_BLOCK;
}

static size_t scale_count(oct_format format, size_t columns) {
    return (columns + block_of(format) - 1) / block_of(format);
}

size_t oct_blocks_row_bytes(oct_format format, size_t columns) {
    return scale_count(format, columns) + (format == OCT_FORMAT_MXFP8 ? columns : (columns + 1) / 2);
}

void oct_blocks_row_read(const oct_form *form, const uint8_t *bytes, size_t columns, float *row) {
    const uint8_t *codes = bytes + scale_count(form->format, columns);
    if (form->format == OCT_FORMAT_MXFP8)
        oct_mxfp8_decode(bytes, codes, columns, row);
    else
        oct_nvfp4_decode(bytes, codes, columns, form->scale, row);
}

/* A block of nvfp4 under scale code `scale`: whether that gives its numbers. */
static bool encode_block(const float *values, size_t count, float tensor_scale, uint8_t scale, uint8_t *codes) {
    const float full = (float)((double)oct_e4m3_decode(scale) * (double)tensor_scale);
    float back[OCT_NVFP4_BLOCK];
    memset(codes, 0, (count + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        const uint8_t sign = values[i] < 0 || (values[i] == 0 && 1.0f / values[i] < 0) ? 8 : 0;
        const uint8_t code = full > 0 ? oct_e2m1_encode(values[i] / full) : sign;
        codes[i / 2] = (uint8_t)(codes[i / 2] | code << (4 * (i % 2)));
    }
    oct_nvfp4_decode(&scale, codes, count, tensor_scale, back);
    return memcmp(back, values, count * sizeof *values) == 0;
}

/* The largest of a block stands for one of e2m1's numbers: each is tried. */
static bool write_nvfp4(const float *values, size_t count, float tensor_scale, uint8_t *scale, uint8_t *codes) {
    static const float elements[] = {6.0f, 4.0f, 3.0f, 2.0f, 1.5f, 1.0f, 0.5f};
    const float amax = oct_amax(values, count);
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
        *scale = oct_e4m3_encode(amax / elements[e] / tensor_scale);
        if (encode_block(values, count, tensor_scale, *scale, codes)) return true;
    }
    return false;
}

bool oct_blocks_row_write(const oct_form *form, const float *row, size_t columns, uint8_t *bytes) {
    uint8_t *codes = bytes + scale_count(form->format, columns);
    const size_t block = block_of(form->format);
    float back[OCT_MXFP8_BLOCK];
    if (form->format == OCT_FORMAT_MXFP8) oct_mxfp8_encode(row, columns, form->scale_rule, bytes, codes);
    for (size_t i = 0; i < columns; i += block) {
        const size_t count = columns - i < block ? columns - i : block;
        if (form->format == OCT_FORMAT_MXFP8) {
            oct_mxfp8_decode(bytes + i / block, codes + i, count, back);
            if (memcmp(back, row + i, count * sizeof *row) != 0) return false;
        } else if (!write_nvfp4(row + i, count, form->scale, bytes + i / block, codes + i / 2)) {
            return false;
        }
    }
    return true;
}
