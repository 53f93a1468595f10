/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void oct_base64_write(oct_text *text, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i += 3) {
        const size_t some = count - i < 3 ? count - i : 3;
        const uint32_t bits = (uint32_t)bytes[i] << 16 | (some > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                              (some > 2 ? (uint32_t)bytes[i + 2] : 0);
        char four[4] = {'=', '=', '=', '='};
        for (size_t d = 0; d <= some; d++) four[d] = digits[bits >> (18 - 6 * d) & 63];
        oct_text_append(text, four, sizeof four);
    }
}

static size_t padding_of(const char *text, size_t length) {
    if (length == 0 || text[length - 1] != '=') return 0;
    return text[length - 2] == '=' ? 2 : 1;
}

size_t oct_base64_count(const char *text, size_t length) {
    return length % 4 != 0 ? SIZE_MAX : length / 4 * 3 - padding_of(text, length);
}

bool oct_base64_read(const char *text, size_t length, uint8_t *bytes) {
    uint8_t values[256];
    memset(values, 64, sizeof values);
    for (uint8_t d = 0; d < 64; d++) values[(uint8_t)digits[d]] = d;
    const size_t used = length - padding_of(text, length), count = oct_base64_count(text, length);
    uint32_t bits = 0;
    size_t made = 0;
    for (size_t i = 0; i < used; i++) {
        const uint8_t value = values[(uint8_t)text[i]];
        if (value > 63) return false;
        bits = bits << 6 | value;
        if (i % 4 > 0) bytes[made++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    const unsigned left = (unsigned)(used % 4 == 0 ? 0 : 8 - 2 * (used % 4));
    return made == count && (bits & ((1u << left) - 1)) == 0;
}
