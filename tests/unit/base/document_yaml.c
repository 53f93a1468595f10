/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/document.h"
#include "support/support.h"

static octet_status parse(oct_document *document, const char *text) {
    return oct_document_parse_yaml(document, "a.yaml", text, strlen(text));
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
    assert_int_equal(oct_alloc_live(), live);
}

/* The core schema of YAML 1.2.2, section 10.3.2, and what people's other tools read differently. */
static void test_plain_scalars(void **state) {
    (void)state;
    static const struct {
        const char *text;
        oct_node_kind kind;
        double value;
    } cases[] = {
        {"~", OCT_NODE_NULL, 0},
        {"null", OCT_NODE_NULL, 0},
        {"Null", OCT_NODE_NULL, 0},
        {"NULL", OCT_NODE_NULL, 0},
        {"", OCT_NODE_NULL, 0},
        {"nULL", OCT_NODE_STRING, 0},
        {"true", OCT_NODE_BOOL, 1},
        {"True", OCT_NODE_BOOL, 1},
        {"TRUE", OCT_NODE_BOOL, 1},
        {"false", OCT_NODE_BOOL, 0},
        {"False", OCT_NODE_BOOL, 0},
        {"FALSE", OCT_NODE_BOOL, 0},
        {"tRUE", OCT_NODE_STRING, 0},
        {"yes", OCT_NODE_STRING, 0},
        {"NO", OCT_NODE_STRING, 0},
        {"off", OCT_NODE_STRING, 0},
        {"y", OCT_NODE_STRING, 0},
        {"0", OCT_NODE_INT, 0},
        {"-12", OCT_NODE_INT, -12},
        {"+12", OCT_NODE_INT, 12},
        {"012", OCT_NODE_INT, 12},
        {"0o14", OCT_NODE_INT, 12},
        {"0x1F", OCT_NODE_INT, 31},
        {"0xff", OCT_NODE_INT, 255},
        {"-0x1F", OCT_NODE_STRING, 0},
        {"0o8", OCT_NODE_STRING, 0},
        {"0x", OCT_NODE_STRING, 0},
        {"0b1", OCT_NODE_STRING, 0},
        {"1_000", OCT_NODE_STRING, 0},
        {"12:30:45", OCT_NODE_STRING, 0},
        {"9223372036854775807", OCT_NODE_INT, 9223372036854775807.0},
        {"-9223372036854775808", OCT_NODE_INT, -9223372036854775808.0},
        {"9223372036854775808", OCT_NODE_REAL, 9223372036854775808.0},
        {"-9223372036854775809", OCT_NODE_REAL, -9223372036854775809.0},
        {"0x10000000000000000", OCT_NODE_REAL, 0x1p64},
        {"1e-3", OCT_NODE_REAL, 1e-3},
        {"1e2", OCT_NODE_REAL, 100},
        {"1E+2", OCT_NODE_REAL, 100},
        {"1.0e-6", OCT_NODE_REAL, 1e-6},
        {"99.99", OCT_NODE_REAL, 99.99},
        {"1.10", OCT_NODE_REAL, 1.1},
        {".5", OCT_NODE_REAL, 0.5},
        {"5.", OCT_NODE_REAL, 5},
        {"-.5", OCT_NODE_REAL, -0.5},
        {"12345e67", OCT_NODE_REAL, 12345e67},
        {".", OCT_NODE_STRING, 0},
        {"e4m3", OCT_NODE_STRING, 0},
        {"1e", OCT_NODE_STRING, 0},
        {"1.2.3", OCT_NODE_STRING, 0},
        {"99.99%", OCT_NODE_STRING, 0},
        {"2026-11-30", OCT_NODE_STRING, 0},
        {"1 2", OCT_NODE_STRING, 0},
        {".inf", OCT_NODE_REAL, (double)INFINITY},
        {"-.INF", OCT_NODE_REAL, -(double)INFINITY},
        {"+.Inf", OCT_NODE_REAL, (double)INFINITY},
        {".iNF", OCT_NODE_STRING, 0},
        {"inf", OCT_NODE_STRING, 0},
        {"nan", OCT_NODE_STRING, 0},
        {"-.nan", OCT_NODE_STRING, 0},
        {"1e999", OCT_NODE_REAL, (double)INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        oct_document document = {0};
        (void)snprintf(text, sizeof text, "# head\nkey: %s\nnext: x\n", cases[i].text);
        assert_int_equal(parse(&document, text), OCTET_OK);
        const oct_node *node = oct_node_get(document.root, "key");
        if (node->kind != cases[i].kind) fail_msg("'%s' is %s", cases[i].text, oct_node_kind_name(node->kind));
        assert_string_equal(node->string, cases[i].text);
        assert_int_equal(node->line, 2);
        if (node->kind == OCT_NODE_BOOL) assert_int_equal(node->boolean, cases[i].value != 0);
        if (node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL) assert_true(node->real == cases[i].value);
        oct_document_free(&document);
        if (strchr(cases[i].text, ' ') != NULL) continue;
        (void)snprintf(text, sizeof text, "key: '%s'\nother: \"%s\"\ntag: !!str %s\nbare: ! %s\n", cases[i].text,
                       cases[i].text, cases[i].text, cases[i].text);
        assert_int_equal(parse(&document, text), OCTET_OK); /* quoted or tagged: a string, whatever it looks like */
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(document.root->items[j]->kind, OCT_NODE_STRING);
            assert_string_equal(document.root->items[j]->string, cases[i].text);
        }
        oct_document_free(&document);
    }
    oct_document document = {0};
    assert_int_equal(parse(&document, ".nan"), OCTET_OK);
    assert_true(document.root->kind == OCT_NODE_REAL && isnan(document.root->real));
    oct_document_free(&document);
}

static void test_tags(void **state) {
    (void)state;
    oct_document document = {0};
    assert_int_equal(
        parse(&document, "a: !!float 1\nb: !!int 7\nc: !!bool true\nd: !!null ~\ne: !!map {}\nf: !!seq []\n"),
        OCTET_OK);
    assert_int_equal(oct_node_get(document.root, "a")->kind, OCT_NODE_REAL);
    assert_int_equal(oct_node_get(document.root, "b")->kind, OCT_NODE_INT);
    oct_document_free(&document);
    refused("a: 1\nb: !!int x\n", OCTET_BAD_FORMAT, "a.yaml:2: 'x' is no !!int");
    refused("b: !!int 1.5\n", OCTET_BAD_FORMAT, "a.yaml:1: '1.5' is no !!int");
    refused("a: !!python/object/apply:os.system [id]\n", OCTET_BAD_FORMAT,
            "a.yaml:1: tag '!!python/object/apply:os.system' is not allowed here");
    refused("a:\n  !local x\n", OCTET_BAD_FORMAT, "a.yaml:2: tag '!local' is not allowed here");
    refused("a: !!binary aGk=\n", OCTET_BAD_FORMAT, "a.yaml:1: tag '!!binary' is not allowed here");
    refused("!!set {a, b}\n", OCTET_BAD_FORMAT, "a.yaml:1: tag '!!set' is not allowed here");
    refused("!!str [a]\n", OCTET_BAD_FORMAT, "a.yaml:1: tag '!!str' is not allowed here");
}

static void test_lines_bom_and_crlf(void **state) {
    (void)state;
    oct_document document = {0};
    assert_int_equal(parse(&document, "\xef\xbb\xbf"
                                      "a: 1\r\nb:\r\n  - x\r\n  -\r\n    c: 2\r\n"),
                     OCTET_OK);
    assert_string_equal(document.root->keys[0], "a");
    assert_int_equal(document.root->key_lines[1], 2);
    const oct_node *list = oct_node_get(document.root, "b");
    assert_int_equal(list->line, 3);
    assert_string_equal(list->items[0]->string, "x");
    assert_int_equal(list->items[1]->line, 5);
    assert_int_equal(oct_node_get(list->items[1], "c")->integer, 2);
    oct_document_free(&document);
    static const char *const nothings[] = {"", "# only a comment\n", "---\n", "~"};
    for (size_t i = 0; i < sizeof nothings / sizeof *nothings; i++) {
        assert_int_equal(parse(&document, nothings[i]), OCTET_OK);
        assert_int_equal(document.root->kind, OCT_NODE_NULL);
        assert_non_null(document.root->string);
        oct_document_free(&document);
    }
}

static void test_keys(void **state) {
    (void)state;
    refused("format: e4m3\nx: 1\nformat: int8\n", OCTET_BAD_FORMAT,
            "a.yaml:3: key 'format' given twice, first in line 1");
    refused("a:\n  {b: 1,\n   'b': 2}\n", OCTET_BAD_FORMAT, "a.yaml:3: key 'b' given twice, first in line 2");
    refused("z: 1\nz: 1\na: 1\na: 1\n", OCTET_BAD_FORMAT, "a.yaml:2: key 'z'"); /* the first in the file, not by name */
    refused("b: &b {x: 1}\na:\n  <<: *b\n", OCTET_UNSUPPORTED, "a.yaml:3: merge keys (<<) are not supported");
    refused("? [1, 2]\n: x\n", OCTET_BAD_FORMAT, "a.yaml:1: expected a string as key");
    refused("a: &a x\n*a : y\n", OCTET_UNSUPPORTED, "a.yaml:2: an alias as a key");
    refused("&a a: x\n", OCTET_UNSUPPORTED, "a.yaml:1: an anchor on a key");
    oct_document document = {0};
    assert_int_equal(parse(&document, "\"<<\": 1\n1: x\n~: y\nNO: z\n"), OCTET_OK);
    static const char *const keys[] = {"<<", "1", "~", "NO"};
    for (size_t i = 0; i < 4; i++) assert_string_equal(document.root->keys[i], keys[i]);
    oct_document_free(&document);
}

static void test_aliases(void **state) {
    (void)state;
    oct_document document = {0};
    assert_int_equal(parse(&document, "a: &a {x: 1}\nb: *a\nc: &a 2\nd: [*a,\n *a]\n"), OCTET_OK);
    assert_int_equal(oct_node_get(oct_node_get(document.root, "b"), "x")->integer, 1);
    assert_int_equal(oct_node_get(document.root, "b")->line, 2);
    const oct_node *d = oct_node_get(document.root, "d"); /* the later anchor of a name counts */
    assert_int_equal(d->items[0]->integer, 2);
    assert_int_equal(d->items[1]->line, 5);
    oct_document_free(&document);

    refused("a: &a [*a]\n", OCTET_BAD_FORMAT, "a.yaml:1: alias '*a' stands inside its own anchor");
    refused("a: &a\n  b: [1,\n   {c: *a}]\n", OCTET_BAD_FORMAT, "a.yaml:3: alias '*a' stands inside its own anchor");
    refused("x: 1\na: *a\n", OCTET_BAD_FORMAT, "a.yaml:2: alias '*a' has no anchor before it");

    char bomb[4096];
    size_t used = (size_t)snprintf(bomb, sizeof bomb, "a0: &a0 [x]\n");
    for (int i = 1; i < 40; i++)
        used += (size_t)snprintf(bomb + used, sizeof bomb - used, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
    refused(bomb, OCTET_LIMIT, "a.yaml:19: more than 1000000 values, aliases written out");

    used = (size_t)snprintf(bomb, sizeof bomb, "- &a0 x\n"); /* each one list deeper than the last */
    for (int i = 1; i < 80; i++) used += (size_t)snprintf(bomb + used, sizeof bomb - used, "- &a%d [*a%d]\n", i, i - 1);
    refused(bomb, OCTET_LIMIT, "a.yaml:65: nested deeper than 64");

    static char many[40000];
    used = 0;
    for (int i = 0; i < 1001; i++) used += (size_t)snprintf(many + used, sizeof many - used, "- &a%d x\n", i);
    refused(many, OCTET_LIMIT, "a.yaml:1001: more than 1000 anchors");
}

static void test_depth(void **state) {
    (void)state;
    char text[300];
    for (int depth = 60; depth <= 70; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        oct_document document = {0};
        if (depth > OCT_DOCUMENT_DEPTH) {
            refused(text, OCTET_LIMIT, "a.yaml:1: nested deeper than 64");
            continue;
        }
        assert_int_equal(parse(&document, text), OCTET_OK);
        oct_document_free(&document);
    }
}

static void test_refusals_name_the_line(void **state) {
    (void)state;
    refused("ops:\n\t- conv\n", OCTET_BAD_FORMAT, "a.yaml:2: column 1: a tab cannot indent, use spaces");
    refused("# \xc3\xa9\xe2\x82\xac\nops:\n  a: 1\n\tb: 2\n", OCTET_BAD_FORMAT, "a.yaml:4: column 1: a tab");
    refused("format: e4m3\n---\nformat: int8\n", OCTET_UNSUPPORTED, "a.yaml:2: a second document begins here");
    refused("---\n---\nformat: int8\n", OCTET_UNSUPPORTED, "a.yaml:2: a second document begins here");
    refused("a: [1, 2\nb: 3\n", OCTET_BAD_FORMAT, "a.yaml:2: column 2: did not find expected ',' or ']'");
    refused("a: \"x\nb", OCTET_BAD_FORMAT, "a.yaml:2: ");
    refused("a: 1\n b: 2\n", OCTET_BAD_FORMAT, "a.yaml:2: ");
    refused("a: 1\nb: \"\\0\"\n", OCTET_BAD_FORMAT, "a.yaml:2: a zero byte in a string");
    refused("a: 1\nb: \xe9\n", OCTET_BAD_FORMAT, "a.yaml:2: byte 0xe9 is not UTF-8");
    refused("a: 1\nb: x\x01y\n", OCTET_BAD_FORMAT, "a.yaml:2: control characters are not allowed (U+0001)");
    refused("\xff\xfe"
            "a",
            OCTET_BAD_FORMAT, "a.yaml:1: byte 0xff is not UTF-8");
    oct_document document;
    assert_int_equal(oct_document_parse_yaml(&document, "z", "a: 1\nb\0: 2", 10), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "z:2: a zero byte in text");
}

/* The shared case: what people write, and files that are wrong. */
static void test_shared_case(void **state) {
    (void)state;
    if (support_shared("cases/43-yaml-scalars/scalars.yaml") == NULL)
        SUPPORT_SKIP("shared cases/43-yaml-scalars is not here");
    oct_document document = {0};
    assert_int_equal(
        oct_document_read(&document, support_shared("cases/43-yaml-scalars/scalars.yaml"), OCT_DOCUMENT_LIMIT),
        OCTET_OK);
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"percentile", 99.99},   {"outlier_limit", 100},
                   {"minimum_scale", 1e-6}, {"minimum_scale_dotted", 1e-6},
                   {"samples", 500},        {"seed", 7},
                   {"seed_octal", 15},      {"seed_hex", 31}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double value = -1;
        assert_int_equal(oct_node_real(&document, document.root, numbers[i].key, true, &value), OCTET_OK);
        assert_true(value == numbers[i].value);
    }
    static const char *const not_numbers[] = {"samples_underscore", "percent", "time", "inf", "empty"};
    for (size_t i = 0; i < sizeof not_numbers / sizeof *not_numbers; i++) {
        double value = -1;
        assert_int_equal(oct_node_real(&document, document.root, not_numbers[i], false, &value), OCTET_BAD_FORMAT);
        assert_non_null(strstr(oct_error_fact(), "scalars.yaml:"));
        assert_true(value == -1);
    }
    static const char *const strings[][2] = {
        {"country", "NO"},      {"hash", "12345e67"}, {"revision", "0123456"},         {"version", "1.10"},
        {"date", "2026-11-30"}, {"label", "Norway"},  {"pattern", "blocks.*.conv_pw"}, {"star", "blocks.[0-6].*"}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        const char *value = NULL;
        assert_int_equal(oct_node_string(&document, document.root, strings[i][0], true, &value), OCTET_OK);
        assert_string_equal(value, strings[i][1]);
    }
    const oct_node *keep = oct_node_get(document.root, "keep");
    for (size_t i = 0; i < 7; i++) assert_int_equal(keep->items[i]->kind, OCT_NODE_STRING);
    oct_document_free(&document);

    static const struct {
        const char *name;
        const char *fact; /* behind the file's name */
    } bad[] = {{"duplicate_key.yaml", ":2: key 'format' given twice"},
               {"tab.yaml", ":2: "},
               {"anchor_bomb.yaml", ":7: more than"},
               {"alias_cycle.yaml", ":1: "},
               {"two_documents.yaml", ":2: "},
               {"python_tag.yaml", ":1: tag '!!python/object/apply:os.system' is not allowed"},
               {"unterminated.yaml", ":2: "}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "cases/43-yaml-scalars/%s", bad[i].name);
        const char *path = support_shared(name);
        assert_non_null(path);
        assert_int_not_equal(oct_document_read(&document, path, OCT_DOCUMENT_LIMIT), OCTET_OK);
        assert_int_equal(strncmp(oct_error_fact(), path, strlen(path)), 0);
        const char *fact = oct_error_fact() + strlen(path);
        if (strncmp(fact, bad[i].fact, strlen(bad[i].fact)) != 0) fail_msg("%s: %s", bad[i].name, fact);
    }
    static const char *const known[] = {"calibrator", "format", "frmts", NULL};
    assert_int_equal(oct_document_read(&document, support_shared("cases/43-yaml-scalars/unknown_key.yaml"), 100),
                     OCTET_OK);
    assert_int_equal(oct_node_known_keys(&document, document.root, known), OCTET_BAD_FORMAT);
    assert_non_null(strstr(oct_error_fact(), ".yaml:1: unknown key 'calibrater', did you mean 'calibrator'"));
    oct_document_free(&document);
    assert_int_equal(oct_document_read(&document, support_shared("cases/43-yaml-scalars/bom_crlf.yaml"), 100),
                     OCTET_OK);
    assert_int_equal(oct_node_known_keys(&document, document.root, known), OCTET_BAD_FORMAT);
    assert_non_null(strstr(oct_error_fact(), ".yaml:1: unknown key 'frmt'"));
    oct_document_free(&document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_scalars),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_lines_bom_and_crlf),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_refusals_name_the_line),
        cmocka_unit_test(test_shared_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
