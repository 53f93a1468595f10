/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a study: made of its evidence and nothing else, so that the same evidence always gives the same bytes.
 * docs/reports.md says what stands in it. */
#ifndef OCT_STUDY_REPORT_H
#define OCT_STUDY_REPORT_H

#include "study/evidence.h"
#include "study/study_file.h"

#define REPORT_BEGIN "<!-- octet:report -->"
#define REPORT_END "<!-- /octet:report -->"
#define REPORT_BYTES ((size_t)64 << 20) /* of a README or a page that is read */

typedef struct report_text {
    char *markdown; /* what stands between the marks, with the line ends at both sides */
    char *html;     /* a whole page */
} report_text;

/* VERIFICATION: the study file's own words say more than was measured (words.def); MISMATCH: it was changed since it
 * was run. *out is the caller's to free. */
octet_status report_make(const study_file *study, evidence_file *evidence, report_text *out);
void report_text_free(report_text *text); /* all zero is fine */

/* `readme` with what stands between the marks replaced; heap, *size bytes. NOT_FOUND: it has no marks; BAD_FORMAT: more
 * than one pair, or out of order. `name` stands in errors. */
octet_status report_place(const char *name, const char *readme, size_t length, const char *markdown, char **out,
                          size_t *size);
/* Where the report lies in `readme`: offsets behind the first mark and before the second. */
octet_status report_find(const char *name, const char *readme, size_t length, size_t *from, size_t *to);

/* Writes both, each whole or not at all; a path that is NULL is left out. */
octet_status report_write(const report_text *text, const char *readme, const char *html);

#endif
