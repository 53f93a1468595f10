/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged documents: flipped bits, cut ends, pieces doubled. Each is read or refused, never a crash or a leak, and
 * what is read is a sound tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "base/document.h"
#include "base/random.h"
#include "base/text.h"

static const char json[] = "{\"model_type\": \"vit\", \"image_size\": 224, \"layers\": [1, 2, {\"a\": -1.5e-3}],\n"
                           " \"id2label\": {\"0\": \"tench\", \"1\": \"caf\\u00e9 \xc3\xa9\", \"2\": null},\n"
                           " \"flags\": [true, false, \"\", \"\\\"\\\\\"], \"nested\": [[[[{}]]]]}";
static const char yaml[] = "# a recipe\n"
                           "format: &f {weights: e4m3, activations: 'e5m2'}\n"
                           "again: *f\n"
                           "scales:\n  - 1e-3\n  - .inf\n  - \"x\\u00e9\"\n  - !!str 1\n"
                           "text: |\n  one\n  two\n"
                           "fold: >-\n  three\n  four\n"
                           "? key\n: [a, b, {c: d}]\n"
                           "n: ~\n";

typedef octet_status (*parser)(oct_document *document, const char *name, const char *text, size_t length);

static void check_tree(const oct_node *node, size_t depth, int lines) {
    assert_non_null(node);
    assert_true(depth <= OCT_DOCUMENT_DEPTH);
    assert_true(node->line >= 1 && node->line <= lines);
    if (node->kind == OCT_NODE_STRING) assert_non_null(node->string);
    if (node->kind != OCT_NODE_LIST && node->kind != OCT_NODE_MAP) return;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == OCT_NODE_MAP) {
            assert_non_null(node->keys[i]);
            assert_true(node->key_lines[i] >= 1 && node->key_lines[i] <= lines);
            assert_ptr_equal(oct_node_get(node, node->keys[i]), node->items[i]); /* keys differ */
        }
        check_tree(node->items[i], depth + 1, lines);
    }
}

static void feed(parser parse, const char *bytes, size_t length, size_t *read) {
    char *exact = malloc(length > 0 ? length : 1); /* so that a sanitizer sees a byte too far */
    assert_non_null(exact);
    memcpy(exact, bytes, length);
    int64_t live = oct_alloc_live();
    oct_document document;
    octet_status status = parse(&document, "damaged", exact, length);
    if (status == OCTET_OK) {
        check_tree(document.root, 0, (int)length + 1);
        ++*read;
    } else {
        assert_true(status == OCTET_BAD_FORMAT || status == OCTET_LIMIT || status == OCTET_UNSUPPORTED);
        assert_true(oct_starts_with(oct_error_fact(), "damaged:"));
    }
    oct_document_free(&document);
    assert_int_equal(oct_alloc_live(), live);
    free(exact);
}

static void damage(parser parse, const char *text, size_t length) {
    size_t read = 0;
    size_t fed = 0;
    char work[2048];
    for (size_t cut = 0; cut <= length; cut++, fed++) feed(parse, text, cut, &read);
    for (size_t bit = 0; bit < length * 8; bit++, fed++) {
        memcpy(work, text, length);
        work[bit / 8] = (char)(work[bit / 8] ^ (1 << bit % 8));
        feed(parse, work, length, &read);
    }
    uint64_t seed = 20;
    for (int round = 0; round < 20000; round++, fed++) {
        memcpy(work, text, length);
        size_t size = length;
        size_t times = 1 + oct_random_below(&seed, 6);
        for (size_t i = 0; i < times; i++) {
            size_t at = oct_random_below(&seed, size);
            size_t from = oct_random_below(&seed, size);
            size_t some = oct_random_below(&seed, 12);
            if (some > size - from) some = size - from;
            switch (oct_random_below(&seed, 4)) {
            case 0:
                work[at] = (char)oct_random_below(&seed, 256);
                break;
            case 1:
                work[at] = "[]{},:\"'&*!|>-?#%@~\n\t \\"[oct_random_below(&seed, 23)];
                break;
            case 2: /* a piece put in once more */
                if (size + some > sizeof work || at > size) break;
                memmove(work + at + some, work + at, size - at);
                memcpy(work + at, text + oct_random_below(&seed, length - some), some);
                size += some;
                break;
            default: /* a piece taken out */
                if (some >= size) break;
                memmove(work + from, work + from + some, size - from - some);
                size -= some;
                break;
            }
        }
        feed(parse, work, size, &read);
    }
    assert_true(read > fed / 100); /* some damage leaves a document: both ways are walked */
    assert_true(read < fed);
}

static void test_json(void **state) {
    (void)state;
    damage(oct_document_parse_json, json, sizeof json - 1);
}

static void test_yaml(void **state) {
    (void)state;
    damage(oct_document_parse_yaml, yaml, sizeof yaml - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_yaml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
