/* SPDX-License-Identifier: Apache-2.0 */
/* A whole MobileNetV2 with its pointwise convolutions narrow (a scale a channel of the weights, static scales of the
 * activations from a float32 run, of int8 linears a scale a row), in int8, and in e4m3 with all else in fp16; and with
 * all its products in int8: the same bits in every instruction set and with any number of threads, nothing left to
 * quantize in a step of its own (but for the classifier's input), and near float32. OCTET_MODEL=DIRECTORY takes another
 * checkpoint (of a transformer the encoder's linears become narrow); OCTET_TIMES=ROUNDS prints milliseconds beside
 * float32's, least and median of alternating runs on OCTET_THREADS. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "cpu/kernel.h"
#include "engine/engine.h"
#include "graph/family.h"
#include "graph/passes.h"
#include "unit/engine/quantized_graph.h"

#define PICTURES 3

static const char *directory(void) {
    const char *given = getenv("OCTET_MODEL");
    return given != NULL ? given : OCTET_SOURCE_DIR "/subjects/mobilenetv2_035";
}

static void make_graph(oct_graph *graph) {
    oct_checkpoint *checkpoint;
    const oct_family *family;
    oct_model model;
    memset(&model, 0, sizeof model);
    memset(graph, 0, sizeof *graph);
    if (oct_checkpoint_open(&checkpoint, directory()) != OCTET_OK) fail_msg("%s", oct_error_text());
    assert_int_equal(oct_family_find(oct_family_list, checkpoint, &family), OCTET_OK);
    assert_int_equal(family->describe(checkpoint, &model), OCTET_OK);
    assert_int_equal(family->build(checkpoint, &model, model.height, model.width, graph), OCTET_OK);
    assert_int_equal(oct_passes_run(graph), OCTET_OK);
    oct_checkpoint_close(checkpoint);
}

/* Waves and a little noise, as normalised pictures have. */
static float *draw_picture(const oct_shape *shape, uint64_t seed) {
    const int64_t height = shape->dims[1], width = shape->dims[2], channels = shape->dims[3];
    float *picture = oct_alloc((size_t)oct_shape_count(shape) * sizeof *picture);
    assert_non_null(picture);
    float waves[3][4];
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 4; i++) waves[c][i] = oct_random_signed(&seed) * 0.1f;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < channels; c++) {
                const float *w = waves[c % 3];
                picture[(y * width + x) * channels + c] = sinf((float)x * w[0] + (float)y * w[1] + 9.0f * w[2]) +
                                                          oct_random_signed(&seed) * 0.2f + w[3] * 5.0f;
            }
    return picture;
}

typedef enum kind { KIND_FP32, KIND_FP16, KIND_FP8, KIND_INT8, KIND_INT8_ALL, KIND_COUNT } kind;
static const char *const kind_names[KIND_COUNT] = {"fp32", "fp16", "fp8", "int8", "int8 everywhere"};

static bool is_narrow(const oct_graph *graph, const oct_graph_node *node, kind k) {
    if (k == KIND_INT8_ALL) return node->op == OCT_OP_CONV2D || node->op == OCT_OP_LINEAR;
    if (node->op == OCT_OP_LINEAR) return strstr(node->name, "encoder.layer") != NULL;
    if (node->op != OCT_OP_CONV2D || node->attributes.groups != 1) return false;
    const oct_shape *weight = &graph->values[node->inputs[1]].shape;
    return weight->dims[1] == 1 && weight->dims[2] == 1;
}

/* The largest magnitude of each value over some pictures: found once, of the one network. */
static const float *find_ranges(const oct_graph *graph) {
    static float amax[4096];
    static bool found;
    assert_true(graph->value_count <= sizeof amax / sizeof *amax);
    for (uint64_t p = 1; !found && p <= PICTURES; p++) {
        float *picture = draw_picture(&graph->values[graph->input].shape, p);
        value_ranges ranges;
        assert_true(ranges_make(&ranges, graph, picture));
        for (size_t i = 0; i < graph->value_count; i++) amax[i] = fmaxf(amax[i], ranges.amax[i]);
        oct_free(ranges.amax);
        oct_free(picture);
    }
    found = true;
    return amax;
}

static size_t quantize(oct_graph *graph, kind k) {
    const float *amax = k >= KIND_FP8 ? find_ranges(graph) : NULL;
    const oct_format format = k >= KIND_INT8 ? OCT_FORMAT_INT8 : OCT_FORMAT_E4M3;
    oct_quantize_decision *decisions = oct_calloc(graph->node_count, sizeof *decisions);
    size_t count = 0;
    for (size_t i = 0; k >= KIND_FP8 && i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (!is_narrow(graph, node, k)) continue;
        oct_quantize_numbers input = {.format = format, .scale = oct_format_scale(format, amax[node->inputs[0]])};
        if (format == OCT_FORMAT_INT8 && node->op == OCT_OP_LINEAR) input.granularity = OCT_PER_ROW;
        decisions[count++] = (oct_quantize_decision){
            .node = node->name, .weight = {.format = format, .granularity = OCT_PER_CHANNEL}, .inputs[0] = input};
    }
    assert_int_equal(oct_graph_quantize(graph, decisions, count), OCTET_OK);
    const bool has_base = k == KIND_FP16 || k == KIND_FP8;
    assert_int_equal(oct_graph_store_base(graph, has_base ? OCT_FORMAT_FP16 : OCT_FORMAT_FP32), OCTET_OK);
    assert_int_equal(oct_pass_fuse_quantize(graph), OCTET_OK);
    /* the codes of a picture are no numbers: they take a step */
    if (getenv("OCTET_MODEL") == NULL) assert_int_equal(oct_graph_unfused(graph), k == KIND_INT8_ALL ? 1 : 0);
    assert_int_equal(oct_graph_hold_wide(graph), OCTET_OK);
    oct_free(decisions);
    return count;
}

static oct_context *open(kind k, const char *isa, oct_pool *pool) {
    oct_graph graph;
    oct_weights *weights;
    oct_plan *plan;
    oct_engine *engine;
    oct_context *context;
    make_graph(&graph);
    const size_t narrow = quantize(&graph, k);
    if (getenv("OCTET_MODEL") == NULL) assert_int_equal(narrow, k == KIND_INT8_ALL ? 53 : (k >= KIND_FP8 ? 34 : 0));
    assert_int_equal(oct_weights_from_graph(&weights, &graph), OCTET_OK);
    const oct_plan_options options = {.batch = 1, .force_isa = isa};
    if (oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    oct_graph_free(&graph);
    assert_int_equal(oct_engine_open(&engine, plan, weights, oct_cpu_backend(), pool, true), OCTET_OK);
    oct_weights_release(weights);
    const oct_shape *shape = &oct_engine_plan(engine)->tensors[oct_engine_plan(engine)->input].shape;
    float *picture = draw_picture(shape, 77);
    assert_int_equal(oct_context_new(&context, engine, pool), OCTET_OK);
    memcpy(oct_context_input(context, NULL), picture, (size_t)oct_shape_count(shape) * sizeof *picture);
    oct_free(picture);
    oct_engine_release(engine);
    assert_int_equal(oct_context_run(context), OCTET_OK);
    return context;
}

/* |a - b| over |a|, squared. */
static double distance(const float *a, const float *b, int64_t count) {
    double difference = 0, length = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += pow((double)a[i] - (double)b[i], 2);
        length += pow((double)a[i], 2);
    }
    return difference / length;
}

static void compare_sets(kind k, const float *right) {
    const oct_shape *shape;
    oct_context *plain = open(k, "c", NULL);
    const float *first = oct_context_output(plain, 0, &shape);
    const int64_t count = oct_shape_count(shape);
    const double off = distance(right, first, count);
    print_message("%s: logits off by %.3g of their length\n", kind_names[k], sqrt(off));
    assert_true(off < (k == KIND_FP16 ? 1e-4 : 0.1));
    for (int isa = 1; isa < OCT_ISA_COUNT; isa++) {
        if (!oct_isa_present((oct_isa)isa)) continue;
        for (unsigned threads = 1; threads <= 8; threads += 3) {
            oct_pool *pool;
            assert_int_equal(oct_pool_new(&pool, threads), OCTET_OK);
            oct_context *context = open(k, oct_isa_name((oct_isa)isa), pool);
            assert_memory_equal(oct_context_output(context, 0, NULL), first, (size_t)count * sizeof *first);
            oct_context_free(context);
            oct_pool_free(pool);
        }
    }
    oct_context_free(plain);
}

static void bits_are_the_same_everywhere(void **state) {
    (void)state;
    if (getenv("OCTET_TIMES") != NULL) skip();
    oct_context *wide = open(KIND_FP32, NULL, NULL);
    for (int k = KIND_FP16; k < KIND_COUNT; k++) compare_sets((kind)k, oct_context_output(wide, 0, NULL));
    oct_context_free(wide);
}

/* The picture is rounded where it lies: another run without filling it anew gives the same. */
static void runs_are_alike(void **state) {
    (void)state;
    const oct_shape *shape;
    oct_context *context = open(KIND_FP8, NULL, NULL);
    const float *out = oct_context_output(context, 0, &shape);
    const size_t bytes = (size_t)oct_shape_count(shape) * sizeof *out;
    float *first = oct_alloc(bytes);
    assert_non_null(first);
    memcpy(first, out, bytes);
    assert_int_equal(oct_context_run(context), OCTET_OK);
    assert_memory_equal(oct_context_output(context, 0, NULL), first, bytes);
    oct_free(first);
    oct_context_free(context);
}

static int rising(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double run_once(oct_context *context) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(oct_context_run(context), OCTET_OK);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
}

/* The least time of each step. */
typedef struct step_times {
    const oct_plan *plan;
    double *least;
} step_times;

static void note_step(void *user, const oct_plan *plan, size_t step, const void *output, double seconds) {
    (void)output;
    step_times *t = user;
    if (t->least == NULL) t->least = oct_calloc(plan->step_count, sizeof *t->least);
    assert_non_null(t->least);
    if (t->plan == NULL || seconds < t->least[step]) t->least[step] = seconds;
    if (step + 1 == plan->step_count) t->plan = plan;
}

static double step_of(const step_times *t, const char *name) {
    for (size_t i = 0; i < t->plan->step_count; i++)
        if (strcmp(t->plan->steps[i].name, name) == 0) return t->least[i] * 1e6;
    return 0;
}

/* Of all steps of all int8: microseconds, and those of float32. */
static void print_steps(const step_times *wide, const step_times *narrow) {
    for (size_t i = 0; i < narrow->plan->step_count; i++) {
        const oct_plan_step *step = &narrow->plan->steps[i];
        print_message("%8.1f %8.1f  %-26s %s\n", narrow->least[i] * 1e6, step_of(wide, step->name), step->tactic,
                      step->name);
    }
}

static void times(void **state) {
    (void)state;
    const char *wanted = getenv("OCTET_TIMES"), *threads = getenv("OCTET_THREADS");
    if (wanted == NULL) skip();
    const size_t rounds = (size_t)atoi(wanted);
    oct_pool *pool;
    assert_int_equal(oct_pool_new(&pool, threads != NULL ? (unsigned)atoi(threads) : 1), OCTET_OK);
    oct_context *contexts[KIND_COUNT];
    double *samples[KIND_COUNT];
    step_times steps[KIND_COUNT] = {{NULL, NULL}};
    for (int k = 0; k < KIND_COUNT; k++) {
        contexts[k] = open((kind)k, NULL, pool);
        samples[k] = oct_calloc(rounds, sizeof(double));
        assert_non_null(samples[k]);
        if (getenv("OCTET_STEPS") != NULL) oct_context_set_tap(contexts[k], note_step, &steps[k]);
    }
    for (size_t i = 0; i < rounds; i++)
        for (int k = 0; k < KIND_COUNT; k++) samples[k][i] = run_once(contexts[k]);
    if (steps[0].plan != NULL) print_steps(&steps[KIND_FP32], &steps[KIND_INT8_ALL]);
    for (int k = 0; k < KIND_COUNT; k++) qsort(samples[k], rounds, sizeof(double), rising);
    for (int k = 0; k < KIND_COUNT; k++) {
        print_message("%s: least %.3f ms (%.3f of fp32's), median %.3f ms\n", kind_names[k], samples[k][0],
                      samples[k][0] / samples[0][0], samples[k][rounds / 2]);
        oct_context_free(contexts[k]);
    }
    for (int k = 0; k < KIND_COUNT; k++) oct_free(samples[k]), oct_free(steps[k].least);
    oct_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(runs_are_alike),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
