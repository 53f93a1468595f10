/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence on a disk that fails at its N-th write, for every N: full, or the process as good as killed. What was said
 * to be committed is there, a commit is whole or not at all, and a copy without its journal never passes for less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "study/evidence.h"
#include "unit/study/folder.h"

static octet_status verified(const char *path) {
    evidence_file *evidence;
    octet_status status = evidence_open(path, EVIDENCE_READ, &evidence);
    if (status != OCTET_OK) return status;
    status = evidence_verify(evidence, NULL, NULL);
    evidence_close(&evidence);
    return status;
}

static bool beside(const char *path, const char *suffix) {
    char name[4200];
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

static char *bytes_of(const char *path, size_t *size) {
    char *data = support_read_text(path, size);
    assert_non_null(data);
    return data;
}

/* ---- a disk that fails at the N-th write: SQLite's own file layer with a counter before it */

#define COMMITS 12

static int writes_left;
static bool only_full; /* the disk is full; else the process is as good as killed: nothing works any more */

typedef struct counted_file {
    sqlite3_file base;
    sqlite3_file *inner;
} counted_file;

static sqlite3_vfs *inner_vfs;
static sqlite3_vfs counted_vfs;
static sqlite3_io_methods counted_methods;

static sqlite3_file *inner_of(sqlite3_file *file) {
    return ((counted_file *)file)->inner;
}

static int fails(int code) {
    if (writes_left > 0) writes_left--;
    return writes_left == 0 ? code : SQLITE_OK;
}

static int counted_close(sqlite3_file *file) {
    return inner_of(file)->pMethods->xClose(inner_of(file));
}
static int counted_read(sqlite3_file *file, void *data, int size, sqlite3_int64 at) {
    return inner_of(file)->pMethods->xRead(inner_of(file), data, size, at);
}
static int counted_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at) {
    int code = fails(SQLITE_FULL);
    if (code != SQLITE_OK && size > 16) /* a part of it lands */
        (void)inner_of(file)->pMethods->xWrite(inner_of(file), data, size / 2, at);
    return code != SQLITE_OK ? code : inner_of(file)->pMethods->xWrite(inner_of(file), data, size, at);
}
static int counted_truncate(sqlite3_file *file, sqlite3_int64 size) {
    int code = only_full ? SQLITE_OK : fails(SQLITE_IOERR_TRUNCATE);
    return code != SQLITE_OK ? code : inner_of(file)->pMethods->xTruncate(inner_of(file), size);
}
static int counted_sync(sqlite3_file *file, int flags) {
    int code = only_full ? SQLITE_OK : fails(SQLITE_IOERR_FSYNC);
    (void)file; /* counted, not done: it only takes time here */
    (void)flags;
    return code;
}
static int counted_size(sqlite3_file *file, sqlite3_int64 *size) {
    return inner_of(file)->pMethods->xFileSize(inner_of(file), size);
}
static int counted_lock(sqlite3_file *file, int level) {
    return inner_of(file)->pMethods->xLock(inner_of(file), level);
}
static int counted_unlock(sqlite3_file *file, int level) {
    return inner_of(file)->pMethods->xUnlock(inner_of(file), level);
}
static int counted_reserved(sqlite3_file *file, int *result) {
    return inner_of(file)->pMethods->xCheckReservedLock(inner_of(file), result);
}
static int counted_control(sqlite3_file *file, int op, void *argument) {
    return inner_of(file)->pMethods->xFileControl(inner_of(file), op, argument);
}
static int counted_sector(sqlite3_file *file) {
    return inner_of(file)->pMethods->xSectorSize(inner_of(file));
}
static int counted_character(sqlite3_file *file) {
    return inner_of(file)->pMethods->xDeviceCharacteristics(inner_of(file));
}
static int counted_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    counted_file *counted = (counted_file *)file;
    counted->inner = (sqlite3_file *)(counted + 1);
    int code = inner_vfs->xOpen(inner_vfs, name, counted->inner, flags, out);
    counted->base.pMethods = counted->inner->pMethods != NULL ? &counted_methods : NULL;
    return code;
}
static int counted_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    int code = only_full ? SQLITE_OK : fails(SQLITE_IOERR_DELETE);
    return code != SQLITE_OK ? code : inner_vfs->xDelete(inner_vfs, name, sync);
}

static void count_writes(bool on) {
    if (inner_vfs == NULL) {
        inner_vfs = sqlite3_vfs_find(NULL);
        counted_vfs = *inner_vfs;
        counted_vfs.zName = "counted";
        counted_vfs.szOsFile += (int)sizeof(counted_file);
        counted_vfs.xOpen = counted_open;
        counted_vfs.xDelete = counted_delete;
        counted_methods = (sqlite3_io_methods){.iVersion = 1,
                                               .xClose = counted_close,
                                               .xRead = counted_read,
                                               .xWrite = counted_write,
                                               .xTruncate = counted_truncate,
                                               .xSync = counted_sync,
                                               .xFileSize = counted_size,
                                               .xLock = counted_lock,
                                               .xUnlock = counted_unlock,
                                               .xCheckReservedLock = counted_reserved,
                                               .xFileControl = counted_control,
                                               .xSectorSize = counted_sector,
                                               .xDeviceCharacteristics = counted_character};
        assert_int_equal(sqlite3_vfs_register(&counted_vfs, 0), SQLITE_OK);
    }
    assert_int_equal(sqlite3_vfs_register(on ? &counted_vfs : inner_vfs, 1), SQLITE_OK);
}

static octet_status add_figure(evidence_file *evidence, int number) {
    octet_status status = evidence_begin(evidence);
    for (int part = 0; part < 3 && status == OCTET_OK; part++) /* a commit of several rows: all of them or none */
        status = evidence_add(evidence, EVIDENCE_FIGURE,
                              json_pack("{s:i, s:i, s:s}", "number", number, "part", part, "text",
                                        "long enough to fill pages, long enough to fill pages, long enough to fill"),
                              NULL);
    if (status == OCTET_OK) return evidence_commit(evidence);
    evidence_rollback(evidence);
    return status;
}

static size_t figures_in(const char *path) {
    evidence_rows rows;
    octet_status status = verified(path);
    if (status != OCTET_OK) fail_msg("%s", study_error_text());
    evidence_file *evidence = open_evidence(path, EVIDENCE_READ);
    good(evidence_list(evidence, EVIDENCE_FIGURE, NULL, &rows));
    size_t count = rows.count;
    evidence_rows_free(&rows);
    evidence_close(&evidence);
    return count;
}

/* Commits until write `n` fails; returns how many were said to be done. The handle is lost, as in a kill. */
static int commit_until(const char *path, int n, bool full, octet_status *last) {
    evidence_file *evidence = NULL;
    int done = 0;
    count_writes(true);
    only_full = full;
    writes_left = n;
    *last = evidence_open(path, EVIDENCE_WRITE, &evidence);
    while (*last == OCTET_OK && done < COMMITS && (*last = add_figure(evidence, done)) == OCTET_OK) done++;
    if (*last != OCTET_OK && full && strstr(study_error_text(), "disk is full") == NULL)
        fail_msg("write %d: %s", n, study_error_text());
    evidence_close(&evidence);
    writes_left = -1;
    count_writes(false);
    return done;
}

static void test_disk(bool full) {
    const char *path = support_join(folder, full ? "full.sqlite" : "torn.sqlite");
    bool met = true;
    int n = 1, journals = 0;
    for (; met; n++) {
        octet_status last;
        int done = commit_until(path, n, full, &last);
        met = last != OCTET_OK;
        journals += beside(path, "-journal");
        /* All that was said to be committed is there, and of the rest nothing or one whole commit. */
        evidence_file *evidence = open_evidence(path, EVIDENCE_WRITE);
        evidence_close(&evidence);
        size_t found = figures_in(path);
        if (found != 3 * (size_t)done && !(met && !full && found == 3 * ((size_t)done + 1)))
            fail_msg("write %d: %d commits were said to be done, found %zu rows", n, done, found);
        /* and it goes on from there */
        done = commit_until(path, -1, full, &last);
        assert_int_equal(last, OCTET_OK);
        assert_int_equal(figures_in(path), 3 * COMMITS);
        assert_false(beside(path, "-journal"));
        assert_int_equal(unlink(path), 0);
    }
    assert_true(n > COMMITS);
    if (!full) assert_true(journals > COMMITS);
}

static void test_full_disk(void **state) {
    (void)state;
    test_disk(true);
}

static void test_killed_anywhere(void **state) {
    (void)state;
    test_disk(false);
}

/* Killed in the middle of a commit and read without a writer: the journal is used, and said of where it cannot be. */
static void test_reader_of_killed(void **state) {
    (void)state;
    const char *path = support_join(folder, "dead.sqlite");
    char journal[4200];
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    int found = 0;
    for (int n = 20; n < 200 && found < 3; n++) {
        octet_status last;
        (void)commit_until(path, n, false, &last);
        if (beside(path, "-journal")) {
            found++;
            (void)figures_in(path);
        }
        (void)unlink(path);
        (void)unlink(journal);
    }
    assert_int_equal(found, 3);
}

/* A copy without its journal is never a smaller study that passes: it passes with whole commits only, else fails. */
static void test_copied_without_journal(void **state) {
    (void)state;
    const char *path = support_join(folder, "torn2.sqlite"), *copy = support_join(folder, "torn3.sqlite");
    char journal[4200];
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    int failed = 0;
    for (int n = 20; n < 120; n++) {
        octet_status last;
        size_t size = 0;
        int done = commit_until(path, n, false, &last);
        if (beside(path, "-journal")) {
            char *data = bytes_of(path, &size);
            support_write_file(copy, data, size);
            free(data);
            if (verified(copy) == OCTET_OK) {
                size_t rows = figures_in(copy);
                if (rows != 3 * (size_t)done && rows != 3 * (size_t)(done + 1))
                    fail_msg("write %d: %d commits, a copy with %zu rows passes", n, done, rows);
            } else {
                failed++;
            }
        }
        (void)unlink(path);
        (void)unlink(journal);
    }
    assert_true(failed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_killed_anywhere),
        cmocka_unit_test(test_reader_of_killed),
        cmocka_unit_test(test_copied_without_journal),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
