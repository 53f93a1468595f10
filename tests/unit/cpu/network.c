/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks on the CPU: near the reference evaluation, the same bits whatever the instruction set, the number of
 * threads and the thread that runs it. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cpu/kernel.h"
#include "graph/ops.h"
#include "unit/engine/random_graph.h"

#define BATCH 2

typedef struct network {
    oct_array right[2];
    float *input;
    int64_t count;
} network;

static void evaluate(uint64_t seed, network *n) {
    oct_graph graph;
    memset(&graph, 0, sizeof graph);
    assert_true(random_graph_make(&graph, seed));
    assert_int_equal(oct_graph_infer(&graph, BATCH), OCTET_OK);
    n->count = oct_shape_count(&graph.values[graph.input].shape);
    n->input = oct_alloc((size_t)n->count * sizeof *n->input);
    uint64_t random = seed;
    for (int64_t i = 0; i < n->count; i++) n->input[i] = oct_random_signed(&random);
    assert_int_equal(oct_graph_evaluate(&graph, n->input, n->right, 2, NULL, NULL), OCTET_OK);
    oct_graph_free(&graph);
}

static void forget(network *n) {
    oct_free(n->input);
    oct_free(n->right[0].data);
    oct_free(n->right[1].data);
}

static octet_status open(uint64_t seed, const char *isa, oct_pool *pool, oct_engine **engine) {
    oct_graph graph;
    memset(&graph, 0, sizeof graph);
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    const oct_plan_options options = {.batch = BATCH, .force_isa = isa};
    octet_status status = random_graph_make(&graph, seed) ? OCTET_OK : oct_error_status();
    if (status == OCTET_OK) status = oct_weights_from_graph(&weights, &graph);
    if (status == OCTET_OK) status = oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options);
    oct_graph_free(&graph);
    /* as if every step were large: the threads given are used (cpu/backend.c) */
    for (size_t i = 0; status == OCTET_OK && i < plan->step_count; i++) plan->steps[i].flops = UINT64_MAX;
    if (status == OCTET_OK) status = oct_engine_open(engine, plan, weights, oct_cpu_backend(), pool, true);
    oct_weights_release(weights);
    return status;
}

/* Runs once; `out` gets a copy of output i. */
static octet_status run(oct_engine *engine, oct_pool *pool, const network *n, float *out[2]) {
    oct_context *context;
    OCT_TRY(oct_context_new(&context, engine, pool));
    memcpy(oct_context_input(context, NULL), n->input, (size_t)n->count * sizeof *n->input);
    const octet_status status = oct_context_run(context);
    for (size_t o = 0; o < 2; o++) {
        const oct_shape *shape;
        const float *data = oct_context_output(context, o, &shape);
        memcpy(out[o], data, (size_t)oct_shape_count(shape) * sizeof *data);
    }
    oct_context_free(context);
    return status;
}

static size_t bytes_of(const network *n, int o) {
    return (size_t)oct_shape_count(&n->right[o].shape) * sizeof(float);
}

static void networks_are_right_in_every_set(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        network n;
        evaluate(seed, &n);
        float *plain[2], *out[2];
        for (int o = 0; o < 2; o++) {
            plain[o] = oct_alloc(bytes_of(&n, o));
            out[o] = oct_alloc(bytes_of(&n, o));
        }
        for (int isa = 0; isa < OCT_ISA_COUNT; isa++) {
            if (!oct_isa_present((oct_isa)isa)) continue;
            oct_engine *engine;
            assert_int_equal(open(seed, oct_isa_name((oct_isa)isa), NULL, &engine), OCTET_OK);
            assert_int_equal(run(engine, NULL, &n, isa == 0 ? plain : out), OCTET_OK);
            oct_engine_release(engine);
            for (int o = 0; o < 2; o++) {
                if (isa > 0) assert_memory_equal(out[o], plain[o], bytes_of(&n, o));
                for (int64_t i = 0; i < oct_shape_count(&n.right[o].shape); i++)
                    assert_true(fabsf(plain[o][i] - n.right[o].data[i]) <= 2e-4f * (1.0f + fabsf(n.right[o].data[i])));
            }
        }
        for (int o = 0; o < 2; o++) {
            oct_free(plain[o]);
            oct_free(out[o]);
        }
        forget(&n);
    }
}

static void threads_do_not_matter(void **state) {
    (void)state;
    network n;
    evaluate(3, &n);
    float *one[2], *out[2];
    for (int o = 0; o < 2; o++) {
        one[o] = oct_alloc(bytes_of(&n, o));
        out[o] = oct_alloc(bytes_of(&n, o));
    }
    for (unsigned threads = 1; threads <= 8; threads++) {
        oct_pool *pool;
        oct_engine *engine;
        assert_int_equal(oct_pool_new(&pool, threads), OCTET_OK);
        assert_int_equal(open(3, NULL, pool, &engine), OCTET_OK);
        assert_int_equal(run(engine, pool, &n, threads == 1 ? one : out), OCTET_OK);
        for (int o = 0; o < 2; o++)
            if (threads > 1) assert_memory_equal(out[o], one[o], bytes_of(&n, o));
        oct_engine_release(engine);
        oct_pool_free(pool);
    }
    for (int o = 0; o < 2; o++) {
        oct_free(one[o]);
        oct_free(out[o]);
    }
    forget(&n);
}

/* One engine, a context a thread. */
typedef struct user {
    oct_engine *engine;
    const network *n;
    float *out[2];
    octet_status status;
} user;

static void *use(void *argument) {
    user *u = argument;
    for (int i = 0; i < 5 && u->status == OCTET_OK; i++) u->status = run(u->engine, NULL, u->n, u->out);
    return NULL;
}

static void engines_are_shared(void **state) {
    (void)state;
    network n;
    evaluate(8, &n);
    oct_engine *engine;
    assert_int_equal(open(8, NULL, NULL, &engine), OCTET_OK);
    user users[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        users[i] = (user){.engine = engine, .n = &n, .status = OCTET_OK};
        for (int o = 0; o < 2; o++) users[i].out[o] = oct_alloc(bytes_of(&n, o));
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].status, OCTET_OK);
        for (int o = 0; o < 2; o++) assert_memory_equal(users[i].out[o], users[0].out[o], bytes_of(&n, o));
    }
    for (int i = 0; i < 4; i++)
        for (int o = 0; o < 2; o++) oct_free(users[i].out[o]);
    oct_engine_release(engine);
    forget(&n);
}

static void unknown_sets_are_refused(void **state) {
    (void)state;
    oct_engine *engine;
    assert_int_equal(open(1, "mmx", NULL, &engine), OCTET_INVALID_ARGUMENT);
    assert_non_null(strstr(oct_error_fact(), "mmx: expected c, avx2, avx512, vnni or amx (this machine has "));
    setenv("OCTET_CPU", "sse9", 1);
    assert_int_equal(open(1, NULL, NULL, &engine), OCTET_INVALID_ARGUMENT);
    assert_non_null(strstr(oct_error_fact(), "OCTET_CPU sse9"));
    setenv("OCTET_CPU", "c", 1);
    assert_int_equal(open(1, NULL, NULL, &engine), OCTET_OK);
    const oct_plan *plan = oct_engine_plan(engine);
    for (size_t i = 0; i < plan->step_count; i++)
        assert_int_equal(oct_kernel_find(plan->steps[i].op, plan->steps[i].tactic)->isa, OCT_ISA_C);
    oct_engine_release(engine);
    unsetenv("OCTET_CPU");
}

static void tactics_are_explained(void **state) {
    (void)state;
    oct_engine *engine;
    assert_int_equal(open(2, "c", NULL, &engine), OCTET_OK);
    oct_graph graph;
    memset(&graph, 0, sizeof graph);
    oct_weights *weights;
    assert_true(random_graph_make(&graph, 2));
    assert_int_equal(oct_weights_from_graph(&weights, &graph), OCTET_OK);
    oct_graph_free(&graph);
    oct_text text = {0};
    assert_int_equal(oct_plan_tactics(oct_engine_plan(engine), weights, oct_cpu_backend(), &text), OCTET_OK);
    assert_non_null(strstr(text.data, "conv2d_dw_f32_c: not depthwise"));
    assert_non_null(strstr(text.data, ": chosen"));
    oct_text_free(&text);
    oct_weights_release(weights);
    oct_engine_release(engine);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        const int64_t live = oct_alloc_live();
        oct_engine *engine = NULL;
        oct_context *context = NULL;
        oct_alloc_fail_at(n, n % 2 == 0);
        octet_status status = open(7, NULL, NULL, &engine);
        if (status == OCTET_OK) status = oct_context_new(&context, engine, NULL);
        const uint64_t before = oct_alloc_count();
        if (status == OCTET_OK) status = oct_context_run(context);
        assert_true(oct_alloc_count() == before); /* a run allocates nothing */
        const bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        oct_context_free(context);
        oct_engine_release(engine);
        assert_int_equal(oct_alloc_live(), live);
        if (!met) break;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_right_in_every_set),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(engines_are_shared),
        cmocka_unit_test(unknown_sets_are_refused),
        cmocka_unit_test(tactics_are_explained),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
