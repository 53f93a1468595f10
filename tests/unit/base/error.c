/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "base/error.h"

static void test_three_parts(void **state) {
    (void)state;
    assert_int_equal(oct_fail(OCTET_BAD_FORMAT, "%s: expected %d, found %d", "a.bin", 3, 4), OCTET_BAD_FORMAT);
    assert_int_equal(oct_detail("the header says %d", 3), OCTET_BAD_FORMAT);
    assert_int_equal(oct_hint("pull it again"), OCTET_BAD_FORMAT);
    assert_int_equal(oct_error_status(), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "a.bin: expected 3, found 4");
    assert_string_equal(oct_error_detail(), "the header says 3");
    assert_string_equal(oct_error_hint(), "pull it again");
    assert_string_equal(oct_error_text(), "a.bin: expected 3, found 4\n  the header says 3\n  hint: pull it again");
    oct_fail(OCTET_IO, "b");
    assert_string_equal(oct_error_text(), "b"); /* detail and hint went with the earlier failure */
    oct_detail("one");
    oct_detail("two");
    assert_string_equal(oct_error_detail(), "one; two");
    oct_error_clear();
    assert_int_equal(oct_error_status(), OCTET_OK);
    assert_string_equal(oct_error_text(), "");
}

static void test_prefix_is_put_once(void **state) {
    (void)state;
    oct_fail(OCTET_BAD_FORMAT, "tensor 'w': expected float");
    assert_int_equal(oct_error_prefix("%s", "model.safetensors"), OCTET_BAD_FORMAT);
    oct_error_prefix("model.safetensors");
    assert_string_equal(oct_error_fact(), "model.safetensors: tensor 'w': expected float");
    oct_fail(OCTET_BAD_FORMAT, "config.json:3: no");
    oct_error_prefix("config.json");
    assert_string_equal(oct_error_fact(), "config.json:3: no");
    oct_error_prefix("config"); /* starts alike, is not the same name */
    assert_string_equal(oct_error_fact(), "config: config.json:3: no");
}

static void test_text_may_quote_itself(void **state) {
    (void)state;
    oct_fail(OCTET_IO, "inner");
    oct_fail(OCTET_IO, "outer: %s", oct_error_fact());
    assert_string_equal(oct_error_fact(), "outer: inner");
}

static void test_untrusted_bytes_are_escaped(void **state) {
    (void)state;
    oct_fail(OCTET_IO, "%s", "a\x1b[31m\nb\t\r\x7f");
    assert_string_equal(oct_error_fact(), "a\\x1b[31m\\nb\\t\\r\\x7f");
    oct_fail(OCTET_IO, "%s",
             "\xc2\x9b"
             "31m"); /* U+009B: a terminal's CSI in one character */
    assert_string_equal(oct_error_fact(), "\\u009b31m");
    oct_fail(OCTET_IO, "%s", "caf\xc3\xa9 \xe9 \xed\xa0\x80"); /* good, Latin-1, a surrogate */
    assert_string_equal(oct_error_fact(), "caf\xc3\xa9 \\xe9 \\xed\\xa0\\x80");
}

static void test_long_text_is_cut_between_characters(void **state) {
    (void)state;
    for (int offset = 0; offset < 4; offset++) {
        char text[4000];
        memset(text, 'x', (size_t)offset);
        for (size_t i = (size_t)offset; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
        oct_fail(OCTET_IO, "%s", text);
        const char *fact = oct_error_fact();
        size_t length = strlen(fact);
        assert_true(length <= 1023 && length > 1015);
        assert_string_equal(fact + length - 3, "...");
        assert_int_equal((length - 3 - (size_t)offset) % 3, 0);
        oct_error_prefix("%s", text);
        assert_true(strlen(oct_error_fact()) <= 1023);
        oct_detail("%s", text);
        oct_hint("%s", text);
        assert_true(strlen(oct_error_text()) < 3200);
    }
    char exact[1024];
    memset(exact, 'y', sizeof exact);
    exact[1023] = '\0';
    oct_fail(OCTET_IO, "%s", exact);
    assert_string_equal(oct_error_fact(), exact);
}

static void test_errno(void **state) {
    (void)state;
    errno = ENOENT;
    assert_int_equal(oct_fail_errno("x", "could not open"), OCTET_NOT_FOUND);
    assert_string_equal(oct_error_fact(), "x: could not open: No such file or directory");
    errno = ENOMEM;
    assert_int_equal(oct_fail_errno("x", ""), OCTET_OUT_OF_MEMORY);
    errno = ENOSPC;
    assert_int_equal(oct_fail_errno("x", "could not write"), OCTET_IO);
    assert_string_equal(oct_error_fact(), "x: could not write: No space left on device");
    assert_int_equal(oct_fail_memory(), OCTET_OUT_OF_MEMORY);
}

static void *other_thread(void *argument) {
    (void)argument;
    if (oct_error_status() != OCTET_OK || oct_error_fact()[0] != '\0') return (void *)1;
    oct_fail(OCTET_LIMIT, "other");
    return NULL;
}

static void test_each_thread_has_its_own(void **state) {
    (void)state;
    oct_fail(OCTET_IO, "mine");
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_string_equal(oct_error_fact(), "mine");
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(oct_status_name(OCTET_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(oct_status_text(OCTET_LIMIT), "over a limit");
    assert_string_equal(oct_status_name((octet_status)1000), "UNKNOWN");
    assert_string_equal(oct_status_text((octet_status)1000), "unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_parts),
        cmocka_unit_test(test_prefix_is_put_once),
        cmocka_unit_test(test_text_may_quote_itself),
        cmocka_unit_test(test_untrusted_bytes_are_escaped),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_each_thread_has_its_own),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
