/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: names, sizes, conversion to float. */
#include "checkpoint/dtype.h"

#include <string.h>

#include "format/format.h"

static const struct {
    const char *name;
    unsigned size;
} dtypes[OCT_DTYPE_COUNT] = {
    [OCT_DTYPE_F64] = {"F64", 8},   [OCT_DTYPE_F32] = {"F32", 4},         [OCT_DTYPE_F16] = {"F16", 2},
    [OCT_DTYPE_BF16] = {"BF16", 2}, [OCT_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [OCT_DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [OCT_DTYPE_I8] = {"I8", 1},     [OCT_DTYPE_U8] = {"U8", 1},           [OCT_DTYPE_I32] = {"I32", 4},
    [OCT_DTYPE_I64] = {"I64", 8},
};

const char *oct_dtype_name(oct_dtype dtype) {
    return (unsigned)dtype < OCT_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

unsigned oct_dtype_size(oct_dtype dtype) {
    return (unsigned)dtype < OCT_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool oct_dtype_by_name(const char *name, oct_dtype *dtype) {
    for (int i = 0; i < OCT_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (oct_dtype)i;
            return true;
        }
    }
    return false;
}

static float float32_at(const uint8_t *bytes) {
    uint32_t bits = (uint32_t)oct_load_little(bytes, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float64_at(const uint8_t *bytes) {
    uint64_t bits = oct_load_little(bytes, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

void oct_dtype_to_float(oct_dtype dtype, const uint8_t *bytes, size_t count, float *values) {
    switch (dtype) {
    case OCT_DTYPE_F64:
        for (size_t i = 0; i < count; i++) values[i] = float64_at(bytes + 8 * i);
        break;
    case OCT_DTYPE_F32:
        for (size_t i = 0; i < count; i++) values[i] = float32_at(bytes + 4 * i);
        break;
    case OCT_DTYPE_F16:
        for (size_t i = 0; i < count; i++) values[i] = oct_fp16_decode((uint16_t)oct_load_little(bytes + 2 * i, 2));
        break;
    case OCT_DTYPE_BF16:
        for (size_t i = 0; i < count; i++) values[i] = oct_bf16_decode((uint16_t)oct_load_little(bytes + 2 * i, 2));
        break;
    case OCT_DTYPE_F8_E4M3:
        for (size_t i = 0; i < count; i++) values[i] = oct_e4m3_decode(bytes[i]);
        break;
    case OCT_DTYPE_F8_E5M2:
        for (size_t i = 0; i < count; i++) values[i] = oct_e5m2_decode(bytes[i]);
        break;
    case OCT_DTYPE_I8:
        for (size_t i = 0; i < count; i++) values[i] = (float)(int8_t)bytes[i];
        break;
    case OCT_DTYPE_U8:
        for (size_t i = 0; i < count; i++) values[i] = (float)bytes[i];
        break;
    case OCT_DTYPE_I32:
        for (size_t i = 0; i < count; i++) values[i] = (float)(int32_t)(uint32_t)oct_load_little(bytes + 4 * i, 4);
        break;
    case OCT_DTYPE_I64:
        for (size_t i = 0; i < count; i++) values[i] = (float)(int64_t)oct_load_little(bytes + 8 * i, 8);
        break;
    case OCT_DTYPE_COUNT:
        break;
    }
}
