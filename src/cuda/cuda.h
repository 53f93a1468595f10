/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA engine. Planning needs no GPU; opening an engine needs the device library (liboctet_cuda.so) and a device.
 *
 *     graph --oct_plan_make(oct_cuda_backend())--> plan + weights --oct_cuda_engine_open--> engine --session--> outputs
 *
 * An engine is immutable and shared; a session (a stream, an arena, graphs captured at the first run) belongs to one
 * thread at a time. After its first run a session allocates nothing. */
#ifndef OCT_CUDA_CUDA_H
#define OCT_CUDA_CUDA_H

#include "cuda/device.h"
#include "engine/backend.h"

/* For oct_plan_make and oct_plan_check. Its pack and run are not called: this engine does that itself. OCT_CUDA=generic
 * in the environment keeps to the kernels of every device. */
const oct_backend *oct_cuda_backend(void);

/* The device library, loaded once. NO_DEVICE with a reason: not compiled, not found, another version, no driver, no
 * GPU. `ordinal`: which GPU. `facts` may be NULL. */
octet_status oct_cuda_find(int ordinal, const oct_device_api **api, oct_device_facts *facts);
/* What a failure behind the seam means: NO_DEVICE, OUT_OF_MEMORY or INTERNAL with the driver's words. */
octet_status oct_cuda_fail(int status, const char *what, const oct_device_error *error);

typedef struct oct_cuda_engine oct_cuda_engine;
/* Borrows `plan` (made for oct_cuda_backend, or read and passed by oct_plan_check) and `weights` until the engine is
 * gone; weights' data is not looked at after the call. */
octet_status oct_cuda_engine_open(oct_cuda_engine **engine, const oct_plan *plan, const oct_weights *weights,
                                  const oct_device_api *api, int ordinal);
void oct_cuda_engine_free(oct_cuda_engine *engine);                   /* after its sessions */
uint64_t oct_cuda_engine_weight_bytes(const oct_cuda_engine *engine); /* on the device */
uint64_t oct_cuda_engine_arena_bytes(const oct_cuda_engine *engine);  /* a session's */
size_t oct_cuda_engine_launches(const oct_cuda_engine *engine);
/* The launch's first step and how many steps it does. */
void oct_cuda_engine_launch(const oct_cuda_engine *engine, size_t launch, size_t *step, size_t *steps);

typedef struct oct_cuda_session oct_cuda_session;
octet_status oct_cuda_session_new(oct_cuda_session **session, oct_cuda_engine *engine);
void oct_cuda_session_free(oct_cuda_session *session);
/* The network's input in memory that the device copies from: dense float32 NHWC, to be filled before a run. */
float *oct_cuda_session_input(oct_cuda_session *session);
/* Copies the input, runs, copies the outputs, waits. */
octet_status oct_cuda_session_run(oct_cuda_session *session);
/* Output i in the plan's order, dense float32; valid until the next run. */
const float *oct_cuda_session_output(const oct_cuda_session *session, size_t index, const oct_shape **shape);
/* Milliseconds a replay of the graph, input and outputs staying on the device, of `runs` in a row. `launch`: of that
 * launch alone, many times in one graph, -1: of all. The session must have run once. */
octet_status oct_cuda_session_time(oct_cuda_session *session, int launch, int runs, float *milliseconds);

/* ---- tuning: each launch's tactic by the clock, on the device, in place of the estimates of oct_plan_make. */
typedef struct oct_cuda_tuning {
    const oct_device_api *api;
    int ordinal, runs;                                    /* replays a measure */
    void *user;                                           /* may be NULL, as the two functions that get it */
    void (*input)(void *user, oct_cuda_session *session); /* fills the input of a new session */
    void (*check)(void *user, oct_cuda_session *session, size_t round); /* sees each candidate engine after its run */
} oct_cuda_tuning;
/* `text` (may be NULL) gets what was measured: a line a candidate, * the chosen ones. */
octet_status oct_cuda_tune(oct_plan *plan, const oct_weights *weights, const oct_cuda_tuning *how, oct_text *text);

/* ---- one step at a time, for checks. Numbers are dense float32; written ones are rounded to the tensor's form.
 * UNSUPPORTED for a tensor that stays inside a fused launch. */
octet_status oct_cuda_session_poison(oct_cuda_session *session); /* every byte of the arena 0xff: NaN in every format */
octet_status oct_cuda_session_write(oct_cuda_session *session, size_t tensor, const float *numbers);
octet_status oct_cuda_session_read(oct_cuda_session *session, size_t tensor, float *numbers);
octet_status oct_cuda_session_step(oct_cuda_session *session, size_t launch);

#endif
