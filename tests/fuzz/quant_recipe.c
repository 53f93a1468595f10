/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes from any bytes; what is read is applied to a small graph, and aborts if what comes out is not sound. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/recipe.h"

static void require(int condition) {
    if (!condition) abort();
}

/* input -> a (3x3 convolution) -> pool -> head.d (linear) */
static void build(oct_graph *graph) {
    int32_t x = oct_graph_input(graph, "input", (oct_shape){4, {1, 4, 4, 3}});
    const oct_attributes attributes = {
        .stride_h = 1, .stride_w = 1, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .groups = 1};
    const int32_t first[] = {
        x, oct_graph_constant(graph, "a.weight", (oct_shape){4, {8, 3, 3, 3}}, oct_calloc(216, sizeof(float)))};
    x = oct_graph_add_node(graph, OCT_OP_CONV2D, "a", first, 2, &attributes);
    x = oct_graph_add_node(graph, OCT_OP_GLOBAL_POOL, "pool", &x, 1, NULL);
    const int32_t second[] = {
        x, oct_graph_constant(graph, "d.weight", (oct_shape){2, {2, 8}}, oct_calloc(16, sizeof(float)))};
    x = oct_graph_add_node(graph, OCT_OP_LINEAR, "head.d", second, 2, NULL);
    require(oct_graph_output(graph, x, "logits") == OCTET_OK);
}

static void check_numbers(const oct_recipe_numbers *numbers) {
    if (!numbers->is_set) return;
    require(oct_format_get(numbers->format) != NULL);
    require(numbers->granularity != OCT_PER_BLOCK || numbers->block >= 8);
    require(numbers->calibrator != OCT_CALIBRATE_PERCENTILE || (numbers->percentile > 0 && numbers->percentile <= 100));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static oct_graph graph;
    static int64_t live;
    if (graph.node_count == 0) {
        build(&graph);
        live = oct_alloc_live();
    }
    oct_recipe recipe;
    oct_decisions decisions;
    oct_text text = {0};
    if (oct_recipe_parse(&recipe, "fuzz", (const char *)data, size) != OCTET_OK) {
        require(recipe.rules == NULL && strncmp(oct_error_fact(), "fuzz:", 5) == 0);
    } else if (oct_recipe_apply(&recipe, &graph, &decisions) != OCTET_OK) {
        require(decisions.nodes == NULL && strncmp(oct_error_fact(), "fuzz:", 5) == 0);
    } else {
        for (size_t i = 0; i < decisions.count; i++) {
            check_numbers(&decisions.nodes[i].choice.weights);
            check_numbers(&decisions.nodes[i].choice.activations);
            require(decisions.nodes[i].rule < (int32_t)recipe.rule_count);
        }
        oct_decisions_print(&recipe, &graph, &decisions, &text);
        oct_text_free(&text);
        oct_decisions_free(&decisions);
    }
    oct_recipe_free(&recipe);
    require(oct_alloc_live() == live);
    return 0;
}
