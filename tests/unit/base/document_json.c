/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/alloc.h"
#include "base/document.h"

static octet_status parse(oct_document *document, const char *text) {
    return oct_document_parse_json(document, "a.json", text, strlen(text));
}

static void refused(const char *text, octet_status status, const char *fact) {
    oct_document document;
    memset(&document, 0xff, sizeof document);
    int64_t live = oct_alloc_live();
    octet_status found = parse(&document, text);
    if (found != status) fail_msg("%s: status %s", text, oct_status_name(found));
    if (strncmp(oct_error_fact(), fact, strlen(fact)) != 0)
        fail_msg("expected '%s', found '%s'", fact, oct_error_fact());
    assert_null(document.root);
    assert_null(document.path);
    assert_int_equal(oct_alloc_live(), live);
}

static void test_every_node_knows_its_line(void **state) {
    (void)state;
    oct_document document = {0};
    const char *text = "\xef\xbb\xbf\r\n"
                       "{ \"a\" :\n"
                       "  [1, -2.5e1,\n"
                       "   \"x,:]}\\\"\\\\\", true, false,\n"
                       "\n"
                       "   null, {}, []],\n"
                       "  \"k\\u00e9\\\"\":\n"
                       "    {\"c\": {\"d\": 9223372036854775807},\n"
                       "     \"a\": 0.1}}\n";
    assert_int_equal(parse(&document, text), OCTET_OK);
    const oct_node *root = document.root;
    assert_string_equal(document.path, "a.json");
    assert_int_equal(root->kind, OCT_NODE_MAP);
    assert_int_equal(root->line, 2);
    assert_int_equal(root->count, 2);
    assert_string_equal(root->keys[0], "a");
    assert_int_equal(root->key_lines[0], 2);
    const oct_node *list = oct_node_get(root, "a");
    assert_int_equal(list->kind, OCT_NODE_LIST);
    assert_int_equal(list->count, 8);
    static const int lines[] = {3, 3, 4, 4, 4, 6, 6, 6};
    static const oct_node_kind kinds[] = {OCT_NODE_INT,  OCT_NODE_REAL, OCT_NODE_STRING, OCT_NODE_BOOL,
                                          OCT_NODE_BOOL, OCT_NODE_NULL, OCT_NODE_MAP,    OCT_NODE_LIST};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(list->items[i]->line, lines[i]);
        assert_int_equal(list->items[i]->kind, kinds[i]);
    }
    assert_int_equal(list->items[0]->integer, 1);
    assert_true(list->items[0]->real == 1.0);
    assert_true(list->items[1]->real == -25.0);
    assert_string_equal(list->items[2]->string, "x,:]}\"\\");
    assert_true(list->items[3]->boolean && !list->items[4]->boolean);
    assert_string_equal(root->keys[1], "k\xc3\xa9\"");
    assert_int_equal(root->key_lines[1], 7);
    const oct_node *map = root->items[1];
    assert_int_equal(map->line, 8);
    assert_int_equal(oct_node_get(oct_node_get(map, "c"), "d")->integer, INT64_MAX);
    assert_int_equal(oct_node_get(map, "a")->line, 9);
    assert_null(oct_node_get(map, "z"));
    assert_null(oct_node_get(list, "a"));
    assert_null(oct_node_get(NULL, "a"));
    oct_document_free(&document);
    assert_null(document.root);
}

static void test_any_value_may_be_the_root(void **state) {
    (void)state;
    static const char *const texts[] = {"1", " \n\"x\" ", "null", "[]", "true", "-0.5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        oct_document document = {0};
        assert_int_equal(parse(&document, texts[i]), OCTET_OK);
        assert_int_equal(document.root->line, i == 1 ? 2 : 1);
        oct_document_free(&document);
    }
}

static void test_order_of_many_keys_is_kept(void **state) {
    (void)state;
    static char text[200000];
    size_t used = 0;
    text[used++] = '{';
    for (int i = 0; i < 5000; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s\"k%d\":\n%d", i > 0 ? "," : "", i * 7919 % 5000, i);
    memcpy(text + used, "}", 2);
    oct_document document = {0};
    assert_int_equal(parse(&document, text), OCTET_OK);
    assert_int_equal(document.root->count, 5000);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(document.root->items[i]->integer, i);
        assert_int_equal(document.root->key_lines[i], i + 1);
        assert_int_equal(document.root->items[i]->line, i + 2);
    }
    oct_document_free(&document);
}

static void test_refusals_name_the_line(void **state) {
    (void)state;
    refused("", OCTET_BAD_FORMAT, "a.json:1: column 1: ");
    refused("{\"a\": 1,\n \"a\": 2}", OCTET_BAD_FORMAT, "a.json:2: column 4: duplicate object key");
    refused("[1,\n\nNaN]", OCTET_BAD_FORMAT, "a.json:3: column 3: invalid token near 'NaN'");
    refused("[Infinity]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[-Infinity]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[1,\n9223372036854775808]", OCTET_BAD_FORMAT, "a.json:2: column 19: too big integer");
    refused("[1e999]", OCTET_BAD_FORMAT, "a.json:1: column 6: real number overflow");
    refused("[1,]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[1] x", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[01]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("{'a': 1}", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[\"\\u0000\"]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[\"\\ud800\"]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[\"a\nb\"]", OCTET_BAD_FORMAT, "a.json:1: ");
    refused("[1,\n\"\xff\"]", OCTET_BAD_FORMAT, "a.json:2: byte 0xff is not UTF-8");
    oct_document document;
    assert_int_equal(oct_document_parse_json(&document, "z", "[1,\n\0 2]", 8), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "z:2: a zero byte in text");
}

static void test_depth(void **state) {
    (void)state;
    char text[4001];
    for (int depth = 60; depth <= 70; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        oct_document document = {0};
        if (depth <= OCT_DOCUMENT_DEPTH) {
            assert_int_equal(parse(&document, text), OCTET_OK);
            oct_document_free(&document);
        } else {
            refused(text, OCTET_LIMIT, "a.json:1: nested deeper than 64");
        }
    }
    memset(text, '[', 4000);
    text[4000] = '\0';
    refused(text, OCTET_LIMIT, "a.json:1: nested deeper than 64");
    oct_document document = {0}; /* brackets inside strings do not count */
    text[0] = '"';
    text[3999] = '"';
    assert_int_equal(parse(&document, text), OCTET_OK);
    oct_document_free(&document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_node_knows_its_line),
        cmocka_unit_test(test_any_value_may_be_the_root),
        cmocka_unit_test(test_order_of_many_keys_is_kept),
        cmocka_unit_test(test_refusals_name_the_line),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
