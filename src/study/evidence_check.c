/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence files held against what they say of themselves, and joined. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "study/evidence_internal.h"

/* ---- verify */

typedef struct checking {
    evidence_file *evidence;
    evidence_problem problem;
    void *user;
    size_t problems;
} checking;

static void tell(checking *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(checking *check, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    check->problems++;
    if (check->problem != NULL) check->problem(check->user, text);
}

static octet_status check_structure(checking *check) {
    sqlite3_stmt *statement;
    OCT_TRY(evidence_prepare(check->evidence, "PRAGMA integrity_check(20)", NULL, 0, &statement));
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (text == NULL || strcmp(text, "ok") != 0) tell(check, "SQLite's structure: %s", text != NULL ? text : "?");
    }
    if (step != SQLITE_DONE) tell(check, "SQLite's structure: %s", sqlite3_errmsg(check->evidence->database));
    sqlite3_finalize(statement);
    return OCTET_OK;
}

static void check_row(checking *check, evidence_table table, const char *id, const char *body, size_t length) {
    const char *name = evidence_table_name(table);
    char found[EVIDENCE_ID];
    if (strlen(body) != length || evidence_hash(table, body, found) != OCTET_OK || strcmp(found, id) != 0) {
        tell(check, "%s %.12s: its hash is not its id, so one of them was changed", name, id);
        return;
    }
    json_error_t error;
    json_t *object = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    char *text = json_is_object(object) ? evidence_canonical(object) : NULL;
    if (!json_is_object(object))
        tell(check, "%s %.12s: is not a JSON object (%s)", name, id, error.text);
    else if (text == NULL || strcmp(text, body) != 0)
        tell(check, "%s %.12s: is not in canonical form", name, id);
    free(text);
    json_decref(object);
}

static octet_status check_tally(checking *check, evidence_table table, int64_t rows, const char *sum) {
    const char *name = evidence_table_name(table);
    sqlite3_stmt *statement;
    OCT_TRY(evidence_prepare(check->evidence, "SELECT rows, sum FROM tally WHERE name = ?1", &name, 1, &statement));
    if (sqlite3_step(statement) != SQLITE_ROW) {
        tell(check, "%s: its tally is missing", name);
    } else {
        const char *kept = (const char *)sqlite3_column_text(statement, 1);
        long long counted = sqlite3_column_int64(statement, 0);
        if (counted != rows)
            tell(check, "%s: %lld rows were written, found %lld", name, counted, (long long)rows);
        else if (kept == NULL || strcmp(kept, sum) != 0)
            tell(check, "%s: the rows are not those that were written", name);
    }
    sqlite3_finalize(statement);
    return OCTET_OK;
}

static octet_status check_table(checking *check, evidence_table table) {
    char sql[64], sum[EVIDENCE_ID];
    int64_t rows = 0;
    sqlite3_stmt *statement;
    memset(sum, '0', sizeof sum - 1);
    sum[sizeof sum - 1] = '\0';
    sqlite3_snprintf(sizeof sql, sql, "SELECT id, body FROM %s", evidence_table_name(table));
    OCT_TRY(evidence_prepare(check->evidence, sql, NULL, 0, &statement));
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *id = (const char *)sqlite3_column_text(statement, 0);
        const char *body = (const char *)sqlite3_column_text(statement, 1);
        rows++;
        if (id == NULL || body == NULL || strlen(id) != EVIDENCE_ID - 1 ||
            strspn(id, "0123456789abcdef") != EVIDENCE_ID - 1) {
            tell(check, "%s: row %lld: has no right id", evidence_table_name(table), (long long)rows);
            continue;
        }
        evidence_fold(sum, id);
        check_row(check, table, id, body, (size_t)sqlite3_column_bytes(statement, 1));
    }
    if (step != SQLITE_DONE)
        tell(check, "%s: cannot be read: %s", evidence_table_name(table), sqlite3_errmsg(check->evidence->database));
    sqlite3_finalize(statement);
    return check_tally(check, table, rows, sum);
}

/* What rows name must be there: the tables that refer, the key, the table it is in. */
static const struct {
    evidence_table from;
    const char *key;
    evidence_table to;
} references[] = {
    {EVIDENCE_RUN, "environment", EVIDENCE_ENVIRONMENT},
    {EVIDENCE_RUN, "model", EVIDENCE_ARTIFACT},
    {EVIDENCE_RUN, "recipe", EVIDENCE_ARTIFACT},
    {EVIDENCE_RUN, "calibration", EVIDENCE_RUN},
    {EVIDENCE_RUN, "pictures", EVIDENCE_ARTIFACT},
    {EVIDENCE_FIGURE, "run", EVIDENCE_RUN},
    {EVIDENCE_SAMPLE, "run", EVIDENCE_RUN},
    {EVIDENCE_TIMING, "run", EVIDENCE_RUN},
    {EVIDENCE_OPENING, "pictures", EVIDENCE_ARTIFACT},
    {EVIDENCE_OPENING, "recipe", EVIDENCE_ARTIFACT},
    {EVIDENCE_OPENING, "scales", EVIDENCE_ARTIFACT},
    {EVIDENCE_OPENING, "study", EVIDENCE_ARTIFACT},
    {EVIDENCE_FIGURE, "scales", EVIDENCE_ARTIFACT},
};

static octet_status check_references(checking *check) {
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        char sql[256];
        const char *from = evidence_table_name(references[i].from), *to = evidence_table_name(references[i].to);
        sqlite3_snprintf(sizeof sql, sql,
                         "SELECT id, body ->> '$.%s' AS named FROM %s WHERE json_valid(body) AND named IS NOT NULL AND "
                         "named NOT IN (SELECT id FROM %s) ORDER BY id LIMIT 20",
                         references[i].key, from, to);
        sqlite3_stmt *statement;
        OCT_TRY(evidence_prepare(check->evidence, sql, NULL, 0, &statement));
        while (sqlite3_step(statement) == SQLITE_ROW)
            tell(check, "%s %.12s: its %s %.12s is not in %s", from, (const char *)sqlite3_column_text(statement, 0),
                 references[i].key, (const char *)sqlite3_column_text(statement, 1), to);
        sqlite3_finalize(statement);
    }
    return OCTET_OK;
}

octet_status evidence_verify(evidence_file *evidence, evidence_problem problem, void *user) {
    checking check = {.evidence = evidence, .problem = problem, .user = user};
    OCT_TRY(check_structure(&check));
    for (int table = 0; table < EVIDENCE_TABLE_COUNT; table++) OCT_TRY(check_table(&check, (evidence_table)table));
    OCT_TRY(check_references(&check));
    if (check.problems == 0) return OCTET_OK;
    return oct_fail(OCTET_VERIFICATION, "%s: %zu things are not as they were written", evidence->path, check.problems);
}

/* ---- merge */

static octet_status copy_table(evidence_file *from, evidence_file *to, evidence_table table) {
    char sql[64];
    sqlite3_stmt *statement;
    sqlite3_snprintf(sizeof sql, sql, "SELECT id, body FROM %s", evidence_table_name(table));
    OCT_TRY(evidence_prepare(from, sql, NULL, 0, &statement));
    octet_status status = OCTET_OK;
    int step = SQLITE_DONE;
    while (status == OCTET_OK && (step = sqlite3_step(statement)) == SQLITE_ROW)
        status = evidence_add_text(to, table, (const char *)sqlite3_column_text(statement, 0),
                                   (const char *)sqlite3_column_text(statement, 1));
    if (status == OCTET_OK && step != SQLITE_DONE) status = evidence_fail(from, "could not read");
    sqlite3_finalize(statement);
    return status;
}

static octet_status copy_evidence(const char *path, evidence_file *to) {
    evidence_file *from;
    OCT_TRY(evidence_open(path, EVIDENCE_READ, &from));
    octet_status status = evidence_verify(from, NULL, NULL);
    for (int table = 0; status == OCTET_OK && table < EVIDENCE_TABLE_COUNT; table++)
        status = copy_table(from, to, (evidence_table)table);
    evidence_close(&from);
    return status;
}

/* All rows into `joined`, then its contents in the order of their keys into `output`'s temporary file. */
static octet_status join(const char *const *paths, size_t count, const char *joined, const char *ordered) {
    evidence_file *to;
    OCT_TRY(evidence_open(joined, EVIDENCE_WRITE, &to));
    octet_status status = evidence_begin(to);
    for (size_t i = 0; status == OCTET_OK && i < count; i++) status = copy_evidence(paths[i], to);
    if (status == OCTET_OK) status = evidence_commit(to);
    sqlite3_stmt *statement = NULL;
    if (status == OCTET_OK) status = evidence_prepare(to, "VACUUM INTO ?1", &ordered, 1, &statement);
    if (status == OCTET_OK && sqlite3_step(statement) != SQLITE_DONE) status = evidence_fail(to, "could not write");
    sqlite3_finalize(statement);
    if (status != OCTET_OK) evidence_rollback(to);
    evidence_close(&to);
    return status;
}

static octet_status sync_file(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool good = file >= 0 && fsync(file) == 0;
    octet_status status = good ? OCTET_OK : oct_fail_errno(path, "could not sync");
    if (file >= 0) (void)close(file);
    return status;
}

octet_status evidence_merge(const char *const *paths, size_t count, const char *output) {
    struct stat there, other;
    for (size_t i = 0; i < count; i++)
        if (stat(output, &there) == 0 && stat(paths[i], &other) == 0 && there.st_ino == other.st_ino &&
            there.st_dev == other.st_dev)
            return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is both what is merged and what is written", output);
    char *joined = oct_sprintf("%s.%ld.joined", output, (long)getpid());
    char *ordered = oct_sprintf("%s.%ld.tmp", output, (long)getpid());
    octet_status status = joined != NULL && ordered != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) {
        (void)unlink(joined);
        (void)unlink(ordered);
        status = join(paths, count, joined, ordered);
        (void)unlink(joined);
        if (status == OCTET_OK) status = sync_file(ordered);
        if (status == OCTET_OK && rename(ordered, output) != 0) status = oct_fail_errno(output, "could not write");
        if (status != OCTET_OK) (void)unlink(ordered);
    }
    oct_free(joined);
    oct_free(ordered);
    return status;
}
