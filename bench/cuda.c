/* SPDX-License-Identifier: Apache-2.0 */
/* A classifier's network on the GPU: held to the CPU engine, timed a step.
 *
 *     bench_cuda CHECKPOINT [--format fp32|fp16|int8] [--batch 1,32,128] [--runs N] [--steps] [--tune]
 *                [--repeat N] [--once]
 *
 * int8: every product, scales from one drawn picture, the rest in fp16; logits must equal the CPU's to the bit. fp16
 * and fp32 are held to the CPU's float32. The first and the last picture of a batch are compared. Times are of graph
 * replays, input and output on the device: medians of 20 groups of --runs. OCT_CUDA=generic in the environment keeps to
 * the plain kernels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "graph/family.h"
#include "graph/passes.h"
#include "graph/quantize.h"
#include "graph/stored.h"

#define GROUPS 20

typedef struct bench {
    const char *place;
    oct_format format;
    int runs;
    bool steps, tune, once;
    int repeat;
    const oct_device_api *api;
    float *pictures, *logits; /* two drawn pictures, and the CPU's logits of them */
    float *amax;              /* int8: a value of the graph, by name order of the graph after the passes */
    int64_t pixels, classes;
} bench;

/* ---- graphs */

static octet_status build(const bench *b, oct_graph *graph) {
    oct_checkpoint *checkpoint = NULL;
    const oct_family *family;
    oct_model model;
    memset(graph, 0, sizeof *graph);
    OCT_TRY(oct_checkpoint_open(&checkpoint, b->place));
    octet_status status = oct_family_find(oct_family_list, checkpoint, &family);
    if (status == OCTET_OK) status = family->describe(checkpoint, &model);
    if (status == OCTET_OK) status = family->build(checkpoint, &model, model.height, model.width, graph);
    if (status == OCTET_OK) status = oct_passes_run(graph);
    oct_checkpoint_close(checkpoint);
    return status;
}

static void note_range(void *user, const oct_graph_node *node, const oct_array *output) {
    ((float *)user)[node->output] = oct_amax_finite(output->data, (size_t)oct_shape_count(&output->shape));
}

static octet_status find_ranges(bench *b, const oct_graph *graph) {
    oct_array logits;
    b->amax = oct_calloc(graph->value_count, sizeof *b->amax);
    if (b->amax == NULL) return oct_fail_memory();
    b->amax[graph->input] = oct_amax_finite(b->pictures, (size_t)b->pixels);
    OCT_TRY(oct_graph_evaluate(graph, b->pictures, &logits, 1, note_range, b->amax));
    oct_free(logits.data);
    return OCTET_OK;
}

/* int8: every product's input and weight. Then what is left to fp16, if it is not fp32 that was asked for. */
static octet_status quantize(const bench *b, oct_graph *graph) {
    oct_quantize_decision *decisions = oct_calloc(graph->node_count, sizeof *decisions);
    size_t count = 0;
    if (decisions == NULL) return oct_fail_memory();
    for (size_t i = 0; i < graph->node_count && b->format == OCT_FORMAT_INT8; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR) continue;
        oct_quantize_decision *d = &decisions[count++];
        d->node = node->name;
        d->weight = (oct_quantize_numbers){.format = OCT_FORMAT_INT8, .granularity = OCT_PER_CHANNEL};
        d->inputs[0] = (oct_quantize_numbers){.format = OCT_FORMAT_INT8,
                                              .scale = oct_format_scale(OCT_FORMAT_INT8, b->amax[node->inputs[0]])};
    }
    octet_status status = oct_graph_quantize(graph, decisions, count);
    oct_free(decisions);
    if (status == OCTET_OK)
        status = oct_graph_store_base(graph, b->format == OCT_FORMAT_FP32 ? OCT_FORMAT_FP32 : OCT_FORMAT_FP16);
    return status == OCTET_OK ? oct_pass_fuse_quantize(graph) : status;
}

/* ---- the CPU's logits of both pictures */

static octet_status run_cpu(bench *b, oct_graph *graph) {
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    oct_engine *engine = NULL;
    oct_context *context = NULL;
    oct_plan_options options = {.batch = 1};
    OCT_TRY(oct_weights_from_graph(&weights, graph));
    OCT_TRY(oct_plan_make(&plan, graph, weights, oct_cpu_backend(), &options));
    OCT_TRY(oct_engine_open(&engine, plan, weights, oct_cpu_backend(), NULL, true));
    OCT_TRY(oct_context_new(&context, engine, NULL));
    for (int p = 0; p < 2; p++) {
        int stride;
        float *input = oct_context_input(context, &stride);
        for (int64_t i = 0; i < b->pixels; i++) input[i / 3 * stride + i % 3] = b->pictures[p * b->pixels + i];
        OCT_TRY(oct_context_run(context));
        memcpy(b->logits + p * b->classes, oct_context_output(context, 0, NULL), (size_t)b->classes * sizeof(float));
    }
    oct_context_free(context);
    oct_engine_release(engine);
    oct_weights_release(weights);
    return OCTET_OK;
}

static octet_status prepare(bench *b) {
    oct_graph graph;
    OCT_TRY(build(b, &graph));
    b->pixels = oct_shape_count(&graph.values[graph.input].shape);
    for (size_t i = 0; i < graph.value_count; i++)
        if (graph.values[i].is_output) b->classes = graph.values[i].shape.dims[1];
    b->pictures = oct_alloc((size_t)(2 * b->pixels) * sizeof(float));
    b->logits = oct_alloc((size_t)(2 * b->classes) * sizeof(float));
    if (b->pictures == NULL || b->logits == NULL) return oct_fail_memory();
    /* smooth patches under noise: nearer to a picture than noise alone */
    uint64_t random = 1;
    for (int64_t i = 0; i < 2 * b->pixels; i++) {
        const double at = (double)(i / 3 % 224) / 30.0 + (double)(i / 672 % 224) / 47.0 + (double)(i / b->pixels);
        b->pictures[i] = (float)(1.5 * sin(at + (double)(i % 3)) + 0.4 * (double)oct_random_signed(&random));
    }
    if (b->format == OCT_FORMAT_INT8) {
        OCT_TRY(find_ranges(b, &graph));
        OCT_TRY(quantize(b, &graph));
        OCT_TRY(oct_graph_hold_wide(&graph));
    }
    const octet_status status = run_cpu(b, &graph);
    oct_graph_free(&graph);
    return status;
}

/* ---- the GPU */

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static octet_status time_launch(const bench *b, oct_cuda_session *session, int launch, float *median, float *spread) {
    float times[GROUPS];
    for (int i = 0; i < GROUPS; i++) OCT_TRY(oct_cuda_session_time(session, launch, b->runs, &times[i]));
    qsort(times, GROUPS, sizeof *times, by_size);
    *median = (times[GROUPS / 2] + times[GROUPS / 2 - 1]) / 2;
    *spread = times[GROUPS * 3 / 4] - times[GROUPS / 4];
    return OCTET_OK;
}

/* Largest difference from the CPU's logits, against the largest logit; for int8 also the count of different bits. */
static int compare(const bench *b, const oct_cuda_session *session, int64_t batch) {
    const float *found = oct_cuda_session_output(session, 0, NULL);
    double worst = 0, most = 0;
    int64_t different = 0, top = 0;
    for (int p = 0; p < 2; p++) {
        const float *ours = found + (p == 0 ? 0 : batch - 1) * b->classes;
        const float *right = b->logits + (batch == 1 ? 0 : p) * b->classes;
        int64_t best = 0, best_right = 0;
        for (int64_t i = 0; i < b->classes; i++) {
            const double difference = fabs((double)ours[i] - (double)right[i]);
            if (!(difference <= worst)) worst = difference;
            most = fmax(most, fabs((double)right[i]));
            different += memcmp(&ours[i], &right[i], sizeof(float)) != 0;
            if (ours[i] > ours[best]) best = i;
            if (right[i] > right[best_right]) best_right = i;
        }
        top += best == best_right;
    }
    printf("  against the CPU: largest difference %.3g of %.3g, %lld of %lld bits differ, top class %lld of 2\n", worst,
           most, (long long)different, (long long)(2 * b->classes), (long long)top);
    const double bound = b->format == OCT_FORMAT_INT8 ? 0 : (b->format == OCT_FORMAT_FP16 ? 0.02 : 1e-4) * most;
    return worst <= bound ? 0 : 1;
}

static void print_launch(const oct_cuda_engine *engine, const oct_plan *plan, size_t launch, float median) {
    size_t step, steps;
    double flops = 0, bytes = 0;
    oct_cuda_engine_launch(engine, launch, &step, &steps);
    for (size_t i = 0; i < steps; i++) flops += (double)plan->steps[step + i].flops;
    for (size_t i = 0; i < steps; i++) bytes += (double)plan->steps[step + i].bytes;
    printf("    %-28s %-20s %8.2f us %8.2f GFLOP %8.2f MB unfused\n", plan->steps[step].name, plan->steps[step].tactic,
           (double)median * 1e3, flops * 1e-9, bytes * 1e-6);
}

static void fill_input(const bench *b, int64_t batch, oct_cuda_session *session) {
    float *input = oct_cuda_session_input(session);
    for (int64_t p = 0; p < batch; p++)
        memcpy(input + p * b->pixels, b->pictures + (p > 0 && p == batch - 1 ? b->pixels : 0),
               (size_t)b->pixels * sizeof *input);
}

/* What the tuner asks of us. */
typedef struct tuning {
    const bench *b;
    int64_t batch;
    int *failures;
} tuning;

static void tuning_input(void *user, oct_cuda_session *session) {
    const tuning *t = user;
    fill_input(t->b, t->batch, session);
}

static void tuning_check(void *user, oct_cuda_session *session, size_t round) {
    const tuning *t = user;
    printf("  round %zu:", round);
    *t->failures += compare(t->b, session, t->batch);
    fflush(stdout);
}

static octet_status tune(const bench *b, oct_plan *plan, const oct_weights *weights, int *failures) {
    tuning t = {b, plan->batch, failures};
    oct_text text = {0};
    const oct_cuda_tuning how = {.api = b->api, .runs = 2, .user = &t, .input = tuning_input, .check = tuning_check};
    const octet_status status = oct_cuda_tune(plan, weights, &how, &text);
    if (text.data != NULL) printf("%s", text.data);
    oct_text_free(&text);
    return status;
}

/* Runs again and again: the same input gives the same bits. */
static octet_status repeat(const bench *b, oct_cuda_session *session, int64_t batch, int *failures) {
    const size_t bytes = (size_t)(batch * b->classes) * sizeof(float);
    float *first = oct_alloc(bytes);
    if (first == NULL) return oct_fail_memory();
    memcpy(first, oct_cuda_session_output(session, 0, NULL), bytes);
    octet_status status = OCTET_OK;
    int different = 0;
    for (int i = 0; i < b->repeat && status == OCTET_OK; i++) {
        status = oct_cuda_session_run(session);
        different += memcmp(first, oct_cuda_session_output(session, 0, NULL), bytes) != 0;
    }
    oct_free(first);
    if (b->repeat > 0) printf("  %d of %d runs more gave other bits\n", different, b->repeat);
    *failures += different > 0;
    return status;
}

static octet_status run_session(const bench *b, oct_cuda_engine *engine, const oct_plan *plan,
                                oct_cuda_session *session, int *failures) {
    float median, spread;
    fill_input(b, plan->batch, session);
    OCT_TRY(oct_cuda_session_poison(session));
    OCT_TRY(oct_cuda_session_run(session));
    *failures += compare(b, session, plan->batch);
    OCT_TRY(repeat(b, session, plan->batch, failures));
    if (b->once) return OCTET_OK;
    OCT_TRY(time_launch(b, session, -1, &median, &spread));
    printf("  batch %lld: %.4f ms a replay, interquartile %.4f; %zu launches, weights %.1f MB, arena %.1f MB\n",
           (long long)plan->batch, (double)median, (double)spread, oct_cuda_engine_launches(engine),
           (double)oct_cuda_engine_weight_bytes(engine) * 1e-6, (double)oct_cuda_engine_arena_bytes(engine) * 1e-6);
    OCT_TRY(oct_cuda_session_run(session)); /* the last timed run's input is still there: the same outputs */
    *failures += compare(b, session, plan->batch);
    for (size_t i = 0; b->steps && i < oct_cuda_engine_launches(engine); i++) {
        OCT_TRY(time_launch(b, session, (int)i, &median, &spread));
        print_launch(engine, plan, i, median);
    }
    return OCTET_OK;
}

static octet_status run_batch(bench *b, int64_t batch, int *failures) {
    oct_graph graph;
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    oct_cuda_engine *engine = NULL;
    oct_cuda_session *session = NULL;
    const oct_plan_options options = {.batch = batch};
    OCT_TRY(build(b, &graph));
    OCT_TRY(quantize(b, &graph));
    OCT_TRY(oct_weights_from_graph(&weights, &graph));
    OCT_TRY(oct_plan_make(&plan, &graph, weights, oct_cuda_backend(), &options));
    octet_status status = b->tune ? tune(b, plan, weights, failures) : OCTET_OK;
    if (status == OCTET_OK) status = oct_cuda_engine_open(&engine, plan, weights, b->api, 0);
    if (status == OCTET_OK) status = oct_cuda_session_new(&session, engine);
    if (status == OCTET_OK) status = run_session(b, engine, plan, session, failures);
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    oct_plan_free(plan);
    oct_weights_release(weights);
    oct_graph_free(&graph);
    return status;
}

int main(int argc, char **argv) {
    bench b = {.place = argc > 1 ? argv[1] : "", .format = OCT_FORMAT_FP32, .runs = 50};
    const char *batches = "1";
    oct_device_facts facts;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--steps") == 0) b.steps = true;
        if (strcmp(argv[i], "--tune") == 0) b.tune = true;
        if (strcmp(argv[i], "--once") == 0) b.once = true;
        if (i + 1 >= argc) continue;
        if (strcmp(argv[i], "--format") == 0) b.format = (oct_format)oct_format_by_name(argv[i + 1]);
        if (strcmp(argv[i], "--batch") == 0) batches = argv[i + 1];
        if (strcmp(argv[i], "--repeat") == 0) b.repeat = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--runs") == 0) b.runs = atoi(argv[i + 1]);
    }
    octet_status status = oct_cuda_find(0, &b.api, &facts);
    if (status == OCTET_OK) status = prepare(&b);
    int failures = 0;
    if (status == OCTET_OK) printf("%s on %s\n", oct_format_name(b.format), facts.name);
    for (const char *at = batches; status == OCTET_OK && at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        status = run_batch(&b, atoll(at), &failures);
    }
    if (status != OCTET_OK) fprintf(stderr, "bench_cuda: %s\n", oct_error_text());
    return status != OCTET_OK || failures > 0 ? 1 : 0;
}
