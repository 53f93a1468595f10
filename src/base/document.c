/* SPDX-License-Identifier: Apache-2.0 */
#include "base/document.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/document_read.h"
#include "base/file.h"
#include "base/text.h"

/* Reading. */

octet_status oct_document_begin(oct_document *document, const char *name, const char **text, size_t *length) {
    *document = (oct_document){0};
    const uint8_t *at = (const uint8_t *)*text;
    size_t left = *length;
    int line = 1;
    while (left > 0) {
        size_t take = oct_utf8_sequence(at, left);
        if (take == 0) return oct_fail(OCTET_BAD_FORMAT, "%s:%d: byte 0x%02x is not UTF-8", name, line, *at);
        if (*at == 0) return oct_fail(OCTET_BAD_FORMAT, "%s:%d: a zero byte in text", name, line);
        if (*at == '\n') line++;
        at += take;
        left -= take;
    }
    if (*length >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *text += 3;
        *length -= 3;
    }
    document->path = oct_arena_strdup(&document->arena, name);
    return document->path == NULL ? oct_fail_memory() : OCTET_OK;
}

octet_status oct_document_end(oct_document *document, octet_status status) {
    if (status != OCTET_OK) oct_document_free(document);
    return status;
}

octet_status oct_document_read(oct_document *document, const char *path, size_t limit) {
    *document = (oct_document){0};
    uint8_t *data = NULL;
    size_t size = 0;
    OCT_TRY(oct_file_read(path, limit, &data, &size));
    bool yaml = oct_ends_with(path, ".yaml") || oct_ends_with(path, ".yml");
    octet_status status = yaml ? oct_document_parse_yaml(document, path, (const char *)data, size)
                               : oct_document_parse_json(document, path, (const char *)data, size);
    oct_free(data);
    return status;
}

void oct_document_free(oct_document *document) {
    oct_arena_free(&document->arena);
    *document = (oct_document){0};
}

/* Asking. */

static bool find(const oct_node *map, const char *key, size_t *index) {
    if (map == NULL || map->kind != OCT_NODE_MAP) return false;
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->keys[i], key) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

const oct_node *oct_node_get(const oct_node *map, const char *key) {
    size_t index = 0;
    return find(map, key, &index) ? map->items[index] : NULL;
}

const char *oct_node_kind_name(oct_node_kind kind) {
    switch (kind) {
    case OCT_NODE_NULL:
        return "null";
    case OCT_NODE_BOOL:
        return "true or false";
    case OCT_NODE_INT:
        return "an integer";
    case OCT_NODE_REAL:
        return "a number";
    case OCT_NODE_STRING:
        return "a string";
    case OCT_NODE_LIST:
        return "a list";
    case OCT_NODE_MAP:
        return "a map";
    }
    return "nothing";
}

#define FOUND_SIZE 96
#define FOUND_KEPT 64 /* bytes of a value that a message shows */

/* The node as a message shows it: 'text', 12, true, null, "a list of 3". */
static const char *found(const oct_node *node, char text[FOUND_SIZE]) {
    char number[32];
    const char *written = node->string;
    const char *quote = "";
    switch (node->kind) {
    case OCT_NODE_NULL:
        if (written != NULL && written[0] == '\0') return "nothing";
        if (written == NULL) written = "null";
        break;
    case OCT_NODE_BOOL:
        if (written == NULL) written = node->boolean ? "true" : "false";
        break;
    case OCT_NODE_INT:
    case OCT_NODE_REAL:
        if (written == NULL) {
            written = number;
            if (node->kind == OCT_NODE_REAL) {
                (void)oct_format_double(node->real, number);
            } else {
                (void)snprintf(number, sizeof number, "%lld", (long long)node->integer);
            }
        }
        break;
    case OCT_NODE_STRING:
        quote = "'";
        break;
    case OCT_NODE_LIST:
        (void)snprintf(text, FOUND_SIZE, "a list of %zu", node->count);
        return text;
    case OCT_NODE_MAP:
        return "a map";
    }
    size_t length = strlen(written);
    size_t kept = 0;
    while (kept < length) { /* whole characters only */
        size_t take = oct_utf8_sequence((const uint8_t *)written + kept, length - kept);
        if (take == 0) take = 1;
        if (kept + take > FOUND_KEPT) break;
        kept += take;
    }
    (void)snprintf(text, FOUND_SIZE, "%s%.*s%s%s", quote, (int)kept, written, kept < length ? "..." : "", quote);
    return text;
}

octet_status oct_node_fail(const oct_document *document, const oct_node *node, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)oct_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *path = document->path != NULL ? document->path : "document";
    if (node == NULL) return oct_fail(OCTET_BAD_FORMAT, "%s: %s", path, text);
    return oct_fail(OCTET_BAD_FORMAT, "%s:%d: %s", path, node->line, text);
}

static octet_status expected(const oct_document *document, const oct_node *node, const char *key, const char *what) {
    char text[FOUND_SIZE];
    return oct_node_fail(document, node, "%s: expected %s, found %s", key, what, found(node, text));
}

/* *node: the value to read, or NULL where the caller's value stays. */
static octet_status look_up(const oct_document *document, const oct_node *map, const char *key, bool required,
                            const char *what, const oct_node **node) {
    *node = NULL;
    if (map != NULL && map->kind != OCT_NODE_MAP) {
        char text[FOUND_SIZE];
        return oct_node_fail(document, map, "expected a map with the key '%s', found %s", key, found(map, text));
    }
    const oct_node *value = oct_node_get(map, key);
    if (value == NULL)
        return required ? oct_node_fail(document, map, "missing key '%s', expected %s", key, what) : OCTET_OK;
    if (value->kind == OCT_NODE_NULL) {
        bool left_empty = value->string != NULL && value->string[0] == '\0';
        return required || left_empty ? expected(document, value, key, what) : OCTET_OK;
    }
    *node = value;
    return OCTET_OK;
}

octet_status oct_node_int(const oct_document *document, const oct_node *map, const char *key, bool required,
                          int64_t low, int64_t high, int64_t *value) {
    char what[96] = "an integer";
    if (low != INT64_MIN && high != INT64_MAX) {
        (void)snprintf(what, sizeof what, "an integer from %lld to %lld", (long long)low, (long long)high);
    } else if (low != INT64_MIN) {
        (void)snprintf(what, sizeof what, "an integer of at least %lld", (long long)low);
    } else if (high != INT64_MAX) {
        (void)snprintf(what, sizeof what, "an integer of at most %lld", (long long)high);
    }
    const oct_node *node = NULL;
    OCT_TRY(look_up(document, map, key, required, what, &node));
    if (node == NULL) return OCTET_OK;
    if (node->kind != OCT_NODE_INT || node->integer < low || node->integer > high)
        return expected(document, node, key, what);
    *value = node->integer;
    return OCTET_OK;
}

static bool is_number(const oct_node *node) {
    return (node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL) && isfinite(node->real);
}

octet_status oct_node_real(const oct_document *document, const oct_node *map, const char *key, bool required,
                           double *value) {
    const oct_node *node = NULL;
    OCT_TRY(look_up(document, map, key, required, "a number", &node));
    if (node == NULL) return OCTET_OK;
    if (!is_number(node))
        return expected(document, node, key, node->kind == OCT_NODE_REAL ? "a finite number" : "a number");
    *value = node->real;
    return OCTET_OK;
}

octet_status oct_node_bool(const oct_document *document, const oct_node *map, const char *key, bool required,
                           bool *value) {
    const oct_node *node = NULL;
    OCT_TRY(look_up(document, map, key, required, "true or false", &node));
    if (node == NULL) return OCTET_OK;
    if (node->kind != OCT_NODE_BOOL) return expected(document, node, key, "true or false");
    *value = node->boolean;
    return OCTET_OK;
}

octet_status oct_node_string(const oct_document *document, const oct_node *map, const char *key, bool required,
                             const char **value) {
    const oct_node *node = NULL;
    OCT_TRY(look_up(document, map, key, required, "a string", &node));
    if (node == NULL) return OCTET_OK;
    bool written = (node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL) && node->string != NULL;
    if (node->kind != OCT_NODE_STRING && !written) {
        octet_status status = expected(document, node, key, "a string");
        if (node->kind == OCT_NODE_BOOL && node->string != NULL) return oct_hint("write it in quotes");
        return status;
    }
    *value = node->string;
    return OCTET_OK;
}

octet_status oct_node_reals(const oct_document *document, const oct_node *map, const char *key, bool required,
                            double *values, size_t count) {
    char what[64];
    (void)snprintf(what, sizeof what, "a list of %zu numbers", count);
    const oct_node *node = NULL;
    OCT_TRY(look_up(document, map, key, required, what, &node));
    if (node == NULL) return OCTET_OK;
    if (node->kind != OCT_NODE_LIST || node->count != count) return expected(document, node, key, what);
    for (size_t i = 0; i < count; i++) {
        char text[FOUND_SIZE];
        if (!is_number(node->items[i]))
            return oct_node_fail(document, node->items[i], "%s: expected %s, found %s as number %zu", key, what,
                                 found(node->items[i], text), i + 1);
    }
    for (size_t i = 0; i < count; i++) values[i] = node->items[i]->real;
    return OCTET_OK;
}

octet_status oct_node_known_keys(const oct_document *document, const oct_node *map, const char *const *known) {
    if (map == NULL) return OCTET_OK;
    char text[FOUND_SIZE];
    if (map->kind != OCT_NODE_MAP) return oct_node_fail(document, map, "expected a map, found %s", found(map, text));
    size_t count = 0;
    while (known[count] != NULL) count++;
    for (size_t i = 0; i < map->count; i++) {
        size_t j = 0;
        while (j < count && strcmp(map->keys[i], known[j]) != 0) j++;
        if (j < count) continue;
        const oct_node key = {.kind = OCT_NODE_STRING, .line = map->key_lines[i], .string = map->keys[i]};
        const char *nearest = oct_nearest(map->keys[i], known, count);
        if (nearest != NULL)
            return oct_node_fail(document, &key, "unknown key %s, did you mean '%s'", found(&key, text), nearest);
        (void)oct_node_fail(document, &key, "unknown key %s", found(&key, text));
        for (j = 0; j < count; j++) (void)oct_detail("%s%s", j == 0 ? "known keys: " : "", known[j]);
        return oct_error_status();
    }
    return OCTET_OK;
}
