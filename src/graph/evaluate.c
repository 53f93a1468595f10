/* SPDX-License-Identifier: Apache-2.0 */
/* A graph run by the reference bodies. A value lives until its last reader has run. */
#include <string.h>

#include "base/alloc.h"
#include "graph/ops.h"

size_t oct_graph_output_count(const oct_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->value_count; i++) count += graph->values[i].is_output;
    return count;
}

/* One array a value, owned unless a constant's or the input's. */
typedef struct evaluation {
    oct_array *arrays;
    size_t *uses; /* readers still to run, plus one if an output */
    size_t count;
} evaluation;

static bool is_owned(const oct_graph *graph, size_t value) {
    return graph->values[value].producer != OCT_NONE;
}

static void run_end(const oct_graph *graph, evaluation *run) {
    for (size_t i = 0; run->arrays != NULL && i < run->count; i++) {
        if (is_owned(graph, i)) oct_free(run->arrays[i].data);
    }
    oct_free(run->arrays);
    oct_free(run->uses);
}

static octet_status run_begin(const oct_graph *graph, const float *input, evaluation *run) {
    *run = (evaluation){.count = graph->value_count};
    run->arrays = oct_calloc(run->count, sizeof *run->arrays);
    run->uses = oct_calloc(run->count, sizeof *run->uses);
    if (run->arrays == NULL || run->uses == NULL) return oct_fail_memory();
    for (size_t i = 0; i < run->count; i++) {
        const oct_value *value = &graph->values[i];
        run->arrays[i].shape = value->shape;
        run->uses[i] = value->is_output;
        if (value->data != NULL) run->arrays[i].data = value->data;
    }
    if (run->count > 0 && !is_owned(graph, (size_t)graph->input)) {
        run->arrays[graph->input].data = (float *)input; /* bodies only read their inputs */
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        for (int j = 0; j < graph->nodes[i].input_count; j++) run->uses[graph->nodes[i].inputs[j]]++;
    }
    return OCTET_OK;
}

static octet_status run_node(const oct_graph *graph, evaluation *run, const oct_graph_node *node, oct_graph_tap tap,
                             void *user) {
    oct_array inputs[OCT_NODE_INPUTS];
    for (int j = 0; j < node->input_count; j++) inputs[j] = run->arrays[node->inputs[j]];
    oct_array *output = &run->arrays[node->output];
    output->data = oct_alloc((size_t)oct_shape_count(&output->shape) * sizeof(float));
    if (output->data == NULL) return oct_fail_memory();
    oct_op_rows[node->op].reference(&node->attributes, inputs, node->input_count, output);
    if (tap != NULL) tap(user, node, output);
    for (int j = 0; j < node->input_count; j++) {
        size_t id = (size_t)node->inputs[j];
        if (--run->uses[id] > 0 || !is_owned(graph, id)) continue;
        oct_free(run->arrays[id].data);
        run->arrays[id].data = NULL;
    }
    return OCTET_OK;
}

/* Hands the outputs over; one that is the input or a constant itself is copied. */
static octet_status take_outputs(const oct_graph *graph, evaluation *run, oct_array *outputs, size_t output_count) {
    size_t taken = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (!graph->values[i].is_output) continue;
        oct_array array = run->arrays[i];
        if (is_owned(graph, i)) {
            run->arrays[i].data = NULL;
        } else {
            size_t size = (size_t)oct_shape_count(&array.shape) * sizeof(float);
            array.data = oct_alloc(size);
            if (array.data != NULL) memcpy(array.data, run->arrays[i].data, size);
        }
        outputs[taken++] = array;
        if (array.data == NULL) {
            for (size_t j = 0; j < output_count; j++) {
                if (j < taken) oct_free(outputs[j].data);
                outputs[j] = (oct_array){0};
            }
            return oct_fail_memory();
        }
    }
    return OCTET_OK;
}

octet_status oct_graph_evaluate(const oct_graph *graph, const float *input, oct_array *outputs, size_t output_count,
                                oct_graph_tap tap, void *user) {
    for (size_t i = 0; i < output_count; i++) outputs[i] = (oct_array){0};
    size_t count = oct_graph_output_count(graph);
    if (output_count != count) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "the graph has %zu outputs, room was given for %zu", count,
                        output_count);
    }
    evaluation run;
    octet_status status = run_begin(graph, input, &run);
    for (size_t i = 0; i < graph->node_count && status == OCTET_OK; i++) {
        status = run_node(graph, &run, &graph->nodes[i], tap, user);
    }
    if (status == OCTET_OK) status = take_outputs(graph, &run, outputs, output_count);
    run_end(graph, &run);
    return status;
}
