/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral weights: the graph's constants, moved out of it and shared by reference count. */
#include "engine/plan.h"

#include "base/alloc.h"
#include "engine/internal.h"

bool oct_value_is_constant(const oct_graph *graph, int32_t id) {
    return id != graph->input && graph->values[id].producer == OCT_NONE;
}

static void weights_free(oct_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        oct_free(weights->items[i].data);
        oct_free(weights->items[i].codes);
    }
    oct_free(weights->items);
    oct_arena_free(&weights->arena);
    oct_free(weights);
}

/* Which of the constants, in order of value id, this one is. */
static int32_t constant_index(const oct_graph *graph, int32_t id) {
    int32_t index = 0;
    for (int32_t i = 0; i < id; i++) index += oct_value_is_constant(graph, i);
    return index;
}

octet_status oct_weights_from_graph(oct_weights **out, oct_graph *graph) {
    *out = NULL;
    size_t count = 0;
    for (size_t i = 0; i < graph->value_count; i++) count += oct_value_is_constant(graph, (int32_t)i);
    oct_weights *weights = oct_calloc(1, sizeof *weights);
    if (weights == NULL) return oct_fail_memory();
    weights->references = 1;
    weights->items = oct_calloc(count, sizeof *weights->items);
    if (weights->items == NULL) {
        weights_free(weights);
        return oct_fail_memory();
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        if (!oct_value_is_constant(graph, (int32_t)i)) continue;
        oct_constant *item = &weights->items[weights->count++];
        item->shape = graph->values[i].shape;
        item->form = graph->values[i].forms[0];
        if (item->form.scales != OCT_NONE) item->form.scales = constant_index(graph, item->form.scales);
        item->form.factors = OCT_NONE;
        item->name = oct_arena_strdup(&weights->arena, graph->values[i].name != NULL ? graph->values[i].name : "");
        if (item->name == NULL) {
            weights_free(weights);
            return oct_fail_memory();
        }
    }
    /* Nothing can fail any more: now the data may change hands. */
    size_t next = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        if (!oct_value_is_constant(graph, (int32_t)i)) continue;
        weights->items[next].data = graph->values[i].data;
        weights->items[next++].codes = graph->values[i].codes;
        graph->values[i].data = NULL;
        graph->values[i].codes = NULL;
    }
    *out = weights;
    return OCTET_OK;
}

oct_weights *oct_weights_retain(oct_weights *weights) {
    __atomic_add_fetch(&weights->references, 1, __ATOMIC_RELAXED);
    return weights;
}

void oct_weights_release(oct_weights *weights) {
    if (weights != NULL && __atomic_sub_fetch(&weights->references, 1, __ATOMIC_ACQ_REL) == 0) weights_free(weights);
}
