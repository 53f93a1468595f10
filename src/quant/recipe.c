/* SPDX-License-Identifier: Apache-2.0 */
/* Applying a recipe to a graph. */
#include "quant/recipe.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/ops.h"

static octet_status fail_at(const oct_recipe *recipe, int line, const char *what, const char *name, const char *more) {
    return oct_fail(OCTET_MISMATCH, "%s:%d: %s '%s' %s", recipe->document.path, line, what, name, more);
}

/* ---- what an op is */

static bool has_weights(const oct_graph *graph, const oct_graph_node *node) {
    return (node->op == OCT_OP_CONV2D || node->op == OCT_OP_LINEAR) && graph->values[node->inputs[1]].data != NULL;
}

/* Height * width of a map, tokens of a sequence, 1 of a vector. */
static int64_t pixels_of(const oct_shape *shape) {
    int64_t count = 1;
    for (int i = 1; i < shape->rank - 1; i++) count *= shape->dims[i];
    return count;
}

static int64_t channels_of(const oct_shape *shape) {
    return shape->dims[shape->rank - 1];
}

static bool in_range(int64_t value, const int64_t range[2]) {
    return value >= range[0] && value <= range[1];
}

static bool matches_any(const oct_recipe_pattern *patterns, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (oct_glob_match(patterns[i].text, name)) return true;
    }
    return false;
}

static bool selects(const oct_recipe_rule *rule, const oct_graph *graph, const oct_graph_node *node) {
    const oct_shape *input = &graph->values[node->inputs[0]].shape, *output = &graph->values[node->output].shape;
    if ((rule->kinds & 1u << node->op) == 0) return false;
    if (rule->name_count > 0 && !matches_any(rule->names, rule->name_count, node->name)) return false;
    if (matches_any(rule->nots, rule->not_count, node->name)) return false;
    if (rule->kernel[0] > 0) {
        const oct_shape *weight = node->op == OCT_OP_CONV2D ? &graph->values[node->inputs[1]].shape : NULL;
        if (weight == NULL || weight->dims[1] != rule->kernel[0] || weight->dims[2] != rule->kernel[1]) return false;
    }
    if (rule->depthwise >= 0 && (node->op == OCT_OP_CONV2D && node->attributes.groups > 1) != (rule->depthwise == 1))
        return false;
    return in_range(pixels_of(output), rule->pixels) && in_range(channels_of(input), rule->channels_in) &&
           in_range(channels_of(output), rule->channels_out);
}

/* ---- patterns that match nothing */

static size_t common_prefix(const char *a, const char *b) {
    size_t length = 0;
    while (a[length] != '\0' && a[length] == b[length]) length++;
    return length;
}

/* The op whose name is nearest to the pattern, by edit distance, else by its beginning. */
static const char *nearest_name(const oct_recipe_rule *rule, const oct_graph *graph, const char *pattern) {
    const char **names = oct_alloc((graph->node_count + 1) * sizeof *names);
    if (names == NULL) return NULL;
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (rule->kinds & 1u << graph->nodes[i].op) names[count++] = graph->nodes[i].name;
    }
    const char *nearest = oct_nearest(pattern, names, count);
    size_t longest = 0;
    for (size_t i = 0; nearest == NULL && i < count; i++) {
        if (i == 0 || common_prefix(pattern, names[i]) > longest) longest = common_prefix(pattern, names[i]);
    }
    for (size_t i = 0; nearest == NULL && i < count; i++) {
        if (common_prefix(pattern, names[i]) == longest) nearest = names[i];
    }
    oct_free(names);
    return nearest;
}

static octet_status check_patterns(const oct_recipe *recipe, const oct_recipe_rule *rule, const oct_graph *graph,
                                   const oct_recipe_pattern *patterns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t node = 0;
        while (node < graph->node_count && ((rule->kinds & 1u << graph->nodes[node].op) == 0 ||
                                            !oct_glob_match(patterns[i].text, graph->nodes[node].name)))
            node++;
        if (node < graph->node_count) continue;
        const char *nearest = nearest_name(rule, graph, patterns[i].text);
        (void)fail_at(recipe, patterns[i].line, "the pattern", patterns[i].text, "matches no op of the rule's kinds");
        return nearest != NULL ? oct_hint("the nearest op is named '%s'", nearest) : oct_error_status();
    }
    return OCTET_OK;
}

/* ---- applying */

static octet_status apply_sections(const oct_recipe *recipe, int32_t index, const oct_graph *graph,
                                   const oct_graph_node *node, oct_decision *decision) {
    static const struct {
        oct_recipe_section section;
        const char *name;
    } of_weights[] = {{OCT_SECTION_WEIGHTS, "weights"},
                      {OCT_SECTION_SMOOTHING, "smoothing"},
                      {OCT_SECTION_EQUALIZATION, "equalization"},
                      {OCT_SECTION_BIAS_CORRECTION, "bias_correction"}};
    const oct_recipe_rule *rule = &recipe->rules[index];
    const oct_recipe_choice *from = &rule->choice;
    oct_recipe_choice *to = &decision->choice;
    for (size_t i = 0; i < sizeof of_weights / sizeof *of_weights; i++) {
        if ((rule->sections & 1u << of_weights[i].section) == 0 || has_weights(graph, node)) continue;
        (void)oct_fail(OCTET_MISMATCH, "%s:%d: %s: the rule selects %s, an op of kind %s, which has no weights",
                       recipe->document.path, rule->section_lines[of_weights[i].section], of_weights[i].name,
                       node->name, oct_op_rows[node->op].name);
        return oct_hint("give %s a rule of its own", oct_op_rows[node->op].name);
    }
    decision->rule = index;
    for (int i = 0; i < OCT_SECTION_COUNT; i++) {
        if (rule->keep || (rule->sections & 1u << i) != 0) decision->rules[i] = index;
    }
    if (rule->keep) *to = (oct_recipe_choice){0};
    if (rule->sections & 1u << OCT_SECTION_WEIGHTS) to->weights = from->weights;
    if (rule->sections & 1u << OCT_SECTION_ACTIVATIONS) to->activations = from->activations;
    if (rule->sections & 1u << OCT_SECTION_EQUALIZATION) to->equalization = from->equalization;
    if (rule->sections & 1u << OCT_SECTION_BIAS_CORRECTION) to->bias_correction = from->bias_correction;
    if (rule->sections & 1u << OCT_SECTION_SMOOTHING) {
        to->smoothing = from->smoothing;
        to->exponent = from->exponent;
    }
    if (rule->sections & 1u << OCT_SECTION_OUTLIERS) {
        to->outlier_action = from->outlier_action;
        to->outlier_above = from->outlier_above;
    }
    return OCTET_OK;
}

static octet_status apply_rule(const oct_recipe *recipe, int32_t index, const oct_graph *graph,
                               oct_decisions *decisions) {
    const oct_recipe_rule *rule = &recipe->rules[index];
    OCT_TRY(check_patterns(recipe, rule, graph, rule->names, rule->name_count));
    OCT_TRY(check_patterns(recipe, rule, graph, rule->nots, rule->not_count));
    int64_t count = 0, at = 0;
    for (size_t i = 0; i < graph->node_count; i++) count += selects(rule, graph, &graph->nodes[i]);
    if (count == 0) {
        return oct_fail(OCTET_MISMATCH, "%s:%d: the rule selects no op of this graph", recipe->document.path,
                        rule->line);
    }
    const bool ends = rule->first > 0 || rule->last > 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (!selects(rule, graph, &graph->nodes[i])) continue;
        const bool taken = !ends || at < rule->first || at >= count - rule->last;
        if (taken) OCT_TRY(apply_sections(recipe, index, graph, &graph->nodes[i], &decisions->nodes[i]));
        at++;
    }
    return OCTET_OK;
}

static bool is_narrow(const oct_recipe *recipe, const oct_recipe_numbers *numbers) {
    return numbers->is_set && numbers->format != recipe->base;
}

static octet_status refuse(const oct_recipe *recipe, const oct_decision *decision, oct_recipe_section section,
                           const char *what, const oct_graph_node *node, const char *why) {
    const oct_recipe_rule *rule = &recipe->rules[decision->rules[section]];
    return fail_at(recipe, rule->section_lines[section], what, node->name, why);
}

/* Kernels and groups mix rows: what an output is made of is then no row of the input. */
static bool is_plain_product(const oct_graph *graph, const oct_graph_node *node) {
    const oct_shape *weight = &graph->values[node->inputs[1]].shape;
    return node->op == OCT_OP_LINEAR || (weight->dims[1] == 1 && weight->dims[2] == 1 && node->attributes.groups <= 1);
}

/* What only holds of an op once all rules have spoken. */
static octet_status check_decision(const oct_recipe *recipe, const oct_graph *graph, const oct_graph_node *node,
                                   const oct_decision *decision) {
    const oct_recipe_choice *choice = &decision->choice;
    const oct_recipe_numbers *weights = &choice->weights, *activations = &choice->activations;
    const bool is_static = activations->is_set && !activations->dynamic &&
                           (oct_format_has_scale(activations->format) || activations->format == OCT_FORMAT_UINT8);
    if (choice->outlier_action != OCT_OUTLIER_NONE && !is_static)
        return refuse(recipe, decision, OCT_SECTION_OUTLIERS, "outliers: the op", node,
                      "has no static activation scale for the predicate to judge");
    if (weights->is_set && weights->format == OCT_FORMAT_FP32 && recipe->base != OCT_FORMAT_FP32)
        return refuse(recipe, decision, OCT_SECTION_WEIGHTS, "weights: the op", node,
                      "would have fp32 where the base is narrower");
    if (activations->is_set && activations->format == OCT_FORMAT_FP32 && recipe->base != OCT_FORMAT_FP32)
        return refuse(recipe, decision, OCT_SECTION_ACTIVATIONS, "activations: the op", node,
                      "would have fp32 where the base is narrower");
    if (choice->smoothing == OCT_SMOOTHING_SEARCHED && !is_plain_product(graph, node))
        return refuse(recipe, decision, OCT_SECTION_SMOOTHING, "smoothing: the op", node,
                      "is no linear or 1x1 convolution: searched for those only");
    return OCTET_OK;
}

octet_status oct_recipe_apply(const oct_recipe *recipe, const oct_graph *graph, oct_decisions *decisions) {
    *decisions = (oct_decisions){0};
    decisions->nodes = oct_calloc(graph->node_count + 1, sizeof *decisions->nodes);
    if (decisions->nodes == NULL) return oct_fail_memory();
    decisions->count = graph->node_count;
    for (size_t i = 0; i < graph->node_count; i++) {
        decisions->nodes[i].rule = OCT_NONE;
        for (int s = 0; s < OCT_SECTION_COUNT; s++) decisions->nodes[i].rules[s] = OCT_NONE;
    }
    octet_status status = OCTET_OK;
    for (size_t r = 0; status == OCTET_OK && r < recipe->rule_count; r++)
        status = apply_rule(recipe, (int32_t)r, graph, decisions);
    for (size_t i = 0; status == OCTET_OK && i < graph->node_count; i++) {
        oct_decision *decision = &decisions->nodes[i];
        status = check_decision(recipe, graph, &graph->nodes[i], decision);
        decision->is_narrow =
            is_narrow(recipe, &decision->choice.weights) || is_narrow(recipe, &decision->choice.activations);
        decisions->narrow += decision->is_narrow;
    }
    if (status != OCTET_OK) oct_decisions_free(decisions);
    return status;
}

void oct_decisions_free(oct_decisions *decisions) {
    oct_free(decisions->nodes);
    *decisions = (oct_decisions){0};
}

/* ---- as text */

void oct_recipe_numbers_print(const oct_recipe_numbers *numbers, oct_text *text) {
    static const char *const granularities[] = {"tensor", "channel", "row", "block"};
    char number[32];
    const bool own_blocks = oct_format_get(numbers->format)->block > 1;
    oct_text_puts(text, oct_format_name(numbers->format));
    if (numbers->format == OCT_FORMAT_MXFP8 && numbers->scale_rule == OCT_E8M0_CEIL) oct_text_puts(text, " ceil");
    if (numbers->compensated) oct_text_puts(text, " compensated");
    if (own_blocks || (!oct_format_has_scale(numbers->format) && numbers->format != OCT_FORMAT_UINT8)) return;
    oct_text_printf(text, " %s", granularities[numbers->granularity]);
    if (numbers->granularity == OCT_PER_BLOCK) oct_text_printf(text, " %d", numbers->block);
    if (numbers->dynamic) {
        oct_text_puts(text, " dynamic");
    } else if (numbers->granularity != OCT_PER_BLOCK) {
        oct_text_printf(text, " %s", oct_calibrator_name(numbers->calibrator));
        if (numbers->calibrator == OCT_CALIBRATE_PERCENTILE)
            oct_text_printf(text, " %s", oct_format_double(numbers->percentile, number));
    }
}

static void print_why(const oct_recipe *recipe, const oct_decision *decision, oct_text *text) {
    if (decision->rule == OCT_NONE) {
        oct_text_printf(text, " (base, line %d)", recipe->base_line);
        return;
    }
    oct_text_puts(text, " (");
    for (int32_t rule = 0; rule <= decision->rule; rule++) {
        bool decided = rule == decision->rule;
        for (int s = 0; s < OCT_SECTION_COUNT; s++) decided = decided || decision->rules[s] == rule;
        if (!decided) continue;
        oct_text_printf(text, "rule %d, line %d", (int)rule + 1, recipe->rules[rule].line);
        oct_text_puts(text, rule == decision->rule ? ")" : "; ");
    }
}

static void print_choice(const oct_recipe *recipe, const oct_decision *decision, oct_text *text) {
    static const char *const actions[] = {"", "clip", "keep16", "per_channel"};
    const oct_recipe_choice *choice = &decision->choice;
    char number[32];
    if (!choice->weights.is_set && !choice->activations.is_set) oct_text_puts(text, oct_format_name(recipe->base));
    if (choice->weights.is_set) {
        oct_text_puts(text, "weights ");
        oct_recipe_numbers_print(&choice->weights, text);
    }
    if (choice->activations.is_set) {
        oct_text_puts(text, choice->weights.is_set ? ", activations " : "activations ");
        oct_recipe_numbers_print(&choice->activations, text);
    }
    if (choice->smoothing == OCT_SMOOTHING_SEARCHED) oct_text_puts(text, ", smoothing searched");
    if (choice->smoothing == OCT_SMOOTHING_EXPONENT)
        oct_text_printf(text, ", smoothing %s", oct_format_double(choice->exponent, number));
    if (choice->equalization) oct_text_puts(text, ", equalization");
    if (choice->bias_correction) oct_text_puts(text, ", bias correction");
    if (choice->outlier_action != OCT_OUTLIER_NONE)
        oct_text_printf(text, ", %s where max/p99.99 > %s", actions[choice->outlier_action],
                        oct_format_double(choice->outlier_above, number));
}

void oct_decisions_print(const oct_recipe *recipe, const oct_graph *graph, const oct_decisions *decisions,
                         oct_text *text) {
    for (size_t i = 0; i < decisions->count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        oct_text_printf(text, "%s %s ", node->name, oct_op_rows[node->op].name);
        oct_shape_print(&graph->values[node->output].shape, text);
        oct_text_puts(text, ": ");
        print_choice(recipe, &decisions->nodes[i], text);
        print_why(recipe, &decisions->nodes[i], text);
        oct_text_puts(text, "\n");
    }
    oct_text_printf(text, "recipe %s: %zu of %zu ops narrow, the others %s\n", recipe->name, decisions->narrow,
                    decisions->count, oct_format_name(recipe->base));
}
