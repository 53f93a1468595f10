/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of pictures kept and taken up again are those of one go, to the last bit, wherever it was stopped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/keep.h"
#include "eval/random.h"

#define PICTURES 40

static double unit(uint64_t *seed) {
    return (double)(next_random(seed) >> 11) * 0x1p-53;
}

static int below(uint64_t *seed, int n) {
    return (int)(next_random(seed) % (uint64_t)n);
}

static void add_classified(eval_figures *figures, uint64_t *seed) {
    bool odd = below(seed, 10) == 0; /* not finite */
    picture_figures p = {.label = below(seed, 5),
                         .best = odd ? -1 : below(seed, 5),
                         .reference_best = below(seed, 5),
                         .top5 = true,
                         .finite = !odd,
                         .reference_finite = true,
                         .cross_entropy = odd ? NAN : 3.0 * unit(seed),
                         .reference_cross_entropy = 3.0 * unit(seed),
                         .kl = odd ? NAN : unit(seed) / 7.0};
    p.top1 = p.best == p.label;
    p.reference_top1 = p.reference_best == p.label;
    assert_true(eval_add_classified(figures, &p));
}

static void random_box(double box[4], uint64_t *seed) {
    for (int i = 0; i < 4; i++) box[i] = (double)(float)(1.0 + 90.0 * unit(seed));
}

static void add_detected(eval_figures *figures, uint64_t *seed) {
    for (int i = below(seed, 4); i > 0; i--) {
        coco_truth t = {.picture = figures->n, .label = below(seed, 3), .crowd = below(seed, 9) == 0};
        random_box(t.box, seed);
        t.area = t.box[2] * t.box[3];
        assert_true(eval_add_truth(figures, &t));
        coco_detection d = {.picture = figures->n, .label = t.label, .score = unit(seed)};
        memcpy(d.box, t.box, sizeof d.box);
        if (below(seed, 3) > 0) assert_true(eval_add_detection(figures, &d));
    }
    for (int i = below(seed, 6); i > 0; i--) {
        coco_detection d = {.picture = figures->n, .label = below(seed, 3), .score = unit(seed)};
        random_box(d.box, seed);
        assert_true(eval_add_detection(figures, &d));
    }
    eval_picture p = {.image_id = 1000 - below(seed, 900),
                      .finite = true,
                      .reference_finite = true,
                      .sums = {5, 6, 4, 4 * unit(seed), unit(seed), 1},
                      .kl = unit(seed) / 3};
    assert_true(eval_add_detected(figures, &p));
}

static eval_figures begin(octet_task task, bool with_reference) {
    return (eval_figures){.task = task, .with_reference = with_reference, .threshold = 0.5, .draws = 100};
}

static char *report(eval_figures *figures) {
    json_t *out = eval_report(figures);
    assert_non_null(out);
    char *text = json_dumps(out, JSON_REAL_PRECISION(17));
    json_decref(out);
    eval_figures_free(figures);
    return text;
}

static void add(eval_figures *figures, uint64_t *seed) {
    if (figures->task == OCTET_CLASSIFICATION)
        add_classified(figures, seed);
    else
        add_detected(figures, seed);
}

/* Stopped after `stop` pictures: those are restored from text, as evidence keeps it, the others added. */
static char *stopped(octet_task task, bool with_reference, int stop) {
    eval_figures first = begin(task, with_reference), second = begin(task, with_reference);
    uint64_t seed = 7;
    for (int i = 0; i < stop; i++) {
        add(&first, &seed);
        json_t *record = eval_keep(&first);
        char *text = json_dumps(record, JSON_REAL_PRECISION(17));
        json_t *read = json_loads(text, 0, NULL);
        assert_true(eval_restore(&second, read));
        json_decref(read);
        json_decref(record);
        free(text);
    }
    for (int i = stop; i < PICTURES; i++) add(&second, &seed);
    eval_figures_free(&first);
    return report(&second);
}

static void check(octet_task task, bool with_reference) {
    char *whole = stopped(task, with_reference, 0);
    assert_non_null(strstr(whole, task == OCTET_CLASSIFICATION ? "top1" : "ap_interval"));
    for (int stop = 1; stop <= PICTURES; stop += 13) {
        char *text = stopped(task, with_reference, stop);
        assert_string_equal(text, whole);
        free(text);
    }
    free(whole);
}

static void test_classified(void **state) {
    (void)state;
    check(OCTET_CLASSIFICATION, true);
    check(OCTET_CLASSIFICATION, false);
}

static void test_detected(void **state) {
    (void)state;
    check(OCTET_DETECTION, true);
    check(OCTET_DETECTION, false);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"{}",
                                      "{\"best\":1}",
                                      "{\"best\":\"a\",\"label\":1}",
                                      "{\"image_id\":1,\"truths\":[[1,2]],\"tokens\":[]}",
                                      "{\"image_id\":1,\"truths\":[],\"tokens\":[[null,1,1,1,1,1]]}",
                                      "{\"image_id\":1,\"tokens\":[[1e30,1,1,1,1,1]]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *record = json_loads(bad[i], 0, NULL);
        assert_non_null(record);
        eval_figures figures = begin(i < 3 ? OCTET_CLASSIFICATION : OCTET_DETECTION, true);
        assert_false(eval_restore(&figures, record));
        assert_int_equal(figures.n, 0);
        eval_figures_free(&figures);
        json_decref(record);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classified),
        cmocka_unit_test(test_detected),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
