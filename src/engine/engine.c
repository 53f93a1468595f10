/* SPDX-License-Identifier: Apache-2.0 */
/* Engines and contexts. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "engine/internal.h"

struct oct_engine {
    int references; /* atomic */
    oct_plan *plan;
    oct_weights *weights;
    const oct_backend *backend;
    void **packed; /* a step */
    uint64_t packed_bytes;
    uint64_t scratch, worker; /* the most a step asks for, each rounded up to the alignment */
};

struct oct_context {
    oct_engine *engine;
    oct_pool *pool;
    uint8_t *arena;
    void *scratch;
    oct_step_tap tap;
    void *user;
};

static uint64_t round_up(uint64_t size) {
    return (size + OCT_MEMORY_ALIGNMENT - 1) / OCT_MEMORY_ALIGNMENT * OCT_MEMORY_ALIGNMENT;
}

static void engine_free(oct_engine *engine) {
    if (engine->packed != NULL)
        for (size_t i = 0; i < engine->plan->step_count; i++) oct_free(engine->packed[i]);
    oct_free(engine->packed);
    oct_weights_release(engine->weights);
    oct_plan_free(engine->plan);
    oct_free(engine);
}

/* The plan's tactic where this machine has it, else the best one it has. */
static octet_status settle(oct_engine *engine, size_t step, oct_tactic_choice *choice) {
    oct_plan *plan = engine->plan;
    const oct_backend *backend = engine->backend;
    const char *wanted = plan->steps[step].tactic;
    if (wanted != NULL && backend->choose(plan, engine->weights, step, NULL, wanted, choice, NULL) == OCTET_OK)
        return OCTET_OK;
    oct_error_clear();
    OCT_TRY(backend->choose(plan, engine->weights, step, NULL, NULL, choice, NULL));
    plan->steps[step].tactic = choice->tactic;
    return OCTET_OK;
}

/* How many operands of all steps are each constant. */
static int32_t *count_uses(const oct_plan *plan, const oct_weights *weights) {
    int32_t *uses = oct_calloc(weights->count, sizeof *uses);
    if (uses == NULL) return NULL;
    for (size_t i = 0; i < plan->step_count; i++)
        for (int j = 0; j < plan->steps[i].input_count; j++)
            if (plan->steps[i].inputs[j].kind == OCT_OPERAND_CONSTANT) uses[plan->steps[i].inputs[j].index]++;
    return uses;
}

/* Vectors that forms name stay. */
static void keep_vectors(const oct_plan *plan, oct_weights *weights) {
    for (size_t i = 0; i < weights->count; i++)
        if (weights->items[i].form.scales != OCT_NONE) weights->items[weights->items[i].form.scales].kept = true;
    for (size_t i = 0; i < plan->tensor_count; i++) {
        const oct_form *form = &plan->tensors[i].form;
        if (form->scales != OCT_NONE) weights->items[form->scales].kept = true;
        if (form->factors != OCT_NONE) weights->items[form->factors].kept = true;
    }
}

static octet_status check_constants(const oct_plan *plan, const oct_weights *weights) {
    for (size_t i = 0; i < plan->step_count; i++) {
        for (int j = 0; j < plan->steps[i].input_count; j++) {
            const oct_operand operand = plan->steps[i].inputs[j];
            if (operand.kind != OCT_OPERAND_CONSTANT || weights->items[operand.index].data != NULL ||
                weights->items[operand.index].codes != NULL)
                continue;
            oct_fail(OCTET_INVALID_ARGUMENT, "%s: the neutral weights of %s were released", plan->steps[i].name,
                     weights->items[operand.index].name);
            return oct_hint("open every engine of these weights before the one that releases them");
        }
    }
    return OCTET_OK;
}

static octet_status pack(oct_engine *engine, oct_pool *pool, bool release_weights) {
    oct_plan *plan = engine->plan;
    oct_weights *weights = engine->weights;
    OCT_TRY(oct_plan_check(plan, weights, engine->backend));
    OCT_TRY(check_constants(plan, weights));
    keep_vectors(plan, weights);
    engine->packed = oct_calloc(plan->step_count, sizeof *engine->packed);
    if (engine->packed == NULL) return oct_fail_memory();
    int32_t *uses = count_uses(plan, weights);
    if (uses == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < plan->step_count; i++) {
        oct_tactic_choice choice;
        status = settle(engine, i, &choice);
        if (status != OCTET_OK) break;
        engine->packed[i] = oct_calloc(1, choice.packed);
        if (engine->packed[i] == NULL) {
            status = oct_fail_memory();
            break;
        }
        status = engine->backend->pack(plan, weights, i, engine->packed[i], pool);
        if (status != OCTET_OK) break;
        engine->packed_bytes += choice.packed;
        if (engine->scratch < round_up(choice.scratch)) engine->scratch = round_up(choice.scratch);
        if (engine->worker < round_up(choice.worker)) engine->worker = round_up(choice.worker);
        for (int j = 0; j < plan->steps[i].input_count; j++) {
            const oct_operand operand = plan->steps[i].inputs[j];
            if (operand.kind != OCT_OPERAND_CONSTANT || --uses[operand.index] > 0 || !release_weights) continue;
            if (weights->items[operand.index].kept) continue;
            oct_free(weights->items[operand.index].data);
            oct_free(weights->items[operand.index].codes);
            weights->items[operand.index].data = NULL;
            weights->items[operand.index].codes = NULL;
        }
    }
    oct_free(uses);
    return status;
}

octet_status oct_engine_open(oct_engine **out, oct_plan *plan, oct_weights *weights, const oct_backend *backend,
                             oct_pool *pool, bool release_weights) {
    *out = NULL;
    oct_engine *engine = oct_calloc(1, sizeof *engine);
    if (engine == NULL) {
        oct_plan_free(plan);
        return oct_fail_memory();
    }
    engine->references = 1;
    engine->plan = plan;
    engine->weights = oct_weights_retain(weights);
    engine->backend = backend;
    const octet_status status = pack(engine, pool, release_weights);
    if (status != OCTET_OK) {
        engine_free(engine);
        return status;
    }
    *out = engine;
    return OCTET_OK;
}

oct_engine *oct_engine_retain(oct_engine *engine) {
    __atomic_add_fetch(&engine->references, 1, __ATOMIC_RELAXED);
    return engine;
}

void oct_engine_release(oct_engine *engine) {
    if (engine != NULL && __atomic_sub_fetch(&engine->references, 1, __ATOMIC_ACQ_REL) == 0) engine_free(engine);
}

const oct_plan *oct_engine_plan(const oct_engine *engine) {
    return engine->plan;
}

uint64_t oct_engine_packed_bytes(const oct_engine *engine) {
    return engine->packed_bytes;
}

octet_status oct_context_new(oct_context **out, oct_engine *engine, oct_pool *pool) {
    *out = NULL;
    oct_context *context = oct_calloc(1, sizeof *context);
    if (context == NULL) return oct_fail_memory();
    const uint64_t threads = pool != NULL ? oct_pool_threads(pool) : 1;
    context->engine = oct_engine_retain(engine);
    context->pool = pool;
    context->arena = oct_alloc(engine->plan->arena_size);
    context->scratch = oct_alloc(engine->scratch + engine->worker * threads);
    if (context->arena == NULL || context->scratch == NULL) {
        oct_context_free(context);
        return oct_fail_memory();
    }
    const oct_plan_tensor *input = &engine->plan->tensors[engine->plan->input];
    memset(context->arena + input->offset, 0, input->size);
    *out = context;
    return OCTET_OK;
}

void oct_context_free(oct_context *context) {
    if (context == NULL) return;
    oct_free(context->arena);
    oct_free(context->scratch);
    oct_engine_release(context->engine);
    oct_free(context);
}

float *oct_context_input(oct_context *context, int *channel_stride) {
    const oct_plan *plan = context->engine->plan;
    const oct_plan_tensor *input = &plan->tensors[plan->input];
    if (channel_stride != NULL) *channel_stride = input->form.channel_stride;
    return (float *)(void *)(context->arena + input->offset);
}

void oct_context_set_tap(oct_context *context, oct_step_tap tap, void *user) {
    context->tap = tap;
    context->user = user;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

octet_status oct_context_run(oct_context *context) {
    const oct_engine *engine = context->engine;
    const oct_plan *plan = engine->plan;
    if (plan->tensors[plan->input].form.format != OCT_FORMAT_FP32)
        engine->backend->store_input(plan, engine->weights, context->arena, context->pool);
    for (size_t i = 0; i < plan->step_count; i++) {
        const double start = context->tap != NULL ? now() : 0.0;
        engine->backend->run(plan, i, engine->packed[i], context->arena, context->scratch, context->pool);
        if (context->tap != NULL) {
            const double seconds = now() - start;
            context->tap(context->user, plan, i, context->arena + plan->tensors[plan->steps[i].output].offset, seconds);
        }
    }
    return OCTET_OK;
}

const float *oct_context_output(const oct_context *context, size_t index, const oct_shape **shape) {
    const oct_plan *plan = context->engine->plan;
    const oct_plan_tensor *tensor = &plan->tensors[plan->outputs[index]];
    if (shape != NULL) *shape = &tensor->shape;
    return (const float *)(const void *)(context->arena + tensor->offset);
}
