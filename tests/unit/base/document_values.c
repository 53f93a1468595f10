/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/document.h"
#include "support/support.h"

typedef struct documents {
    oct_document yaml, json;
} documents;

static documents both; /* the same content in both, as far as JSON can */

static int set_up(void **state) {
    (void)state;
    const char *yaml = "size: 224\n"
                       "ratio: 0.875\n"
                       "mean: [0.5, 0.25, 1]\n"
                       "name: cat\n"
                       "flag: true\n"
                       "none: null\n"
                       "version: 1.10\n"
                       "inner: {a: 1}\n"
                       "empty:\n"
                       "odd: [1, x, 3]\n"
                       "infinite: .inf\n";
    const char *json = "{\"size\": 224,\n"
                       "\"ratio\": 0.875,\n"
                       "\"mean\": [0.5, 0.25, 1],\n"
                       "\"name\": \"cat\",\n"
                       "\"flag\": true,\n"
                       "\"none\": null,\n"
                       "\"version\": 1.10,\n"
                       "\"inner\": {\"a\": 1}}\n";
    if (oct_document_parse_yaml(&both.yaml, "f", yaml, strlen(yaml)) != OCTET_OK) return 1;
    return oct_document_parse_json(&both.json, "f", json, strlen(json)) == OCTET_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    oct_document_free(&both.yaml);
    oct_document_free(&both.json);
    return 0;
}

static void fact_is(octet_status status, const char *fact) {
    assert_int_equal(status, OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), fact);
}

static void test_good_values(void **state) {
    (void)state;
    const oct_document *all[] = {&both.yaml, &both.json};
    for (size_t i = 0; i < 2; i++) {
        const oct_document *d = all[i];
        int64_t integer = 0;
        double real = 0;
        double reals[3] = {0};
        const char *string = NULL;
        bool flag = false;
        assert_int_equal(oct_node_int(d, d->root, "size", true, 1, 224, &integer), OCTET_OK);
        assert_int_equal(integer, 224);
        assert_int_equal(oct_node_real(d, d->root, "size", true, &real), OCTET_OK);
        assert_true(real == 224.0);
        assert_int_equal(oct_node_real(d, d->root, "ratio", true, &real), OCTET_OK);
        assert_true(real == 0.875);
        assert_int_equal(oct_node_reals(d, d->root, "mean", true, reals, 3), OCTET_OK);
        assert_true(reals[0] == 0.5 && reals[1] == 0.25 && reals[2] == 1.0);
        assert_int_equal(oct_node_string(d, d->root, "name", true, &string), OCTET_OK);
        assert_string_equal(string, "cat");
        assert_int_equal(oct_node_bool(d, d->root, "flag", true, &flag), OCTET_OK);
        assert_true(flag);
    }
}

static void test_absent_and_null(void **state) {
    (void)state;
    const oct_document *d = &both.yaml;
    int64_t integer = 7;
    double real = 7;
    const char *string = "seven";
    bool flag = true;
    static const char *const keys[] = {"absent", "none"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(oct_node_int(d, d->root, keys[i], false, 0, 9, &integer), OCTET_OK);
        assert_int_equal(oct_node_real(d, d->root, keys[i], false, &real), OCTET_OK);
        assert_int_equal(oct_node_reals(d, d->root, keys[i], false, &real, 1), OCTET_OK);
        assert_int_equal(oct_node_string(d, d->root, keys[i], false, &string), OCTET_OK);
        assert_int_equal(oct_node_bool(d, d->root, keys[i], false, &flag), OCTET_OK);
    }
    assert_int_equal(oct_node_int(d, NULL, "absent", false, 0, 9, &integer), OCTET_OK);
    assert_true(integer == 7 && real == 7 && flag && strcmp(string, "seven") == 0);
    fact_is(oct_node_int(d, d->root, "absent", true, 0, 9, &integer),
            "f:1: missing key 'absent', expected an integer from 0 to 9");
    fact_is(oct_node_string(d, d->root, "none", true, &string), "f:6: none: expected a string, found null");
    fact_is(oct_node_real(&both.json, both.json.root, "none", true, &real), "f:6: none: expected a number, found null");
    fact_is(oct_node_real(d, d->root, "empty", false, &real), "f:9: empty: expected a number, found nothing");
    fact_is(oct_node_bool(d, NULL, "flag", true, &flag), "f: missing key 'flag', expected true or false");
}

static void test_wrong_values(void **state) {
    (void)state;
    const oct_document *d = &both.yaml;
    int64_t integer = 7;
    double real = 7;
    double reals[3] = {7, 7, 7};
    const char *string = "seven";
    bool flag = false;
    fact_is(oct_node_int(d, d->root, "size", true, 1, 223, &integer),
            "f:1: size: expected an integer from 1 to 223, found 224");
    fact_is(oct_node_int(d, d->root, "size", true, 225, INT64_MAX, &integer),
            "f:1: size: expected an integer of at least 225, found 224");
    fact_is(oct_node_int(d, d->root, "ratio", true, INT64_MIN, INT64_MAX, &integer),
            "f:2: ratio: expected an integer, found 0.875");
    fact_is(oct_node_int(&both.json, both.json.root, "ratio", true, INT64_MIN, INT64_MAX, &integer),
            "f:2: ratio: expected an integer, found 0.875");
    fact_is(oct_node_real(d, d->root, "name", true, &real), "f:4: name: expected a number, found 'cat'");
    fact_is(oct_node_real(d, d->root, "infinite", true, &real), "f:11: infinite: expected a finite number, found .inf");
    fact_is(oct_node_reals(d, d->root, "mean", true, reals, 2),
            "f:3: mean: expected a list of 2 numbers, found a list of 3");
    fact_is(oct_node_reals(d, d->root, "odd", true, reals, 3),
            "f:10: odd: expected a list of 3 numbers, found 'x' as number 2");
    fact_is(oct_node_reals(d, d->root, "inner", true, reals, 3),
            "f:8: inner: expected a list of 3 numbers, found a map");
    fact_is(oct_node_bool(d, d->root, "size", true, &flag), "f:1: size: expected true or false, found 224");
    fact_is(oct_node_string(d, d->root, "mean", true, &string), "f:3: mean: expected a string, found a list of 3");
    fact_is(oct_node_string(d, d->root, "flag", true, &string), "f:5: flag: expected a string, found true");
    assert_string_equal(oct_error_hint(), "write it in quotes");
    fact_is(oct_node_int(d, oct_node_get(d->root, "mean"), "x", false, 0, 1, &integer),
            "f:3: expected a map with the key 'x', found a list of 3");
    assert_true(integer == 7 && real == 7 && reals[0] == 7 && reals[2] == 7 && strcmp(string, "seven") == 0);
}

static void test_a_number_in_yaml_may_be_text(void **state) {
    (void)state;
    const char *string = NULL;
    assert_int_equal(oct_node_string(&both.yaml, both.yaml.root, "version", true, &string), OCTET_OK);
    assert_string_equal(string, "1.10");
    fact_is(oct_node_string(&both.json, both.json.root, "version", true, &string),
            "f:7: version: expected a string, found 1.1");
}

static void test_known_keys(void **state) {
    (void)state;
    const char *text = "format: e4m3\ncalibrater:\n  x: 1\n";
    static const char *const known[] = {"format", "calibrator", NULL};
    static const char *const other[] = {"format", "zebra", NULL};
    static const char *const all[] = {"calibrater", "format", NULL};
    oct_document d = {0};
    assert_int_equal(oct_document_parse_yaml(&d, "f", text, strlen(text)), OCTET_OK);
    fact_is(oct_node_known_keys(&d, d.root, known), "f:2: unknown key 'calibrater', did you mean 'calibrator'");
    fact_is(oct_node_known_keys(&d, d.root, other), "f:2: unknown key 'calibrater'");
    assert_string_equal(oct_error_detail(), "known keys: format; zebra");
    assert_int_equal(oct_node_known_keys(&d, d.root, all), OCTET_OK);
    assert_int_equal(oct_node_known_keys(&d, NULL, all), OCTET_OK);
    fact_is(oct_node_known_keys(&d, d.root->items[0], all), "f:1: expected a map, found 'e4m3'");
    fact_is(oct_node_fail(&d, d.root->items[1], "%s has %d", "it", 3), "f:3: it has 3");
    fact_is(oct_node_fail(&d, NULL, "no node"), "f: no node");
    oct_document_free(&d);
}

static void test_long_values_are_cut(void **state) {
    (void)state;
    char text[2000] = "k: ";
    for (int i = 0; i < 400; i++) strcat(text, "\xe2\x82\xac");
    oct_document d = {0};
    double real = 0;
    assert_int_equal(oct_document_parse_yaml(&d, "f", text, strlen(text)), OCTET_OK);
    assert_int_equal(oct_node_real(&d, d.root, "k", true, &real), OCTET_BAD_FORMAT);
    assert_true(strlen(oct_error_fact()) < 120);
    assert_null(strstr(oct_error_fact(), "\\x")); /* not inside a character */
    oct_document_free(&d);
}

static void test_read_by_extension(void **state) {
    (void)state;
    char *directory = support_temporary_directory();
    oct_document d = {0};
    static const char *const yaml[] = {"a.yaml", "a.yml"};
    for (size_t i = 0; i < 2; i++) {
        support_write_text(support_join(directory, yaml[i]), "a: b\n");
        assert_int_equal(oct_document_read(&d, support_join(directory, yaml[i]), 100), OCTET_OK);
        oct_document_free(&d);
    }
    support_write_text(support_join(directory, "a.json"), "a: b\n");
    assert_int_equal(oct_document_read(&d, support_join(directory, "a.json"), 100), OCTET_BAD_FORMAT);
    assert_int_equal(oct_document_read(&d, support_join(directory, "a.yml"), 4), OCTET_LIMIT);
    assert_int_equal(oct_document_read(&d, support_join(directory, "b.yml"), 4), OCTET_NOT_FOUND);
    assert_int_equal(oct_document_read(&d, directory, 4), OCTET_INVALID_ARGUMENT);
    assert_null(d.root);
    oct_document_free(&d);
    support_remove_tree(directory);
    free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_values),       cmocka_unit_test(test_absent_and_null),
        cmocka_unit_test(test_wrong_values),      cmocka_unit_test(test_a_number_in_yaml_may_be_text),
        cmocka_unit_test(test_known_keys),        cmocka_unit_test(test_long_values_are_cut),
        cmocka_unit_test(test_read_by_extension),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
