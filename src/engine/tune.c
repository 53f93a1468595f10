/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/random.h"
#include "engine/backend.h"
#include "engine/internal.h"
#include "engine/tune_internal.h"
#include "graph/ops.h"

/* Runs of a candidate at efforts 2 and 3; its time is the least of them, the steadiest figure on a shared machine. */
#define RUNS_TIMED 5
#define RUNS_SEARCHED 25
/* A later candidate must win by this much, so that noise does not decide between equals. */
#define MARGIN 0.97
/* A candidate this many times slower than the best so far is not run again. */
#define HOPELESS 4.0

/* ---- signatures */

static void put_operand(const oct_plan *plan, const oct_weights *weights, oct_operand operand, oct_text *text) {
    bool constant = operand.kind == OCT_OPERAND_CONSTANT;
    const oct_shape *shape = constant ? &weights->items[operand.index].shape : &plan->tensors[operand.index].shape;
    oct_text_puts(text, constant ? " c" : " t");
    oct_shape_print(shape, text);
    if (constant && !oct_form_is_float(&weights->items[operand.index].form))
        oct_text_printf(text, " %s", oct_format_name(weights->items[operand.index].form.format));
    if (constant) return;
    const oct_form *form = &plan->tensors[operand.index].form;
    oct_text_printf(text, "/%d ", form->channel_stride);
    oct_form_print(form, text);
    if (!oct_form_is_float(form)) oct_text_puts(text, " codes");
}

static void put_signature(const oct_plan *plan, const oct_weights *weights, size_t index, unsigned threads,
                          oct_text *text) {
    const oct_plan_step *step = &plan->steps[index];
    const oct_attributes *a = &step->attributes;
    oct_text_printf(text, "%s s%d,%d p%d,%d,%d,%d g%d a%d h%d b%d r%d x%" PRId64 "+%" PRId64 " threads%u",
                    oct_op_rows[step->op].name, a->stride_h, a->stride_w, a->pad_top, a->pad_left, a->pad_bottom,
                    a->pad_right, a->groups, (int)a->activation, a->heads, a->has_bias, a->has_residual, a->start,
                    a->length, threads);
    for (int i = 0; i < step->input_count; i++) put_operand(plan, weights, step->inputs[i], text);
    oct_text_puts(text, " ->");
    put_operand(plan, weights, (oct_operand){OCT_OPERAND_TENSOR, step->output}, text);
    if (step->has_second) put_operand(plan, weights, (oct_operand){OCT_OPERAND_TENSOR, step->second}, text);
}

/* ---- timing one candidate */

typedef struct bench {
    oct_plan *plan;
    const oct_weights *weights;
    const oct_backend *backend;
    oct_pool *pool;
    void *arena; /* filled with random numbers: the values do not matter, denormals and NaN would */
    int runs;
} bench;

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* Least microseconds of a few runs of step `index` with the tactic it has now; `record` is the best other one's, or 0.
 */
static octet_status time_step(const bench *b, size_t index, const oct_tactic_choice *choice, double record,
                              double *best) {
    uint64_t scratch_size =
        (choice->scratch + 63) / 64 * 64 + oct_pool_threads(b->pool) * ((choice->worker + 63) / 64 * 64);
    void *packed = oct_calloc(1, choice->packed), *scratch = oct_calloc(1, scratch_size);
    octet_status status = packed == NULL || scratch == NULL
                              ? oct_fail_memory()
                              : b->backend->pack(b->plan, b->weights, index, packed, b->pool);
    for (int i = 0; status == OCTET_OK && i <= b->runs; i++) {
        double start = now_us();
        b->backend->run(b->plan, index, packed, b->arena, scratch, b->pool);
        double spent = now_us() - start;
        bool hopeless = record > 0.0 && spent > HOPELESS * record;
        if (i == 1 || spent < *best || (i == 0 && hopeless)) *best = spent; /* run 0 warms up */
        if (hopeless) break;
    }
    oct_free(scratch);
    oct_free(packed);
    return status;
}

/* Tries one tactic; a refusal leaves *fits false. */
static octet_status try_tactic(const bench *b, size_t index, const char *tactic, double record, bool *fits,
                               double *us) {
    oct_tactic_choice choice;
    oct_plan_step *step = &b->plan->steps[index];
    const char *before = step->tactic;
    *fits = b->backend->choose(b->plan, b->weights, index, NULL, tactic, &choice, NULL) == OCTET_OK;
    if (!*fits) {
        oct_error_clear();
        return OCTET_OK;
    }
    step->tactic = tactic;
    octet_status status = time_step(b, index, &choice, record, us);
    step->tactic = before;
    return status;
}

static octet_status measure(const bench *b, size_t index, int effort, const char **winner, oct_text *times) {
    const oct_plan_step *step = &b->plan->steps[index];
    double best = 0.0;
    bool any = false;
    oct_text_puts(times, "{");
    for (size_t i = 0; b->backend->tactic(step->op, i) != NULL; i++) {
        const char *tactic = b->backend->tactic(step->op, i);
        bool fits = false;
        double us = 0.0;
        if (effort < 3 && b->backend->plainer(step->op, tactic, step->tactic)) continue;
        OCT_TRY(try_tactic(b, index, tactic, any ? best : 0.0, &fits, &us));
        if (!fits) continue;
        oct_text_printf(times, "%s\"%s\": %.2f", any ? ", " : "", tactic, us);
        if (!any || us < MARGIN * best) {
            best = us;
            *winner = tactic;
        }
        any = true;
    }
    oct_text_puts(times, "}");
    if (!any) *winner = step->tactic;
    return times->failed ? oct_fail_memory() : OCTET_OK;
}

/* Whether the cache's answer can run this step here: a file may say anything. */
static bool usable(const bench *b, size_t index, const oct_timing_entry *entry) {
    oct_tactic_choice choice;
    if (entry == NULL) return false;
    if (b->backend->choose(b->plan, b->weights, index, NULL, entry->tactic, &choice, NULL) == OCTET_OK) return true;
    oct_error_clear();
    return false;
}

static octet_status tune_step(const bench *b, size_t index, int effort, oct_timing_cache *cache) {
    oct_text signature = {0}, times = {0};
    oct_plan_step *step = &b->plan->steps[index];
    const char *winner = step->tactic;
    put_signature(b->plan, b->weights, index, oct_pool_threads(b->pool), &signature);
    octet_status status = signature.failed ? oct_fail_memory() : OCTET_OK;
    const oct_timing_entry *known = status == OCTET_OK ? oct_timing_cache_find(cache, signature.data) : NULL;
    if (status == OCTET_OK && usable(b, index, known)) {
        cache->hits++;
        winner = oct_arena_strdup(&b->plan->arena, known->tactic);
        if (winner == NULL) status = oct_fail_memory();
    } else if (status == OCTET_OK) {
        cache->misses++;
        status = measure(b, index, effort, &winner, &times);
        if (status == OCTET_OK) status = oct_timing_cache_put(cache, signature.data, winner, times.data);
    }
    if (status == OCTET_OK) step->tactic = winner;
    oct_text_free(&times);
    oct_text_free(&signature);
    return status;
}

octet_status oct_plan_tune(oct_plan *plan, const oct_weights *weights, const oct_backend *backend, oct_pool *pool,
                           int effort, oct_timing_cache *cache) {
    size_t count = (size_t)(plan->arena_size / sizeof(float));
    float *arena = oct_alloc(count * sizeof *arena);
    uint64_t state = 1;
    if (arena == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count; i++) arena[i] = oct_random_signed(&state);
    bench b = {plan, weights, backend, pool, arena, effort < 3 ? RUNS_TIMED : RUNS_SEARCHED};
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < plan->step_count && status == OCTET_OK; i++) {
        if (!oct_step_is_view(plan, &plan->steps[i])) status = tune_step(&b, i, effort, cache);
    }
    oct_free(arena);
    return status;
}
