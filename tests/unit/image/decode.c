/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding against Pillow's bytes: the small pictures of tests/golden/pictures, and the shared cases where they are. */
#include "picture.h"

/* `expected` holds size and hash under the given keys. */
static void check_decoded(const char *path, oct_orientation orientation, int64_t width, int64_t height,
                          const char *hash) {
    oct_image image;
    char hex[OCT_SHA256_HEX];
    if (oct_image_read(&image, path, orientation) != OCTET_OK) fail_msg("%s", oct_error_text());
    if (image.width != width || image.height != height)
        fail_msg("%s: %d x %d pixels, not %d x %d", path, image.width, image.height, (int)width, (int)height);
    picture_hash(&image, hex);
    if (strcmp(hex, hash) != 0) fail_msg("%s: other pixels than Pillow's", path);
    oct_image_free(&image);
}

static void check_answer(const char *path, oct_orientation orientation, const oct_node *answer) {
    if (answer->kind != OCT_NODE_NULL) {
        check_decoded(path, orientation, picture_item(answer, "size", 0), picture_item(answer, "size", 1),
                      picture_string(answer, "sha256"));
        return;
    }
    oct_image image;
    if (oct_image_read(&image, path, orientation) == OCTET_OK) fail_msg("%s: Pillow refuses this file", path);
    assert_null(image.rgb);
    if (strncmp(oct_error_fact(), path, strlen(path)) != 0) fail_msg("no file name in \"%s\"", oct_error_fact());
}

static void test_golden_pictures(void **state) {
    (void)state;
    oct_document document;
    assert_int_equal(oct_document_read(&document, GOLDEN "pictures/pictures.json", OCT_DOCUMENT_LIMIT), OCTET_OK);
    assert_int_equal(document.root->kind, OCT_NODE_LIST);
    assert_true(document.root->count > 200);
    for (size_t i = 0; i < document.root->count; i++) {
        const oct_node *row = document.root->items[i];
        const char *path = support_join(GOLDEN "pictures", picture_string(row, "file"));
        check_answer(path, OCT_ORIENTATION_STORED, oct_node_get(row, "stored"));
        check_answer(path, OCT_ORIENTATION_UPRIGHT, oct_node_get(row, "upright"));
    }
    oct_document_free(&document);
    assert_int_equal(oct_alloc_live(), 0);
}

static void check_case(const char *folder) {
    const char *root = support_shared(folder);
    if (root == NULL) SUPPORT_SKIP("shared %s is not here", folder);
    oct_document document;
    assert_int_equal(oct_document_read(&document, support_join(root, "expected.json"), OCT_DOCUMENT_LIMIT), OCTET_OK);
    const oct_node *expect = oct_node_get(document.root, "expect");
    int checked = 0;
    for (size_t i = 0; i < expect->count; i++) {
        const oct_node *row = expect->items[i], *stored = oct_node_get(row, "as_stored"),
                       *upright = oct_node_get(row, "upright");
        const char *path = support_join(root, expect->keys[i]);
        const oct_node *rows[2] = {upright != NULL ? upright : row, stored != NULL ? stored : row};
        for (int k = 0; k < 2; k++) {
            if (picture_string(rows[k], "rgb_sha256") == NULL) continue;
            check_decoded(path, k == 0 ? OCT_ORIENTATION_UPRIGHT : OCT_ORIENTATION_STORED,
                          picture_int(rows[k], "width"), picture_int(rows[k], "height"),
                          picture_string(rows[k], "rgb_sha256"));
            checked++;
        }
    }
    assert_true(checked > 0);
    oct_document_free(&document);
}

static void test_grey_of_16_bits(void **state) {
    (void)state;
    check_case("cases/01-grey16-png");
}

static void test_jpeg_sampling(void **state) {
    (void)state;
    check_case("cases/05-jpeg-sampling");
}

static void test_wrong_extensions(void **state) {
    (void)state;
    check_case("cases/07-wrong-extension");
}

static void test_orientation(void **state) {
    (void)state;
    check_case("cases/08-exif-orientation");
}

static void test_formats_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *name;
        size_t size;
    } rows[] = {{"GIF89a\1\0\1\0", "GIF", 10},
                {"II*\0\x08\0\0\0", "TIFF", 8},
                {"\0\0\0\x1c"
                 "ftypavif\0\0\0\0",
                 "AVIF", 16},
                {"\0\0\0\x1c"
                 "ftypheic\0\0\0\0",
                 "HEIF", 16},
                {"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL", 12},
                {"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000", 12},
                {"8BPS\0\1", "Photoshop", 6},
                {"<svg xmlns=", "SVG", 11},
                {"Pf\n1 1\n-1\n1234", "PFM", 14}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        oct_image image;
        octet_status status =
            oct_image_decode(&image, "picture", (const uint8_t *)rows[i].bytes, rows[i].size, OCT_ORIENTATION_UPRIGHT);
        assert_int_equal(status, OCTET_UNSUPPORTED);
        if (strstr(oct_error_fact(), rows[i].name) == NULL || strncmp(oct_error_fact(), "picture: ", 9) != 0)
            fail_msg("%s: \"%s\"", rows[i].name, oct_error_fact());
    }
}

static void test_what_is_no_picture(void **state) {
    (void)state;
    oct_image image;
    assert_int_equal(oct_image_decode(&image, "x", (const uint8_t *)"", 0, OCT_ORIENTATION_UPRIGHT), OCTET_BAD_FORMAT);
    assert_int_equal(oct_image_decode(&image, "x", (const uint8_t *)"hello", 5, OCT_ORIENTATION_UPRIGHT),
                     OCTET_BAD_FORMAT);
    assert_int_equal(oct_image_read(&image, "/does/not/exist.png", OCT_ORIENTATION_UPRIGHT), OCTET_NOT_FOUND);
    assert_null(image.rgb);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_pictures),    cmocka_unit_test(test_grey_of_16_bits),
        cmocka_unit_test(test_jpeg_sampling),      cmocka_unit_test(test_wrong_extensions),
        cmocka_unit_test(test_orientation),        cmocka_unit_test(test_formats_refused_by_name),
        cmocka_unit_test(test_what_is_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
