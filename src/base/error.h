/* SPDX-License-Identifier: Apache-2.0 */
/* Error text of the calling thread, in three parts: fact (file, line or tensor, expected, found), detail, hint.
 *
 * A function that fails returns oct_fail(...); callers pass the status up and may put their own file name before
 * the fact with oct_error_prefix. The text stays until the next failure or oct_error_clear on the same thread. */
#ifndef OCT_BASE_ERROR_H
#define OCT_BASE_ERROR_H

#include "octet/status.h"

/* Sets the fact, forgets detail and hint, returns `status`. Facts: lower case, no full stop, offending value in. */
octet_status oct_fail(octet_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds to the failure just reported; returns its status, so `return oct_hint(...)` works after oct_fail. */
octet_status oct_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
octet_status oct_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Puts "PREFIX: " before the fact, unless the fact already starts with it. Returns the status. */
octet_status oct_error_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* errno's text as an IO, NOT_FOUND or OUT_OF_MEMORY failure: "PATH: WHAT: No such file or directory". */
octet_status oct_fail_errno(const char *path, const char *what);
octet_status oct_fail_memory(void);

octet_status oct_error_status(void);
const char *oct_error_fact(void); /* never NULL, "" if none */
const char *oct_error_detail(void);
const char *oct_error_hint(void);
/* The three parts as one text: "fact\n  detail\n  hint: ...", parts that are empty left out. Valid till the next call.
 */
const char *oct_error_text(void);
void oct_error_clear(void);

const char *oct_status_name(octet_status status); /* "NOT_FOUND"; "UNKNOWN" for a number not listed */
const char *oct_status_text(octet_status status);

/* Return early on failure. */
#define OCT_TRY(expression)                                                                                            \
    do {                                                                                                               \
        octet_status oct_try_status = (expression);                                                                    \
        if (oct_try_status != OCTET_OK) return oct_try_status;                                                         \
    } while (0)

#endif
