/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions by the ends of intervals, power checked first, predicates of when to look again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/decision.h"
#include "unit/study/folder.h"

#define HEAD                                                                                                           \
    "study: s\nmodel: ../m\ndata: {d: d}\nsets: {verdict: [data: d]}\n"                                                \
    "variants: {fp32: fp32, int8: int8}\nreference: fp32\ncandidates: [int8]\n"

static void parse(study_file *study, const char *rest) {
    char text[2048];
    (void)snprintf(text, sizeof text, HEAD "%s", rest);
    good(study_file_parse(study, "study.yaml", text, strlen(text)));
}

static evidence_file *fresh(void) {
    evidence_file *evidence;
    const char *path = support_join(folder, "e.sqlite");
    (void)unlink(path);
    good(evidence_open(path, EVIDENCE_WRITE, &evidence));
    return evidence;
}

/* A run of int8 in an environment of that name; the environment's id into `environment`. */
static void add_run(evidence_file *evidence, const char *name, char run[EVIDENCE_ID], char environment[EVIDENCE_ID]) {
    good(evidence_add(evidence, EVIDENCE_ENVIRONMENT, json_pack("{s:s}", "device", name), environment));
    good(evidence_add(evidence, EVIDENCE_RUN,
                      json_pack("{s:s, s:s, s:s, s:s}", "task", "evaluate", "variant", "int8", "set", "verdict",
                                "environment", environment),
                      run));
}

static void add_figure(evidence_file *evidence, const char *run, const char *name, const char *set, double value,
                       double low, double high, int n) {
    json_t *body =
        json_pack("{s:s, s:s, s:s, s:f, s:i}", "run", run, "variant", "int8", "name", name, "value", value, "n", n);
    if (set != NULL) json_object_set_new(body, "set", json_string(set));
    if (!isnan(low)) json_object_set_new(body, "low", json_real(low));
    if (!isnan(high)) json_object_set_new(body, "high", json_real(high));
    good(evidence_add(evidence, EVIDENCE_FIGURE, body, NULL));
}

/* ---- power */

static void test_room(void **state) {
    (void)state;
    /* 1 - 0.025^(1/n) */
    assert_true(fabs(decision_room(1) - 0.975) < 1e-12);
    assert_true(fabs(decision_room(100) - 0.036216692) < 1e-8);
    assert_true(fabs(decision_room(368) - 0.0099740) < 1e-6);
    assert_true(decision_room(0) == 1.0);
    assert_int_equal(decision_pictures_needed(0.01), 368);
    assert_int_equal(decision_pictures_needed(0.05), 72);
    assert_int_equal(decision_pictures_needed(0.5), 6);
    assert_int_equal(decision_pictures_needed(1.0), 1);
    for (double rate = 0.001; rate < 0.9; rate *= 1.3) {
        int64_t n = decision_pictures_needed(rate);
        assert_true(decision_room((double)n) <= rate && decision_room((double)(n - 1)) > rate);
    }
}

typedef struct power_case {
    const char *rest;
    size_t pictures;
    const char *says; /* NULL: passes */
} power_case;

static const power_case powers[] = {
    {"rules: {q: [{figure: unmatched_tested, at_most: 0.01}]}\nadopt: [q]\n", 72,
     "study.yaml:8: rule q: unmatched_tested at most 0.01 can never pass: expected at least 368 pictures, found 72"},
    {"rules: {q: [{figure: unmatched_tested, at_most: 0.01}]}\nadopt: [q]\n", 367, "368 pictures, found 367"},
    {"rules: {q: [{figure: unmatched_tested, at_most: 0.01}]}\nadopt: [q]\n", 368, NULL},
    {"rules: {q: [{figure: agreement, at_least: 0.97}]}\nadopt: [q]\n", 100, "122 pictures, found 100"},
    {"rules: {q: [{figure: agreement, at_least: 0.97}]}\nadopt: [q]\n", 122, NULL},
    {"rules: {q: [{figure: top1_change, at_least: -0.01}]}\nadopt: [q]\n", 367, "368 pictures, found 367"},
    {"rules: {q: [{figure: top1_change, at_least: -0.01}]}\nadopt: [q]\n", 368, NULL},
    {"rules: {q: [{figure: agreement, at_least: 1}]}\nadopt: [q]\n", 100000, "can never pass, however many pictures"},
    {"rules: {q: [{figure: kl, at_most: 0.01}]}\nadopt: [q]\n", 2, NULL},
    {"rules: {q: [{figure: kl, at_most: 0.01}]}\nadopt: [q]\n", 1, "2 pictures, found 1"},
    {"rules: {q: [{figure: nonfinite, at_most: 0}]}\nadopt: [q]\n", 1, NULL},
    {"rules: {q: [{figure: nonfinite, at_most: 0}], r: [{figure: recall, at_least: 0.99}]}\nadopt: [q]\n", 1, NULL},
    {"timing: {rounds: 9}\nrules: {q: [{figure: speedup_batch_1, at_least: 1}]}\nadopt: [q]\n", 900,
     "study.yaml:9: rule q: speedup_batch_1 at least 1 can never pass: expected at least 10 rounds of timing, found 9"},
    {"timing: {rounds: 10}\nrules: {q: [{figure: speedup_batch_1, at_least: 1}]}\nadopt: [q]\n", 900, NULL},
};

static void test_power(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        study_file study;
        parse(&study, powers[i].rest);
        octet_status status = decision_check_power(&study, powers[i].pictures);
        if (powers[i].says == NULL)
            good(status);
        else if (status != OCTET_LIMIT || strstr(study_error_text(), powers[i].says) == NULL)
            fail_msg("case %zu: expected \"%s\", found %d: %s", i, powers[i].says, status, study_error_text());
        study_file_free(&study);
    }
}

/* ---- bounds */

typedef struct bound_case {
    const char *rule, *figure;
    double value, low, high;
    int n;
    bound_outcome outcome;
} bound_case;

static const bound_case bounds[] = {
    {"at_most: 0.025", "kl", 0.02, 0.018, 0.025, 700, BOUND_PASSES},
    {"at_most: 0.025", "kl", 0.02, 0.018, 0.0251, 700, BOUND_OPEN},
    {"at_most: 0.025", "kl", 0.03, 0.025, 0.04, 700, BOUND_OPEN},
    {"at_most: 0.025", "kl", 0.03, 0.0251, 0.04, 700, BOUND_FAILS},
    {"at_most: 0.025", "kl", 0.02, NAN, NAN, 700, BOUND_OPEN},
    {"at_least: 1.05", "speedup_batch_1", 1.1, 1.05, 1.2, 30, BOUND_PASSES},
    {"at_least: 1.05", "speedup_batch_1", 1.1, 1.04, 1.2, 30, BOUND_OPEN},
    {"at_least: 1.05", "speedup_batch_1", 1.0, 0.9, 1.04, 30, BOUND_FAILS},
    {"at_most: 0", "nonfinite", 0, NAN, NAN, 700, BOUND_PASSES},
    {"at_most: 0", "nonfinite", 1, NAN, NAN, 700, BOUND_FAILS},
    {"at_least: 3", "weight_ratio", 3.5, NAN, NAN, 0, BOUND_PASSES},
    /* nothing seen among few pictures: room for 0.0362 of 100, 0.00997 of 368 */
    {"at_most: 0.03", "unmatched_tested", 0, 0, 0, 100, BOUND_OPEN},
    {"at_most: 0.04", "unmatched_tested", 0, 0, 0, 100, BOUND_PASSES},
    {"at_most: 0.01", "unmatched_tested", 0, 0, 0, 368, BOUND_PASSES},
    {"at_most: 0.01", "unmatched_tested", 0.115, 0.09, 0.14, 500, BOUND_FAILS},
    {"at_least: 0.97", "agreement", 1, 1, 1, 100, BOUND_OPEN},
    {"at_least: 0.97", "agreement", 0.99, 0.98, 0.995, 700, BOUND_PASSES},
    {"at_least: 0.97", "agreement", 0.89, 0.87, 0.91, 700, BOUND_FAILS},
    {"at_least: -0.01", "top1_change", -0.002, -0.006, 0.001, 700, BOUND_PASSES},
    {"at_least: -0.01", "top1_change", -0.002, -0.006, 0.001, 300, BOUND_OPEN},
};

static void test_bounds(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        char text[256], run[EVIDENCE_ID], environment[EVIDENCE_ID];
        const bound_case *c = &bounds[i];
        study_file study;
        decision made;
        (void)snprintf(text, sizeof text, "timing: {}\nrules: {q: [{figure: %s, %s}]}\nadopt: [q]\n", c->figure,
                       c->rule);
        parse(&study, text);
        evidence_file *evidence = fresh();
        add_run(evidence, "cpu", run, environment);
        add_figure(evidence, run, c->figure, "select", 99, 99, 99, 9); /* which decides nothing */
        add_figure(evidence, run, c->figure, i % 2 ? "verdict" : NULL, c->value, c->low, c->high, c->n);
        good(decision_make(&study, evidence, "int8", environment, &made));
        if (made.bounds[0].outcome != c->outcome) fail_msg("case %zu: %s", i, made.bounds[0].text);
        decision_word word = c->outcome == BOUND_PASSES  ? DECISION_SHIP
                             : c->outcome == BOUND_FAILS ? DECISION_DO_NOT_SHIP
                                                         : DECISION_INCONCLUSIVE;
        assert_int_equal(made.word, word);
        assert_int_equal(strlen(made.bounds[0].figure), 64);
        decision_free(&made);
        evidence_close(&evidence);
        study_file_free(&study);
    }
}

/* A value that is not a number fails, whatever the bound. */
static void test_nan(void **state) {
    (void)state;
    study_file study;
    decision made;
    char run[EVIDENCE_ID], environment[EVIDENCE_ID];
    parse(&study, "rules: {q: [{figure: kl, at_most: 1}]}\nadopt: [q]\n");
    evidence_file *evidence = fresh();
    add_run(evidence, "cpu", run, environment);
    good(evidence_add(
        evidence, EVIDENCE_FIGURE,
        json_pack("{s:s, s:s, s:s, s:n, s:i}", "run", run, "variant", "int8", "name", "kl", "value", "n", 9), NULL));
    good(decision_make(&study, evidence, "int8", NULL, &made));
    assert_int_equal(made.word, DECISION_DO_NOT_SHIP);
    decision_free(&made);
    evidence_close(&evidence);
    study_file_free(&study);
}

static void test_words(void **state) {
    (void)state;
    study_file study;
    decision made;
    char run[EVIDENCE_ID], environment[EVIDENCE_ID], other[EVIDENCE_ID], gpu[EVIDENCE_ID];
    parse(&study, "timing: {}\nrules:\n  quality: [{figure: kl, at_most: 0.1}, {figure: nonfinite, at_most: 0}]\n"
                  "  speed: [{figure: speedup_batch_1, at_least: 1.1}]\n  other: [{figure: top1, at_least: 0.9}]\n"
                  "adopt: [quality, speed]\n"
                  "revisit:\n  - {when: speedup_batch_1 > 1.3, because: a}\n  - {when: int8 kl < 0.06, because: b}\n"
                  "  - {when: speedup_batch_8 > 1, because: c}\n  - {when: fp32 kl < 1, because: d}\n");
    evidence_file *evidence = fresh();
    add_run(evidence, "cpu", run, environment);
    add_run(evidence, "gpu", other, gpu);
    add_figure(evidence, run, "kl", "verdict", 0.05, 0.04, 0.06, 700);
    add_figure(evidence, run, "nonfinite", "verdict", 0, NAN, NAN, 700);
    good(decision_make(&study, evidence, "int8", environment, &made));
    assert_int_equal(made.word, DECISION_INCONCLUSIVE); /* the time was not measured */
    assert_int_equal(made.bound_count, 3);
    assert_int_equal(made.bounds[2].outcome, BOUND_NOT_MEASURED);
    assert_string_equal(made.bounds[2].rule->name, "speed");
    decision_free(&made);
    add_figure(evidence, run, "speedup_batch_1", NULL, 1.2, 1.15, 1.25, 40);
    add_figure(evidence, other, "speedup_batch_1", NULL, 0.9, 0.88, 0.95, 40);
    good(decision_make(&study, evidence, "int8", environment, &made));
    assert_int_equal(made.word, DECISION_SHIP);
    assert_string_equal(made.environment, environment);
    assert_int_equal(made.revisit_count, 4);
    assert_true(made.revisits[0].known && !made.revisits[0].holds);
    assert_true(made.revisits[1].known && made.revisits[1].holds && made.revisits[1].value == 0.05);
    assert_false(made.revisits[2].known || made.revisits[3].known);
    assert_int_equal(made.earlier_openings, 0);
    decision_free(&made);
    good(decision_make(&study, evidence, "int8", gpu, &made)); /* there too slow, and kl was not measured */
    assert_int_equal(made.word, DECISION_DO_NOT_SHIP);
    decision_free(&made);
    for (int i = 0; i < 3; i++) /* two recipes, one of them opened twice */
        good(evidence_add(evidence, EVIDENCE_OPENING,
                          json_pack("{s:s, s:s, s:i}", "variant", "int8", "recipe", i ? "b" : "a", "when", i), NULL));
    good(decision_make(&study, evidence, "int8", environment, &made));
    assert_int_equal(made.earlier_openings, 1);
    decision_free(&made);
    assert_int_equal(decision_make(&study, evidence, "int9", environment, &made), OCTET_INVALID_ARGUMENT);
    evidence_close(&evidence);
    study_file_free(&study);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room), cmocka_unit_test(test_power), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_nan),  cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
