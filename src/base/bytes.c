/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <string.h>

static void put(oct_text *out, uint64_t value, unsigned bytes) {
    char raw[8];
    for (unsigned i = 0; i < bytes; i++) raw[i] = (char)(uint8_t)(value >> (8 * i));
    oct_text_append(out, raw, bytes);
}

void oct_put_u8(oct_text *out, uint8_t value) {
    put(out, value, 1);
}

void oct_put_u32(oct_text *out, uint32_t value) {
    put(out, value, 4);
}

void oct_put_u64(oct_text *out, uint64_t value) {
    put(out, value, 8);
}

void oct_put_i32(oct_text *out, int32_t value) {
    put(out, (uint32_t)value, 4);
}

void oct_put_i64(oct_text *out, int64_t value) {
    put(out, (uint64_t)value, 8);
}

void oct_put_f32(oct_text *out, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(out, bits, 4);
}

void oct_put_f64(oct_text *out, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(out, bits, 8);
}

void oct_put_text(oct_text *out, const char *text) {
    size_t length = strlen(text);
    oct_put_u32(out, (uint32_t)length);
    oct_text_append(out, text, length);
}

/* `size` bytes, or NULL past the end. */
static const uint8_t *take(oct_bytes *in, size_t size) {
    if (in->failed || size > in->size - in->at) {
        in->failed = true;
        return NULL;
    }
    const uint8_t *data = in->data + in->at;
    in->at += size;
    return data;
}

static uint64_t get(oct_bytes *in, unsigned bytes) {
    const uint8_t *raw = take(in, bytes);
    uint64_t value = 0;
    for (unsigned i = 0; raw != NULL && i < bytes; i++) value |= (uint64_t)raw[i] << (8 * i);
    return value;
}

uint8_t oct_get_u8(oct_bytes *in) {
    return (uint8_t)get(in, 1);
}

uint32_t oct_get_u32(oct_bytes *in) {
    return (uint32_t)get(in, 4);
}

uint64_t oct_get_u64(oct_bytes *in) {
    return get(in, 8);
}

int32_t oct_get_i32(oct_bytes *in) {
    return (int32_t)(uint32_t)get(in, 4);
}

int64_t oct_get_i64(oct_bytes *in) {
    return (int64_t)get(in, 8);
}

float oct_get_f32(oct_bytes *in) {
    uint32_t bits = oct_get_u32(in);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double oct_get_f64(oct_bytes *in) {
    uint64_t bits = oct_get_u64(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *oct_get_text(oct_bytes *in, size_t limit, size_t *length) {
    *length = oct_get_u32(in);
    if (*length > limit) in->failed = true;
    const char *text = (const char *)take(in, *length);
    if (text != NULL && memchr(text, '\0', *length) != NULL) in->failed = true;
    return in->failed ? NULL : text;
}

size_t oct_get_count(oct_bytes *in, size_t least) {
    size_t count = oct_get_u32(in);
    if (count > (in->size - in->at) / least) in->failed = true;
    return in->failed ? 0 : count;
}
