/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "support/support.h"

static void test_growing(void **state) {
    (void)state;
    oct_text text = {0};
    for (int i = 0; i < 1000; i++) oct_text_printf(&text, "%d,", i);
    oct_text_puts(&text, "end");
    oct_text_append(&text, "\0x", 2);
    assert_false(text.failed);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 3 + 2);
    assert_memory_equal(text.data, "0,1,2,", 6);
    assert_int_equal(text.data[text.length], 0);
    oct_text_free(&text);
    assert_null(text.data);
    oct_text_puts(&text, "");
    assert_string_equal(text.data, "");
    oct_text_free(&text);
}

static void test_json_strings(void **state) {
    (void)state;
    oct_text text = {0};
    oct_text_json(&text, "a\"b\\c\n\t\r\x01\x7f caf\xc3\xa9 \xff \xe2\x82");
    assert_string_equal(text.data,
                        "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f caf\xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\"");
    oct_text_free(&text);
}

static void test_utf8(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length, expected;
    } cases[] = {
        {"a", 1, 1},
        {"\0", 1, 1},
        {"", 0, 0},
        {"\xc2\x80", 2, 2},
        {"\xc1\xbf", 2, 0},
        {"\x80", 1, 0},
        {"\xc3", 1, 0},
        {"\xe0\xa0\x80", 3, 3},
        {"\xe0\x9f\xbf", 3, 0},
        {"\xed\x9f\xbf", 3, 3},
        {"\xed\xa0\x80", 3, 0},
        {"\xf0\x90\x80\x80", 4, 4},
        {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"\xf4\x90\x80\x80", 4, 0},
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xe2\x82"
         "a",
         3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(oct_utf8_sequence((const uint8_t *)cases[i].bytes, cases[i].length), cases[i].expected);
}

static void test_glob(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything.at/all", true},
        {"?", "", false},
        {"?", "x", true},
        {"a?c", "abc", true},
        {"a*c", "abbbc", true},
        {"a*c", "abbbd", false},
        {"a*b*c", "a.b.b.c", true},
        {"*ab", "aaab", true},
        {"**a**", "bab", true},
        {"blocks.*.conv_pw", "blocks.3.0.conv_pw", true},
        {"blocks.*.conv_pw", "blocks.3.0.conv_pwl", false},
        {"blocks.[0-6].*", "blocks.6.x", true},
        {"blocks.[0-6].*", "blocks.7.x", false},
        {"[!a-c]", "d", true},
        {"[!a-c]", "b", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"[abc", "[abc", true},
        {"[", "[", true},
        {"[", "a", false},
        {"a[0-9]*z", "a5z", true},
        {"conv", "conv1", false},
        {"dwconv*", "dwconv_f32_avx2", true},
        {"a*", "b", false},
        {"[a-z]*[0-9]", "x.y.9", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (oct_glob_match(cases[i].pattern, cases[i].text) != cases[i].matches)
            fail_msg("'%s' on '%s': expected %d", cases[i].pattern, cases[i].text, cases[i].matches);
    }
    /* many stars must not take exponential time */
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(oct_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_parse_int(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+12", true, 12},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x1", false, 0},
        {"1e2", false, 0},
        {"--1", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 77;
        assert_int_equal(oct_parse_int(cases[i].text, INT64_MIN, INT64_MAX, &value), cases[i].ok);
        assert_true(value == (cases[i].ok ? cases[i].value : 77));
    }
    int64_t value = 5;
    assert_false(oct_parse_int("10", 0, 9, &value));
    assert_false(oct_parse_int("-1", 0, 9, &value));
    assert_true(oct_parse_int("9", 0, 9, &value));
}

static void check_doubles(void) {
    static const char *const bad[] = {"",    ".",   "-",   "1e",    "1e+",    "e1",  " 1",  "1 ",   "1,5",
                                      "0x1", "inf", "nan", "1e999", "-1e999", "1_0", "+-1", "1.2.3"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},        {"1e-6", 1e-6}, {"1.0e-6", 1e-6}, {"99.99", 99.99},        {".5", 0.5},   {"5.", 5},
                {"-1E+3", -1e3}, {"+2", 2},      {"1e-400", 0.0},  {"4.9e-324", 0x1p-1074}, {"007.5", 7.5}};
    double value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (oct_parse_double(bad[i], &value)) fail_msg("'%s' was taken for a number", bad[i]);
        assert_true(value == 42);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!oct_parse_double(good[i].text, &value)) fail_msg("'%s' was refused", good[i].text);
        assert_true(value == good[i].value);
        value = 42;
    }
    static const struct {
        double value;
        const char *text;
    } forms[] = {{0.0, "0"},
                 {-0.0, "-0"},
                 {0.1, "0.1"},
                 {100, "100"},
                 {1e6, "1000000"},
                 {1234.5, "1234.5"},
                 {-2.5, "-2.5"},
                 {1e-5, "0.00001"},
                 {1e-6, "1e-6"},
                 {1e22, "1e22"},
                 {123456789012345680.0, "1.2345678901234568e17"},
                 {1.0 / 3, "0.3333333333333333"},
                 {DBL_MAX, "1.7976931348623157e308"},
                 {0x1p-1074, "5e-324"},
                 {(double)INFINITY, "inf"},
                 {-(double)INFINITY, "-inf"},
                 {(double)NAN, "nan"},
                 {9007199254740993.0, "9007199254740992"},
                 {0.5, "0.5"},
                 {10.25, "10.25"}};
    char buffer[32];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        assert_string_equal(oct_format_double(forms[i].value, buffer), forms[i].text);
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = oct_random_next(&seed);
        double number = 0;
        memcpy(&number, &bits, sizeof number);
        if (i % 2 == 0) number = (double)(float)oct_random_unit(&seed);
        if (!isfinite(number)) continue;
        assert_true(strlen(oct_format_double(number, buffer)) < 32);
        assert_true(oct_parse_double(buffer, &value));
        assert_memory_equal(&value, &number, sizeof value);
    }
}

static void test_doubles(void **state) {
    (void)state;
    check_doubles();
}

static void test_no_locale_matters(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "de_DE",
                                        "fr_FR.UTF-8", "it_IT.UTF-8", "ru_RU.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && found == NULL; i++) {
        if (setlocale(LC_ALL, names[i]) != NULL && localeconv()->decimal_point[0] == ',') found = names[i];
    }
    if (found == NULL) { /* none installed: one made for this test */
        char *made = support_temporary_directory();
        char command[4096];
        (void)snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1",
                       made);
        if (system(command) == 0 && setenv("LOCPATH", made, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8") != NULL)
            found = "de_DE.UTF-8";
        support_remove_tree(made); /* what setlocale took stays mapped */
        free(made);
        (void)unsetenv("LOCPATH");
    }
    if (found == NULL) {
        (void)setlocale(LC_ALL, "C");
        SUPPORT_SKIP("no locale with a decimal comma is installed");
    }
    char native[8];
    (void)snprintf(native, sizeof native, "%.1f", 0.5);
    assert_string_equal(native, "0,5"); /* the locale is really on */
    check_doubles();
    oct_text text = {0};
    oct_text_printf(&text, "%.1f", 0.5);
    assert_string_equal(text.data, "0.5");
    oct_text_free(&text);
    oct_fail(OCTET_IO, "%.1f", 0.5);
    assert_string_equal(oct_error_fact(), "0.5");
    (void)setlocale(LC_ALL, "C");
}

static void test_starts_and_ends(void **state) {
    (void)state;
    assert_true(oct_starts_with("module.x", "module."));
    assert_false(oct_starts_with("mod", "module."));
    assert_true(oct_ends_with("a.yaml", ".yaml"));
    assert_false(oct_ends_with("yaml", ".yaml"));
    assert_true(oct_ends_with("x", ""));
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"calibrator", "percentile", "format", "int8", "e4m3", "e5m2"};
    size_t count = sizeof names / sizeof *names;
    assert_string_equal(oct_nearest("calibrater", names, count), "calibrator");
    assert_string_equal(oct_nearest("frmt", names, count), "format");
    assert_string_equal(oct_nearest("Format", names, count), "format");
    assert_string_equal(oct_nearest("fromat", names, count), "format"); /* neighbours swapped */
    assert_string_equal(oct_nearest("e4m2", names, count), "e4m3");
    assert_null(oct_nearest("zebra", names, count));
    assert_null(oct_nearest("", names, count));
    assert_null(oct_nearest("x", names, 0));
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(oct_nearest(longest, names, count));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_parse_int),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_no_locale_matters),
        cmocka_unit_test(test_starts_and_ends),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
