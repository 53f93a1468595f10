/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h: recipes. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/ops.h"
#include "octet/lab.h"
#include "quant/learn.h"
#include "runtime/give.h"
#include "runtime/options.h"
#include "runtime/recipes.h"

octet_status octet_lab_open_recipe(const char *place, const octet_open_options *options, const char *name,
                                   const char *text, octet_model **model) {
    octet_open_options own = OCTET_OPEN_OPTIONS_DEFAULT;
    if (model != NULL) *model = NULL;
    if (name == NULL || text == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "open with a recipe: expected its name and text, found NULL");
    if (options != NULL) OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_open_options"));
    if (own.recipe != NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "open with a recipe: the options name another, %s", own.recipe);
    own.recipe = name;
    return oct_model_open(place, &own, text, model);
}

static octet_status need_checkpoint(const octet_model *model, const void *other, const void *out, const char *what) {
    if (model == NULL || other == NULL || out == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected a model, a recipe and an address, found NULL", what);
    if (model->checkpoint == NULL)
        return oct_fail(OCTET_UNSUPPORTED, "%s: expected a checkpoint, found a bundle", what);
    return OCTET_OK;
}

octet_status octet_lab_recipe_text(const octet_model *model, const char *recipe, char **text) {
    if (text != NULL) *text = NULL;
    OCT_TRY(need_checkpoint(model, recipe, text, "recipe"));
    OCT_TRY(oct_recipe_text_of(model, recipe, text));
    if (*text != NULL) return OCTET_OK;
    *text = oct_strdup("recipe: fp32\nbase: fp32\nrules: []\n");
    return *text != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status octet_lab_recipe_names(const octet_model *model, char **text) {
    oct_text out = {0};
    if (text != NULL) *text = NULL;
    OCT_TRY(need_checkpoint(model, model, text, "recipes"));
    for (const oct_family_recipe *r = oct_recipes_of(model->family); r->name != NULL; r++)
        oct_text_printf(&out, "%s\n", r->name);
    return oct_give_text(&out, text);
}

octet_status octet_lab_recipe_check(const char *path) {
    oct_recipe recipe;
    if (path == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "recipe: expected a path, found NULL");
    OCT_TRY(oct_recipe_read(&recipe, path));
    oct_recipe_free(&recipe);
    return OCTET_OK;
}

/* ---- as JSON */

static void put_node(oct_text *out, const oct_node *node) {
    const bool is_map = node->kind == OCT_NODE_MAP;
    switch (node->kind) {
    case OCT_NODE_NULL:
        oct_text_puts(out, "null");
        return;
    case OCT_NODE_BOOL:
        oct_text_puts(out, node->boolean ? "true" : "false");
        return;
    case OCT_NODE_INT:
        oct_text_printf(out, "%" PRId64, node->integer);
        return;
    case OCT_NODE_REAL:
        oct_text_printf(out, "%.17g", node->real);
        return;
    case OCT_NODE_STRING:
        oct_text_json(out, node->string);
        return;
    case OCT_NODE_LIST:
    case OCT_NODE_MAP:
        break;
    }
    oct_text_puts(out, is_map ? "{" : "[");
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0) oct_text_puts(out, ", ");
        if (is_map) oct_text_json(out, node->keys[i]);
        if (is_map) oct_text_puts(out, ": ");
        put_node(out, node->items[i]);
    }
    oct_text_puts(out, is_map ? "}" : "]");
}

octet_status octet_lab_recipe_json(const char *name, const char *text, char **json) {
    oct_recipe recipe;
    oct_text out = {0};
    if (json != NULL) *json = NULL;
    if (name == NULL || text == NULL || json == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "recipe: expected its name, text and an address, found NULL");
    OCT_TRY(oct_recipe_parse(&recipe, name, text, strlen(text)));
    put_node(&out, recipe.document.root);
    oct_recipe_free(&recipe);
    return oct_give_text(&out, json);
}

/* ---- what it makes of a graph */

static void put_numbers(oct_text *out, const char *key, const oct_recipe_numbers *numbers, const oct_recipe *recipe) {
    oct_text words = {0};
    if (numbers->is_set)
        oct_recipe_numbers_print(numbers, &words);
    else
        oct_text_puts(&words, oct_format_name(recipe->base));
    oct_text_printf(out, ", \"%s\": ", key);
    oct_text_json(out, words.data != NULL ? words.data : "");
    out->failed |= words.failed;
    oct_text_free(&words);
}

/* Of the numbers that a node reads: its weights, or the others. */
static int64_t read_count(const oct_graph *graph, const oct_graph_node *node, bool weights) {
    int64_t count = 0;
    for (int i = 0; i < node->input_count; i++) {
        const oct_value *value = &graph->values[node->inputs[i]];
        const bool is_weight = value->producer == OCT_NONE && node->inputs[i] != graph->input;
        if (is_weight == weights) count += oct_shape_count(&value->shape);
    }
    return count;
}

static void put_op(oct_text *out, const oct_recipe *recipe, const oct_graph *graph, size_t index,
                   const oct_decision *decision) {
    const oct_graph_node *node = &graph->nodes[index];
    oct_text_printf(out, "%s{\"op\": ", index > 0 ? ",\n " : "");
    oct_text_json(out, node->name);
    oct_text_printf(out, ", \"kind\": \"%s\", \"shape\": ", oct_op_rows[node->op].name);
    oct_shape_print(&graph->values[node->output].shape, out);
    oct_text_printf(out, ", \"weights\": %" PRId64 ", \"reads\": %" PRId64 ", \"flops\": %" PRId64 ", \"narrow\": %s",
                    read_count(graph, node, true), read_count(graph, node, false), oct_node_flops(graph, node),
                    decision->is_narrow ? "true" : "false");
    put_numbers(out, "weight", &decision->choice.weights, recipe);
    put_numbers(out, "activation", &decision->choice.activations, recipe);
    if (decision->rule != OCT_NONE)
        oct_text_printf(out, ", \"rule\": %d}", recipe->rules[decision->rule].line);
    else
        oct_text_puts(out, ", \"rule\": null}");
}

static octet_status describe(octet_model *model, const oct_recipe *recipe, bool json, oct_text *out) {
    oct_graph graph;
    oct_decisions decisions = {0};
    OCT_TRY(oct_model_graph(model, model->height, model->width, &graph));
    octet_status status = oct_graph_infer(&graph, model->batch);
    if (status == OCTET_OK) status = oct_recipe_apply(recipe, &graph, &decisions);
    if (status == OCTET_OK && !json) oct_decisions_print(recipe, &graph, &decisions, out);
    if (status == OCTET_OK && json) {
        oct_text_puts(out, "[");
        for (size_t i = 0; i < graph.node_count; i++) put_op(out, recipe, &graph, i, &decisions.nodes[i]);
        oct_text_puts(out, "]\n");
    }
    oct_decisions_free(&decisions);
    oct_graph_free(&graph);
    return status;
}

/* The recipe of a text, for a model that was opened without one. */
static octet_status parse_for(const octet_model *model, const char *name, const char *text, oct_recipe *recipe) {
    if (text == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "recipe: expected its text, found NULL");
    if (model->recipe != NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "recipe: expected a model opened without one, found %s",
                        model->recipe->name);
    return oct_recipe_parse(recipe, name, text, strlen(text));
}

octet_status octet_lab_recipe_describe(octet_model *model, const char *name, const char *text, int json,
                                       char **result) {
    oct_recipe recipe;
    oct_text out = {0};
    if (result != NULL) *result = NULL;
    OCT_TRY(need_checkpoint(model, name, result, "recipe"));
    OCT_TRY(parse_for(model, name, text, &recipe));
    octet_status status = describe(model, &recipe, json != 0, &out);
    oct_recipe_free(&recipe);
    if (status != OCTET_OK) {
        oct_text_free(&out);
        return status;
    }
    return oct_give_text(&out, result);
}

static octet_status needs_pictures(octet_model *model, const oct_recipe *recipe, int *needs) {
    oct_graph graph;
    oct_decisions decisions = {0};
    oct_quant_watch_list list = {0};
    OCT_TRY(oct_model_graph(model, model->height, model->width, &graph));
    octet_status status = oct_recipe_apply(recipe, &graph, &decisions);
    if (status == OCTET_OK) status = oct_quant_needs(recipe, &graph, &decisions, NULL, &list);
    if (status == OCTET_OK) *needs = list.pass != OCT_PASS_NONE;
    oct_quant_watch_list_free(&list);
    oct_decisions_free(&decisions);
    oct_graph_free(&graph);
    return status;
}

octet_status octet_lab_recipe_needs_pictures(octet_model *model, const char *name, const char *text, int *needs) {
    oct_recipe recipe;
    OCT_TRY(need_checkpoint(model, name, needs, "recipe"));
    *needs = 0;
    OCT_TRY(parse_for(model, name, text, &recipe));
    octet_status status = needs_pictures(model, &recipe, needs);
    oct_recipe_free(&recipe);
    return status;
}
