/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor core's rule: against golden sums (tools/reference/tensor_core.py, exact fractions), and by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/format.h"
#include "graph/tensor_core.h"

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void read_codes(const char *text, uint8_t *codes, int *count) {
    unsigned byte;
    for (*count = 0; sscanf(text + 2 * *count, "%2x", &byte) == 1; (*count)++) codes[*count] = (uint8_t)byte;
}

static void test_golden(void **state) {
    (void)state;
    FILE *file = fopen(OCTET_SOURCE_DIR "/tests/golden/tensor_core.txt", "r");
    static char a[8192], b[8192];
    uint8_t x[4096], y[4096];
    unsigned promote, wanted;
    int lines = 0, m, n;
    assert_non_null(file);
    while (fscanf(file, "%8191s %8191s %u %8x", a, b, &promote, &wanted) == 4) {
        read_codes(a, x, &m);
        read_codes(b, y, &n);
        assert_int_equal(m, n);
        const float found = oct_tensor_core_dot(x, y, n, promote);
        if (bits_of(found) != wanted)
            fail_msg("line %d: %d values, promoted at %u: expected %08x, found %08x (%g)", lines + 1, n, promote,
                     wanted, bits_of(found), (double)found);
        lines++;
    }
    fclose(file);
    assert_in_range(lines, 200, 100000);
}

/* 1 + 31 products of 2^-7: each is below the 13th bit of nothing, but below that of 2^7 it is cut away. */
static void test_cut(void **state) {
    (void)state;
    uint8_t a[32], b[32];
    const uint8_t one = oct_e4m3_encode(1.0f), small = oct_e4m3_encode(0x1p-7f), large = oct_e4m3_encode(128.0f);
    memset(a, small, sizeof a);
    memset(b, one, sizeof b);
    assert_float_equal(oct_tensor_core_dot(a, b, 32, 0), 32 * 0x1p-7f, 0);
    a[0] = large; /* 2^7: the others stand at 2^-14 of it, one beyond the 13th bit */
    assert_float_equal(oct_tensor_core_dot(a, b, 32, 0), 128.0f, 0);
    a[0] = oct_e4m3_encode(64.0f); /* now they are the 13th bit */
    assert_float_equal(oct_tensor_core_dot(a, b, 32, 0), 64.0f + 31 * 0x1p-7f, 0);
}

static void test_special(void **state) {
    (void)state;
    uint8_t a[64] = {0}, b[64] = {0};
    assert_int_equal(bits_of(oct_tensor_core_dot(a, b, 64, 0)), 0);
    assert_int_equal(bits_of(oct_tensor_core_dot(a, b, 0, 0)), 0);
    memset(a, 0x80, sizeof a); /* -0 */
    assert_int_equal(bits_of(oct_tensor_core_dot(a, b, 64, 0)), 0);
    a[63] = 0x7f;
    assert_true(isnan(oct_tensor_core_dot(a, b, 64, 0)));
    memset(a, 0x7e, sizeof a); /* 448: the largest sum */
    assert_float_equal(oct_tensor_core_dot(a, a, 64, 0), 64 * 448.0f * 448.0f, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
