/* SPDX-License-Identifier: Apache-2.0 */
/* One tree for what is read from JSON (jansson) and YAML (libyaml; YAML 1.2 core scalars): every node knows its line,
 * so that errors can say it. Untrusted input: size, depth, alias expansion and duplicate keys are checked at reading.
 *
 *     oct_document doc = {0};
 *     OCT_TRY(oct_document_read(&doc, "config.json", OCT_DOCUMENT_LIMIT));
 *     const oct_node *size = oct_node_get(doc.root, "image_size");
 *     ... oct_node_fail(&doc, size, "expected two numbers") ...
 *     oct_document_free(&doc);
 */
#ifndef OCT_BASE_DOCUMENT_H
#define OCT_BASE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define OCT_DOCUMENT_LIMIT ((size_t)64 << 20) /* bytes of text */
#define OCT_DOCUMENT_DEPTH 64                 /* lists and maps inside each other */
#define OCT_DOCUMENT_NODES ((size_t)8 << 20)  /* of a JSON text up to OCT_DOCUMENT_LIMIT, one in 8 bytes of a longer */
#define OCT_DOCUMENT_YAML_NODES ((size_t)1000000) /* of a YAML text, each alias counted as what it stands for */

typedef enum oct_node_kind {
    OCT_NODE_NULL,
    OCT_NODE_BOOL,
    OCT_NODE_INT,
    OCT_NODE_REAL,
    OCT_NODE_STRING,
    OCT_NODE_LIST,
    OCT_NODE_MAP
} oct_node_kind;

typedef struct oct_node oct_node;
struct oct_node {
    oct_node_kind kind;
    int line; /* 1-based */
    bool boolean;
    int64_t integer;      /* INT */
    double real;          /* INT and REAL; not finite for .inf, .nan and what is beyond a double in YAML */
    const char *string;   /* STRING: bytes, UTF-8 checked, no embedded zero; other scalars: as written ("" for a value
                           * left empty), NULL for JSON */
    size_t count;         /* LIST, MAP */
    oct_node **items;     /* LIST: elements; MAP: values */
    const char **keys;    /* MAP, in file order */
    const int *key_lines; /* MAP: the line of each key */
};

typedef struct oct_document {
    const char *path; /* as given, for errors */
    oct_node *root;   /* never NULL after success */
    oct_arena arena;
} oct_document;

/* By extension: .yaml and .yml are YAML, everything else JSON. On failure *document is empty and nothing is owed.
 * JSON integers beyond int64 are an error. In YAML they are REAL; 0o17 and 0x1F are integers, 007 is 7, NO and 1_000
 * are strings; duplicate keys, merge keys (<<), a second document and tags outside the core schema are errors. An alias
 * shares the node it stands for, under the alias's own line. */
octet_status oct_document_read(oct_document *document, const char *path, size_t limit);
octet_status oct_document_parse_json(oct_document *document, const char *name, const char *text, size_t length);
octet_status oct_document_parse_yaml(oct_document *document, const char *name, const char *text, size_t length);
void oct_document_free(oct_document *document);

const oct_node *oct_node_get(const oct_node *map, const char *key); /* NULL: not a map, or no such key */
/* Typed reading with the error made here: "FILE:LINE: KEY: expected WHAT, found FOUND". Absent keys and null leave
 * *value as it was and are OK unless `required`; a YAML value left empty ("key:") is an error. `map` may be NULL: no
 * keys. Reals are finite. A string may be a number in YAML: then it is the text as written ("1.10", "0123456"). */
octet_status oct_node_int(const oct_document *document, const oct_node *map, const char *key, bool required,
                          int64_t low, int64_t high, int64_t *value);
octet_status oct_node_real(const oct_document *document, const oct_node *map, const char *key, bool required,
                           double *value);
octet_status oct_node_bool(const oct_document *document, const oct_node *map, const char *key, bool required,
                           bool *value);
octet_status oct_node_string(const oct_document *document, const oct_node *map, const char *key, bool required,
                             const char **value);
/* a list of exactly `count` numbers */
octet_status oct_node_reals(const oct_document *document, const oct_node *map, const char *key, bool required,
                            double *values, size_t count);
/* "FILE:LINE: " + format */
octet_status oct_node_fail(const oct_document *document, const oct_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* keys of `map` that are not in `known` (NULL-ended) are an error naming the line and the nearest known key */
octet_status oct_node_known_keys(const oct_document *document, const oct_node *map, const char *const *known);
const char *oct_node_kind_name(oct_node_kind kind);

#endif
