/* SPDX-License-Identifier: Apache-2.0 */
/* The scale file: written and read again to the bit, refused by the key that differs, and whatever is wrong in it by
 * line. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/random.h"
#include "quant/scales.h"
#include "support/support.h"

#define ONE "1111111111111111111111111111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222222222222222222222222222"

static const float some[] = {0.1f, 0x1p-149f, FLT_MAX, 1};
static const oct_scale scales[] = {
    {.op = "blocks.0.\"odd\" name",
     .format = OCT_FORMAT_E4M3,
     .scales = some,
     .count = 1,
     .amax = 7.25f,
     .threshold = 7.25f,
     .values = 123456,
     .not_finite = 2},
    {.op = "b",
     .format = OCT_FORMAT_INT8,
     .granularity = OCT_PER_CHANNEL,
     .calibrator = OCT_CALIBRATE_PERCENTILE,
     .percentile = 99.99,
     .scales = some,
     .count = 4,
     .amax = FLT_MAX,
     .threshold = 0x1p-149f,
     .has_p9999 = true,
     .p9999 = 3,
     .channels = some,
     .channel_count = 4},
    {.op = "c",
     .format = OCT_FORMAT_UINT8,
     .calibrator = OCT_CALIBRATE_MSE,
     .scales = some + 3,
     .count = 1,
     .zero_point = 128},
    {.op = "d.q", .format = OCT_FORMAT_NVFP4, .granularity = OCT_PER_BLOCK, .scales = some, .count = 1, .amax = 1},
    {.op = "e",
     .format = OCT_FORMAT_MXFP8,
     .granularity = OCT_PER_BLOCK,
     .scales = some,
     .channels = some,
     .channel_count = 2},
    {.op = "f", .format = OCT_FORMAT_INT8, .granularity = OCT_PER_ROW, .scales = some},
};
#define SCALES (sizeof scales / sizeof *scales)
static const float signs[] = {-1.5f, 0, 0x1p-149f};
static const oct_op_vector factors[] = {{"b", some, 1}, {"e", some + 3, 1}};
static const oct_op_vector biases[] = {{"b", signs, 3}};
static const uint8_t codes[] = {0, 0x81, 0x7e, 0xff, 0x10, 0x7d};
static const oct_op_weight rounded[] = {
    {.op = "b", .format = OCT_FORMAT_E4M3, .scales = some, .scale_count = 1, .codes = codes, .count = 2},
    {.op = "c",
     .format = OCT_FORMAT_INT8,
     .granularity = OCT_PER_CHANNEL,
     .scales = some,
     .scale_count = 3,
     .codes = codes,
     .count = 6},
};
static const oct_scale_file file = {
    .keys = {.model = "mobilenetv2_100", .configuration = ONE, .weights = TWO, .preprocessing = ONE, .data = TWO},
    .pictures = 500,
    .recipe = "published",
    .scales = scales,
    .count = SCALES,
    .smoothing = factors,
    .smoothing_count = 2,
    .bias = biases,
    .bias_count = 1,
    .rounded = rounded,
    .rounded_count = 2};

static char *directory;
static const char *path_of(const char *name) {
    return support_join(directory, name);
}
static int begin(void **state) {
    (void)state;
    directory = support_temporary_directory();
    return 0;
}
static int end(void **state) {
    (void)state;
    support_remove_tree(directory);
    free(directory);
    return 0;
}

static void test_there_and_back(void **state) {
    (void)state;
    oct_scale_file back;
    if (oct_scale_file_write(&file, path_of("s.json")) != OCTET_OK ||
        oct_scale_file_read(&back, path_of("s.json")) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    assert_int_equal(back.count, SCALES);
    assert_int_equal(back.pictures, 500);
    assert_string_equal(back.recipe, "published");
    for (size_t i = 0; i < SCALES; i++) {
        const oct_scale *a = &scales[i], *b = oct_scale_file_find(&back, a->op);
        assert_ptr_equal(b, &back.scales[i]);
        assert_true(a->format == b->format && a->granularity == b->granularity && a->calibrator == b->calibrator);
        assert_true(a->percentile == b->percentile && a->amax == b->amax && a->threshold == b->threshold);
        assert_true(a->zero_point == b->zero_point && a->values == b->values && a->not_finite == b->not_finite);
        assert_int_equal(a->count, b->count);
        if (a->count > 0) assert_memory_equal(a->scales, b->scales, a->count * sizeof(float));
        assert_true(a->has_p9999 == b->has_p9999 && a->p9999 == b->p9999);
        assert_int_equal(a->channel_count, b->channel_count);
        if (a->channels != NULL) assert_memory_equal(a->channels, b->channels, a->channel_count * sizeof(float));
    }
    assert_null(oct_scale_file_find(&back, "d"));
    assert_true(oct_scale_file_smoothing(&back, "e")->values[0] == 1 && oct_scale_file_smoothing(&back, "c") == NULL);
    assert_memory_equal(oct_scale_file_bias(&back, "b")->values, signs, sizeof signs);
    assert_null(oct_scale_file_bias(&back, "e"));
    for (size_t i = 0; i < 2; i++) {
        const oct_op_weight *a = &rounded[i], *b = oct_scale_file_weight(&back, a->op);
        assert_true(a->format == b->format && a->granularity == b->granularity && a->count == b->count);
        assert_memory_equal(a->codes, b->codes, a->count);
        assert_memory_equal(a->scales, b->scales, a->scale_count * sizeof(float));
    }
    assert_int_equal(oct_scale_file_check(&back, &file.keys), OCTET_OK);
    /* written again: the same bytes */
    assert_int_equal(oct_scale_file_write(&back, path_of("t.json")), OCTET_OK);
    size_t size = 0, again = 0;
    char *first = support_read_text(path_of("s.json"), &size), *second = support_read_text(path_of("t.json"), &again);
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    free(first);
    free(second);
    oct_scale_file_free(&back);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_refused_by_key(void **state) {
    (void)state;
    static const char *const keys[] = {"model", "configuration", "weights", "preprocessing", "data"};
    for (size_t i = 0; i < 5; i++) {
        oct_scale_keys other = file.keys;
        const char **fields[] = {&other.model, &other.configuration, &other.weights, &other.preprocessing, &other.data};
        char what[64];
        *fields[i] = "other";
        assert_int_equal(oct_scale_file_check(&file, &other), OCTET_MISMATCH);
        (void)snprintf(what, sizeof what, ": %s: expected other, found ", keys[i]);
        assert_non_null(strstr(oct_error_fact(), what));
        assert_true(oct_error_hint()[0] != '\0');
        *fields[i] = NULL;
        assert_int_equal(oct_scale_file_check(&file, &other), OCTET_OK);
    }
}

/* What is written must be readable: a scale that is not above 0, a hash that is none, an op twice. */
static void test_not_written(void **state) {
    (void)state;
    static const float bad[] = {0, -1, -0.0f};
    for (int kind = 0; kind < 5; kind++) {
        oct_scale mine[2] = {scales[0], scales[2]};
        oct_scale_file broken = file;
        broken.scales = mine;
        broken.count = 2;
        if (kind < 3) mine[0].scales = &bad[kind];
        if (kind == 3) mine[1].op = mine[0].op;
        if (kind == 4) broken.keys.data = "none";
        assert_int_not_equal(oct_scale_file_write(&broken, path_of("never.json")), OCTET_OK);
        assert_false(oct_file_exists(path_of("never.json")));
    }
    assert_int_equal(oct_alloc_live(), 0);
}

/* One part of a good file changed: refused, by file and line. */
static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"octet_scales\": 1", "\"octet_scales\": 2"},
        {"\"octet_scales\": 1,", ""},
        {"\"model\": \"mobilenetv2_100\",", ""},
        {"\"weights\"", "\"wights\""},
        {TWO, "22"},
        {"\"pictures\": 500", "\"pictures\": -1"},
        {"\"pictures\": 500", "\"pictures\": 5.5"},
        {"\"format\": \"e4m3\"", "\"format\": \"e4m4\""},
        {"\"format\": \"e4m3\"", "\"format\": \"fp16\""},
        {"\"format\": \"e4m3\"", "\"format\": \"uint8\""},
        {"\"granularity\": \"tensor\"", "\"granularity\": \"row\""}, /* and a scale */
        {"\"granularity\": \"row\"", "\"granularity\": \"tensor\""}, /* and none */
        {"\"granularity\": \"row\"", "\"granularity\": \"rows\""},
        {"\"nvfp4\"", "\"mxfp8\""},
        {"\"mxfp8\"", "\"nvfp4\""},
        {"\"mxfp8\", \"granularity\": \"block\"", "\"mxfp8\", \"granularity\": \"row\""},
        {"\"p9999\": 3", "\"p9999\": -3"},
        {"\"p9999\": 3", "\"p9999\": null"},
        {"\"channels\": [", "\"channels\": [1, "},
        {"\"channels\": [", "\"channels\": [-1, "},
        {"\"smoothing\"", "\"smooting\""},
        {"\"smoothing\": [", "\"smoothing\": 3, \"bias\": ["},
        {"\"values\": [0.10000000149011612]", "\"values\": []"},
        {"\"values\": [0.10000000149011612]", "\"values\": [0]"},
        {"\"values\": [0.10000000149011612]", "\"values\": [1e30]"},
        {"\"values\": [0.10000000149011612]", "\"valuse\": [1]"},
        {"{\"op\": \"e\", \"values\"", "{\"op\": \"b\", \"values\""},
        {"[-1.5, ", "[-1e39, "},
        {"\"AIE=\"", "\"AIE\""},
        {"\"AIE=\"", "\"AIF=\""}, /* a bit left over */
        {"\"AIE=\"", "\"A*E=\""},
        {"\"AIE=\"", "\"\""},
        {"\"AIE=\"", "\"f4E=\""},         /* NaN */
        {"\"AIF+/xB9\"", "\"AIF+/xA=\""}, /* five codes for three channels */
        {"\"AIF+/xB9\"", "\"gIF+/xB9\""}, /* -128 */
        {"\"max\"", "\"maximum\""},
        {"\"max\"", "\"percentile\""},
        {"99.99", "100.5"},
        {"\"granularity\": \"channel\"", "\"granularity\": \"tensor\""},
        {"\"scale\": [", "\"scale\": [0, "},
        {"\"scale\": [", "\"scale\": [\"1\", "},
        {"\"zero_point\": 128", "\"zero_point\": 256"},
        {"\"threshold\": 7.25", "\"threshold\": 7.5"},
        {"\"amax\": 7.25", "\"amax\": -7.25"},
        {"\"amax\": 7.25", "\"amax\": 1e300"},
        {"\"not_finite\": 2", "\"not_finite\": 123457"},
        {"\"op\": \"b\"", "\"op\": \"c\""},
        {"\"op\": \"b\"", "\"op\": 3"},
        {"\"values\"", "\"value\""},
        {"\"scales\": [", "\"scales\": [3, "},
    };
    assert_int_equal(oct_scale_file_write(&file, path_of("s.json")), OCTET_OK);
    char *text = support_read_text(path_of("s.json"), NULL);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        oct_text changed = {0};
        oct_scale_file back;
        const char *at = strstr(text, changes[i].from);
        if (at == NULL) fail_msg("no %s", changes[i].from);
        oct_text_append(&changed, text, (size_t)(at - text));
        oct_text_puts(&changed, changes[i].to);
        oct_text_puts(&changed, at + strlen(changes[i].from));
        if (oct_scale_file_parse(&back, "s.json", changed.data, changed.length) == OCTET_OK)
            fail_msg("%s -> %s was read", changes[i].from, changes[i].to);
        if (strncmp(oct_error_fact(), "s.json:", 7) != 0) fail_msg("%s", oct_error_text());
        assert_null(back.scales);
        oct_text_free(&changed);
    }
    /* any prefix, any bit: read or refused, nothing leaks */
    size_t length = strlen(text);
    uint64_t random = 1;
    for (size_t i = 0; i < 4000; i++) {
        oct_scale_file back;
        size_t at = (size_t)oct_random_below(&random, length);
        char *copy = malloc(length);
        memcpy(copy, text, length);
        copy[at] = (char)(copy[at] ^ (1 << oct_random_below(&random, 7)));
        if (oct_scale_file_parse(&back, "s.json", copy, i % 2 == 0 ? length : at) == OCTET_OK)
            oct_scale_file_free(&back);
        free(copy);
    }
    free(text);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_faults(void **state) {
    (void)state;
    bool met = true;
    for (uint64_t n = 1; met; n++) {
        oct_alloc_fail_at(n, false);
        octet_status status = oct_scale_file_write(&file, path_of("m.json"));
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        assert_int_equal(oct_alloc_live(), 0);
    }
    met = true;
    for (uint64_t n = 1; met; n++) {
        oct_scale_file back;
        oct_alloc_fail_at(n, false);
        octet_status status = oct_scale_file_read(&back, path_of("m.json"));
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        oct_scale_file_free(&back);
        assert_int_equal(oct_alloc_live(), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_refused_by_key),
        cmocka_unit_test(test_not_written),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
