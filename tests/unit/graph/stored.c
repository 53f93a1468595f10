/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to stored forms, against the format functions applied number by number as graph/stored.h says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "graph/stored.h"

#define ROWS 5
#define CHANNELS 77 /* a last block of mxfp8, nvfp4 and others is short */
#define COUNT (ROWS * CHANNELS)

static const oct_format formats[] = {OCT_FORMAT_FP16, OCT_FORMAT_BF16,  OCT_FORMAT_E4M3,  OCT_FORMAT_E5M2,
                                     OCT_FORMAT_INT8, OCT_FORMAT_UINT8, OCT_FORMAT_MXFP8, OCT_FORMAT_NVFP4};

static float draw(uint64_t *random) {
    static const float odd[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 65504.0f, 65520.0f, 1e-42f, 448.0f, -0x1p-7f};
    if (oct_random_below(random, 40) == 0) return odd[oct_random_below(random, sizeof odd / sizeof *odd)];
    return ldexpf(oct_random_signed(random), (int)oct_random_below(random, 24) - 12);
}

static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* The largest finite magnitude, at the scale that stored.h gives it. */
static float found_scale(oct_format format, const float *y, int64_t count) {
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(y[i]) && fabsf(y[i]) > most) most = fabsf(y[i]);
    if (most == 0) return 1;
    const float largest = format == OCT_FORMAT_INT8 ? 127.0f : (format == OCT_FORMAT_E4M3 ? 448.0f : 57344.0f);
    return fmaxf(most / largest, OCT_SCALE_LEAST);
}

static float number(const oct_form *form, float y, float scale) {
    const float x = y * (1.0f / scale);
    float code;
    switch (form->format) {
    case OCT_FORMAT_FP16:
        return oct_fp16_decode(oct_fp16_encode(y));
    case OCT_FORMAT_BF16:
        return oct_bf16_decode(oct_bf16_encode(y));
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(oct_e4m3_encode(x)) * scale;
    case OCT_FORMAT_E5M2:
        return oct_e5m2_decode(oct_e5m2_encode(x)) * scale;
    case OCT_FORMAT_INT8:
        code = isnan(x) ? 0 : rintf(fminf(fmaxf(x, -127), 127));
        return (code == 0 ? 0.0f : code) * scale;
    default: /* uint8 */
        code = isnan(x) ? 0 : rintf(fminf(fmaxf(x, -255), 255));
        code = fminf(fmaxf(code + (float)form->zero_point, 0), 255) - (float)form->zero_point;
        return (code == 0 ? 0.0f : code) * scale;
    }
}

static void expect_block(const oct_form *form, const float *y, int64_t count, float *out) {
    uint8_t scales[CHANNELS], codes[CHANNELS];
    if (form->format == OCT_FORMAT_MXFP8) {
        oct_mxfp8_encode(y, (size_t)count, form->scale_rule, scales, codes);
        oct_mxfp8_decode(scales, codes, (size_t)count, out);
    } else {
        oct_nvfp4_encode(y, (size_t)count, form->scale, scales, codes);
        oct_nvfp4_decode(scales, codes, (size_t)count, form->scale, out);
    }
}

static void expect_row(const oct_rounding *r, const float *x, float *out) {
    const oct_form *form = r->form;
    float y[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) y[c] = r->factors != NULL ? x[c] * r->factors[c] : x[c];
    if (form->format == OCT_FORMAT_MXFP8 || form->format == OCT_FORMAT_NVFP4) {
        expect_block(form, y, CHANNELS, out);
        return;
    }
    const int block = form->granularity == OCT_PER_BLOCK ? form->block : CHANNELS;
    for (int c = 0; c < CHANNELS; c++) {
        const int first = c / block * block, count = CHANNELS - first < block ? CHANNELS - first : block;
        float scale = form->scale;
        if (form->granularity == OCT_PER_CHANNEL) scale = r->scales[c];
        if (form->granularity == OCT_PER_ROW || form->granularity == OCT_PER_BLOCK)
            scale = found_scale(form->format, y + first, count);
        out[c] = number(form, y[c], scale);
    }
}

static oct_form draw_form(uint64_t *random) {
    oct_form form = oct_form_of(formats[oct_random_below(random, sizeof formats / sizeof *formats)]);
    const bool own = form.format == OCT_FORMAT_MXFP8 || form.format == OCT_FORMAT_NVFP4;
    form.scale = ldexpf(1.0f + fabsf(oct_random_signed(random)), (int)oct_random_below(random, 12) - 8);
    form.scale_rule = (oct_e8m0_rule)oct_random_below(random, 2);
    form.zero_point = (uint8_t)oct_random_below(random, 256);
    if (own) form.granularity = OCT_PER_BLOCK;
    if (oct_format_has_scale(form.format)) form.granularity = (oct_granularity)oct_random_below(random, 4);
    if (form.format == OCT_FORMAT_UINT8) form.granularity = (oct_granularity)oct_random_below(random, 2);
    if (form.granularity == OCT_PER_BLOCK) form.block = (int32_t)oct_random_below(random, 90) + 1;
    if (own) form.block = form.format == OCT_FORMAT_MXFP8 ? OCT_MXFP8_BLOCK : OCT_NVFP4_BLOCK;
    return form;
}

static void numbers_are_what_codes_stand_for(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < 2000; round++) {
        float x[COUNT], out[COUNT], right[CHANNELS], scales[CHANNELS], factors[CHANNELS];
        for (int i = 0; i < COUNT; i++) x[i] = draw(&random);
        for (int c = 0; c < CHANNELS; c++) {
            scales[c] = 0.01f + fabsf(oct_random_signed(&random));
            factors[c] = 0.5f + fabsf(oct_random_signed(&random));
        }
        const oct_form form = draw_form(&random);
        const oct_rounding r = {&form, scales, round % 3 == 0 ? factors : NULL};
        oct_stored_round(&r, ROWS, CHANNELS, x, out, NULL, NULL);
        for (int i = 0; i < COUNT; i++) {
            if (i % CHANNELS == 0) expect_row(&r, x + i, right);
            if (!same(out[i], right[i % CHANNELS]))
                fail_msg("round %d, %s, number %d: from %a expected %a, found %a", round, oct_format_name(form.format),
                         i, (double)x[i], (double)right[i % CHANNELS], (double)out[i]);
        }
        oct_stored_round(&r, ROWS, CHANNELS, x, x, NULL, NULL); /* in place */
        for (int i = 0; i < COUNT; i++) assert_true(same(x[i], out[i]));
    }
}

/* Codes and scales of int8 stand for the numbers that come beside them. */
static void codes_are_the_numbers(void **state) {
    (void)state;
    uint64_t random = 12;
    for (int round = 0; round < 200; round++) {
        float x[COUNT], out[COUNT], scales[ROWS];
        int8_t codes[COUNT];
        for (int i = 0; i < COUNT; i++) x[i] = draw(&random);
        oct_form form = oct_form_of(OCT_FORMAT_INT8);
        form.scale = 0.03f;
        if (round % 2 == 0) form.granularity = OCT_PER_ROW;
        const oct_rounding r = {&form, NULL, NULL};
        oct_stored_round(&r, ROWS, CHANNELS, x, out, codes, scales);
        for (int i = 0; i < COUNT; i++) {
            assert_true(codes[i] >= -127);
            const float scale = form.granularity == OCT_PER_ROW ? scales[i / CHANNELS] : form.scale;
            assert_true(same(out[i], (float)codes[i] * scale));
        }
    }
}

/* Which products are of codes. */
static void the_predicate_of_int8_products(void **state) {
    (void)state;
    const oct_form int8 = oct_form_of(OCT_FORMAT_INT8), e4m3 = oct_form_of(OCT_FORMAT_E4M3);
    const oct_shape one = oct_shape_of(4, (const int64_t[]){8, 1, 1, 16});
    const oct_shape deep = oct_shape_of(2, (const int64_t[]){2, OCT_INT8_DEPTH + 1});
    oct_attributes a = {.stride_h = 1, .stride_w = 1, .groups = 1};
    oct_form rows = int8, wide = int8;
    rows.granularity = OCT_PER_ROW;
    wide.held_wide = true;
    assert_true(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &int8, &int8));
    assert_true(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &rows, &int8));
    assert_false(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &int8, &e4m3));
    assert_false(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &e4m3, &int8));
    assert_false(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &wide, &int8));
    assert_false(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &int8, &wide));
    assert_false(oct_stored_is_int8_product(OCT_OP_ADD, &a, &one, &int8, &int8));
    assert_false(oct_stored_is_int8_product(OCT_OP_LINEAR, &a, &deep, &int8, &int8));
    a.stride_w = 2; /* a row of the output is no row of the input */
    assert_true(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &int8, &int8));
    assert_false(oct_stored_is_int8_product(OCT_OP_CONV2D, &a, &one, &rows, &int8));
}

static void forms_as_text(void **state) {
    (void)state;
    oct_form form = oct_form_of(OCT_FORMAT_E4M3);
    oct_text text = {0};
    oct_form_print(&form, &text);
    oct_text_puts(&text, ", ");
    form.granularity = OCT_PER_BLOCK;
    form.block = 128;
    form.factors = 3;
    oct_form_print(&form, &text);
    oct_text_puts(&text, ", ");
    form = oct_form_of(OCT_FORMAT_FP16);
    oct_form_print(&form, &text);
    assert_string_equal(text.data, "e4m3 tensor, e4m3 block 128 smoothed, fp16");
    oct_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_what_codes_stand_for),
        cmocka_unit_test(codes_are_the_numbers),
        cmocka_unit_test(the_predicate_of_int8_products),
        cmocka_unit_test(forms_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
