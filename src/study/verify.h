/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a report, and the files a study is made of, against its evidence. */
#ifndef OCT_STUDY_VERIFY_H
#define OCT_STUDY_VERIFY_H

#include "study/evidence.h"
#include "study/study_file.h"

typedef struct verify_files {
    const char *evidence; /* the file */
    const char *readme;   /* its report is held against the evidence, if it has marks for one; NULL: none */
    const char *html;     /* NULL: none */
    const char *scales;   /* folder of scale files; those that are there must be those of the evidence; NULL: none */
} verify_files;

/* All there is to check: every row (evidence_verify), the study file, recipe files and scale files against their
 * hashes, and the report made again, compared byte by byte. Each problem is told by file and line, with what was
 * expected, what was found and whose evidence says so. VERIFICATION if there is any. Changes nothing. */
octet_status verify_study(const study_file *study, const verify_files *files, evidence_problem problem, void *user);

/* Tells each line of `found` that differs from `expected`; `line` is the number of the first. Returns how many. */
size_t verify_lines(const char *name, size_t line, const char *expected, size_t expected_length, const char *found,
                    size_t found_length, evidence_problem problem, void *user);

#endif
