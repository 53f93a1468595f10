/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text (RFC 4648, section 4, with padding): for codes inside JSON. */
#ifndef OCT_QUANT_BASE64_H
#define OCT_QUANT_BASE64_H

#include "base/text.h"

void oct_base64_write(oct_text *text, const uint8_t *bytes, size_t count);
/* How many bytes a text of this length and end stands for; SIZE_MAX: its length is no multiple of 4. */
size_t oct_base64_count(const char *text, size_t length);
/* `bytes` holds oct_base64_count of them. False: a character that is none of the 64, or bits left over that are set. */
bool oct_base64_read(const char *text, size_t length, uint8_t *bytes);

#endif
