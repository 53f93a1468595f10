/* SPDX-License-Identifier: Apache-2.0 */
/* Number formats, from one list (formats.def). A row: identifier, name, bits, decode. Encoders round to nearest even. */
#ifndef OCT_FORMAT_FORMAT_H
#define OCT_FORMAT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

typedef enum oct_format {
#define OCT_FORMAT(identifier, name, bits) OCT_FORMAT_##identifier,
#include "format/formats.def"
#undef OCT_FORMAT
    OCT_FORMAT_COUNT
} oct_format;

const char *oct_format_name(oct_format format);
unsigned oct_format_bits(oct_format format);
int oct_format_by_name(const char *name); /* -1: none */

float oct_fp16_decode(uint16_t code);
uint16_t oct_fp16_encode(float value); /* overflow gives infinity, as IEEE 754 */
float oct_bf16_decode(uint16_t code);
uint16_t oct_bf16_encode(float value);
float oct_e4m3_decode(uint8_t code); /* E4M3FN: no infinity, 0x7f and 0xff are NaN */
float oct_e5m2_decode(uint8_t code);

#endif
