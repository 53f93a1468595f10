/* SPDX-License-Identifier: Apache-2.0 */
/* YAML by libyaml's events: YAML 1.2 core schema, one document, aliases counted as what they stand for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/document_read.h"
#include "base/text.h"

#define CORE_TAG "tag:yaml.org,2002:"
#define ANCHORS_LIMIT 1000 /* every alias looks through them */

/* Scalars. */

static bool one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) return true;
    }
    return false;
}

static void as_int(oct_node *node, int64_t value) {
    node->kind = OCT_NODE_INT;
    node->integer = value;
    node->real = (double)value;
}

/* Digits of `base` to the end of the text; beyond int64 a real. */
static bool resolve_digits(oct_node *node, const char *digits, int base, bool negative) {
    if (*digits == '\0') return false;
    int64_t sum = 0;
    double wide = 0.0;
    bool fits = true;
    for (; *digits != '\0'; digits++) {
        int digit = *digits >= '0' && *digits <= '9'   ? *digits - '0'
                    : *digits >= 'a' && *digits <= 'f' ? *digits - 'a' + 10
                    : *digits >= 'A' && *digits <= 'F' ? *digits - 'A' + 10
                                                       : 16;
        if (digit >= base) return false;
        wide = wide * base + digit;
        if (fits && (__builtin_mul_overflow(sum, (int64_t)base, &sum) ||
                     __builtin_add_overflow(sum, (int64_t)(negative ? -digit : digit), &sum)))
            fits = false;
    }
    if (fits) {
        as_int(node, sum);
    } else {
        node->kind = OCT_NODE_REAL;
        node->real = base == 10 ? oct_strtod(node->string, NULL) : wide;
    }
    return true;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *text) {
    if (*text == '-' || *text == '+') text++;
    size_t whole = strspn(text, "0123456789");
    text += whole;
    if (*text == '.') {
        size_t part = strspn(++text, "0123456789");
        if (whole == 0 && part == 0) return false;
        text += part;
    } else if (whole == 0) {
        return false;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '-' || *text == '+') text++;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0) return false;
        text += digits;
    }
    return *text == '\0';
}

void oct_yaml_resolve(oct_node *node, size_t length) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    const char *text = node->string;
    node->kind = OCT_NODE_STRING;
    if (length > 5 && strchr("+-.0123456789", *text) == NULL) return; /* longer than any word above */
    if (one_of(text, nulls)) {
        node->kind = OCT_NODE_NULL;
    } else if (one_of(text, trues) || one_of(text, falses)) {
        node->kind = OCT_NODE_BOOL;
        node->boolean = one_of(text, trues);
    } else if (text[0] == '0' && (text[1] == 'o' || text[1] == 'x')) {
        (void)resolve_digits(node, text + 2, text[1] == 'o' ? 8 : 16, false);
    } else {
        bool sign = *text == '-' || *text == '+';
        const char *plain = text + (sign ? 1 : 0);
        if (resolve_digits(node, plain, 10, *text == '-')) return;
        bool infinite = one_of(plain, infinities);
        bool nan = !sign && one_of(text, nans);
        if (!infinite && !nan && !is_float(text)) return;
        node->kind = OCT_NODE_REAL;
        if (infinite) {
            node->real = *text == '-' ? -(double)INFINITY : (double)INFINITY;
        } else {
            node->real = nan ? (double)NAN : oct_strtod(text, NULL);
        }
    }
}

/* The tree. */

typedef struct anchor {
    char *name;     /* in the document's arena */
    oct_node *node; /* NULL: still being read */
    size_t nodes;   /* it and all below it, aliases written out */
    size_t height;  /* lists and maps inside each other, itself included; 0 for a scalar */
} anchor;

/* A list or map being read. */
typedef struct level {
    oct_node *node;
    oct_node **items;
    const char **keys;
    int *lines;
    size_t count;
    size_t items_capacity, keys_capacity, lines_capacity;
    const char *key; /* a map's key that waits for its value */
    int key_line;
    bool anchored;
    size_t anchor; /* its index, if anchored */
    size_t nodes;
    size_t height;
} level;

typedef struct reader {
    oct_document *document;
    level levels[OCT_DOCUMENT_DEPTH];
    size_t depth;
    anchor *anchors;
    size_t anchor_count, anchor_capacity;
    size_t nodes; /* in all */
} reader;

static octet_status fail_at(const reader *r, octet_status status, int line, const char *what) {
    return oct_fail(status, "%s:%d: %s", r->document->path, line, what);
}

static int line_of(const yaml_mark_t *mark) {
    return (int)mark->line + 1;
}

static octet_status check_tag(const reader *r, const yaml_char_t *tag, const char *const *allowed, int line) {
    const char *name = (const char *)tag;
    if (name == NULL || strcmp(name, "!") == 0) return OCTET_OK;
    size_t core = strlen(CORE_TAG);
    bool is_core = strncmp(name, CORE_TAG, core) == 0;
    if (is_core && one_of(name + core, allowed)) return OCTET_OK;
    return oct_fail(OCTET_BAD_FORMAT, "%s:%d: tag '%s%s' is not allowed here", r->document->path, line,
                    is_core ? "!!" : "", is_core ? name + core : name);
}

/* *index: a new anchor called `name`, still being read. */
static octet_status add_anchor(reader *r, const yaml_char_t *name, int line, size_t *index) {
    if (r->anchor_count == ANCHORS_LIMIT)
        return oct_fail(OCTET_LIMIT, "%s:%d: more than %d anchors", r->document->path, line, ANCHORS_LIMIT);
    void *anchors = r->anchors;
    if (!oct_grow(&anchors, sizeof *r->anchors, r->anchor_count + 1, &r->anchor_capacity)) return oct_fail_memory();
    r->anchors = anchors;
    char *copy = oct_arena_strdup(&r->document->arena, (const char *)name);
    if (copy == NULL) return oct_fail_memory();
    r->anchors[r->anchor_count] = (anchor){.name = copy};
    *index = r->anchor_count++;
    return OCTET_OK;
}

/* Puts a finished node where it belongs: root, list, or under the key that waits. */
static octet_status place(reader *r, oct_node *node, size_t nodes, size_t height) {
    if (r->depth == 0) {
        r->document->root = node;
        return OCTET_OK;
    }
    level *top = &r->levels[r->depth - 1];
    void *items = top->items;
    if (!oct_grow(&items, sizeof *top->items, top->count + 1, &top->items_capacity)) return oct_fail_memory();
    top->items = items;
    top->items[top->count] = node;
    if (top->node->kind == OCT_NODE_MAP) {
        void *keys = top->keys;
        if (!oct_grow(&keys, sizeof *top->keys, top->count + 1, &top->keys_capacity)) return oct_fail_memory();
        top->keys = keys;
        void *lines = top->lines;
        if (!oct_grow(&lines, sizeof *top->lines, top->count + 1, &top->lines_capacity)) return oct_fail_memory();
        top->lines = lines;
        top->keys[top->count] = top->key;
        top->lines[top->count] = top->key_line;
        top->key = NULL;
    }
    top->count++;
    top->nodes += nodes;
    if (height > top->height) top->height = height;
    return OCTET_OK;
}

static octet_status count_nodes(reader *r, size_t nodes, int line) {
    r->nodes += nodes;
    if (r->nodes <= OCT_DOCUMENT_YAML_NODES) return OCTET_OK;
    return oct_fail(OCTET_LIMIT, "%s:%d: more than %zu values, aliases written out", r->document->path, line,
                    OCT_DOCUMENT_YAML_NODES);
}

static bool waits_for_key(const reader *r) {
    return r->depth > 0 && r->levels[r->depth - 1].node->kind == OCT_NODE_MAP && r->levels[r->depth - 1].key == NULL;
}

static octet_status read_scalar(reader *r, const yaml_event_t *event) {
    static const char *const allowed[] = {"str", "int", "float", "bool", "null", NULL};
    int line = line_of(&event->start_mark);
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    const char *tag = (const char *)event->data.scalar.tag;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    OCT_TRY(check_tag(r, event->data.scalar.tag, allowed, line));
    if (memchr(text, 0, length) != NULL) return fail_at(r, OCTET_BAD_FORMAT, line, "a zero byte in a string");
    char *copy = oct_arena_strndup(&r->document->arena, text, length);
    if (copy == NULL) return oct_fail_memory();

    if (waits_for_key(r)) {
        if (event->data.scalar.anchor != NULL)
            return fail_at(r, OCTET_UNSUPPORTED, line, "an anchor on a key is not supported");
        if (plain && tag == NULL && strcmp(copy, "<<") == 0)
            return fail_at(r, OCTET_UNSUPPORTED, line, "merge keys (<<) are not supported, write the keys out");
        r->levels[r->depth - 1].key = copy;
        r->levels[r->depth - 1].key_line = line;
        return OCTET_OK;
    }

    OCT_TRY(count_nodes(r, 1, line));
    oct_node *node = oct_arena_alloc(&r->document->arena, sizeof *node);
    if (node == NULL) return oct_fail_memory();
    node->line = line;
    node->string = copy;
    node->kind = OCT_NODE_STRING;
    const char *asked = tag != NULL && strcmp(tag, "!") != 0 ? tag + strlen(CORE_TAG) : NULL;
    if (asked != NULL && strcmp(asked, "str") != 0) {
        static const char *const tags[] = {
            [OCT_NODE_NULL] = "null", [OCT_NODE_BOOL] = "bool", [OCT_NODE_INT] = "int", [OCT_NODE_REAL] = "float"};
        oct_yaml_resolve(node, length);
        if (node->kind == OCT_NODE_INT && strcmp(asked, "float") == 0) node->kind = OCT_NODE_REAL;
        if (node->kind == OCT_NODE_STRING || strcmp(tags[node->kind], asked) != 0)
            return oct_fail(OCTET_BAD_FORMAT, "%s:%d: '%.64s' is no !!%s", r->document->path, line, copy, asked);
    } else if (plain && tag == NULL) {
        oct_yaml_resolve(node, length);
    }
    if (event->data.scalar.anchor != NULL) {
        size_t index = 0;
        OCT_TRY(add_anchor(r, event->data.scalar.anchor, line, &index));
        r->anchors[index].node = node;
        r->anchors[index].nodes = 1;
    }
    return place(r, node, 1, 0);
}

static octet_status read_alias(reader *r, const yaml_event_t *event) {
    int line = line_of(&event->start_mark);
    const char *name = (const char *)event->data.alias.anchor;
    const anchor *found = NULL;
    for (size_t i = r->anchor_count; i > 0 && found == NULL; i--) { /* the latest of a name counts */
        if (strcmp(r->anchors[i - 1].name, name) == 0) found = &r->anchors[i - 1];
    }
    const char *path = r->document->path;
    if (found == NULL)
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: alias '*%s' has no anchor before it", path, line, name);
    if (found->node == NULL)
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: alias '*%s' stands inside its own anchor", path, line, name);
    if (waits_for_key(r)) return fail_at(r, OCTET_UNSUPPORTED, line, "an alias as a key is not supported");
    if (r->depth + found->height > OCT_DOCUMENT_DEPTH)
        return oct_fail(OCTET_LIMIT, "%s:%d: nested deeper than %d", path, line, OCT_DOCUMENT_DEPTH);
    OCT_TRY(count_nodes(r, found->nodes, line));
    oct_node *node = oct_arena_alloc(&r->document->arena, sizeof *node);
    if (node == NULL) return oct_fail_memory();
    *node = *found->node;
    node->line = line;
    return place(r, node, found->nodes, found->height);
}

static octet_status begin_level(reader *r, oct_node_kind kind, const yaml_char_t *anchor_name, const yaml_char_t *tag,
                                int line) {
    static const char *const list_tags[] = {"seq", NULL};
    static const char *const map_tags[] = {"map", NULL};
    OCT_TRY(check_tag(r, tag, kind == OCT_NODE_LIST ? list_tags : map_tags, line));
    if (waits_for_key(r)) return fail_at(r, OCTET_BAD_FORMAT, line, "expected a string as key, found a list or map");
    if (r->depth == OCT_DOCUMENT_DEPTH)
        return oct_fail(OCTET_LIMIT, "%s:%d: nested deeper than %d", r->document->path, line, OCT_DOCUMENT_DEPTH);
    OCT_TRY(count_nodes(r, 1, line));
    level made = {.nodes = 1, .anchored = anchor_name != NULL};
    if (anchor_name != NULL) OCT_TRY(add_anchor(r, anchor_name, line, &made.anchor));
    made.node = oct_arena_alloc(&r->document->arena, sizeof *made.node);
    if (made.node == NULL) return oct_fail_memory();
    made.node->kind = kind;
    made.node->line = line;
    r->levels[r->depth++] = made;
    return OCTET_OK;
}

static void free_level(level *done) {
    oct_free(done->items);
    oct_free(done->keys);
    oct_free(done->lines);
}

typedef struct named {
    const char *key;
    int line;
    size_t index;
} named;

static int by_name(const void *a, const void *b) {
    const named *x = a;
    const named *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* The first key given a second time, with both lines. */
static octet_status check_keys(const reader *r, const level *done) {
    if (done->count < 2) return OCTET_OK;
    named *names = oct_calloc(done->count, sizeof *names);
    if (names == NULL) return oct_fail_memory();
    for (size_t i = 0; i < done->count; i++)
        names[i] = (named){.key = done->keys[i], .line = done->lines[i], .index = i};
    qsort(names, done->count, sizeof *names, by_name);
    const named *twice = NULL;
    for (size_t i = 1; i < done->count; i++) {
        bool equal = strcmp(names[i].key, names[i - 1].key) == 0;
        if (equal && (twice == NULL || names[i].index < twice->index)) twice = &names[i];
    }
    octet_status status = OCTET_OK;
    if (twice != NULL)
        status = oct_fail(OCTET_BAD_FORMAT, "%s:%d: key '%.128s' given twice, first in line %d", r->document->path,
                          twice->line, twice->key, twice[-1].line);
    oct_free(names);
    return status;
}

static octet_status end_level(reader *r) {
    level *done = &r->levels[r->depth - 1];
    oct_arena *arena = &r->document->arena;
    oct_node *node = done->node;
    node->count = done->count;
    node->items = oct_arena_alloc(arena, done->count * sizeof *node->items);
    if (node->items == NULL) return oct_fail_memory();
    if (done->count > 0) memcpy(node->items, done->items, done->count * sizeof *node->items);
    if (node->kind == OCT_NODE_MAP) {
        OCT_TRY(check_keys(r, done));
        int *lines = oct_arena_alloc(arena, done->count * sizeof *lines);
        node->keys = oct_arena_alloc(arena, done->count * sizeof *node->keys);
        if (lines == NULL || node->keys == NULL) return oct_fail_memory();
        node->key_lines = lines;
        if (done->count > 0) {
            memcpy(node->keys, done->keys, done->count * sizeof *node->keys);
            memcpy(lines, done->lines, done->count * sizeof *lines);
        }
    }
    size_t nodes = done->nodes;
    size_t height = done->height + 1;
    if (done->anchored) {
        anchor *own = &r->anchors[done->anchor];
        own->node = node;
        own->nodes = nodes;
        own->height = height;
    }
    free_level(done);
    r->depth--;
    return place(r, node, nodes, height);
}

static octet_status refused(const reader *r, const yaml_parser_t *parser, const char *text, size_t length) {
    if (parser->error == YAML_MEMORY_ERROR) return oct_fail_memory();
    const char *path = r->document->path;
    const char *problem = parser->problem != NULL ? parser->problem : "malformed YAML";
    if (parser->error == YAML_READER_ERROR) { /* has an offset, but no mark */
        int line = 1;
        for (size_t i = 0; i < length && i < parser->problem_offset; i++) {
            if (text[i] == '\n') line++;
        }
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: %s (U+%04X)", path, line, problem, (unsigned)parser->problem_value);
    }
    int line = line_of(&parser->problem_mark);
    int column = (int)parser->problem_mark.column + 1;
    size_t characters = parser->problem_mark.index; /* before the place */
    const char *byte = text;
    while (byte < text + length && characters > 0) {
        byte += oct_utf8_sequence((const uint8_t *)byte, (size_t)(text + length - byte));
        characters--;
    }
    if (byte < text + length && *byte == '\t')
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: column %d: a tab cannot indent, use spaces", path, line, column);
    (void)oct_fail(OCTET_BAD_FORMAT, "%s:%d: column %d: %s", path, line, column, problem);
    if (parser->context != NULL)
        (void)oct_detail("%s, which begins in line %d", parser->context, line_of(&parser->context_mark));
    return OCTET_BAD_FORMAT;
}

/* One event; *done at the end of the stream. */
static octet_status take(reader *r, const yaml_event_t *event, bool *done) {
    int line = line_of(&event->start_mark);
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return OCTET_OK;
    case YAML_STREAM_END_EVENT:
        *done = true;
        return OCTET_OK;
    case YAML_DOCUMENT_START_EVENT:
        if (r->document->root == NULL) return OCTET_OK;
        return fail_at(r, OCTET_UNSUPPORTED, line, "a second document begins here, expected one");
    case YAML_ALIAS_EVENT:
        return read_alias(r, event);
    case YAML_SCALAR_EVENT:
        return read_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return begin_level(r, OCT_NODE_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag, line);
    case YAML_MAPPING_START_EVENT:
        return begin_level(r, OCT_NODE_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end_level(r);
    }
    return OCTET_OK;
}

static octet_status read_events(reader *r, yaml_parser_t *parser, const char *text, size_t length) {
    bool done = false;
    while (!done) {
        yaml_event_t event;
        if (yaml_parser_parse(parser, &event) == 0) return refused(r, parser, text, length);
        octet_status status = take(r, &event, &done);
        yaml_event_delete(&event);
        OCT_TRY(status);
    }
    if (r->document->root != NULL) return OCTET_OK;
    oct_node *node = oct_arena_alloc(&r->document->arena, sizeof *node); /* no document at all: a value left empty */
    if (node == NULL) return oct_fail_memory();
    *node = (oct_node){.kind = OCT_NODE_NULL, .line = 1, .string = ""};
    r->document->root = node;
    return OCTET_OK;
}

octet_status oct_document_parse_yaml(oct_document *document, const char *name, const char *text, size_t length) {
    OCT_TRY(oct_document_begin(document, name, &text, &length));
    yaml_parser_t parser;
    reader *r = oct_calloc(1, sizeof *r);
    if (r == NULL || yaml_parser_initialize(&parser) == 0) {
        oct_free(r);
        return oct_document_end(document, oct_fail_memory());
    }
    r->document = document;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    octet_status status = read_events(r, &parser, text, length);
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < r->depth; i++) free_level(&r->levels[i]);
    oct_free(r->anchors);
    oct_free(r);
    return oct_document_end(document, status);
}
