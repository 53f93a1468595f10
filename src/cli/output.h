/* SPDX-License-Identifier: Apache-2.0 */
/* What the command prints and writes. */
#ifndef OCT_CLI_OUTPUT_H
#define OCT_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/json.h"

/* "octet VERB: " and the library's error text, on standard error; returns EXIT_BAD. */
int print_failure(const char *verb);
/* The library's warnings to standard error; call once. */
void print_warnings(void);

/* One line of JSON on standard output; takes over `object`. False: no memory or a write failed (printed). */
bool print_json(json_t *object);
/* At the end of a verb: flushes standard output; a failed write (full disk, closed pipe) is EXIT_BAD. */
int finish_output(const char *verb, int code);

/* Progress on standard error, if that is a terminal and --quiet was not given: "run  12/100  3 s left". */
typedef struct progress_line {
    const char *what;
    size_t total;
    double start, last;
    bool shown;
} progress_line;
progress_line progress_start(const char *what, size_t total, bool quiet);
void progress_update(progress_line *progress, size_t done);
void progress_end(progress_line *progress);

double seconds_now(void); /* monotonic */

/* A NumPy array file, whole or not at all; `descr` as NumPy's: "<f4", "|u1". Prints on failure. */
bool write_npy(const char *path, const char *descr, size_t element, int rank, const int64_t *shape, const void *data);
/* DIRECTORY/STEM.SUFFIX where STEM is the file's name without directory; heap, NULL: no memory */
char *output_path(const char *directory, const char *file, const char *suffix);
bool make_directory(const char *path); /* prints on failure; existing is fine */

#endif
