/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing against timm's evaluation transform and transformers' YolosImageProcessorPil. */
#include "picture.h"

#include <stdio.h>

#include "image/preprocess.h"

static octet_status from_text(oct_preprocess *preprocess, bool timm, const char *text) {
    oct_document document;
    octet_status status = oct_document_parse_json(&document, "config.json", text, strlen(text));
    if (status != OCTET_OK) fail_msg("%s", oct_error_text());
    status = timm ? oct_preprocess_from_timm(preprocess, &document)
                  : oct_preprocess_from_transformers(preprocess, &document, "Yolos");
    oct_document_free(&document);
    return status;
}

static void check_pixels(const oct_preprocess *preprocess, const oct_node *row) {
    int width = (int)picture_int(row, "width"), height = (int)picture_int(row, "height");
    const char *hash = picture_string(row, "sha256");
    const oct_node *to = oct_node_get(row, "to");
    int out_height = 0, out_width = 0;
    octet_status status = oct_preprocess_size(preprocess, width, height, &out_height, &out_width);
    if (picture_string(row, "error") != NULL) {
        assert_int_not_equal(status, OCTET_OK);
        return;
    }
    if (status != OCTET_OK) fail_msg("%s", oct_error_text());
    if (to != NULL) {
        assert_int_equal(out_height, picture_item(row, "to", 0));
        assert_int_equal(out_width, picture_item(row, "to", 1));
    }
    if (hash == NULL) return;
    oct_image picture = picture_formula(width, height, picture_int(row, "number")), pixels;
    char hex[OCT_SHA256_HEX];
    if (oct_preprocess_pixels(preprocess, &picture, &pixels) != OCTET_OK) fail_msg("%s", oct_error_text());
    assert_int_equal(pixels.width, out_width);
    assert_int_equal(pixels.height, out_height);
    picture_hash(&pixels, hex);
    if (strcmp(hex, hash) != 0) fail_msg("line with number %d: other pixels", (int)picture_int(row, "number"));
    oct_image_free(&picture);
    oct_image_free(&pixels);
}

static void check_timm_row(const oct_node *row, void *user) {
    (void)user;
    char text[512], pct[32];
    const oct_node *mean = oct_node_get(row, "mean");
    snprintf(text, sizeof text,
             "{\"pretrained_cfg\": {\"input_size\": [3, %d, %d], \"interpolation\": \"%s\", \"crop_mode\": \"%s\", "
             "\"crop_pct\": %s, \"mean\": [%.17g, %.17g, %.17g]}}",
             (int)picture_item(row, "input", 0), (int)picture_item(row, "input", 1),
             picture_string(row, "interpolation"), picture_string(row, "crop_mode"),
             oct_format_double(oct_node_get(row, "crop_pct")->real, pct), mean->items[0]->real, mean->items[1]->real,
             mean->items[2]->real);
    oct_preprocess preprocess;
    if (from_text(&preprocess, true, text) != OCTET_OK) fail_msg("%s", oct_error_text());
    check_pixels(&preprocess, row);
}

static void test_timm(void **state) {
    (void)state;
    assert_true(picture_lines(GOLDEN "timm_transform.jsonl", check_timm_row, NULL) > 100);
    assert_int_equal(oct_alloc_live(), 0);
}

/* The row's "size" and "max_size" as the configuration would say them. */
static void append_size(oct_text *text, const oct_node *size) {
    if (size->kind == OCT_NODE_INT) {
        oct_text_printf(text, "%lld", (long long)size->integer);
    } else if (size->kind == OCT_NODE_LIST) {
        oct_text_printf(text, "[%lld, %lld]", (long long)size->items[0]->integer, (long long)size->items[1]->integer);
    } else {
        for (size_t i = 0; i < size->count; i++)
            oct_text_printf(text, "%s\"%s\": %lld", i == 0 ? "{" : ", ", size->keys[i],
                            (long long)size->items[i]->integer);
        oct_text_puts(text, "}");
    }
}

static void check_yolos_row(const oct_node *row, void *user) {
    (void)user;
    static const int codes[] = {0, 4, 2, 5, 3, 1};
    oct_text text = {0};
    oct_text_puts(&text, "{\"image_processor_type\": \"YolosImageProcessor\", \"size\": ");
    append_size(&text, oct_node_get(row, "size"));
    const oct_node *most = oct_node_get(row, "max_size");
    if (most != NULL && most->kind == OCT_NODE_INT)
        oct_text_printf(&text, ", \"max_size\": %lld", (long long)most->integer);
    if (picture_string(row, "filter") != NULL)
        oct_text_printf(&text, ", \"resample\": %d", codes[picture_filter(picture_string(row, "filter"))]);
    oct_text_puts(&text, "}");
    oct_preprocess preprocess;
    octet_status status = from_text(&preprocess, false, text.data);
    oct_text_free(&text);
    if (status != OCTET_OK && picture_string(row, "error") != NULL) return;
    if (status != OCTET_OK) fail_msg("%s", oct_error_text());
    check_pixels(&preprocess, row);
}

static void test_yolos(void **state) {
    (void)state;
    assert_true(picture_lines(GOLDEN "yolos_resize.jsonl", check_yolos_row, NULL) > 100);
    assert_int_equal(oct_alloc_live(), 0);
}

/* Every level of every channel, to the bit. */
static void check_levels(const char *golden, bool timm, const char *text) {
    support_array levels;
    if (!support_npy_read(golden, &levels)) fail_msg("%s is missing", golden);
    oct_preprocess preprocess;
    if (from_text(&preprocess, timm, text) != OCTET_OK) fail_msg("%s", oct_error_text());
    oct_image pixels = {.width = 256, .height = 1, .rgb = oct_alloc(768)};
    float *input = oct_alloc(256 * 4 * sizeof *input);
    for (int i = 0; i < 768; i++) pixels.rgb[i] = (uint8_t)(i / 3);
    oct_preprocess_normalize(&preprocess, &pixels, input, 4);
    for (int c = 0; c < 3; c++) {
        for (int level = 0; level < 256; level++) {
            float expected = support_floats(&levels)[c * 256 + level];
            if (memcmp(&expected, &input[level * 4 + c], sizeof expected) != 0)
                fail_msg("%s: channel %d, level %d: %.9g, not %.9g", golden, c, level, (double)input[level * 4 + c],
                         (double)expected);
            assert_true(input[level * 4 + 3] == 0.0f);
        }
    }
    oct_free(input);
    oct_image_free(&pixels);
    support_array_free(&levels);
}

static void test_levels(void **state) {
    (void)state;
    check_levels(GOLDEN "mobilenetv2_100.normalise.npy", true, "{\"pretrained_cfg\": {}}");
    check_levels(
        GOLDEN "vit_tiny_patch16_224.normalise.npy", true,
        "{\"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.5], \"interpolation\": \"bicubic\", \"crop_pct\": 0.9}");
    check_levels(GOLDEN "yolos_tiny_bccd.normalise.npy", false, "{\"rescale_factor\": 0.00392156862745098}");
}

/* A single picture: zeros after normalisation to the right and below, the mask of transformers being unused. */
static void test_padding(void **state) {
    (void)state;
    oct_preprocess preprocess;
    assert_int_equal(
        from_text(&preprocess, false,
                  "{\"size\": {\"height\": 4, \"width\": 5}, \"pad_size\": {\"height\": 6, \"width\": 8}}"),
        OCTET_OK);
    oct_image picture = picture_formula(9, 7, 3), pixels;
    int height, width;
    assert_int_equal(oct_preprocess_size(&preprocess, 9, 7, &height, &width), OCTET_OK);
    assert_int_equal(height, 6);
    assert_int_equal(width, 8);
    assert_int_equal(oct_preprocess_pixels(&preprocess, &picture, &pixels), OCTET_OK);
    assert_int_equal(pixels.height, 4);
    float input[6][8][3], plain[4][5][3];
    memset(input, 0x5a, sizeof input);
    oct_preprocess_normalize(&preprocess, &pixels, &input[0][0][0], 3);
    preprocess.pad = false;
    oct_preprocess_normalize(&preprocess, &pixels, &plain[0][0][0], 3);
    for (int y = 0; y < 6; y++) {
        for (int x = 0; x < 8; x++) {
            for (int c = 0; c < 3; c++) assert_true(input[y][x][c] == (y < 4 && x < 5 ? plain[y][x][c] : 0.0f));
        }
    }
    preprocess.pad = true;
    preprocess.pad_width = 4;
    assert_int_equal(oct_preprocess_size(&preprocess, 9, 7, &height, &width), OCTET_MISMATCH);
    oct_image_free(&picture);
    oct_image_free(&pixels);
}

static void test_switches(void **state) {
    (void)state;
    oct_preprocess preprocess;
    assert_int_equal(
        from_text(&preprocess, false,
                  "{\"do_resize\": false, \"do_rescale\": false, \"do_normalize\": false, \"size\": {\"height\": 1}}"),
        OCTET_OK);
    oct_image picture = picture_formula(3, 2, 1), pixels;
    assert_int_equal(oct_preprocess_pixels(&preprocess, &picture, &pixels), OCTET_OK);
    float input[18];
    oct_preprocess_normalize(&preprocess, &pixels, input, 3);
    for (int i = 0; i < 18; i++) assert_true(input[i] == (float)picture.rgb[i]);
    oct_image_free(&picture);
    oct_image_free(&pixels);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        bool timm;
        const char *text, *word;
    } rows[] = {
        {true, "{\"pretrained_cfg\": {\"interpolation\": \"random\"}}", "random"},
        {true, "{\"pretrained_cfg\": {\"crop_mode\": \"corner\"}}", "corner"},
        {true, "{\"pretrained_cfg\": {\"crop_pct\": -1}}", "crop_pct"},
        {true, "{\"pretrained_cfg\": {\"crop_pct\": 1e-9}}", "crop_pct"},
        {true, "{\"pretrained_cfg\": {\"crop_pct\": 1e9}}", "crop_pct"},
        {true, "{\"pretrained_cfg\": {\"input_size\": [1, 224, 224]}}", "three channels"},
        {true, "{\"pretrained_cfg\": {\"input_size\": [3, 0, 224]}}", "side"},
        {true, "{\"pretrained_cfg\": {\"input_size\": 224}}", "input_size"},
        {true, "{\"pretrained_cfg\": {\"std\": [1, 0, 1]}}", "std"},
        {true, "{\"pretrained_cfg\": {\"mean\": [1, 0]}}", "mean"},
        {true, "{\"pretrained_cfg\": 3}", "pretrained_cfg"},
        {false, "{\"image_processor_type\": \"DetrImageProcessor\"}", "DetrImageProcessor"},
        {false, "{\"size\": {\"longest_edge\": 800}}", "size"},
        {false, "{\"size\": {\"shortest_edge\": 800}}", "size"},
        {false, "{\"size\": {\"height\": 4, \"width\": 4, \"shortest_edge\": 4}}", "size"},
        {false, "{\"size\": {\"height\": 0, \"width\": 4}}", "height"},
        {false, "{\"resample\": 6}", "resample"},
        {false, "{\"image_std\": [0, 1, 1]}", "image_std"},
        {false, "[]", "map"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        oct_preprocess preprocess;
        if (from_text(&preprocess, rows[i].timm, rows[i].text) == OCTET_OK) fail_msg("%s: not refused", rows[i].text);
        if (strstr(oct_error_fact(), rows[i].word) == NULL) fail_msg("%s: \"%s\"", rows[i].text, oct_error_fact());
        if (strstr(oct_error_fact(), "config.json:1") == NULL) fail_msg("no line in \"%s\"", oct_error_fact());
    }
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_description(void **state) {
    (void)state;
    static const struct {
        bool timm;
        const char *text, *line;
    } rows[] = {
        {true, "{\"pretrained_cfg\": {\"interpolation\": \"bilinear\"}}",
         "shortest side to 256 bilinear, centre crop 224 x 224, by 255, mean 0.485 0.456 0.406, std 0.229 0.224 0.225"},
        {false, "{\"size\": {\"height\": 480, \"width\": 640}, \"do_normalize\": false}",
         "to 640 x 480 bilinear, times 0.00392156862745098"},
        {false, "{\"do_normalize\": false, \"do_rescale\": false}",
         "shortest side to 800, longest at most 1333, multiples of 16, bilinear"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        oct_preprocess preprocess;
        oct_text text = {0};
        assert_int_equal(from_text(&preprocess, rows[i].timm, rows[i].text), OCTET_OK);
        oct_preprocess_describe(&preprocess, &text);
        assert_string_equal(text.data, rows[i].line);
        oct_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timm),        cmocka_unit_test(test_yolos),    cmocka_unit_test(test_levels),
        cmocka_unit_test(test_padding),     cmocka_unit_test(test_switches), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
