/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence: what was measured, on what, in one SQLite file. Rows are JSON objects, never changed once written; a row's
 * id is the SHA-256 of its table's name, a line end, and its canonical JSON (keys sorted, no blanks, reals in 17
 * digits). So the same row has the same id on every machine, and files merge by putting their rows together.
 *
 * A write that is committed is in the file itself: between commits nothing that matters lies beside it, and a killed
 * process's half-done commit is taken back by the next one that opens the file. A tally (rows of each table, and the
 * exclusive or of their ids) changes in the same commit, so that a file with rows missing never passes for a smaller
 * whole one. */
#ifndef OCT_STUDY_EVIDENCE_H
#define OCT_STUDY_EVIDENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "octet/status.h"

/* clang-format off */
/* table, and the keys of its rows; those in [] may be absent. Numbers that are not finite are null.
 *
 * environment  octet (version), device, machine {...}: octet_lab_machine's object, system, release
 * artifact     kind, name, sha256 and by kind:
 *              study     text: the study file, whole                        sha256 of its bytes
 *              plan      environment, number (the highest counts), tasks: [{"task", "variant", "set", "run"}...]: what
 *                        the study is to do, in order                      sha256 of the study file
 *              recipe    [text]                                             of the text, or of the name of a built-in one
 *              scales    bytes                                              of the scale file
 *              set       data, fingerprint, pictures: [{"name", "sha256", "label"}...]; name: calibrate, select, verdict
 *              model     place, architecture                                the weights' fingerprint
 * run          task: calibrate, evaluate, time, stress, premerge, size; variant, [reference: a variant], [set: a name],
 *              options {...}: whatever else decides what comes out; and ids: environment, model, [recipe],
 *              [calibration: the run that made its scales], [pictures: of the set]. A run is there when it is done, with
 *              all that came out of it. Which runs are those of a study: plan.h
 * figure       run, variant, name, value, [set], [n], [low, high: two-sided 95%], [kind]: proportion (of n 0-or-1 things,
 *              pictures), mean, ratio, count, size; [scales: the artifact that a calibration made]
 * sample       run, at (number of its first picture in the set), pictures: [{...}...]: up to EVIDENCE_CHUNK pictures in
 *              the set's order. Classification: label, best, top1, top5, ce, and beside a reference rbest, rtop1, kl, rce.
 *              Detection: detections [[label, score, x, y, width, height]...] above the threshold (the score to 1/1024,
 *              the box to 1/16 pixel), finite, and beside a reference matched, tested, wanted (the reference's), iou,
 *              drift, near, kl
 * timing       run, variant, name, scope, batch, threads, warm_up, start, end (events), synchronize (the call), inside
 *              (what lies between the events), seconds: [every raw sample, in order], [unfinished: why it was cut short],
 *              [throttled], held (the last timed output equals an untimed one), round: which order of candidates. Rows
 *              of one run were taken in turns: sample i of one and sample i of another are a pair
 * opening      variant, recipe, [scales], pictures (the set), study: ids; when (UTC): the verdict set was opened for a
 *              frozen recipe, by the rules of that study file
 */
#define EVIDENCE_TABLES(X)                                                                                             \
    X(ENVIRONMENT, environment) X(ARTIFACT, artifact) X(RUN, run) X(FIGURE, figure) X(SAMPLE, sample)                  \
    X(TIMING, timing) X(OPENING, opening)
/* clang-format on */

typedef enum evidence_table {
#define EVIDENCE_ENUM(name, table) EVIDENCE_##name,
    EVIDENCE_TABLES(EVIDENCE_ENUM)
#undef EVIDENCE_ENUM
        EVIDENCE_TABLE_COUNT
} evidence_table;
const char *evidence_table_name(evidence_table table); /* "figure" */

#define EVIDENCE_ID 65    /* 64 digits and the zero */
#define EVIDENCE_CHUNK 64 /* pictures in a sample row */

/* The text of this thread's last failure in the study's files (fact, detail, hint). */
const char *study_error_text(void);

/* ---- opening */

typedef struct evidence_file evidence_file;
typedef enum evidence_mode {
    EVIDENCE_READ,  /* changes nothing, works on a read-only file system, and while another process writes */
    EVIDENCE_WRITE, /* one process at a time, a second one is MISMATCH; made if it is not
                     * there. */
} evidence_mode;
/* BAD_FORMAT: not such a file, or damaged. *out is the caller's to close. One thread at a time. */
octet_status evidence_open(const char *path, evidence_mode mode, evidence_file **out);
void evidence_close(evidence_file **evidence); /* what was not committed is forgotten; NULL is fine */
const char *evidence_path(const evidence_file *evidence);

/* ---- writing. Each write outside evidence_begin and evidence_commit is a commit of its own. */

octet_status evidence_begin(evidence_file *evidence);
octet_status evidence_commit(evidence_file *evidence);
void evidence_rollback(evidence_file *evidence);
/* Takes over `body` whatever comes; a row that is there already is left as it is, and its id returned. `id` may be
 * NULL. A full disk is IO: what was committed stays, and the next run goes on from there. */
octet_status evidence_add(evidence_file *evidence, evidence_table table, json_t *body, char id[EVIDENCE_ID]);
/* The id that evidence_add would give; takes over `body`. */
octet_status evidence_id(evidence_table table, json_t *body, char id[EVIDENCE_ID]);

/* What a run under way has of its pictures so far, to go on from if it is killed; no evidence, no part of merges. */
octet_status evidence_keep(evidence_file *evidence, const char *run, int64_t at, json_t *body); /* takes over `body` */
octet_status evidence_kept(evidence_file *evidence, const char *run, json_t **list); /* array, in order of `at` */
octet_status evidence_drop_kept(evidence_file *evidence, const char *run);           /* NULL: of all runs */

/* Gives back the room that rows kept and dropped took in the file. What it cannot do for want of room it leaves. */
void evidence_compact(evidence_file *evidence);

/* ---- reading */

typedef struct evidence_row {
    evidence_table table;
    char id[EVIDENCE_ID];
    json_t *body;
} evidence_row;
typedef struct evidence_rows {
    evidence_row *items;
    size_t count;
} evidence_rows;
/* Rows whose keys have these texts; NULL: any. `kind` and `task` are of artifacts and runs. */
typedef struct evidence_query {
    const char *run, *variant, *set, *name, *kind, *task;
} evidence_query;
/* In order of task, kind, variant, set, name, run, at, then id: the same whatever the order of writing. `query` NULL:
 * all. Each row's hash is checked: VERIFICATION names one that is not what its id says. The caller's to free. */
octet_status evidence_list(evidence_file *evidence, evidence_table table, const evidence_query *query,
                           evidence_rows *out);
void evidence_rows_free(evidence_rows *rows); /* all zero is fine */
/* The row of an id, or of a unique beginning of at least 8 digits, from whatever table. NOT_FOUND. */
octet_status evidence_find(evidence_file *evidence, const char *id, evidence_rows *out);

/* Of a row: "" and NaN where the key is absent or of another type. */
const char *evidence_text(const evidence_row *row, const char *key);
double evidence_number(const evidence_row *row, const char *key);
int64_t evidence_integer(const evidence_row *row, const char *key); /* 0 if absent */

/* ---- checking and joining */

/* Everything there is to check: SQLite's own structure, the tables, every row's hash and canonical form, the tally, and
 * that each run, artifact and environment that a row names is there. Each problem is told; VERIFICATION if any. */
typedef void (*evidence_problem)(void *user, const char *text);
octet_status evidence_verify(evidence_file *evidence, evidence_problem problem, void *user);

/* The rows of all `paths` into a new file `output`, whole or not at all; the inputs are verified first. Rows come in
 * the order of their ids, so the bytes depend on the rows only. */
octet_status evidence_merge(const char *const *paths, size_t count, const char *output);

#endif
