/* SPDX-License-Identifier: Apache-2.0 */
#include "study/evidence_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#define WAIT_MS 10000            /* for a reader that is in the way of a commit, or a commit in a reader's */
#define LONGEST_BODY (64 << 20)  /* bytes of a row */
#define LOCK_AT ((off_t)1 << 60) /* far behind what SQLite locks */
#define NO_SUM "0000000000000000000000000000000000000000000000000000000000000000"

static const char *const table_names[] = {
#define NAME_OF(name, table) #table,
    EVIDENCE_TABLES(NAME_OF)
#undef NAME_OF
};

const evidence_schema_row evidence_schema[EVIDENCE_SCHEMA_ROWS] = {
#define SCHEMA_OF(name, table)                                                                                         \
    {#table, "CREATE TABLE " #table "(id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID"},
    EVIDENCE_TABLES(SCHEMA_OF)
#undef SCHEMA_OF
        {"tally", "CREATE TABLE tally(name TEXT PRIMARY KEY, rows INTEGER NOT NULL, sum TEXT NOT NULL) WITHOUT ROWID"},
    {"kept", "CREATE TABLE kept(run TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(run, at)) "
             "WITHOUT ROWID"},
};

const char *evidence_table_name(evidence_table table) {
    return table_names[table];
}

const char *study_error_text(void) {
    return oct_error_text();
}

const char *evidence_path(const evidence_file *evidence) {
    return evidence->path;
}

/* ---- SQLite */

octet_status evidence_fail(const evidence_file *evidence, const char *doing) {
    int code = sqlite3_extended_errcode(evidence->database), primary = code & 0xff;
    const char *text = sqlite3_errmsg(evidence->database), *path = evidence->path;
    switch (primary) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
        if (primary == SQLITE_FULL)
            (void)oct_fail(OCTET_IO, "%s: %s: the disk is full", path, doing);
        else
            (void)oct_fail(OCTET_IO, "%s: %s: %s (SQLite %d)", path, doing, text, code);
        return oct_hint("what was committed before is kept; make room, then run again: it goes on from there");
    case SQLITE_NOMEM:
        return oct_fail_memory();
    case SQLITE_NOTADB:
        return oct_fail(OCTET_BAD_FORMAT, "%s: is not an evidence file (no SQLite database)", path);
    case SQLITE_CORRUPT:
        return oct_fail(OCTET_BAD_FORMAT, "%s: %s: the file is damaged (%s)", path, doing, text);
    case SQLITE_TOOBIG:
        return oct_fail(OCTET_LIMIT, "%s: %s: a row is longer than %d bytes", path, doing, LONGEST_BODY);
    case SQLITE_BUSY:
        return oct_fail(OCTET_IO, "%s: %s: another process holds the file", path, doing);
    default:
        return oct_fail(OCTET_IO, "%s: %s: %s (SQLite %d)", path, doing, text, code);
    }
}

octet_status evidence_prepare(evidence_file *evidence, const char *sql, const char *const *texts, size_t count,
                              sqlite3_stmt **out) {
    *out = NULL;
    bool good = sqlite3_prepare_v2(evidence->database, sql, -1, out, NULL) == SQLITE_OK;
    for (size_t i = 0; good && i < count; i++)
        good = sqlite3_bind_text(*out, (int)i + 1, texts[i], -1, SQLITE_STATIC) == SQLITE_OK;
    if (good) return OCTET_OK;
    octet_status status = evidence_fail(evidence, "could not ask");
    sqlite3_finalize(*out);
    *out = NULL;
    return status;
}

octet_status evidence_run_sql(evidence_file *evidence, const char *sql) {
    if (sqlite3_exec(evidence->database, sql, NULL, NULL, NULL) == SQLITE_OK) return OCTET_OK;
    return evidence_fail(evidence, "could not write");
}

/* Runs a statement that gives no rows. */
static octet_status write_texts(evidence_file *evidence, const char *sql, const char *const *texts, size_t count) {
    sqlite3_stmt *statement;
    OCT_TRY(evidence_prepare(evidence, sql, texts, count, &statement));
    octet_status status =
        sqlite3_step(statement) == SQLITE_DONE ? OCTET_OK : evidence_fail(evidence, "could not write");
    sqlite3_finalize(statement);
    return status;
}

static octet_status read_integer(evidence_file *evidence, const char *sql, int64_t *value) {
    sqlite3_stmt *statement;
    OCT_TRY(evidence_prepare(evidence, sql, NULL, 0, &statement));
    octet_status status = OCTET_OK;
    if (sqlite3_step(statement) == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    else
        status = evidence_fail(evidence, "could not read");
    sqlite3_finalize(statement);
    return status;
}

/* ---- opening */

/* The lock is the open file description's: no other close gives it up, and a kill does. */
static octet_status take_lock(evidence_file *evidence) {
    evidence->lock = open(evidence->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (evidence->lock < 0) return oct_fail_errno(evidence->path, "could not open for writing");
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1};
    if (fcntl(evidence->lock, F_OFD_SETLK, &lock) == 0) return OCTET_OK;
    if (errno != EAGAIN && errno != EACCES) return oct_fail_errno(evidence->path, "could not lock");
    return oct_fail(OCTET_MISMATCH, "%s: another process is writing it", evidence->path);
}

static octet_status make_tables(evidence_file *evidence) {
    OCT_TRY(evidence_run_sql(evidence, "BEGIN IMMEDIATE"));
    octet_status status = OCTET_OK;
    for (size_t i = 0; status == OCTET_OK && i < EVIDENCE_SCHEMA_ROWS; i++)
        status = evidence_run_sql(evidence, evidence_schema[i].sql);
    for (int i = 0; status == OCTET_OK && i < EVIDENCE_TABLE_COUNT; i++) {
        const char *texts[] = {table_names[i], NO_SUM};
        status = write_texts(evidence, "INSERT INTO tally VALUES(?1, 0, ?2)", texts, 2);
    }
    char pragmas[96];
    sqlite3_snprintf(sizeof pragmas, pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                     EVIDENCE_APPLICATION, EVIDENCE_VERSION);
    if (status == OCTET_OK) status = evidence_run_sql(evidence, pragmas);
    if (status == OCTET_OK) status = evidence_run_sql(evidence, "COMMIT");
    if (status != OCTET_OK) evidence_rollback(evidence);
    return status;
}

/* Bytes 18 and 19 of SQLite's header: 2 is write-ahead logging, whose file alone lacks what lies in its log. */
static octet_status check_header(const char *path, int file) {
    unsigned char head[20] = {0};
    struct stat state;
    if (fstat(file, &state) != 0 || !S_ISREG(state.st_mode))
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is not a regular file, expected an evidence file", path);
    ssize_t got = pread(file, head, sizeof head, 0);
    if (got == 0) return oct_fail(OCTET_BAD_FORMAT, "%s: is empty, expected an evidence file", path);
    if (got < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0)
        return oct_fail(OCTET_BAD_FORMAT, "%s: is not an evidence file (no SQLite database)", path);
    if (head[18] == 2 || head[19] == 2)
        return oct_fail(OCTET_BAD_FORMAT, "%s: keeps a log beside it (write-ahead), which no evidence file does", path);
    return OCTET_OK;
}

static octet_status check_schema(evidence_file *evidence) {
    int64_t application = 0, version = 0, extra = 0;
    OCT_TRY(read_integer(evidence, "PRAGMA application_id", &application));
    OCT_TRY(read_integer(evidence, "PRAGMA user_version", &version));
    if (application != EVIDENCE_APPLICATION)
        return oct_fail(OCTET_BAD_FORMAT, "%s: is a SQLite database, but no evidence file", evidence->path);
    if (version != EVIDENCE_VERSION)
        return oct_fail(OCTET_UNSUPPORTED, "%s: evidence of version %lld, expected %d", evidence->path,
                        (long long)version, EVIDENCE_VERSION);
    for (size_t i = 0; i < EVIDENCE_SCHEMA_ROWS; i++) {
        const char *texts[] = {evidence_schema[i].name, evidence_schema[i].sql};
        sqlite3_stmt *statement;
        OCT_TRY(evidence_prepare(evidence,
                                 "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND sql = ?2", texts,
                                 2, &statement));
        bool found = sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_finalize(statement);
        if (!found)
            return oct_fail(OCTET_BAD_FORMAT, "%s: its table %s is not as it should be", evidence->path, texts[0]);
    }
    OCT_TRY(read_integer(evidence, "SELECT count(*) FROM sqlite_master", &extra));
    if (extra != EVIDENCE_SCHEMA_ROWS)
        return oct_fail(OCTET_BAD_FORMAT, "%s: has %lld tables and other things, expected %d", evidence->path,
                        (long long)extra, (int)EVIDENCE_SCHEMA_ROWS);
    return OCTET_OK;
}

/* Opened for reading, a killed process's half-done commit cannot be taken back; so once for writing. */
static octet_status take_back(const evidence_file *evidence) {
    sqlite3 *database = NULL;
    bool good = sqlite3_open_v2(evidence->path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                sqlite3_exec(database, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(database);
    if (good) return OCTET_OK;
    (void)oct_fail(OCTET_IO, "%s: a process was killed in the middle of a write", evidence->path);
    return oct_hint("copy it together with %s-journal to where it can be written", evidence->path);
}

static octet_status open_database(evidence_file *evidence) {
    bool writes = evidence->mode == EVIDENCE_WRITE;
    int flags = writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(evidence->path, &evidence->database, flags, NULL) != SQLITE_OK)
        return evidence_fail(evidence, "could not open");
    (void)sqlite3_extended_result_codes(evidence->database, 1);
    (void)sqlite3_busy_timeout(evidence->database, WAIT_MS);
    (void)sqlite3_limit(evidence->database, SQLITE_LIMIT_LENGTH, LONGEST_BODY);
    (void)sqlite3_db_config(evidence->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(evidence->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (!writes) return OCTET_OK;
    return evidence_run_sql(evidence, "PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON");
}

static octet_status open_to_read(evidence_file *evidence) {
    int file = open(evidence->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return oct_fail_errno(evidence->path, "could not open");
    octet_status status = check_header(evidence->path, file);
    (void)close(file);
    if (status != OCTET_OK) return status;
    OCT_TRY(open_database(evidence));
    if (sqlite3_exec(evidence->database, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) == SQLITE_OK)
        return check_schema(evidence);
    int code = sqlite3_extended_errcode(evidence->database);
    if (code != SQLITE_READONLY_ROLLBACK && code != SQLITE_READONLY_RECOVERY && (code & 0xff) != SQLITE_CANTOPEN)
        return evidence_fail(evidence, "could not read");
    OCT_TRY(take_back(evidence));
    return check_schema(evidence);
}

static octet_status open_to_write(evidence_file *evidence) {
    struct stat state;
    OCT_TRY(take_lock(evidence));
    if (fstat(evidence->lock, &state) != 0) return oct_fail_errno(evidence->path, "could not ask for its size");
    bool fresh = state.st_size == 0;
    if (!fresh) OCT_TRY(check_header(evidence->path, evidence->lock));
    OCT_TRY(open_database(evidence));
    int64_t tables = 0; /* none: new, or killed before the first commit */
    OCT_TRY(read_integer(evidence, "SELECT count(*) FROM sqlite_master", &tables));
    if (tables == 0) OCT_TRY(make_tables(evidence));
    return check_schema(evidence);
}

octet_status evidence_open(const char *path, evidence_mode mode, evidence_file **out) {
    *out = NULL;
    evidence_file *made = calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->lock = -1;
    made->mode = mode;
    made->path = strdup(path);
    octet_status status = OCTET_OK;
    if (made->path == NULL)
        status = oct_fail_memory();
    else
        status = mode == EVIDENCE_WRITE ? open_to_write(made) : open_to_read(made);
    if (status == OCTET_OK)
        *out = made;
    else
        evidence_close(&made);
    return status;
}

void evidence_close(evidence_file **handle) {
    evidence_file *held = *handle;
    if (held == NULL) return;
    (void)sqlite3_close(held->database); /* before the lock: closing a file gives up SQLite's locks of it */
    if (held->lock >= 0) (void)close(held->lock);
    free(held->path);
    free(held);
    *handle = NULL;
}

/* ---- ids */

char *evidence_canonical(const json_t *body) {
    return json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
}

octet_status evidence_hash(evidence_table table, const char *body, char id[EVIDENCE_ID]) {
    uint8_t digest[OCT_SHA256_SIZE];
    oct_sha256 hash;
    OCT_TRY(oct_sha256_begin(&hash));
    octet_status status = oct_sha256_update(&hash, table_names[table], strlen(table_names[table]));
    if (status == OCTET_OK) status = oct_sha256_update(&hash, "\n", 1);
    if (status == OCTET_OK) status = oct_sha256_update(&hash, body, strlen(body));
    if (status != OCTET_OK) {
        oct_sha256_drop(&hash);
        return status;
    }
    OCT_TRY(oct_sha256_end(&hash, digest));
    oct_sha256_hex(digest, id);
    return OCTET_OK;
}

octet_status evidence_id(evidence_table table, json_t *body, char id[EVIDENCE_ID]) {
    char *text = body != NULL ? evidence_canonical(body) : NULL;
    json_decref(body);
    if (text == NULL) return oct_fail_memory();
    octet_status status = evidence_hash(table, text, id);
    free(text);
    return status;
}

static int digit_of(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

void evidence_fold(char sum[EVIDENCE_ID], const char *id) {
    for (size_t i = 0; i + 1 < EVIDENCE_ID; i++) sum[i] = "0123456789abcdef"[(digit_of(sum[i]) ^ digit_of(id[i])) & 15];
}

/* ---- writing */

octet_status evidence_begin(evidence_file *evidence) {
    return evidence_run_sql(evidence, "BEGIN IMMEDIATE");
}

octet_status evidence_commit(evidence_file *evidence) {
    octet_status status = evidence_run_sql(evidence, "COMMIT");
    if (status != OCTET_OK) evidence_rollback(evidence);
    return status;
}

void evidence_rollback(evidence_file *evidence) {
    if (sqlite3_get_autocommit(evidence->database) == 0)
        (void)sqlite3_exec(evidence->database, "ROLLBACK", NULL, NULL, NULL);
}

static octet_status count_row(evidence_file *evidence, evidence_table table, const char *id) {
    const char *ask[] = {table_names[table]};
    sqlite3_stmt *statement;
    OCT_TRY(evidence_prepare(evidence, "SELECT sum FROM tally WHERE name = ?1", ask, 1, &statement));
    char sum[EVIDENCE_ID] = NO_SUM;
    bool found = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_bytes(statement, 0) == EVIDENCE_ID - 1;
    if (found) memcpy(sum, sqlite3_column_text(statement, 0), EVIDENCE_ID - 1);
    sqlite3_finalize(statement);
    if (!found) return oct_fail(OCTET_BAD_FORMAT, "%s: its tally of %s is missing", evidence->path, ask[0]);
    evidence_fold(sum, id);
    const char *texts[] = {table_names[table], sum};
    return write_texts(evidence, "UPDATE tally SET rows = rows + 1, sum = ?2 WHERE name = ?1", texts, 2);
}

octet_status evidence_add_text(evidence_file *evidence, evidence_table table, const char *id, const char *body) {
    char sql[64];
    const char *texts[] = {id, body};
    sqlite3_snprintf(sizeof sql, sql, "INSERT OR IGNORE INTO %s VALUES(?1, ?2)", table_names[table]);
    OCT_TRY(write_texts(evidence, sql, texts, 2));
    return sqlite3_changes(evidence->database) == 0 ? OCTET_OK : count_row(evidence, table, id);
}

octet_status evidence_add(evidence_file *evidence, evidence_table table, json_t *body, char id[EVIDENCE_ID]) {
    char made[EVIDENCE_ID] = "";
    char *text = body != NULL ? evidence_canonical(body) : NULL;
    json_decref(body);
    if (id != NULL) id[0] = '\0';
    if (text == NULL) return oct_fail_memory();
    bool alone = sqlite3_get_autocommit(evidence->database) != 0;
    octet_status status = evidence_hash(table, text, made);
    if (status == OCTET_OK && alone) status = evidence_begin(evidence);
    if (status == OCTET_OK) status = evidence_add_text(evidence, table, made, text);
    if (alone && status == OCTET_OK) status = evidence_commit(evidence);
    if (alone && status != OCTET_OK) evidence_rollback(evidence);
    free(text);
    if (id != NULL && status == OCTET_OK) memcpy(id, made, sizeof made);
    return status;
}

/* ---- what a run has so far */

octet_status evidence_keep(evidence_file *evidence, const char *run, int64_t at, json_t *body) {
    char *text = body != NULL ? evidence_canonical(body) : NULL;
    json_decref(body);
    if (text == NULL) return oct_fail_memory();
    char place[24];
    sqlite3_snprintf(sizeof place, place, "%lld", (long long)at);
    const char *texts[] = {run, place, text};
    octet_status status =
        write_texts(evidence, "INSERT OR REPLACE INTO kept VALUES(?1, CAST(?2 AS INTEGER), ?3)", texts, 3);
    free(text);
    return status;
}

octet_status evidence_kept(evidence_file *evidence, const char *run, json_t **list) {
    sqlite3_stmt *statement;
    *list = NULL;
    OCT_TRY(evidence_prepare(evidence, "SELECT body FROM kept WHERE run = ?1 ORDER BY at", &run, 1, &statement));
    json_t *all = json_array();
    octet_status status = all != NULL ? OCTET_OK : oct_fail_memory();
    int step = SQLITE_DONE;
    while (status == OCTET_OK && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        json_t *body = json_loadb((const char *)sqlite3_column_text(statement, 0),
                                  (size_t)sqlite3_column_bytes(statement, 0), 0, NULL);
        if (body == NULL || json_array_append_new(all, body) != 0)
            status = oct_fail(OCTET_BAD_FORMAT, "%s: what run %.12s has so far is damaged", evidence->path, run);
    }
    if (status == OCTET_OK && step != SQLITE_DONE) status = evidence_fail(evidence, "could not read");
    sqlite3_finalize(statement);
    if (status == OCTET_OK)
        *list = all;
    else
        json_decref(all);
    return status;
}

octet_status evidence_drop_kept(evidence_file *evidence, const char *run) {
    return write_texts(evidence, "DELETE FROM kept WHERE ?1 IS NULL OR run = ?1", &run, 1);
}

void evidence_compact(evidence_file *evidence) {
    int64_t unused = 0, pages = 0;
    if (read_integer(evidence, "PRAGMA freelist_count", &unused) == OCTET_OK &&
        read_integer(evidence, "PRAGMA page_count", &pages) == OCTET_OK && unused > pages / 8)
        (void)sqlite3_exec(evidence->database, "VACUUM", NULL, NULL, NULL);
}

/* ---- reading */

/* One row, its hash checked. */
static octet_status take_row(evidence_file *evidence, evidence_table table, sqlite3_stmt *statement,
                             evidence_row *row) {
    const char *id = (const char *)sqlite3_column_text(statement, 0);
    const char *body = (const char *)sqlite3_column_text(statement, 1);
    size_t length = (size_t)sqlite3_column_bytes(statement, 1);
    char found[EVIDENCE_ID];
    if (id == NULL || body == NULL) return evidence_fail(evidence, "could not read");
    OCT_TRY(evidence_hash(table, body, found));
    if (strcmp(found, id) != 0)
        return oct_fail(OCTET_VERIFICATION, "%s: %s %.12s: its hash is %.12s, so it was changed", evidence->path,
                        table_names[table], id, found);
    row->table = table;
    memcpy(row->id, found, sizeof found);
    row->body = json_loadb(body, length, 0, NULL);
    if (!json_is_object(row->body)) {
        json_decref(row->body);
        return oct_fail(OCTET_VERIFICATION, "%s: %s %.12s is not a JSON object", evidence->path, table_names[table],
                        id);
    }
    return OCTET_OK;
}

static octet_status take_rows(evidence_file *evidence, evidence_table table, sqlite3_stmt *statement,
                              evidence_rows *out) {
    size_t capacity = out->count;
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        if (out->count == capacity) {
            capacity = capacity < 32 ? 64 : 2 * capacity;
            evidence_row *grown = realloc(out->items, capacity * sizeof *grown);
            if (grown == NULL) return oct_fail_memory();
            out->items = grown;
        }
        OCT_TRY(take_row(evidence, table, statement, &out->items[out->count]));
        out->count++;
    }
    if (step == SQLITE_DONE) return OCTET_OK;
    if ((sqlite3_errcode(evidence->database) & 0xff) == SQLITE_ERROR) /* json_extract's word for it */
        return oct_fail(OCTET_VERIFICATION, "%s: a row of %s is not JSON", evidence->path, table_names[table]);
    return evidence_fail(evidence, "could not read");
}

/* The query's keys, as ?1, ?2 ...; and the keys that order the rows. */
static octet_status list_sql(evidence_table table, oct_text *sql) {
    static const char *const asked[] = {"run", "variant", "set", "name", "kind", "task"};
    static const char *const order[] = {"task", "kind", "variant", "set", "name", "run", "at"};
    oct_text_printf(sql, "SELECT id, body FROM %s WHERE 1", table_names[table]);
    for (int i = 0; i < 6; i++)
        oct_text_printf(sql, " AND (?%d IS NULL OR body ->> '$.%s' = ?%d)", i + 1, asked[i], i + 1);
    oct_text_puts(sql, " ORDER BY ");
    for (int i = 0; i < 7; i++) oct_text_printf(sql, "body ->> '$.%s', ", order[i]);
    oct_text_puts(sql, "id");
    return sql->failed ? oct_fail_memory() : OCTET_OK;
}

octet_status evidence_list(evidence_file *evidence, evidence_table table, const evidence_query *query,
                           evidence_rows *out) {
    const evidence_query all = {0};
    const evidence_query *q = query != NULL ? query : &all;
    const char *texts[] = {q->run, q->variant, q->set, q->name, q->kind, q->task};
    oct_text sql = {0};
    sqlite3_stmt *statement = NULL;
    *out = (evidence_rows){0};
    octet_status status = list_sql(table, &sql);
    if (status == OCTET_OK) status = evidence_prepare(evidence, sql.data, texts, 6, &statement);
    if (status == OCTET_OK) status = take_rows(evidence, table, statement, out);
    sqlite3_finalize(statement);
    oct_text_free(&sql);
    if (status != OCTET_OK) evidence_rows_free(out);
    return status;
}

octet_status evidence_find(evidence_file *evidence, const char *id, evidence_rows *out) {
    *out = (evidence_rows){0};
    size_t length = strlen(id);
    if (length < 8 || length >= EVIDENCE_ID || strspn(id, "0123456789abcdef") != length)
        return oct_fail(OCTET_INVALID_ARGUMENT, "id: expected 8 to 64 hexadecimal digits, found \"%s\"", id);
    octet_status status = OCTET_OK;
    for (int table = 0; status == OCTET_OK && table < EVIDENCE_TABLE_COUNT; table++) {
        char sql[96];
        sqlite3_stmt *statement;
        sqlite3_snprintf(sizeof sql, sql, "SELECT id, body FROM %s WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2",
                         table_names[table]);
        status = evidence_prepare(evidence, sql, &id, 1, &statement);
        if (status == OCTET_OK) status = take_rows(evidence, (evidence_table)table, statement, out);
        sqlite3_finalize(statement);
    }
    if (status == OCTET_OK && out->count == 0)
        status = oct_fail(OCTET_NOT_FOUND, "%s: no row's id begins with %s", evidence->path, id);
    if (status == OCTET_OK && out->count > 1)
        status = oct_fail(OCTET_INVALID_ARGUMENT, "%s: the ids of several rows begin with %s", evidence->path, id);
    if (status != OCTET_OK) evidence_rows_free(out);
    return status;
}

void evidence_rows_free(evidence_rows *rows) {
    for (size_t i = 0; i < rows->count; i++) json_decref(rows->items[i].body);
    free(rows->items);
    *rows = (evidence_rows){0};
}

const char *evidence_text(const evidence_row *row, const char *key) {
    const char *text = json_string_value(json_object_get(row->body, key));
    return text != NULL ? text : "";
}

double evidence_number(const evidence_row *row, const char *key) {
    const json_t *value = json_object_get(row->body, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int64_t evidence_integer(const evidence_row *row, const char *key) {
    return (int64_t)json_integer_value(json_object_get(row->body, key));
}
