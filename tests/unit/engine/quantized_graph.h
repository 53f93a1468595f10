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

typedef enum quantized_kind { QUANTIZED_INT8, QUANTIZED_E4M3, QUANTIZED_FP16, QUANTIZED_MIXED } quantized_kind;

/* Every dense product, by a coin each if `random` is not NULL. */
static inline octet_status quantize_products(oct_graph *graph, const float *input, quantized_kind kind,
                                             uint64_t *random) {
    value_ranges ranges;
    if (!ranges_make(&ranges, graph, input)) return OCTET_OUT_OF_MEMORY;
    oct_quantize_decision *decisions = oct_calloc(graph->node_count, sizeof *decisions);
    size_t count = 0;
    for (size_t i = 0; decisions != NULL && i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR) continue;
        if (node->op == OCT_OP_CONV2D && node->attributes.groups != 1) continue;
        quantized_kind one = kind;
        if (kind == QUANTIZED_MIXED) one = (quantized_kind)oct_random_below(random, 3);
        const uint64_t die = random != NULL ? oct_random_below(random, 8) : 1;
        if (die == 0) continue;
        const oct_format format = one == QUANTIZED_INT8   ? OCT_FORMAT_INT8
                                  : one == QUANTIZED_E4M3 ? OCT_FORMAT_E4M3
                                                          : OCT_FORMAT_FP16;
        oct_quantize_decision d = {.node = node->name,
                                   .weight = one == QUANTIZED_FP16 ? OCT_FORMAT_FP32 : format,
                                   .weight_granularity = die < 6 ? OCT_PER_CHANNEL : OCT_PER_TENSOR,
                                   .input = format,
                                   .input_scale = range_scale(&ranges, format, node->inputs[0]),
                                   .output = OCT_FORMAT_FP32,
                                   .output_scale = 1.0f};
        if (node->op == OCT_OP_LINEAR && (die >= 4 || random == NULL) && one != QUANTIZED_FP16)
            d.input_granularity = OCT_PER_ROW;
        if (random != NULL && oct_random_below(random, 4) == 0 && !graph->values[node->output].is_output) {
            d.output = format;
            d.output_scale = range_scale(&ranges, format, node->output);
        }
        decisions[count++] = d;
    }
    const octet_status status = decisions == NULL ? oct_fail_memory() : oct_graph_quantize(graph, decisions, count);
    oct_free(decisions);
    oct_free(ranges.amax);
    return status;
}

/* A network whose every op is exact once its products are in int8: convolutions, sums, moves, linears. */
static inline bool exact_graph_make(oct_graph *graph, uint64_t seed) {
    random_graph g = {.graph = graph, .random = seed};
    const int64_t size = random_between(&g, 4, 14);
    int32_t x = oct_graph_input(graph, "picture", oct_shape_of(4, (const int64_t[]){1, size, size + 2, 3}));
    x = random_conv(&g, x, random_between(&g, 1, 40), (int)random_between(&g, 1, 4), 2, false);
    const int64_t blocks = random_between(&g, 1, 4);
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t c = random_channels(&g, x);
        int32_t y = random_conv(&g, x, c * 2 + 1, 1, 1, false);
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
