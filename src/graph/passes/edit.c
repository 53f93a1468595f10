/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/edit.h"

#include <string.h>

#include "base/alloc.h"

oct_graph_node *oct_edit_producer(const oct_graph *graph, int32_t value) {
    int32_t producer = graph->values[value].producer;
    return producer == OCT_NONE ? NULL : &graph->nodes[producer];
}

bool oct_edit_is_private(const oct_graph *graph, int32_t value) {
    const oct_value *v = &graph->values[value];
    return v->producer != OCT_NONE && !v->is_output && oct_graph_uses(graph, value) == 1;
}

void oct_edit_absorb(oct_graph *graph, size_t from, size_t into) {
    int32_t output = graph->nodes[into].output;
    graph->values[graph->nodes[from].output].producer = OCT_NONE;
    graph->nodes[into] = graph->nodes[from];
    graph->nodes[into].output = output;
    graph->values[output].producer = (int32_t)into;
    graph->nodes[from].op = OCT_OP_REMOVED;
    graph->nodes[from].input_count = 0;
}

int32_t oct_edit_new_constant(oct_graph *graph, const char *name, const oct_shape *shape, float *data) {
    if (data == NULL) {
        oct_fail_memory();
        return OCT_NONE;
    }
    if (oct_graph_find(graph, name) == OCT_NONE) return oct_graph_constant(graph, name, *shape, data);
    char *unique = NULL;
    for (unsigned i = 1;; i++) {
        oct_free(unique);
        unique = oct_sprintf("%s.%u", name, i);
        if (unique == NULL || oct_graph_find(graph, unique) == OCT_NONE) break;
    }
    if (unique == NULL) {
        oct_free(data);
        oct_fail_memory();
        return OCT_NONE;
    }
    int32_t id = oct_graph_constant(graph, unique, *shape, data);
    oct_free(unique);
    return id;
}

float *oct_edit_constant(oct_graph *graph, oct_graph_node *node, int index) {
    int32_t id = node->inputs[index];
    const oct_value *value = &graph->values[id];
    if (oct_graph_uses(graph, id) == 1) return value->data;
    size_t size = (size_t)oct_shape_count(&value->shape) * sizeof(float);
    float *copy = oct_alloc(size);
    if (copy != NULL) memcpy(copy, value->data, size);
    oct_shape shape = value->shape;
    int32_t own = oct_edit_new_constant(graph, value->name, &shape, copy);
    if (own == OCT_NONE) return NULL;
    node->inputs[index] = own;
    return graph->values[own].data;
}

octet_status oct_edit_add_bias(oct_graph *graph, oct_graph_node *node, int64_t length) {
    char *name = oct_sprintf("%s.bias", node->name);
    if (name == NULL) return oct_fail_memory();
    oct_shape shape = {.rank = 1, .dims = {length}};
    int32_t bias = oct_edit_new_constant(graph, name, &shape, oct_calloc((size_t)length, sizeof(float)));
    oct_free(name);
    if (bias == OCT_NONE) return oct_error_status();
    if (node->attributes.has_residual) node->inputs[3] = node->inputs[2];
    node->inputs[2] = bias;
    node->input_count++;
    node->attributes.has_bias = true;
    return OCTET_OK;
}

octet_status oct_edit_sweep(oct_graph *graph, bool unread) {
    int32_t *numbers = oct_calloc(graph->value_count, sizeof *numbers); /* readers, then new ids */
    if (numbers == NULL) return oct_fail_memory();
    size_t nodes = 0, values = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].op == OCT_OP_REMOVED) continue;
        graph->nodes[nodes] = graph->nodes[i];
        graph->values[graph->nodes[nodes].output].producer = (int32_t)nodes;
        nodes++;
    }
    graph->node_count = nodes;
    for (size_t i = 0; i < nodes; i++) {
        for (int j = 0; j < graph->nodes[i].input_count; j++) numbers[graph->nodes[i].inputs[j]]++;
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        oct_value *value = &graph->values[i];
        for (int f = 0; f < value->form_count; f++) {
            if (value->forms[f].scales != OCT_NONE) numbers[value->forms[f].scales]++;
            if (value->forms[f].factors != OCT_NONE) numbers[value->forms[f].factors]++;
        }
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        oct_value value = graph->values[i];
        bool constant = value.data != NULL || value.codes != NULL;
        bool is_input = (int32_t)i == graph->input && !constant && value.producer == OCT_NONE;
        bool keep =
            value.producer != OCT_NONE || is_input || value.is_output || (constant && (!unread || numbers[i] > 0));
        if (!keep) {
            oct_free(value.data);
            oct_free(value.codes);
            continue;
        }
        if (is_input) graph->input = (int32_t)values;
        numbers[i] = (int32_t)values;
        graph->values[values++] = value;
    }
    graph->value_count = values;
    for (size_t i = 0; i < nodes; i++) {
        oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) node->inputs[j] = numbers[node->inputs[j]];
        node->output = numbers[node->output];
    }
    for (size_t i = 0; i < values; i++) {
        oct_value *value = &graph->values[i];
        for (int f = 0; f < value->form_count; f++) {
            if (value->forms[f].scales != OCT_NONE) value->forms[f].scales = numbers[value->forms[f].scales];
            if (value->forms[f].factors != OCT_NONE) value->forms[f].factors = numbers[value->forms[f].factors];
        }
    }
    oct_free(numbers);
    return OCTET_OK;
}
