/* SPDX-License-Identifier: Apache-2.0 */
/* Formats with scales: rules at the ends (zeros, subnormals, NaN, infinity), error budgets over random blocks, and
 * cases 32 and 34 of the shared collection. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/document.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "format/format.h"
#include "support/support.h"

#define CASE_VALUES 128

/* ---- E8M0 and the scales of blocks */

static void test_e8m0(void **state) {
    (void)state;
    for (unsigned code = 0; code < OCT_E8M0_NAN; code++) {
        assert_true((double)oct_e8m0_decode((uint8_t)code) == ldexp(1, (int)code - 127));
        assert_int_equal(oct_e8m0_encode(oct_e8m0_decode((uint8_t)code)), code);
        for (int rule = OCT_E8M0_FLOOR; rule <= OCT_E8M0_CEIL; rule++) {
            /* an amax of 448 * 2^k has the scale 2^k by both rules; the next float only by the floor */
            float amax = (float)ldexp(448, (int)code - 127);
            if (!isfinite(amax) || amax < FLT_MIN) continue;
            assert_int_equal(oct_mxfp8_scale(amax, (oct_e8m0_rule)rule), code);
            float above = nextafterf(amax, INFINITY);
            if (isfinite(above))
                assert_int_equal(oct_mxfp8_scale(above, (oct_e8m0_rule)rule), rule == OCT_E8M0_CEIL ? code + 1 : code);
        }
    }
    assert_true(isnan(oct_e8m0_decode(OCT_E8M0_NAN)));
    assert_int_equal(oct_mxfp8_scale(0, OCT_E8M0_FLOOR), 0);
    assert_int_equal(oct_mxfp8_scale(0x1p-149f, OCT_E8M0_CEIL), 0);
    assert_int_equal(oct_mxfp8_scale(INFINITY, OCT_E8M0_FLOOR), OCT_E8M0_NAN);
    assert_int_equal(oct_mxfp8_scale(FLT_MAX, OCT_E8M0_CEIL), 254 - 7);
}

static void check_nan_block(float bad) {
    float values[40] = {0}, back[40];
    uint8_t scales[3], codes[40];
    for (int i = 0; i < 40; i++) values[i] = (float)i - 3;
    values[2] = bad; /* in the first block of either size; the last is short */
    oct_mxfp8_encode(values, 40, OCT_E8M0_FLOOR, scales, codes);
    oct_mxfp8_decode(scales, codes, 40, back);
    for (int i = 0; i < 40; i++) assert_int_equal(!isfinite(back[i]), i < OCT_MXFP8_BLOCK);
    float scale = oct_nvfp4_tensor_scale(oct_amax_finite(values, 40));
    oct_nvfp4_encode(values, 40, scale, scales, codes);
    oct_nvfp4_decode(scales, codes, 40, scale, back);
    for (int i = 0; i < 40; i++) assert_int_equal(!isfinite(back[i]), i < OCT_NVFP4_BLOCK);
}

static void test_not_finite(void **state) {
    (void)state;
    check_nan_block(NAN);
    check_nan_block(INFINITY);
    check_nan_block(-INFINITY);
    float scale;
    uint8_t zero;
    assert_int_equal(oct_int8_encode(NAN, 1), 0);
    assert_int_equal(oct_int8_encode(-NAN, 0x1p-149f), 0);
    assert_int_equal(oct_int8_encode(INFINITY, 1), 127);
    assert_int_equal(oct_int8_encode(-INFINITY, 1), -127);
    assert_int_equal(oct_int8_encode(-128, 1), -127);
    oct_uint8_range(-1, 2, &scale, &zero);
    assert_int_equal(oct_uint8_encode(NAN, scale, zero), zero);
    assert_int_equal(oct_uint8_encode(INFINITY, scale, zero), 255);
    assert_int_equal(oct_uint8_encode(-INFINITY, scale, zero), 0);
    oct_uint8_range(-INFINITY, NAN, &scale, &zero);
    assert_true(isfinite(scale) && scale > 0);
    assert_int_equal(zero, 255);
    const float some[3] = {1, NAN, -INFINITY};
    uint8_t codes[3];
    assert_int_equal(oct_scaled_encode(OCT_FORMAT_INT8, some, 1, 3, 3, (float[]){0.5f}, codes), 1);
    assert_true(isnan(oct_amax(some, 3)) && oct_amax_finite(some, 3) == 1);
}

/* A scale is positive and finite, whatever the amax, and dividing by it stays finite. */
static void test_scales(void **state) {
    (void)state;
    static const float amaxes[] = {0, -0.0f, NAN, INFINITY, FLT_MAX, FLT_MIN, 0x1p-149f, 3e-39f, 1};
    static const oct_format formats[] = {OCT_FORMAT_E4M3, OCT_FORMAT_E5M2, OCT_FORMAT_INT8};
    for (size_t f = 0; f < 3; f++) {
        assert_true(oct_format_has_scale(formats[f]));
        for (size_t i = 0; i < sizeof amaxes / sizeof *amaxes; i++) {
            float scale = oct_format_scale(formats[f], amaxes[i]);
            assert_true(scale > 0 && isfinite(scale));
            if (amaxes[i] > 0 && isfinite(amaxes[i])) assert_true(isfinite(amaxes[i] / scale));
        }
        assert_true(oct_format_scale(formats[f], 0) == 1);
    }
    assert_false(oct_format_has_scale(OCT_FORMAT_MXFP8));
    assert_int_equal(oct_scaled_groups(3, 65, 32), 9);
}

static void test_uint8_zero(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int i = 0; i < 100000; i++) {
        float low = oct_random_signed(&random) * ldexpf(1, (int)oct_random_below(&random, 60) - 30);
        float high = low + fabsf(oct_random_signed(&random)) * ldexpf(1, (int)oct_random_below(&random, 60) - 30);
        float scale;
        uint8_t zero;
        oct_uint8_range(low, high, &scale, &zero);
        assert_int_equal(oct_uint8_encode(0, scale, zero), zero);
        assert_true(oct_uint8_decode(zero, scale, zero) == 0);
        double bound = 0.5 * scale * 1.001 + 0.5 * scale; /* half a code, and the ends by the zero point's rounding */
        float inside = low + (high - low) * (float)oct_random_unit(&random);
        float back = oct_uint8_decode(oct_uint8_encode(inside, scale, zero), scale, zero);
        assert_true(fabs((double)back - inside) <= bound);
    }
}

/* ---- error budgets (formats.def): reached, and never passed */

static void fill(float *values, size_t count, uint64_t *random) {
    float base = ldexpf(1 + (float)oct_random_unit(random), (int)oct_random_below(random, 40) - 20);
    for (size_t i = 0; i < count; i++) values[i] = base * oct_random_signed(random);
}

static double worst_of(const float *values, const float *back, size_t count, double worst) {
    double amax = oct_amax(values, count);
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)values[i] - back[i]) / amax;
        if (error > worst) worst = error;
    }
    return worst;
}

static void test_budgets(void **state) {
    (void)state;
    double floor_rule = 0, ceil_rule = 0, nvfp4 = 0, int8 = 0;
    uint64_t random = 5;
    for (int n = 0; n < 40000; n++) {
        float values[OCT_MXFP8_BLOCK], back[OCT_MXFP8_BLOCK];
        uint8_t scales[2], codes[OCT_MXFP8_BLOCK];
        fill(values, OCT_MXFP8_BLOCK, &random);
        oct_mxfp8_encode(values, OCT_MXFP8_BLOCK, OCT_E8M0_FLOOR, scales, codes);
        oct_mxfp8_decode(scales, codes, OCT_MXFP8_BLOCK, back);
        floor_rule = worst_of(values, back, OCT_MXFP8_BLOCK, floor_rule);
        oct_mxfp8_encode(values, OCT_MXFP8_BLOCK, OCT_E8M0_CEIL, scales, codes);
        oct_mxfp8_decode(scales, codes, OCT_MXFP8_BLOCK, back);
        ceil_rule = worst_of(values, back, OCT_MXFP8_BLOCK, ceil_rule);
        /* one block under every tensor scale that leaves its own scale normal */
        float amax = oct_amax(values, OCT_NVFP4_BLOCK);
        float scale =
            amax / 6 / ldexpf(1 + (float)oct_random_unit(&random) * 0.75f, (int)oct_random_below(&random, 15) - 6);
        oct_nvfp4_encode(values, OCT_NVFP4_BLOCK, scale, scales, codes);
        oct_nvfp4_decode(scales, codes, OCT_NVFP4_BLOCK, scale, back);
        nvfp4 = worst_of(values, back, OCT_NVFP4_BLOCK, nvfp4);
        float wide[1];
        oct_scaled_scales(OCT_FORMAT_INT8, values, 1, OCT_MXFP8_BLOCK, OCT_MXFP8_BLOCK, wide);
        oct_scaled_encode(OCT_FORMAT_INT8, values, 1, OCT_MXFP8_BLOCK, OCT_MXFP8_BLOCK, wide, codes);
        oct_scaled_decode(OCT_FORMAT_INT8, codes, 1, OCT_MXFP8_BLOCK, OCT_MXFP8_BLOCK, wide, back);
        for (int i = 0; i < OCT_MXFP8_BLOCK; i++) {
            double error = fabs((double)values[i] - back[i]) / wide[0];
            if (error > int8) int8 = error;
        }
    }
    print_message("worst error, of the block's largest: mxfp8 %.5f (floor), %.5f (ceil), nvfp4 %.5f; int8 %.5f codes\n",
                  floor_rule, ceil_rule, nvfp4, int8);
    double budget = oct_format_get(OCT_FORMAT_MXFP8)->error;
    assert_true(floor_rule <= budget && floor_rule > 0.9 * budget);
    assert_true(ceil_rule <= 0x1p-4 && ceil_rule > 0.9 * 0x1p-4);
    budget = oct_format_get(OCT_FORMAT_NVFP4)->error;
    assert_true(nvfp4 <= budget * (1 + 1e-6) && nvfp4 > 0.9 * budget);
    assert_true(int8 <= 0.5 * (1 + 1e-5) && int8 > 0.49);
}

/* Quantizing what was quantized moves nothing. */
static void test_again(void **state) {
    (void)state;
    static const oct_format formats[] = {OCT_FORMAT_E4M3, OCT_FORMAT_E5M2, OCT_FORMAT_INT8};
    uint64_t random = 6;
    for (int n = 0; n < 3000; n++) {
        float values[64], back[64], scales[8];
        uint8_t codes[64], again[64];
        fill(values, 64, &random);
        for (size_t f = 0; f < 3; f++) {
            oct_scaled_scales(formats[f], values, 4, 16, 8, scales);
            oct_scaled_encode(formats[f], values, 4, 16, 8, scales, codes);
            oct_scaled_decode(formats[f], codes, 4, 16, 8, scales, back);
            oct_scaled_encode(formats[f], back, 4, 16, 8, scales, again);
            assert_memory_equal(codes, again, sizeof codes);
            oct_scaled_scales(formats[f], back, 4, 16, 8, scales);
            oct_scaled_encode(formats[f], back, 4, 16, 8, scales, again);
            assert_memory_equal(codes, again, sizeof codes);
        }
        uint8_t mx[2], mx_again[2];
        oct_mxfp8_encode(values, 64, OCT_E8M0_FLOOR, mx, codes);
        oct_mxfp8_decode(mx, codes, 64, back);
        oct_mxfp8_encode(back, 64, OCT_E8M0_FLOOR, mx_again, again);
        assert_memory_equal(codes, again, sizeof codes);
        assert_memory_equal(mx, mx_again, sizeof mx);
    }
}

/* ---- shared cases */

static const oct_node *open_case(oct_document *document, const char *name) {
    const char *path = support_shared(name);
    if (path == NULL) return NULL;
    if (oct_document_read(document, path, OCT_DOCUMENT_LIMIT) != OCTET_OK) fail_msg("%s", oct_error_text());
    return oct_node_get(document->root, "expect");
}

static size_t read_words(const oct_node *list, float values[CASE_VALUES]) {
    assert_true(list != NULL && list->count <= CASE_VALUES);
    for (size_t i = 0; i < list->count; i++) {
        uint32_t word = (uint32_t)strtoul(list->items[i]->string, NULL, 16);
        memcpy(&values[i], &word, sizeof word);
    }
    return list->count;
}

static void check_mxfp8(const char *name, const oct_node *block, oct_e8m0_rule rule, const char *key) {
    float values[CASE_VALUES], back[CASE_VALUES];
    uint8_t scale, codes[CASE_VALUES];
    size_t count = read_words(oct_node_get(block, "bits"), values);
    const oct_node *expected = oct_node_get(block, key);
    oct_mxfp8_encode(values, count, rule, &scale, codes);
    oct_mxfp8_decode(&scale, codes, count, back);
    if (scale != strtoul(oct_node_get(expected, "scale_code")->string, NULL, 16)) fail_msg("%s: %s: scale", name, key);
    const char *hex = oct_node_get(expected, "codes")->string;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(isnan(back[i]), scale == OCT_E8M0_NAN);
        if (scale == OCT_E8M0_NAN) continue;
        const char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        if (codes[i] != strtoul(two, NULL, 16)) fail_msg("%s: %s: code %zu", name, key, i);
    }
}

static void check_nvfp4(const char *name, const oct_node *tensor) {
    float values[CASE_VALUES], back[CASE_VALUES];
    uint8_t scales[CASE_VALUES], codes[CASE_VALUES];
    size_t count = read_words(oct_node_get(tensor, "bits"), values);
    float scale = oct_nvfp4_tensor_scale(oct_amax_finite(values, count));
    assert_true(scale == (float)oct_node_get(tensor, "tensor_scale")->real);
    oct_nvfp4_encode(values, count, scale, scales, codes);
    oct_nvfp4_decode(scales, codes, count, scale, back);
    for (size_t i = 0; i < count; i++) {
        const char *code = oct_node_get(tensor, "codes")->items[i / OCT_NVFP4_BLOCK]->string + i % OCT_NVFP4_BLOCK;
        const char *block = oct_node_get(tensor, "block_scale_codes")->items[i / OCT_NVFP4_BLOCK]->string;
        const char one[2] = {*code, '\0'};
        if (scales[i / OCT_NVFP4_BLOCK] != strtoul(block, NULL, 16)) fail_msg("%s: scale of value %zu", name, i);
        if ((codes[i / 2] >> 4 * (i % 2) & 15) != (int)strtoul(one, NULL, 16)) fail_msg("%s: code %zu", name, i);
        assert_true(isfinite(back[i]));
    }
}

static void test_block_scales_case(void **state) {
    (void)state;
    oct_document document = {0};
    const oct_node *expect = open_case(&document, "cases/32-block-scales/expected.json");
    if (expect == NULL) SUPPORT_SKIP("shared cases/32-block-scales is not here");
    for (size_t i = 0; i < expect->count; i++) {
        if (oct_starts_with(expect->keys[i], "nvfp4_")) {
            check_nvfp4(expect->keys[i], expect->items[i]);
        } else {
            check_mxfp8(expect->keys[i], expect->items[i], OCT_E8M0_FLOOR, "mxfp8_e4m3_floor");
            check_mxfp8(expect->keys[i], expect->items[i], OCT_E8M0_CEIL, "mxfp8_e4m3_ceil");
        }
    }
    const oct_node *powers = oct_node_get(document.root, "e8m0_of_ml_dtypes");
    for (size_t i = 0; i < powers->count; i++) {
        if (strcmp(powers->keys[i], "1.5") == 0) continue; /* there 1.4999999, printed short */
        assert_int_equal(oct_e8m0_encode(strtof(powers->keys[i], NULL)), strtoul(powers->items[i]->string, NULL, 16));
    }
    oct_document_free(&document);
}

static void check_symmetric(const char *name, const oct_node *entry) {
    const oct_node *x = oct_node_get(entry, "x"), *symmetric = oct_node_get(entry, "symmetric");
    const oct_node *expected = oct_node_get(symmetric, "codes");
    float values[CASE_VALUES], scale;
    uint8_t codes[CASE_VALUES];
    for (size_t i = 0; i < x->count; i++) values[i] = (float)x->items[i]->real;
    oct_scaled_scales(OCT_FORMAT_INT8, values, 1, x->count, x->count, &scale);
    oct_scaled_encode(OCT_FORMAT_INT8, values, 1, x->count, x->count, &scale, codes);
    if (scale != (float)oct_node_get(symmetric, "scale")->real) fail_msg("%s: scale", name);
    for (size_t i = 0; i < x->count; i++)
        if ((int8_t)codes[i] != expected->items[i]->integer) fail_msg("%s: code %zu", name, i);
}

/* The case's codes are signed, 128 below ours. */
static void check_asymmetric(const char *name, const oct_node *entry) {
    float low, high, scale;
    uint8_t zero;
    if (sscanf(name, "asymmetric [%f, %f]", &low, &high) != 2) fail_msg("%s: no range", name);
    double exact_low = strtod(strchr(name, '[') + 1, NULL);
    assert_true((float)exact_low == low);
    oct_uint8_range(low, high, &scale, &zero);
    float expected = (float)oct_node_get(entry, "scale")->real;
    /* the case divides the range in double, given in decimal; ours is given in float */
    assert_true(fabsf(scale - expected) <= 0x1p-23f * expected);
    assert_int_equal(zero - 128, oct_node_get(entry, "zero_point")->integer);
    assert_int_equal(oct_uint8_encode(0, scale, zero) - 128, oct_node_get(entry, "code_of_zero")->integer);
    assert_int_equal(oct_uint8_encode(high, scale, zero) - 128, oct_node_get(entry, "code_of_hi")->integer);
    assert_int_equal(oct_uint8_encode(low, scale, zero) - 128, oct_node_get(entry, "code_of_lo")->integer);
}

static void test_int8_case(void **state) {
    (void)state;
    oct_document document = {0};
    const oct_node *expect = open_case(&document, "cases/34-int8-codes/expected.json");
    if (expect == NULL) SUPPORT_SKIP("shared cases/34-int8-codes is not here");
    for (size_t i = 0; i < expect->count; i++) {
        if (oct_starts_with(expect->keys[i], "asymmetric"))
            check_asymmetric(expect->keys[i], expect->items[i]);
        else
            check_symmetric(expect->keys[i], expect->items[i]);
    }
    oct_document_free(&document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e8m0),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_uint8_zero),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_block_scales_case),
        cmocka_unit_test(test_int8_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
