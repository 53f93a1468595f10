/* SPDX-License-Identifier: Apache-2.0 */
/* Broken pictures and broken memory: whatever the bytes, a picture comes out or an error, nothing stays allocated,
 * nothing is printed, and no header alone takes memory. */
#include "picture.h"

#include <dirent.h>

#include "base/random.h"

typedef void (*visitor)(const char *name, uint8_t *data, size_t size);

/* Every golden picture of at most `most` bytes. */
static void for_each_picture(size_t most, visitor visit) {
    DIR *directory = opendir(GOLDEN "pictures");
    assert_non_null(directory);
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(directory)) != NULL) {
        size_t size = 0;
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".json") != NULL) continue;
        char *data = support_read_text(support_join(GOLDEN "pictures", entry->d_name), &size);
        assert_non_null(data);
        if (size <= most) {
            visit(entry->d_name, (uint8_t *)data, size);
            count++;
        }
        free(data);
    }
    (void)closedir(directory);
    assert_true(count > 100);
}

/* Decodes from memory of exactly this size, so that a sanitizer sees a read beyond. */
static octet_status decode_exactly(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    oct_image image;
    octet_status status = oct_image_decode(&image, "x", copy, size, OCT_ORIENTATION_UPRIGHT);
    free(copy);
    if (status == OCTET_OK) {
        assert_non_null(image.rgb);
        assert_true(image.width > 0 && image.height > 0);
    } else {
        assert_null(image.rgb);
        assert_true(oct_error_fact()[0] != 0);
    }
    oct_image_free(&image);
    assert_int_equal(oct_alloc_live(), 0);
    return status;
}

static void cut_everywhere(const char *name, uint8_t *data, size_t size) {
    (void)name;
    for (size_t n = 0; n < size; n++) (void)decode_exactly(data, n);
}

static void test_cut_at_every_byte(void **state) {
    (void)state;
    for_each_picture(700, cut_everywhere);
}

static void flip_bits(const char *name, uint8_t *data, size_t size) {
    uint64_t seed = oct_fnv1a_text(name);
    for (int round = 0; round < 60; round++) {
        size_t at[4];
        uint8_t bit[4];
        for (int k = 0; k < 4; k++) {
            at[k] = oct_random_below(&seed, round % 2 == 0 ? size : size < 64 ? size : 64);
            bit[k] = (uint8_t)(1u << oct_random_below(&seed, 8));
            if (k <= round % 4) data[at[k]] ^= bit[k];
        }
        (void)decode_exactly(data, size);
        for (int k = 3; k >= 0; k--) {
            if (k <= round % 4) data[at[k]] ^= bit[k];
        }
    }
}

static void test_flipped_bits(void **state) {
    (void)state;
    for_each_picture(2000, flip_bits);
}

/* 100,000 x 100,000 pixels, by each format's header. */
static void test_huge_headers(void **state) {
    (void)state;
    static const char *const names[] = {"png_huge.png", "webp_huge.webp", "bmp_huge.bmp",
                                        "ppm_huge.ppm", "jpeg_huge.jpg",  "png_wide.png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        oct_image image;
        oct_alloc_fail_at(0, false); /* counts from here */
        octet_status status =
            oct_image_read(&image, support_join(GOLDEN "pictures", names[i]), OCT_ORIENTATION_UPRIGHT);
        if (status != OCTET_LIMIT) fail_msg("%s: %s", names[i], oct_error_text());
        assert_true(oct_alloc_count() < 8);
    }
}

static void fail_every_allocation(const char *name, uint8_t *data, size_t size) {
    octet_status whole = decode_exactly(data, size);
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++) {
            oct_image image;
            oct_alloc_fail_at(n, forever != 0);
            octet_status status = oct_image_decode(&image, "x", data, size, OCT_ORIENTATION_UPRIGHT);
            bool met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            oct_image_free(&image);
            assert_int_equal(oct_alloc_live(), 0);
            if (!met) {
                assert_int_equal(status, whole);
                break;
            }
            if (status != OCTET_OUT_OF_MEMORY) fail_msg("%s: allocation %d: status %d", name, (int)n, (int)status);
            assert_true(n < 1000);
        }
    }
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    for_each_picture(1200, fail_every_allocation);
}

/* Many comments in a row must not nest. */
static void test_a_million_comments(void **state) {
    (void)state;
    static const char head[] = "P2 1 1 255\n";
    const size_t comments = 1000000, size = sizeof head - 1 + comments * 2 + 1;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    memcpy(data, head, sizeof head - 1);
    for (size_t i = 0; i < comments; i++) memcpy(data + sizeof head - 1 + i * 2, "#\n", 2);
    data[size - 1] = '7';
    assert_int_equal(decode_exactly(data, size), OCTET_OK);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),  cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_huge_headers),       cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_a_million_comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
