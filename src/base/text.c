/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/c_locale.h"

/* Room for `more` bytes and a zero. */
static bool reserve(oct_text *text, size_t more) {
    if (text->failed) return false;
    void *data = text->data;
    if (more > SIZE_MAX - 1 - text->length || !oct_grow(&data, 1, text->length + more + 1, &text->capacity)) {
        text->failed = true;
        return false;
    }
    text->data = data;
    return true;
}

void oct_text_append(oct_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length > 0) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void oct_text_puts(oct_text *text, const char *string) {
    oct_text_append(text, string, strlen(string));
}

void oct_text_printf(oct_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length = oct_vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (!reserve(text, length)) return;
    va_start(arguments, format);
    (void)oct_vsnprintf(text->data + text->length, length + 1, format, arguments);
    va_end(arguments);
    text->length += length;
    text->data[text->length] = '\0';
}

void oct_text_json(oct_text *text, const char *string) {
    const uint8_t *at = (const uint8_t *)string;
    size_t left = strlen(string);
    oct_text_append(text, "\"", 1);
    while (left > 0) {
        size_t take = oct_utf8_sequence(at, left);
        if (take == 0) {
            oct_text_puts(text, "\xef\xbf\xbd");
            take = 1;
        } else if (*at == '"' || *at == '\\') {
            oct_text_append(text, "\\", 1);
            oct_text_append(text, (const char *)at, 1);
        } else if (*at == '\n') {
            oct_text_append(text, "\\n", 2);
        } else if (*at == '\t') {
            oct_text_append(text, "\\t", 2);
        } else if (*at == '\r') {
            oct_text_append(text, "\\r", 2);
        } else if (*at < 0x20 || *at == 0x7f) {
            oct_text_printf(text, "\\u%04x", *at);
        } else {
            oct_text_append(text, (const char *)at, take);
        }
        at += take;
        left -= take;
    }
    oct_text_append(text, "\"", 1);
}

void oct_text_free(oct_text *text) {
    oct_free(text->data);
    *text = (oct_text){0};
}

size_t oct_utf8_sequence(const uint8_t *bytes, size_t length) {
    if (length == 0) return 0;
    uint8_t lead = bytes[0];
    if (lead < 0x80) return 1;
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length < size) return 0;
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    }
    if (lead == 0xe0 && bytes[1] < 0xa0) return 0; /* overlong */
    if (lead == 0xed && bytes[1] > 0x9f) return 0; /* surrogate */
    if (lead == 0xf0 && bytes[1] < 0x90) return 0; /* overlong */
    if (lead == 0xf4 && bytes[1] > 0x8f) return 0; /* beyond U+10FFFF */
    return size;
}

bool oct_starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool oct_ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text);
    size_t tail = strlen(suffix);
    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

/* Matches one byte against the item of the pattern at *pattern (not '*') and moves *pattern behind that item. */
static bool match_item(const char **pattern, unsigned char byte) {
    const char *at = *pattern;
    if (*at == '?') {
        *pattern = at + 1;
        return true;
    }
    if (*at == '[') {
        const unsigned char *item = (const unsigned char *)at + 1;
        bool negated = *item == '!';
        if (negated) item++;
        const unsigned char *first = item; /* a ']' right here is a member */
        bool found = false;
        while (*item != '\0' && (*item != ']' || item == first)) {
            unsigned char low = *item;
            unsigned char high = low;
            if (item[1] == '-' && item[2] != ']' && item[2] != '\0') {
                high = item[2];
                item += 2;
            }
            found = found || (byte >= low && byte <= high);
            item++;
        }
        if (*item == ']') {
            *pattern = (const char *)item + 1;
            return found != negated;
        }
    }
    *pattern = at + 1;
    return (unsigned char)*at == byte;
}

bool oct_glob_match(const char *pattern, const char *text) {
    const char *star = NULL; /* behind the last '*' passed, and where its run ends for now */
    const char *run = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            run = text;
            continue;
        }
        if (*pattern != '\0' && match_item(&pattern, (unsigned char)*text)) {
            text++;
            continue;
        }
        if (star == NULL) return false;
        pattern = star;
        text = ++run;
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

bool oct_parse_int(const char *text, int64_t low, int64_t high, int64_t *value) {
    bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    if (*text == '\0') return false;
    int64_t sum = 0;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        int64_t digit = *text - '0';
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum)) return false;
        if (__builtin_add_overflow(sum, negative ? -digit : digit, &sum)) return false;
    }
    if (sum < low || sum > high) return false;
    *value = sum;
    return true;
}

bool oct_parse_double(const char *text, double *value) {
    const char *at = text;
    size_t digits = 0;
    if (*at == '-' || *at == '+') at++;
    for (; *at >= '0' && *at <= '9'; at++) digits++;
    if (*at == '.') {
        at++;
        for (; *at >= '0' && *at <= '9'; at++) digits++;
    }
    if (digits == 0) return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '-' || *at == '+') at++;
        if (*at < '0' || *at > '9') return false;
        while (*at >= '0' && *at <= '9') at++;
    }
    if (*at != '\0') return false;
    double parsed = oct_strtod(text, NULL);
    if (!isfinite(parsed)) return false;
    *value = parsed;
    return true;
}

const char *oct_format_double(double value, char *buffer) {
    if (isnan(value)) return strcpy(buffer, "nan");
    if (isinf(value)) return strcpy(buffer, value > 0 ? "inf" : "-inf");
    if (value == 0.0) return strcpy(buffer, signbit(value) ? "-0" : "0");

    /* the fewest digits that read back the same: D.DDDDe+XX */
    char form[40];
    locale_t before = oct_c_locale_enter();
    for (int precision = 0; precision <= 16; precision++) {
        (void)snprintf(form, sizeof form, "%.*e", precision, fabs(value));
        if (strtod(form, NULL) == fabs(value)) break;
    }
    oct_c_locale_leave(before);
    char digits[20];
    int count = 0;
    const char *at = form;
    for (; *at != 'e' && *at != '\0'; at++) {
        if (*at != '.') digits[count++] = *at;
    }
    int exponent = atoi(at + 1);

    char *out = buffer;
    if (value < 0) *out++ = '-';
    if (exponent < -5 || exponent >= 16) {
        *out++ = digits[0];
        if (count > 1) *out++ = '.';
        for (int i = 1; i < count; i++) *out++ = digits[i];
        (void)snprintf(out, 8, "e%d", exponent);
        return buffer;
    }
    if (exponent < 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = -1; i > exponent; i--) *out++ = '0';
        for (int i = 0; i < count; i++) *out++ = digits[i];
    } else {
        for (int i = 0; i <= exponent || i < count; i++) {
            if (i == exponent + 1) *out++ = '.';
            *out++ = i < count ? digits[i] : '0';
        }
    }
    *out = '\0';
    return buffer;
}

#define WORD_LIMIT 64

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Edits (a byte put in, taken out, changed, or two neighbours swapped) from `a` to `b`, letters of both cases alike. */
static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][WORD_LIMIT + 1];
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = lower(a[i - 1]);
            char y = lower(b[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], above[j - 1] + (x == y ? 0 : 1));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *oct_nearest(const char *word, const char *const *names, size_t count) {
    size_t length = strnlen(word, WORD_LIMIT + 1);
    if (length == 0 || length > WORD_LIMIT) return NULL;
    const char *nearest = NULL;
    size_t fewest = (length + 2) / 3 + 1; /* one edit a three letters is near */
    for (size_t i = 0; i < count; i++) {
        size_t other = strnlen(names[i], WORD_LIMIT + 1);
        if (other > WORD_LIMIT) continue;
        size_t distance = edits(word, length, names[i], other);
        if (distance < fewest && distance < other) {
            fewest = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
