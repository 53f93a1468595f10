/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing and writing: seen by eye once, held here to what can be told by rule. */
#include "picture.h"

#include <unistd.h>

#include "base/file.h"

/* fontconfig keeps its caches, and some of them where LeakSanitizer cannot see them. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfontconfig\n";
}

static oct_image plain(int width, int height, uint8_t level) {
    oct_image image = {.width = width, .height = height};
    image.rgb = oct_alloc((size_t)width * (size_t)height * 3);
    assert_non_null(image.rgb);
    memset(image.rgb, level, (size_t)width * (size_t)height * 3);
    return image;
}

static int count_changed(const oct_image *image, uint8_t level, int x0, int y0, int x1, int y1) {
    int count = 0;
    for (int y = y0; y < y1; y++) {
        for (int x = x0; x < x1; x++) {
            const uint8_t *p = image->rgb + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
            count += p[0] != level || p[1] != level || p[2] != level;
        }
    }
    return count;
}

/* Tiny, huge, outside, inverted and not finite boxes on grounds of any level. */
static void test_boxes(void **state) {
    (void)state;
    const float infinite = 1.0f / 0.0f;
    const oct_drawn_box boxes[] = {{40, 40, 41, 41, 0.5f, 3, "tiny"},
                                   {-1e9f, -1e9f, 1e9f, 1e9f, 0.9f, 1, "all"},
                                   {500, 500, 600, 600, 0.1f, 2, "outside"},
                                   {90, 90, 10, 10, 0.7f, -5, "inverted \xff\xfe"},
                                   {0.0f / 0.0f, 0, infinite, 9, 0.3f, 2000000000, NULL}};
    for (int level = 0; level <= 255; level += 85) {
        oct_image image = plain(200, 120, (uint8_t)level);
        assert_int_equal(oct_image_draw_boxes(&image, boxes, 1), OCTET_OK);
        assert_true(count_changed(&image, (uint8_t)level, 36, 36, 46, 46) >= 12); /* it can be seen */
        assert_int_equal(oct_image_draw_boxes(&image, boxes, 5), OCTET_OK);
        assert_int_equal(image.width, 200);
        oct_image_free(&image);
    }
    oct_image dot = plain(1, 1, 7);
    assert_int_equal(oct_image_draw_boxes(&dot, boxes, 5), OCTET_OK);
    oct_image_free(&dot);
    assert_int_equal(oct_alloc_live(), 0);
}

/* A box in the corner keeps its tag inside: there is as much of it as of one in the middle. */
static void test_tags_stay_inside(void **state) {
    (void)state;
    oct_image corner = plain(300, 200, 128), middle = plain(300, 200, 128);
    const oct_drawn_box at_corner = {280, 0, 299, 10, 0.5f, 0, "platelets"},
                        at_middle = {120, 90, 139, 100, 0.5f, 0, "platelets"};
    assert_int_equal(oct_image_draw_boxes(&corner, &at_corner, 1), OCTET_OK);
    assert_int_equal(oct_image_draw_boxes(&middle, &at_middle, 1), OCTET_OK);
    int a = count_changed(&corner, 128, 0, 0, 300, 200), b = count_changed(&middle, 128, 0, 0, 300, 200);
    assert_true(a * 10 > b * 9);
    oct_image_free(&corner);
    oct_image_free(&middle);
}

static void test_caption(void **state) {
    (void)state;
    oct_image image = picture_formula(320, 200, 4), before = picture_formula(320, 200, 4);
    const char *const lines[] = {
        "tabby cat  0.53", "a name that is much too long for the picture it stands under, and goes on", "\xc3\xa9\xff"};
    assert_int_equal(oct_image_draw_caption(&image, lines, 3), OCTET_OK);
    assert_int_equal(image.width, 320);
    assert_true(image.height > 220);
    assert_memory_equal(image.rgb, before.rgb, 320 * 200 * 3);
    oct_image_free(&image);
    oct_image_free(&before);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_writing(void **state) {
    (void)state;
    char *directory = support_temporary_directory();
    oct_image image = picture_formula(37, 21, 4), again;
    const char *path = support_join(directory, "a.png");
    assert_int_equal(oct_image_write(&image, path), OCTET_OK);
    assert_int_equal(oct_image_read(&again, path, OCT_ORIENTATION_UPRIGHT), OCTET_OK);
    assert_int_equal(again.width, 37);
    assert_memory_equal(again.rgb, image.rgb, 37 * 21 * 3);
    oct_image_free(&again);
    path = support_join(directory, "a.JPG");
    oct_image smooth = plain(64, 48, 90);
    assert_int_equal(oct_image_write(&smooth, path), OCTET_OK);
    assert_int_equal(oct_image_read(&again, path, OCT_ORIENTATION_UPRIGHT), OCTET_OK);
    for (size_t i = 0; i < 64 * 48 * 3; i++) assert_in_range(again.rgb[i], 88, 92);
    oct_image_free(&again);
    oct_image_free(&smooth);
    assert_int_equal(oct_image_write(&image, support_join(directory, "no/such/a.png")), OCTET_NOT_FOUND);
    oct_image_free(&image);
    support_remove_tree(directory);
    free(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

/* A full disk, or no memory, at any moment: an error, and what was there before is there still. */
static void test_writing_fails(void **state) {
    (void)state;
    static const char *const names[] = {"a.png", "a.jpg"};
    char *directory = support_temporary_directory();
    oct_image image = picture_formula(150, 90, 4);
    for (int k = 0; k < 2; k++) {
        const char *path = support_join(directory, names[k]);
        for (int memory = 0; memory < 2; memory++) {
            for (uint64_t n = 1;; n++) {
                support_write_text(path, "before");
                if (memory)
                    oct_alloc_fail_at(n, false);
                else
                    oct_file_fail_at(n, false);
                octet_status status = oct_image_write(&image, path);
                bool met = memory ? oct_alloc_fault_met() : oct_file_fault_met();
                oct_alloc_fail_at(0, false);
                oct_file_fail_at(0, false);
                if (!met) {
                    assert_int_equal(status, OCTET_OK);
                    break;
                }
                assert_true(n < 500);
                if (status == OCTET_OK) continue; /* a library did without, or only the directory's sync failed */
                if (memory) assert_int_equal(status, OCTET_OUT_OF_MEMORY);
                oct_image again;
                char *text =
                    support_read_text(path, NULL); /* as it was, or whole: the rename was done, a sync failed */
                if (strcmp(text, "before") != 0)
                    assert_int_equal(oct_image_read(&again, path, OCT_ORIENTATION_STORED), OCTET_OK);
                if (strcmp(text, "before") != 0) oct_image_free(&again);
                free(text);
                assert_int_equal(support_count_entries(directory), k + 1);
            }
        }
    }
    oct_image_free(&image);
    support_remove_tree(directory);
    free(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),   cmocka_unit_test(test_tags_stay_inside), cmocka_unit_test(test_caption),
        cmocka_unit_test(test_writing), cmocka_unit_test(test_writing_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
