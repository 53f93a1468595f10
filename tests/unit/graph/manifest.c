/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: reading with lines in errors, counting combinations, refusing what is not listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/manifest.h"

static const char good[] = "family: f\n"
                           "models:\n"
                           "  - architecture: f_100\n"
                           "    id: them/f_100.set\n"
                           "    revision: 5afa12513b048c79b9147a5d210e9bdc50035481\n"
                           "    sizes: [[224, 224], [192, 256]]\n"
                           "  - architecture: f_50\n"
                           "    sizes: [[96, 96]]\n"
                           "batches: [1, 8]\n"
                           "precisions: [fp32, fp16]\n"
                           "devices: [cpu]\n";

static void test_good(void **state) {
    (void)state;
    oct_manifest manifest;
    assert_int_equal(oct_manifest_parse(&manifest, "manifest.yaml", good, strlen(good)), OCTET_OK);
    assert_string_equal(manifest.family, "f");
    assert_int_equal(oct_manifest_count(&manifest), 3 * 2 * 2);
    for (size_t i = 0; i < oct_manifest_count(&manifest); i++) {
        oct_combination combination = oct_manifest_combination(&manifest, i);
        assert_int_equal(oct_manifest_lists(&manifest, &combination), OCTET_OK);
        for (size_t j = 0; j < i; j++) { /* all different */
            oct_combination other = oct_manifest_combination(&manifest, j);
            assert_false(strcmp(other.id, combination.id) == 0 && other.height == combination.height &&
                         other.batch == combination.batch && strcmp(other.precision, combination.precision) == 0);
        }
    }
    oct_combination last = oct_manifest_combination(&manifest, 11);
    assert_string_equal(last.id, "f_50");
    assert_int_equal(last.height, 96);
    assert_int_equal(last.batch, 8);
    assert_string_equal(last.precision, "fp16");
    last.batch = 2;
    assert_int_equal(oct_manifest_lists(&manifest, &last), OCTET_UNSUPPORTED);
    assert_string_equal(oct_error_fact(), "manifest.yaml: batch 2 is not listed for f");
    assert_string_equal(oct_error_detail(), "listed: 1, 8");
    last = (oct_combination){"them/f_100.set", 96, 96, 1, "fp32", "cpu"};
    assert_int_equal(oct_manifest_lists(&manifest, &last), OCTET_UNSUPPORTED);
    assert_string_equal(oct_error_fact(), "manifest.yaml: size 96 x 96 is not listed for f");
    assert_string_equal(oct_error_detail(), "listed: 224 x 224, 192 x 256");
    last = (oct_combination){"f_100", 224, 224, 1, "fp32", "cpu"};
    assert_int_equal(oct_manifest_lists(&manifest, &last), OCTET_UNSUPPORTED);
    assert_string_equal(oct_error_detail(), "listed: them/f_100.set, f_50");
    oct_manifest_free(&manifest);
}

/* One line of `good` replaced (its number from 1), the fact expected. */
static void test_bad(void **state) {
    (void)state;
    static const struct {
        int line;
        const char *text, *fact;
    } rows[] = {
        {5, "    revision: main", "m.yaml:5: revision: expected a commit of 40 hex digits or unpinned, found main"},
        {6, "    sizes: [[224]]", "m.yaml:6: sizes: expected [height, width], each from 1 to 16384 pixels"},
        {6, "    sizes: []", "m.yaml:6: sizes: expected a list with something in it, found an empty one"},
        {7, "  - architecture: f_50\n    id: them/f_100.set\n    revision: unpinned",
         "m.yaml:7: id: them/f_100.set is also the model of line 3"},
        {9, "batches: [8, 1]", "m.yaml:9: batches: expected whole numbers, rising, from 1 to 4096"},
        {9, "batches: [1.5]", "m.yaml:9: batches: expected whole numbers, rising, from 1 to 4096"},
        {10, "precisions: [fp32, fp32]", "m.yaml:10: precisions: fp32 is there twice"},
        {10, "precisions: [fp33]", "m.yaml:10: precisions: fp33 is not known"},
        {11, "devices: [tpu]", "m.yaml:11: devices: tpu is not known"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        oct_text text = {0};
        int line = 1;
        for (const char *at = good; *at != '\0'; line++) {
            size_t length = strcspn(at, "\n") + 1;
            if (line == rows[i].line) {
                oct_text_puts(&text, rows[i].text);
                oct_text_puts(&text, "\n");
            } else {
                oct_text_append(&text, at, length);
            }
            at += length;
        }
        oct_manifest manifest;
        assert_int_not_equal(oct_manifest_parse(&manifest, "m.yaml", text.data, text.length), OCTET_OK);
        assert_string_equal(oct_error_fact(), rows[i].fact);
        assert_int_equal(manifest.model_count, 0);
        oct_text_free(&text);
    }
    oct_manifest manifest;
    assert_int_not_equal(oct_manifest_parse(&manifest, "m.yaml", "family: f\nmodel: 1\n", 19), OCTET_OK);
    assert_non_null(strstr(oct_error_fact(), "m.yaml:2"));
    assert_int_not_equal(oct_manifest_parse(&manifest, "m.yaml", "[1]", 3), OCTET_OK);
}

static void test_memory(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        oct_manifest manifest;
        oct_alloc_fail_at(n, false);
        octet_status status = oct_manifest_parse(&manifest, "m.yaml", good, strlen(good));
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (status == OCTET_OK) oct_manifest_free(&manifest);
        assert_int_equal(oct_alloc_live(), 0);
        if (!met) break;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
