/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void check(const char *text, size_t repeat, const char *expected) {
    oct_sha256 hash = {0};
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX];
    assert_int_equal(oct_sha256_begin(&hash), OCTET_OK);
    for (size_t i = 0; i < repeat; i++) assert_int_equal(oct_sha256_update(&hash, text, strlen(text)), OCTET_OK);
    assert_int_equal(oct_sha256_end(&hash, digest), OCTET_OK);
    assert_null(hash.context);
    oct_sha256_hex(digest, hex);
    assert_string_equal(hex, expected);
    if (repeat == 1) {
        uint8_t again[OCT_SHA256_SIZE];
        assert_int_equal(oct_sha256_of(text, strlen(text), again), OCTET_OK);
        assert_memory_equal(digest, again, sizeof digest);
    }
}

/* FIPS 180-4 examples */
static void test_known_answers(void **state) {
    (void)state;
    check("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check("aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_drop(void **state) {
    (void)state;
    oct_sha256 hash = {0};
    oct_sha256_drop(&hash);
    assert_int_equal(oct_sha256_begin(&hash), OCTET_OK);
    oct_sha256_drop(&hash);
    oct_sha256_drop(&hash);
    assert_null(hash.context);
}

static void test_fnv1a(void **state) {
    (void)state;
    assert_true(oct_fnv1a("", 0) == 0xcbf29ce484222325u);
    assert_true(oct_fnv1a_text("a") == 0xaf63dc4c8601ec8cu);
    assert_true(oct_fnv1a_text("foobar") == 0x85944171f73967e8u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_fnv1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
