/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "cpu/kernel.h"

typedef struct crew {
    oct_item item;
    const void *job;
    uint8_t *scratch;
    size_t worker_bytes;
    size_t count;
    atomic_size_t next;
} crew;

static void work(void *argument, size_t index) {
    crew *c = argument;
    void *worker = c->scratch + index * c->worker_bytes;
    for (;;) {
        const size_t item = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
        if (item >= c->count) return;
        c->item(c->job, item, worker);
    }
}

void oct_items_run(oct_pool *pool, size_t count, oct_item item, const void *job, void *scratch, size_t worker_bytes) {
    const size_t threads = pool != NULL ? oct_pool_threads(pool) : 1;
    if (threads <= 1 || count <= 1) {
        for (size_t i = 0; i < count; i++) item(job, i, scratch);
        return;
    }
    crew c = {.item = item, .job = job, .scratch = scratch, .worker_bytes = worker_bytes, .count = count};
    atomic_init(&c.next, 0);
    oct_pool_run(pool, threads < count ? threads : count, work, &c);
}
