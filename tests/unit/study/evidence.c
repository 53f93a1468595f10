/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence: ids, reading, one writer at a time, reading that changes nothing, verification of every row and every byte
 * of it, merging. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "study/evidence.h"
#include "unit/study/folder.h"

/* A run with its environment and artifacts, figures and samples; `variant` makes it another. The run's id into `run`.
 */
static void fill(evidence_file *evidence, const char *variant, char run[EVIDENCE_ID]) {
    char environment[EVIDENCE_ID], study[EVIDENCE_ID];
    good(evidence_begin(evidence));
    good(evidence_add(evidence, EVIDENCE_ENVIRONMENT, json_pack("{s:s, s:s}", "device", "cpu", "octet", "0.1.0"),
                      environment));
    good(evidence_add(evidence, EVIDENCE_ARTIFACT,
                      json_pack("{s:s, s:s, s:s}", "kind", "study", "name", "a study", "sha256", "12"), study));
    good(evidence_add(evidence, EVIDENCE_RUN,
                      json_pack("{s:s, s:s, s:s, s:s, s:s}", "task", "evaluate", "variant", variant, "set", "verdict",
                                "environment", environment, "study", study),
                      run));
    for (int i = 0; i < 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "figure%d", i);
        good(evidence_add(evidence, EVIDENCE_FIGURE,
                          json_pack("{s:s, s:s, s:s, s:s, s:f}", "run", run, "variant", variant, "set", "verdict",
                                    "name", name, "value", (double)i / 7),
                          NULL));
    }
    for (int at = 192; at >= 0; at -= 64)
        good(evidence_add(
            evidence, EVIDENCE_SAMPLE,
            json_pack("{s:s, s:i, s:[{s:i, s:f}]}", "run", run, "at", at, "pictures", "best", at, "kl", 0.1 * at),
            NULL));
    good(evidence_commit(evidence));
}

static void count_problem(void *user, const char *text) {
    (void)text;
    ++*(size_t *)user;
}

static octet_status verified(const char *path, size_t *problems) {
    evidence_file *evidence;
    *problems = 0;
    octet_status status = evidence_open(path, EVIDENCE_READ, &evidence);
    if (status != OCTET_OK) return status;
    status = evidence_verify(evidence, count_problem, problems);
    evidence_close(&evidence);
    return status;
}

static void test_ids(void **state) {
    (void)state;
    char first[EVIDENCE_ID], second[EVIDENCE_ID], other[EVIDENCE_ID];
    good(evidence_id(EVIDENCE_FIGURE, json_pack("{s:i, s:f}", "b", 1, "a", 0.1), first));
    good(evidence_id(EVIDENCE_FIGURE, json_pack("{s:f, s:i}", "a", 0.1, "b", 1), second));
    assert_string_equal(first, second);
    /* printf 'figure\n{"a":0.10000000000000001,"b":1}' | sha256sum */
    assert_string_equal(first, "b1816606faed6170c0e434b8dd3fb32d53a2ca962fa99896d76b0a884a93639e");
    good(evidence_id(EVIDENCE_TIMING, json_pack("{s:f, s:i}", "a", 0.1, "b", 1), other));
    assert_string_not_equal(first, other);
    good(evidence_id(EVIDENCE_FIGURE, json_pack("{s:f, s:i}", "a", nextafter(0.1, 1.0), "b", 1), other));
    assert_string_not_equal(first, other);
}

static void test_reading(void **state) {
    (void)state;
    const char *path = support_join(folder, "e.sqlite");
    char run[EVIDENCE_ID], other[EVIDENCE_ID];
    evidence_file *evidence = open_evidence(path, EVIDENCE_WRITE);
    fill(evidence, "int8", run);
    fill(evidence, "fp16", other);
    fill(evidence, "int8", run); /* again: nothing new */
    evidence_close(&evidence);
    evidence = open_evidence(path, EVIDENCE_READ);
    evidence_rows rows;
    good(evidence_list(evidence, EVIDENCE_RUN, NULL, &rows));
    assert_int_equal(rows.count, 2);
    assert_string_equal(evidence_text(&rows.items[0], "variant"), "fp16");
    evidence_rows_free(&rows);
    good(evidence_list(evidence, EVIDENCE_FIGURE, &(evidence_query){.variant = "int8", .name = "figure3"}, &rows));
    assert_int_equal(rows.count, 1);
    assert_true(evidence_number(&rows.items[0], "value") == 3.0 / 7);
    assert_true(isnan(evidence_number(&rows.items[0], "low")));
    char figure[EVIDENCE_ID];
    memcpy(figure, rows.items[0].id, sizeof figure);
    evidence_rows_free(&rows);
    good(evidence_list(evidence, EVIDENCE_SAMPLE, &(evidence_query){.run = run}, &rows));
    assert_int_equal(rows.count, 4);
    for (size_t i = 0; i < rows.count; i++) assert_int_equal(evidence_integer(&rows.items[i], "at"), 64 * i);
    evidence_rows_free(&rows);
    figure[12] = '\0';
    good(evidence_find(evidence, figure, &rows));
    assert_int_equal(rows.items[0].table, EVIDENCE_FIGURE);
    evidence_rows_free(&rows);
    refused(evidence_find(evidence, "00000000000", &rows), OCTET_NOT_FOUND, "no row's id begins with 00000000000");
    refused(evidence_find(evidence, "xyz", &rows), OCTET_INVALID_ARGUMENT, "8 to 64 hexadecimal digits");
    refused(evidence_add(evidence, EVIDENCE_RUN, json_object(), NULL), OCTET_IO, "readonly");
    evidence_close(&evidence);
}

static char *bytes_of(const char *path, size_t *size) {
    char *data = support_read_text(path, size);
    assert_non_null(data);
    return data;
}

static void test_kept(void **state) {
    (void)state;
    evidence_file *evidence = open_evidence(support_join(folder, "kept.sqlite"), EVIDENCE_WRITE);
    json_t *list;
    for (int at = 3; at > 0; at--) good(evidence_keep(evidence, "a", at * 100, json_pack("{s:i}", "n", at)));
    good(evidence_keep(evidence, "b", 0, json_object()));
    good(evidence_kept(evidence, "a", &list));
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "n")), 1);
    json_decref(list);
    good(evidence_drop_kept(evidence, "a"));
    good(evidence_kept(evidence, "a", &list));
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    good(evidence_drop_kept(evidence, NULL));
    evidence_close(&evidence);
    size_t problems, large, small;
    const char *path = support_join(folder, "kept.sqlite");
    good(verified(path, &problems));
    free(bytes_of(path, &small));
    evidence = open_evidence(path, EVIDENCE_WRITE);
    good(evidence_begin(evidence));
    for (int at = 0; at < 2000; at++) good(evidence_keep(evidence, "a", at, json_pack("{s:s}", "text", path)));
    good(evidence_commit(evidence));
    good(evidence_drop_kept(evidence, "a"));
    free(bytes_of(path, &large));
    evidence_compact(evidence);
    evidence_close(&evidence);
    free(bytes_of(path, &problems));
    assert_true(large > 2 * small && problems <= small);
    good(verified(path, &problems));
}

/* ---- files around it: case 44 */

static bool beside(const char *path, const char *suffix) {
    char name[4200];
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

static void test_alone(void **state) {
    (void)state;
    const char *path = support_join(folder, "alone.sqlite"), *copy = support_join(folder, "copy.sqlite");
    char run[EVIDENCE_ID];
    size_t size, after, problems;
    evidence_file *writer = open_evidence(path, EVIDENCE_WRITE);
    fill(writer, "int8", run);
    /* Between commits the file alone has every row, though its writer is alive. */
    assert_false(beside(path, "-wal") || beside(path, "-shm") || beside(path, "-journal"));
    char *data = bytes_of(path, &size);
    support_write_file(copy, data, size);
    good(verified(copy, &problems));
    evidence_close(&writer);
    assert_false(beside(path, "-wal") || beside(path, "-shm") || beside(path, "-journal"));
    free(data);
    /* Reading and verifying leave it as it is, in a folder where nothing can be made. */
    data = bytes_of(copy, &size);
    assert_int_equal(chmod(copy, 0444), 0);
    good(verified(copy, &problems));
    char *again = bytes_of(copy, &after);
    assert_int_equal(after, size);
    assert_memory_equal(data, again, size);
    free(again);
    free(data);
}

static void test_one_writer(void **state) {
    (void)state;
    const char *path = support_join(folder, "writers.sqlite");
    evidence_file *first = open_evidence(path, EVIDENCE_WRITE), *second;
    pid_t child = fork();
    if (child == 0) {
        octet_status status = evidence_open(path, EVIDENCE_WRITE, &second);
        bool named = strstr(study_error_text(), "writers.sqlite: another process is writing it") != NULL;
        octet_status reading = evidence_open(path, EVIDENCE_READ, &second); /* which does not mind */
        _exit(status == OCTET_MISMATCH && named && reading == OCTET_OK ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    evidence_close(&first);
    second = open_evidence(path, EVIDENCE_WRITE);
    evidence_close(&second);
}

static void test_refused(void **state) {
    (void)state;
    const char *path = support_join(folder, "bad.sqlite");
    evidence_file *evidence;
    sqlite3 *database;
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_NOT_FOUND, "bad.sqlite: could not open");
    assert_null(evidence);
    support_write_file(path, "", 0);
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_BAD_FORMAT, "is empty");
    support_write_file(path, "study: one\n", 11);
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_BAD_FORMAT, "is not an evidence file");
    refused(evidence_open(path, EVIDENCE_WRITE, &evidence), OCTET_BAD_FORMAT, "is not an evidence file");
    refused(evidence_open(folder, EVIDENCE_READ, &evidence), OCTET_INVALID_ARGUMENT, "is not a regular file");
    (void)unlink(path);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "CREATE TABLE a(b)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_BAD_FORMAT, "but no evidence file");
    refused(evidence_open(path, EVIDENCE_WRITE, &evidence), OCTET_BAD_FORMAT, "but no evidence file");
    (void)unlink(path);
    evidence = open_evidence(path, EVIDENCE_WRITE);
    evidence_close(&evidence);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "CREATE VIEW seven AS SELECT 7", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_BAD_FORMAT, "tables and other things");
    (void)unlink(path);
    evidence = open_evidence(path, EVIDENCE_WRITE);
    evidence_close(&evidence);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    refused(evidence_open(path, EVIDENCE_READ, &evidence), OCTET_BAD_FORMAT, "write-ahead");
}

/* ---- verify: what a hand changed */

static void test_changed_rows(void **state) {
    (void)state;
    static const struct {
        const char *sql, *says;
    } changes[] = {
        {"UPDATE figure SET body = replace(body, 'figure3', 'figure4')", "its hash is not its id"},
        {"DELETE FROM figure WHERE body ->> '$.name' = 'figure3'", "rows were written"},
        {"DELETE FROM figure", "rows were written"},
        {"UPDATE tally SET sum = (sum < '1') || substr(sum, 2) WHERE name = 'figure'", "are not those"},
        {"UPDATE tally SET rows = rows + 1 WHERE name = 'run'", "rows were written"},
        {"DELETE FROM tally WHERE name = 'sample'", "tally is missing"},
        {"INSERT INTO figure VALUES('zz', '{}')", "has no right id"},
        {"DELETE FROM run", "is not in run"},
        {"DELETE FROM environment", "is not in environment"},
    };
    const char *path = support_join(folder, "changed.sqlite");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char run[EVIDENCE_ID];
        size_t problems;
        evidence_file *evidence = open_evidence(path, EVIDENCE_WRITE);
        fill(evidence, "int8", run);
        evidence_close(&evidence);
        good(verified(path, &problems));
        sqlite3 *database;
        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        if (sqlite3_exec(database, changes[i].sql, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", changes[i].sql, sqlite3_errmsg(database));
        sqlite3_close(database);
        if (verified(path, &problems) == OCTET_OK || problems == 0) fail_msg("%s was not noticed", changes[i].sql);
        refused(verified(path, &problems), OCTET_VERIFICATION, "not as they were written");
        (void)unlink(path);
    }
}

/* A body that is right by its hash but not canonical cannot come from evidence_add. */
static void test_not_canonical(void **state) {
    (void)state;
    const char *path = support_join(folder, "blank.sqlite");
    evidence_file *evidence = open_evidence(path, EVIDENCE_WRITE);
    evidence_close(&evidence);
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    /* printf 'figure\n{ }' | sha256sum */
    assert_int_equal(
        sqlite3_exec(database,
                     "INSERT INTO figure VALUES('892aa6ae428939c61b9371fd93de50c7bcedd759f579dfbaca2d8659e44056b6', '{ "
                     "}'); UPDATE tally SET rows = 1, sum = "
                     "'892aa6ae428939c61b9371fd93de50c7bcedd759f579dfbaca2d8659e44056b6' WHERE name = 'figure'",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
    size_t problems;
    refused(verified(path, &problems), OCTET_VERIFICATION, "1 things");
}

/* Any digit of any stored text, and of the tables' own text, is noticed. */
static void test_digits(void **state) {
    (void)state;
    const char *path = support_join(folder, "digits.sqlite"), *copy = support_join(folder, "digit.sqlite");
    char run[EVIDENCE_ID];
    size_t size, problems, tried = 0;
    evidence_file *evidence = open_evidence(path, EVIDENCE_WRITE);
    fill(evidence, "int8", run);
    evidence_close(&evidence);
    char *data = bytes_of(path, &size);
    for (size_t i = 100; i + 3 < size; i += 11) { /* behind SQLite's header: digits inside texts */
        bool text = data[i] >= '0' && data[i] <= '9' && data[i - 1] >= ' ' && data[i + 1] >= ' ' && data[i + 1] <= '~';
        if (!text) continue;
        char was = data[i];
        data[i] = was == '9' ? '0' : (char)(was + 1);
        support_write_file(copy, data, size);
        if (verified(copy, &problems) == OCTET_OK) fail_msg("byte %zu: %c for %c was not noticed", i, data[i], was);
        data[i] = was;
        tried++;
    }
    assert_true(tried > 100);
    free(data);
}

/* ---- merge */

static void test_merge(void **state) {
    (void)state;
    const char *a = support_join(folder, "a.sqlite"), *b = support_join(folder, "b.sqlite");
    const char *ab = support_join(folder, "ab.sqlite"), *ba = support_join(folder, "ba.sqlite");
    char run[EVIDENCE_ID];
    evidence_file *evidence = open_evidence(a, EVIDENCE_WRITE);
    fill(evidence, "int8", run);
    fill(evidence, "fp16", run);
    good(evidence_keep(evidence, run, 0, json_object()));
    evidence_close(&evidence);
    evidence = open_evidence(b, EVIDENCE_WRITE);
    fill(evidence, "fp16", run);
    fill(evidence, "e4m3", run);
    evidence_close(&evidence);
    good(evidence_merge((const char *const[]){a, b}, 2, ab));
    good(evidence_merge((const char *const[]){b, a, b}, 3, ba));
    size_t size, other, problems;
    char *first = bytes_of(ab, &size), *second = bytes_of(ba, &other);
    assert_int_equal(size, other);
    assert_memory_equal(first, second, size);
    free(first);
    free(second);
    good(verified(ab, &problems));
    evidence_rows rows;
    evidence = open_evidence(ab, EVIDENCE_READ);
    good(evidence_list(evidence, EVIDENCE_FIGURE, NULL, &rows));
    assert_int_equal(rows.count, 30);
    evidence_rows_free(&rows);
    evidence_close(&evidence);
    refused(evidence_merge((const char *const[]){a, b}, 2, a), OCTET_INVALID_ARGUMENT, "is both");
    /* A damaged input ends it, with nothing written. */
    sqlite3 *database;
    assert_int_equal(sqlite3_open(b, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "DELETE FROM figure", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    (void)unlink(ab);
    refused(evidence_merge((const char *const[]){a, b}, 2, ab), OCTET_VERIFICATION, "b.sqlite");
    assert_int_not_equal(access(ab, F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),          cmocka_unit_test(test_reading),       cmocka_unit_test(test_kept),
        cmocka_unit_test(test_alone),        cmocka_unit_test(test_one_writer),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_changed_rows), cmocka_unit_test(test_not_canonical), cmocka_unit_test(test_digits),
        cmocka_unit_test(test_merge),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
