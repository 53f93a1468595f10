/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and weights as bytes: what was written is read, and of any other bytes either a plan that writes the same bytes
 * again, or a failure that says where; memory comes back either way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "engine/plan_file.h"

#define FAILS(expression, expected, words)                                                                             \
    do {                                                                                                               \
        octet_status fails_got = (expression);                                                                         \
        if (fails_got != (expected) || strstr(oct_error_text(), (words)) == NULL)                                      \
            fail_msg("expected %d with \"%s\", found %d: %s", (int)(expected), (words), (int)fails_got,                \
                     oct_error_text());                                                                                \
    } while (0)

/* ---- plans */

/* Two steps, three tensors, no field as by default. Nothing of it is on the heap. */
static oct_plan *some_plan(void) {
    static int32_t outputs[] = {2, 1};
    static oct_plan_tensor tensors[3];
    static oct_plan_step steps[2];
    static oct_plan plan;
    static const char *const names[] = {"input", "hidden", "logits"};
    for (int i = 0; i < 3; i++) {
        tensors[i] = (oct_plan_tensor){.name = names[i],
                                       .shape = {.rank = i + 2, .dims = {3, 5, 7, 9}},
                                       .form = {.format = i == 1 ? OCT_FORMAT_E4M3 : OCT_FORMAT_FP32,
                                                .granularity = OCT_PER_CHANNEL,
                                                .scale = 0.25f * (float)i,
                                                .scales = i - 1,
                                                .factors = i == 1 ? 5 : OCT_NONE,
                                                .block = i == 1 ? 32 : 0,
                                                .zero_point = i == 1 ? 200 : 0,
                                                .scale_rule = i == 1 ? OCT_E8M0_CEIL : OCT_E8M0_FLOOR,
                                                .held_wide = i >= 1,
                                                .channel_stride = 16 + i},
                                       .offset = 64 * (uint64_t)i,
                                       .size = 100 + (uint64_t)i,
                                       .first = i - 1,
                                       .last = 2,
                                       .is_output = i > 0};
    }
    for (int i = 0; i < 2; i++) {
        steps[i] = (oct_plan_step){.op = i == 0 ? OCT_OP_CONV2D : OCT_OP_LINEAR,
                                   .name = i == 0 ? "a \xc3\xa9" : "",
                                   .tactic = "gemm_f32_c",
                                   .attributes = {.stride_h = 1,
                                                  .stride_w = 2,
                                                  .pad_top = 3,
                                                  .pad_left = 4,
                                                  .pad_bottom = 5,
                                                  .pad_right = 6,
                                                  .groups = 7,
                                                  .activation = (oct_activation)1,
                                                  .epsilon = 1e-5,
                                                  .heads = 8,
                                                  .scale = 0.125,
                                                  .probabilities = i == 1 ? OCT_FORMAT_E4M3 : OCT_FORMAT_FP32,
                                                  .start = 9,
                                                  .length = 10,
                                                  .shape = {.rank = 1, .dims = {11}},
                                                  .has_bias = true,
                                                  .has_residual = i == 1},
                                   .inputs = {{OCT_OPERAND_TENSOR, i}, {OCT_OPERAND_CONSTANT, i + 1}},
                                   .input_count = 2,
                                   .output = i + 1,
                                   .flops = 12,
                                   .bytes = 13};
    }
    plan = (oct_plan){.backend = "cpu",
                      .batch = 3,
                      .outputs = outputs,
                      .output_count = 2,
                      .tensors = tensors,
                      .tensor_count = 3,
                      .steps = steps,
                      .step_count = 2,
                      .arena_size = 4096};
    return &plan;
}

static oct_text bytes_of(const oct_plan *plan) {
    oct_text out = {0};
    oct_plan_write(plan, &out);
    assert_false(out.failed);
    return out;
}

static octet_status read_plan(oct_plan **plan, const oct_text *bytes, size_t size) {
    return oct_plan_read(plan, "plan x", (const uint8_t *)bytes->data, size);
}

/* What was read writes the bytes it came from. */
static void assert_same_bytes(const oct_plan *plan, const oct_text *bytes) {
    oct_text again = bytes_of(plan);
    assert_int_equal(again.length, bytes->length);
    assert_memory_equal(again.data, bytes->data, bytes->length);
    oct_text_free(&again);
}

static void reads_what_was_written(void **state) {
    (void)state;
    oct_plan *plan = NULL;
    oct_text bytes = bytes_of(some_plan());
    assert_int_equal(read_plan(&plan, &bytes, bytes.length), OCTET_OK);
    assert_same_bytes(plan, &bytes);
    const oct_plan_step *step = &plan->steps[1], *was = &some_plan()->steps[1];
    assert_string_equal(plan->steps[0].name, some_plan()->steps[0].name);
    assert_string_equal(step->tactic, "gemm_f32_c");
    assert_int_equal(step->inputs[1].kind, OCT_OPERAND_CONSTANT);
    assert_int_equal(step->attributes.pad_right, 6);
    assert_true(step->attributes.has_residual && !plan->steps[0].attributes.has_residual);
    assert_int_equal(step->flops, was->flops);
    assert_int_equal(step->attributes.probabilities, OCT_FORMAT_E4M3);
    assert_string_equal(plan->tensors[2].name, "logits");
    const oct_form *form = &plan->tensors[1].form;
    assert_int_equal(form->factors, 5);
    assert_int_equal(form->block, 32);
    assert_int_equal(form->zero_point, 200);
    assert_int_equal(form->scale_rule, OCT_E8M0_CEIL);
    assert_true(form->held_wide && !plan->tensors[0].form.held_wide);
    assert_int_equal(plan->tensors[2].shape.dims[3], 9);
    oct_plan_free(plan);
    oct_text_free(&bytes);
}

static void cut_plans_are_refused(void **state) {
    (void)state;
    oct_plan *plan = NULL;
    oct_text bytes = bytes_of(some_plan());
    int64_t live = oct_alloc_live();
    for (size_t size = 0; size < bytes.length; size++) {
        FAILS(read_plan(&plan, &bytes, size), OCTET_BAD_FORMAT, "plan x: byte");
        assert_null(plan);
        assert_int_equal(oct_alloc_live(), live);
    }
    oct_put_u8(&bytes, 0);
    FAILS(read_plan(&plan, &bytes, bytes.length), OCTET_BAD_FORMAT, "plan x: 1 bytes after the plan");
    oct_text_free(&bytes);
}

/* Every byte takes every value. */
static void changed_plans_are_plans_or_refused(void **state) {
    (void)state;
    oct_text bytes = bytes_of(some_plan());
    int64_t live = oct_alloc_live();
    size_t read = 0, refused = 0;
    for (size_t i = 0; i < bytes.length; i++) {
        const char before = bytes.data[i];
        for (int value = 0; value < 256; value++) {
            oct_plan *plan = NULL;
            bytes.data[i] = (char)value;
            octet_status status = read_plan(&plan, &bytes, bytes.length);
            if (status == OCTET_OK) {
                assert_same_bytes(plan, &bytes);
                oct_plan_free(plan);
                read++;
            } else {
                assert_int_equal(status, OCTET_BAD_FORMAT);
                refused++;
            }
            assert_int_equal(oct_alloc_live(), live);
        }
        bytes.data[i] = before;
    }
    assert_true(read > 1000 && refused > 1000);
    oct_text_free(&bytes);
}

/* The first `from` in the bytes becomes `to`, of the same length. */
static void replace(oct_text *bytes, const char *from, const char *to) {
    for (size_t i = 0; i + strlen(from) <= bytes->length; i++) {
        if (memcmp(bytes->data + i, from, strlen(from)) != 0) continue;
        memcpy(bytes->data + i, to, strlen(to));
        return;
    }
    fail_msg("no %s", from);
}

static void unknown_names_are_told(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        {"conv2d", "conv9d", "no op called \"conv9d\""},
        {"fp32", "fp99", "no format called \"fp99\""},
        {"hidden", "hid\1en", NULL}, /* any name will do */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        oct_plan *plan = NULL;
        oct_text bytes = bytes_of(some_plan());
        replace(&bytes, cases[i].from, cases[i].to);
        if (cases[i].words != NULL)
            FAILS(read_plan(&plan, &bytes, bytes.length), OCTET_BAD_FORMAT, cases[i].words);
        else
            assert_int_equal(read_plan(&plan, &bytes, bytes.length), OCTET_OK);
        oct_plan_free(plan);
        oct_text_free(&bytes);
    }
}

static void plans_without_memory(void **state) {
    (void)state;
    oct_text bytes = bytes_of(some_plan());
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++) {
            oct_plan *plan = NULL;
            int64_t live = oct_alloc_live();
            oct_alloc_fail_at(n, forever != 0);
            octet_status status = read_plan(&plan, &bytes, bytes.length);
            bool met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            oct_plan_free(plan);
            assert_int_equal(oct_alloc_live(), live);
            assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
            if (!met) break;
        }
    }
    oct_text_free(&bytes);
}

/* ---- weights */

static float first_values[10], second_values[3] = {1.0f, -2.0f, 3.5f};

static oct_weights *some_weights(void) {
    static oct_constant items[2];
    static oct_weights weights;
    for (int i = 0; i < 10; i++) first_values[i] = (float)i;
    items[0] = (oct_constant){.name = "conv.weight",
                              .shape = {.rank = 2, .dims = {2, 5}},
                              .data = first_values,
                              .form = {.scale = 1.0f, .scales = OCT_NONE, .factors = OCT_NONE}};
    items[1] = (oct_constant){.name = "conv.bias",
                              .shape = {.rank = 1, .dims = {3}},
                              .data = second_values,
                              .form = {.scale = 1.0f, .scales = OCT_NONE, .factors = OCT_NONE}};
    weights = (oct_weights){.items = items, .count = 2, .references = 1};
    return &weights;
}

static octet_status append(void *user, const void *data, size_t size) {
    oct_text_append(user, data, size);
    return OCTET_OK;
}

typedef struct memory {
    const oct_text *bytes;
    size_t at, fail_after;
} memory;

static octet_status read_memory(void *user, void *data, size_t size) {
    memory *from = user;
    if (from->at >= from->fail_after) return oct_fail(OCTET_IO, "the disk is gone");
    memcpy(data, from->bytes->data + from->at, size);
    from->at += size;
    return OCTET_OK;
}

static octet_status read_weights(oct_weights **weights, const oct_text *bytes, size_t size) {
    memory from = {bytes, 0, SIZE_MAX};
    return oct_weights_read(weights, "weights", size, read_memory, &from);
}

static oct_text weights_bytes(void) {
    oct_text out = {0};
    assert_int_equal(oct_weights_write(some_weights(), append, &out), OCTET_OK);
    assert_int_equal(out.length, oct_weights_file_size(some_weights()));
    assert_int_equal(out.length % 64, 0);
    return out;
}

static void weights_come_back(void **state) {
    (void)state;
    oct_weights *weights = NULL;
    oct_text bytes = weights_bytes();
    assert_int_equal(read_weights(&weights, &bytes, bytes.length), OCTET_OK);
    assert_int_equal(weights->count, 2);
    assert_string_equal(weights->items[1].name, "conv.bias");
    assert_int_equal(weights->items[0].shape.dims[1], 5);
    assert_memory_equal(weights->items[0].data, first_values, sizeof first_values);
    assert_memory_equal(weights->items[1].data, second_values, sizeof second_values);
    oct_weights_release(weights);
    oct_text_free(&bytes);
}

static void cut_weights_are_refused(void **state) {
    (void)state;
    oct_weights *weights = NULL;
    oct_text bytes = weights_bytes();
    int64_t live = oct_alloc_live();
    for (size_t size = 0; size < bytes.length; size++) {
        FAILS(read_weights(&weights, &bytes, size), OCTET_BAD_FORMAT, "weights: ");
        assert_null(weights);
        assert_int_equal(oct_alloc_live(), live);
    }
    for (size_t i = 0; i < 64; i++) oct_put_u8(&bytes, 0);
    FAILS(read_weights(&weights, &bytes, bytes.length), OCTET_BAD_FORMAT, "64 bytes after the last constant");
    oct_text_free(&bytes);
}

/* Any byte but the values' own and the names' changes what is said, or is refused. */
static void changed_weights_are_weights_or_refused(void **state) {
    (void)state;
    oct_text bytes = weights_bytes();
    int64_t live = oct_alloc_live();
    for (size_t i = 0; i < bytes.length; i++) {
        const char before = bytes.data[i];
        for (int value = 0; value < 256; value++) {
            oct_weights *weights = NULL;
            bytes.data[i] = (char)value;
            octet_status status = read_weights(&weights, &bytes, bytes.length);
            if (status == OCTET_OK) {
                oct_text again = {0};
                assert_int_equal(oct_weights_write(weights, append, &again), OCTET_OK);
                assert_int_equal(again.length, bytes.length);
                assert_memory_equal(again.data, bytes.data, bytes.length);
                oct_text_free(&again);
            } else if (status != OCTET_UNSUPPORTED) {
                assert_int_equal(status, OCTET_BAD_FORMAT);
            }
            oct_weights_release(weights);
            assert_int_equal(oct_alloc_live(), live);
        }
        bytes.data[i] = before;
    }
    oct_text_free(&bytes);
}

/* Narrow constants: fp16 and bf16, two bytes a number; blocks, as numbers; codes with scales. */
static oct_weights *narrow_weights(void) {
    static float halves[4] = {65504.0f, 0x1p-24f, -0.0f, -1.5f}, upper[3] = {0x1.fep127f, -0x1p-120f, 3.0f};
    static float blocks[5] = {1, 2, 3, 0, -6}, scales[2] = {0.5f, 0.25f};
    static uint8_t codes[6] = {0, 1, 0x7e, 0xfe, 8, 9};
    static float fours[19] = {0, -0.0f, 1.5f, -3, 0.25f}; /* under scales 0.5, and one less for the last three */
    static oct_constant items[6];
    static oct_weights weights;
    fours[16] = 0.125f;
    fours[17] = -0.25f;
    for (int i = 0; i < 6; i++) items[i].form = oct_form_of(OCT_FORMAT_FP32);
    items[0] = (oct_constant){"fp16", {.rank = 1, .dims = {4}}, .data = halves, .form = items[0].form};
    items[0].form.format = OCT_FORMAT_FP16;
    items[1] = (oct_constant){"bf16", {.rank = 1, .dims = {3}}, .data = upper, .form = items[1].form};
    items[1].form.format = OCT_FORMAT_BF16;
    items[2] = (oct_constant){"mxfp8", {.rank = 1, .dims = {5}}, .data = blocks, .form = items[2].form};
    items[2].form.format = OCT_FORMAT_MXFP8;
    items[2].form.granularity = OCT_PER_BLOCK;
    items[2].form.block = OCT_MXFP8_BLOCK;
    items[3] = (oct_constant){"scales", {.rank = 1, .dims = {2}}, .data = scales, .form = items[3].form};
    items[4] = (oct_constant){"codes", {.rank = 2, .dims = {2, 3}}, .codes = codes, .form = items[4].form};
    items[4].form.format = OCT_FORMAT_E4M3;
    items[4].form.granularity = OCT_PER_CHANNEL;
    items[4].form.scales = 3;
    items[5] = (oct_constant){"nvfp4", {.rank = 2, .dims = {1, 19}}, .data = fours, .form = items[5].form};
    items[5].form.format = OCT_FORMAT_NVFP4;
    items[5].form.granularity = OCT_PER_BLOCK;
    items[5].form.block = OCT_NVFP4_BLOCK;
    items[5].form.scale = 0.25f;
    items[5].form.held_wide = true;
    for (int i = 0; i < 3; i++) items[i].form.held_wide = true;
    weights = (oct_weights){.items = items, .count = 6, .references = 1};
    return &weights;
}

static void narrow_weights_are_kept(void **state) {
    (void)state;
    oct_text bytes = {0};
    oct_weights *was = narrow_weights(), *weights = NULL;
    assert_int_equal(oct_weights_write(was, append, &bytes), OCTET_OK);
    assert_int_equal(bytes.length, oct_weights_file_size(was));
    assert_int_equal(read_weights(&weights, &bytes, bytes.length), OCTET_OK);
    for (int i = 0; i < 6; i++) {
        const oct_constant *a = &was->items[i], *b = &weights->items[i];
        const size_t count = (size_t)oct_shape_count(&a->shape);
        assert_int_equal(b->form.format, a->form.format);
        assert_int_equal(b->form.held_wide, a->form.held_wide);
        assert_int_equal(b->form.block, a->form.block);
        if (a->data != NULL) assert_memory_equal(b->data, a->data, count * sizeof(float));
        if (a->codes != NULL) assert_memory_equal(b->codes, a->codes, count);
    }
    oct_weights_release(weights);
    for (size_t i = 0; i < bytes.length; i++) {
        const char before = bytes.data[i];
        for (int value = 0; value < 256; value++) {
            bytes.data[i] = (char)value;
            if (read_weights(&weights, &bytes, bytes.length) != OCTET_OK) continue;
            oct_text again = {0};
            assert_int_equal(oct_weights_write(weights, append, &again), OCTET_OK);
            assert_int_equal(again.length, bytes.length);
            assert_memory_equal(again.data, bytes.data, bytes.length);
            oct_text_free(&again);
            oct_weights_release(weights);
        }
        bytes.data[i] = before;
    }
    oct_text_free(&bytes);
}

static void odd_weights_are_told(void **state) {
    (void)state;
    oct_weights *weights = NULL;
    oct_text bytes = weights_bytes();
    replace(&bytes, "fp32", "e2m1");
    FAILS(read_weights(&weights, &bytes, bytes.length), OCTET_UNSUPPORTED,
          "conv.weight: expected a format of weights, found e2m1");
    oct_text_free(&bytes);

    static const float strange[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        second_values[1] = strange[i];
        bytes = weights_bytes();
        FAILS(read_weights(&weights, &bytes, bytes.length), OCTET_BAD_FORMAT, "conv.bias: value 1 is not finite");
        oct_text_free(&bytes);
    }
    second_values[1] = -2.0f;

    bytes = weights_bytes();
    memory from = {&bytes, 0, 100};
    FAILS(oct_weights_read(&weights, "weights", bytes.length, read_memory, &from), OCTET_IO, "the disk is gone");
    memset(bytes.data, 0xff, 8); /* bytes of the table */
    FAILS(read_weights(&weights, &bytes, bytes.length), OCTET_BAD_FORMAT, "weights: a table of");
    oct_text_free(&bytes);

    oct_text out = {0};
    oct_weights *released = some_weights();
    released->items[1].data = NULL;
    FAILS(oct_weights_write(released, append, &out), OCTET_INTERNAL, "conv.bias: its data was released");
    oct_text_free(&out);
}

/* A constant that is read in several pieces, the last of which holds what is not a number. */
static void long_constants(void **state) {
    (void)state;
    enum { COUNT = 100003 };
    float *values = calloc(COUNT, sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) values[i] = (float)(i % 1001) - 500.0f;
    oct_constant item = {.name = "long",
                         .shape = {.rank = 1, .dims = {COUNT}},
                         .data = values,
                         .form = {.scale = 1.0f, .scales = OCT_NONE, .factors = OCT_NONE}};
    oct_weights made = {.items = &item, .count = 1, .references = 1}, *weights = NULL;
    oct_text bytes = {0};
    assert_int_equal(oct_weights_write(&made, append, &bytes), OCTET_OK);
    assert_int_equal(read_weights(&weights, &bytes, bytes.length), OCTET_OK);
    assert_memory_equal(weights->items[0].data, values, COUNT * sizeof *values);
    oct_weights_release(weights);
    oct_text_free(&bytes);
    values[COUNT - 2] = NAN;
    assert_int_equal(oct_weights_write(&made, append, &bytes), OCTET_OK);
    FAILS(read_weights(&weights, &bytes, bytes.length), OCTET_BAD_FORMAT, "value 100001 is not finite");
    oct_text_free(&bytes);
    free(values);
}

static void weights_without_memory(void **state) {
    (void)state;
    oct_text bytes = weights_bytes();
    for (uint64_t n = 1;; n++) {
        oct_weights *weights = NULL;
        int64_t live = oct_alloc_live();
        oct_alloc_fail_at(n, n % 2 == 0);
        octet_status status = read_weights(&weights, &bytes, bytes.length);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        oct_weights_release(weights);
        assert_int_equal(oct_alloc_live(), live);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        if (!met) break;
    }
    oct_text_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(cut_plans_are_refused),
        cmocka_unit_test(changed_plans_are_plans_or_refused),
        cmocka_unit_test(unknown_names_are_told),
        cmocka_unit_test(plans_without_memory),
        cmocka_unit_test(weights_come_back),
        cmocka_unit_test(cut_weights_are_refused),
        cmocka_unit_test(changed_weights_are_weights_or_refused),
        cmocka_unit_test(narrow_weights_are_kept),
        cmocka_unit_test(odd_weights_are_told),
        cmocka_unit_test(long_constants),
        cmocka_unit_test(weights_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
