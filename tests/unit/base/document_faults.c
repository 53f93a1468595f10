/* SPDX-License-Identifier: Apache-2.0 */
/* Documents when memory runs out: our own allocations, and those of jansson and libyaml beneath us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/document.h"
#include "support/support.h"

static const char json[] =
    "{\"a\": [1, 2.5, \"text\", true, null],\n \"b\": {\"c\": {}, \"d\": [[[]]], \"\\u00e9\": \"\\n\"}}";
static const char yaml[] = "a: &a [1, 2.5, text, true, ~]\n"
                           "b: {c: {}, d: [[[]]], e: *a}\n"
                           "f: |\n  block\n  of lines\n"
                           "g: !!str 12\n"
                           "h: 'it''s'\n"
                           "i: \"\\u00e9\"\n"
                           "j: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n"
                           "k: 1\nl: 2\nm: 3\n";

/* malloc and realloc of the libraries fail at number `at`; glibc only, and not under a sanitizer, which has its own. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#    define LIBRARY_FAULTS 1
#    if defined(__has_feature)
#        if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#            undef LIBRARY_FAULTS
#        endif
#    endif
#endif

#ifdef LIBRARY_FAULTS
static unsigned long library_at, library_count;
static bool library_met;

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
__attribute__((visibility("default"))) void *malloc(size_t size);
__attribute__((visibility("default"))) void *realloc(void *pointer, size_t size);

static bool library_fails(void) {
    if (library_at == 0 || ++library_count != library_at) return false;
    library_met = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size) {
    return library_fails() ? NULL : __libc_malloc(size);
}

void *realloc(void *pointer, size_t size) {
    return library_fails() ? NULL : __libc_realloc(pointer, size);
}
#endif

typedef octet_status (*parser)(oct_document *document, const char *name, const char *text, size_t length);

/* `least`: allocations that there must be */
static void each_own_allocation(parser parse, const char *text, uint64_t least) {
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++) {
            int64_t live = oct_alloc_live();
            oct_document document;
            oct_alloc_fail_at(n, forever == 1);
            octet_status status = parse(&document, "a", text, strlen(text));
            bool met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
            if (met) assert_null(document.root);
            oct_document_free(&document);
            assert_int_equal(oct_alloc_live(), live);
            if (!met) {
                assert_true(n > least);
                break;
            }
        }
    }
}

static void each_library_allocation(parser parse, const char *text) {
#ifndef LIBRARY_FAULTS
    (void)parse;
    (void)text;
    SUPPORT_SKIP("the libraries' allocations cannot be made to fail here");
#else
    for (unsigned long n = 1;; n++) {
        int64_t live = oct_alloc_live();
        oct_document document;
        library_met = false;
        library_count = 0;
        library_at = n;
        octet_status status = parse(&document, "a", text, strlen(text));
        library_at = 0;
        bool met = library_met;
        if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) fail_msg("allocation %lu: %s", n, oct_error_text());
        if (!met) assert_int_equal(status, OCTET_OK);
        oct_document_free(&document);
        assert_int_equal(oct_alloc_live(), live);
        if (!met) {
            assert_true(n > 10);
            break;
        }
    }
#endif
}

static void test_json(void **state) {
    (void)state;
    each_own_allocation(oct_document_parse_json, json, 1);
    char large[8000] = "[0";
    while (strlen(large) < 6000) strcat(large, ", {\"key\": [\"value\", 1.5]}");
    strcat(large, "]");
    each_own_allocation(oct_document_parse_json, large, 5);
}

static void test_yaml(void **state) {
    (void)state;
    each_own_allocation(oct_document_parse_yaml, yaml, 10);
}

static void test_jansson(void **state) {
    (void)state;
    each_library_allocation(oct_document_parse_json, json);
}

static void test_libyaml(void **state) {
    (void)state;
    each_library_allocation(oct_document_parse_yaml, yaml);
}

static void test_reading_a_file(void **state) {
    (void)state;
    char *directory = support_temporary_directory();
    const char *path = support_join(directory, "a.yaml");
    support_write_text(path, yaml);
    for (uint64_t n = 1;; n++) {
        int64_t live = oct_alloc_live();
        oct_document document;
        oct_alloc_fail_at(n, false);
        octet_status status = oct_document_read(&document, path, OCT_DOCUMENT_LIMIT);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        oct_document_free(&document);
        assert_int_equal(oct_alloc_live(), live);
        if (!met) break;
    }
    support_remove_tree(directory);
    free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),    cmocka_unit_test(test_yaml),           cmocka_unit_test(test_jansson),
        cmocka_unit_test(test_libyaml), cmocka_unit_test(test_reading_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
