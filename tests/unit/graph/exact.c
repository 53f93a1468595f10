/* SPDX-License-Identifier: Apache-2.0 */
/* Exact products of e4m3: near the float32 ones and not the same, a convolution like the linear layer over its windows.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "graph/exact.h"
#include "graph/tensor_core.h"

#define DEPTH 384
#define ROWS 6
#define OUTPUTS 5

static void fill(float *numbers, size_t count, float scale, uint64_t *state) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = oct_e4m3_decode(oct_e4m3_encode(60.0f * oct_random_signed(state))) * scale;
}

static oct_stored stored(oct_form *form, float scale, float *data, int rank, const int64_t *dims) {
    *form = oct_form_of(OCT_FORMAT_E4M3);
    form->scale = scale;
    form->held_wide = true;
    return (oct_stored){.array = {oct_shape_of(rank, dims), data}, .form = form};
}

static void test_linear(void **state) {
    (void)state;
    static float x[ROWS * DEPTH], w[OUTPUTS * DEPTH], y[ROWS * OUTPUTS], z[ROWS * OUTPUTS],
        bias[OUTPUTS] = {1, -2, 3, 0, 5};
    uint64_t seed = 3;
    oct_form forms[3];
    fill(x, ROWS * DEPTH, 0.013f, &seed);
    fill(w, OUTPUTS * DEPTH, 0.0007f, &seed);
    const float scales[OUTPUTS] = {0.0007f, 0.0007f, 0.0007f, 0.0007f, 0.0007f};
    oct_stored inputs[3] = {stored(&forms[0], 0.013f, x, 2, (int64_t[]){ROWS, DEPTH}),
                            stored(&forms[1], 0.0007f, w, 2, (int64_t[]){OUTPUTS, DEPTH}),
                            stored(&forms[2], 1.0f, bias, 1, (int64_t[]){OUTPUTS})};
    forms[1].granularity = OCT_PER_CHANNEL;
    inputs[1].scales = scales;
    oct_attributes a = {.groups = 1, .has_bias = true};
    oct_array output = {oct_shape_of(2, (int64_t[]){ROWS, OUTPUTS}), y}, near = output;
    near.data = z;
    assert_true(oct_exact_is_product(OCT_OP_LINEAR, &a, inputs));
    assert_int_equal(oct_exact_product(OCT_OP_LINEAR, &a, inputs, 0, &output), OCTET_OK);
    assert_int_equal(oct_exact_product(OCT_OP_LINEAR, &a, inputs, 32, &near), OCTET_OK);
    int other = 0;
    double far = 0, close = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int o = 0; o < OUTPUTS; o++) {
            double sum = bias[o], most = 0;
            for (int k = 0; k < DEPTH; k++) {
                const double product = (double)x[r * DEPTH + k] * (double)w[o * DEPTH + k];
                sum += product;
                most += fabs(product);
            }
            const int at = r * OUTPUTS + o;
            assert_true(fabs((double)y[at] - sum) <= most * DEPTH * 0x1p-13);
            other += (double)y[at] != (double)(float)sum;
            far += fabs((double)y[at] - sum);
            close += fabs((double)z[at] - sum);
        }
    }
    assert_true(other > 0);
    assert_true(close < far); /* promotion every 32 terms loses less */
}

static void test_convolution(void **state) {
    (void)state;
    enum { SIDE = 5, CHANNELS = 3, OUT = 3, KERNEL = 3, WINDOW = KERNEL * KERNEL * CHANNELS };
    static float x[SIDE * SIDE * CHANNELS], w[OUTPUTS * WINDOW], y[OUT * OUT * OUTPUTS];
    uint64_t seed = 4;
    oct_form forms[2];
    fill(x, sizeof x / sizeof *x, 0.5f, &seed);
    fill(w, sizeof w / sizeof *w, 0.25f, &seed);
    oct_stored inputs[2] = {stored(&forms[0], 0.5f, x, 4, (int64_t[]){1, SIDE, SIDE, CHANNELS}),
                            stored(&forms[1], 0.25f, w, 4, (int64_t[]){OUTPUTS, KERNEL, KERNEL, CHANNELS})};
    oct_attributes a = {.groups = 1,
                        .stride_h = 2,
                        .stride_w = 2,
                        .pad_top = 1,
                        .pad_left = 1,
                        .pad_bottom = 1,
                        .pad_right = 1,
                        .activation = OCT_ACTIVATION_RELU};
    oct_array output = {oct_shape_of(4, (int64_t[]){1, OUT, OUT, OUTPUTS}), y};
    assert_int_equal(oct_exact_product(OCT_OP_CONV2D, &a, inputs, 0, &output), OCTET_OK);
    for (int row = 0; row < OUT; row++) {
        for (int column = 0; column < OUT; column++) {
            for (int o = 0; o < OUTPUTS; o++) {
                uint8_t p[WINDOW] = {0}, q[WINDOW];
                for (int k = 0; k < WINDOW; k++) {
                    const int i = row * 2 - 1 + k / CHANNELS / KERNEL, j = column * 2 - 1 + k / CHANNELS % KERNEL;
                    q[k] = oct_e4m3_encode(w[o * WINDOW + k] * 4.0f);
                    if (i >= 0 && i < SIDE && j >= 0 && j < SIDE)
                        p[k] = oct_e4m3_encode(x[(i * SIDE + j) * CHANNELS + k % CHANNELS] * 2.0f);
                }
                const float sum = oct_tensor_core_dot(p, q, WINDOW, 0) * 0.125f;
                assert_float_equal(y[(row * OUT + column) * OUTPUTS + o], sum > 0 ? sum : 0, 0);
            }
        }
    }
}

static void test_others_are_not(void **state) {
    (void)state;
    oct_form x = oct_form_of(OCT_FORMAT_E4M3), w = x;
    const oct_stored inputs[2] = {{.form = &x}, {.form = &w}};
    const oct_attributes dense = {.groups = 1}, depthwise = {.groups = 8};
    assert_true(oct_exact_is_product(OCT_OP_CONV2D, &dense, inputs));
    assert_false(oct_exact_is_product(OCT_OP_CONV2D, &depthwise, inputs));
    assert_false(oct_exact_is_product(OCT_OP_ADD, &dense, inputs));
    x.granularity = OCT_PER_ROW;
    assert_false(oct_exact_is_product(OCT_OP_LINEAR, &dense, inputs));
    x.granularity = OCT_PER_TENSOR;
    w.format = OCT_FORMAT_INT8;
    assert_false(oct_exact_is_product(OCT_OP_LINEAR, &dense, inputs));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
