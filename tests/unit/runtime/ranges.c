/* SPDX-License-Identifier: Apache-2.0 */
/* What a stopped calibration keeps: read back it is the same; any damage is noticed, and leaves nothing behind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "runtime/ranges.h"

static void fill(oct_ranges *ranges, size_t values) {
    size_t index;
    assert_int_equal(oct_ranges_add(ranges, "a", 0, &index), OCTET_OK);
    assert_int_equal(oct_ranges_add(ranges, "blocks.0.x", 3, &index), OCTET_OK);
    assert_int_equal(index, 1);
    assert_int_equal(oct_ranges_add(ranges, "a", 0, &index), OCTET_OK);
    assert_int_equal(index, 0);
    assert_int_equal(oct_ranges_add(ranges, "empty", 2, &index), OCTET_OK);
    memset(ranges->key, 7, sizeof ranges->key);
    memset(ranges->data, 'f', OCT_SHA256_HEX - 1);
    uint64_t state = 5;
    for (size_t i = 0; i < values; i++) {
        float row[3] = {oct_random_signed(&state), 1e-40f * (float)i, i % 7 == 0 ? NAN : -3e38f};
        oct_histogram_add(ranges->items[0].histogram, row, 3);
        oct_histogram_add_rows(ranges->items[1].histogram, row, 1, 3, 3);
        oct_channels_add(&ranges->items[1].channels, row, 1, 3);
    }
    ranges->pictures = values;
}

static void test_round_trip(void **state) {
    (void)state;
    oct_ranges seen = {0}, back = {0};
    oct_text text = {0};
    fill(&seen, 100);
    fill(&back, 0);
    oct_ranges_write(&seen, &text);
    assert_false(text.failed);
    assert_int_equal(oct_ranges_read(&back, "x", text.data, text.length), OCTET_OK);
    assert_int_equal(back.pictures, 100);
    assert_string_equal(back.data, seen.data);
    for (size_t i = 0; i < seen.count; i++) {
        const oct_histogram *a = seen.items[i].histogram, *b = back.items[i].histogram;
        assert_int_equal(a->count, b->count);
        assert_int_equal(a->nans, b->nans);
        assert_memory_equal(a->cells, b->cells, 2 * OCT_HISTOGRAM_BINS * sizeof *a->cells);
        assert_memory_equal(&a->min, &b->min, 2 * sizeof(float));
        assert_int_equal(seen.items[i].channels.count, back.items[i].channels.count);
        for (size_t c = 0; c < seen.items[i].channels.count; c++)
            assert_float_equal(seen.items[i].channels.max[c], back.items[i].channels.max[c], 0);
    }
    oct_text_free(&text);
    oct_ranges_free(&seen);
    oct_ranges_free(&back);
    assert_int_equal(oct_alloc_live(), 0);
}

static void seal(oct_text *text) {
    uint8_t digest[OCT_SHA256_SIZE];
    assert_int_equal(oct_sha256_of(text->data, text->length - sizeof digest, digest), OCTET_OK);
    memcpy(text->data + text->length - sizeof digest, digest, sizeof digest);
}

/* Every byte changed, as it is and under a right checksum; every length. */
static void test_damage(void **state) {
    (void)state;
    oct_ranges seen = {0}, back = {0};
    oct_text text = {0};
    fill(&seen, 3);
    fill(&back, 0);
    oct_ranges_write(&seen, &text);
    for (size_t i = 0; i < text.length; i++) {
        text.data[i] = (char)(text.data[i] ^ 0x81);
        assert_int_not_equal(oct_ranges_read(&back, "x", text.data, text.length), OCTET_OK);
        text.data[i] = (char)(text.data[i] ^ 0x81);
        assert_int_not_equal(oct_ranges_read(&back, "x", text.data, i), OCTET_OK);
        assert_int_equal(oct_ranges_values(&back), 0);
    }
    for (size_t i = 0; i + OCT_SHA256_SIZE < text.length; i++) {
        text.data[i] = (char)(text.data[i] ^ 0x81);
        seal(&text);
        (void)oct_ranges_read(&back, "x", text.data, text.length); /* some are other ranges, and whole */
        text.data[i] = (char)(text.data[i] ^ 0x81);
        seal(&text);
    }
    assert_int_equal(oct_ranges_read(&back, "x", text.data, text.length), OCTET_OK);
    oct_text_free(&text);
    oct_ranges_free(&seen);
    oct_ranges_free(&back);
}

static void test_another(void **state) {
    (void)state;
    oct_ranges seen = {0}, back = {0}, fewer = {0};
    oct_text text = {0};
    size_t index;
    fill(&seen, 3);
    fill(&back, 0);
    oct_ranges_write(&seen, &text);
    assert_int_equal(oct_ranges_read(&back, "x", text.data, text.length), OCTET_OK);
    assert_int_not_equal(oct_ranges_values(&back), 0);
    back.key[0] = 8;
    assert_int_equal(oct_ranges_read(&back, "x", text.data, text.length), OCTET_MISMATCH);
    assert_int_equal(oct_ranges_values(&back), 0); /* nor what was read before */
    assert_int_equal(oct_ranges_add(&fewer, "a", 0, &index), OCTET_OK);
    memset(fewer.key, 7, sizeof fewer.key);
    assert_int_equal(oct_ranges_read(&fewer, "x", text.data, text.length), OCTET_MISMATCH);
    oct_text_free(&text);
    oct_ranges_free(&seen);
    oct_ranges_free(&back);
    oct_ranges_free(&fewer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
