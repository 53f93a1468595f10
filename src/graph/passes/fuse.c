/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and residual sums into the product before them. */
#include "base/alloc.h"
#include "graph/passes.h"
#include "graph/passes/edit.h"

octet_status oct_pass_fuse_activation(oct_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *activation = &graph->nodes[i];
        if (activation->op != OCT_OP_ACTIVATION || !oct_edit_is_private(graph, activation->inputs[0])) continue;
        oct_graph_node *before = oct_edit_producer(graph, activation->inputs[0]);
        if (before->op != OCT_OP_CONV2D && before->op != OCT_OP_LINEAR && before->op != OCT_OP_ADD) continue;
        if (before->attributes.activation != OCT_ACTIVATION_NONE) continue;
        before->attributes.activation = activation->attributes.activation;
        oct_edit_absorb(graph, (size_t)(before - graph->nodes), i);
    }
    return oct_edit_sweep(graph, false);
}

/* Values that the input reaches: their batch is the pictures' at every batch, where a constant's stays 1. */
static bool *reached_by_input(const oct_graph *graph) {
    bool *reached = oct_calloc(graph->value_count, sizeof *reached);
    if (reached == NULL) return NULL;
    reached[graph->input] = true;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            if (reached[node->inputs[j]]) reached[node->output] = true;
        }
    }
    return reached;
}

static bool takes_residual(const oct_graph *graph, int32_t value) {
    if (!oct_edit_is_private(graph, value)) return false;
    const oct_graph_node *node = oct_edit_producer(graph, value);
    return (node->op == OCT_OP_CONV2D || node->op == OCT_OP_LINEAR) && !node->attributes.has_residual &&
           node->attributes.activation == OCT_ACTIVATION_NONE;
}

static void fuse_residual(oct_graph *graph, size_t add, int product_side) {
    const oct_graph_node sum = graph->nodes[add];
    oct_graph_node *product = oct_edit_producer(graph, sum.inputs[product_side]);
    product->inputs[product->input_count++] = sum.inputs[1 - product_side];
    product->attributes.has_residual = true;
    product->attributes.activation = sum.attributes.activation;
    oct_edit_absorb(graph, (size_t)(product - graph->nodes), add);
}

octet_status oct_pass_fuse_residual(oct_graph *graph) {
    if (graph->node_count == 0) return OCTET_OK;
    bool *reached = reached_by_input(graph);
    if (reached == NULL) return oct_fail_memory();
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *add = &graph->nodes[i];
        if (add->op != OCT_OP_ADD || !reached[add->inputs[0]] || !reached[add->inputs[1]]) continue;
        /* of two products, the one made last: the other is then ready when it runs */
        bool first = takes_residual(graph, add->inputs[0]), second = takes_residual(graph, add->inputs[1]);
        if (first && second) first = graph->values[add->inputs[0]].producer > graph->values[add->inputs[1]].producer;
        if (first || second) fuse_residual(graph, i, first ? 0 : 1);
    }
    oct_free(reached);
    return oct_edit_sweep(graph, false);
}
