/* SPDX-License-Identifier: Apache-2.0 */
/* graph/math.h against double: every 61st float (OCTET_EVERY=1 in the environment: every one), and the extremes. The
 * bounds are those its head states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/math.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* one unit in the last place of a float near `value`; those of the smallest normal below it */
static double ulp_of(double value) {
    int exponent;
    frexp(fabs(value), &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

typedef struct worst_error {
    double error;
    float at;
} worst_error;

static void see(worst_error *worst, double error, float x) {
    if (error <= worst->error) return; /* a NaN is worse than all */
    worst->error = error;
    worst->at = x;
}

#define EACH_FLOAT(x)                                                                                                  \
    for (uint64_t bits = 0, step = every(); bits < UINT64_C(0x100000000); bits += step)                                \
        for (float x = float_of((uint32_t)bits), *once = &x; once != NULL; once = NULL)

static uint64_t every(void) {
    const char *text = getenv("OCTET_EVERY");
    long step = text == NULL ? 61 : strtol(text, NULL, 10);
    return step > 0 ? (uint64_t)step : 61;
}

static void test_exp(void **state) {
    (void)state;
    worst_error worst = {0};
    EACH_FLOAT(x) {
        if (!(x >= OCT_EXP_LOW && x <= OCT_EXP_HIGH)) continue;
        double right = exp((double)x);
        see(&worst, fabs((double)oct_exp(x) - right) / ulp_of(right), x);
    }
    print_message("oct_exp: %.3f ulp at %a\n", worst.error, (double)worst.at);
    assert_true(worst.error <= 1.2);
}

static void test_exp2(void **state) {
    (void)state;
    worst_error worst = {0};
    EACH_FLOAT(x) {
        if (!(x >= -126 && x < 127.5f)) continue;
        double right = exp2((double)x);
        see(&worst, fabs((double)oct_exp2(x) - right) / ulp_of(right), x);
    }
    print_message("oct_exp2: %.3f ulp at %a\n", worst.error, (double)worst.at);
    assert_true(worst.error <= 1.0);
}

static void test_sigmoid(void **state) {
    (void)state;
    worst_error worst = {0};
    EACH_FLOAT(x) {
        double right = 1 / (1 + exp(-(double)x));
        if (!(right > 0x1p-125)) continue;
        see(&worst, fabs((double)oct_sigmoid(x) - right) / ulp_of(right), x);
    }
    print_message("oct_sigmoid: %.3f ulp at %a\n", worst.error, (double)worst.at);
    assert_true(worst.error <= 2.83);
}

static void test_gelu(void **state) {
    (void)state;
    worst_error worst = {0}, tail = {0};
    EACH_FLOAT(x) {
        if (!(fabsf(x) <= 10)) continue;
        double right = (double)x * 0.5 * erfc(-(double)x * 0.70710678118654752440);
        double error = fabs((double)oct_gelu(x) - right);
        see(&worst, error / (fabsf(x) > 1 ? fabs((double)x) : 1), x);
        if (x < -6) see(&tail, error, x);
    }
    print_message("oct_gelu: %.3g max(1, |x|) at %a; below -6 %.3g\n", worst.error, (double)worst.at, tail.error);
    assert_true(worst.error <= 1e-7);
    assert_true(tail.error <= 1e-11);
}

/* outside [-10, 10] gelu is the relu, but for what is smaller than 1e-22 */
static void test_gelu_outside(void **state) {
    (void)state;
    EACH_FLOAT(x) {
        if (!(fabsf(x) > 10)) continue;
        double error = fabs((double)oct_gelu(x) - (x > 0 ? (double)x : 0));
        if (isinf(x)) error = oct_gelu(x) == (x > 0 ? x : 0) ? 0 : 1;
        if (!(error <= 1e-22)) fail_msg("gelu(%a) = %a", (double)x, (double)oct_gelu(x));
    }
}

static void test_nan_and_extremes(void **state) {
    (void)state;
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++) {
        float x = float_of(nans[i]);
        assert_true(isnan(oct_exp(x)));
        assert_true(isnan(oct_exp2(x)));
        assert_true(isnan(oct_sigmoid(x)));
        assert_true(isnan(oct_gelu(x)));
        assert_true(isnan(oct_relu(x)));
        assert_true(isnan(oct_relu6(x)));
    }
    assert_true(oct_exp(-INFINITY) == 0 && oct_exp(-88.0f) == 0 && oct_exp(0) == 1 && oct_exp(-0.0f) == 1);
    assert_true(oct_exp(INFINITY) == oct_exp(OCT_EXP_HIGH) && isfinite(oct_exp(INFINITY)));
    assert_true(oct_exp2(-INFINITY) == 0 && oct_exp2(10) == 1024 && oct_exp2(-126) == 0x1p-126f);
    assert_true(oct_sigmoid(INFINITY) == 1 && oct_sigmoid(-INFINITY) == 0 && oct_sigmoid(0) == 0.5f);
    assert_true(oct_sigmoid(3e38f) == 1 && oct_sigmoid(-3e38f) == 0);
    assert_true(oct_gelu(INFINITY) == INFINITY && oct_gelu(-INFINITY) == 0 && oct_gelu(0) == 0);
    assert_true(oct_gelu(3e38f) == 3e38f && oct_gelu(-3e38f) == 0);
    assert_true(oct_relu(-1) == 0 && oct_relu(2) == 2 && oct_relu(INFINITY) == INFINITY && oct_relu(-INFINITY) == 0);
    assert_true(oct_relu6(-1) == 0 && oct_relu6(2) == 2 && oct_relu6(7) == 6 && oct_relu6(INFINITY) == 6);
}

/* softmax and gelu never step down where they should rise: neighbouring floats on a few stretches */
static void test_exp_rises(void **state) {
    (void)state;
    static const float starts[] = {-80, -20, -3, -0.7f, 0.1f, 1, 30, 88};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        float x = starts[i];
        for (int n = 0; n < 100000; n++) {
            float next = nextafterf(x, INFINITY);
            /* two ulp of slack: the bound of the error allows it */
            double low = (double)oct_exp(x) - 2 * ulp_of((double)oct_exp(x));
            if (!((double)oct_exp(next) >= low)) fail_msg("exp falls after %a", (double)x);
            x = next;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),       cmocka_unit_test(test_exp2),         cmocka_unit_test(test_sigmoid),
        cmocka_unit_test(test_gelu),      cmocka_unit_test(test_gelu_outside), cmocka_unit_test(test_nan_and_extremes),
        cmocka_unit_test(test_exp_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
