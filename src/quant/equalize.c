/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/equalize.h"

#include <math.h>

#include "base/alloc.h"
#include "graph/passes/edit.h"
#include "quant/product.h"

#define SWEEPS 20
#define SETTLED 0.01f    /* a sweep that moves no scale by more is the last */
#define FACTOR 0x1p20f   /* and the most that one sweep moves one */
#define CARE (1 - 1e-4f) /* of 6: what sums in float32 may add to a bound */
#define PASSED 3         /* values between two products */

/* ---- shared with smoothing */

static int64_t channels_of(const oct_graph *graph, int32_t value) {
    const oct_shape *shape = &graph->values[value].shape;
    return shape->dims[shape->rank - 1];
}

octet_status oct_adjusted_scale_value(oct_adjusted *adjusted, const oct_graph *graph, int32_t value,
                                      const float *factors) {
    const size_t channels = (size_t)channels_of(graph, value);
    const float *old = adjusted->values[value];
    float *product = oct_arena_alloc(&adjusted->arena, channels * sizeof *product);
    if (product == NULL) return oct_fail_memory();
    for (size_t c = 0; c < channels; c++) product[c] = factors[c] * (old != NULL ? old[c] : 1.0f);
    adjusted->values[value] = product;
    return OCTET_OK;
}

static octet_status scale_vector(oct_graph *graph, oct_graph_node *node, int input, const float *factors) {
    float *vector = oct_edit_constant(graph, node, input);
    if (vector == NULL) return oct_error_status();
    const int64_t count = graph->values[node->inputs[input]].shape.dims[0];
    for (int64_t c = 0; c < count; c++) vector[c] *= factors[c];
    return OCTET_OK;
}

octet_status oct_adjusted_scale_node(oct_graph *graph, oct_graph_node *node, const float *factors) {
    if (node->op == OCT_OP_LAYER_NORM) {
        OCT_TRY(scale_vector(graph, node, 1, factors));
        return scale_vector(graph, node, 2, factors);
    }
    oct_product product;
    float *weight = oct_edit_constant(graph, node, 1);
    if (weight == NULL) return oct_error_status();
    (void)oct_product_of(graph, node, &product);
    oct_product_scale_rows(&product, weight, factors);
    return node->attributes.has_bias ? scale_vector(graph, node, 2, factors) : OCTET_OK;
}

/* ---- pairs */

typedef struct couple {
    int32_t first, second;  /* nodes */
    int32_t passed[PASSED]; /* the values from the one to the other */
    int count;
    size_t limited; /* channels that may reach 6 */
} couple;

/* The one node that reads a value, or OCT_NONE. */
static int32_t only_reader(const oct_graph *graph, int32_t value) {
    if (!oct_edit_is_private(graph, value)) return OCT_NONE;
    for (size_t i = 0; i < graph->node_count; i++)
        for (int j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == value) return (int32_t)i;
    return OCT_NONE;
}

/* Why a node's output cannot be scaled, a channel at a time; NULL: it can. */
static const char *why_not(const oct_graph_node *node) {
    const oct_activation activation = node->attributes.activation;
    if (node->attributes.has_residual) return "a residual is added to its output";
    if (activation == OCT_ACTIVATION_GELU || activation == OCT_ACTIVATION_SIGMOID)
        return "its activation is not linear for positive numbers";
    return NULL;
}

/* Follows what `pair->first` makes to the product that alone reads it. */
static const char *find_second(const oct_graph *graph, couple *pair) {
    int32_t value = graph->nodes[pair->first].output;
    oct_product product;
    for (pair->count = 0; pair->count < PASSED;) {
        pair->passed[pair->count++] = value;
        const int32_t reader = only_reader(graph, value);
        if (reader == OCT_NONE) return "more than one op reads its output";
        const oct_graph_node *node = &graph->nodes[reader];
        if (node->inputs[0] == value && oct_product_of(graph, node, &product)) {
            pair->second = reader;
            return NULL;
        }
        const bool passes =
            node->op == OCT_OP_GLOBAL_POOL || (node->op == OCT_OP_ATTENTION && node->inputs[2] == value);
        if (!passes) break;
        value = node->output;
    }
    return "no convolution or linear reads its output";
}

/* ---- scales */

/* How large each output of a convolution can get before its activation: the input lies in [0, 6] times its factors.
 * False: nothing is known of the input. */
static bool find_tops(const oct_graph *graph, const oct_adjusted *adjusted, const oct_graph_node *node, float *tops) {
    const oct_graph_node *before = oct_edit_producer(graph, node->inputs[0]);
    oct_product p;
    if (before == NULL || before->attributes.activation != OCT_ACTIVATION_RELU6 || !oct_product_of(graph, node, &p))
        return false;
    const float *factors = adjusted->values[node->inputs[0]], *weight = graph->values[node->inputs[1]].data;
    const float *bias = node->attributes.has_bias ? graph->values[node->inputs[2]].data : NULL;
    for (int64_t o = 0; o < p.outputs; o++) {
        double top = bias != NULL ? (double)bias[o] : 0;
        const int64_t first = o / (p.outputs / p.groups) * p.depth;
        for (int64_t t = 0; t < p.taps; t++, weight += p.depth)
            for (int64_t c = 0; c < p.depth; c++)
                if (weight[c] > 0) top += 6.0 * (double)weight[c] * (factors != NULL ? (double)factors[first + c] : 1);
        tops[o] = (float)top;
    }
    return true;
}

/* ReLU6 is linear for a channel as long as it stays below 6, before and after. */
static void respect_clip(const oct_graph *graph, const oct_adjusted *adjusted, const oct_graph_node *node,
                         float *factors, float *tops, size_t channels, size_t *limited) {
    const bool known = find_tops(graph, adjusted, node, tops);
    *limited = 0;
    for (size_t c = 0; c < channels; c++) {
        const bool free = known && tops[c] < 6 * CARE;
        *limited += !free;
        if (!free) factors[c] = 1;
        if (free && tops[c] * factors[c] > 6 * CARE) factors[c] = 6 * CARE / tops[c];
    }
}

/* One sweep over one pair; *moved grows to the largest logarithm of a factor. `rows` and `columns` are scratch, a float
 * a channel. */
static octet_status equalize_pair(oct_graph *graph, oct_adjusted *adjusted, couple *pair, float *rows, float *columns,
                                  float *moved) {
    oct_graph_node *first = &graph->nodes[pair->first], *second = &graph->nodes[pair->second];
    oct_product a, b;
    (void)oct_product_of(graph, first, &a);
    (void)oct_product_of(graph, second, &b);
    const size_t channels = (size_t)a.outputs;
    oct_product_row_amax(&a, graph->values[first->inputs[1]].data, rows);
    oct_product_column_amax(&b, graph->values[second->inputs[1]].data, columns);
    for (size_t c = 0; c < channels; c++) {
        const float factor = rows[c] > 0 && columns[c] > 0 ? sqrtf(columns[c] / rows[c]) : 1;
        columns[c] = fminf(fmaxf(factor, 1 / FACTOR), FACTOR);
    }
    if (first->attributes.activation == OCT_ACTIVATION_RELU6)
        respect_clip(graph, adjusted, first, columns, rows, channels, &pair->limited);
    for (size_t c = 0; c < channels; c++) *moved = fmaxf(*moved, fabsf(logf(columns[c])));
    OCT_TRY(oct_adjusted_scale_node(graph, first, columns));
    float *weight = oct_edit_constant(graph, second, 1);
    if (weight == NULL) return oct_error_status();
    oct_product_divide_columns(&b, weight, columns);
    for (int i = 0; i < pair->count; i++) OCT_TRY(oct_adjusted_scale_value(adjusted, graph, pair->passed[i], columns));
    return OCTET_OK;
}

static octet_status sweep(oct_graph *graph, oct_adjusted *adjusted, couple *pairs, size_t count) {
    size_t most = 1;
    for (size_t i = 0; i < count; i++) {
        const size_t channels = (size_t)channels_of(graph, pairs[i].passed[0]);
        if (channels > most) most = channels;
    }
    float *scratch = oct_calloc(2 * most, sizeof *scratch), moved = 1;
    octet_status status = scratch == NULL ? oct_fail_memory() : OCTET_OK;
    for (int s = 0; s < SWEEPS && status == OCTET_OK && moved > SETTLED; s++) {
        moved = 0;
        for (size_t i = 0; i < count && status == OCTET_OK; i++)
            status = equalize_pair(graph, adjusted, &pairs[i], scratch, scratch + most, &moved);
    }
    oct_free(scratch);
    return status;
}

static void report_pairs(const oct_graph *graph, const couple *pairs, size_t count, oct_text *report) {
    for (size_t i = 0; i < count; i++) {
        const oct_graph_node *first = &graph->nodes[pairs[i].first];
        oct_text_printf(report, "%s, %s: equalized", first->name, graph->nodes[pairs[i].second].name);
        if (pairs[i].limited > 0)
            oct_text_printf(report, ", but for %zu of %lld channels that may reach 6", pairs[i].limited,
                            (long long)channels_of(graph, first->output));
        oct_text_puts(report, "\n");
    }
}

octet_status oct_quant_equalize(oct_graph *graph, const oct_decisions *decisions, oct_adjusted *adjusted) {
    couple *pairs = oct_calloc(graph->node_count + 1, sizeof *pairs);
    if (pairs == NULL) return oct_fail_memory();
    size_t count = 0;
    for (size_t i = 0; i < decisions->count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (!decisions->nodes[i].choice.equalization) continue;
        couple *pair = &pairs[count];
        pair->first = (int32_t)i;
        const char *reason = why_not(node);
        if (reason == NULL) reason = find_second(graph, pair);
        if (reason == NULL && !decisions->nodes[pair->second].choice.equalization)
            reason = "the op that reads its output is not to be";
        if (reason == NULL)
            count++;
        else
            oct_text_printf(&adjusted->report, "%s: not equalized: %s\n", node->name, reason);
    }
    octet_status status = sweep(graph, adjusted, pairs, count);
    if (status == OCTET_OK) report_pairs(graph, pairs, count, &adjusted->report);
    oct_free(pairs);
    return status;
}
