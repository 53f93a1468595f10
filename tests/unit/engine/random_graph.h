/* SPDX-License-Identifier: Apache-2.0 */
/* Random networks: convolutions with residuals, then tokens with linears, norms, attention, concat and slice; two
 * outputs. */
#ifndef OCT_TESTS_RANDOM_GRAPH_H
#define OCT_TESTS_RANDOM_GRAPH_H

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "graph/graph.h"

typedef struct random_graph {
    oct_graph *graph;
    uint64_t random;
    int names;
} random_graph;

static inline int64_t random_between(random_graph *g, int64_t low, int64_t high) {
    return low + (int64_t)oct_random_below(&g->random, (uint64_t)(high - low + 1));
}

static inline const char *random_name(random_graph *g, const char *what) {
    static char name[64];
    snprintf(name, sizeof name, "%s%d", what, g->names++);
    return name;
}

static inline int32_t random_constant(random_graph *g, int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    const oct_shape shape = oct_shape_of(rank, (const int64_t[]){a, b, c, d});
    const int64_t count = oct_shape_count(&shape);
    float *data = oct_alloc((size_t)count * sizeof *data);
    if (data == NULL) {
        oct_fail_memory();
        return OCT_NONE;
    }
    for (int64_t i = 0; i < count; i++) data[i] = oct_random_signed(&g->random) * 0.4f;
    return oct_graph_constant(g->graph, random_name(g, "weight"), shape, data);
}

static inline int32_t random_node(random_graph *g, oct_op op, const int32_t *inputs, int count,
                                  const oct_attributes *a) {
    return oct_graph_add_node(g->graph, op, random_name(g, "node"), inputs, count, a);
}

static inline int64_t random_channels(random_graph *g, int32_t value) {
    const oct_value *v = oct_graph_value(g->graph, value);
    return v == NULL ? 1 : v->shape.dims[v->shape.rank - 1];
}

static inline int32_t random_conv(random_graph *g, int32_t x, int64_t out, int kernel, int stride, bool depthwise) {
    const int64_t in = random_channels(g, x);
    oct_attributes a = {.stride_h = stride, .stride_w = stride, .groups = depthwise ? (int)in : 1, .has_bias = true};
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = kernel / 2;
    a.activation = (oct_activation)random_between(g, 0, 2);
    const int64_t outputs = depthwise ? in : out;
    const int32_t weight = random_constant(g, 4, outputs, kernel, kernel, depthwise ? 1 : in);
    const int32_t bias = random_constant(g, 1, outputs, 0, 0, 0);
    return random_node(g, OCT_OP_CONV2D, (const int32_t[]){x, weight, bias}, 3, &a);
}

static inline int32_t random_linear(random_graph *g, int32_t x, int64_t out, oct_activation activation,
                                    int32_t residual) {
    oct_attributes a = {.has_bias = true, .has_residual = residual != OCT_NONE, .activation = activation};
    const int32_t weight = random_constant(g, 2, out, random_channels(g, x), 0, 0);
    const int32_t bias = random_constant(g, 1, out, 0, 0, 0);
    return random_node(g, OCT_OP_LINEAR, (const int32_t[]){x, weight, bias, residual}, residual != OCT_NONE ? 4 : 3,
                       &a);
}

static inline int32_t random_tokens(random_graph *g, int32_t x) {
    const int64_t c = random_channels(g, x);
    const oct_attributes norm = {.epsilon = 1e-6};
    const int32_t gamma = random_constant(g, 1, c, 0, 0, 0), beta = random_constant(g, 1, c, 0, 0, 0);
    const int32_t y = random_node(g, OCT_OP_LAYER_NORM, (const int32_t[]){x, gamma, beta}, 3, &norm);
    const int32_t q = random_linear(g, y, c, OCT_ACTIVATION_NONE, OCT_NONE);
    const int32_t k = random_linear(g, y, c, OCT_ACTIVATION_NONE, OCT_NONE);
    const int32_t v = random_linear(g, y, c, OCT_ACTIVATION_NONE, OCT_NONE);
    const oct_attributes heads = {.heads = c % 3 == 0 ? 3 : 1, .scale = 0.25};
    const int32_t mixed = random_node(g, OCT_OP_ATTENTION, (const int32_t[]){q, k, v}, 3, &heads);
    x = random_linear(g, mixed, c, OCT_ACTIVATION_NONE, x);
    const int32_t wide = random_linear(g, x, random_between(g, 3, 40), OCT_ACTIVATION_GELU, OCT_NONE);
    return random_linear(g, wide, c, OCT_ACTIVATION_NONE, x);
}

/* False: the error text says why. `graph` is all zero before. */
static inline bool random_graph_make(oct_graph *graph, uint64_t seed) {
    random_graph g = {.graph = graph, .random = seed};
    const int64_t size = random_between(&g, 6, 20);
    int32_t x = oct_graph_input(graph, "picture", oct_shape_of(4, (const int64_t[]){1, size, size + 1, 3}));
    x = random_conv(&g, x, random_between(&g, 1, 24), 3, 2, false);
    const int64_t blocks = random_between(&g, 1, 4);
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t c = random_channels(&g, x);
        int32_t y = random_conv(&g, x, c * 2 + 1, 1, 1, false);
        y = random_conv(&g, y, 0, 3, 1, true);
        y = random_conv(&g, y, c, 1, 1, false);
        const oct_attributes add = {.activation = (oct_activation)random_between(&g, 0, 1)};
        x = random_node(&g, OCT_OP_ADD, (const int32_t[]){x, y}, 2, &add);
    }
    const oct_attributes act = {.activation = OCT_ACTIVATION_SIGMOID};
    x = random_node(&g, OCT_OP_ACTIVATION, &x, 1, &act);
    const int32_t pooled = random_node(&g, OCT_OP_GLOBAL_POOL, &x, 1, &(oct_attributes){0});
    const int32_t logits = random_linear(&g, pooled, 7, OCT_ACTIVATION_NONE, OCT_NONE);
    const oct_value *value = oct_graph_value(graph, x);
    if (value == NULL || logits == OCT_NONE) return false;
    const int64_t c = value->shape.dims[3], pixels = value->shape.dims[1] * value->shape.dims[2];
    const oct_attributes flat = {.shape = oct_shape_of(3, (const int64_t[]){1, pixels, c})};
    x = random_node(&g, OCT_OP_RESHAPE, &x, 1, &flat);
    const int32_t first = random_constant(&g, 3, 1, 2, c, 0);
    x = random_node(&g, OCT_OP_CONCAT, (const int32_t[]){first, x}, 2, &(oct_attributes){0});
    const int32_t place = random_constant(&g, 3, 1, pixels + 2, c, 0);
    x = random_node(&g, OCT_OP_ADD, (const int32_t[]){x, place}, 2, &(oct_attributes){0});
    for (int64_t i = random_between(&g, 1, 2); i > 0; i--) x = random_tokens(&g, x);
    const oct_attributes slice = {.start = 1, .length = pixels};
    x = random_node(&g, OCT_OP_SLICE, &x, 1, &slice);
    x = random_linear(&g, x, 4, OCT_ACTIVATION_SIGMOID, OCT_NONE);
    if (x == OCT_NONE) return false;
    return oct_graph_output(graph, logits, "logits") == OCTET_OK && oct_graph_output(graph, x, "boxes") == OCTET_OK;
}

#endif
