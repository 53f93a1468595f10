/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on random graphs of all ops: the outputs stay, to rounding, at batch 1 and 2; and on small graphs, what each
 * did. OCTET_SEED runs one seed, OCTET_GRAPHS that many graphs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "graph/ops.h"
#include "graph/passes.h"

#define SHAPE(...)                                                                                                     \
    oct_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* Each pass rounds a weight, a bias and an output once more (2^-24 each); graphs are at most 24 nodes deep and norms'
 * epsilons keep them from magnifying. */
#define BOUND 2e-6

/* ---- the generator */

typedef struct graph_maker {
    oct_graph graph;
    uint64_t random;
    int names;
} graph_maker;

static int64_t below(graph_maker *maker, int64_t n) {
    return (int64_t)oct_random_below(&maker->random, (uint64_t)n);
}

static const char *new_name(graph_maker *maker) {
    static char name[32];
    (void)snprintf(name, sizeof name, "v%d", maker->names++);
    return name;
}

/* A constant with values in middle +- range; sometimes one that is there already, so that constants are shared. */
static int32_t constant(graph_maker *maker, oct_shape shape, double middle, double range, bool shareable) {
    oct_graph *graph = &maker->graph;
    for (size_t i = 0; shareable && i < graph->value_count; i++) {
        const oct_value *value = &graph->values[i];
        if (value->data != NULL && value->name[0] == 's' && oct_shape_equal(&value->shape, &shape) &&
            below(maker, 2) == 0) {
            return (int32_t)i;
        }
    }
    size_t count = (size_t)oct_shape_count(&shape);
    float *data = oct_alloc(count * sizeof(float));
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = (float)(middle + range * (double)oct_random_signed(&maker->random));
    char name[40];
    (void)snprintf(name, sizeof name, "%s%s", shareable ? "s" : "c", new_name(maker));
    return oct_graph_constant(graph, name, shape, data);
}

/* Any activation of the wanted rank (0: any), every other time the newest; OCT_NONE if there is none. */
static int32_t pick(graph_maker *maker, int rank) {
    const oct_graph *graph = &maker->graph;
    for (size_t i = below(maker, 2) == 0 ? graph->value_count : 0; i-- > 0;) {
        const oct_value *value = &graph->values[i];
        if (value->data == NULL && (rank == 0 || value->shape.rank == rank)) return (int32_t)i;
    }
    for (int tries = 0; tries < 40; tries++) {
        int64_t back = below(maker, 1 + below(maker, (int64_t)graph->value_count));
        int32_t id = (int32_t)((int64_t)graph->value_count - 1 - back);
        if (graph->values[id].data == NULL && (rank == 0 || graph->values[id].shape.rank == rank)) return id;
    }
    return OCT_NONE;
}

static int32_t add(graph_maker *maker, oct_op op, const int32_t *inputs, int count, const oct_attributes *attributes) {
    int32_t id = oct_graph_add_node(&maker->graph, op, new_name(maker), inputs, count, attributes);
    if (id == OCT_NONE) fail_msg("%s", oct_error_text());
    return id;
}

static void add_convolution(graph_maker *maker) {
    int32_t x = pick(maker, 4);
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    int64_t channels = shape.dims[3], kernel = 1 + 2 * below(maker, 2);
    bool depthwise = below(maker, 2) == 0;
    int64_t out = depthwise ? channels : 2 * (1 + below(maker, 4)), groups = depthwise ? channels : 1;
    if (!depthwise && channels % 2 == 0 && below(maker, 4) == 0) groups = 2;
    oct_attributes a = {.stride_h = 1 + (int)below(maker, 2), .groups = (int)groups, .has_bias = below(maker, 2) == 0};
    a.stride_w = a.stride_h;
    a.pad_top = a.pad_left = (int)(kernel / 2);
    a.pad_bottom = a.pad_right = (int)(kernel / 2 + below(maker, 2));
    int64_t depth = channels / groups * kernel * kernel;
    int32_t inputs[] = {
        x, constant(maker, SHAPE(out, kernel, kernel, channels / groups), 0, 1.5 / sqrt((double)depth), true),
        OCT_NONE};
    if (a.has_bias) inputs[2] = constant(maker, SHAPE(out), 0, 0.5, true);
    (void)add(maker, OCT_OP_CONV2D, inputs, a.has_bias ? 3 : 2, &a);
}

static void add_linear(graph_maker *maker) {
    int32_t x = pick(maker, 2 + (int)below(maker, 3));
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    int64_t channels = shape.dims[shape.rank - 1], out = 2 * (1 + below(maker, 4));
    oct_attributes a = {.has_bias = below(maker, 2) == 0};
    int32_t inputs[] = {x, constant(maker, SHAPE(out, channels), 0, 1.5 / sqrt((double)channels), true), OCT_NONE};
    if (a.has_bias) inputs[2] = constant(maker, SHAPE(out), 0, 0.5, true);
    (void)add(maker, OCT_OP_LINEAR, inputs, a.has_bias ? 3 : 2, &a);
}

static void add_norm(graph_maker *maker, bool batch) {
    int32_t x = pick(maker, batch ? 4 : 3);
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    oct_shape vector = SHAPE(shape.dims[shape.rank - 1]);
    oct_attributes a = {.epsilon = batch ? 1e-5 : 0.1};
    int32_t inputs[5] = {x, constant(maker, vector, 1, 0.5, true), constant(maker, vector, 0, 0.5, true)};
    if (batch) {
        inputs[3] = constant(maker, vector, 0, 0.5, true);
        inputs[4] = constant(maker, vector, 1, 0.7, false);
    }
    (void)add(maker, batch ? OCT_OP_BATCH_NORM : OCT_OP_LAYER_NORM, inputs, batch ? 5 : 3, &a);
}

static void add_sum(graph_maker *maker) {
    int32_t x = pick(maker, 0);
    if (below(maker, 4) == 0) { /* a constant to every picture */
        const int32_t inputs[] = {x, constant(maker, maker->graph.values[x].shape, 0, 0.5, false)};
        (void)add(maker, OCT_OP_ADD, inputs, 2, NULL);
        return;
    }
    for (int tries = 0; tries < 40; tries++) {
        int32_t y = pick(maker, maker->graph.values[x].shape.rank);
        if (y == OCT_NONE || !oct_shape_equal(&maker->graph.values[x].shape, &maker->graph.values[y].shape)) continue;
        if (y == x && tries < 20) continue;
        const int32_t inputs[] = {x, y};
        (void)add(maker, OCT_OP_ADD, inputs, 2, NULL);
        return;
    }
}

/* A product of as many channels as its input has, the input added to it in either order; often a norm or an activation
 * between or behind. */
static void add_residual(graph_maker *maker) {
    int32_t x = pick(maker, 3 + (int)below(maker, 2));
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    int64_t channels = shape.dims[shape.rank - 1];
    double range = 1 / sqrt((double)channels);
    int32_t y;
    if (shape.rank == 4) {
        const int32_t inputs[] = {x, constant(maker, SHAPE(channels, 1, 1, channels), 0, range, true)};
        y = add(maker, OCT_OP_CONV2D, inputs, 2, &(oct_attributes){.stride_h = 1, .stride_w = 1, .groups = 1});
        if (below(maker, 2) == 0) add_norm(maker, true);
    } else {
        const int32_t inputs[] = {x, constant(maker, SHAPE(channels, channels), 0, range, true)};
        y = add(maker, OCT_OP_LINEAR, inputs, 2, NULL);
    }
    int32_t newest = (int32_t)maker->graph.value_count - 1;
    if (below(maker, 2) == 0 && oct_shape_equal(&maker->graph.values[newest].shape, &shape)) y = newest;
    y = below(maker, 2) == 0 ? add(maker, OCT_OP_ADD, (int32_t[]){x, y}, 2, NULL)
                             : add(maker, OCT_OP_ADD, (int32_t[]){y, x}, 2, NULL);
    if (below(maker, 2) == 0) {
        (void)add(maker, OCT_OP_ACTIVATION, &y, 1, &(oct_attributes){.activation = OCT_ACTIVATION_RELU});
    }
}

static void add_tokens(graph_maker *maker) {
    int32_t x = pick(maker, 4);
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    (void)add(maker, OCT_OP_RESHAPE, &x, 1,
              &(oct_attributes){.shape = SHAPE(1, shape.dims[1] * shape.dims[2], shape.dims[3])});
}

static void add_attention(graph_maker *maker) {
    int32_t x = pick(maker, 3);
    if (x == OCT_NONE) return;
    int64_t channels = maker->graph.values[x].shape.dims[2];
    int32_t inputs[3];
    for (int i = 0; i < 3; i++) {
        const int32_t linear[] = {x, constant(maker, SHAPE(channels, channels), 0, 1 / sqrt((double)channels), true)};
        inputs[i] = add(maker, OCT_OP_LINEAR, linear, 2, NULL);
    }
    int heads = channels % 2 == 0 ? 2 : 1;
    (void)add(maker, OCT_OP_ATTENTION, inputs, 3, &(oct_attributes){.heads = heads, .scale = 0.5});
}

static void add_move(graph_maker *maker) {
    int32_t x = pick(maker, 3);
    if (x == OCT_NONE) return;
    oct_shape shape = maker->graph.values[x].shape;
    if (below(maker, 2) == 0 && shape.dims[1] < 64) {
        const int32_t parts[] = {constant(maker, SHAPE(1, 1, shape.dims[2]), 0, 1, false), x};
        (void)add(maker, OCT_OP_CONCAT, parts, 2, NULL);
        return;
    }
    int64_t start = below(maker, shape.dims[1]), length = 1 + below(maker, shape.dims[1] - start);
    (void)add(maker, OCT_OP_SLICE, &x, 1, &(oct_attributes){.start = start, .length = length});
}

static void add_any(graph_maker *maker) {
    int32_t x;
    switch (below(maker, 12)) {
    case 0:
    case 1:
        add_convolution(maker);
        break;
    case 2:
    case 3:
        add_norm(maker, true);
        break;
    case 4:
        add_norm(maker, false);
        break;
    case 5:
        add_linear(maker);
        break;
    case 6:
        x = pick(maker, 0);
        (void)add(maker, OCT_OP_ACTIVATION, &x, 1,
                  &(oct_attributes){.activation = (oct_activation)(1 + below(maker, OCT_ACTIVATION_COUNT - 1))});
        break;
    case 7:
        add_sum(maker);
        break;
    case 8:
        add_residual(maker);
        break;
    case 9:
        add_tokens(maker);
        break;
    case 10:
        add_attention(maker);
        break;
    default:
        if (below(maker, 3) > 0) {
            add_move(maker);
        } else if ((x = pick(maker, 4)) != OCT_NONE) {
            (void)add(maker, OCT_OP_GLOBAL_POOL, &x, 1, NULL);
        }
    }
}

static void make_graph(graph_maker *maker, uint64_t seed) {
    *maker = (graph_maker){.random = seed};
    (void)oct_graph_input(&maker->graph, "input", SHAPE(1, 2 + below(maker, 4), 2 + below(maker, 4), 3));
    int64_t nodes = 2 + below(maker, 22);
    for (int64_t i = 0; i < nodes; i++) add_any(maker);
    int marked = 0;
    for (size_t i = 0; i < maker->graph.value_count; i++) {
        const oct_value *value = &maker->graph.values[i];
        bool last = i + 1 == maker->graph.value_count;
        if (value->producer == OCT_NONE || (!last && below(maker, 12) != 0)) continue;
        char name[32];
        (void)snprintf(name, sizeof name, "out%d", marked++);
        assert_int_equal(oct_graph_output(&maker->graph, (int32_t)i, name), OCTET_OK);
    }
    if (marked == 0) assert_int_equal(oct_graph_output(&maker->graph, maker->graph.input, "out0"), OCTET_OK);
}

/* ---- outputs by name, before and after */

typedef struct outcome {
    char name[32];
    oct_array array;
} outcome;
#define OUTPUTS 64

static size_t evaluate(oct_graph *graph, int64_t batch, const float *input, outcome *outcomes) {
    if (oct_graph_infer(graph, batch) != OCTET_OK) fail_msg("%s", oct_error_text());
    if (oct_graph_check(graph) != OCTET_OK) fail_msg("%s", oct_error_text());
    oct_array arrays[OUTPUTS];
    size_t count = oct_graph_output_count(graph);
    assert_in_range(count, 1, OUTPUTS);
    if (oct_graph_evaluate(graph, input, arrays, count, NULL, NULL) != OCTET_OK) fail_msg("%s", oct_error_text());
    size_t n = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        if (!graph->values[i].is_output) continue;
        outcomes[n].array = arrays[n];
        (void)snprintf(outcomes[n].name, sizeof outcomes[n].name, "%s", graph->values[i].name);
        n++;
    }
    return n;
}

/* Largest |a - b| / max(1, largest |a|), a NaN or another shape is infinite. */
static double distance(const outcome *a, const outcome *b) {
    if (!oct_shape_equal(&a->array.shape, &b->array.shape)) return INFINITY;
    double worst = 0, largest = 1;
    int64_t count = oct_shape_count(&a->array.shape);
    for (int64_t i = 0; i < count; i++) {
        double error = fabs((double)a->array.data[i] - (double)b->array.data[i]);
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        if (fabs((double)a->array.data[i]) > largest) largest = fabs((double)a->array.data[i]);
    }
    return worst / largest;
}

typedef octet_status (*pass)(oct_graph *graph);
static const struct {
    const char *name;
    pass run;
} passes[] = {
    {"fold_batch_norm", oct_pass_fold_batch_norm},
    {"fuse_residual", oct_pass_fuse_residual},
    {"fuse_activation", oct_pass_fuse_activation},
    {"fold_layer_norm", oct_pass_fold_layer_norm},
    {"dead_code", oct_pass_dead_code},
    {"run", oct_passes_run},
};
enum { PASSES = sizeof passes / sizeof passes[0] };

static int64_t from_environment(const char *name, int64_t fallback) {
    const char *text = getenv(name);
    return text == NULL ? fallback : strtoll(text, NULL, 10);
}

static void check_pass(uint64_t seed, size_t index, double *worst, size_t *removed) {
    graph_maker maker;
    make_graph(&maker, seed);
    oct_shape picture = maker.graph.values[maker.graph.input].shape;
    size_t count = (size_t)oct_shape_count(&picture), nodes = maker.graph.node_count;
    float *input = oct_alloc(2 * count * sizeof(float));
    assert_non_null(input);
    for (size_t i = 0; i < 2 * count; i++) input[i] = oct_random_signed(&maker.random);
    outcome before[2][OUTPUTS], after[OUTPUTS];
    size_t outputs = 0;
    for (int batch = 1; batch <= 2; batch++) outputs = evaluate(&maker.graph, batch, input, before[batch - 1]);
    assert_int_equal(oct_graph_infer(&maker.graph, 1), OCTET_OK);
    if (passes[index].run(&maker.graph) != OCTET_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, oct_error_text());
    *removed += nodes - maker.graph.node_count;
    for (int batch = 1; batch <= 2; batch++) {
        assert_int_equal(evaluate(&maker.graph, batch, input, after), outputs);
        for (size_t i = 0; i < outputs; i++) {
            size_t j = 0;
            while (j < outputs && strcmp(after[j].name, before[batch - 1][i].name) != 0) j++;
            assert_true(j < outputs);
            double error = distance(&before[batch - 1][i], &after[j]);
            if (error > *worst) *worst = error;
            if (!(error <= BOUND)) {
                fail_msg("seed %llu, pass %s, batch %d, output %s: off by %g", (unsigned long long)seed,
                         passes[index].name, batch, before[batch - 1][i].name, error);
            }
        }
        for (size_t i = 0; i < outputs; i++) oct_free(after[i].array.data);
        for (size_t i = 0; i < outputs; i++) oct_free(before[batch - 1][i].array.data);
    }
    oct_free(input);
    oct_graph_free(&maker.graph);
}

/* A new op has to be made by add_any: else nothing here says that passes keep it. */
static void test_every_op_is_made(void **state) {
    (void)state;
    bool made[OCT_OP_COUNT] = {false};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        graph_maker maker;
        make_graph(&maker, seed);
        for (size_t i = 0; i < maker.graph.node_count; i++) made[maker.graph.nodes[i].op] = true;
        oct_graph_free(&maker.graph);
    }
    for (int op = 0; op < OCT_OP_COUNT; op++) {
        if (op == OCT_OP_QUANTIZE) continue; /* come after these passes: graph/quantize.h */
        if (!made[op]) fail_msg("no random graph has the op %s: add it to add_any", oct_op_rows[op].name);
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    int64_t first = from_environment("OCTET_SEED", -1);
    int64_t graphs = first >= 0 ? 1 : from_environment("OCTET_GRAPHS", 300);
    if (first < 0) first = 1;
    print_message("seeds %lld to %lld\n", (long long)first, (long long)(first + graphs - 1));
    for (size_t index = 0; index < PASSES; index++) {
        double worst = 0;
        size_t removed = 0;
        for (int64_t i = 0; i < graphs; i++) check_pass((uint64_t)(first + i), index, &worst, &removed);
        print_message("%s: off by at most %.2g, %zu nodes absorbed or dropped\n", passes[index].name, worst, removed);
        if (graphs >= 100) assert_true(index == 3 ? worst > 0 : removed > 50); /* the generator reaches it */
    }
    assert_int_equal(oct_alloc_live(), 0);
}

/* ---- what each did, on small graphs */

static int32_t values(oct_graph *graph, const char *name, oct_shape shape, float value) {
    size_t count = (size_t)oct_shape_count(&shape);
    float *data = oct_alloc(count * sizeof(float));
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = value;
    return oct_graph_constant(graph, name, shape, data);
}

/* conv (weight, no bias), batch norm with the statistics given, relu6; the input added to it, as "out" */
static void make_block(oct_graph *graph, float weight, float variance) {
    oct_shape one = SHAPE(1);
    int32_t x = oct_graph_input(graph, "x", SHAPE(1, 2, 2, 1));
    const int32_t conv[] = {x, values(graph, "conv.weight", SHAPE(1, 1, 1, 1), weight)};
    int32_t y = oct_graph_add_node(graph, OCT_OP_CONV2D, "conv", conv, 2,
                                   &(oct_attributes){.stride_h = 1, .stride_w = 1, .groups = 1});
    const int32_t norm[] = {y, values(graph, "bn.weight", one, 2), values(graph, "bn.bias", one, 1),
                            values(graph, "bn.running_mean", one, 3), values(graph, "bn.running_var", one, variance)};
    y = oct_graph_add_node(graph, OCT_OP_BATCH_NORM, "bn", norm, 5, NULL);
    y = oct_graph_add_node(graph, OCT_OP_ADD, "sum", (int32_t[]){y, x}, 2, NULL);
    y = oct_graph_add_node(graph, OCT_OP_ACTIVATION, "act", &y, 1,
                           &(oct_attributes){.activation = OCT_ACTIVATION_RELU6});
    assert_int_equal(oct_graph_output(graph, y, "out"), OCTET_OK);
}

static void test_block_becomes_one_node(void **state) {
    (void)state;
    oct_graph graph = {0};
    make_block(&graph, 6, 4);
    assert_int_equal(oct_passes_run(&graph), OCTET_OK);
    assert_int_equal(graph.node_count, 1);
    const oct_graph_node *node = &graph.nodes[0];
    assert_string_equal(node->name, "conv"); /* the layer's name, and the value it makes now */
    assert_string_equal(graph.values[node->output].name, "out");
    assert_true(node->attributes.has_bias && node->attributes.has_residual);
    assert_int_equal(node->attributes.activation, OCT_ACTIVATION_RELU6);
    assert_int_equal(node->input_count, 4);
    assert_int_equal(node->inputs[3], graph.input);
    assert_true(graph.values[node->inputs[1]].data[0] == 6);  /* 6 * 2 / sqrt 4 */
    assert_true(graph.values[node->inputs[2]].data[0] == -2); /* (0 - 3) * 2 / 2 + 1 */
    assert_string_equal(graph.values[node->inputs[2]].name, "conv.bias");
    assert_int_equal(graph.value_count, 4); /* the statistics are gone */
    oct_graph_free(&graph);
}

static void test_denormal_weights_are_zero(void **state) {
    (void)state;
    oct_graph graph = {0};
    make_block(&graph, 0x1p-126f, 16); /* times 2 / 4 */
    assert_int_equal(oct_passes_run(&graph), OCTET_OK);
    assert_true(graph.values[graph.nodes[0].inputs[1]].data[0] == 0);
    oct_graph_free(&graph);
}

static void test_bad_variance(void **state) {
    (void)state;
    oct_graph graph = {0};
    make_block(&graph, 1, -0.5f);
    assert_int_equal(oct_passes_run(&graph), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "bn.running_var: element 0: expected a variance of 0 or more, found -0.5");
    oct_graph_free(&graph);
    make_block(&graph, 1, 0); /* and no epsilon here: 2 / 0 */
    assert_int_equal(oct_passes_run(&graph), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "conv.weight: channel 0 is not finite once bn is folded in");
    oct_graph_free(&graph);
}

static void test_constant_is_no_residual(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 2, 2));
    int32_t y =
        oct_graph_add_node(&graph, OCT_OP_LINEAR, "fc", (int32_t[]){x, values(&graph, "w", SHAPE(2, 2), 1)}, 2, NULL);
    y = oct_graph_add_node(&graph, OCT_OP_ADD, "sum", (int32_t[]){y, values(&graph, "pos", SHAPE(1, 2, 2), 1)}, 2,
                           NULL);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    assert_int_equal(oct_passes_run(&graph), OCTET_OK);
    assert_int_equal(graph.node_count, 2); /* at batch 2 the constant would not be the product's shape */
    assert_int_equal(oct_graph_infer(&graph, 2), OCTET_OK);
    oct_graph_free(&graph);
}

/* the skip is made after the product: the fused node has to stand after both */
static void test_late_residual(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 2));
    int32_t a =
        oct_graph_add_node(&graph, OCT_OP_LINEAR, "fc", (int32_t[]){x, values(&graph, "w", SHAPE(2, 2), 1)}, 2, NULL);
    int32_t b = oct_graph_add_node(&graph, OCT_OP_ACTIVATION, "act", &x, 1,
                                   &(oct_attributes){.activation = OCT_ACTIVATION_RELU});
    int32_t y = oct_graph_add_node(&graph, OCT_OP_ADD, "sum", (int32_t[]){a, b}, 2, NULL);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    assert_int_equal(oct_passes_run(&graph), OCTET_OK);
    assert_int_equal(graph.node_count, 2);
    oct_array output;
    assert_int_equal(oct_graph_evaluate(&graph, (float[]){-1, 4}, &output, 1, NULL, NULL), OCTET_OK);
    assert_true(output.data[0] == 3 && output.data[1] == 7);
    oct_free(output.data);
    oct_graph_free(&graph);
}

static void test_layer_norm_affine(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 1, 2));
    const int32_t norm[] = {x, values(&graph, "g", SHAPE(2), 3), values(&graph, "b", SHAPE(2), 5)};
    int32_t y = oct_graph_add_node(&graph, OCT_OP_LAYER_NORM, "ln", norm, 3, NULL);
    y = oct_graph_add_node(&graph, OCT_OP_LINEAR, "fc", (int32_t[]){y, values(&graph, "w", SHAPE(1, 2), 2)}, 2, NULL);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    assert_int_equal(oct_pass_fold_layer_norm(&graph), OCTET_OK);
    assert_int_equal(oct_graph_check(&graph), OCTET_OK);
    assert_true(graph.values[norm[1]].data[1] == 1 && graph.values[norm[2]].data[0] == 0);
    assert_true(graph.values[graph.nodes[1].inputs[1]].data[0] == 6);
    assert_true(graph.values[graph.nodes[1].inputs[2]].data[0] == 20);
    oct_graph_free(&graph);
}

static void test_empty_graph(void **state) {
    (void)state;
    oct_graph graph = {0};
    assert_int_equal(oct_passes_run(&graph), OCTET_OK);
    oct_graph_free(&graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_is_made),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_block_becomes_one_node),
        cmocka_unit_test(test_denormal_weights_are_zero),
        cmocka_unit_test(test_bad_variance),
        cmocka_unit_test(test_constant_is_no_residual),
        cmocka_unit_test(test_late_residual),
        cmocka_unit_test(test_layer_norm_affine),
        cmocka_unit_test(test_empty_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
