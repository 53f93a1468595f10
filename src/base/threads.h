/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: a pool (pthreadpool, or a caller's own parallel_for). The split into tasks never depends on the number of
 * threads, so results do not either. */
#ifndef OCT_BASE_THREADS_H
#define OCT_BASE_THREADS_H

#include <stddef.h>

#include "base/error.h"

typedef void (*oct_task)(void *argument, size_t index);
/* Runs task(argument, i) for i = 0 .. count - 1, each once, in any order; returns when all are done. */
typedef void (*oct_parallel_for)(void *user, size_t count, oct_task task, void *argument);

/* Cores this process may use: its affinity mask and its control group's quota, at least 1. */
unsigned oct_cores(void);

typedef struct oct_pool oct_pool;
/* threads = 0: one a core this process may use. 1: no thread is started. Caller frees with oct_pool_free. */
octet_status oct_pool_new(oct_pool **pool, unsigned threads);
octet_status oct_pool_new_custom(oct_pool **pool, unsigned threads, oct_parallel_for parallel_for, void *user);
void oct_pool_free(oct_pool *pool);
unsigned oct_pool_threads(const oct_pool *pool);
/* A pool may be used from one thread at a time. pool NULL: runs in the calling thread. */
void oct_pool_run(oct_pool *pool, size_t count, oct_task task, void *argument);

#endif
