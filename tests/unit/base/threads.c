/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/threads.h"

typedef struct work {
    unsigned char *hits; /* plain memory: each index is one task's alone */
    double *values;
    oct_pool *pool;
} work;

static void hit(void *argument, size_t index) {
    work *w = argument;
    w->hits[index]++;
    w->values[index] = sqrt((double)index) + w->values[index];
}

static void each_once(oct_pool *pool) {
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 1000, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t count = counts[c];
        work w = {.hits = calloc(count + 1, 1), .values = calloc(count + 1, sizeof(double))};
        for (size_t i = 0; i < count; i++) w.values[i] = 1.0; /* seen by the workers */
        oct_pool_run(pool, count, hit, &w);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(w.hits[i], 1);
            assert_true(w.values[i] == sqrt((double)i) + 1.0); /* and theirs by us */
        }
        assert_int_equal(w.hits[count], 0);
        free(w.hits);
        free(w.values);
    }
}

static void test_every_index_once(void **state) {
    (void)state;
    each_once(NULL);
    for (unsigned threads = 1; threads <= 8; threads++) {
        oct_pool *pool = NULL;
        assert_int_equal(oct_pool_new(&pool, threads), OCTET_OK);
        assert_int_equal(oct_pool_threads(pool), threads);
        for (int repeat = 0; repeat < 2; repeat++) each_once(pool);
        oct_pool_free(pool);
    }
    oct_pool_free(NULL);
    assert_int_equal(oct_pool_threads(NULL), 1);
}

static void outer(void *argument, size_t index) {
    work *w = argument;
    work inner = {.hits = w->hits + index * 10, .values = w->values + index * 10};
    oct_pool_run(w->pool, 10, hit, &inner); /* would wait for itself if it were parallel */
}

static void test_nested_runs_are_serial(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        unsigned char hits[1000] = {0};
        double values[1000] = {0};
        work w = {.hits = hits, .values = values};
        assert_int_equal(oct_pool_new(&w.pool, threads), OCTET_OK);
        oct_pool_run(w.pool, 100, outer, &w);
        for (size_t i = 0; i < 1000; i++) assert_int_equal(hits[i], 1);
        oct_pool_run(w.pool, 100, outer, &w); /* and the pool is parallel again after */
        for (size_t i = 0; i < 1000; i++) assert_int_equal(hits[i], 2);
        oct_pool_free(w.pool);
    }
}

/* A caller's parallel_for: a thread a task, in reverse. */
typedef struct own {
    oct_task task;
    void *argument;
    size_t index;
} own;

static void *own_thread(void *context) {
    own *o = context;
    o->task(o->argument, o->index);
    return NULL;
}

static void own_parallel_for(void *user, size_t count, oct_task task, void *argument) {
    *(size_t *)user += count;
    for (size_t begin = count; begin > 0;) {
        pthread_t threads[16];
        own contexts[16];
        size_t some = begin < 16 ? begin : 16;
        for (size_t i = 0; i < some; i++) {
            contexts[i] = (own){task, argument, --begin};
            if (pthread_create(&threads[i], NULL, own_thread, &contexts[i]) != 0) abort();
        }
        for (size_t i = 0; i < some; i++) (void)pthread_join(threads[i], NULL);
    }
}

static void test_custom(void **state) {
    (void)state;
    size_t total = 0;
    unsigned char hits[100] = {0};
    double values[100] = {0};
    work w = {.hits = hits, .values = values};
    assert_int_equal(oct_pool_new_custom(&w.pool, 3, own_parallel_for, &total), OCTET_OK);
    assert_int_equal(oct_pool_threads(w.pool), 3);
    oct_pool_run(w.pool, 100, hit, &w);
    assert_int_equal(total, 100);
    for (size_t i = 0; i < 100; i++) assert_int_equal(hits[i], 1);
    oct_pool_run(w.pool, 10, outer, &w);
    assert_int_equal(total, 110); /* the nested runs did not come back to it */
    for (size_t i = 0; i < 100; i++) assert_int_equal(hits[i], 2);
    oct_pool_free(w.pool);
    assert_int_equal(oct_pool_new_custom(&w.pool, 3, NULL, NULL), OCTET_INVALID_ARGUMENT);
    assert_null(w.pool);
}

static void test_counts(void **state) {
    (void)state;
    oct_pool *pool = NULL;
    assert_int_equal(oct_pool_new(&pool, 0), OCTET_OK);
    assert_true(oct_pool_threads(pool) >= 1);
    oct_pool_free(pool);
    assert_int_equal(oct_pool_new(&pool, 1000000), OCTET_INVALID_ARGUMENT);
    assert_null(pool);
}

/* Two threads, each with a pool of its own. */
static void *own_pool(void *argument) {
    (void)argument;
    oct_pool *pool = NULL;
    if (oct_pool_new(&pool, 3) != OCTET_OK) return (void *)1;
    for (int i = 0; i < 50; i++) {
        unsigned char hits[200] = {0};
        double values[200] = {0};
        work w = {.hits = hits, .values = values};
        oct_pool_run(pool, 200, hit, &w);
        for (size_t j = 0; j < 200; j++) {
            if (hits[j] != 1) return (void *)1;
        }
    }
    oct_pool_free(pool);
    return NULL;
}

static void test_pools_side_by_side(void **state) {
    (void)state;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, own_pool, NULL), 0);
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_nested_runs_are_serial),
        cmocka_unit_test(test_custom),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_pools_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
