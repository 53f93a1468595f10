/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pthreadpool.h>

#include "base/alloc.h"

/* pthreadpool hands work over by futex and is not instrumented: ThreadSanitizer is told of it here. */
#if defined(__SANITIZE_THREAD__)
#    define OCT_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define OCT_TSAN 1
#    endif
#endif
#ifdef OCT_TSAN
#    include <sanitizer/tsan_interface.h>
#    define hand_over(address) __tsan_release(address)
#    define take_over(address) __tsan_acquire(address)
#else
#    define hand_over(address) ((void)(address))
#    define take_over(address) ((void)(address))
#endif

#define THREADS_LIMIT 4096u

struct oct_pool {
    unsigned threads;
    pthreadpool_t workers; /* NULL: one thread, or the caller's parallel_for */
    uint32_t flags;        /* pthreadpool's; never the one that flushes denormals: those stay as the caller has them */
    oct_parallel_for parallel_for;
    void *user;
};

/* One call of oct_pool_run. */
typedef struct run {
    oct_task task;
    void *argument;
    char begun, ended; /* addresses that stand for the two hand-overs */
} run;

static _Thread_local bool inside_task; /* a run from here would wait for the pool that runs us */

static void run_one(void *context, size_t index) {
    run *job = context;
    take_over(&job->begun);
    bool before = inside_task;
    inside_task = true;
    job->task(job->argument, index);
    inside_task = before;
    hand_over(&job->ended);
}

/* A small file of the kernel's into `text`, zero-terminated; false if there is none. */
static bool read_small(const char *path, char *text, size_t capacity) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    size_t used = 0;
    while (used + 1 < capacity) {
        ssize_t got = read(descriptor, text + used, capacity - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    (void)close(descriptor);
    text[used] = '\0';
    return used > 0;
}

/* Whole cores that `quota` of `period` is worth, at least one; UINT32_MAX: no quota. */
static unsigned quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return UINT32_MAX;
    long long cores = quota / period;
    if (cores < 1) return 1;
    return cores > THREADS_LIMIT ? THREADS_LIMIT : (unsigned)cores;
}

/* The smallest quota on the way from our control group up to `root`. */
static unsigned group_cores(const char *root, const char *group, bool second) {
    unsigned cores = UINT32_MAX;
    char path[1024];
    char text[128];
    size_t length = strlen(group);
    for (;;) {
        long long quota = 0;
        long long period = 0;
        int stem = (int)length;
        if (length + strlen(root) + 32 < sizeof path) {
            if (second) {
                (void)snprintf(path, sizeof path, "%s%.*s/cpu.max", root, stem, group);
                if (read_small(path, text, sizeof text) && sscanf(text, "%lld %lld", &quota, &period) != 2) quota = 0;
            } else {
                (void)snprintf(path, sizeof path, "%s%.*s/cpu.cfs_quota_us", root, stem, group);
                if (read_small(path, text, sizeof text)) quota = strtoll(text, NULL, 10);
                (void)snprintf(path, sizeof path, "%s%.*s/cpu.cfs_period_us", root, stem, group);
                if (read_small(path, text, sizeof text)) period = strtoll(text, NULL, 10);
            }
            unsigned here = quota_cores(quota, period);
            if (here < cores) cores = here;
        }
        if (length == 0) return cores;
        do {
            length--;
        } while (length > 0 && group[length] != '/');
    }
}

/* /proc/self/cgroup: lines "0::/GROUP" (version 2) and "N:cpu,cpuacct:/GROUP" (version 1). */
static unsigned cgroup_cores(void) {
    char text[4096];
    unsigned cores = UINT32_MAX;
    if (!read_small("/proc/self/cgroup", text, sizeof text)) return cores;
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
        char *controllers = strchr(line, ':');
        if (controllers == NULL) continue;
        char *group = strchr(++controllers, ':');
        if (group == NULL) continue;
        *group++ = '\0';
        unsigned here = UINT32_MAX;
        if (controllers[0] == '\0') {
            here = group_cores("/sys/fs/cgroup", group, true);
        } else {
            char *inner = NULL;
            for (char *name = strtok_r(controllers, ",", &inner); name != NULL; name = strtok_r(NULL, ",", &inner)) {
                if (strcmp(name, "cpu") == 0) here = group_cores("/sys/fs/cgroup/cpu", group, false);
            }
        }
        if (here < cores) cores = here;
    }
    return cores;
}

/* Cores in this process's affinity mask. */
static unsigned affinity_cores(void) {
    for (int cores = 1024; cores <= 1 << 18; cores *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cores);
        if (set == NULL) break;
        size_t size = CPU_ALLOC_SIZE((size_t)cores);
        int failed = sched_getaffinity(0, size, set);
        int reason = errno;
        int found = failed == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (failed == 0) return found > 0 ? (unsigned)found : 1;
        if (reason != EINVAL) break; /* EINVAL: the mask is larger */
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned oct_cores(void) {
    unsigned cores = affinity_cores();
    unsigned quota = cgroup_cores();
    if (quota < cores) cores = quota;
    return cores > THREADS_LIMIT ? THREADS_LIMIT : cores;
}

octet_status oct_pool_new(oct_pool **pool, unsigned threads) {
    *pool = NULL;
    if (threads > THREADS_LIMIT)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%u threads asked for, at most %u are possible", threads,
                        THREADS_LIMIT);
    oct_pool *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->threads = threads == 0 ? oct_cores() : threads;
    if (made->threads > 1) {
        made->workers = pthreadpool_create(made->threads);
        if (made->workers == NULL) {
            oct_free(made);
            return oct_fail_memory();
        }
    }
    *pool = made;
    return OCTET_OK;
}

octet_status oct_pool_new_custom(oct_pool **pool, unsigned threads, oct_parallel_for parallel_for, void *user) {
    *pool = NULL;
    if (parallel_for == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "a custom pool has no parallel_for");
    oct_pool *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->threads = threads == 0 ? oct_cores() : threads;
    made->parallel_for = parallel_for;
    made->user = user;
    *pool = made;
    return OCTET_OK;
}

void oct_pool_free(oct_pool *pool) {
    if (pool == NULL) return;
    if (pool->workers != NULL) pthreadpool_destroy(pool->workers);
    oct_free(pool);
}

unsigned oct_pool_threads(const oct_pool *pool) {
    return pool == NULL ? 1 : pool->threads;
}

void oct_pool_run(oct_pool *pool, size_t count, oct_task task, void *argument) {
    bool serial = pool == NULL || count <= 1 || inside_task || (pool->workers == NULL && pool->parallel_for == NULL);
    if (serial) {
        for (size_t i = 0; i < count; i++) task(argument, i);
        return;
    }
    run job = {.task = task, .argument = argument};
    hand_over(&job.begun);
    if (pool->parallel_for != NULL) {
        pool->parallel_for(pool->user, count, run_one, &job);
    } else {
        pthreadpool_parallelize_1d(pool->workers, run_one, &job, count, pool->flags);
    }
    take_over(&job.ended);
}
