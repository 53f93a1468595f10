/* SPDX-License-Identifier: Apache-2.0 */
/* A set of pictures through one or several models, each beside one reference: the loop of octet eval and of studies. */
#ifndef OCT_EVAL_EVALUATE_H
#define OCT_EVAL_EVALUATE_H

#include "eval/figures.h"

/* A model that is tested: an own session, and figures begun by the caller (task, with_reference, threshold, draws),
 * freed by it with eval_figures_free. */
typedef struct evaluate_side {
    octet_session *session;
    eval_figures figures;
    octet_result **results; /* evaluate's own */
} evaluate_side;

typedef enum evaluate_end {
    EVALUATE_DONE,
    EVALUATE_FAILED,  /* octet_error_text says why; `failed` names the picture, if it was one */
    EVALUATE_STOPPED, /* by `after` */
    EVALUATE_NO_MEMORY
} evaluate_end;

typedef struct evaluation {
    octet_lab_set *set;
    evaluate_side *sides;
    size_t side_count;
    octet_session *reference; /* NULL: none */
    size_t batch;             /* pictures at once, at least 1: the models' */
    size_t limit;             /* the first so many; 0: all */
    /* After each picture, may be NULL: its line of every side if `lines`, taken over (json_decref). false: stop. */
    bool (*after)(void *user, const octet_lab_sample *sample, json_t **lines);
    void *user;
    bool lines;
    char failed[256]; /* out: name of the picture that failed, or "" */
} evaluation;

evaluate_end evaluate(evaluation *e);

#endif
