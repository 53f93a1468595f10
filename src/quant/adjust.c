/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/adjust.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/passes/edit.h"
#include "quant/equalize.h"
#include "quant/inputs.h"
#include "quant/product.h"

/* ---- smoothing */

/* Factors of the node's input, if the recipe asks for them and the file has them. */
static octet_status factors_of(const oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                               size_t index, const oct_op_vector **factors) {
    const oct_graph_node *node = &graph->nodes[index];
    const oct_decision *decision = &decisions->nodes[index];
    oct_product product;
    *factors = NULL;
    if (decision->choice.smoothing == OCT_SMOOTHING_NONE || oct_quant_is_kept(node, decision, scales) ||
        !oct_product_of(graph, node, &product))
        return OCTET_OK;
    *factors = oct_scale_file_smoothing(scales, node->name);
    if (*factors == NULL || (int64_t)(*factors)->count == product.inputs) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "scales: smoothing of %s: expected %lld factors, found %zu", node->name,
                    (long long)product.inputs, (*factors)->count);
}

/* Whether all that read `value` are smoothed by the same factors. */
static bool all_agree(const oct_graph *graph, const oct_op_vector *const *factors, int32_t value,
                      const oct_op_vector *wanted) {
    if (graph->values[value].is_output) return false;
    for (size_t i = 0; i < graph->node_count; i++) {
        for (int j = 0; j < graph->nodes[i].input_count; j++) {
            if (graph->nodes[i].inputs[j] != value) continue;
            if (j > 0 || factors[i] == NULL ||
                memcmp(factors[i]->values, wanted->values, wanted->count * sizeof(float)) != 0)
                return false;
        }
    }
    return true;
}

/* The node that can make `value` smoothed: what makes it, or the value projection of the attention that does. */
static oct_graph_node *folds_into(const oct_graph *graph, int32_t value) {
    oct_graph_node *node = oct_edit_producer(graph, value);
    oct_product product;
    if (node != NULL && node->op == OCT_OP_ATTENTION) {
        if (!oct_edit_is_private(graph, node->inputs[2])) return NULL;
        node = oct_edit_producer(graph, node->inputs[2]);
        if (node != NULL && (node->op == OCT_OP_LAYER_NORM || node->attributes.activation != OCT_ACTIVATION_NONE))
            return NULL;
    }
    if (node == NULL || node->op == OCT_OP_LAYER_NORM) return node;
    const oct_activation activation = node->attributes.activation;
    if (!oct_product_of(graph, node, &product) || node->attributes.has_residual ||
        (activation != OCT_ACTIVATION_NONE && activation != OCT_ACTIVATION_RELU))
        return NULL;
    return node;
}

/* Smooths `value` where it is made; *folded says whether that was right. */
static octet_status fold(oct_graph *graph, oct_adjusted *adjusted, const oct_op_vector *const *factors, int32_t value,
                         const oct_op_vector *wanted, bool *folded) {
    *folded = false;
    if (!all_agree(graph, factors, value, wanted)) return OCTET_OK;
    oct_graph_node *maker = folds_into(graph, value);
    if (maker == NULL) return OCTET_OK;
    *folded = true;
    OCT_TRY(oct_adjusted_scale_node(graph, maker, wanted->values));
    OCT_TRY(oct_adjusted_scale_value(adjusted, graph, value, wanted->values));
    if (maker->output == value) return OCTET_OK;
    return oct_adjusted_scale_value(adjusted, graph, maker->output, wanted->values);
}

static octet_status divide_weight(oct_graph *graph, oct_graph_node *node, const oct_op_vector *factors) {
    oct_product product;
    float *weight = oct_edit_constant(graph, node, 1);
    if (weight == NULL) return oct_error_status();
    (void)oct_product_of(graph, node, &product);
    oct_product_divide_columns(&product, weight, factors->values);
    return OCTET_OK;
}

/* Smooths one node's input; its readers are visited in the graph's order, so the first one folds. `done` marks values
 * that are folded. */
static octet_status smooth(oct_graph *graph, const oct_decisions *decisions, oct_adjusted *adjusted,
                           const oct_op_vector *const *factors, bool *done, size_t index) {
    const oct_op_vector *mine = factors[index];
    oct_graph_node *node = &graph->nodes[index];
    const int32_t value = node->inputs[0];
    bool folded = done[value];
    if (!folded) OCT_TRY(fold(graph, adjusted, factors, value, mine, &folded));
    done[value] = folded;
    const oct_recipe_numbers *activations = &decisions->nodes[index].choice.activations;
    if (!folded && (!activations->is_set || !oct_format_is_stored(activations->format) ||
                    activations->format == OCT_FORMAT_FP32)) {
        oct_text_printf(&adjusted->report, "%s: not smoothed: its input is not narrow and what makes it cannot be\n",
                        node->name);
        return OCTET_OK;
    }
    if (!folded) {
        float *own = oct_arena_alloc(&adjusted->arena, mine->count * sizeof *own);
        if (own == NULL) return oct_fail_memory();
        memcpy(own, mine->values, mine->count * sizeof *own);
        adjusted->inputs[index] = own;
    }
    oct_text_printf(&adjusted->report, "%s: smoothed, %s\n", node->name,
                    folded ? "its input where it is made" : "its input where it is rounded");
    return divide_weight(graph, node, mine);
}

static octet_status smooth_all(oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                               oct_adjusted *adjusted) {
    const oct_op_vector **factors = oct_calloc(graph->node_count + 1, sizeof(oct_op_vector *));
    bool *done = oct_calloc(graph->value_count + graph->node_count + 1, sizeof *done);
    octet_status status = factors == NULL || done == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t i = 0; i < decisions->count && status == OCTET_OK; i++)
        status = factors_of(graph, decisions, scales, i, &factors[i]);
    for (size_t i = 0; i < decisions->count && status == OCTET_OK; i++)
        if (factors[i] != NULL) status = smooth(graph, decisions, adjusted, factors, done, i);
    oct_free(done);
    oct_free((void *)(uintptr_t)factors);
    return status;
}

/* ---- what rounding made necessary */

static octet_status correct_bias(oct_graph *graph, oct_graph_node *node, const oct_op_vector *bias, oct_text *report) {
    oct_product product;
    if (bias == NULL || !oct_product_of(graph, node, &product)) return OCTET_OK;
    if ((int64_t)bias->count != product.outputs)
        return oct_fail(OCTET_MISMATCH, "scales: bias of %s: expected %lld numbers, found %zu", node->name,
                        (long long)product.outputs, bias->count);
    if (!node->attributes.has_bias) OCT_TRY(oct_edit_add_bias(graph, node, product.outputs));
    float *values = oct_edit_constant(graph, node, 2);
    if (values == NULL) return oct_error_status();
    for (size_t i = 0; i < bias->count; i++) values[i] += bias->values[i];
    oct_text_printf(report, "%s: bias corrected\n", node->name);
    return OCTET_OK;
}

static octet_status take_weight(oct_graph *graph, oct_graph_node *node, const oct_recipe_numbers *numbers,
                                const oct_op_weight *rounded, oct_text *report) {
    oct_product product;
    if (rounded == NULL || !oct_product_of(graph, node, &product)) return OCTET_OK;
    const bool channel = numbers->granularity == OCT_PER_CHANNEL;
    const size_t groups = channel ? (size_t)product.outputs : 1;
    if (rounded->format != numbers->format || rounded->granularity != numbers->granularity ||
        rounded->scale_count != groups || rounded->count != product.count)
        return oct_fail(OCTET_MISMATCH,
                        "scales: rounded weights of %s: expected %zu of %s with %zu scales, found %zu of %s with %zu",
                        node->name, product.count, oct_format_name(numbers->format), groups, rounded->count,
                        oct_format_name(rounded->format), rounded->scale_count);
    float *weight = oct_edit_constant(graph, node, 1);
    if (weight == NULL) return oct_error_status();
    oct_scaled_decode(rounded->format, rounded->codes, groups, product.count / groups, product.count / groups,
                      rounded->scales, weight);
    oct_text_printf(report, "%s: weights rounded with compensation\n", node->name);
    return OCTET_OK;
}

static octet_status correct_all(oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                                oct_adjusted *adjusted) {
    for (size_t i = 0; i < decisions->count; i++) {
        const oct_decision *decision = &decisions->nodes[i];
        oct_graph_node *node = &graph->nodes[i];
        if (oct_quant_is_kept(node, decision, scales)) continue;
        if (decision->choice.weights.compensated)
            OCT_TRY(take_weight(graph, node, &decision->choice.weights, oct_scale_file_weight(scales, node->name),
                                &adjusted->report));
        if (decision->choice.bias_correction)
            OCT_TRY(correct_bias(graph, node, oct_scale_file_bias(scales, node->name), &adjusted->report));
    }
    return OCTET_OK;
}

/* ---- all */

static octet_status adjust(oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                           oct_adjusted *adjusted) {
    if (decisions->count != graph->node_count)
        return oct_fail(OCTET_INVALID_ARGUMENT, "adjusting: expected decisions of %zu nodes, found %zu",
                        graph->node_count, decisions->count);
    adjusted->value_count = graph->value_count;
    adjusted->node_count = graph->node_count;
    adjusted->values = oct_arena_alloc(&adjusted->arena, (graph->value_count + 1) * sizeof(float *));
    adjusted->inputs = oct_arena_alloc(&adjusted->arena, (graph->node_count + 1) * sizeof(float *));
    if (adjusted->values == NULL || adjusted->inputs == NULL) return oct_fail_memory();
    OCT_TRY(oct_quant_equalize(graph, decisions, adjusted));
    OCT_TRY(smooth_all(graph, decisions, scales, adjusted));
    OCT_TRY(correct_all(graph, decisions, scales, adjusted));
    return adjusted->report.failed ? oct_fail_memory() : OCTET_OK;
}

octet_status oct_quant_adjust(oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                              oct_adjusted *adjusted) {
    *adjusted = (oct_adjusted){0};
    const octet_status status = adjust(graph, decisions, scales, adjusted);
    if (status != OCTET_OK) oct_adjusted_free(adjusted);
    return status;
}

void oct_adjusted_free(oct_adjusted *adjusted) {
    oct_text_free(&adjusted->report);
    oct_arena_free(&adjusted->arena);
    *adjusted = (oct_adjusted){0};
}
