/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/random.h"
#include "eval/search_model.h"
#include "octet/lab.h"

#define SEED 1
#define BATCH 8             /* evaluations a round */
#define CANDIDATES 4096     /* a round; more are drawn from by chance */
#define EXCHANGES_LEAST 256 /* of them about the front, however long the paths are */

typedef struct candidate {
    trade predicted;
    double gain;
} candidate;

typedef struct run {
    const search_problem *problem;
    search_result *result;
    search_model *model;
    trade *front; /* of the result, then of it and what this round has chosen */
    size_t front_count;
    trade best, worst; /* corners of the front's area */
    uint8_t *pool;     /* CANDIDATES * ops */
    uint64_t *hashes;  /* of the pool */
    candidate *candidates;
    size_t pool_count;
    uint64_t seed;
} run;

static uint8_t last_choice(const search_problem *p, size_t op, uint8_t choice) {
    return choice < p->choices[op] ? choice : (uint8_t)(p->choices[op] - 1);
}

static uint8_t most_choices(const search_problem *p) {
    uint8_t most = 1;
    for (size_t i = 0; i < p->ops; i++) most = p->choices[i] > most ? p->choices[i] : most;
    return most;
}

size_t search_least(size_t ops, const uint8_t *choices) {
    const search_problem p = {.ops = ops, .choices = choices};
    size_t least = most_choices(&p);
    for (size_t i = 0; i < ops; i++) least += (size_t)choices[i] - 1;
    return least;
}

/* ---- evaluating */

static bool known(const run *r, const uint8_t *assignment) {
    const size_t ops = r->problem->ops;
    for (size_t i = 0; i < r->result->count; i++)
        if (memcmp(r->result->assignments + i * ops, assignment, ops) == 0) return true;
    return false;
}

/* False: stop, or the budget is spent. */
static bool evaluate_one(run *r, const uint8_t *assignment) {
    search_result *out = r->result;
    const size_t ops = r->problem->ops;
    if (out->count >= r->problem->budget) return false;
    if (known(r, assignment)) return true;
    trade point;
    if (!r->problem->evaluate(r->problem->user, assignment, &point)) {
        out->stopped = true;
        return false;
    }
    memcpy(out->assignments + out->count * ops, assignment, ops);
    out->points[out->count++] = point;
    return true;
}

static void find_front(run *r) {
    search_result *out = r->result;
    out->front_count = pareto_front(out->points, out->count, out->front);
    r->front_count = out->front_count;
    for (size_t i = 0; i < out->front_count; i++) r->front[i] = out->points[out->front[i]];
}

/* The front that counts lies between the safest assignment and the worst loss of interest. */
static void find_corners(run *r) {
    const search_result *out = r->result;
    r->best = r->worst = out->points[0];
    for (size_t i = 0; i < out->count; i++) {
        const trade *p = &out->points[i];
        if (!isfinite(p->loss) || !isfinite(p->time)) continue;
        r->best.loss = fmin(r->best.loss, p->loss);
        r->best.time = fmin(r->best.time, p->time);
        r->worst.loss = fmax(r->worst.loss, p->loss);
    }
    r->worst.loss = fmin(r->worst.loss, r->problem->loss_limit);
}

/* The ends, and each op alone. */
static bool evaluate_first(run *r, uint8_t *assignment) {
    const search_problem *p = r->problem;
    const uint8_t most = most_choices(p);
    for (uint8_t c = 0; c < most; c++) {
        for (size_t i = 0; i < p->ops; i++) assignment[i] = last_choice(p, i, c);
        if (!evaluate_one(r, assignment)) return false;
    }
    memset(assignment, 0, p->ops);
    for (size_t i = 0; i < p->ops; i++) {
        for (uint8_t c = 1; c < p->choices[i]; c++) {
            assignment[i] = c;
            if (!evaluate_one(r, assignment)) return false;
        }
        assignment[i] = 0;
    }
    return true;
}

/* ---- candidates */

/* One that is there already, by its hash, is left out; so is, once in 2^50 times, one that is not. */
static void add_candidate(run *r, const uint8_t *assignment) {
    const size_t ops = r->problem->ops;
    if (r->pool_count >= CANDIDATES || known(r, assignment)) return;
    const uint64_t hash = octet_lab_checksum(assignment, ops);
    for (size_t i = 0; i < r->pool_count; i++)
        if (r->hashes[i] == hash) return;
    r->hashes[r->pool_count] = hash;
    memcpy(r->pool + r->pool_count++ * ops, assignment, ops);
}

/* From `assignment`, one op at a time: of the changes that save time the one that costs least loss for it, or, `back`,
 * of those that save loss the one that costs least time; by the model. */
static void add_path(run *r, uint8_t *assignment, bool back) {
    const search_problem *p = r->problem;
    /* no path is longer, but for what rounding makes of changes that change nothing */
    for (size_t left = search_least(p->ops, p->choices); left > 0; left--) {
        const trade here = search_model_predict(r->model, assignment);
        search_model_stand(r->model, assignment);
        double least = INFINITY;
        size_t op = 0;
        uint8_t choice = 0;
        for (size_t i = 0; i < p->ops; i++) {
            for (uint8_t c = 0; c < p->choices[i]; c++) {
                if (c == assignment[i]) continue;
                const trade there = search_model_predict_change(r->model, i, c);
                const double saved = here.time - there.time, lost = there.loss - here.loss;
                if (back ? !(lost < 0.0) : !(saved > 0.0)) continue;
                const double price = back ? saved / lost : lost / saved;
                if (price >= least) continue;
                least = price;
                op = i;
                choice = c;
            }
        }
        if (!isfinite(least) || r->pool_count + EXCHANGES_LEAST > CANDIDATES) return;
        assignment[op] = choice;
        add_candidate(r, assignment);
    }
}

/* All assignments that differ from `assignment` in one op, then by chance some that differ in two. */
static void add_neighbours(run *r, uint8_t *assignment, size_t pairs) {
    const search_problem *p = r->problem;
    for (size_t i = 0; i < p->ops; i++) {
        const uint8_t kept = assignment[i];
        for (uint8_t c = 0; c < p->choices[i]; c++) {
            assignment[i] = c;
            add_candidate(r, assignment);
        }
        assignment[i] = kept;
    }
    for (size_t k = 0; k < pairs; k++) {
        const size_t i = next_random(&r->seed) % p->ops, j = next_random(&r->seed) % p->ops;
        const uint8_t first = assignment[i], second = assignment[j];
        assignment[i] = (uint8_t)(next_random(&r->seed) % p->choices[i]);
        assignment[j] = (uint8_t)(next_random(&r->seed) % p->choices[j]);
        add_candidate(r, assignment);
        assignment[j] = second;
        assignment[i] = first;
    }
}

static void make_candidates(run *r, uint8_t *assignment) {
    const search_problem *p = r->problem;
    const search_result *out = r->result;
    r->pool_count = 0;
    memset(assignment, 0, p->ops);
    add_path(r, assignment, false);
    memcpy(assignment, out->assignments + out->front[0] * p->ops, p->ops);
    add_path(r, assignment, true);
    const size_t share = CANDIDATES / 2 / (out->front_count > 0 ? out->front_count : 1);
    for (size_t i = 0; i < out->front_count; i++) {
        if (out->points[out->front[i]].loss > r->worst.loss) continue;
        memcpy(assignment, out->assignments + out->front[i] * p->ops, p->ops);
        add_neighbours(r, assignment, share);
    }
}

/* ---- rounds */

static void take_into_front(run *r, trade point, trade *points, size_t *order) {
    memcpy(points, r->front, r->front_count * sizeof *points);
    points[r->front_count] = point;
    const size_t count = pareto_front(points, r->front_count + 1, order);
    for (size_t i = 0; i < count; i++) r->front[i] = points[order[i]];
    r->front_count = count;
}

/* Evaluates the candidates that promise most, each beside those chosen before it as if they gave what was predicted. */
static bool evaluate_round(run *r, trade *points, size_t *order) {
    const size_t ops = r->problem->ops;
    for (size_t i = 0; i < r->pool_count; i++)
        r->candidates[i].predicted = search_model_predict(r->model, r->pool + i * ops);
    for (size_t k = 0; k < BATCH && r->pool_count > 0; k++) {
        size_t top = 0;
        for (size_t i = 0; i < r->pool_count; i++) {
            candidate *c = &r->candidates[i];
            c->gain = pareto_gain(r->front, r->front_count, r->best, r->worst, c->predicted);
            if (c->gain > r->candidates[top].gain) top = i;
        }
        if (!evaluate_one(r, r->pool + top * ops)) return false;
        take_into_front(r, r->candidates[top].predicted, points, order);
        r->pool_count--;
        r->candidates[top] = r->candidates[r->pool_count];
        memmove(r->pool + top * ops, r->pool + r->pool_count * ops, ops);
    }
    return true;
}

static bool run_rounds(run *r, uint8_t *assignment, trade *points, size_t *order) {
    search_result *out = r->result;
    for (;;) {
        while (search_model_count(r->model) < out->count) {
            const size_t next = search_model_count(r->model);
            if (!search_model_add(r->model, out->assignments + next * r->problem->ops, out->points[next])) return false;
        }
        search_model_fit(r->model);
        find_front(r);
        find_corners(r);
        make_candidates(r, assignment);
        if (r->pool_count == 0 || !evaluate_round(r, points, order)) return true;
    }
}

static bool search_with(run *r) {
    const search_problem *p = r->problem;
    search_result *out = r->result;
    uint8_t *assignment = malloc(p->ops);
    trade *points = malloc((p->budget + BATCH + 1) * sizeof *points);
    size_t *order = malloc((p->budget + BATCH + 1) * sizeof *order);
    r->pool = malloc(CANDIDATES * p->ops);
    r->hashes = malloc(CANDIDATES * sizeof *r->hashes);
    r->candidates = malloc(CANDIDATES * sizeof *r->candidates);
    r->front = malloc((p->budget + BATCH + 1) * sizeof *r->front);
    bool good = assignment != NULL && points != NULL && order != NULL && r->pool != NULL && r->hashes != NULL &&
                r->candidates != NULL && r->front != NULL;
    if (good && evaluate_first(r, assignment)) {
        find_front(r);
        r->model = out->front_count > 0 ? search_model_new(p->ops, p->budget) : NULL;
        good = out->front_count == 0 || (r->model != NULL && run_rounds(r, assignment, points, order));
    }
    if (good) find_front(r);
    search_model_free(r->model);
    free(r->front);
    free(r->candidates);
    free(r->hashes);
    free(r->pool);
    free(order);
    free(points);
    free(assignment);
    return good;
}

bool search(const search_problem *problem, search_result *result) {
    *result = (search_result){0};
    if (problem->ops == 0 || problem->ops > SEARCH_OPS || problem->budget > SEARCH_BUDGET) return false;
    for (size_t i = 0; i < problem->ops; i++)
        if (problem->choices[i] == 0 || problem->choices[i] > SEARCH_CHOICES) return false;
    if (problem->budget < search_least(problem->ops, problem->choices)) return false;
    run r = {.problem = problem, .result = result, .seed = SEED};
    result->assignments = malloc(problem->budget * problem->ops);
    result->points = malloc(problem->budget * sizeof *result->points);
    result->front = malloc(problem->budget * sizeof *result->front);
    return result->assignments != NULL && result->points != NULL && result->front != NULL && search_with(&r);
}

void search_result_free(search_result *result) {
    free(result->assignments);
    free(result->points);
    free(result->front);
    *result = (search_result){0};
}
