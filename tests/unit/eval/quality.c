/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a classifier and of matched detections against values worked out by hand or by SciPy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/agree.h"
#include "eval/classify.h"

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9;
}

/* softmax(0, log 2, log 3) = 1/6, 2/6, 3/6 */
static const float lone[3] = {0.0f, 0.69314718f, 1.09861229f}, even[3] = {1.0f, 1.0f, 1.0f};

static void test_kl(void **state) {
    (void)state;
    double scratch[6];
    double expected = 0.0;
    for (int i = 0; i < 3; i++) expected += 1.0 / 3 * log(6.0 / 3 / (i + 1));
    assert_true(fabs(kl_divergence(even, lone, 3, scratch) - expected) < 1e-7);
    expected = 0.0;
    for (int i = 0; i < 3; i++) expected += (i + 1) / 6.0 * log((i + 1) * 3 / 6.0);
    assert_true(fabs(kl_divergence(lone, even, 3, scratch) - expected) < 1e-7);
    assert_true(kl_divergence(lone, lone, 3, scratch) == 0.0);
    const float large[3] = {1e30f, -1e30f, 0.0f}, odd[3] = {NAN, 0, 0}, infinite[3] = {INFINITY, 0, 0};
    assert_true(kl_divergence(large, large, 3, scratch) == 0.0);
    assert_true(isnan(kl_divergence(odd, lone, 3, scratch)) && isnan(kl_divergence(lone, infinite, 3, scratch)));
}

static void test_picture(void **state) {
    (void)state;
    picture_figures p;
    classify_picture(lone, even, 3, 2, &p);
    assert_true(p.top1 && p.top5 && p.best == 2 && p.reference_best == 0 && !p.reference_top1 && p.finite);
    assert_true(fabs(p.cross_entropy - log(2.0)) < 1e-7 && near(p.reference_cross_entropy, log(3.0)));
    const float ties[7] = {1, 1, 1, 1, 1, 1, 1};
    classify_picture(ties, NULL, 7, 4, &p);
    assert_true(!p.top1 && p.top5 && isnan(p.kl));
    classify_picture(ties, NULL, 7, 5, &p);
    assert_true(!p.top5);
    const float odd[3] = {0, NAN, 9};
    classify_picture(odd, lone, 3, 2, &p);
    assert_true(!p.top1 && !p.top5 && !p.finite && p.best == -1 && isnan(p.kl) && isnan(p.cross_entropy) &&
                p.reference_top1);
}

static void test_figures(void **state) {
    (void)state;
    picture_figures p[4];
    classification_figures f;
    classify_picture(lone, even, 3, 2, &p[0]); /* gained */
    classify_picture(lone, even, 3, 0, &p[1]); /* lost */
    classify_picture(lone, lone, 3, 2, &p[2]);
    classify_picture(lone, lone, 3, 1, &p[3]);
    assert_true(classification(p, 4, true, 1000, 1, &f));
    assert_true(near(f.top1, 0.5) && near(f.reference_top1, 0.5) && near(f.agreement, 0.5) && near(f.top5, 1.0));
    assert_true(f.gained == 1 && f.lost == 1 && f.changed == 2 && near(f.mcnemar_p, 1.0) && f.nonfinite == 0);
    assert_true(near(f.kl, p[0].kl / 2) && near(f.kl_se, p[0].kl / 2 / sqrt(3.0)));
    assert_true(f.kl_interval.low <= f.kl && f.kl <= f.kl_interval.high && f.top1_interval.low >= 0.0 &&
                f.top1_interval.high <= 1.0);
    const float odd[3] = {0, NAN, 9};
    classify_picture(odd, lone, 3, 2, &p[3]);
    assert_true(classification(p, 4, true, 10, 1, &f));
    assert_true(f.nonfinite == 1 && isnan(f.kl) && isnan(f.kl_p95) && isnan(f.cross_entropy) && near(f.top1, 0.5));
    assert_true(classification(p, 1, false, 0, 1, &f) && isnan(f.top1_interval.low));
}

/* scipy.stats.binomtest(gained, gained + lost).pvalue */
static void test_mcnemar(void **state) {
    (void)state;
    assert_true(near(mcnemar_exact(0, 0), 1.0) && near(mcnemar_exact(3, 3), 1.0));
    assert_true(near(mcnemar_exact(1, 9), 0.021484375) && near(mcnemar_exact(9, 1), 0.021484375));
    assert_true(near(mcnemar_exact(0, 5), 0.0625));
    assert_true(fabs(mcnemar_exact(40, 70) - 0.005447429511) < 1e-11);
}

static agree_box box_at(int32_t label, double x, double score) {
    agree_box made = {label, {x, 0, 10, 10}, score};
    return made;
}

static void test_agreement(void **state) {
    (void)state;
    agree_sums s;
    const agree_box reference[] = {box_at(0, 0, 0.9), box_at(0, 2, 0.8), box_at(1, 0, 0.52)};
    /* the second takes the first's box by score: overlaps 1 of box 0 */
    const agree_box tested[] = {box_at(0, 1, 0.6), box_at(0, 0, 0.95), box_at(2, 0, 0.54)};
    assert_true(agree_picture(tested, 3, reference, 3, 0.5, &s));
    assert_true(s.tested == 3 && s.reference == 3 && s.matched == 2 && s.near == 2);
    assert_true(near(s.iou, 1.0 + 9.0 / 11) && near(s.score_change, 0.05 + 0.2));
    assert_true(agree_picture(NULL, 0, reference, 3, 0.5, &s) && s.matched == 0 && s.reference == 3 && s.near == 1);
    const agree_box far[] = {box_at(0, 5.1, 0.9)}; /* an overlap of less than a half */
    assert_true(agree_picture(far, 1, reference, 1, 0.5, &s) && s.matched == 0);
}

static void test_bootstrap(void **state) {
    (void)state;
    double hits[400], ones[400];
    for (size_t i = 0; i < 400; i++) {
        hits[i] = i % 5 == 0;
        ones[i] = 2.0;
    }
    const double *over[2] = {hits, hits}, *under[2] = {NULL, ones};
    figure_interval out[2], again[2];
    assert_true(bootstrap_ratios(over, under, 2, 400, 10000, 1, out) &&
                bootstrap_ratios(over, under, 2, 400, 10000, 1, again));
    assert_memory_equal(out, again, sizeof out);
    /* 0.2 -+ 1.96 * 0.02 */
    assert_true(fabs(out[0].low - 0.1608) < 0.003 && fabs(out[0].high - 0.2392) < 0.003 &&
                near(out[1].low, out[0].low / 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kl),        cmocka_unit_test(test_picture),
                                       cmocka_unit_test(test_figures),   cmocka_unit_test(test_mcnemar),
                                       cmocka_unit_test(test_agreement), cmocka_unit_test(test_bootstrap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
