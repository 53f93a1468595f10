/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of measurements against values worked by hand (NumPy's and SciPy's definitions), and what their intervals
 * must do whatever the numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/statistics.h"

static void near(double found, double expected, double bound) {
    if (!(fabs(found - expected) <= bound)) fail_msg("expected %.17g, found %.17g", expected, found);
}

static void test_quantile(void **state) {
    (void)state;
    double one[] = {3.0}, four[] = {4.0, 1.0, 3.0, 2.0}, five[] = {10.0, 30.0, 20.0, 50.0, 40.0};
    near(quantile(one, 1, 0.0), 3.0, 0.0);
    near(quantile(one, 1, 0.5), 3.0, 0.0);
    near(quantile(one, 1, 1.0), 3.0, 0.0);
    near(quantile(four, 4, 0.0), 1.0, 0.0);
    near(quantile(four, 4, 0.25), 1.75, 0.0);
    near(quantile(four, 4, 0.5), 2.5, 0.0);
    near(quantile(four, 4, 1.0), 4.0, 0.0);
    near(quantile(five, 5, 0.5), 30.0, 0.0);
    near(quantile(five, 5, 0.9), 46.0, 1e-12);
    near(quantile(five, 5, 0.025), 11.0, 1e-12);
}

#define ROUNDS 40

/* Times of a fixed pattern round `middle`. */
static void make_times(double *times, double middle, double spread) {
    for (int i = 0; i < ROUNDS; i++) times[i] = middle * (1.0 + spread * ((double)(i * 17 % ROUNDS) / ROUNDS - 0.5));
}

static void test_ratio(void **state) {
    (void)state;
    double base[ROUNDS], other[ROUNDS];
    ratio_interval first, again;
    make_times(base, 2.0, 0.02);
    make_times(other, 1.0, 0.02);
    assert_true(bootstrap_median_ratio(base, other, ROUNDS, 2000, 1, &first));
    near(first.ratio, 2.0, 1e-12); /* rounds in pairs: the same pattern divides out */
    near(first.low, 2.0, 1e-9);
    near(first.high, 2.0, 1e-9);
    other[3] = 100.0; /* one round that was disturbed moves no median far */
    assert_true(bootstrap_median_ratio(base, other, ROUNDS, 2000, 1, &first));
    assert_true(first.low <= first.ratio && first.ratio <= first.high && first.low > 1.9 && first.high < 2.1);
    assert_true(bootstrap_median_ratio(base, other, ROUNDS, 2000, 1, &again));
    assert_memory_equal(&first, &again, sizeof first); /* by the seed alone */
    assert_true(bootstrap_median_ratio(base, base, ROUNDS, 500, 9, &again));
    near(again.low, 1.0, 0.0);
    near(again.high, 1.0, 0.0);
}

static void test_verdicts(void **state) {
    (void)state;
    static const struct {
        ratio_interval interval;
        size_t rounds;
        const char *word;
    } rows[] = {
        {{1.5, 1.4, 1.6}, 30, "faster"},
        {{1.5, 1.0000001, 1.6}, 30, "faster"},
        {{0.5, 0.4, 0.6}, 30, "slower"},
        {{1.0, 0.99, 1.01}, 30, "no measurable difference"},
        {{1.01, 1.0, 1.02}, 30, "no measurable difference"}, /* touches 1 */
        {{1.0, 0.8, 1.2}, 30, "unclear"},
        {{1.5, 1.4, 1.6}, 9, "unclear"},
        {{1.5, 1.4, 1.6}, 10, "faster"},
        {{NAN, NAN, NAN}, 30, "unclear"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(comparison_word(compare_times(&rows[i].interval, rows[i].rounds)), rows[i].word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantile),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
