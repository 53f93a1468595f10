/* SPDX-License-Identifier: Apache-2.0 */
/* State files of a search, right, torn and wrong. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "eval/mixing_state.h"

#define HEADER "{\"octet_search\": 1, \"data\": \"d\"}\n"
#define POINT "{\"assignment\": \"01\", \"kl\": 0.25, \"low\": 0.125, \"high\": 0.5, \"seconds\": 0.002}\n"

static uint8_t choices[] = {2, 3};

/* What `text` gives; the mixing is the caller's to close by close_mixing. */
static bool take(mixing *m, const char *text, size_t *used) {
    json_t *header = json_pack("{s:i, s:s}", "octet_search", 1, "data", "d");
    char *copy = strdup(text);
    assert_non_null(copy);
    *m = (mixing){.state = "st", .choices = choices};
    m->groups = json_pack("{s:[s], s:[s]}", "a", "a", "b", "b");
    const bool good = mixing_state_take(m, copy, strlen(text), header, used);
    free(copy);
    json_decref(header);
    return good;
}

static void close_mixing(mixing *m) {
    m->choices = NULL;
    mixing_close(m);
}

static void test_right(void **state) {
    (void)state;
    mixing m;
    size_t used;
    const uint8_t first[] = {0, 1}, second[] = {1, 2}, other[] = {1, 1};
    const char *text =
        HEADER POINT "{\"assignment\":\"12\",\"kl\":null,\"seconds\":1,\"points\":0.5,\"points_high\":2}\n";
    assert_true(take(&m, text, &used));
    assert_int_equal(used, strlen(text));
    assert_int_equal(m.made, 2);
    const mixing_point *p = mixing_find(&m, first);
    assert_non_null(p);
    assert_true(p->kl == 0.25 && p->low == 0.125 && p->high == 0.5 && p->seconds == 0.002 && isnan(p->points));
    p = mixing_find(&m, second);
    assert_non_null(p);
    assert_true(isinf(p->kl) && isinf(p->high) && p->points == 0.5 && p->points_high == 2.0);
    assert_null(mixing_find(&m, other));
    close_mixing(&m);
    assert_true(take(&m, "", &used)); /* a new file */
    assert_int_equal(used, 0);
    close_mixing(&m);
}

/* Killed at any byte: what was whole is kept, the rest dropped. */
static void test_torn(void **state) {
    (void)state;
    const char *text = HEADER POINT POINT;
    for (size_t length = 0; length <= strlen(text); length++) {
        mixing m;
        size_t used, lines = 0, whole = 0;
        char *part = strndup(text, length);
        assert_non_null(part);
        for (size_t i = 0; i < length; i++) {
            if (part[i] != '\n') continue;
            lines++;
            whole = i + 1;
        }
        assert_true(take(&m, part, &used));
        assert_int_equal(used, whole);
        assert_int_equal(m.made, lines > 0 ? lines - 1 : 0);
        close_mixing(&m);
        free(part);
    }
}

static void test_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"hello\n", "st: line 1: expected the state of a search"},
        {"hello", "st: line 1: expected the state of a search"},
        {"{\"octet_scales\": 1}\n", "st: line 1: expected the state of a search"},
        {"{\"octet_search\": 1}\n", "line 1: this search has other data"},
        {"{\"octet_search\": 2, \"data\": \"d\"}\n", "line 1: this search has other octet_search"},
        {"{\"octet_search\": 1, \"data\": \"e\"}\n", "line 1: this search has other data"},
        {HEADER "\n", "line 2: expected an assignment"},
        {HEADER POINT "[]\n", "line 3: expected an assignment"},
        {HEADER "{\"assignment\": \"0\", \"kl\": 1, \"seconds\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"011\", \"kl\": 1, \"seconds\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"20\", \"kl\": 1, \"seconds\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"0z\", \"kl\": 1, \"seconds\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": 1, \"kl\": 1, \"seconds\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"00\", \"kl\": 1, \"seconds\": 0}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"00\", \"kl\": 1, \"seconds\": \"1\"}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"00\", \"kl\": 1}\n", "line 2: expected an assignment"},
        {HEADER "{\"assignment\": \"00\", \"assignment\": \"01\", \"seconds\": 1}\n", "line 2: expected an assignment"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mixing m;
        size_t used;
        assert_false(take(&m, cases[i].text, &used));
        assert_int_equal(m.end, EVALUATE_FAILED);
        assert_true(m.told);
        if (strstr(m.failed, cases[i].said) == NULL) fail_msg("case %zu said: %s", i, m.failed);
        close_mixing(&m);
    }
    mixing m;
    size_t used;
    char zero[] = HEADER "\0" POINT;
    json_t *header = json_object();
    m = (mixing){.state = "st"};
    assert_false(mixing_state_take(&m, zero, sizeof zero - 1, header, &used));
    assert_non_null(strstr(m.failed, "zero byte"));
    json_decref(header);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
