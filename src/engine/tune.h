/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing tactics by the clock (efforts 2 and 3), and the cache that makes the choice repeatable.
 *
 * The timing cache is a JSON file: {"version": 1, "device": D, "steps": {SIGNATURE: {"tactic": NAME, "us": {NAME:
 * microseconds}}}}. D names the machine, its instruction sets and the backend's list of kernels, so that times of
 * another device or of other kernels are never taken for ours. A signature is the step's op, attributes, shapes and
 * strides: equal steps share an entry. With the same cache the same graph gives the same plan bytes. */
#ifndef OCT_ENGINE_TUNE_H
#define OCT_ENGINE_TUNE_H

#include "engine/engine.h"

typedef struct oct_timing_entry {
    const char *signature, *tactic;
    const char *times; /* JSON object text: what was measured, for people */
} oct_timing_entry;

typedef struct oct_timing_cache {
    const char *device;
    oct_timing_entry *entries; /* by rising signature */
    size_t count, capacity;
    size_t hits, misses; /* of this run */
    oct_arena arena;
} oct_timing_cache;

/* Starts a cache for `device`; `path` (may be NULL) is read if it exists. A file of another device or version is an
 * error. */
octet_status oct_timing_cache_open(oct_timing_cache *cache, const char *device, const char *path);
/* Whole or not at all. */
octet_status oct_timing_cache_write(const oct_timing_cache *cache, const char *path);
void oct_timing_cache_close(oct_timing_cache *cache);

/* Sets each step's tactic to the cache's, else to the fastest candidate measured now (and puts it there). Weights must
 * still hold their data. `effort` 2: the tactics that the static rule ranks no worse than its choice's instruction set;
 * 3: every tactic the machine can run, timed longer. */
octet_status oct_plan_tune(oct_plan *plan, const oct_weights *weights, const oct_backend *backend, oct_pool *pool,
                           int effort, oct_timing_cache *cache);

#endif
