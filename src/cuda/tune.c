/* SPDX-License-Identifier: Apache-2.0 */
/* Tactics by the clock. Candidates of a launch are tried in rounds, each round a whole engine: so every candidate runs
 * in its place, on the numbers of the network. */
#include "base/alloc.h"
#include "cuda/engine.h"

#define CANDIDATES 64
#define PICTURES_ENOUGH 64 /* of a batch: with more, tiles are many enough and none is split */

typedef struct tuned_part {
    size_t step, count;
    const oct_cuda_tactic *candidates[CANDIDATES];
    float times[CANDIDATES]; /* milliseconds */
} tuned_part;

/* The launch's other ways: as many steps, generic only where nothing else fits. */
static void find_candidates(const oct_cuda_site *site, const oct_cuda_tactic *chosen, tuned_part *part) {
    const oct_cuda_tactic *t;
    *part = (tuned_part){.step = site->step, .count = 1, .candidates = {chosen}};
    for (size_t i = 0; (t = oct_cuda_tactic_at(i)) != NULL && part->count < CANDIDATES; i++) {
        if (t == chosen || t->op != chosen->op || t->span != chosen->span || t->generic != chosen->generic) continue;
        if (t->split > 1 && site->plan->batch * t->split > PICTURES_ENOUGH) continue;
        if (t->refuses(t, site) == NULL) part->candidates[part->count++] = t;
    }
}

static octet_status find_parts(const oct_plan *plan, const oct_weights *weights, tuned_part *parts, size_t *count) {
    *count = 0;
    for (size_t s = 0; s < plan->step_count;) {
        const oct_cuda_site site = {plan, weights, s};
        const oct_cuda_tactic *chosen = oct_cuda_tactic_of(&site);
        if (chosen == NULL) return oct_error_status();
        find_candidates(&site, chosen, &parts[(*count)++]);
        s += chosen->span;
    }
    return OCTET_OK;
}

static void take(oct_plan *plan, const tuned_part *part, size_t candidate) {
    for (size_t i = 0; i < part->candidates[candidate]->span; i++)
        plan->steps[part->step + i].tactic = part->candidates[candidate]->name;
}

static octet_status time_round(tuned_part *parts, size_t count, size_t round, const oct_cuda_tuning *how,
                               oct_cuda_session *session) {
    OCT_TRY(oct_cuda_session_run(session));
    if (how->check != NULL) how->check(how->user, session, round);
    for (size_t i = 0; i < count; i++) {
        if (round >= parts[i].count || parts[i].count == 1) continue;
        float least = 0;
        for (int run = 0; run < 3; run++) { /* the least of three: others of the machine only add */
            float time;
            OCT_TRY(oct_cuda_session_time(session, (int)i, how->runs, &time));
            if (run == 0 || time < least) least = time;
        }
        parts[i].times[round] = least;
    }
    return OCTET_OK;
}

static octet_status try_round(oct_plan *plan, const oct_weights *weights, const oct_cuda_tuning *how, tuned_part *parts,
                              size_t count, size_t round) {
    oct_cuda_engine *engine = NULL;
    oct_cuda_session *session = NULL;
    for (size_t i = 0; i < count; i++) take(plan, &parts[i], round < parts[i].count ? round : 0);
    octet_status status = oct_cuda_engine_open(&engine, plan, weights, how->api, how->ordinal);
    if (status == OCTET_OK) status = oct_cuda_session_new(&session, engine);
    if (status == OCTET_OK && how->input != NULL) how->input(how->user, session);
    if (status == OCTET_OK) status = time_round(parts, count, round, how, session);
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    return status;
}

static void report(const oct_plan *plan, const tuned_part *part, size_t best, oct_text *text) {
    oct_text_printf(text, "    %s\n", plan->steps[part->step].name);
    for (size_t c = 0; c < part->count; c++)
        oct_text_printf(text, "        %-28s %8.2f us%s\n", part->candidates[c]->name, (double)part->times[c] * 1e3,
                        c == best ? "  *" : "");
}

octet_status oct_cuda_tune(oct_plan *plan, const oct_weights *weights, const oct_cuda_tuning *how, oct_text *text) {
    size_t count = 0, rounds = 1;
    tuned_part *parts = oct_calloc(plan->step_count, sizeof *parts);
    if (parts == NULL) return oct_fail_memory();
    octet_status status = find_parts(plan, weights, parts, &count);
    for (size_t i = 0; i < count; i++)
        if (rounds < parts[i].count) rounds = parts[i].count;
    for (size_t round = 0; round < rounds && rounds > 1 && status == OCTET_OK; round++)
        status = try_round(plan, weights, how, parts, count, round);
    for (size_t i = 0; i < count && status == OCTET_OK; i++) {
        size_t best = 0;
        for (size_t c = 1; c < parts[i].count; c++)
            if (parts[i].times[c] < parts[i].times[best]) best = c;
        take(plan, &parts[i], best);
        if (text != NULL && parts[i].count > 1) report(plan, &parts[i], best, text);
    }
    oct_free(parts);
    return status;
}
