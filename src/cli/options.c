/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int usage_error(const verb_row *verb, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "octet %s: ", verb->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n  hint: octet %s --help\n", verb->name);
    va_end(arguments);
    return EXIT_USAGE;
}

static void print_rows(const option_row *rows) {
    for (const option_row *row = rows; row->kind != OPTION_END; row++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", row->name, row->value != NULL ? " " : "",
                 row->value != NULL ? row->value : "");
        printf("  %-28s %s\n", left, row->help);
    }
}

static void print_help(const verb_row *verb, const option_row *rows, const option_row *common) {
    printf("octet %s %s\n\n%s\n\n", verb->name, verb->arguments, verb->summary);
    print_rows(rows);
    print_rows(common);
}

static const option_row *find(const option_row *rows, const char *name, size_t length) {
    for (; rows->kind != OPTION_END; rows++) {
        if (strlen(rows->name) == length && memcmp(rows->name, name, length) == 0) return rows;
    }
    return NULL;
}

static bool read_int(const option_row *row, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < row->low || value > row->high) return false;
    *(int64_t *)row->target = value;
    return true;
}

static bool read_real(const option_row *row, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) return false;
    *(double *)row->target = value;
    return true;
}

static bool read_choice(const option_row *row, const char *text) {
    int index = 0;
    for (const char *at = row->value; at != NULL; index++) {
        const char *bar = strchr(at, '|');
        size_t length = bar != NULL ? (size_t)(bar - at) : strlen(at);
        if (strlen(text) == length && memcmp(at, text, length) == 0) {
            *(int *)row->target = index;
            return true;
        }
        at = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

/* Stores a value; false after printing what was expected. */
static bool store(const verb_row *verb, const option_row *row, const char *text) {
    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)row->target = text;
        return true;
    case OPTION_INT:
        if (read_int(row, text)) return true;
        usage_error(verb, "%s: expected a whole number of %" PRId64 " to %" PRId64 ", found \"%s\"", row->name,
                    row->low, row->high, text);
        return false;
    case OPTION_REAL:
        if (read_real(row, text)) return true;
        usage_error(verb, "%s: expected a number, found \"%s\"", row->name, text);
        return false;
    case OPTION_CHOICE:
        if (read_choice(row, text)) return true;
        usage_error(verb, "%s: expected %s, found \"%s\"", row->name, row->value, text);
        return false;
    case OPTION_FLAG:
    case OPTION_END:
        break;
    }
    return false;
}

int options_read(const verb_row *verb, const option_row *rows, common_options *common, int count, char **words) {
    const option_row common_rows[] = {
        {OPTION_INT, "--threads", "N", "threads; 0: one a core (default)", &common->threads, 0, 1024},
        {OPTION_CHOICE, "--device", "cpu", "where to run", &common->device, 0, 0},
        {OPTION_FLAG, "--json", NULL, "JSON Lines on standard output, nothing else there", &common->json, 0, 0},
        {OPTION_FLAG, "--quiet", NULL, "no progress", &common->quiet, 0, 0},
        {OPTION_FLAG, "--help", NULL, "this text", &common->help, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int kept = 0;
    bool only_words = false;
    for (int i = 0; i < count; i++) {
        char *word = words[i];
        if (only_words || word[0] != '-' || word[1] == '\0') {
            words[kept++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        const char *equals = strchr(word, '=');
        size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
        const option_row *row = find(rows, word, length);
        if (row == NULL) row = find(common_rows, word, length);
        if (row == NULL && strcmp(word, "-h") == 0) row = find(common_rows, "--help", 6);
        if (row == NULL) {
            usage_error(verb, "unknown option %.*s", (int)length, word);
            return -1;
        }
        if (row->kind == OPTION_FLAG) {
            if (equals != NULL) {
                usage_error(verb, "%s takes no value", row->name);
                return -1;
            }
            *(bool *)row->target = true;
            continue;
        }
        if (equals == NULL && i + 1 == count) {
            usage_error(verb, "%s: expected %s after it", row->name, row->value);
            return -1;
        }
        if (!store(verb, row, equals != NULL ? equals + 1 : words[++i])) return -1;
    }
    if (common->help) {
        print_help(verb, rows, common_rows);
        return -2;
    }
    return kept;
}

int parse_batches(const char *text, int64_t *batches, int limit) {
    int count = 0;
    for (const char *at = text; count < limit; at++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at || value < 1 || value > 1024 || (*end != ',' && *end != '\0')) return 0;
        batches[count++] = value;
        if (*end == '\0') return count;
        at = end;
    }
    return 0;
}
