/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever digit is changed, in the report, the evidence or the files it is of: it is found, and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "study/report.h"
#include "study/run.h"
#include "study/verify.h"
#include "unit/study/fake_engine.h"

#define STUDY                                                                                                          \
    "study: fake\nmodel: ./m\ndata: {a: a, b: b}\n"                                                                    \
    "sets:\n  calibrate: [data: a, first: 20]\n  verdict: [data: b, first: 60]\n"                                      \
    "variants: {fp32: fp32, fp16: fp16, int8: int8.yaml}\n"                                                            \
    "reference: fp32\nfloor: fp16\ncandidates: [int8]\nstress: true\ntiming: {batches: [1], rounds: 12}\n"             \
    "rules:\n  quality:\n    - {figure: kl, at_most: 0.5}\nadopt: [quality]\n"

static char *folder;

static char *at(const char *name) {
    char *path = oct_sprintf("%s/%s", folder, name);
    assert_non_null(path);
    return path;
}

static void good(octet_status status) {
    if (status != OCTET_OK) fail_msg("%s", study_error_text());
}

typedef struct told {
    size_t count;
    char text[1024];
} told;

static void on_problem(void *user, const char *text) {
    told *t = user;
    if (t->count++ == 0) (void)snprintf(t->text, sizeof t->text, "%s", text);
}

/* The recipe that the engine of seeds says int8 has. */
#define RECIPE "recipe: int8.yaml\n"

static void measure(const study_file *study, const char *evidence, const char *scales) {
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 100, .speed = 1.5};
    const study_engine engine = fake_functions(&fake);
    good(study_run(study, &engine, &(study_run_options){.evidence = evidence, .scales = scales}));
}

/* A whole study in `folder`: its file, recipe, scales, evidence, README and page. */
static int make_study(void **state) {
    (void)state;
    folder = support_temporary_directory();
    char *file = at("study.yaml"), *recipe = at("int8.yaml"), *evidence = at("raw.sqlite"), *scales = at("scales");
    char *merged = at("study.sqlite"), *readme = at("README.md"), *html = at("study.html");
    study_file study;
    evidence_file *opened;
    report_text text;
    support_write_text(file, STUDY);
    support_write_text(recipe, RECIPE);
    support_write_text(readme, "# S 1\n" REPORT_BEGIN REPORT_END "\nafter 2\n");
    good(study_file_read(&study, file));
    measure(&study, evidence, scales);
    good(evidence_merge((const char *const[]){evidence}, 1, merged));
    good(evidence_open(merged, EVIDENCE_READ, &opened));
    good(report_make(&study, opened, &text));
    good(report_write(&text, readme, html));
    report_text_free(&text);
    evidence_close(&opened);
    study_file_free(&study);
    char *all[] = {file, recipe, evidence, scales, merged, readme, html};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) oct_free(all[i]);
    return 0;
}

static int remove_study(void **state) {
    (void)state;
    support_remove_tree(folder);
    free(folder);
    return 0;
}

/* Any failure to read the study or its evidence is one that is noticed. */
static octet_status verify_all(told *t) {
    char *file = at("study.yaml"), *scales = at("scales"), *merged = at("study.sqlite"), *readme = at("README.md");
    char *html = at("study.html");
    study_file study;
    *t = (told){0};
    octet_status status = study_file_read(&study, file);
    if (status == OCTET_OK) {
        const verify_files files = {.evidence = merged, .readme = readme, .html = html, .scales = scales};
        status = verify_study(&study, &files, on_problem, t);
        study_file_free(&study);
    }
    char *all[] = {file, scales, merged, readme, html};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) oct_free(all[i]);
    return status;
}

static void test_whole(void **state) {
    (void)state;
    told t;
    if (verify_all(&t) != OCTET_OK) fail_msg("%s: %s", study_error_text(), t.text);
    assert_int_equal(t.count, 0);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* ---- every digit of a report */

static void each_digit(const char *name, const char *expected, size_t length) {
    char *changed = strndup(expected, length);
    size_t line = 7, digits = 0;
    assert_non_null(changed);
    for (size_t i = 0; i < length; i++) {
        line += changed[i] == '\n';
        if (!is_digit(changed[i])) continue;
        told t = {0};
        char kept = changed[i], place[64];
        changed[i] = kept == '9' ? '0' : (char)(kept + 1);
        size_t problems = verify_lines(name, 7, expected, length, changed, length, on_problem, &t);
        (void)snprintf(place, sizeof place, "%s:%zu: expected \"", name, line);
        if (problems != 1 || t.count != 1 || strncmp(t.text, place, strlen(place)) != 0)
            fail_msg("%s: digit %zu: %zu problems: %s", name, i, problems, t.text);
        /* Both words are told, and they differ in the digit. */
        const char *wanted = t.text + strlen(place), *found = strstr(t.text, "\", found \"");
        assert_non_null(found);
        assert_true(memchr(wanted, kept, (size_t)(found - wanted)) != NULL && strchr(found, changed[i]) != NULL);
        changed[i] = kept;
        digits++;
    }
    assert_true(digits > 500);
    free(changed);
}

static void test_every_digit(void **state) {
    (void)state;
    char *readme = at("README.md"), *html = at("study.html");
    uint8_t *data;
    size_t size, from, to;
    good(oct_file_read(readme, REPORT_BYTES, &data, &size));
    good(report_find(readme, (const char *)data, size, &from, &to));
    each_digit("README.md", (const char *)data + from, to - from);
    oct_free(data);
    good(oct_file_read(html, REPORT_BYTES, &data, &size));
    each_digit("study.html", (const char *)data, size);
    oct_free(data);
    oct_free(readme);
    oct_free(html);
}

static void test_lines(void **state) {
    (void)state;
    static const struct {
        const char *expected, *found, *says;
    } cases[] = {
        {"a\nb 1.5<!-- 0123456789ab -->\n", "a\nb 1.6<!-- 0123456789ab -->\n",
         "f:2: expected \"1.5\", found \"1.6\", evidence 0123456789ab"},
        {"<p><data value=\"1\" data-id=\"ab01ab01ab01\">17</data>",
         "<p><data value=\"1\" data-id=\"ab01ab01ab01\">18</data>",
         "f:1: expected \"17\", found \"18\", evidence ab01ab01ab01"},
        {"a\nb\n", "a\n", "f:2: expected \"b\", found \"\""},
        {"a\n", "a\nb\n", "f:2: expected \"\", found \"b\""},
        {"", "x", "f:1: expected \"\", found \"x\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        told t = {0};
        assert_int_equal(verify_lines("f", 1, cases[i].expected, strlen(cases[i].expected), cases[i].found,
                                      strlen(cases[i].found), on_problem, &t),
                         1);
        assert_string_equal(t.text, cases[i].says);
    }
    assert_int_equal(verify_lines("f", 1, "a\n", 2, "a", 1, NULL, NULL), 1); /* the last line end */
    assert_int_equal(verify_lines("f", 1, "a\n", 2, "a\n", 2, NULL, NULL), 0);
}

/* ---- digits of files */

/* Changes digit number `which` among those from byte `skip` on; false: there are fewer. */
static bool change_digit(uint8_t *data, size_t size, size_t skip, size_t which) {
    for (size_t i = skip; i < size; i++)
        if (is_digit((char)data[i]) && which-- == 0) {
            data[i] = data[i] == '9' ? '0' : (uint8_t)(data[i] + 1);
            return true;
        }
    return false;
}

static size_t count_digits(const uint8_t *data, size_t size, size_t skip) {
    size_t count = 0;
    for (size_t i = skip; i < size; i++) count += is_digit((char)data[i]);
    return count;
}

/* `times` changes of one digit each, drawn by a seed; every one is noticed. */
static void random_digits(const char *name, size_t skip, size_t times) {
    char *path = at(name);
    uint8_t *data;
    size_t size;
    uint64_t seed = 7;
    good(oct_file_read(path, REPORT_BYTES, &data, &size));
    size_t digits = count_digits(data, size, skip);
    assert_true(digits > 0);
    uint8_t *changed = malloc(size);
    assert_non_null(changed);
    for (size_t i = 0; i < times; i++) {
        told t;
        size_t which = (size_t)(next_random(&seed) % digits);
        memcpy(changed, data, size);
        assert_true(change_digit(changed, size, skip, which));
        support_write_file(path, changed, size);
        if (verify_all(&t) == OCTET_OK) fail_msg("%s: digit %zu was changed and nobody saw it", name, which);
    }
    support_write_file(path, data, size);
    free(changed);
    oct_free(data);
    oct_free(path);
}

/* 1,000 in all. Of the evidence: behind the header of the database file, in which not every byte is the rows'. */
static void test_evidence_digits(void **state) {
    (void)state;
    random_digits("study.sqlite", 4096, 600);
    test_whole(state);
}

static void test_artifact_digits(void **state) {
    (void)state;
    random_digits("study.html", 0, 150);
    random_digits("int8.yaml", 0, 50);
    random_digits("study.yaml", 0, 100);
    random_digits("scales/int8.json", 0, 100);
    test_whole(state);
}

/* Outside the marks a README is its owner's. */
static void test_outside_marks(void **state) {
    (void)state;
    char *path = at("README.md");
    uint8_t *data;
    size_t size;
    told t;
    good(oct_file_read(path, REPORT_BYTES, &data, &size));
    data[4] = '2';
    support_write_file(path, data, size);
    assert_int_equal(verify_all(&t), OCTET_OK);
    data[4] = '1';
    support_write_file(path, data, size);
    oct_free(data);
    oct_free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),           cmocka_unit_test(test_lines),
        cmocka_unit_test(test_every_digit),     cmocka_unit_test(test_evidence_digits),
        cmocka_unit_test(test_artifact_digits), cmocka_unit_test(test_outside_marks),
    };
    return cmocka_run_group_tests(tests, make_study, remove_study);
}
