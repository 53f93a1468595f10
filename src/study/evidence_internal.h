/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence file from inside: what evidence.c and evidence_check.c share. */
#ifndef OCT_STUDY_EVIDENCE_INTERNAL_H
#define OCT_STUDY_EVIDENCE_INTERNAL_H

#include <sqlite3.h>

#include "base/hash.h"
#include "study/evidence.h"

#define EVIDENCE_APPLICATION 0x6f637465 /* "octe" in SQLite's header, bytes 68 to 71 */
#define EVIDENCE_VERSION 1              /* SQLite's user_version */

struct evidence_file {
    sqlite3 *database;
    char *path;
    int lock; /* descriptor that holds the writer's lock; -1: reading */
    evidence_mode mode;
};

/* What an evidence file's sqlite_master says, no more and no less. */
typedef struct evidence_schema_row {
    const char *name, *sql;
} evidence_schema_row;
#define EVIDENCE_SCHEMA_ROWS (EVIDENCE_TABLE_COUNT + 2)
extern const evidence_schema_row evidence_schema[EVIDENCE_SCHEMA_ROWS];

/* SQLite's last failure as a status and text. */
octet_status evidence_fail(const evidence_file *evidence, const char *doing);
/* `sql` with texts bound to ?1, ?2 ... (NULL stays null); the caller's to finalize. */
octet_status evidence_prepare(evidence_file *evidence, const char *sql, const char *const *texts, size_t count,
                              sqlite3_stmt **out);
octet_status evidence_run_sql(evidence_file *evidence, const char *sql);
octet_status evidence_hash(evidence_table table, const char *body, char id[EVIDENCE_ID]);
char *evidence_canonical(const json_t *body); /* to free(); NULL: no memory */
octet_status evidence_add_text(evidence_file *evidence, evidence_table table, const char *id, const char *body);
/* sum ^= id, both 64 digits */
void evidence_fold(char sum[EVIDENCE_ID], const char *id);

#endif
