/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: what a reader finds on the page, what it must not need, where it goes in a README. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "study/report_page.h"
#include "study/report_plot.h"
#include "study/run.h"
#include "unit/study/fake_engine.h"
#include "unit/study/report_fixture.h"
#include "unit/study/folder.h"

#define STUDY                                                                                                          \
    "study: fake\ntitle: A | B <b>bold</b>\nmodel: ../m\ndata: {a: a, b: b}\n"                                         \
    "sets:\n  calibrate: [data: a, first: 20]\n  select: [data: b, first: 40]\n"                                       \
    "  verdict: [data: b, without: select]\n"                                                                          \
    "variants: {fp32: fp32, fp16: fp16, int8: int8, int8_rows: int8_rows}\n"                                           \
    "reference: fp32\nfloor: fp16\ncandidates: [int8]\nstress: true\n"                                                 \
    "timing: {batches: [1, 8], rounds: 12}\n"                                                                          \
    "rules:\n  quality:\n    - {figure: kl, at_most: 0.000001}\n    - {figure: nonfinite, at_most: 0}\n"               \
    "  speed: [{figure: speedup_batch_8, at_least: 1.2}]\nadopt: [quality, speed]\n"                                   \
    "revisit: [{when: speedup_batch_1 > 5, because: served alone}]\n"                                                  \
    "not_measured:\n  - {what: the moon, why: out of reach}\n  - {what: scales a row, why: int8_rows}\n"

static void make(octet_task task, report_text *out) {
    fake_engine fake = {.task = task, .pictures = 200, .speed = 1.5, .salt = 11};
    const study_engine engine = fake_functions(&fake);
    char evidence_path[4200], scales[4200];
    study_file study;
    evidence_file *evidence;
    (void)snprintf(evidence_path, sizeof evidence_path, "%s/%d.sqlite", folder, (int)task);
    (void)snprintf(scales, sizeof scales, "%s/%d.scales", folder, (int)task);
    fixture_good(study_file_parse(&study, "study.yaml", STUDY, strlen(STUDY)));
    fixture_good(study_run(&study, &engine, &(study_run_options){.evidence = evidence_path, .scales = scales}));
    fixture_good(evidence_open(evidence_path, EVIDENCE_READ, &evidence));
    fixture_good(report_make(&study, evidence, out));
    evidence_close(&evidence);
    study_file_free(&study);
}

/* The page's words: no tags, entities read, one blank between words. */
static char *page_text(const char *html) {
    static const char *const entities[][2] = {{"&lt;", "<"},    {"&gt;", ">"},  {"&amp;", "&"},
                                              {"&quot;", "\""}, {"&#39;", "'"}, {"&nbsp;", " "}};
    char *out = calloc(1, strlen(html) + 1);
    size_t n = 0;
    assert_non_null(out);
    const char *s = strstr(html, "<body>");
    assert_non_null(s);
    while (*s != '\0') {
        if (*s == '<') {
            bool inside = strncmp(s, "<data", 5) == 0 || strncmp(s, "</data", 6) == 0 ||
                          strncmp(s, "<strong", 7) == 0 || strncmp(s, "</strong", 8) == 0 ||
                          strncmp(s, "<code", 5) == 0 || strncmp(s, "</code", 6) == 0;
            s = strchr(s, '>') + 1;
            if (!inside && n > 0 && out[n - 1] != ' ') out[n++] = ' ';
            continue;
        }
        bool read = false;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0] && !read; i++)
            if (strncmp(s, entities[i][0], strlen(entities[i][0])) == 0) {
                out[n++] = entities[i][1][0];
                s += strlen(entities[i][0]);
                read = true;
            }
        if (read) continue;
        bool blank = *s == '\n' || *s == ' ';
        if (!blank || (n > 0 && out[n - 1] != ' ')) out[n++] = blank ? ' ' : *s;
        s++;
    }
    return out;
}

static void has(const char *text, const char *words) {
    if (strstr(text, words) == NULL) fail_msg("the page does not say \"%s\"", words);
}

static void has_not(const char *text, const char *words) {
    if (strstr(text, words) != NULL) fail_msg("the page has \"%s\"", words);
}

/* What a reader who has the page alone can answer. */
static void test_reader(void **state) {
    (void)state;
    report_text text;
    make(OCTET_CLASSIFICATION, &text);
    char *page = page_text(text.html);
    has(page, "int8: do not ship, by the rules quality and speed"); /* which verdict, by which rule */
    has(page, "Why: kl of int8: ");                                 /* why */
    has(page, "wanted at most 1e-06: fails");
    has(page, "How fast (int8, cpu): at batch 1 faster against fp32, 1."); /* how much faster */
    has(page, "at batch 8 faster against fp32, 1.");
    has(page, "At what quality (int8, verdict set): top-1 less the reference's "); /* at what quality, the floor */
    has(page, "(floor ");
    has(page, "On what: 20 to calibrate of a, 40 to select of b, 160 to verdict of b; devices: cpu (fake)");
    has(page, "Not run: the moon; see"); /* what was not run */
    has(page, "the moon out of reach");
    has(page, "scales a row measured: variant int8_rows, KL 0.");
    has(page, "Look again when speedup_batch_1 > 5."); /* when to look again */
    has(page, "speedup_batch_1 > 5 served alone does not hold 1.");
    has(page, "octet study rerun --sample 3 study.yaml");
    has(page, "A | B <b>bold</b>");
    const char *verdict = strstr(text.html, "do not ship"), *quality = strstr(text.html, "<h2>Quality");
    assert_true(verdict != NULL && quality != NULL && verdict < quality);
    free(page);
    report_text_free(&text);
}

static void test_detection(void **state) {
    (void)state;
    report_text text;
    make(OCTET_DETECTION, &text);
    char *page = page_text(text.html);
    has(page, "COCO AP ");
    has(page, "detections that the reference does not have, 1 - precision");
    has(page, "pictures have an unmatched detection on either side");
    has(page, words_sentence(WORDS_unmatched));
    free(page);
    report_text_free(&text);
}

/* No script, no other host; both themes; a phone's width; every drawing closed; every number has its evidence. */
static void test_self_contained(void **state) {
    (void)state;
    report_text text;
    make(OCTET_CLASSIFICATION, &text);
    static const char *const never[] = {"<script", "http:",   "https:",  "src=",    "href=", "@import",
                                        "url(",    "<b>bold", " onload", "<iframe", "<link"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) has_not(text.html, never[i]);
    has(text.html, "prefers-color-scheme:dark");
    has(text.html, "name=\"viewport\" content=\"width=device-width");
    has(text.html, "default-src 'none'");
    size_t opened = 0, closed = 0;
    for (const char *s = text.html; (s = strstr(s, "<svg ")) != NULL; s++) opened++;
    for (const char *s = text.html; (s = strstr(s, "</svg>")) != NULL; s++) closed++;
    assert_true(opened >= 4); /* accuracy against time, sensitivity, classes, moves */
    assert_int_equal(opened, closed);
    for (const char *s = text.html; (s = strstr(s, "data-id=\"")) != NULL; s++)
        assert_int_equal(strspn(s + 9, "0123456789abcdef"), PAGE_ID);
    report_text_free(&text);
}

/* Tables of Markdown have as many cells in each row; the marks cannot be forged. */
static void test_markdown(void **state) {
    (void)state;
    report_text text;
    make(OCTET_CLASSIFICATION, &text);
    int columns = 0;
    for (char *line = text.markdown, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        int cells = 0;
        for (char *s = line; s < end; s++) cells += *s == '|' && (s == line || s[-1] != '\\');
        if (line[0] != '|') {
            columns = 0;
        } else {
            if (columns == 0) columns = cells;
            assert_int_equal(cells, columns);
        }
    }
    has(text.markdown, "A \\| B &lt;b&gt;bold&lt;/b&gt;");
    report_text_free(&text);
}

/* The same evidence gives the same bytes. */
static void test_same_bytes(void **state) {
    (void)state;
    fixture f;
    report_text a, b;
    fixture_make(&f, folder, NO_SITUATION, "a title");
    fixture_good(report_make(&f.study, f.evidence, &a));
    fixture_good(report_make(&f.study, f.evidence, &b));
    assert_string_equal(a.html, b.html);
    assert_string_equal(a.markdown, b.markdown);
    has(a.html, "Eight bits can touch <data value=\"75.0%\"");
    has(a.html, ">4.00</data> times as fast"); /* 1.5 of 2.0 ms: 1 / (1 - 0.75) */
    report_text_free(&a);
    report_text_free(&b);
    fixture_free(&f);
}

/* A study file that was changed since it was run has no report until it is run again. */
static void test_changed_study(void **state) {
    (void)state;
    fixture f;
    report_text text;
    fixture_make(&f, folder, WORDS_unfinished, "a title");
    study_file_free(&f.study);
    fixture_good(study_file_parse(&f.study, "study.yaml", STUDY, strlen(STUDY)));
    assert_int_equal(report_make(&f.study, f.evidence, &text), OCTET_MISMATCH);
    has(study_error_text(), "study.yaml: was not run as it stands now");
    assert_null(text.html);
    fixture_free(&f);
}

/* A recipe that changed after the verdict set was opened is said in the first line. */
static void test_changed_recipe_first(void **state) {
    (void)state;
    fixture f;
    report_text text;
    fixture_make(&f, folder, WORDS_recipe_changed, "a title");
    fixture_good(report_make(&f.study, f.evidence, &text));
    const char *at = strstr(text.markdown, "\n> ");
    assert_non_null(at);
    assert_int_equal(
        strncmp(at + 3, words_sentence(WORDS_recipe_changed), strlen(words_sentence(WORDS_recipe_changed))), 0);
    report_text_free(&text);
    fixture_free(&f);
}

/* ---- READMEs */

static void test_place(void **state) {
    (void)state;
    static const char readme[] = "\xff one\r\n" REPORT_BEGIN "old\0er" REPORT_END "\n\ntwo\0three";
    static const char wanted[] = "\xff one\r\n" REPORT_BEGIN "\nnew\n" REPORT_END "\n\ntwo\0three";
    char *out;
    size_t size;
    fixture_good(report_place("README.md", readme, sizeof readme - 1, "\nnew\n", &out, &size));
    assert_int_equal(size, sizeof wanted - 1);
    assert_memory_equal(out, wanted, size);
    free(out);
}

static void test_place_refused(void **state) {
    (void)state;
    static const struct {
        const char *readme;
        octet_status status;
        const char *says;
    } cases[] = {
        {"", OCTET_NOT_FOUND, "README.md: expected <!-- octet:report -->"},
        {"words", OCTET_NOT_FOUND, "found neither"},
        {REPORT_BEGIN "only", OCTET_BAD_FORMAT, "found 1 and 0"},
        {REPORT_END, OCTET_BAD_FORMAT, "found 0 and 1"},
        {REPORT_END REPORT_BEGIN, OCTET_BAD_FORMAT, "the other way round"},
        {REPORT_BEGIN REPORT_BEGIN REPORT_END, OCTET_BAD_FORMAT, "found 2 and 1"},
        {REPORT_BEGIN REPORT_END REPORT_BEGIN REPORT_END, OCTET_BAD_FORMAT, "found 2 and 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *out;
        size_t size;
        assert_int_equal(report_place("README.md", cases[i].readme, strlen(cases[i].readme), "x", &out, &size),
                         cases[i].status);
        has(study_error_text(), cases[i].says);
        assert_null(out);
    }
}

/* A README that is refused stays as it is, and so does a page beside it. */
static void test_write(void **state) {
    (void)state;
    report_text text = {.markdown = strdup("\nnew\n"), .html = strdup("page")};
    char readme[4200], html[4200];
    uint8_t *data;
    size_t size;
    (void)snprintf(readme, sizeof readme, "%s/README.md", folder);
    (void)snprintf(html, sizeof html, "%s/study.html", folder);
    support_write_text(readme, "no marks");
    assert_int_equal(report_write(&text, readme, html), OCTET_NOT_FOUND);
    assert_false(oct_file_exists(html));
    support_write_text(readme, "a" REPORT_BEGIN REPORT_END "b");
    fixture_good(report_write(&text, readme, html));
    fixture_good(oct_file_read(readme, 1000, &data, &size));
    assert_string_equal((char *)data, "a" REPORT_BEGIN "\nnew\n" REPORT_END "b");
    oct_free(data);
    fixture_good(oct_file_read(html, 1000, &data, &size));
    assert_string_equal((char *)data, "page");
    oct_free(data);
    report_text_free(&text);
}

/* ---- escaping, drawings */

static void test_escape(void **state) {
    (void)state;
    static const char nasty[] = "<a&\"'>|`*_[x]\n\x01\xff\xe2\x80\xae\xc3\xa9";
    oct_text html = {0}, markdown = {0};
    page_escape_html(&html, nasty);
    assert_string_equal(html.data, "&lt;a&amp;&quot;&#39;&gt;|`*_[x] \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    page_escape_markdown(&markdown, nasty);
    assert_string_equal(markdown.data, "&lt;a&amp;\"'&gt;\\|\\`\\*\\_\\[x\\] "
                                       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    oct_text_free(&html);
    oct_text_free(&markdown);
}

/* Nothing, one point, equal points, NaN and infinity, names with tags: drawings end and hold no NaN. */
static void test_drawings(void **state) {
    (void)state;
    static const plot_point points[] = {
        {1, 1, NAN, NAN, "a", "ab", false},
        {1, 1, 0.5, 1.5, "<b>", "ab", true},
        {NAN, 2, 1, 3, "nan", "", false},
        {INFINITY, -INFINITY, 0, 0, "inf", "", false},
        {1e-300, -1e300, -2e300, 0, "far", "", true},
    };
    static const double values[] = {0, -1, NAN, INFINITY, 1e-12, 1e-12, 3.5};
    for (size_t count = 0; count <= 5; count++) {
        oct_text svg = {0};
        plot_scatter(&svg, points, count, "x", "y & z");
        plot_bars(&svg, points, count, "t");
        plot_histogram(&svg, values, count + 2, "h");
        assert_true(!svg.failed);
        if (svg.length > 0) {
            has_not(svg.data, "nan\"");
            has_not(svg.data, "inf\"");
            has_not(svg.data, "<b>");
            assert_string_equal(svg.data + svg.length - 6, "</svg>");
        }
        oct_text_free(&svg);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader),         cmocka_unit_test(test_detection),
        cmocka_unit_test(test_self_contained), cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_same_bytes),     cmocka_unit_test(test_changed_recipe_first),
        cmocka_unit_test(test_place),          cmocka_unit_test(test_place_refused),
        cmocka_unit_test(test_write),          cmocka_unit_test(test_escape),
        cmocka_unit_test(test_drawings),       cmocka_unit_test(test_changed_study),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
