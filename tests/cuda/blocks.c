/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blocks.h"

#include <math.h>

#include "cuda/tactic.h"
#include "graph/quantize.h"
#include "graph/stored.h"
#include "unit/engine/random_graph.h"

typedef struct drawn {
    uint64_t seed;
    int64_t batch, height, width, inputs, expanded, outputs;
    int stride;
    bool stem, residual, int8;
} drawn;

static drawn draw(uint64_t *random) {
    static const int64_t expansions[] = {96, 144, 192, 384}, widths[] = {8, 16, 24, 32, 64};
    drawn d = {.seed = oct_random_next(random), .int8 = oct_random_below(random, 2) == 0};
    d.stem = oct_random_below(random, 5) == 0;
    d.stride = d.stem || oct_random_below(random, 2) == 0 ? 1 : 2;
    d.batch = 1 + (int64_t)oct_random_below(random, 3);
    d.height = 1 + (int64_t)oct_random_below(random, 40);
    d.width = 1 + (int64_t)oct_random_below(random, 40);
    d.inputs = d.stem ? 3 : widths[oct_random_below(random, 5)];
    d.expanded = d.stem ? 32 : expansions[oct_random_below(random, 4)];
    d.residual = !d.stem && d.stride == 1 && oct_random_below(random, 2) == 0;
    d.outputs = d.residual ? d.inputs : widths[oct_random_below(random, d.stem ? 2 : 5)];
    if (d.stem) d.height *= 2, d.width *= 2; /* of the picture */
    return d;
}

static int32_t conv(random_graph *g, int32_t x, int64_t outputs, int kernel, int stride, bool depthwise, int activation,
                    int32_t residual) {
    const int64_t in = random_channels(g, x);
    oct_attributes a = {.stride_h = stride, .stride_w = stride, .groups = depthwise ? (int)in : 1, .has_bias = true};
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = kernel / 2;
    a.activation = (oct_activation)activation;
    a.has_residual = residual != OCT_NONE;
    const int32_t weight = random_constant(g, 4, outputs, kernel, kernel, depthwise ? 1 : in);
    const int32_t inputs[4] = {x, weight, random_constant(g, 1, outputs, 0, 0, 0), residual};
    return random_node(g, OCT_OP_CONV2D, inputs, a.has_residual ? 4 : 3, &a);
}

static octet_status build(const drawn *d, oct_graph *graph) {
    memset(graph, 0, sizeof *graph);
    random_graph g = {.graph = graph, .random = d->seed};
    const int64_t shape[4] = {1, d->height, d->width, d->inputs};
    const int32_t x = oct_graph_input(graph, "picture", oct_shape_of(4, shape));
    const int activation = (int)random_between(&g, OCT_ACTIVATION_RELU, OCT_ACTIVATION_RELU6);
    int32_t y = conv(&g, x, d->expanded, d->stem ? 3 : 1, d->stem ? 2 : 1, false, activation, OCT_NONE);
    y = conv(&g, y, d->expanded, 3, d->stride, true, activation, OCT_NONE);
    y = conv(&g, y, d->outputs, 1, 1, false, OCT_ACTIVATION_NONE, d->residual ? x : OCT_NONE);
    OCT_TRY(oct_graph_output(graph, y, "out"));
    oct_quantize_decision decisions[3] = {{0}};
    for (size_t i = 0; i < 3 && d->int8; i++) {
        decisions[i].node = graph->nodes[i].name;
        decisions[i].weight = (oct_quantize_numbers){.format = OCT_FORMAT_INT8, .granularity = OCT_PER_CHANNEL};
        decisions[i].inputs[0] = (oct_quantize_numbers){.format = OCT_FORMAT_INT8, .scale = i == 0 ? 0.01f : 0.04f};
    }
    if (d->int8) OCT_TRY(oct_graph_quantize(graph, decisions, 3));
    OCT_TRY(oct_graph_store_base(graph, OCT_FORMAT_FP16));
    OCT_TRY(oct_pass_fuse_quantize(graph));
    return oct_graph_infer(graph, d->batch);
}

static octet_status run(const oct_device_api *api, const oct_plan *plan, const oct_weights *weights, const float *input,
                        float *out) {
    oct_cuda_engine *engine = NULL;
    oct_cuda_session *session = NULL;
    const size_t inputs = (size_t)oct_shape_count(&plan->tensors[plan->input].shape);
    octet_status status = oct_cuda_engine_open(&engine, plan, weights, api, 0);
    if (status == OCTET_OK) status = oct_cuda_session_new(&session, engine);
    if (status == OCTET_OK) status = oct_cuda_session_poison(session);
    if (status == OCTET_OK) {
        memcpy(oct_cuda_session_input(session), input, inputs * sizeof *input);
        status = oct_cuda_session_run(session);
    }
    if (status == OCTET_OK) {
        const oct_shape *shape;
        const float *found = oct_cuda_session_output(session, 0, &shape);
        memcpy(out, found, (size_t)oct_shape_count(shape) * sizeof *out);
    }
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    return status;
}

static bool is_right(const drawn *d, const oct_array *right, const float *found) {
    const int64_t count = oct_shape_count(&right->shape);
    float most = 0;
    for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(right->data[i]));
    for (int64_t i = 0; i < count; i++)
        if (d->int8 ? memcmp(&found[i], &right->data[i], sizeof *found) != 0
                    : !(fabsf(found[i] - right->data[i]) <= 0.01f * most))
            return false;
    return true;
}

/* Every block tactic at the step where the three convolutions begin. */
static int try_tactics(const oct_device_api *api, const drawn *d, oct_plan *plan, const oct_weights *weights,
                       const float *input, const oct_array *right, int *tried) {
    int failures = 0;
    float *out = oct_alloc((size_t)oct_shape_count(&right->shape) * sizeof *out);
    const oct_cuda_site site = {plan, weights, plan->step_count - 3};
    const oct_cuda_tactic *t;
    for (size_t i = 0; out != NULL && (t = oct_cuda_tactic_at(i)) != NULL; i++) {
        if (t->span != 3 || t->refuses(t, &site) != NULL) continue;
        for (size_t s = 0; s < 3; s++) plan->steps[site.step + s].tactic = t->name;
        const octet_status status = run(api, plan, weights, input, out);
        (*tried)++;
        if (status == OCTET_OK && is_right(d, right, out)) continue;
        printf("FAILED %s: %s: %lld x %lld x %lld x %lld, %lld, %lld, stride %d%s%s%s\n", t->name,
               status == OCTET_OK ? "other numbers" : oct_error_text(), (long long)d->batch, (long long)d->height,
               (long long)d->width, (long long)d->inputs, (long long)d->expanded, (long long)d->outputs, d->stride,
               d->stem ? " stem" : "", d->residual ? " residual" : "", d->int8 ? " int8" : "");
        failures++;
    }
    oct_free(out);
    return failures;
}

static int check_one(const oct_device_api *api, const drawn *d, int *tried) {
    oct_graph graph;
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    oct_array right = {0};
    const oct_plan_options options = {.batch = d->batch};
    octet_status status = build(d, &graph);
    const size_t count = (size_t)(d->batch * d->height * d->width * d->inputs);
    float *input = oct_alloc(count * sizeof *input);
    uint64_t random = d->seed;
    for (size_t i = 0; input != NULL && i < count; i++) input[i] = oct_random_signed(&random);
    if (status == OCTET_OK) status = oct_graph_evaluate(&graph, input, &right, 1, NULL, NULL);
    if (status == OCTET_OK) status = oct_weights_from_graph(&weights, &graph);
    if (status == OCTET_OK) status = oct_plan_make(&plan, &graph, weights, oct_cuda_backend(), &options);
    int failures = status != OCTET_OK;
    if (failures > 0) printf("FAILED: %s\n", oct_error_text());
    if (failures == 0) failures = try_tactics(api, d, plan, weights, input, &right, tried);
    oct_free(right.data);
    oct_free(input);
    oct_plan_free(plan);
    oct_weights_release(weights);
    oct_graph_free(&graph);
    return failures;
}

int check_blocks(const oct_device_api *api, uint64_t seed, int rounds) {
    uint64_t random = seed;
    int failures = 0, tried = 0;
    for (int i = 0; i < rounds && failures < 20; i++) {
        const drawn d = draw(&random);
        failures += check_one(api, &d, &tried);
    }
    printf("blocks       every fused tactic      %6d cases\n", tried);
    return failures + (tried == 0);
}
