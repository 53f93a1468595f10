/* SPDX-License-Identifier: Apache-2.0 */
/* Search among assignments: each of some ops (or groups of them) takes one of its choices, evaluating an assignment is
 * dear, and what is wanted is the front of loss and time. Which assignments are evaluated, and in which order, depends
 * on nothing but what the evaluations before gave: called again with the same answers it asks the same questions, so a
 * search is resumed by answering from a record.
 *
 * First the ends (every op on choice 0; every op on choice c) and each op alone on each other choice. A model of both
 * figures follows: the sum of single effects, corrected by what the points evaluated since differ from that sum (a
 * regression whose features are which two or three ops left choice 0 together). Then rounds of: candidates by greedy
 * paths of the model from end to end and by exchanges about the front found; evaluate those that the model says add
 * most to the front, or come nearest to it. */
#ifndef OCT_EVAL_SEARCH_H
#define OCT_EVAL_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "eval/pareto.h"

#define SEARCH_OPS 256
#define SEARCH_CHOICES 16
#define SEARCH_BUDGET 4096

/* `assignment`: a choice an op. False: stop. A loss that is not finite is as bad as any. */
typedef bool (*search_evaluate)(void *user, const uint8_t *assignment, trade *out);

typedef struct search_problem {
    size_t ops;
    const uint8_t *choices; /* of each op, 1 .. SEARCH_CHOICES; choice 0 is the safest */
    double loss_limit;      /* of interest; INFINITY: all up to the ends' */
    size_t budget;          /* evaluations at most, search_least .. SEARCH_BUDGET */
    search_evaluate evaluate;
    void *user;
} search_problem;

typedef struct search_result {
    uint8_t *assignments; /* count * ops, in order of evaluation */
    trade *points;        /* count */
    size_t count;
    size_t *front; /* indices by rising time */
    size_t front_count;
    bool stopped; /* by `evaluate` */
} search_result;

/* Evaluations before a model can be made. */
size_t search_least(size_t ops, const uint8_t *choices);
/* False: no memory, or a budget out of range. *result is the caller's to free in any case, and holds what was
 * evaluated. */
bool search(const search_problem *problem, search_result *result);
void search_result_free(search_result *result);

#endif
