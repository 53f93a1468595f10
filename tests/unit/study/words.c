/* SPDX-License-Identifier: Apache-2.0 */
/* Every situation of words.def both ways: the evidence that makes it, the sentence that it demands, the phrases that it
 * forbids, and evidence that makes it not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/study/report_fixture.h"
#include "unit/study/folder.h"

/* Evidence in which a situation does not hold. Of a floor there is always one or none. */
static words_situation off(words_situation s) {
    return s == WORDS_floor_is_context ? WORDS_no_floor : NO_SITUATION;
}

static words_situation on(words_situation s) {
    return s == WORDS_floor_is_context ? NO_SITUATION : s;
}

static bool holds(const fixture *f, words_situation s) {
    report_source source;
    oct_text about = {0};
    fixture_good(report_source_load(&source, &f->study, f->evidence));
    bool is = words_hold(&source, s, &about);
    oct_text_free(&about);
    report_source_free(&source);
    return is;
}

static char *report_of(const fixture *f) {
    report_text text;
    fixture_good(report_make(&f->study, f->evidence, &text));
    char *plain = words_plain(text.markdown);
    assert_non_null(plain);
    report_text_free(&text);
    return plain;
}

static void test_table(void **state) {
    (void)state;
    assert_true(WORDS_COUNT >= 15);
    for (int i = 0; i < WORDS_COUNT; i++) {
        assert_true(strlen(words_sentence((words_situation)i)) > 10);
        assert_true(strlen(words_forbidden((words_situation)i)) > 3);
        assert_null(strstr(words_sentence((words_situation)i), "\n"));
    }
}

/* The report says the sentence where the situation holds, and does not where it does not. */
static void test_both_ways(void **state) {
    (void)state;
    for (int i = 0; i < WORDS_COUNT; i++) {
        words_situation s = (words_situation)i;
        fixture f;
        fixture_make(&f, folder, on(s), "a title");
        if (!holds(&f, s)) fail_msg("%s: does not hold where it should", words_name(s));
        char *plain = report_of(&f);
        if (strstr(plain, words_sentence(s)) == NULL) fail_msg("%s: the report lacks its sentence", words_name(s));
        free(plain);
        fixture_free(&f);
        fixture_make(&f, folder, off(s), "a title");
        if (holds(&f, s)) fail_msg("%s: holds where it should not", words_name(s));
        plain = report_of(&f);
        if (strstr(plain, words_sentence(s)) != NULL) fail_msg("%s: the report has its sentence", words_name(s));
        free(plain);
        fixture_free(&f);
    }
}

/* Without its sentence a report is refused, whatever else it says. */
static void test_sentence_is_demanded(void **state) {
    (void)state;
    for (int i = 0; i < WORDS_COUNT; i++) {
        words_situation s = (words_situation)i;
        report_source source;
        fixture f;
        fixture_make(&f, folder, on(s), "a title");
        char *plain = report_of(&f), *at;
        fixture_good(report_source_load(&source, &f.study, f.evidence));
        fixture_good(words_check(&source, plain));
        while ((at = strstr(plain, words_sentence(s))) != NULL) *at = '?';
        assert_int_equal(words_check(&source, plain), OCTET_VERIFICATION);
        assert_non_null(strstr(study_error_text(), words_name(s)));
        report_source_free(&source);
        free(plain);
        fixture_free(&f);
    }
}

/* Each forbidden phrase in the study's own title is refused where the situation holds, and passes where not. */
static void test_phrases_are_forbidden(void **state) {
    (void)state;
    size_t phrases = 0;
    for (int i = 0; i < WORDS_COUNT; i++) {
        words_situation s = (words_situation)i;
        char *list = strdup(words_forbidden(s)), *rest = NULL;
        for (char *phrase = strtok_r(list, "|", &rest); phrase != NULL; phrase = strtok_r(NULL, "|", &rest)) {
            report_text text;
            fixture f;
            char title[200];
            (void)snprintf(title, sizeof title, "It %s so", phrase);
            title[3] = title[3] >= 'a' && title[3] <= 'z' ? (char)(title[3] - 32) : title[3];
            fixture_make(&f, folder, on(s), title);
            assert_int_equal(report_make(&f.study, f.evidence, &text), OCTET_VERIFICATION);
            if (strstr(study_error_text(), words_name(s)) == NULL || strstr(study_error_text(), "study.yaml") == NULL)
                fail_msg("%s: \"%s\": %s", words_name(s), phrase, study_error_text());
            fixture_free(&f);
            fixture_make(&f, folder, off(s), title);
            if (report_make(&f.study, f.evidence, &text) != OCTET_OK)
                fail_msg("%s: \"%s\" is refused where it may stand: %s", words_name(s), phrase, study_error_text());
            report_text_free(&text);
            fixture_free(&f);
            phrases++;
        }
        free(list);
    }
    assert_true(phrases > 2 * WORDS_COUNT);
}

/* Weights alone in another format attribute nothing. */
static void test_other_format_is_not_apart(void **state) {
    (void)state;
    report_source source;
    fixture f;
    fixture_make(&f, folder, NO_SITUATION, "a title");
    fixture_good(report_source_load(&source, &f.study, f.evidence));
    assert_string_equal(report_variant_apart(&source, "both", true), "weights");
    assert_string_equal(report_variant_apart(&source, "both", false), "activations");
    for (size_t v = 0; v < source.study->variant_count; v++)
        if (strcmp(source.study->variants[v].name, "weights") == 0) memcpy(source.recipes[v].weights_format, "e4m3", 5);
    assert_null(report_variant_apart(&source, "both", true));
    assert_string_equal(report_variant_apart(&source, "both", false), "activations");
    report_source_free(&source);
    fixture_free(&f);
}

static void test_plain(void **state) {
    (void)state;
    char *plain = words_plain("a\\_b <!-- 12 -->**c**\n\n  d <!-- open");
    assert_string_equal(plain, "a_b **c** d <!-- open");
    free(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_sentence_is_demanded),
        cmocka_unit_test(test_phrases_are_forbidden),
        cmocka_unit_test(test_other_format_is_not_apart),
        cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
