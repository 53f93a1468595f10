/* SPDX-License-Identifier: Apache-2.0 */
/* JSON by jansson. Its tree keeps no positions, so the text, known to be valid by then, is walked in step with it. */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/document_read.h"

/* Refuses depth and size before jansson builds anything. Strings are passed over; what is not JSON is left to jansson.
 */
static octet_status survey(const char *name, const char *text, size_t length) {
    int line = 1;
    size_t depth = 0;
    size_t nodes = 1;
    size_t most = length / 8 > OCT_DOCUMENT_NODES ? length / 8 : OCT_DOCUMENT_NODES;
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '\n') line++;
        if (in_string) {
            if (c == '\\') {
                i++; /* the escaped byte: at worst a line end, which jansson refuses */
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            nodes++;
            if (++depth > OCT_DOCUMENT_DEPTH)
                return oct_fail(OCTET_LIMIT, "%s:%d: nested deeper than %d", name, line, OCT_DOCUMENT_DEPTH);
        } else if (c == ']' || c == '}') {
            if (depth > 0) depth--;
        } else if (c == ',') {
            if (++nodes > most) return oct_fail(OCTET_LIMIT, "%s:%d: more than %zu values", name, line, most);
        }
    }
    return OCTET_OK;
}

typedef struct walk {
    oct_document *document;
    const char *at, *end;
    int line;
} walk;

/* To the next byte that is not space, a comma or a colon. */
static void pass_space(walk *w) {
    for (; w->at < w->end; w->at++) {
        char c = *w->at;
        if (c == '\n') w->line++;
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != ',' && c != ':') return;
    }
}

static void pass_string(walk *w) {
    for (w->at++; w->at < w->end && *w->at != '"'; w->at++) {
        if (*w->at == '\\') w->at++;
    }
    if (w->at < w->end) w->at++;
}

/* A number, true, false or null. */
static void pass_word(walk *w) {
    while (w->at < w->end && strchr(" \t\r\n,:]}", *w->at) == NULL) w->at++;
}

static octet_status convert(walk *w, json_t *json, oct_node **made);

static octet_status convert_list(walk *w, json_t *json, oct_node *node) {
    node->kind = OCT_NODE_LIST;
    node->count = json_array_size(json);
    node->items = oct_arena_alloc(&w->document->arena, node->count * sizeof *node->items);
    if (node->items == NULL) return oct_fail_memory();
    w->at++;
    for (size_t i = 0; i < node->count; i++) OCT_TRY(convert(w, json_array_get(json, i), &node->items[i]));
    pass_space(w);
    w->at++;
    return OCTET_OK;
}

static octet_status convert_map(walk *w, json_t *json, oct_node *node) {
    oct_arena *arena = &w->document->arena;
    node->kind = OCT_NODE_MAP;
    node->count = json_object_size(json);
    node->items = oct_arena_alloc(arena, node->count * sizeof *node->items);
    node->keys = oct_arena_alloc(arena, node->count * sizeof *node->keys);
    int *lines = oct_arena_alloc(arena, node->count * sizeof *lines);
    if (node->items == NULL || node->keys == NULL || lines == NULL) return oct_fail_memory();
    node->key_lines = lines;
    w->at++;
    size_t i = 0;
    for (void *member = json_object_iter(json); member != NULL; member = json_object_iter_next(json, member)) {
        node->keys[i] = oct_arena_strdup(arena, json_object_iter_key(member));
        if (node->keys[i] == NULL) return oct_fail_memory();
        pass_space(w);
        lines[i] = w->line;
        pass_string(w);
        OCT_TRY(convert(w, json_object_iter_value(member), &node->items[i]));
        i++;
    }
    pass_space(w);
    w->at++;
    return OCTET_OK;
}

static octet_status convert(walk *w, json_t *json, oct_node **made) {
    oct_node *node = oct_arena_alloc(&w->document->arena, sizeof *node);
    if (node == NULL) return oct_fail_memory();
    *made = node;
    pass_space(w);
    node->line = w->line;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return convert_map(w, json, node);
    case JSON_ARRAY:
        return convert_list(w, json, node);
    case JSON_STRING:
        node->kind = OCT_NODE_STRING;
        node->string = oct_arena_strndup(&w->document->arena, json_string_value(json), json_string_length(json));
        if (node->string == NULL) return oct_fail_memory();
        pass_string(w);
        return OCTET_OK;
    case JSON_INTEGER:
        node->kind = OCT_NODE_INT;
        node->integer = json_integer_value(json);
        node->real = (double)node->integer;
        break;
    case JSON_REAL:
        node->kind = OCT_NODE_REAL;
        node->real = json_real_value(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        node->kind = OCT_NODE_BOOL;
        node->boolean = json_is_true(json);
        break;
    case JSON_NULL:
        node->kind = OCT_NODE_NULL;
        break;
    }
    pass_word(w);
    return OCTET_OK;
}

static octet_status refused(const char *name, const json_error_t *error, int reason) {
    /* where its own memory ran out, jansson leaves the text empty or speaks of an invalid token; malloc has set errno
     */
    if (error->text[0] == '\0' || reason == ENOMEM) return oct_fail_memory();
    return oct_fail(OCTET_BAD_FORMAT, "%s:%d: column %d: %s", name, error->line > 0 ? error->line : 1,
                    error->column > 0 ? error->column : 1, error->text);
}

octet_status oct_document_parse_json(oct_document *document, const char *name, const char *text, size_t length) {
    OCT_TRY(oct_document_begin(document, name, &text, &length));
    octet_status status = survey(name, text, length);
    if (status != OCTET_OK) return oct_document_end(document, status);
    json_error_t error = {0};
    locale_t before = oct_c_locale_enter(); /* jansson asks the locale for its decimal point */
    errno = 0;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    int reason = errno;
    oct_c_locale_leave(before);
    if (json == NULL) return oct_document_end(document, refused(name, &error, reason));
    walk w = {.document = document, .at = text, .end = text + length, .line = 1};
    status = convert(&w, json, &document->root);
    json_decref(json);
    return oct_document_end(document, status);
}
