/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/labels.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#define CLASSES_FILE_LIMIT ((size_t)16 << 20)

static octet_status keep_name(oct_labels *labels, size_t index, const char *name, size_t length) {
    labels->names[index] = oct_arena_strndup(&labels->arena, name, length);
    return labels->names[index] == NULL ? oct_fail_memory() : OCTET_OK;
}

/* Keys are numbers written as text, in any order; each of 0 .. classes - 1 once. */
static octet_status from_id2label(oct_labels *labels, const oct_document *config, const oct_node *map) {
    if (map->kind != OCT_NODE_MAP) {
        return oct_node_fail(config, map, "id2label: expected a map, found %s", oct_node_kind_name(map->kind));
    }
    if (map->count != labels->count) {
        return oct_node_fail(config, map, "id2label: %zu labels for %zu classes", map->count, labels->count);
    }
    for (size_t i = 0; i < map->count; i++) {
        int64_t index;
        if (!oct_parse_int(map->keys[i], 0, (int64_t)labels->count - 1, &index)) {
            return oct_node_fail(config, map->items[i], "id2label: expected an index of 0 to %zu as key, found \"%s\"",
                                 labels->count - 1, map->keys[i]);
        }
        if (map->items[i]->kind != OCT_NODE_STRING) {
            return oct_node_fail(config, map->items[i], "id2label: %s: expected a string, found %s", map->keys[i],
                                 oct_node_kind_name(map->items[i]->kind));
        }
        if (labels->names[index] != NULL) {
            return oct_node_fail(config, map->items[i], "id2label: index %" PRId64 " stands twice", index);
        }
        OCT_TRY(keep_name(labels, (size_t)index, map->items[i]->string, strlen(map->items[i]->string)));
    }
    return OCTET_OK;
}

static octet_status from_names(oct_labels *labels, const oct_document *config, const oct_node *list, const char *what) {
    if (list->kind != OCT_NODE_LIST) {
        return oct_node_fail(config, list, "%s: expected a list, found %s", what, oct_node_kind_name(list->kind));
    }
    if (list->count != labels->count) {
        return oct_node_fail(config, list, "%s: %zu labels for %zu classes", what, list->count, labels->count);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->kind != OCT_NODE_STRING) {
            return oct_node_fail(config, list->items[i], "%s: expected a string, found %s", what,
                                 oct_node_kind_name(list->items[i]->kind));
        }
        OCT_TRY(keep_name(labels, i, list->items[i]->string, strlen(list->items[i]->string)));
    }
    return OCTET_OK;
}

/* A name a line; the last line may lack its end; a carriage return before the end is dropped. */
static octet_status from_text(oct_labels *labels, const char *path, const char *text, size_t size) {
    size_t lines = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : size - at;
        size_t kept = length > 0 && text[at + length - 1] == '\r' ? length - 1 : length;
        if (memchr(text + at, '\0', length) != NULL) {
            return oct_fail(OCTET_BAD_FORMAT, "%s:%zu: a zero byte in a class name", path, lines + 1);
        }
        if (lines < labels->count) OCT_TRY(keep_name(labels, lines, text + at, kept));
        lines++;
        at += length + 1;
    }
    if (lines != labels->count) {
        return oct_fail(OCTET_MISMATCH, "%s: %zu labels for %zu classes", path, lines, labels->count);
    }
    return OCTET_OK;
}

static octet_status from_file(oct_labels *labels, const char *path) {
    uint8_t *data;
    size_t size;
    OCT_TRY(oct_file_read(path, CLASSES_FILE_LIMIT, &data, &size));
    octet_status status = from_text(labels, path, (const char *)data, size);
    oct_free(data);
    return status;
}

static octet_status from_index(oct_labels *labels) {
    for (size_t i = 0; i < labels->count; i++) {
        labels->names[i] = oct_arena_sprintf(&labels->arena, "%zu", i);
        if (labels->names[i] == NULL) return oct_fail_memory();
    }
    return OCTET_OK;
}

static const oct_node *given(const oct_node *root, const char *key) {
    const oct_node *node = oct_node_get(root, key);
    return node != NULL && node->kind != OCT_NODE_NULL ? node : NULL;
}

static octet_status make_room(oct_labels *labels, size_t classes) {
    memset(labels, 0, sizeof *labels);
    labels->count = classes;
    labels->names = oct_arena_alloc(&labels->arena, classes * sizeof *labels->names);
    return labels->names == NULL ? oct_fail_memory() : OCTET_OK;
}

octet_status oct_labels_from_list(oct_labels *labels, const oct_document *document, const oct_node *list,
                                  const char *what, size_t classes) {
    OCT_TRY(make_room(labels, classes));
    labels->source = what;
    octet_status status = from_names(labels, document, list, what);
    if (status != OCTET_OK) oct_labels_free(labels);
    return status;
}

octet_status oct_labels_read(oct_labels *labels, const oct_document *config, const char *classes_file, size_t classes) {
    OCT_TRY(make_room(labels, classes));
    const oct_node *id2label = given(config->root, "id2label");
    const oct_node *label_names = given(config->root, "label_names");
    if (label_names == NULL) label_names = given(given(config->root, "pretrained_cfg"), "label_names");
    octet_status status;
    if (id2label != NULL) {
        labels->source = "id2label";
        status = from_id2label(labels, config, id2label);
    } else if (label_names != NULL) {
        labels->source = "label_names";
        status = from_names(labels, config, label_names, "label_names");
    } else if (classes_file != NULL) {
        labels->source = oct_arena_strdup(&labels->arena, classes_file);
        status = labels->source == NULL ? oct_fail_memory() : from_file(labels, classes_file);
    } else {
        labels->source = "index";
        status = from_index(labels);
    }
    if (status != OCTET_OK) oct_labels_free(labels);
    return status;
}

void oct_labels_free(oct_labels *labels) {
    oct_arena_free(&labels->arena);
    memset(labels, 0, sizeof *labels);
}
