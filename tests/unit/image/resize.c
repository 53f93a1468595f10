/* SPDX-License-Identifier: Apache-2.0 */
/* Resampling against Pillow's bytes, and windows against the whole. */
#include "picture.h"

#include "base/random.h"

/* A row with "filter", "sha256" and perhaps "box", of a picture resized to width x height. */
static void check_row(const oct_image *picture, const oct_node *row, int width, int height, bool grey) {
    oct_resize resize = {
        .full_width = width, .full_height = height, .filter = picture_filter(picture_string(row, "filter"))};
    const oct_node *box = oct_node_get(row, "box");
    for (size_t i = 0; box != NULL && i < 4; i++) resize.box[i] = box->items[i]->real;
    oct_image out = {.width = width, .height = height};
    if (oct_image_resize(picture, &resize, &out) != OCTET_OK) fail_msg("%s", oct_error_text());
    char hex[OCT_SHA256_HEX];
    if (grey) { /* one of three equal channels */
        uint8_t digest[OCT_SHA256_SIZE];
        size_t pixels = (size_t)width * (size_t)height;
        for (size_t i = 0; i < pixels; i++) out.rgb[i] = out.rgb[i * 3];
        assert_int_equal(oct_sha256_of(out.rgb, pixels, digest), OCTET_OK);
        oct_sha256_hex(digest, hex);
    } else {
        picture_hash(&out, hex);
    }
    if (strcmp(hex, picture_string(row, "sha256")) != 0)
        fail_msg("%d x %d to %d x %d by %s: other bytes than Pillow's", picture->width, picture->height, width, height,
                 picture_string(row, "filter"));
    oct_image_free(&out);
}

static void check_formula_row(const oct_node *row, void *user) {
    (void)user;
    oct_image picture =
        picture_formula((int)picture_int(row, "width"), (int)picture_int(row, "height"), picture_int(row, "number"));
    check_row(&picture, row, (int)picture_item(row, "to", 0), (int)picture_item(row, "to", 1), false);
    oct_image_free(&picture);
}

static void test_formula_pictures(void **state) {
    (void)state;
    assert_true(picture_lines(GOLDEN "resample.jsonl", check_formula_row, NULL) > 400);
}

static void check_case_row(const oct_node *row, void *user) {
    char name[64];
    snprintf(name, sizeof name, "%s", picture_string(row, "picture"));
    char *as = strstr(name, " as L");
    if (as != NULL) *as = 0;
    oct_image picture;
    if (oct_image_read(&picture, support_join(user, name), OCT_ORIENTATION_STORED) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    size_t pixels = (size_t)picture.width * (size_t)picture.height;
    for (size_t i = 0; as != NULL && i < pixels; i++) { /* Pillow's luma */
        uint8_t *p = picture.rgb + i * 3;
        p[0] = p[1] = p[2] = (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
    }
    check_row(&picture, row, (int)picture_item(row, "size", 0), (int)picture_item(row, "size", 1), as != NULL);
    oct_image_free(&picture);
}

static void test_shared_case(void **state) {
    (void)state;
    const char *root = support_shared("cases/15-resample-bytes");
    if (root == NULL) SUPPORT_SKIP("shared cases/15-resample-bytes is not here");
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", root);
    assert_int_equal(picture_lines(support_join(folder, "resample.jsonl"), check_case_row, folder), 240);
}

/* Any window of any resize holds the same bytes as the whole, zeros outside. */
static void test_windows(void **state) {
    (void)state;
    uint64_t seed = 15;
    for (int round = 0; round < 400; round++) {
        oct_image picture =
            picture_formula((int)oct_random_below(&seed, 40) + 1, (int)oct_random_below(&seed, 40) + 1, round);
        int width = (int)oct_random_below(&seed, 60) + 1, height = (int)oct_random_below(&seed, 60) + 1;
        oct_resize resize = {
            .full_width = width, .full_height = height, .filter = (oct_filter)oct_random_below(&seed, 6)};
        oct_image whole = {.width = width, .height = height};
        assert_int_equal(oct_image_resize(&picture, &resize, &whole), OCTET_OK);
        resize.left = (int)oct_random_below(&seed, 80) - 40;
        resize.top = (int)oct_random_below(&seed, 80) - 40;
        oct_image part = {.width = (int)oct_random_below(&seed, 70) + 1,
                          .height = (int)oct_random_below(&seed, 70) + 1};
        assert_int_equal(oct_image_resize(&picture, &resize, &part), OCTET_OK);
        for (int y = 0; y < part.height; y++) {
            for (int x = 0; x < part.width; x++) {
                static const uint8_t black[3] = {0, 0, 0};
                int from_x = x + resize.left, from_y = y + resize.top;
                bool inside = from_x >= 0 && from_y >= 0 && from_x < width && from_y < height;
                const uint8_t *expected = inside ? whole.rgb + (from_y * width + from_x) * 3 : black;
                if (memcmp(part.rgb + (y * part.width + x) * 3, expected, 3) != 0)
                    fail_msg("round %d, pixel %d, %d", round, x, y);
            }
        }
        oct_image_free(&picture);
        oct_image_free(&whole);
        oct_image_free(&part);
    }
    assert_int_equal(oct_alloc_live(), 0);
}

static size_t largest; /* request seen by the counting allocator */

static void *count_allocate(void *user, size_t size, size_t alignment) {
    (void)user;
    if (size > largest) largest = size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment + alignment);
}

static void count_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

/* A tall picture's centre crop makes nothing of the size of the whole resized picture. */
static void test_tall_picture_takes_little(void **state) {
    (void)state;
    const oct_allocator counting = {count_allocate, count_release, NULL};
    oct_allocator_set(&counting);
    oct_image picture = picture_formula(3, 900, 1), crop = {.width = 224, .height = 224};
    largest = 0;
    const oct_resize resize = {
        .full_width = 256, .full_height = 76800, .left = 16, .top = 38288, .filter = OCT_FILTER_BICUBIC};
    assert_int_equal(oct_image_resize(&picture, &resize, &crop), OCTET_OK);
    assert_true(largest <= 224 * 224 * 3);
    oct_image_free(&picture);
    oct_image_free(&crop);
    oct_allocator_set(NULL);
}

static void test_bad_requests(void **state) {
    (void)state;
    oct_image picture = picture_formula(5, 4, 1), out = {.width = 2, .height = 2};
    oct_resize resize = {.full_width = 0, .full_height = 2};
    assert_int_equal(oct_image_resize(&picture, &resize, &out), OCTET_INVALID_ARGUMENT);
    assert_null(out.rgb);
    resize = (oct_resize){.full_width = 2, .full_height = 2, .box = {0, 0, 5.5, 4}};
    out = (oct_image){.width = 2, .height = 2};
    assert_int_equal(oct_image_resize(&picture, &resize, &out), OCTET_INVALID_ARGUMENT);
    resize = (oct_resize){.full_width = 2, .full_height = 2, .box = {3, 0, 2, 4}};
    out = (oct_image){.width = 2, .height = 2};
    assert_int_equal(oct_image_resize(&picture, &resize, &out), OCTET_INVALID_ARGUMENT);
    resize = (oct_resize){.full_width = INT32_MAX,
                          .full_height = INT32_MAX,
                          .left = INT32_MAX - 2,
                          .top = INT32_MAX - 2,
                          .filter = OCT_FILTER_LANCZOS};
    out = (oct_image){.width = 4, .height = 4};
    assert_int_equal(oct_image_resize(&picture, &resize, &out), OCTET_OK);
    oct_image_free(&out);
    oct_image_free(&picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula_pictures), cmocka_unit_test(test_shared_case),
        cmocka_unit_test(test_windows),          cmocka_unit_test(test_tall_picture_takes_little),
        cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
