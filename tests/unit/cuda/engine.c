/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA room without a GPU: a device of plain C behind the seam (cuda/device.h), which keeps "device" memory on the
 * host, counts what is held, and fails when told to. What needs no kernel is tested here: plans, fused launches, places
 * in the arena, packed weights, copies to and fro, and every failure that a device can have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cuda/engine.h"
#include "graph/quantize.h"
#include "graph/stored.h"
#include "unit/engine/random_graph.h"

/* ---- the device */

static struct {
    int held;           /* blocks and streams not given back */
    int calls, fail_at; /* call number fail_at (from 1) fails with `status`; 0: none does */
    int status, major;
    size_t launched;
} device;

struct oct_stream {
    int nothing;
};

static int call(oct_device_error *error) {
    if (++device.calls != device.fail_at) return OCT_DEVICE_OK;
    if (error != NULL) snprintf(error->text, sizeof error->text, "told to");
    return device.status;
}

static int fake_facts(int ordinal, oct_device_facts *facts, oct_device_error *error) {
    (void)ordinal;
    *facts = (oct_device_facts){.name = "plain C", .major = device.major};
    return call(error);
}

static int fake_allocate_host(uint64_t size, void **memory, oct_device_error *error) {
    const int status = call(error);
    *memory = status == OCT_DEVICE_OK ? malloc(size) : NULL;
    device.held += *memory != NULL;
    return status;
}

static int fake_allocate(int ordinal, uint64_t size, void **memory, oct_device_error *error) {
    (void)ordinal;
    return fake_allocate_host(size, memory, error);
}

static void fake_release(void *memory) {
    device.held -= memory != NULL;
    free(memory);
}

static int fake_stream_new(int ordinal, oct_stream **stream, oct_device_error *error) {
    void *memory;
    const int status = fake_allocate(ordinal, sizeof **stream, &memory, error);
    *stream = memory;
    return status;
}

static void fake_stream_free(oct_stream *stream) {
    fake_release(stream);
}

static int fake_copy(oct_stream *stream, void *to, const void *from, uint64_t size, oct_device_error *error) {
    (void)stream;
    const int status = call(error);
    if (status == OCT_DEVICE_OK) memcpy(to, from, size);
    return status;
}

static int fake_fill(oct_stream *stream, void *to, int byte, uint64_t size, oct_device_error *error) {
    (void)stream;
    memset(to, byte, size);
    return call(error);
}

static int fake_wait(oct_stream *stream, oct_device_error *error) {
    (void)stream;
    return call(error);
}

static int fake_launch(oct_stream *stream, const oct_launch *launches, size_t count, oct_device_error *error) {
    (void)stream, (void)launches;
    device.launched += count;
    return call(error);
}

static int fake_graph_make(oct_stream *stream, int slot, const oct_launch *launches, size_t count,
                           oct_device_error *error) {
    (void)slot;
    return fake_launch(stream, launches, count, error);
}

static int fake_graph_run(oct_stream *stream, int slot, oct_device_error *error) {
    (void)stream, (void)slot;
    return call(error);
}

static const oct_device_api fake = {.version = OCT_DEVICE_VERSION,
                                    .launch_size = sizeof(oct_launch),
                                    .facts = fake_facts,
                                    .allocate = fake_allocate,
                                    .release = fake_release,
                                    .allocate_host = fake_allocate_host,
                                    .release_host = fake_release,
                                    .stream_new = fake_stream_new,
                                    .stream_free = fake_stream_free,
                                    .upload = fake_copy,
                                    .download = fake_copy,
                                    .fill = fake_fill,
                                    .wait = fake_wait,
                                    .launch = fake_launch,
                                    .graph_make = fake_graph_make,
                                    .graph_run = fake_graph_run};

static int device_reset(void **state) {
    (void)state;
    memset(&device, 0, sizeof device);
    device.major = 9;
    return 0;
}

/* ---- networks */

typedef struct network {
    oct_graph graph;
    oct_weights *weights;
    oct_plan *plan;
} network;

static void network_plan(network *n, oct_format base, int64_t batch) {
    const oct_plan_options options = {.batch = batch};
    if (oct_graph_store_base(&n->graph, base) != OCTET_OK) fail_msg("%s", oct_error_text());
    assert_int_equal(oct_weights_from_graph(&n->weights, &n->graph), OCTET_OK);
    assert_int_equal(oct_plan_make(&n->plan, &n->graph, n->weights, oct_cuda_backend(), &options), OCTET_OK);
    if (oct_plan_check(n->plan, n->weights, oct_cuda_backend()) != OCTET_OK) fail_msg("%s", oct_error_text());
}

static void network_free(network *n) {
    oct_plan_free(n->plan);
    oct_weights_release(n->weights);
    oct_graph_free(&n->graph);
}

static int32_t conv(random_graph *g, int32_t x, int64_t outputs, int kernel, int stride, bool depthwise,
                    int32_t residual) {
    const int64_t in = random_channels(g, x);
    oct_attributes a = {.stride_h = stride, .stride_w = stride, .groups = depthwise ? (int)in : 1, .has_bias = true};
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = kernel / 2;
    a.activation = outputs >= 48 ? OCT_ACTIVATION_RELU6 : OCT_ACTIVATION_NONE; /* expanded maps only */
    a.has_residual = residual != OCT_NONE;
    const int32_t weight = random_constant(g, 4, outputs, kernel, kernel, depthwise ? 1 : in);
    const int32_t inputs[4] = {x, weight, random_constant(g, 1, outputs, 0, 0, 0), residual};
    return random_node(g, OCT_OP_CONV2D, inputs, a.has_residual ? 4 : 3, &a);
}

/* 28 x 28 x 16; a block of stride 1 with a residual, one of stride 2, a head with its pooling, a classifier. */
static void mobile_make(network *n, oct_format base, int64_t batch) {
    memset(n, 0, sizeof *n);
    random_graph g = {.graph = &n->graph, .random = 7};
    int32_t x = oct_graph_input(&n->graph, "picture", oct_shape_of(4, (const int64_t[]){1, 28, 28, 16}));
    int32_t y = conv(&g, conv(&g, x, 96, 1, 1, false, OCT_NONE), 96, 3, 1, true, OCT_NONE);
    x = conv(&g, y, 16, 1, 1, false, x);
    y = conv(&g, conv(&g, x, 96, 1, 1, false, OCT_NONE), 96, 3, 4, true, OCT_NONE);
    x = conv(&g, y, 32, 1, 1, false, OCT_NONE);
    x = conv(&g, x, 64, 1, 1, false, OCT_NONE);
    const oct_attributes none = {0};
    x = random_node(&g, OCT_OP_GLOBAL_POOL, &x, 1, &none);
    const oct_attributes linear = {.has_bias = true};
    const int32_t weight = random_constant(&g, 2, 12, 64, 0, 0), bias = random_constant(&g, 1, 12, 0, 0, 0);
    x = random_node(&g, OCT_OP_LINEAR, (const int32_t[]){x, weight, bias}, 3, &linear);
    assert_int_equal(oct_graph_output(&n->graph, x, "logits"), OCTET_OK);
    network_plan(n, base, batch);
}

static void random_make(network *n, uint64_t seed, oct_format base) {
    memset(n, 0, sizeof *n);
    if (!random_graph_make(&n->graph, seed)) fail();
    network_plan(n, base, 2);
}

/* ---- tests */

/* fp16 fuses: block (3 steps), then stride 4 has no kernel (so its own), head with pooling; fp32 runs each step alone.
 */
static void fuses_what_fits(void **state) {
    (void)state;
    network n;
    oct_cuda_engine *engine;
    mobile_make(&n, OCT_FORMAT_FP16, 2);
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_OK);
    size_t step, steps;
    oct_cuda_engine_launch(engine, 0, &step, &steps);
    assert_int_equal(steps, 3);
    assert_int_equal(oct_cuda_engine_launches(engine), 1 + 3 + 1 + 1);
    oct_cuda_engine_launch(engine, 4, &step, &steps);
    assert_int_equal(steps, 2);
    oct_cuda_engine_free(engine);
    network_free(&n);
    mobile_make(&n, OCT_FORMAT_FP32, 2);
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_OK);
    assert_int_equal(oct_cuda_engine_launches(engine), n.plan->step_count);
    oct_cuda_engine_free(engine);
    network_free(&n);
    assert_int_equal(device.held, 0);
}

static void generic_keeps_to_plain_kernels(void **state) {
    (void)state;
    network n;
    setenv("OCTET_CUDA", "generic", 1);
    mobile_make(&n, OCT_FORMAT_FP16, 1);
    for (size_t i = 0; i < n.plan->step_count; i++)
        assert_true(oct_cuda_tactic_find(n.plan->steps[i].tactic, n.plan->steps[i].op)->generic);
    network_free(&n);
    unsetenv("OCTET_CUDA");
}

static bool meet(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    return a < b + b_size && b < a + a_size;
}

/* While a launch runs, what it reads, what it writes and what is read later lie apart. */
static void places_lie_apart(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        network n;
        oct_cuda_engine *engine;
        if (seed % 2 == 0)
            mobile_make(&n, OCT_FORMAT_FP16, 1 + (int64_t)seed % 5);
        else
            random_make(&n, seed, seed % 4 == 1 ? OCT_FORMAT_FP16 : OCT_FORMAT_FP32);
        assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_OK);
        for (size_t p = 0; p < engine->part_count; p++) {
            if (engine->parts[p].tactic == NULL) continue; /* a view */
            const size_t first = engine->parts[p].step, last = first + engine->parts[p].tactic->span - 1;
            const oct_cuda_place *out = &engine->places[n.plan->steps[last].output];
            assert_true(out->placed && out->offset + out->size <= engine->input_staging);
            for (size_t t = 0; t < n.plan->tensor_count; t++) {
                const oct_plan_tensor *tensor = &n.plan->tensors[t];
                const bool alive = tensor->first < (int32_t)first && tensor->last >= (int32_t)first;
                if (alive && engine->places[t].placed)
                    assert_false(meet(out->offset, out->size, engine->places[t].offset, engine->places[t].size));
            }
        }
        oct_cuda_engine_free(engine);
        network_free(&n);
    }
}

static void numbers_come_back(void **state) {
    (void)state;
    network n;
    oct_cuda_engine *engine;
    oct_cuda_session *session;
    mobile_make(&n, OCT_FORMAT_FP16, 1);
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_OK);
    assert_int_equal(oct_cuda_session_new(&session, engine), OCTET_OK);
    assert_int_equal(oct_cuda_session_poison(session), OCTET_OK);
    const size_t count = (size_t)oct_shape_count(&n.plan->tensors[n.plan->input].shape);
    float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
    uint64_t random = 3;
    for (size_t i = 0; i < count; i++) in[i] = oct_random_signed(&random) * 70000.0f;
    assert_int_equal(oct_cuda_session_write(session, (size_t)n.plan->input, in), OCTET_OK);
    assert_int_equal(oct_cuda_session_read(session, (size_t)n.plan->input, out), OCTET_OK);
    for (size_t i = 0; i < count; i++) {
        const float right = oct_fp16_decode(oct_fp16_encode(in[i])); /* infinity beyond 65504 */
        assert_memory_equal(&out[i], &right, sizeof right);
    }
    const size_t inside = (size_t)n.plan->steps[0].output; /* of a fused launch */
    assert_int_equal(oct_cuda_session_read(session, inside, out), OCTET_UNSUPPORTED);
    free(in);
    free(out);
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    network_free(&n);
}

/* Opens, runs; returns the first failure. */
static octet_status life(const network *n) {
    oct_cuda_engine *engine = NULL;
    oct_cuda_session *session = NULL;
    octet_status status = oct_cuda_engine_open(&engine, n->plan, n->weights, &fake, 0);
    if (status == OCTET_OK) status = oct_cuda_session_new(&session, engine);
    for (int i = 0; i < 2 && status == OCTET_OK; i++) status = oct_cuda_session_run(session);
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    return status;
}

/* The N-th call of the device fails, for every N and every way: the status says so, nothing is held, the next works. */
static void every_call_may_fail(void **state) {
    (void)state;
    static const struct {
        int device;
        octet_status status;
    } ways[] = {{OCT_DEVICE_NONE, OCTET_NO_DEVICE},
                {OCT_DEVICE_MEMORY, OCTET_OUT_OF_MEMORY},
                {OCT_DEVICE_LOST, OCTET_NO_DEVICE},
                {OCT_DEVICE_OTHER, OCTET_INTERNAL}};
    network n;
    mobile_make(&n, OCT_FORMAT_FP16, 1);
    assert_int_equal(life(&n), OCTET_OK);
    const int calls = device.calls;
    assert_true(calls > 15);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int at = 1; at <= calls; at++) {
            device.calls = 0;
            device.fail_at = at;
            device.status = ways[w].device;
            assert_int_equal(life(&n), ways[w].status);
            assert_non_null(strstr(oct_error_text(), "told to"));
            assert_int_equal(device.held, 0);
        }
    device.fail_at = 0;
    assert_int_equal(life(&n), OCTET_OK);
    network_free(&n);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    network n;
    mobile_make(&n, OCT_FORMAT_FP16, 1);
    const int64_t live = oct_alloc_live();
    for (uint64_t at = 1;; at++) {
        oct_alloc_fail_at(at, false);
        const octet_status status = life(&n);
        const bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(device.held, 0);
        assert_int_equal(oct_alloc_live(), live);
        if (!met) break;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
    network_free(&n);
}

static void refuses_plans_that_do_not_fit(void **state) {
    (void)state;
    network n;
    oct_cuda_engine *engine;
    mobile_make(&n, OCT_FORMAT_FP16, 1);
    device.major = 8; /* another card */
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_MISMATCH);
    device.major = 9;
    n.plan->steps[1].tactic = "matrix_generic"; /* a block with a hole */
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_MISMATCH);
    n.plan->steps[0].tactic = "no such";
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_MISMATCH);
    n.plan->steps[0].tactic = "tensor_pool"; /* known, for other steps */
    assert_int_equal(oct_cuda_engine_open(&engine, n.plan, n.weights, &fake, 0), OCTET_MISMATCH);
    assert_int_equal(device.held, 0);
    network_free(&n);
}

static void says_why_there_is_no_device(void **state) {
    (void)state;
    const oct_device_api *api = NULL;
    setenv("OCTET_CUDA_LIBRARY", "/nowhere/liboctet_cuda.so", 1);
    assert_int_equal(oct_cuda_find(0, &api, NULL), OCTET_NO_DEVICE);
    assert_non_null(strstr(oct_error_text(), "/nowhere/liboctet_cuda.so"));
    setenv("OCTET_CUDA_LIBRARY", "libm.so.6", 1); /* a library, not ours */
    assert_int_equal(oct_cuda_find(0, &api, NULL), OCTET_NO_DEVICE);
    assert_non_null(strstr(oct_error_text(), "another version"));
    assert_null(api);
    unsetenv("OCTET_CUDA_LIBRARY");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fuses_what_fits, device_reset),
        cmocka_unit_test_setup(generic_keeps_to_plain_kernels, device_reset),
        cmocka_unit_test_setup(places_lie_apart, device_reset),
        cmocka_unit_test_setup(numbers_come_back, device_reset),
        cmocka_unit_test_setup(every_call_may_fail, device_reset),
        cmocka_unit_test_setup(every_allocation_may_fail, device_reset),
        cmocka_unit_test_setup(refuses_plans_that_do_not_fit, device_reset),
        cmocka_unit_test(says_why_there_is_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
