/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"

#define PART_SIZE 1024                 /* bytes of one part, its zero included */
#define RAW_SIZE 2048                  /* longer than a part, so that a cut always falls inside `clean` */
#define TEXT_SIZE (3 * PART_SIZE + 64) /* the three parts, line ends and "hint: " */

static _Thread_local struct {
    octet_status status;
    char fact[PART_SIZE];
    char detail[PART_SIZE];
    char hint[PART_SIZE];
    char text[TEXT_SIZE];
} last;

/* Copies `raw` so that it is one line of UTF-8 a terminal shows as it is: control characters (also U+0080 to U+009F)
 * and bytes that are not UTF-8 become escapes. What does not fit is cut between characters and ends in "...". */
static void clean(char part[PART_SIZE], const char *raw) {
    size_t used = 0;
    size_t cut = 0; /* the last place between characters that leaves room for "..." */
    size_t left = strlen(raw);
    const uint8_t *at = (const uint8_t *)raw;
    while (left > 0) {
        char piece[8];
        size_t take = oct_utf8_sequence(at, left);
        size_t length = 0;
        if (take == 1 && *at >= 0x20 && *at != 0x7f) {
            piece[0] = (char)*at;
            length = 1;
        } else if (take == 1 && (*at == '\n' || *at == '\t' || *at == '\r')) {
            piece[0] = '\\';
            piece[1] = *at == '\n' ? 'n' : *at == '\t' ? 't' : 'r';
            length = 2;
        } else if (take == 2 && at[0] == 0xc2 && at[1] < 0xa0) {
            length = (size_t)snprintf(piece, sizeof piece, "\\u00%02x", at[1]);
        } else if (take >= 2) {
            memcpy(piece, at, take);
            length = take;
        } else {
            length = (size_t)snprintf(piece, sizeof piece, "\\x%02x", *at);
            take = 1;
        }
        if (used <= PART_SIZE - 1 - 3) cut = used;
        if (length > PART_SIZE - 1 - used) {
            memcpy(part + cut, "...", 3);
            used = cut + 3;
            break;
        }
        memcpy(part + used, piece, length);
        used += length;
        at += take;
        left -= take;
    }
    part[used] = '\0';
}

octet_status oct_fail(octet_status status, const char *format, ...) {
    char raw[RAW_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)oct_vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    clean(last.fact, raw);
    last.detail[0] = '\0';
    last.hint[0] = '\0';
    last.status = status;
    return status;
}

/* Puts formatted text into `part`, after what it holds. */
static void add(char part[PART_SIZE], const char *format, va_list arguments) {
    char raw[PART_SIZE + RAW_SIZE];
    size_t used = 0;
    char added[RAW_SIZE];
    (void)oct_vsnprintf(added, sizeof added, format, arguments);
    if (part[0] != '\0') used = (size_t)snprintf(raw, sizeof raw, "%s; ", part);
    memcpy(raw + used, added, strlen(added) + 1);
    clean(part, raw);
}

octet_status oct_detail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(last.detail, format, arguments);
    va_end(arguments);
    return last.status;
}

octet_status oct_hint(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(last.hint, format, arguments);
    va_end(arguments);
    return last.status;
}

octet_status oct_error_prefix(const char *format, ...) {
    char prefix[RAW_SIZE];
    char raw[RAW_SIZE + PART_SIZE];
    char cleaned[PART_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)oct_vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    clean(cleaned, prefix);
    size_t length = strlen(cleaned);
    if (strncmp(last.fact, cleaned, length) == 0 && last.fact[length] == ':') return last.status;
    (void)snprintf(raw, sizeof raw, "%s: %s", cleaned, last.fact);
    clean(last.fact, raw);
    return last.status;
}

octet_status oct_fail_errno(const char *path, const char *what) {
    int code = errno;
    octet_status status = OCTET_IO;
    if (code == ENOENT || code == ENOTDIR) status = OCTET_NOT_FOUND;
    if (code == ENOMEM) status = OCTET_OUT_OF_MEMORY;
    char text[256];
    locale_t before = oct_c_locale_enter();
    const char *reason = strerror_r(code, text, sizeof text); /* GNU's: returns the text */
    oct_c_locale_leave(before);
    if (what == NULL || what[0] == '\0') return oct_fail(status, "%s: %s", path, reason);
    return oct_fail(status, "%s: %s: %s", path, what, reason);
}

octet_status oct_fail_memory(void) {
    return oct_fail(OCTET_OUT_OF_MEMORY, "out of memory");
}

octet_status oct_error_status(void) {
    return last.status;
}

const char *oct_error_fact(void) {
    return last.fact;
}

const char *oct_error_detail(void) {
    return last.detail;
}

const char *oct_error_hint(void) {
    return last.hint;
}

const char *oct_error_text(void) {
    (void)snprintf(last.text, sizeof last.text, "%s%s%s%s%s", last.fact, last.detail[0] != '\0' ? "\n  " : "",
                   last.detail, last.hint[0] != '\0' ? "\n  hint: " : "", last.hint);
    return last.text;
}

void oct_error_clear(void) {
    last.status = OCTET_OK;
    last.fact[0] = '\0';
    last.detail[0] = '\0';
    last.hint[0] = '\0';
    last.text[0] = '\0';
}

const char *oct_status_name(octet_status status) {
    switch (status) {
#define NAME_CASE(name, number, text)                                                                                  \
    case OCTET_##name:                                                                                                 \
        return #name;
        OCTET_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "UNKNOWN";
}

const char *oct_status_text(octet_status status) {
    switch (status) {
#define TEXT_CASE(name, number, text)                                                                                  \
    case OCTET_##name:                                                                                                 \
        return text;
        OCTET_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}
