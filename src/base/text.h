/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and small helpers on bytes. Names are bytes: nothing here asks for the locale. */
#ifndef OCT_BASE_TEXT_H
#define OCT_BASE_TEXT_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oct_text {
    char *data; /* zero-terminated once anything was appended; oct_alloc'd */
    size_t length, capacity;
    bool failed; /* an append found no memory: check once at the end */
} oct_text;      /* all zero: empty */

void oct_text_append(oct_text *text, const char *bytes, size_t length);
void oct_text_puts(oct_text *text, const char *string);
void oct_text_printf(oct_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD */
void oct_text_json(oct_text *text, const char *string);
void oct_text_free(oct_text *text);

/* Bytes of the UTF-8 character at the start of `bytes` (1 to 4; a zero byte is a character), 0 if it is not UTF-8: a
 * surrogate, an overlong form, beyond U+10FFFF, or cut off by `length`. */
size_t oct_utf8_sequence(const uint8_t *bytes, size_t length);

bool oct_starts_with(const char *text, const char *prefix);
bool oct_ends_with(const char *text, const char *suffix);
/* shell-like pattern: * (any run), ? (any byte), [a-z], [!a-z]; the whole text must match; a [ never closed is itself
 */
bool oct_glob_match(const char *pattern, const char *text);
/* the whole text as a decimal number inside [low, high], or a finite one; false otherwise; no space, no locale */
bool oct_parse_int(const char *text, int64_t low, int64_t high, int64_t *value);
bool oct_parse_double(const char *text, double *value);
/* Shortest decimal that reads back as the same double ("0.1"); no locale. buffer of at least 32 bytes. */
const char *oct_format_double(double value, char *buffer);
/* the nearest of `names` by edit distance, or NULL if none is near: for hints ("did you mean ...") */
const char *oct_nearest(const char *word, const char *const *names, size_t count);

#endif
