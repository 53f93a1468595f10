/* SPDX-License-Identifier: Apache-2.0 */
/* Engines: a plan made ready on a device. An engine is immutable and shared between threads; a context (arena, scratch,
 * pool) belongs to one thread at a time. */
#ifndef OCT_ENGINE_ENGINE_H
#define OCT_ENGINE_ENGINE_H

#include "base/threads.h"
#include "engine/plan.h"

typedef struct oct_backend oct_backend; /* engine/backend.h */

typedef struct oct_plan_options {
    int64_t batch;         /* >= 1 */
    const char *force_isa; /* "c", "avx2", "avx512" or NULL: the OCTET_CPU environment variable, else the best found */
} oct_plan_options;

/* `graph` after the passes; shapes are inferred anew for options->batch. `weights` come from oct_weights_from_graph of
 * the same graph (constant i of the graph, in order of value id, is weights item i). Caller frees with oct_plan_free.
 */
octet_status oct_plan_make(oct_plan **plan, oct_graph *graph, const oct_weights *weights, const oct_backend *backend,
                           const oct_plan_options *options);
void oct_plan_free(oct_plan *plan);
/* Everything in a plan that came from outside is checked here: indexes, offsets, sizes, overlaps, order, shapes against
 * the ops' shape rules, tactic names. Errors name the step. */
octet_status oct_plan_check(const oct_plan *plan, const oct_weights *weights, const oct_backend *backend);
void oct_plan_dump(const oct_plan *plan,
                   oct_text *text); /* a line a step: op, name, shapes, formats, kernel, flops, bytes */
void oct_plan_memory(const oct_plan *plan,
                     oct_text *text); /* a line a tensor: offset, size, lifetime; the peak and the sum */
/* For each step, every tactic of the backend: chosen, or the reason it was refused. */
octet_status oct_plan_tactics(const oct_plan *plan, const oct_weights *weights, const oct_backend *backend,
                              oct_text *text);

typedef struct oct_engine oct_engine;
/* Takes over `plan`, also on failure; retains `weights`. Packs weights for the machine; with `release_weights` each
 * constant's neutral data is freed as soon as no step needs it (peak memory: one copy). `pool` may be NULL and is used
 * only during the call. */
octet_status oct_engine_open(oct_engine **engine, oct_plan *plan, oct_weights *weights, const oct_backend *backend,
                             oct_pool *pool, bool release_weights);
oct_engine *oct_engine_retain(oct_engine *engine);
void oct_engine_release(oct_engine *engine);
const oct_plan *oct_engine_plan(const oct_engine *engine);
uint64_t oct_engine_packed_bytes(const oct_engine *engine);

typedef struct oct_context oct_context;
/* The numbers a tensor's bytes stand for, dense. */
void oct_tensor_read(const oct_plan_tensor *tensor, const void *bytes, float *numbers);
octet_status oct_context_new(oct_context **context, oct_engine *engine, oct_pool *pool); /* pool is borrowed */
void oct_context_free(oct_context *context);
/* The network's input, to be filled before a run: float32 NHWC, channel stride as the plan's tensor says. A run rounds
 * it, where the plan stores it in another format. */
float *oct_context_input(oct_context *context, int *channel_stride);
/* After each step, if set: the step and its output (dense or strided as its form says; oct_tensor_read makes numbers of
 * any form). `output` is the first; the second lies at its own offset. Fusion is as without a tap. */
typedef void (*oct_step_tap)(void *user, const oct_plan *plan, size_t step, const void *output, double seconds);
void oct_context_set_tap(oct_context *context, oct_step_tap tap, void *user);
/* Allocates nothing. */
octet_status oct_context_run(oct_context *context);
/* Output i in the plan's order; valid until the next run. */
const float *oct_context_output(const oct_context *context, size_t index, const oct_shape **shape);

#endif
