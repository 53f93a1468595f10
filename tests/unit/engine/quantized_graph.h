/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs quantized for tests: scales from one run in float32, formats drawn or given. */
#ifndef OCT_TESTS_QUANTIZED_GRAPH_H
#define OCT_TESTS_QUANTIZED_GRAPH_H

#include "graph/quantize.h"
#include "graph/stored.h"
#include "unit/engine/random_graph.h"

/* The largest magnitude of every value in one run. */
typedef struct value_ranges {
    const oct_graph *graph;
    float *amax; /* a value */
} value_ranges;

static inline void note_range(void *user, const oct_graph_node *node, const oct_array *output) {
    value_ranges *ranges = user;
    ranges->amax[node->output] = oct_amax_finite(output->data, (size_t)oct_shape_count(&output->shape));
}

/* The graph must be inferred for the batch of `input`. False: no memory. */
static inline bool ranges_make(value_ranges *ranges, const oct_graph *graph, const float *input) {
    const size_t outputs = oct_graph_output_count(graph);
    oct_array *arrays = oct_calloc(outputs, sizeof *arrays);
    *ranges = (value_ranges){graph, oct_calloc(graph->value_count, sizeof(float))};
    bool good = arrays != NULL && ranges->amax != NULL;
    if (good) {
        ranges->amax[graph->input] =
            oct_amax_finite(input, (size_t)oct_shape_count(&graph->values[graph->input].shape));
        good = oct_graph_evaluate(graph, input, arrays, outputs, note_range, ranges) == OCTET_OK;
    }
    for (size_t i = 0; good && i < outputs; i++) oct_free(arrays[i].data);
    oct_free(arrays);
    if (!good) oct_free(ranges->amax);
    return good;
}

static inline float range_scale(const value_ranges *ranges, oct_format format, int32_t value) {
    const float scale = oct_format_scale(format, ranges->amax[value]);
    return scale < 1e-6f ? 1e-6f : scale;
}

/* What becomes of the products; QUANTIZED_MIXED draws one of all forms for each, other ops narrow too. */
typedef enum quantized_kind { QUANTIZED_INT8, QUANTIZED_E4M3, QUANTIZED_FP16, QUANTIZED_MIXED } quantized_kind;

/* Decisions, and the vectors they point to. */
typedef struct quantized_decisions {
    oct_quantize_decision *items;
    size_t count;
    oct_arena vectors;
    uint64_t *random;
    const value_ranges *ranges;
    bool failed; /* no memory */
} quantized_decisions;

static inline float *draw_vector(quantized_decisions *q, int64_t count, float about) {
    float *vector = oct_arena_alloc(&q->vectors, (size_t)count * sizeof *vector);
    if (vector == NULL) q->failed = true;
    for (int64_t i = 0; vector != NULL && i < count; i++)
        vector[i] = about * (0.5f + (float)oct_random_below(q->random, 1000) * 0.001f);
    return vector;
}

/* Any form that activations may be stored in, of the value's range. */
static inline oct_quantize_numbers draw_numbers(quantized_decisions *q, int32_t value) {
    static const oct_format formats[] = {OCT_FORMAT_INT8,  OCT_FORMAT_INT8, OCT_FORMAT_E4M3,  OCT_FORMAT_E4M3,
                                         OCT_FORMAT_FP16,  OCT_FORMAT_BF16, OCT_FORMAT_UINT8, OCT_FORMAT_E5M2,
                                         OCT_FORMAT_MXFP8, OCT_FORMAT_NVFP4};
    const oct_shape *shape = &q->ranges->graph->values[value].shape;
    const int64_t channels = shape->dims[shape->rank - 1];
    oct_quantize_numbers n = {.format = formats[oct_random_below(q->random, sizeof formats / sizeof *formats)]};
    n.scale = range_scale(q->ranges, n.format, value);
    if (n.format == OCT_FORMAT_NVFP4) n.scale = range_scale(q->ranges, OCT_FORMAT_E4M3, value) / 6.0f;
    if (n.format == OCT_FORMAT_UINT8) n.scale *= 2.0f, n.zero_point = (uint8_t)oct_random_below(q->random, 256);
    if (n.format == OCT_FORMAT_MXFP8) n.scale_rule = (oct_e8m0_rule)oct_random_below(q->random, 2);
    const uint64_t die = oct_random_below(q->random, 6);
    if (die == 0) n.granularity = OCT_PER_CHANNEL, n.scales = draw_vector(q, channels, n.scale);
    if (die == 1 && n.format != OCT_FORMAT_UINT8) n.granularity = OCT_PER_ROW;
    if (die == 2 && n.format != OCT_FORMAT_UINT8)
        n.granularity = OCT_PER_BLOCK, n.block = (int)oct_random_below(q->random, 40) + 1;
    if (oct_random_below(q->random, 4) == 0) n.factors = draw_vector(q, channels, 1.0f);
    return n;
}

static inline oct_quantize_numbers draw_weight(quantized_decisions *q) {
    static const oct_format formats[] = {OCT_FORMAT_INT8, OCT_FORMAT_INT8, OCT_FORMAT_E4M3,  OCT_FORMAT_E4M3,
                                         OCT_FORMAT_FP32, OCT_FORMAT_E5M2, OCT_FORMAT_MXFP8, OCT_FORMAT_NVFP4};
    oct_quantize_numbers n = {.format = formats[oct_random_below(q->random, sizeof formats / sizeof *formats)]};
    const uint64_t die = oct_random_below(q->random, 5);
    if (die == 0) n.granularity = OCT_PER_BLOCK, n.block = (int)oct_random_below(q->random, 40) + 1;
    if (die > 1) n.granularity = OCT_PER_CHANNEL;
    return n;
}

static inline oct_quantize_decision draw_decision(quantized_decisions *q, const oct_graph_node *node) {
    static const oct_format probabilities[] = {OCT_FORMAT_FP32, OCT_FORMAT_E4M3, OCT_FORMAT_INT8, OCT_FORMAT_FP16};
    oct_quantize_decision d = {.node = node->name};
    const bool product = node->op == OCT_OP_CONV2D || node->op == OCT_OP_LINEAR;
    if (product) d.weight = draw_weight(q);
    const int inputs = product || node->op == OCT_OP_GLOBAL_POOL ? 1 : (node->op == OCT_OP_ADD ? 2 : 3);
    for (int j = 0; j < inputs; j++) {
        if (oct_random_below(q->random, 4) == 0) continue;
        d.inputs[j] = draw_numbers(q, node->inputs[j]);
        const oct_value *value = &q->ranges->graph->values[node->inputs[j]];
        if (value->data != NULL) d.inputs[j].factors = NULL;
    }
    if (node->op == OCT_OP_ATTENTION) d.probabilities = probabilities[oct_random_below(q->random, 4)];
    if (oct_random_below(q->random, 5) == 0 && !q->ranges->graph->values[node->output].is_output)
        d.output = draw_numbers(q, node->output);
    return d;
}

/* One of the plain kinds: all products, weights a channel, linears a row. */
static inline oct_quantize_decision plain_decision(const quantized_decisions *q, const oct_graph_node *node,
                                                   quantized_kind kind) {
    const oct_format format = kind == QUANTIZED_INT8   ? OCT_FORMAT_INT8
                              : kind == QUANTIZED_E4M3 ? OCT_FORMAT_E4M3
                                                       : OCT_FORMAT_FP16;
    oct_quantize_decision d = {.node = node->name};
    if (kind != QUANTIZED_FP16) d.weight = (oct_quantize_numbers){.format = format, .granularity = OCT_PER_CHANNEL};
    d.inputs[0] = (oct_quantize_numbers){.format = format, .scale = range_scale(q->ranges, format, node->inputs[0])};
    if (node->op == OCT_OP_LINEAR) d.inputs[0].granularity = OCT_PER_ROW;
    return d;
}

static inline bool may_be_narrow(const oct_graph_node *node, quantized_kind kind) {
    const bool product = node->op == OCT_OP_LINEAR || node->op == OCT_OP_CONV2D;
    return product || (kind == QUANTIZED_MIXED &&
                       (node->op == OCT_OP_GLOBAL_POOL || node->op == OCT_OP_ADD || node->op == OCT_OP_ATTENTION));
}

/* `random` draws for QUANTIZED_MIXED. */
static inline octet_status quantize_products(oct_graph *graph, const float *input, quantized_kind kind,
                                             uint64_t *random) {
    value_ranges ranges;
    if (!ranges_make(&ranges, graph, input)) return OCTET_OUT_OF_MEMORY;
    quantized_decisions q = {.random = random, .ranges = &ranges};
    q.items = oct_calloc(graph->node_count, sizeof *q.items);
    for (size_t i = 0; q.items != NULL && i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (!may_be_narrow(node, kind)) continue;
        if (kind == QUANTIZED_MIXED && oct_random_below(random, 5) == 0) continue;
        q.items[q.count++] = kind == QUANTIZED_MIXED ? draw_decision(&q, node) : plain_decision(&q, node, kind);
    }
    const octet_status status =
        q.items == NULL || q.failed ? oct_fail_memory() : oct_graph_quantize(graph, q.items, q.count);
    oct_free(q.items);
    oct_arena_free(&q.vectors);
    oct_free(ranges.amax);
    return status;
}

/* A network whose every op is exact once its products are in int8: convolutions, sums, moves, linears. */
static inline bool exact_graph_make(oct_graph *graph, uint64_t seed) {
    random_graph g = {.graph = graph, .random = seed};
    const int64_t size = random_between(&g, 4, 14);
    int32_t x = oct_graph_input(graph, "picture", oct_shape_of(4, (const int64_t[]){1, size, size + 2, 3}));
    x = random_conv(&g, x, random_between(&g, 1, 40), (int)random_between(&g, 1, 4), 2, false);
    x = random_conv(&g, x, 0, 3, (int)random_between(&g, 1, 3), true);
    const int64_t blocks = random_between(&g, 1, 4);
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t c = random_channels(&g, x);
        int32_t y = random_conv(&g, x, c * 2 + random_between(&g, 1, 80), 1, 1, false);
        y = random_conv(&g, y, 0, random_between(&g, 0, 2) == 0 ? 5 : 3, 1, true);
        y = random_conv(&g, y, c + 3, 3, 1, false);
        y = random_conv(&g, y, c, 1, 1, false);
        const oct_attributes add = {.activation = (oct_activation)random_between(&g, 0, 2)};
        x = random_node(&g, OCT_OP_ADD, (const int32_t[]){x, y}, 2, &add);
    }
    const oct_value *value = oct_graph_value(graph, x);
    if (value == NULL) return false;
    const int64_t c = value->shape.dims[3], pixels = value->shape.dims[1] * value->shape.dims[2];
    const oct_attributes flat = {.shape = oct_shape_of(3, (const int64_t[]){1, pixels, c})};
    x = random_node(&g, OCT_OP_RESHAPE, &x, 1, &flat);
    const int32_t wide = random_linear(&g, x, random_between(&g, 3, 70), OCT_ACTIVATION_GELU, OCT_NONE);
    x = random_linear(&g, wide, c, OCT_ACTIVATION_NONE, x);
    const oct_attributes add = {0};
    const int32_t place = random_constant(&g, 3, 1, pixels, c, 0);
    x = random_node(&g, OCT_OP_ADD, (const int32_t[]){x, place}, 2, &add);
    const int32_t last = random_linear(&g, x, random_between(&g, 1, 9), OCT_ACTIVATION_SIGMOID, OCT_NONE);
    return oct_graph_output(graph, x, "tokens") == OCTET_OK && oct_graph_output(graph, last, "scores") == OCTET_OK;
}

#endif
