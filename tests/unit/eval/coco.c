/* SPDX-License-Identifier: Apache-2.0 */
/* Average precision against pycocotools' figures (tools/reference/coco_ap.py wrote tests/golden/coco/sets.txt).
 * With a file as argument: that file's sets instead, and the largest difference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval/coco.h"
#include "support/support.h"

#define MOST 4096
#define TOLERANCE 1e-6

typedef struct given {
    coco_truth truths[MOST];
    coco_detection detections[MOST];
    size_t truth_count, detection_count, pictures;
    char name[64];
} given;

static given now;
static double worst;
static size_t sets;
static char worst_name[64];

static void compare(const double *wanted) {
    double found[COCO_FIGURES];
    coco_figures figures;
    coco_matches *matches = coco_match(now.truths, now.truth_count, now.detections, now.detection_count, now.pictures);
    assert_non_null(matches);
    assert_true(coco_summarize(matches, &figures));
    coco_matches_free(matches);
    memcpy(found, &figures, sizeof found);
    for (int i = 0; i < COCO_FIGURES; i++) {
        double difference = fabs(found[i] - wanted[i]);
        if (!(difference <= TOLERANCE))
            fail_msg("%s: figure %d: expected %.12g, found %.12g", now.name, i, wanted[i], found[i]);
        if (difference > worst) {
            worst = difference;
            (void)snprintf(worst_name, sizeof worst_name, "%s", now.name);
        }
    }
    sets++;
}

static void read_line(const char *line) {
    double *w, s[COCO_FIGURES];
    int crowd, zero;
    coco_truth *t = &now.truths[now.truth_count];
    coco_detection *d = &now.detections[now.detection_count];
    if (sscanf(line, "set %63s %zu", now.name, &now.pictures) == 2) {
        now.truth_count = now.detection_count = 0;
    } else if (sscanf(line, "t %zu %d %d %d %lf %lf %lf %lf %lf", &t->picture, &t->label, &crowd, &zero, &t->box[0],
                      &t->box[1], &t->box[2], &t->box[3], &t->area) == 9) {
        t->crowd = crowd != 0;
        t->id_is_zero = zero != 0;
        assert_true(++now.truth_count < MOST);
    } else if (sscanf(line, "d %zu %d %lf %lf %lf %lf %lf", &d->picture, &d->label, &d->box[0], &d->box[1], &d->box[2],
                      &d->box[3], &d->score) == 7) {
        assert_true(++now.detection_count < MOST);
    } else {
        w = s;
        assert_int_equal(sscanf(line, "s %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", &w[0], &w[1], &w[2], &w[3],
                                &w[4], &w[5], &w[6], &w[7], &w[8], &w[9], &w[10], &w[11]),
                         COCO_FIGURES);
        compare(s);
    }
}

static const char *path = OCTET_SOURCE_DIR "/tests/golden/coco/sets.txt";

static void test_against_pycocotools(void **state) {
    (void)state;
    char line[1024];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) read_line(line);
    (void)fclose(file);
    assert_true(sets >= 100);
    print_message("%zu sets, largest difference %.3g (%s)\n", sets, worst, worst_name);
}

/* ---- cases 26 and 29 of the shared collection, written out */

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9;
}

static const double box[4] = {10, 10, 50, 50};

static coco_figures figures_of(const coco_truth *truths, size_t t, const coco_detection *detections, size_t d,
                               size_t pictures) {
    coco_figures out;
    coco_matches *matches = coco_match(truths, t, detections, d, pictures);
    assert_non_null(matches);
    assert_true(coco_summarize(matches, &out));
    coco_matches_free(matches);
    return out;
}

#define TRUTH(p, l, x, y, w, h)                                                                                        \
    { .picture = (p), .label = (l), .box = {x, y, w, h}, .area = (double)(w) * (h) }
#define FOUND(p, l, s, x, y, w, h)                                                                                     \
    { .picture = (p), .label = (l), .box = {x, y, w, h}, .score = (s) }

static void test_annotation_zero(void **state) {
    (void)state;
    coco_truth truths[] = {TRUTH(0, 0, 10, 10, 50, 50), TRUTH(0, 0, 100, 100, 40, 40), TRUTH(1, 0, 20, 20, 60, 60)};
    const coco_detection found[] = {FOUND(0, 0, 0.9, 10, 10, 50, 50), FOUND(0, 0, 0.8, 100, 100, 40, 40),
                                    FOUND(1, 0, 0.7, 20, 20, 60, 60)};
    coco_figures f = figures_of(truths, 3, found, 3, 2);
    assert_true(near(f.ap, 1.0) && near(f.ar100, 1.0) && fabs(f.ar1 - 2.0 / 3) < 1e-12 && f.ap_small == -1.0);
    truths[0].id_is_zero = true;
    f = figures_of(truths, 3, found, 3, 2);
    assert_true(fabs(f.ap - 0.442244224422) < 1e-12 && fabs(f.ar100 - 2.0 / 3) < 1e-12);
    f = figures_of(truths, 1, found, 1, 1);
    assert_true(f.ap == 0.0 && f.ar100 == 0.0 && f.ap_medium == 0.0 && f.ap_large == -1.0);
}

static void test_nothing(void **state) {
    (void)state;
    const coco_truth truths[] = {TRUTH(0, 1, 10, 10, 50, 50), TRUTH(2, 2, 10, 10, 50, 50)};
    const coco_detection elsewhere[] = {FOUND(1, 1, 0.9, 5, 5, 20, 20), FOUND(1, 7, 0.9, 5, 5, 20, 20)};
    const coco_detection other_class[] = {FOUND(0, 1, 0.9, 10, 10, 50, 50), FOUND(0, 7, 0.95, 10, 10, 50, 50),
                                          FOUND(2, 2, 0.2, 10, 10, 50, 50)};
    coco_figures f = figures_of(truths, 2, NULL, 0, 3);
    assert_true(f.ap == 0.0 && f.ar100 == 0.0 && f.ap_small == -1.0);
    f = figures_of(truths, 2, elsewhere, 2, 3);
    assert_true(f.ap == 0.0 && f.ap_medium == 0.0 && f.ap_large == -1.0);
    f = figures_of(truths, 2, other_class, 3, 3);
    assert_true(near(f.ap, 1.0) && near(f.ar1, 1.0));
    f = figures_of(NULL, 0, other_class, 3, 3);
    assert_true(f.ap == -1.0 && f.ap50 == -1.0 && f.ar1 == -1.0);
    f = figures_of(NULL, 0, NULL, 0, 1);
    assert_true(f.ap == -1.0);
    const coco_detection negative[] = {{.picture = 0, .label = 1, .box = {10, 10, 50, 50}, .score = -0.5}};
    assert_true(near(figures_of(truths, 2, negative, 1, 3).ap, 0.5));
}

static void test_intervals(void **state) {
    (void)state;
    coco_truth truths[40];
    coco_detection found[40];
    for (size_t i = 0; i < 40; i++) {
        truths[i] = (coco_truth){.picture = i, .label = 0, .area = 2500};
        found[i] = (coco_detection){.picture = i, .label = 0, .score = 0.5 + 0.01 * (double)i};
        memcpy(truths[i].box, box, sizeof box);
        memcpy(found[i].box, box, sizeof box);
        if (i % 4 == 0) found[i].box[0] += 200; /* missed */
    }
    figure_interval a[3], b[3];
    coco_matches *matches = coco_match(truths, 40, found, 40, 40);
    assert_non_null(matches);
    assert_true(coco_bootstrap(matches, 2000, 1, a) && coco_bootstrap(matches, 2000, 1, b));
    coco_figures f;
    assert_true(coco_summarize(matches, &f));
    coco_matches_free(matches);
    assert_memory_equal(a, b, sizeof a);
    assert_true(a[0].low < f.ap && f.ap < a[0].high && a[0].low > 0.2 && a[0].high < 1.0);
    assert_true(near(a[0].low, a[1].low)); /* every overlap is 1 or 0: one threshold is as another */
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_pycocotools),
                                       cmocka_unit_test(test_annotation_zero), cmocka_unit_test(test_nothing),
                                       cmocka_unit_test(test_intervals)};
    if (count > 1) path = words[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
