/* SPDX-License-Identifier: Apache-2.0 */
/* The study file (study.yaml): what is compared on which pictures, and the rules that decide, fixed before measuring.
 * docs/add-a-study.md explains each key; errors say file, line and a near name. */
#ifndef OCT_STUDY_STUDY_FILE_H
#define OCT_STUDY_STUDY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "octet/status.h"

#define STUDY_BYTES ((size_t)1 << 20) /* of text */
#define STUDY_NAMES 1000              /* items of any list */

/* ---- pictures */

typedef struct study_data { /* a data set by name */
    const char *name, *place;
    int line;
} study_data;

/* A set is a list of steps over an ordered list of pictures: the first says where they come from. */
typedef enum study_step_kind {
    STEP_DATA,     /* all of data set `name`, in its order */
    STEP_FROM,     /* what another set has, in its order */
    STEP_WITHOUT,  /* not what set `name` has */
    STEP_FIRST,    /* the first `number` */
    STEP_LAST,     /* the last `number` */
    STEP_EVERY,    /* positions 0, number, 2 * number ... */
    STEP_OF_SHARD, /* the same, counted anew in each shard (or directory) */
    STEP_RANGE,    /* positions number .. end - 1 */
    STEP_PARITY,   /* positions of parity `number` (0 even, 1 odd) */
    STEP_SHUFFLE   /* by seed `number`: Fisher and Yates from the end, splitmix64 */
} study_step_kind;
typedef struct study_step {
    study_step_kind kind;
    const char *name;
    int64_t number, end;
    int line;
} study_step;
typedef struct study_set {
    const char *name; /* calibrate, select and verdict are the three that tasks take; others help to define them */
    study_step *steps;
    size_t step_count;
    int line;
} study_set;

/* Numbers of a data set's pictures that a set takes, in the set's order. */
typedef struct study_pictures {
    const char *data; /* name of the data set */
    int64_t *numbers;
    size_t count;
} study_pictures;

/* ---- what is measured */

typedef struct study_variant {
    const char *name, *recipe;
    const char *recipe_path; /* of a recipe that is a file: beside the study file; else NULL */
    bool judged;             /* on the verdict set too, not on select alone */
    int line;
} study_variant;

typedef struct study_timing {
    bool is_set;
    int64_t *batches;
    size_t batch_count;
    int64_t rounds, threads, warm_up;
    double seconds; /* at least so long for each batch and variant */
    const char *base;
    const char **variants; /* beside the base; none given: all */
    size_t variant_count;
} study_timing;

/* A picture with a bound on how far the answer may drift from the reference's. */
typedef struct study_premerge {
    const char *name, *picture;
    double tolerance; /* of the score (detection) or the probability of the reference's best class */
    int line;
} study_premerge;

/* ---- what decides */

typedef enum study_figure_kind {
    FIGURE_PROPORTION,
    FIGURE_RATE,
    FIGURE_CHANGE,
    FIGURE_MEAN,
    FIGURE_COUNT,
    FIGURE_SIZE,
    FIGURE_RATIO
} study_figure_kind;
typedef enum study_figure_source {
    FROM_CLASSES,
    FROM_BOXES,
    FROM_PICTURES,
    FROM_TIMES,
    FROM_STRESS,
    FROM_PREMERGE,
    FROM_ENGINE
} study_figure_source;
/* A row of figures.def. */
typedef struct study_figure {
    const char *name;
    study_figure_kind kind;
    study_figure_source source;
    const char *words;
} study_figure;
const study_figure *study_find_figure(const char *name); /* NULL: no such figure */
/* The number at the end of a name as speedup_batch_32; 0: it has none. */
int64_t study_figure_number(const char *name);

typedef struct study_bound {
    const char *figure;
    bool at_most; /* else at least */
    double limit;
    int line;
} study_bound;
typedef struct study_rule {
    const char *name;
    study_bound *bounds;
    size_t bound_count;
    bool adopted;
    int line;
} study_rule;

typedef enum study_relation { RELATION_BELOW, RELATION_AT_MOST, RELATION_ABOVE, RELATION_AT_LEAST } study_relation;
/* "int8 speedup_batch_1 > 1.1", "speedup_batch_128 > 1" (of the candidate): when to look again. */
typedef struct study_revisit {
    const char *text, *because;
    const char *variant, *figure; /* variant NULL: the candidate's */
    study_relation relation;
    double number;
    int line;
} study_revisit;
const char *study_relation_text(study_relation relation); /* "<" */

typedef struct study_missing { /* not measured, and why: a line of the report */
    const char *what, *why;
} study_missing;

typedef struct study_file {
    const char *path, *name, *title;
    char sha256[65]; /* of the text */
    const char *text;
    size_t length;
    const char *model, *revision; /* place (beside the study file, unless a hub id); the revision it should have */
    const char *classes, *orientation;
    const char *reference, *floor; /* variants: compared with; the 16-bit floor (NULL: none) */
    const char **candidates;       /* variants that the decision is about */
    size_t candidate_count;
    study_data *data;
    size_t data_count;
    study_set *sets;
    size_t set_count;
    study_variant *variants;
    size_t variant_count;
    study_timing timing;
    int64_t draws, batch;
    double threshold;
    bool stress; /* the named inputs of eval/stress.h, for the candidates and what they are compared with */
    study_premerge *premerge;
    size_t premerge_count;
    study_rule *rules;
    size_t rule_count;
    study_revisit *revisits;
    size_t revisit_count;
    study_missing *missing;
    size_t missing_count;
    void *memory; /* all of the above */
} study_file;

octet_status study_file_read(study_file *study, const char *path);
/* From memory; `path` stands in errors, and places are relative to its folder. */
octet_status study_file_parse(study_file *study, const char *path, const char *text, size_t length);
void study_file_free(study_file *study); /* all zero is fine */

const study_set *study_find_set(const study_file *study, const char *name);         /* NULL: none */
const study_variant *study_find_variant(const study_file *study, const char *name); /* NULL: none */
/* Pictures of a set, given the names of each data set's pictures (SHARD/KEY, or paths): names[d][i] of data set d with
 * counts[d]. LIMIT: fewer pictures than a step takes. The numbers are the caller's to free with study_pictures_free. */
octet_status study_resolve(const study_file *study, const study_set *set, const char *const *const *names,
                           const size_t *counts, study_pictures *out);
void study_pictures_free(study_pictures *pictures);

#endif
