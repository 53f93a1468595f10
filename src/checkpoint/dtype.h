/* SPDX-License-Identifier: Apache-2.0 */
/* The element types of a checkpoint (inside the checkpoint room). */
#ifndef OCT_CHECKPOINT_DTYPE_H
#define OCT_CHECKPOINT_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "checkpoint/checkpoint.h"

bool oct_dtype_by_name(const char *name, oct_dtype *dtype);
/* Elements of `dtype` at `bytes` (little-endian, any alignment) as floats. */
void oct_dtype_to_float(oct_dtype dtype, const uint8_t *bytes, size_t count, float *values);

static inline uint64_t oct_load_little(const uint8_t *bytes, unsigned size) {
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static inline void oct_store_little(uint8_t *bytes, unsigned size, uint64_t value) {
    for (unsigned i = 0; i < size; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

#endif
