/* SPDX-License-Identifier: Apache-2.0 */
/* What a study needs done by engines, as functions: octet's own (study_engine_octet), or a test's. All return a status
 * with study_error_text; what they give is the caller's to free. */
#ifndef OCT_STUDY_ENGINE_H
#define OCT_STUDY_ENGINE_H

#include <jansson.h>

#include "octet/octet.h"
#include "study/study_file.h"

/* The pictures of a data set, in its order. */
typedef struct study_listing {
    char **names;
    char (*hashes)[65]; /* SHA-256 of each encoded picture */
    int32_t *labels;    /* class index; -1 in a detection set */
    size_t count;
    char fingerprint[65];
} study_listing;
void study_listing_free(study_listing *listing);
/* Adds a picture; false: no memory. */
bool study_listing_add(study_listing *listing, const char *name, const char *hash, int32_t label);

/* A variant with its static scales (a file; NULL: it needs none). */
typedef struct study_subject {
    const study_variant *variant;
    const char *scales;
} study_subject;

/* A part of a data set. */
typedef struct study_part {
    const char *place;
    const int64_t *numbers; /* rising */
    size_t count;
} study_part;

typedef struct study_evaluation {
    const study_subject *tested;
    size_t tested_count;
    const study_subject *reference;
    study_part part;
    double threshold;
    int64_t batch;
    /* After each picture, in order: a record of eval_keep for each tested, taken over. False: stop (CANCELLED). */
    bool (*picture)(void *user, json_t **records);
    void *user;
} study_evaluation;

typedef struct study_race {
    const study_subject *subjects; /* the base first; they take turns in an order that rotates */
    size_t count;
    int64_t batch, rounds, threads, warm_up;
    double seconds;           /* at least so long for each subject */
    bool (*stop)(void *user); /* asked between rounds */
    void *user;
} study_race;

typedef struct study_engine {
    void *user;
    /* The environment's and the model's rows of evidence; `task` of the model. */
    octet_status (*environment)(void *user, json_t **body);
    octet_status (*model)(void *user, json_t **body, octet_task *task);
    /* A variant's recipe, and whether it needs pictures for static scales. */
    octet_status (*recipe)(void *user, const study_variant *variant, char **text, bool *needs_scales);
    octet_status (*list)(void *user, const char *place, study_listing *out);
    /* Writes the scale file `output`, whole or not at all; `stop` is asked now and then. */
    octet_status (*calibrate)(void *user, const study_variant *variant, const study_part *part, const char *output,
                              bool (*stop)(void *), void *stop_user);
    octet_status (*evaluate)(void *user, const study_evaluation *evaluation);
    /* *timings: an array of a timing row for each subject, without run, variant and name. */
    octet_status (*race)(void *user, const study_race *race, json_t **timings);
    /* {"stress_nan", "stress_infinite", "inputs"}: counts over the named stress inputs. */
    octet_status (*stress)(void *user, const study_subject *subject, json_t **counts);
    /* The drift of a premerge case: of the reference's best score (detection: of the matched detections above the
     * threshold, 1 for one unmatched) or probability (classification). */
    octet_status (*premerge)(void *user, const study_subject *subject, const study_subject *reference,
                             const char *picture, double threshold, double *drift);
    /* {"packed_bytes", "weight_bytes", "arena_bytes", "flops", "unfused_quantize", "steps", "parameters"}. */
    octet_status (*size)(void *user, const study_subject *subject, json_t **sizes);
} study_engine;

/* octet's own, over the public API. The struct stays the caller's while the functions are used; then it is closed. */
typedef struct study_octet {
    const study_file *study;
    uint32_t threads;   /* of evaluations and calibrations; 0: one a core */
    octet_model *model; /* opened in float32 when it is first needed */
} study_octet;
study_engine study_engine_octet(study_octet *octet);
void study_octet_close(study_octet *octet);

#endif
