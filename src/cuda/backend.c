/* SPDX-License-Identifier: Apache-2.0 */
/* The list of tactics, and the choice of one for a step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/tactic.h"
#include "graph/ops.h"

/* Fused first, then tensor cores, then what always works. */
const oct_cuda_tactic *oct_cuda_tactic_at(size_t index) {
    const oct_cuda_tactic *const lists[] = {oct_cuda_block, oct_cuda_tensor, oct_cuda_generic};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const oct_cuda_tactic *t = lists[i]; t->name != NULL; t++)
            if (index-- == 0) return t;
    return NULL;
}

const oct_cuda_tactic *oct_cuda_tactic_find(const char *name, oct_op op) {
    const oct_cuda_tactic *t;
    for (size_t i = 0; (t = oct_cuda_tactic_at(i)) != NULL; i++)
        if (t->op == op && strcmp(t->name, name) == 0) return t;
    return NULL;
}

/* Whether the tactic may be the tactic of a step of this op: its first, or one that it spans. */
static bool spans(const oct_cuda_tactic *t, oct_op op) {
    return t->op == op || (t->span > 1 && (op == OCT_OP_CONV2D || op == OCT_OP_GLOBAL_POOL));
}

static bool knows(oct_op op, const char *tactic) {
    const oct_cuda_tactic *t;
    for (size_t i = 0; (t = oct_cuda_tactic_at(i)) != NULL; i++)
        if (spans(t, op) && strcmp(t->name, tactic) == 0) return true;
    return false;
}

static const char *tactic_name(oct_op op, size_t index) {
    const oct_cuda_tactic *t;
    for (size_t i = 0; (t = oct_cuda_tactic_at(i)) != NULL; i++)
        if (spans(t, op) && index-- == 0) return t->name;
    return NULL;
}

static bool plainer(oct_op op, const char *tactic, const char *other) {
    const oct_cuda_tactic *a = oct_cuda_tactic_find(tactic, op), *b = oct_cuda_tactic_find(other, op);
    return a != NULL && b != NULL && a->generic && !b->generic;
}

/* Why the tactic does not run this step, as its first or as one of those that follow it; *first is the first. */
static const char *refusal(const oct_cuda_tactic *t, const oct_cuda_site *site, bool generic, oct_cuda_site *first) {
    const char *why = "for another op";
    if (generic && !t->generic) return "OCT_CUDA=generic";
    for (size_t back = 0; back < t->span && back <= site->step; back++) {
        *first = *site;
        first->step -= back;
        if (oct_cuda_step(first)->op != t->op || first->step + t->span > site->plan->step_count) continue;
        why = t->refuses(t, first);
        if (why == NULL) return NULL;
    }
    return why;
}

static octet_status only_generic(const char *isa, bool *generic) {
    const char *asked = isa != NULL ? isa : getenv("OCTET_CUDA");
    *generic = asked != NULL && strcmp(asked, "generic") == 0;
    if (asked == NULL || *generic || asked[0] == 0) return OCTET_OK;
    return oct_fail(OCTET_INVALID_ARGUMENT, "OCTET_CUDA: expected generic or nothing, found '%s'", asked);
}

static octet_status choose(const oct_plan *plan, const oct_weights *weights, size_t index, const char *isa,
                           const char *force, oct_tactic_choice *choice, oct_text *reasons) {
    const oct_cuda_site site = {plan, weights, index};
    const oct_plan_step *step = &plan->steps[index];
    const char *why = "no kernel of this name";
    bool generic;
    *choice = (oct_tactic_choice){0};
    OCT_TRY(only_generic(isa, &generic));
    const oct_cuda_tactic *t, *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; (t = oct_cuda_tactic_at(i)) != NULL; i++) {
        oct_cuda_site first;
        if (!spans(t, step->op) || (force != NULL && strcmp(force, t->name) != 0)) continue;
        why = refusal(t, &site, generic, &first);
        if (reasons != NULL) oct_text_printf(reasons, "    %s: %s\n", t->name, why != NULL ? why : "fits");
        if (why != NULL || (best != NULL && best->cost == NULL)) continue;
        const double cost = t->cost != NULL ? t->cost(t, &first) : INFINITY;
        if (best != NULL && !(cost < least)) continue;
        best = t;
        least = cost;
    }
    if (best != NULL) {
        if (reasons != NULL) oct_text_printf(reasons, "    chosen: %s\n", best->name);
        choice->tactic = best->name; /* the engine sizes what it packs */
        return OCTET_OK;
    }
    if (force != NULL) return oct_fail(OCTET_UNSUPPORTED, "step %s: kernel %s: %s", step->name, force, why);
    oct_fail(OCTET_UNSUPPORTED, "step %s: no CUDA kernel for this %s", step->name, oct_op_rows[step->op].name);
    return oct_detail("the plainest one says: %s", why);
}

const oct_cuda_tactic *oct_cuda_tactic_of(const oct_cuda_site *site) {
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_cuda_tactic *t = oct_cuda_tactic_find(step->tactic, step->op);
    const char *why = t == NULL ? "no such kernel begins at this op" : NULL;
    if (t != NULL && site->step + t->span > site->plan->step_count) why = "the plan ends inside it";
    if (why == NULL) why = t->refuses(t, site);
    for (size_t i = 1; why == NULL && i < t->span; i++)
        if (strcmp(site->plan->steps[site->step + i].tactic, t->name) != 0) why = "a step that it spans has another";
    if (why == NULL) return t;
    oct_fail(OCTET_MISMATCH, "step %s: kernel %s: %s", step->name, step->tactic, why);
    return NULL;
}

static octet_status pack(const oct_plan *plan, const oct_weights *weights, size_t step, void *packed, oct_pool *pool) {
    (void)weights, (void)packed, (void)pool;
    return oct_fail(OCTET_INTERNAL, "step %s: a CUDA plan is opened by oct_cuda_engine_open", plan->steps[step].name);
}

const oct_backend *oct_cuda_backend(void) {
    static const oct_backend backend = {.name = "cuda",
                                        .knows = knows,
                                        .tactic = tactic_name,
                                        .plainer = plainer,
                                        .choose = choose,
                                        .pack = pack,
                                        .run = NULL};
    return &backend;
}
