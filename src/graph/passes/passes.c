/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code, and the passes in their order. */
#include "graph/passes.h"

#include "base/alloc.h"
#include "graph/passes/edit.h"

octet_status oct_pass_dead_code(oct_graph *graph) {
    if (graph->value_count == 0) return OCTET_OK;
    bool *live = oct_calloc(graph->value_count, sizeof *live);
    if (live == NULL) return oct_fail_memory();
    for (size_t i = 0; i < graph->value_count; i++) live[i] = graph->values[i].is_output;
    for (size_t i = graph->node_count; i-- > 0;) {
        oct_graph_node *node = &graph->nodes[i];
        if (live[node->output]) {
            for (int j = 0; j < node->input_count; j++) live[node->inputs[j]] = true;
            continue;
        }
        graph->values[node->output].producer = OCT_NONE;
        node->op = OCT_OP_REMOVED;
        node->input_count = 0;
    }
    oct_free(live);
    return oct_edit_sweep(graph, true);
}

octet_status oct_passes_run(oct_graph *graph) {
    OCT_TRY(oct_pass_fold_batch_norm(graph));
    OCT_TRY(oct_pass_fuse_residual(graph));
    OCT_TRY(oct_pass_fuse_activation(graph));
    OCT_TRY(oct_pass_dead_code(graph));
    return oct_graph_check(graph);
}
