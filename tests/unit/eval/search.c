/* SPDX-License-Identifier: Apache-2.0 */
/* The search on networks small enough to know every assignment: 12 ops, two ways each, 4,096 in all, of which it may
 * evaluate a tenth. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "eval/random.h"
#include "eval/search.h"

#define OPS 12
#define ALL 4096
#define TENTH 409
#define SEEDS 6
#define WITHIN 0.02

/* How the losses of ops add up. */
typedef enum structure {
    ADDITIVE,
    SATURATING, /* much loss cannot become more */
    PAIRS,      /* any two ops together give more or less than their sum */
    CHAIN,      /* neighbours amplify each other; changes of format between neighbours cost time */
    TRIPLES,    /* three together too */
    CANCELLING, /* the errors of some pairs cancel: better together than alone */
    LARGEST,    /* hardly more than the worst op's: the 4-norm */
    ROUGH,      /* up to a tenth more or less of it, another share for each assignment: no structure at all */
    STRUCTURES
} structure;

typedef struct network {
    structure structure;
    double loss[OPS], saved[OPS], change;
    double pairs[OPS][OPS], triples[OPS][3];
    uint64_t rough;
    size_t asked, stop_at; /* stop_at 0: never */
    uint8_t seen[ALL];
    const uint8_t *expected; /* assignments in the order of an earlier search; NULL: not held to one */
} network;

static double uniform(uint64_t *seed, double low, double high) {
    return low + (high - low) * (double)(next_random(seed) >> 11) * 0x1p-53;
}

/* Losses over two decades, as of real layers; times by size. */
static void draw_network(network *n, structure s, uint64_t seed) {
    *n = (network){.structure = s, .rough = next_random(&seed)};
    for (int i = 0; i < OPS; i++) {
        n->loss[i] = 0.002 * exp(uniform(&seed, 0.0, 4.6));
        n->saved[i] = uniform(&seed, 0.1, 1.0);
        for (int k = 0; k < 3; k++) n->triples[i][k] = (double)(next_random(&seed) % OPS);
    }
    n->change = s == CHAIN ? 0.12 : 0.0;
    for (int i = 0; i < OPS; i++) {
        for (int j = 0; j < i; j++) {
            const double both = sqrt(n->loss[i] * n->loss[j]);
            if (s == PAIRS || s == TRIPLES) n->pairs[i][j] = both * uniform(&seed, -0.25, 0.35);
            if (s == CHAIN && i - j <= 2) n->pairs[i][j] = both * uniform(&seed, 0.2, 1.0);
            if (s == CANCELLING && next_random(&seed) % 4 == 0) n->pairs[i][j] = -both * uniform(&seed, 0.3, 0.9);
        }
    }
}

static trade point_of(const network *n, const uint8_t *a) {
    trade out = {0.0005, 12.0};
    for (int i = 0; i < OPS; i++) {
        if (a[i] != 0) {
            out.loss += n->loss[i];
            out.time -= n->saved[i];
        }
        if (i > 0 && a[i] != a[i - 1]) out.time += n->change;
        for (int j = 0; j < i; j++) out.loss += a[i] != 0 && a[j] != 0 ? n->pairs[i][j] : 0.0;
        const double *t = n->triples[i];
        if (n->structure == TRIPLES && a[(int)t[0]] != 0 && a[(int)t[1]] != 0 && a[(int)t[2]] != 0)
            out.loss += 0.5 * n->loss[i];
    }
    if (n->structure == LARGEST) {
        double sum = 0.0;
        for (int i = 0; i < OPS; i++) sum += a[i] != 0 ? pow(n->loss[i], 4.0) : 0.0;
        out.loss = 0.0005 + pow(sum, 0.25);
    }
    if (n->structure == ROUGH) {
        uint64_t state = n->rough;
        for (int i = 0; i < OPS; i++) state = state * 2 + a[i];
        out.loss *= uniform(&state, 0.9, 1.1);
    }
    if (n->structure == SATURATING) out.loss = 0.3 * (1.0 - exp(-out.loss / 0.3));
    if (out.loss < 0.0005) out.loss = 0.0005;
    return out;
}

static bool evaluate(void *user, const uint8_t *assignment, trade *out) {
    network *n = user;
    size_t number = 0;
    for (int i = 0; i < OPS; i++) number |= (size_t)assignment[i] << i;
    assert_true(number < ALL);
    assert_int_equal(n->seen[number], 0); /* none is asked for twice */
    if (n->expected != NULL) assert_memory_equal(assignment, n->expected + n->asked * OPS, OPS);
    if (n->stop_at > 0 && n->asked == n->stop_at) return false;
    n->seen[number] = 1;
    n->asked++;
    *out = point_of(n, assignment);
    return true;
}

static const uint8_t two_ways[OPS] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};

static search_problem problem_of(network *n, size_t budget) {
    return (search_problem){
        .ops = OPS, .choices = two_ways, .loss_limit = INFINITY, .budget = budget, .evaluate = evaluate, .user = n};
}

/* Volume found by volume there is. */
static double share_of_front(const network *n, const search_result *result) {
    trade *all = malloc(ALL * sizeof *all), *front = malloc(ALL * sizeof *front), worst = {0.0, 0.0};
    size_t *order = malloc(ALL * sizeof *order);
    assert_true(all != NULL && front != NULL && order != NULL);
    for (size_t k = 0; k < ALL; k++) {
        uint8_t a[OPS];
        for (int i = 0; i < OPS; i++) a[i] = (uint8_t)(k >> i & 1);
        all[k] = point_of(n, a);
        worst.loss = fmax(worst.loss, all[k].loss);
    }
    worst.time = all[0].time;
    const size_t best = pareto_front(all, ALL, order);
    for (size_t k = 0; k < best; k++) front[k] = all[order[k]];
    const double whole = pareto_volume(front, best, worst);
    for (size_t k = 0; k < result->front_count; k++) front[k] = result->points[result->front[k]];
    const double found = pareto_volume(front, result->front_count, worst);
    free(order);
    free(front);
    free(all);
    return found / whole;
}

/* The mean and the worst, over all points of the true front, of the loss found in no more time, by the true loss. */
static void excess_of_front(const network *n, const search_result *result, double *mean, double *most) {
    trade *all = malloc(ALL * sizeof *all);
    size_t *order = malloc(ALL * sizeof *order);
    assert_true(all != NULL && order != NULL);
    for (size_t k = 0; k < ALL; k++) {
        uint8_t a[OPS];
        for (int i = 0; i < OPS; i++) a[i] = (uint8_t)(k >> i & 1);
        all[k] = point_of(n, a);
    }
    const size_t best = pareto_front(all, ALL, order);
    *mean = *most = 0.0;
    for (size_t k = 0; k < best; k++) {
        double least = INFINITY;
        for (size_t f = 0; f < result->front_count; f++) {
            const trade *p = &result->points[result->front[f]];
            if (p->time <= all[order[k]].time + 1e-12) least = fmin(least, p->loss);
        }
        const double excess = least / all[order[k]].loss - 1.0;
        *mean += excess / (double)best;
        *most = fmax(*most, excess);
    }
    free(order);
    free(all);
}

/* 48 networks of eight structures: the volume within 2%, and at equal time each point's loss within 2% too. */
static void test_fronts(void **state) {
    (void)state;
    for (int s = 0; s < STRUCTURES; s++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            network n;
            search_result result;
            double mean, most;
            draw_network(&n, (structure)s, seed);
            const search_problem problem = problem_of(&n, TENTH);
            assert_true(search(&problem, &result));
            assert_true(result.count <= TENTH && result.count == n.asked && !result.stopped);
            assert_true(share_of_front(&n, &result) >= 1.0 - WITHIN);
            excess_of_front(&n, &result, &mean, &most);
            assert_true(most <= WITHIN);
            search_result_free(&result);
        }
    }
}

/* That this is no easy measure: as many assignments by chance, the ends among them, are far from it. */
static void test_chance(void **state) {
    (void)state;
    for (int s = 0; s < STRUCTURES; s++) {
        network n;
        draw_network(&n, (structure)s, 0);
        uint8_t a[OPS] = {0};
        trade points[TENTH];
        size_t front[TENTH];
        uint64_t seed = 5;
        for (size_t k = 0; k < TENTH; k++) {
            for (int i = 0; i < OPS && k > 1; i++) a[i] = (uint8_t)(next_random(&seed) & 1);
            points[k] = point_of(&n, a);
            memset(a, 1, sizeof a);
        }
        search_result result = {.points = points, .front = front};
        double mean, most;
        result.front_count = pareto_front(points, TENTH, front);
        excess_of_front(&n, &result, &mean, &most);
        assert_true(share_of_front(&n, &result) < 1.0 - WITHIN || most > 10.0 * WITHIN);
    }
}

/* Stopped anywhere and asked again: the same questions in the same order, so a record of answers resumes it. */
static void test_resume(void **state) {
    (void)state;
    network n;
    search_result whole, part, again;
    draw_network(&n, TRIPLES, 3);
    search_problem problem = problem_of(&n, 150);
    assert_true(search(&problem, &whole));
    for (size_t stop = 0; stop < 150; stop += 37) {
        draw_network(&n, TRIPLES, 3);
        n.expected = whole.assignments;
        n.stop_at = stop == 0 ? 1 : stop;
        assert_true(search(&problem, &part));
        assert_true(part.stopped && part.count == n.stop_at);
        assert_true(part.front_count > 0);
        search_result_free(&part);
    }
    draw_network(&n, TRIPLES, 3);
    n.expected = whole.assignments;
    assert_true(search(&problem, &again));
    assert_int_equal(again.front_count, whole.front_count);
    assert_memory_equal(again.front, whole.front, whole.front_count * sizeof *whole.front);
    search_result_free(&again);
    search_result_free(&whole);
}

/* ---- other problems than twelve ops of two ways */

typedef struct mixed {
    size_t ops, asked;
    const uint8_t *choices;
    bool broken; /* no loss where op 0 takes choice 1; no figures at all where op 1 does */
} mixed;

static bool evaluate_mixed(void *user, const uint8_t *assignment, trade *out) {
    mixed *m = user;
    *out = (trade){0.001, 10.0};
    m->asked++;
    for (size_t i = 0; i < m->ops; i++) {
        assert_true(assignment[i] < m->choices[i]);
        out->loss += 0.01 * (double)(i + 1) * assignment[i] * assignment[i];
        out->time -= 0.3 * (double)((i * 7) % 5 + 1) * assignment[i] / 4.0;
    }
    if (m->broken && assignment[0] == 1) out->loss = NAN;
    if (m->broken && assignment[1] == 1) *out = (trade){INFINITY, NAN};
    return true;
}

static void test_other_problems(void **state) {
    (void)state;
    const uint8_t choices[] = {3, 2, 1, 4, 3};
    mixed m = {.ops = 5, .choices = choices};
    search_problem problem = {
        .ops = 5, .choices = choices, .loss_limit = INFINITY, .budget = 200, .evaluate = evaluate_mixed, .user = &m};
    search_result result;
    /* a budget beyond all there are: every assignment once, no more */
    assert_true(search(&problem, &result));
    assert_int_equal(result.count, 3 * 2 * 1 * 4 * 3);
    search_result_free(&result);
    /* what is broken is asked for, and never on the front */
    m = (mixed){.ops = 5, .choices = choices, .broken = true};
    problem.budget = 40;
    assert_true(search(&problem, &result));
    assert_int_equal(result.count, 40);
    assert_true(result.front_count > 3);
    for (size_t k = 0; k < result.front_count; k++) {
        assert_true(isfinite(result.points[result.front[k]].loss));
        assert_true(result.assignments[result.front[k] * 5 + 1] != 1);
    }
    search_result_free(&result);
    /* nothing to choose */
    const uint8_t one[] = {1, 1};
    m = (mixed){.ops = 2, .choices = one};
    problem = (search_problem){
        .ops = 2, .choices = one, .loss_limit = INFINITY, .budget = 9, .evaluate = evaluate_mixed, .user = &m};
    assert_true(search(&problem, &result));
    assert_int_equal(result.count, 1);
    assert_int_equal(result.front_count, 1);
    search_result_free(&result);
}

/* With a limit the search looks below it: at equal budget no worse there than without. */
static void test_limit(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        double fastest[2];
        for (int limited = 0; limited < 2; limited++) {
            network n;
            search_result result;
            draw_network(&n, ROUGH, seed);
            search_problem problem = problem_of(&n, 60);
            if (limited) problem.loss_limit = 0.05;
            assert_true(search(&problem, &result));
            fastest[limited] = INFINITY;
            for (size_t k = 0; k < result.count; k++)
                if (result.points[k].loss <= 0.05) fastest[limited] = fmin(fastest[limited], result.points[k].time);
            search_result_free(&result);
        }
        assert_true(fastest[1] <= fastest[0] * 1.02);
    }
}

static void test_refused(void **state) {
    (void)state;
    const uint8_t none[] = {2, 0}, many[] = {2, SEARCH_CHOICES + 1}, right[] = {2, 3};
    search_problem p = {.ops = 2, .choices = right, .loss_limit = 1.0, .budget = 5, .evaluate = evaluate_mixed};
    search_result result;
    assert_int_equal(search_least(2, right), 3 + 1 + 2);
    assert_false(search(&p, &result)); /* less than the least */
    search_result_free(&result);
    p.budget = SEARCH_BUDGET + 1;
    assert_false(search(&p, &result));
    search_result_free(&result);
    p.budget = 100;
    p.choices = none;
    assert_false(search(&p, &result));
    search_result_free(&result);
    p.choices = many;
    assert_false(search(&p, &result));
    search_result_free(&result);
    p.ops = 0;
    assert_false(search(&p, &result));
    search_result_free(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fronts),         cmocka_unit_test(test_chance), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_other_problems), cmocka_unit_test(test_limit),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
