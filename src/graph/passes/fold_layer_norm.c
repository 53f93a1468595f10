/* SPDX-License-Identifier: Apache-2.0 */
/* w (n gamma + beta) + b  =  (w gamma) n + (b + w beta), n the normalized row: gamma becomes ones, beta zeros. */
#include "base/alloc.h"
#include "graph/ops/rules.h"
#include "graph/passes.h"
#include "graph/passes/edit.h"

/* Every reader is a linear with constant weight and bias that takes the value as its input and nothing else. */
static bool read_by_linears_alone(const oct_graph *graph, int32_t value) {
    if (graph->values[value].is_output) return false;
    size_t readers = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != value) continue;
            if (j != 0 || node->op != OCT_OP_LINEAR || graph->values[node->inputs[1]].data == NULL) return false;
            if (node->attributes.has_bias && graph->values[node->inputs[2]].data == NULL) return false;
            readers++;
        }
    }
    return readers > 0;
}

static octet_status fold_into(oct_graph *graph, oct_graph_node *linear, const float *gamma, const float *beta) {
    int64_t rows = graph->values[linear->inputs[1]].shape.dims[0];
    int64_t depth = graph->values[linear->inputs[1]].shape.dims[1];
    if (!linear->attributes.has_bias) OCT_TRY(oct_edit_add_bias(graph, linear, rows));
    float *weight = oct_edit_constant(graph, linear, 1);
    if (weight == NULL) return oct_error_status();
    float *bias = oct_edit_constant(graph, linear, 2);
    if (bias == NULL) return oct_error_status();
    for (int64_t m = 0; m < rows; m++) {
        bias[m] = (float)((double)bias[m] + oct_dot(weight + m * depth, beta, depth));
        for (int64_t k = 0; k < depth; k++) weight[m * depth + k] *= gamma[k];
    }
    return OCTET_OK;
}

octet_status oct_pass_fold_layer_norm(oct_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *norm = &graph->nodes[i];
        if (norm->op != OCT_OP_LAYER_NORM || !read_by_linears_alone(graph, norm->output)) continue;
        if (graph->values[norm->inputs[1]].data == NULL || graph->values[norm->inputs[2]].data == NULL) continue;
        /* first constants of its own, that are then read and written */
        float *gamma = oct_edit_constant(graph, norm, 1);
        if (gamma == NULL) return oct_error_status();
        float *beta = oct_edit_constant(graph, norm, 2);
        if (beta == NULL) return oct_error_status();
        for (size_t j = i + 1; j < graph->node_count; j++) {
            oct_graph_node *reader = &graph->nodes[j];
            if (reader->input_count > 0 && reader->inputs[0] == norm->output) {
                OCT_TRY(fold_into(graph, reader, gamma, beta));
            }
        }
        int64_t channels = graph->values[norm->inputs[1]].shape.dims[0];
        for (int64_t c = 0; c < channels; c++) {
            gamma[c] = 1;
            beta[c] = 0;
        }
    }
    return OCTET_OK;
}
