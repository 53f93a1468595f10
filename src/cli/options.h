/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a verb's arguments from a table of its options; the table also writes its --help. */
#ifndef OCT_CLI_OPTIONS_H
#define OCT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of the command. */
enum { EXIT_DONE = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_WRONG = 3 };

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INT, OPTION_REAL, OPTION_CHOICE, OPTION_END } option_kind;

typedef struct option_row {
    option_kind kind;
    const char *name;  /* "--top" */
    const char *value; /* name of its value in --help; CHOICE: "a|b|c" */
    const char *help;
    void *target;      /* bool, const char *, int64_t, double; CHOICE: int (index) */
    int64_t low, high; /* INT */
} option_row;

/* What every verb takes. */
typedef struct common_options {
    bool help, json, quiet;
    int64_t threads; /* 0: one a core */
    int device;      /* index into "cpu" */
} common_options;

typedef struct verb_row {
    const char *name;
    const char *arguments; /* "MODEL PICTURE..." */
    const char *summary;
    int (*run)(int count, char **words); /* words after the verb; returns the exit code */
} verb_row;

/* Options of `rows` (ended by OPTION_END) and the common ones are taken out of words; the rest is moved to the front
 * and its number returned. -1: a usage error, printed; -2: --help was printed. */
int options_read(const verb_row *verb, const option_row *rows, common_options *common, int count, char **words);
/* "octet VERB: TEXT", how to get help; returns EXIT_USAGE. */
int usage_error(const verb_row *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "1,32,128": up to `limit` numbers of 1 to 1024; returns how many, 0 if it is not such a list */
int parse_batches(const char *text, int64_t *batches, int limit);

/* --recipe and --scales, the same on every verb that opens a checkpoint. */
#define OPTION_RECIPE(recipe, scales)                                                                                  \
    {OPTION_TEXT, "--recipe", "R", "fp32 (default), fp16, bf16, int8, fp8, a recipe of the family, or a .yaml file",   \
     &(recipe),   0,          0},                                                                                      \
    {                                                                                                                  \
        OPTION_TEXT, "--scales", "FILE", "static scales, from octet calibrate", &(scales), 0, 0                        \
    }

extern const verb_row verb_pull, verb_inspect, verb_calibrate, verb_build, verb_run, verb_eval, verb_attribute,
    verb_bench, verb_search, verb_check, verb_study;

#endif
