/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "eval/pareto.h"
#include "eval/random.h"

#define POINTS 60

static void draw(uint64_t *seed, trade *points, size_t count) {
    for (size_t i = 0; i < count; i++)
        points[i] = (trade){(double)(next_random(seed) % 16), (double)(next_random(seed) % 16)};
}

static bool beats(trade a, trade b) {
    return a.loss <= b.loss && a.time <= b.time && (a.loss < b.loss || a.time < b.time);
}

/* Against the definition, on small whole numbers: many ties. */
static void test_front(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 500; round++) {
        trade points[POINTS];
        size_t front[POINTS], wanted = 0, count = next_random(&seed) % (POINTS + 1);
        draw(&seed, points, count);
        if (count > 3) points[count / 2].loss = NAN;
        if (count > 3) points[count / 3].time = INFINITY;
        for (size_t i = 0; i < count; i++) {
            bool kept = isfinite(points[i].loss) && isfinite(points[i].time);
            for (size_t j = 0; j < count; j++) {
                const bool equal = points[j].loss == points[i].loss && points[j].time == points[i].time;
                kept = kept && !beats(points[j], points[i]) && !(equal && j < i);
            }
            wanted += kept;
        }
        const size_t found = pareto_front(points, count, front);
        assert_int_equal(found, wanted);
        for (size_t k = 0; k < found; k++) {
            for (size_t j = 0; j < count; j++) {
                assert_false(beats(points[j], points[front[k]]));
                if (j < front[k])
                    assert_false(points[j].loss == points[front[k]].loss && points[j].time == points[front[k]].time);
            }
            if (k > 0) {
                assert_true(points[front[k - 1]].time < points[front[k]].time);
                assert_true(points[front[k - 1]].loss > points[front[k]].loss);
            }
        }
    }
}

/* On whole numbers the area is a count of unit squares. */
static void test_volume(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 500; round++) {
        trade points[POINTS], front[POINTS];
        size_t order[POINTS], squares = 0, count = next_random(&seed) % 12;
        const trade worst = {(double)(4 + next_random(&seed) % 14), (double)(4 + next_random(&seed) % 14)};
        draw(&seed, points, count);
        const size_t kept = pareto_front(points, count, order);
        for (size_t k = 0; k < kept; k++) front[k] = points[order[k]];
        for (double y = 0; y < worst.loss; y++) {
            for (double x = 0; x < worst.time; x++) {
                bool in = false;
                for (size_t k = 0; k < kept; k++) in = in || (front[k].loss <= y && front[k].time <= x);
                squares += in;
            }
        }
        assert_true(pareto_volume(front, kept, worst) == (double)squares);
        /* what one more point adds */
        trade more;
        draw(&seed, &more, 1);
        points[count] = more;
        const trade best = {-1.0, -1.0};
        const double gain = pareto_gain(front, kept, best, worst, more);
        const size_t with = pareto_front(points, count + 1, order);
        for (size_t k = 0; k < with; k++) front[k] = points[order[k]];
        const double added = pareto_volume(front, with, worst) - (double)squares;
        if (added > 0.0)
            assert_true(fabs(gain * (worst.loss + 1.0) * (worst.time + 1.0) - added) < 1e-9);
        else
            assert_true(gain <= 0.0);
    }
}

static void test_distance(void **state) {
    (void)state;
    const trade front[] = {{4.0, 1.0}, {1.0, 4.0}}, best = {0.0, 0.0}, worst = {10.0, 10.0};
    assert_true(fabs(pareto_gain(front, 2, best, worst, (trade){5.0, 2.0}) + 0.1) < 1e-12);
    assert_true(fabs(pareto_gain(front, 2, best, worst, (trade){4.0, 1.0})) < 1e-12); /* at the front itself */
    assert_true(pareto_gain(front, 2, best, worst, (trade){6.0, 6.0}) <
                pareto_gain(front, 2, best, worst, (trade){5.0, 2.0}));
    assert_true(pareto_gain(front, 2, best, worst, (trade){11.0, 0.5}) < 0.0); /* beyond what counts */
    assert_true(pareto_gain(front, 0, best, worst, (trade){5.0, 5.0}) > 0.0);
    assert_true(pareto_gain(front, 2, worst, worst, (trade){1.0, 1.0}) == 0.0); /* no room at all */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_volume),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
