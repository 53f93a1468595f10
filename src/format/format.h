/* SPDX-License-Identifier: Apache-2.0 */
/* Number formats, from one list (formats.def, which explains its columns), and the conversions to and from float.
 *
 * Decoding is exact. Encoders round to nearest, ties to even, once, from the float's own bits, subnormals kept, signed
 * zero kept. They differ at the end of the range only, so each says what it does there. All are pure and thread-safe.
 *
 *     format   bits  layout (sign exponent mantissa)  bias  largest     special codes
 *     fp16       16  1 5 10                             15  65504       0x7c00 infinity, above it NaN
 *     bf16       16  1 8 7                             127  0x1.fep127  0x7f80 infinity, above it NaN
 *     e4m3        8  1 4 3                               7  448         no infinity; 0x7f NaN (OCP "E4M3", "e4m3fn")
 *     e5m2        8  1 5 2                              15  57344       0x7c infinity, 0x7d .. 0x7f NaN */
#ifndef OCT_FORMAT_FORMAT_H
#define OCT_FORMAT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

typedef enum oct_format {
#define OCT_FORMAT(identifier, name, bits, block, max_finite, min_normal, error) OCT_FORMAT_##identifier,
#include "format/formats.def"
#undef OCT_FORMAT
    OCT_FORMAT_COUNT
} oct_format;

/* A row of the list. */
typedef struct oct_format_row {
    const char *name;
    unsigned bits, block;
    double max_finite, min_normal, error;
} oct_format_row;

/* NULL for a number that is no format. */
const oct_format_row *oct_format_get(oct_format format);
const char *oct_format_name(oct_format format); /* "unknown" for a number that is no format */
unsigned oct_format_bits(oct_format format);    /* 0 for a number that is no format */
int oct_format_by_name(const char *name);       /* -1: none */

float oct_fp16_decode(uint16_t code);
float oct_bf16_decode(uint16_t code);
float oct_e4m3_decode(uint8_t code);
float oct_e5m2_decode(uint8_t code);

/* IEEE 754 to the letter: overflow gives infinity, a NaN keeps its sign and the upper ten bits of its payload (0x7c01
 * if those are zero), as NumPy's. */
uint16_t oct_fp16_encode(float value);
/* The same for bf16, but every NaN becomes the quiet 0x7fc0 of its sign, as ml_dtypes'. */
uint16_t oct_bf16_encode(float value);
/* What engines use, saturating: beyond the largest finite value, infinity included, gives it with the sign; NaN stays
 * NaN of its sign (0x7f, and 0x7e for e5m2). */
uint8_t oct_e4m3_encode(float value);
uint8_t oct_e5m2_encode(float value);
/* As ml_dtypes casts, without saturation: what rounds beyond the largest finite value, so above 464, is NaN in e4m3;
 * from 61440 on infinity in e5m2. */
uint8_t oct_e4m3_encode_nan(float value);
uint8_t oct_e5m2_encode_inf(float value);

#endif
