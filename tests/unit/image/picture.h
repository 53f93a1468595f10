/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of pictures share: hashes, formula pictures, lines of a golden .jsonl file. */
#ifndef OCT_TESTS_PICTURE_H
#define OCT_TESTS_PICTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/document.h"
#include "base/hash.h"
#include "image/image.h"
#include "support/support.h"

#define GOLDEN OCTET_SOURCE_DIR "/tests/golden/"

static inline void picture_hash(const oct_image *image, char hex[OCT_SHA256_HEX]) {
    uint8_t digest[OCT_SHA256_SIZE];
    assert_int_equal(oct_sha256_of(image->rgb, (size_t)image->width * (size_t)image->height * 3, digest), OCTET_OK);
    oct_sha256_hex(digest, hex);
}

/* The formula picture of tools/reference/drawn_weights.md. */
static inline oct_image picture_formula(int width, int height, int64_t s) {
    oct_image image = {.width = width, .height = height};
    image.rgb = oct_alloc((size_t)width * (size_t)height * 3);
    assert_non_null(image.rgb);
    uint8_t *out = image.rgb;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            for (int64_t c = 0; c < 3; c++)
                *out++ = (uint8_t)(7 * x + 13 * y + 101 * c + 29 * s + 3 * ((x * y + 17 * s) % 251));
        }
    }
    return image;
}

/* Calls `line` for every line of a .jsonl file; returns their number, -1 where the file is not there. */
static inline int picture_lines(const char *path, void (*line)(const oct_node *row, void *user), void *user) {
    char *text = support_read_text(path, NULL), *rest = NULL;
    int count = 0;
    if (text == NULL) return -1;
    for (char *one = strtok_r(text, "\n", &rest); one != NULL; one = strtok_r(NULL, "\n", &rest), count++) {
        oct_document document;
        assert_int_equal(oct_document_parse_json(&document, path, one, strlen(one)), OCTET_OK);
        line(document.root, user);
        oct_document_free(&document);
    }
    free(text);
    return count;
}

static inline int64_t picture_int(const oct_node *map, const char *key) {
    const oct_node *node = oct_node_get(map, key);
    assert_non_null(node);
    assert_int_equal(node->kind, OCT_NODE_INT);
    return node->integer;
}

static inline const char *picture_string(const oct_node *map, const char *key) {
    const oct_node *node = oct_node_get(map, key);
    return node != NULL && node->kind == OCT_NODE_STRING ? node->string : NULL;
}

static inline int64_t picture_item(const oct_node *map, const char *key, size_t index) {
    const oct_node *node = oct_node_get(map, key);
    assert_non_null(node);
    assert_int_equal(node->kind, OCT_NODE_LIST);
    assert_true(index < node->count);
    return node->items[index]->integer;
}

static inline oct_filter picture_filter(const char *name) {
    for (oct_filter f = OCT_FILTER_NEAREST; f <= OCT_FILTER_LANCZOS; f++) {
        if (strcmp(name, oct_filter_name(f)) == 0) return f;
    }
    fail_msg("no filter is called %s", name);
    return OCT_FILTER_NEAREST;
}

#endif
