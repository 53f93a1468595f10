/* SPDX-License-Identifier: Apache-2.0 */
/* Study files: each key, each mistake by its line and hint, and the two published splits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/evidence.h"
#include "study/study_file.h"
#include "support/support.h"

#define HEAD "study: s\nmodel: ../m\n"                                                          /* lines 1, 2 */
#define DATA "data: {d: ../d}\n"                                                                /* 3 */
#define SETS "sets: {calibrate: [data: d, first: 5], verdict: [data: d, without: calibrate]}\n" /* 4 */
#define VARIANTS                                                                                                       \
    "variants: {fp32: fp32, half: fp16, int8: {recipe: int8.yaml}}\nreference: fp32\ncandidates: [int8]\n" /* 5 to 7   \
                                                                                                            */
#define RULES "rules:\n  quality: [{figure: kl, at_most: 0.1}]\nadopt: [quality]\n"                        /* 8 to 10 */
#define WHOLE HEAD DATA SETS VARIANTS RULES

static octet_status parse(study_file *study, const char *text) {
    return study_file_parse(study, "a/study.yaml", text, strlen(text));
}

static void parsed(study_file *study, const char *text) {
    if (parse(study, text) != OCTET_OK) fail_msg("%s", study_error_text());
}

static void test_whole(void **state) {
    (void)state;
    study_file study;
    parsed(&study, WHOLE "title: One, and two\nrevision: abc\nfloor: half\nstress: true\norientation: stored\n"
                         "timing: {batches: [1, 8], rounds: 40, base: half}\nevaluate: {draws: 500, threshold: 0.4}\n"
                         "premerge: [{name: cat, picture: cat.jpg, tolerance: 0.05}]\n"
                         "revisit:\n  - {when: int8 speedup_batch_8 >= 1.1, because: served in batches}\n"
                         "  - {when: kl < 0.01, because: a better recipe}\n"
                         "not_measured: [{what: H100, why: none at hand}]\n");
    assert_string_equal(study.name, "s");
    assert_string_equal(study.title, "One, and two");
    assert_string_equal(study.model, "a/../m");
    assert_int_equal(strlen(study.sha256), 64);
    assert_string_equal(study.data[0].place, "a/../d");
    assert_int_equal(study.set_count, 2);
    assert_string_equal(study_find_variant(&study, "int8")->recipe_path, "a/int8.yaml");
    assert_null(study_find_variant(&study, "half")->recipe_path);
    assert_true(study_find_variant(&study, "half")->judged); /* the floor */
    assert_true(study.stress);
    assert_int_equal(study.timing.rounds, 40);
    assert_int_equal(study.timing.batches[1], 8);
    assert_string_equal(study.timing.base, "half");
    assert_int_equal(study.timing.variant_count, 2);
    assert_string_equal(study.premerge[0].picture, "a/cat.jpg");
    assert_true(study.rules[0].adopted && study.rules[0].bounds[0].at_most && study.rules[0].bounds[0].limit == 0.1);
    assert_string_equal(study.revisits[0].variant, "int8");
    assert_int_equal(study.revisits[0].relation, RELATION_AT_LEAST);
    assert_true(study.revisits[0].number == 1.1);
    assert_null(study.revisits[1].variant);
    assert_string_equal(study.missing[0].what, "H100");
    study_file_free(&study);
    study_file_free(&study);
    /* Places: a hub id stays; each part of a list lies beside the file. */
    parsed(&study, "study: s\nmodel: timm/some\ndata: {d: 'x-{0,1}.tar,/y.tar,i.json:p'}\n" SETS VARIANTS RULES);
    assert_string_equal(study.model, "timm/some");
    assert_string_equal(study.data[0].place, "a/x-{0,1}.tar,/y.tar,a/i.json:a/p");
    study_file_free(&study);
}

typedef struct mistake {
    const char *text;
    int line;
    const char *says;
} mistake;

static const mistake mistakes[] = {
    {"- 1\n", 1, "expected a study (a map)"},
    {HEAD DATA SETS VARIANTS RULES "tytle: x\n", 11, "tytle"},
    {"study: s\n" DATA SETS VARIANTS RULES, 1, "model"},
    {"study: a b\nmodel: m\n" DATA SETS VARIANTS RULES, 1, "up to 64 letters"},
    {WHOLE "orientation: up\n", 11, "expected upright or stored, found \"up\""},
    {HEAD SETS VARIANTS RULES, 1, "expected the key \"data\""},
    {HEAD "data: [d]\n" SETS VARIANTS RULES, 3, "data: expected a map, found a list"},
    {HEAD "data: {d: [x]}\n" SETS VARIANTS RULES, 3, "expected a place"},
    {HEAD DATA "sets: {calibrate: [data: d]}\n" VARIANTS RULES, 4, "of the name verdict"},
    {HEAD DATA "sets: {verdict: [data: e]}\n" VARIANTS RULES, 4, "expected a data set's name, found \"e\""},
    {HEAD DATA "sets: {verdict: [first: 5]}\n" VARIANTS RULES, 4, "expected \"data: NAME\" or \"from: SET\" first"},
    {HEAD DATA "sets: {verdict: [data: d, data: d]}\n" VARIANTS RULES, 4, "stands first in a list of steps"},
    {HEAD DATA "sets: {verdict: [data: d, frist: 5]}\n" VARIANTS RULES, 4, "did you mean \"first\"?"},
    {HEAD DATA "sets: {verdict: [data: d, first: 0]}\n" VARIANTS RULES, 4, "first: expected a number of 1"},
    {HEAD DATA "sets: {verdict: [data: d, first: five]}\n" VARIANTS RULES, 4, "first: expected a number"},
    {HEAD DATA "sets: {verdict: [data: d, parity: 1]}\n" VARIANTS RULES, 4, "expected even or odd"},
    {HEAD DATA "sets: {verdict: [data: d, range: [5, 5]]}\n" VARIANTS RULES, 4, "two rising numbers"},
    {HEAD DATA "sets: {verdict: [data: d, range: 5]}\n" VARIANTS RULES, 4, "two rising numbers"},
    {HEAD DATA "sets: {verdict: [from: verdict]}\n" VARIANTS RULES, 4, "the name of a set above this one"},
    {HEAD DATA "sets: {verdict: [data: d, without: later], later: [data: d]}\n" VARIANTS RULES, 4, "above this one"},
    {HEAD DATA "sets: {verdict: [{data: d, first: 5}]}\n" VARIANTS RULES, 4, "expected one step"},
    {HEAD "data: {d: d, e: e}\nsets: {a: [data: e], verdict: [data: d, without: a]}\n" VARIANTS RULES, 4,
     "is of data set e, verdict of d"},
    {HEAD DATA SETS "variants: {fp32: [a]}\nreference: fp32\ncandidates: [fp32]\n" RULES, 5, "expected a recipe"},
    {HEAD DATA SETS "variants: {fp32: fp32}\nreference: fp23\ncandidates: [fp32]\n" RULES, 6, "did you mean \"fp32\"?"},
    {HEAD DATA SETS "variants: {fp32: fp32}\nreference: fp32\ncandidates: [fp32]\n" RULES, 7, "is the reference"},
    {HEAD DATA SETS "variants: {fp32: fp32}\nreference: fp32\ncandidates: [int4]\n" RULES, 7, "candidates: a variant"},
    {HEAD DATA SETS "variants: {fp32: fp32}\nreference: fp32\ncandidates: []\n" RULES, 7, "is empty"},
    {HEAD DATA SETS "variants: {f: f, g: f}\nreference: f\ncandidates: [g, g]\n" RULES, 7, "is there twice"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: lk, at_most: 1}]}\nadopt: [q]\n", 8, "did you mean \"kl\"?"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: kl}]}\nadopt: [q]\n", 8,
     "expected one of at_most and at_least, found none"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: kl, at_most: 1, at_least: 0}]}\nadopt: [q]\n", 8, "found both"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: kl, at_most: low}]}\nadopt: [q]\n", 8, "at_most"},
    {HEAD DATA SETS VARIANTS "rules: {q: []}\nadopt: [q]\n", 8, "expected a list of bounds"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: kl, at_most: 1}]}\nadopt: [p]\n", 9, "adopt: a rule"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: kl, at_most: 1}]}\n", 1, "adopt"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: speedup_batch_1, at_least: 1}]}\nadopt: [q]\n", 8, "key \"timing\""},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: speedup_batch_2, at_least: 1}]}\nadopt: [q]\ntiming: {}\n", 8,
     "batch 2 is not among"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: speedup_batch_, at_least: 1}]}\nadopt: [q]\ntiming: {}\n", 8,
     "a figure"},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: stress_nan, at_most: 0}]}\nadopt: [q]\n", 8, "key \"stress: true\""},
    {HEAD DATA SETS VARIANTS "rules: {q: [{figure: premerge_drift, at_most: 1}]}\nadopt: [q]\n", 8, "key \"premerge\""},
    {WHOLE "timing: {batches: [0]}\n", 11, "numbers of 1 to 1024"},
    {WHOLE "timing: {batches: []}\n", 11, "is empty"},
    {WHOLE "timing: {base: x}\n", 11, "base: a variant"},
    {WHOLE "timing: {rounds: 1}\n", 11, "rounds"},
    {WHOLE "evaluate: {threshold: 2}\n", 11, "threshold: expected 0 to 1"},
    {WHOLE "premerge: [{name: a, picture: p, tolerance: 0}]\n", 11, "tolerance: expected above 0"},
    {WHOLE "premerge: [{name: a, tolerance: 0.1}]\n", 11, "picture"},
    {WHOLE "revisit: [{when: kl 5, because: x}]\n", 11, "expected \"[VARIANT] FIGURE < NUMBER\""},
    {WHOLE "revisit: [{when: kl = 5, because: x}]\n", 11, "expected <, <=, > or >=, found \"=\""},
    {WHOLE "revisit: [{when: kl < five, because: x}]\n", 11, "expected a number, found \"five\""},
    {WHOLE "revisit: [{when: int9 kl < 5, because: x}]\n", 11, "expected a variant, found \"int9\""},
    {WHOLE "revisit: [{when: lk < 5, because: x}]\n", 11, "did you mean \"kl\"?"},
    {WHOLE "revisit: [{when: kl < 5}]\n", 11, "because"},
    {WHOLE "not_measured: [x]\n", 11, "expected {what, why}"},
    {WHOLE "study: again\n", 11, "study"},
};

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        study_file study;
        char place[32];
        (void)snprintf(place, sizeof place, "a/study.yaml:%d: ", mistakes[i].line);
        octet_status status = parse(&study, mistakes[i].text);
        if (status == OCTET_OK) fail_msg("mistake %zu was not noticed:\n%s", i, mistakes[i].text);
        if (strncmp(study_error_text(), place, strlen(place)) != 0 ||
            strstr(study_error_text(), mistakes[i].says) == NULL)
            fail_msg("mistake %zu: expected \"%s...%s\", found: %s", i, place, mistakes[i].says, study_error_text());
        assert_null(study.memory);
    }
}

/* ---- splits */

/* `shards` shards of `each` pictures, "part-03/00000017"; or none: "00000017". */
static const char **make_names(size_t shards, size_t each) {
    size_t count = (shards > 0 ? shards : 1) * each;
    const char **names = calloc(count, sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        if (shards > 0)
            (void)snprintf(name, sizeof name, "part-%02zu/%08zu", i / each, i);
        else
            (void)snprintf(name, sizeof name, "%08zu", i);
        names[i] = strdup(name);
    }
    return names;
}

static void free_names(const char **names, size_t count) {
    for (size_t i = 0; i < count; i++) free((char *)(uintptr_t)names[i]);
    free(names);
}

static void split(const char *sets, const char **names, size_t count, const char *const *wanted, study_pictures *out,
                  size_t wanted_count) {
    char text[1024];
    study_file study;
    (void)snprintf(text, sizeof text, HEAD DATA "sets:\n%s" VARIANTS RULES, sets);
    parsed(&study, text);
    for (size_t i = 0; i < wanted_count; i++) {
        const char *const *all[] = {names};
        if (study_resolve(&study, study_find_set(&study, wanted[i]), all, &count, &out[i]) != OCTET_OK)
            fail_msg("%s", study_error_text());
        out[i].data = NULL; /* the study goes */
    }
    study_file_free(&study);
}

static bool has(const study_pictures *set, int64_t number) {
    for (size_t i = 0; i < set->count; i++)
        if (set->numbers[i] == number) return true;
    return false;
}

/* "every 25th image of each shard, shuffled with seed 0: 500 calibrate, 1,500 held out" */
static void test_published_classifier(void **state) {
    (void)state;
    const char **names = make_names(64, 782);
    const char *const wanted[] = {"pool", "calibrate", "verdict"};
    study_pictures out[3];
    split("  pool: [data: d, every_of_shard: 25, shuffle: 0, first: 2000]\n"
          "  calibrate: [from: pool, first: 500]\n  verdict: [from: pool, without: calibrate]\n",
          names, (size_t)64 * 782, wanted, out, 3);
    assert_int_equal(out[0].count, 2000);
    assert_int_equal(out[1].count, 500);
    assert_int_equal(out[2].count, 1500);
    size_t rising = 0;
    for (size_t i = 0; i < 2000; i++) {
        assert_int_equal(out[0].numbers[i] % 782 % 25, 0);
        assert_true(out[0].numbers[i] == (i < 500 ? out[1].numbers[i] : out[2].numbers[i - 500]));
        rising += i > 0 && out[0].numbers[i] > out[0].numbers[i - 1];
    }
    assert_true(rising > 900 && rising < 1100); /* shuffled */
    for (size_t i = 0; i < 500; i++) assert_false(has(&out[2], out[1].numbers[i]));
    for (int i = 0; i < 3; i++) study_pictures_free(&out[i]);
    free_names(names, (size_t)64 * 782);
}

/* "first 800 validation images; even images 0 to 598 calibrate, the other 500 held out" */
static void test_published_detector(void **state) {
    (void)state;
    const char **names = make_names(0, 5000);
    const char *const wanted[] = {"calibrate", "verdict"};
    study_pictures out[2];
    split("  pool: [data: d, first: 800]\n  calibrate: [from: pool, range: [0, 599], parity: even]\n"
          "  verdict: [from: pool, without: calibrate]\n",
          names, 5000, wanted, out, 2);
    assert_int_equal(out[0].count, 300);
    assert_int_equal(out[1].count, 500);
    for (size_t i = 0; i < 300; i++) assert_int_equal(out[0].numbers[i], 2 * i);
    assert_int_equal(out[1].numbers[0], 1);
    assert_int_equal(out[1].numbers[299], 599);
    assert_int_equal(out[1].numbers[300], 600);
    assert_int_equal(out[1].numbers[499], 799);
    for (int i = 0; i < 2; i++) study_pictures_free(&out[i]);
    free_names(names, 5000);
}

static void test_steps(void **state) {
    (void)state;
    const char **names = make_names(2, 10);
    const char *const wanted[] = {"a", "b", "c", "verdict"};
    study_pictures out[4];
    split("  a: [data: d, last: 3]\n  b: [data: d, every: 7]\n  c: [data: d, range: [2, 5], parity: odd]\n"
          "  verdict: [data: d, every_of_shard: 4, without: b]\n",
          names, 20, wanted, out, 4);
    assert_memory_equal(out[0].numbers, ((int64_t[]){17, 18, 19}), 3 * sizeof(int64_t));
    assert_int_equal(out[1].count, 3);
    assert_memory_equal(out[1].numbers, ((int64_t[]){0, 7, 14}), 3 * sizeof(int64_t));
    assert_int_equal(out[2].count, 1);
    assert_int_equal(out[2].numbers[0], 3);
    assert_int_equal(out[3].count, 4); /* 0 4 8 10 14 18 without 0, 14 */
    assert_memory_equal(out[3].numbers, ((int64_t[]){4, 8, 10, 18}), 4 * sizeof(int64_t));
    for (int i = 0; i < 4; i++) study_pictures_free(&out[i]);
    free_names(names, 20);
}

static void test_too_few(void **state) {
    (void)state;
    study_file study;
    const char **names = make_names(0, 4);
    const char *const *all[] = {names};
    size_t count = 4;
    study_pictures out;
    parsed(&study, WHOLE);
    assert_int_equal(study_resolve(&study, study_find_set(&study, "verdict"), all, &count, &out), OCTET_LIMIT);
    if (strstr(study_error_text(), "a/study.yaml:4: set calibrate: first: expected at least 5 pictures, found 4") ==
        NULL)
        fail_msg("%s", study_error_text());
    free_names(names, 4);
    names = make_names(0, 5);
    all[0] = names;
    count = 5;
    assert_int_equal(study_resolve(&study, study_find_set(&study, "verdict"), all, &count, &out), OCTET_LIMIT);
    if (strstr(study_error_text(), "set verdict: has no pictures") == NULL) fail_msg("%s", study_error_text());
    free_names(names, 5);
    study_file_free(&study);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_published_classifier),
        cmocka_unit_test(test_published_detector),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_too_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
