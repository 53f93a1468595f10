/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers and text in files of our own: appending to an oct_text, and reading from untrusted bytes. */
#ifndef OCT_BASE_BYTES_H
#define OCT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void oct_put_u8(oct_text *out, uint8_t value);
void oct_put_u32(oct_text *out, uint32_t value);
void oct_put_u64(oct_text *out, uint64_t value);
void oct_put_i32(oct_text *out, int32_t value);
void oct_put_i64(oct_text *out, int64_t value);
void oct_put_f32(oct_text *out, float value);
void oct_put_f64(oct_text *out, double value);
/* u32 length, then the bytes */
void oct_put_text(oct_text *out, const char *text);

/* A reader of bytes that stay where they are. Past the end every get gives 0 and `failed` is set: check once at the
 * end. */
typedef struct oct_bytes {
    const uint8_t *data;
    size_t size, at;
    bool failed;
} oct_bytes;
uint8_t oct_get_u8(oct_bytes *in);
uint32_t oct_get_u32(oct_bytes *in);
uint64_t oct_get_u64(oct_bytes *in);
int32_t oct_get_i32(oct_bytes *in);
int64_t oct_get_i64(oct_bytes *in);
float oct_get_f32(oct_bytes *in);
double oct_get_f64(oct_bytes *in);
/* Text of at most `limit` bytes without a zero byte; points into the data, *length bytes, not terminated. NULL on
 * failure. */
const char *oct_get_text(oct_bytes *in, size_t limit, size_t *length);
/* A count of things that take at least `least` bytes each, so never more than what is left can hold. */
size_t oct_get_count(oct_bytes *in, size_t least);

#endif
