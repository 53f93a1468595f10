/* SPDX-License-Identifier: Apache-2.0 */
/* Running a study with an engine of our own making: from start to decision, stopped and killed at any moment, refused
 * before anything is measured, and gone on with after a change. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "study/compare.h"
#include "study/decision.h"
#include "study/run.h"
#include "unit/study/fake_engine.h"
#include "unit/study/folder.h"

#define STUDY                                                                                                          \
    "study: fake\nmodel: ../m\ndata: {a: a, b: b}\n"                                                                   \
    "sets:\n  calibrate: [data: a, first: 20]\n  select: [data: b, first: 100]\n"                                      \
    "  verdict: [data: b, without: select]\n"                                                                          \
    "variants: {fp32: fp32, fp16: fp16, int8: int8, int8_rows: int8_rows}\n"                                           \
    "reference: fp32\nfloor: fp16\ncandidates: [int8]\nstress: true\n"                                                 \
    "timing: {batches: [1, 8], rounds: 12}\nevaluate: {draws: 200}\n"                                                  \
    "premerge: [{name: cat, picture: cat.jpg, tolerance: 0.05}]\n"                                                     \
    "rules:\n  quality:\n    - {figure: QUALITY, at_most: LIMIT}\n    - {figure: nonfinite, at_most: 0}\n"             \
    "    - {figure: stress_nan, at_most: 0}\n    - {figure: premerge_drift, at_most: 1}\n"                             \
    "  speed: [{figure: speedup_batch_8, at_least: 1.2}]\nadopt: [quality, speed]\n"                                   \
    "revisit: [{when: speedup_batch_1 > 5, because: x}]\n"

/* STUDY with QUALITY and LIMIT replaced, and `extra` at its end. */
static void parse(study_file *study, const char *quality, const char *limit, const char *extra) {
    char text[4096];
    const char *at = strstr(STUDY, "QUALITY"), *rest = strstr(STUDY, "LIMIT");
    (void)snprintf(text, sizeof text, "%.*s%s%.*s%s%s%s", (int)(at - STUDY), STUDY, quality, (int)(rest - at) - 7,
                   at + 7, limit, rest + 5, extra);
    good(study_file_parse(study, "study.yaml", text, strlen(text)));
}

typedef struct stopping {
    int left; /* questions until it says stop; below 0: never */
    size_t shown, last_task, tasks;
} stopping;

static bool stop(void *user) {
    stopping *s = user;
    return s->left >= 0 && s->left-- == 0;
}

static void show(void *user, const study_progress *progress) {
    stopping *s = user;
    s->shown++;
    assert_true(progress->task_number >= s->last_task && progress->task_number <= progress->task_count);
    assert_true(progress->done <= progress->total || progress->total == 0);
    s->last_task = progress->task_number;
    s->tasks = progress->task_count;
}

static octet_status run(const study_file *study, fake_engine *fake, const char *name, stopping *s, double seconds) {
    const study_engine engine = fake_functions(fake);
    char evidence[4200], scales[4200];
    (void)snprintf(evidence, sizeof evidence, "%s/%s.sqlite", folder, name);
    (void)snprintf(scales, sizeof scales, "%s/%s.scales", folder, name);
    return study_run(study, &engine,
                     &(study_run_options){.evidence = evidence,
                                          .scales = scales,
                                          .commit_seconds = seconds,
                                          .progress = s != NULL ? show : NULL,
                                          .stop = s != NULL ? stop : NULL,
                                          .user = s});
}

static evidence_file *opened(const char *name) {
    evidence_file *evidence;
    char path[4200];
    (void)snprintf(path, sizeof path, "%s/%s.sqlite", folder, name);
    good(evidence_open(path, EVIDENCE_READ, &evidence));
    good(evidence_verify(evidence, NULL, NULL));
    return evidence;
}

/* Everything but measured times, what is computed from them, and when a set was opened. */
static char *dump(const char *name) {
    evidence_file *evidence = opened(name);
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (int table = 0; table < EVIDENCE_TABLE_COUNT; table++) {
        evidence_rows rows;
        good(evidence_list(evidence, (evidence_table)table, NULL, &rows));
        for (size_t i = 0; i < rows.count; i++) {
            const char *figure = evidence_text(&rows.items[i], "name");
            if (strncmp(figure, "speedup", 7) == 0 || strncmp(figure, "median_ms", 9) == 0) continue;
            if (table == EVIDENCE_TIMING || table == EVIDENCE_OPENING) continue;
            char *body = json_dumps(rows.items[i].body, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
            fprintf(out, "%s %s %s\n", evidence_table_name((evidence_table)table), rows.items[i].id, body);
            free(body);
        }
        if (table == EVIDENCE_TIMING || table == EVIDENCE_OPENING)
            fprintf(out, "%zu %s\n", rows.count, evidence_table_name((evidence_table)table));
        evidence_rows_free(&rows);
    }
    assert_int_equal(fclose(out), 0);
    evidence_close(&evidence);
    return text;
}

/* ---- */

static void check_whole(octet_task task, const char *name, const char *quality) {
    fake_engine fake = {.task = task, .pictures = 500, .speed = 1.5};
    stopping s = {.left = -1};
    study_file study;
    parse(&study, quality, "0.1", "");
    good(run(&study, &fake, name, &s, 1.0));
    /* one calibration a variant that needs it, one pass a set, whatever the number of variants */
    assert_int_equal(fake.calls[FAKE_CALIBRATE], 2);
    assert_int_equal(fake.calls[FAKE_PICTURES], 500);
    assert_int_equal(fake.calls[FAKE_RACES], 2);
    assert_int_equal(fake.calls[FAKE_STRESS], 3);
    assert_true(s.shown > 500);
    evidence_file *evidence = opened(name);
    decision made;
    good(decision_make(&study, evidence, "int8", NULL, &made));
    if (made.word != DECISION_SHIP)
        for (size_t i = 0; i < made.bound_count; i++) print_message("%s\n", made.bounds[i].text);
    assert_int_equal(made.word, DECISION_SHIP);
    decision_free(&made);
    study_state_of count;
    good(study_count(&study, evidence, &count));
    assert_int_equal(count.tasks, s.tasks);
    assert_int_equal(count.done, count.tasks);
    assert_int_equal(count.environments, 1);
    evidence_rows rows;
    good(evidence_list(evidence, EVIDENCE_SAMPLE, NULL, &rows));
    size_t pictures = 0;
    for (size_t i = 0; i < rows.count; i++)
        pictures += json_array_size(json_object_get(rows.items[i].body, "pictures"));
    assert_int_equal(pictures, 4 * 100 + 3 * 400);
    evidence_rows_free(&rows);
    good(evidence_list(evidence, EVIDENCE_OPENING, NULL, &rows));
    assert_int_equal(rows.count, 3);
    evidence_rows_free(&rows);
    good(evidence_list(evidence, EVIDENCE_FIGURE, &(evidence_query){.name = "weight_ratio", .variant = "int8"}, &rows));
    assert_true(rows.count == 1 && evidence_number(&rows.items[0], "value") == 4.0);
    evidence_rows_free(&rows);
    evidence_close(&evidence);
    char *before = dump(name);
    good(run(&study, &fake, name, &s, 1.0)); /* again: nothing to do */
    assert_int_equal(fake.calls[FAKE_PICTURES], 500);
    assert_int_equal(fake.calls[FAKE_CALIBRATE], 2);
    char *after = dump(name);
    assert_string_equal(before, after);
    free(before);
    free(after);
    study_file_free(&study);
}

static void test_classification(void **state) {
    (void)state;
    check_whole(OCTET_CLASSIFICATION, "classification", "kl");
}

static void test_detection(void **state) {
    (void)state;
    check_whole(OCTET_DETECTION, "detection", "unmatched_tested");
}

/* Passes that hold two variants, or one: the same figures. */
static void test_passes(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_DETECTION, .pictures = 300, .speed = 1.5};
    const study_engine engine = fake_functions(&fake);
    study_file study;
    parse(&study, "unmatched_tested", "0.2", "");
    good(run(&study, &fake, "one_pass", NULL, 1.0));
    assert_int_equal(fake.calls[FAKE_PICTURES], 300);
    char *whole = dump("one_pass"), evidence[4200], scales[4200];
    (void)snprintf(evidence, sizeof evidence, "%s/passes.sqlite", folder);
    (void)snprintf(scales, sizeof scales, "%s/passes.scales", folder);
    good(study_run(
        &study, &engine,
        &(study_run_options){.evidence = evidence, .scales = scales, .commit_seconds = 1.0, .pass_pictures = 200}));
    assert_int_equal(fake.calls[FAKE_PICTURES], 300 + 2 * 100 + 3 * 200);
    char *text = dump("passes");
    assert_string_equal(text, whole);
    free(text);
    free(whole);
    study_file_free(&study);
}

/* Stopped at every question: the figures are those of one go. */
static void test_stopped(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 160, .speed = 1.5};
    study_file study;
    parse(&study, "kl", "0.1", "");
    good(run(&study, &fake, "whole", NULL, 0.0));
    char *whole = dump("whole");
    for (int stop_at = 0; stop_at < 170; stop_at += 13) {
        int stops = 0;
        octet_status status;
        do {
            stopping s = {.left = stop_at};
            status = run(&study, &fake, "stopped", &s, 0.0);
            if (status == OCTET_CANCELLED) stops++;
            if (stops == 1) stop_at += 50; /* or it never gets far */
        } while (status == OCTET_CANCELLED && stops < 100);
        good(status);
        char *text = dump("stopped");
        assert_string_equal(text, whole);
        free(text);
        (void)unlink(support_join(folder, "stopped.sqlite"));
    }
    free(whole);
    study_file_free(&study);
}

/* kill -9 at 20 random moments, and at the end the same figures, byte for byte. */
static void test_killed(void **state) {
    (void)state;
    for (int task = 0; task < 2; task++) {
        fake_engine fake = {.task = (octet_task)task, .pictures = 300, .speed = 1.5, .delay = 500};
        const char *whole_name = task == 0 ? "unkilled0" : "unkilled1", *name = task == 0 ? "killed0" : "killed1";
        study_file study;
        parse(&study, task == 0 ? "kl" : "unmatched_tested", "0.2", "");
        good(run(&study, &fake, whole_name, NULL, 1.0));
        char *whole = dump(whole_name);
        uint64_t seed = (uint64_t)time(NULL);
        print_message("seed %llu\n", (unsigned long long)seed);
        int kills = 0, ended = 0;
        while (kills < 20) {
            pid_t child = fork();
            if (child == 0) _exit(run(&study, &fake, name, NULL, 0.01) == OCTET_OK ? 0 : 1);
            usleep((useconds_t)(next_random(&seed) % 40000));
            (void)kill(child, SIGKILL);
            assert_int_equal(waitpid(child, &ended, 0), child);
            if (WIFEXITED(ended)) break; /* done before it was killed */
            kills++;
        }
        good(run(&study, &fake, name, NULL, 0.01));
        char *text = dump(name);
        assert_string_equal(text, whole);
        assert_true(kills > 3);
        free(text);
        free(whole);
        study_file_free(&study);
    }
}

/* The disk takes no more at some point: a clear error, nothing lost, and it goes on when there is room. */
static void test_full(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_DETECTION, .pictures = 300, .speed = 1.5};
    study_file study;
    parse(&study, "unmatched_tested", "0.2", "");
    good(run(&study, &fake, "roomy", NULL, 0.0));
    char *whole = dump("roomy");
    for (rlim_t limit = 40000; limit < 400000; limit += 90000) {
        pid_t child = fork();
        if (child == 0) {
            (void)signal(SIGXFSZ, SIG_IGN);
            (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
            octet_status status = run(&study, &fake, "full", NULL, 0.0);
            _exit(status == OCTET_IO && strstr(study_error_text(), "full.sqlite") != NULL ? 0 : 1);
        }
        int ended;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
    }
    good(run(&study, &fake, "full", NULL, 0.0));
    char *text = dump("full");
    assert_string_equal(text, whole);
    free(text);
    free(whole);
    study_file_free(&study);
}

/* ---- refused before anything is measured */

static void test_refused(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 200, .speed = 1.5};
    study_file study;
    parse(&study, "unmatched_tested", "0.01", "");
    refused(run(&study, &fake, "power", NULL, 1.0), OCTET_LIMIT, "expected at least 368 pictures, found 100");
    study_file_free(&study);
    parse(&study, "unmatched_tested", "0.1", "");
    refused(run(&study, &fake, "boxes", NULL, 1.0), OCTET_BAD_FORMAT,
            "rule quality: unmatched_tested is no figure of a classifier");
    assert_int_equal(fake.calls[FAKE_PICTURES] + fake.calls[FAKE_CALIBRATE], 0);
    study_file_free(&study);
    parse(&study, "kl", "0.01", "");
    fake.pictures = 50;
    refused(run(&study, &fake, "few", NULL, 1.0), OCTET_LIMIT,
            "set select: first: expected at least 100 pictures, found 50");
    fake.pictures = 200;
    fake.same = 7; /* calibrate's and select's first ones */
    refused(run(&study, &fake, "shared", NULL, 1.0), OCTET_MISMATCH, "sets calibrate and select share pictures");
    if (strstr(study_error_text(), "(7 in all)") == NULL) fail_msg("%s", study_error_text());
    fake.same = 0;
    study_file_free(&study);
    static const char lacking[] =
        "study: s\nmodel: m\ndata: {b: b}\nsets: {verdict: [data: b]}\nvariants: {fp32: fp32, int8: int8}\n"
        "reference: fp32\ncandidates: [int8]\nrules: {q: [{figure: kl, at_most: 1}]}\nadopt: [q]\n";
    good(study_file_parse(&study, "study.yaml", lacking, strlen(lacking)));
    refused(run(&study, &fake, "lacking", NULL, 1.0), OCTET_BAD_FORMAT, "study.yaml:5: variant int8 has static scales");
    study_file_free(&study);
}

/* Another process runs it: refused by name. */
static void test_two(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 200, .speed = 1.5, .delay = 20000};
    study_file study;
    parse(&study, "kl", "0.1", "");
    pid_t child = fork();
    if (child == 0) _exit(run(&study, &fake, "two", NULL, 0.1) == OCTET_OK ? 0 : 1);
    usleep(300000);
    refused(run(&study, &fake, "two", NULL, 0.1), OCTET_MISMATCH, "two.sqlite: another process is writing it");
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    study_file_free(&study);
}

/* ---- changes */

/* New rules use what was measured; a new recipe is measured again, and its second opening is known. */
static void test_changed(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 300, .speed = 1.5};
    study_file study;
    decision made;
    parse(&study, "kl", "0.1", "");
    good(run(&study, &fake, "changed", NULL, 1.0));
    study_file_free(&study);
    int pictures = fake.calls[FAKE_PICTURES], races = fake.calls[FAKE_RACES];
    parse(&study, "kl", "0.0001", "");
    evidence_file *evidence = opened("changed");
    study_state_of count;
    good(study_count(&study, evidence, &count)); /* another study file: it was not run yet */
    assert_int_equal(count.tasks, 0);
    evidence_close(&evidence);
    good(run(&study, &fake, "changed", NULL, 1.0));
    assert_int_equal(fake.calls[FAKE_PICTURES], pictures);
    assert_int_equal(fake.calls[FAKE_RACES], races);
    evidence = opened("changed");
    good(decision_make(&study, evidence, "int8", NULL, &made));
    assert_int_equal(made.word, DECISION_DO_NOT_SHIP);
    assert_int_equal(made.earlier_openings, 0);
    decision_free(&made);
    evidence_close(&evidence);
    fake.recipe_of = "int8";
    good(run(&study, &fake, "changed", NULL, 1.0));
    assert_int_equal(fake.calls[FAKE_PICTURES], pictures + 300); /* int8 alone, both sets */
    evidence = opened("changed");
    good(decision_make(&study, evidence, "int8", NULL, &made));
    assert_int_equal(made.earlier_openings, 1);
    good(study_count(&study, evidence, &count));
    assert_int_equal(count.done, count.tasks);
    decision_free(&made);
    evidence_close(&evidence);
    study_file_free(&study);
}

/* Evidence without its scale files: they are made again, and must be the same. */
static void test_scales(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 150, .speed = 1.5};
    stopping s = {.left = 30};
    study_file study;
    parse(&study, "kl", "0.1", "");
    assert_int_equal(run(&study, &fake, "scales", &s, 0.0), OCTET_CANCELLED);
    support_remove_tree(support_join(folder, "scales.scales"));
    fake.changed_scales = true;
    refused(run(&study, &fake, "scales", NULL, 0.0), OCTET_VERIFICATION, "are not those that the evidence names");
    fake.changed_scales = false;
    good(run(&study, &fake, "scales", NULL, 0.0));
    study_file_free(&study);
}

/* ---- measured again */

typedef struct told {
    size_t figures, moved;
} told;

static void tell(void *user, const compared_figure *figure) {
    told *t = user;
    t->figures++;
    t->moved += figure->word == COMPARED_MOVED;
}

static void test_rerun(void **state) {
    (void)state;
    fake_engine fake = {.task = OCTET_CLASSIFICATION, .pictures = 300, .speed = 1.5};
    const study_engine engine = fake_functions(&fake);
    study_file study;
    char path[4200], scales[4200];
    bool held;
    told t = {0};
    parse(&study, "kl", "0.1", "");
    good(run(&study, &fake, "again", NULL, 1.0));
    char *before = dump("again");
    (void)snprintf(path, sizeof path, "%s/again.sqlite", folder);
    (void)snprintf(scales, sizeof scales, "%s/again.scales", folder);
    const study_run_options options = {.evidence = path, .scales = scales, .commit_seconds = 1.0};
    int entries = support_count_entries(folder);
    good(study_rerun(&study, &engine, &options, 100, 1, tell, &t, &held));
    assert_true(held && t.figures > 100 && t.moved < 3);
    for (uint64_t seed = 0; seed < 5; seed++) {
        t = (told){0};
        int pictures = fake.calls[FAKE_PICTURES];
        good(study_rerun(&study, &engine, &options, 1, seed, tell, &t, &held));
        assert_true(held && t.figures > 0 && t.figures < 60);
        assert_true(fake.calls[FAKE_PICTURES] - pictures <= 200);
    }
    fake.salt = 1; /* an engine that gives something else */
    good(study_rerun(&study, &engine, &options, 100, 1, tell, &t, &held));
    assert_false(held);
    assert_int_equal(support_count_entries(folder), entries);
    char *after = dump("again");
    assert_string_equal(before, after);
    free(before);
    free(after);
    study_file_free(&study);
}

static evidence_row figure_row(double value, double low, double high) {
    evidence_row row = {.body = json_pack("{s:f}", "value", value)};
    if (!isnan(low)) json_object_set_new(row.body, "low", json_real(low));
    if (!isnan(high)) json_object_set_new(row.body, "high", json_real(high));
    return row;
}

static void test_compared(void **state) {
    (void)state;
    static const struct {
        double old[3], fresh[3];
        compared_word word;
    } cases[] = {
        {{1, 0.9, 1.1}, {1, 0.9, 1.1}, COMPARED_SAME},     {{1, 0.9, 1.1}, {1.2, 1.1, 1.3}, COMPARED_WITHIN},
        {{1, 0.9, 1.1}, {1.2, 1.15, 1.3}, COMPARED_MOVED}, {{0, NAN, NAN}, {0, NAN, NAN}, COMPARED_SAME},
        {{0, NAN, NAN}, {1, NAN, NAN}, COMPARED_MOVED},    {{1, 0.9, 1.1}, {1, NAN, NAN}, COMPARED_WITHIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        evidence_row a = figure_row(cases[i].old[0], cases[i].old[1], cases[i].old[2]);
        evidence_row b = figure_row(cases[i].fresh[0], cases[i].fresh[1], cases[i].fresh[2]);
        assert_int_equal(compare_figures(&a, &b), cases[i].word);
        assert_int_equal(compare_figures(&a, NULL), COMPARED_OLD_ONLY);
        assert_int_equal(compare_figures(NULL, &b), COMPARED_NEW_ONLY);
        json_decref(a.body);
        json_decref(b.body);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classification),
        cmocka_unit_test(test_detection),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_rerun),
        cmocka_unit_test(test_compared),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
