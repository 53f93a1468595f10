/* SPDX-License-Identifier: Apache-2.0 */
/* Number formats, from one list (formats.def, which explains its columns), and the conversions to and from float. Each
 * family has a file, format_NAME.c, with its formula, source and error; docs/add-a-format.md says how to add one.
 *
 * Decoding is exact. Encoders round to nearest, ties to even, once, from the float's own bits, subnormals kept, signed
 * zero kept. They differ at the end of the range only, so each says what it does there. All are pure and thread-safe.
 *
 *     format   bits  layout (sign exponent mantissa)  bias  largest     special codes
 *     fp16       16  1 5 10                             15  65504       0x7c00 infinity, above it NaN
 *     bf16       16  1 8 7                             127  0x1.fep127  0x7f80 infinity, above it NaN
 *     e4m3        8  1 4 3                               7  448         no infinity; 0x7f NaN (OCP "E4M3", "e4m3fn")
 *     e5m2        8  1 5 2                              15  57344       0x7c infinity, 0x7d .. 0x7f NaN
 *     e2m1        4  1 2 1                               1  6           none
 *     e8m0        8  0 8 0                             127  2^127       no sign, no zero (code 0 is 2^-127); 0xff NaN
 *     int8        8  -127 .. 127 times a scale           -  127         none; -128 is never made
 *     uint8       8  0 .. 255 around a zero point        -  255         none
 *     mxfp8       8  e4m3, an e8m0 scale a block of 32
 *     nvfp4       4  e2m1, an e4m3 scale a block of 16, a float32 scale a tensor */
#ifndef OCT_FORMAT_FORMAT_H
#define OCT_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum oct_format {
#define OCT_FORMAT(identifier, ...) OCT_FORMAT_##identifier,
#include "format/formats.def"
#undef OCT_FORMAT
    OCT_FORMAT_COUNT
} oct_format;

/* A row of the list. */
typedef struct oct_format_row {
    const char *name;
    unsigned bits, block, scale_bits;
    double element_max, max_finite, min_normal, error;
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
float oct_e2m1_decode(uint8_t code); /* the lower four bits count */
float oct_e8m0_decode(uint8_t code);

#define OCT_E4M3_NAN 0x7fu
#define OCT_E8M0_NAN 0xffu

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
/* Saturating; a NaN gives a zero of the other sign. As ml_dtypes. */
uint8_t oct_e2m1_encode(float value);
/* The nearest power of two, of two as near the larger; what is not above 0, and from 1.5 * 2^127 on, is NaN. Below
 * 2^-126 as ml_dtypes: up to 2^-127 code 0, above it code 1. Scales of blocks come from oct_mxfp8_scale, never from
 * here. */
uint8_t oct_e8m0_encode(float value);

/* The nearest value of the format, saturating (fp16 and bf16: infinity), elements of block formats without a scale. */
float oct_format_round(oct_format format, float value);

/* Largest magnitude, NaN if there is a NaN, infinity if there is one; or of the finite values alone. 0 of nothing. */
float oct_amax(const float *values, size_t count);
float oct_amax_finite(const float *values, size_t count);

/* ---- one scale a tensor, channel or block: e4m3, e5m2, int8
 *
 * value = code * scale. Values are divided by the scale, in float32, and then rounded: scales may be so small that
 * their inverse is infinite. */
bool oct_format_has_scale(oct_format format);
/* amax / element max; 1 for an amax that is 0 or NaN, the largest float's for infinity: positive and finite always. */
float oct_format_scale(oct_format format, float amax);
/* Half to even, saturating at -127 and 127; NaN gives 0. */
int8_t oct_int8_encode(float value, float scale);
float oct_int8_decode(int8_t code, float scale);

/* Groups: values [rows][columns], a scale for each `block` columns of a row (the last may be shorter), scales in row
 * order. Per tensor: 1 row; per output channel of a weight [o, ...]: o rows, block = columns. block > 0. */
size_t oct_scaled_groups(size_t rows, size_t columns, size_t block);
/* From each group's largest finite magnitude. */
void oct_scaled_scales(oct_format format, const float *values, size_t rows, size_t columns, size_t block,
                       float *scales);
/* Returns how many values were NaN: int8 has none to give, so their code is 0. */
size_t oct_scaled_encode(oct_format format, const float *values, size_t rows, size_t columns, size_t block,
                         const float *scales, uint8_t *codes);
void oct_scaled_decode(oct_format format, const uint8_t *codes, size_t rows, size_t columns, size_t block,
                       const float *scales, float *values);

/* ---- uint8: value = (code - zero point) * scale */
/* Of the range [low, high], widened to hold 0, so that 0 is exactly the zero point. NaN counts as 0. */
void oct_uint8_range(float low, float high, float *scale, uint8_t *zero_point);
/* Half to even before the zero point is added, saturating; NaN gives the zero point. */
uint8_t oct_uint8_encode(float value, float scale, uint8_t zero_point);
float oct_uint8_decode(uint8_t code, float scale, uint8_t zero_point);

/* ---- blocks: scales[count / block, rounded up]; a last short block is as if filled with zeros
 *
 * A block with a NaN or an infinity has the NaN scale and is NaN as a whole. A block of zeros has the smallest scale
 * and zero codes, each of its value's sign. */
#define OCT_MXFP8_BLOCK 32
#define OCT_NVFP4_BLOCK 16
typedef enum oct_e8m0_rule {
    OCT_E8M0_FLOOR, /* OCP's: the largest of a block may saturate */
    OCT_E8M0_CEIL   /* round up: it never does */
} oct_e8m0_rule;
uint8_t oct_mxfp8_scale(float amax, oct_e8m0_rule rule);
void oct_mxfp8_encode(const float *values, size_t count, oct_e8m0_rule rule, uint8_t *scales, uint8_t *codes);
void oct_mxfp8_decode(const uint8_t *scales, const uint8_t *codes, size_t count, float *values);

/* Two codes a byte, the first in the lower half: codes[(count + 1) / 2]. */
float oct_nvfp4_tensor_scale(float amax); /* of finite values; 0 for 0 */
uint8_t oct_nvfp4_scale(float amax, float tensor_scale);
void oct_nvfp4_encode(const float *values, size_t count, float tensor_scale, uint8_t *scales, uint8_t *codes);
void oct_nvfp4_decode(const uint8_t *scales, const uint8_t *codes, size_t count, float tensor_scale, float *values);

#endif
