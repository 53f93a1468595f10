/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a recipe: the YAML tree into rules, every key and value checked. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/ops.h"
#include "quant/recipe.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BLOCK_MIN 8
#define BLOCK_MAX 65536
#define SIZE_MAX_OF_AN_OP ((int64_t)1 << 40)

static const oct_op kinds[] = {OCT_OP_CONV2D, OCT_OP_LINEAR, OCT_OP_ATTENTION, OCT_OP_ADD, OCT_OP_GLOBAL_POOL};

/* ---- words */

static octet_status not_one_of(const oct_document *document, const oct_node *node, const char *key,
                               const char *const *words, size_t count) {
    const char *nearest = node->kind == OCT_NODE_STRING ? oct_nearest(node->string, words, count) : NULL;
    char list[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(list), length = strlen(words[i]);
        if (used + length + 3 > sizeof list) break;
        if (i > 0) memcpy(list + used, ", ", 3);
        memcpy(list + strlen(list), words[i], length + 1);
    }
    const bool is_text = node->string != NULL && node->string[0] != '\0';
    const char *quote = is_text ? "'" : "", *found = is_text ? node->string : oct_node_kind_name(node->kind);
    (void)oct_node_fail(document, node, "%s: expected one of %s, found %s%.64s%s", key, list, quote, found, quote);
    if (nearest != NULL) return oct_hint("did you mean '%s'?", nearest);
    return oct_error_status();
}

static octet_status word_of(const oct_document *document, const oct_node *node, const char *key,
                            const char *const *words, size_t count, size_t *index) {
    for (size_t i = 0; node->kind == OCT_NODE_STRING && i < count; i++) {
        if (strcmp(node->string, words[i]) != 0) continue;
        *index = i;
        return OCTET_OK;
    }
    return not_one_of(document, node, key, words, count);
}

/* One of `words` at `key`; *index stays where it is absent. */
static octet_status read_word(const oct_document *document, const oct_node *map, const char *key, bool required,
                              const char *const *words, size_t count, size_t *index) {
    const oct_node *node = oct_node_get(map, key);
    if (node != NULL) return word_of(document, node, key, words, count, index);
    if (!required) return OCTET_OK;
    const char *text;
    return oct_node_string(document, map, key, true, &text); /* makes the error */
}

static bool is_none(const oct_node *node) {
    return node->kind == OCT_NODE_STRING && strcmp(node->string, "none") == 0;
}

static octet_status refuse(const oct_document *document, const oct_node *map, const char *key, const char *why) {
    const oct_node *node = oct_node_get(map, key);
    return node == NULL ? OCTET_OK : oct_node_fail(document, node, "%s: %s", key, why);
}

/* ---- which ops */

static octet_status read_patterns(oct_document *document, const oct_node *map, const char *key,
                                  oct_recipe_pattern **patterns, size_t *count) {
    const oct_node *node = oct_node_get(map, key);
    if (node == NULL) return OCTET_OK;
    oct_node *const one = (oct_node *)(uintptr_t)node;
    oct_node *const *items = node->kind == OCT_NODE_LIST ? node->items : &one;
    const size_t found = node->kind == OCT_NODE_LIST ? node->count : 1;
    if (found == 0) return oct_node_fail(document, node, "%s: expected a pattern or a list of some, found none", key);
    if (found > OCT_RECIPE_PATTERNS) {
        (void)oct_node_fail(document, node, "%s: more than %d patterns", key, OCT_RECIPE_PATTERNS);
        return OCTET_BAD_FORMAT;
    }
    *patterns = oct_arena_alloc(&document->arena, found * sizeof **patterns);
    if (*patterns == NULL) return oct_fail_memory();
    for (size_t i = 0; i < found; i++) {
        if (items[i]->kind != OCT_NODE_STRING || items[i]->string[0] == '\0')
            return oct_node_fail(document, items[i], "%s: expected a pattern of op names, found %s", key,
                                 items[i]->kind == OCT_NODE_STRING ? "''" : oct_node_kind_name(items[i]->kind));
        (*patterns)[i] = (oct_recipe_pattern){items[i]->string, items[i]->line};
    }
    *count = found;
    return OCTET_OK;
}

static octet_status read_kinds(const oct_document *document, const oct_node *map, unsigned *mask) {
    const char *words[COUNT(kinds)];
    for (size_t i = 0; i < COUNT(kinds); i++) words[i] = oct_op_rows[kinds[i]].name;
    const oct_node *node = oct_node_get(map, "kind");
    *mask = 1u << OCT_OP_CONV2D | 1u << OCT_OP_LINEAR;
    if (node == NULL) return OCTET_OK;
    *mask = 0;
    const bool is_list = node->kind == OCT_NODE_LIST;
    if (is_list && node->count == 0) return oct_node_fail(document, node, "kind: an empty list selects nothing");
    for (size_t i = 0; i < (is_list ? node->count : 1); i++) {
        size_t index = 0;
        OCT_TRY(word_of(document, is_list ? node->items[i] : node, "kind", words, COUNT(kinds), &index));
        *mask |= 1u << kinds[index];
    }
    return OCTET_OK;
}

static octet_status read_range(const oct_document *document, const oct_node *map, const char *from, const char *to,
                               int64_t range[2]) {
    range[0] = 0;
    range[1] = SIZE_MAX_OF_AN_OP;
    OCT_TRY(oct_node_int(document, map, from, false, 0, SIZE_MAX_OF_AN_OP, &range[0]));
    OCT_TRY(oct_node_int(document, map, to, false, 0, SIZE_MAX_OF_AN_OP, &range[1]));
    if (range[0] <= range[1]) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, to), "%s: less than %s", to, from);
}

static octet_status read_kernel(const oct_document *document, const oct_node *map, int64_t kernel[2]) {
    const oct_node *node = oct_node_get(map, "kernel");
    double sides[2];
    OCT_TRY(oct_node_reals(document, map, "kernel", false, sides, 2));
    if (node == NULL || node->kind != OCT_NODE_LIST) return OCTET_OK;
    for (int i = 0; i < 2; i++) {
        if (node->items[i]->kind != OCT_NODE_INT || sides[i] < 1 || sides[i] > 1024)
            return oct_node_fail(document, node, "kernel: expected [height, width], whole numbers from 1 to 1024");
        kernel[i] = node->items[i]->integer;
    }
    return OCTET_OK;
}

static octet_status read_selector(oct_document *document, const oct_node *rule_map, oct_recipe_rule *rule) {
    static const char *const known[] = {"kind",
                                        "name",
                                        "not",
                                        "kernel",
                                        "depthwise",
                                        "pixels_from",
                                        "pixels_to",
                                        "channels_in_from",
                                        "channels_in_to",
                                        "first",
                                        "last",
                                        "channels_out_from",
                                        "channels_out_to",
                                        NULL};
    const oct_node *map = oct_node_get(rule_map, "ops");
    if (map == NULL) return oct_node_fail(document, rule_map, "missing key 'ops', expected which ops the rule is for");
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(read_kinds(document, map, &rule->kinds));
    OCT_TRY(read_patterns(document, map, "name", &rule->names, &rule->name_count));
    OCT_TRY(read_patterns(document, map, "not", &rule->nots, &rule->not_count));
    OCT_TRY(read_kernel(document, map, rule->kernel));
    bool depthwise = false;
    OCT_TRY(oct_node_bool(document, map, "depthwise", false, &depthwise));
    rule->depthwise = oct_node_get(map, "depthwise") == NULL ? -1 : depthwise;
    OCT_TRY(read_range(document, map, "pixels_from", "pixels_to", rule->pixels));
    OCT_TRY(read_range(document, map, "channels_in_from", "channels_in_to", rule->channels_in));
    OCT_TRY(read_range(document, map, "channels_out_from", "channels_out_to", rule->channels_out));
    OCT_TRY(oct_node_int(document, map, "first", false, 1, 1 << 24, &rule->first));
    return oct_node_int(document, map, "last", false, 1, 1 << 24, &rule->last);
}

/* ---- what becomes of them */

static const char *const calibrators[] = {"max", "percentile", "entropy", "mse"};

static octet_status read_calibrator(const oct_document *document, const oct_node *map, oct_recipe_numbers *numbers) {
    size_t index = OCT_CALIBRATE_MAX;
    OCT_TRY(read_word(document, map, "calibrator", false, calibrators, COUNT(calibrators), &index));
    numbers->calibrator = (oct_calibrator)index;
    if (numbers->calibrator != OCT_CALIBRATE_PERCENTILE)
        return refuse(document, map, "percentile", "only the calibrator percentile has one");
    OCT_TRY(oct_node_real(document, map, "percentile", true, &numbers->percentile));
    if (numbers->percentile > 0 && numbers->percentile <= 100) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "percentile"),
                         "percentile: expected a number above 0, at most 100, found %g", numbers->percentile);
}

static octet_status no_calibrator(const oct_document *document, const oct_node *map, const char *why) {
    OCT_TRY(refuse(document, map, "calibrator", why));
    return refuse(document, map, "percentile", why);
}

/* The formats that bring their own blocks. */
static octet_status read_block_format(const oct_document *document, const oct_node *map, oct_recipe_numbers *numbers) {
    static const char *const rules[] = {"floor", "ceil"};
    static const char *const words[] = {"block"};
    const oct_format_row *row = oct_format_get(numbers->format);
    size_t index = 0;
    OCT_TRY(read_word(document, map, "granularity", false, words, 1, &index));
    int64_t block = row->block;
    OCT_TRY(oct_node_int(document, map, "block", false, row->block, row->block, &block));
    OCT_TRY(no_calibrator(document, map, "the format's block scales are its own: nothing to calibrate"));
    if (numbers->format == OCT_FORMAT_MXFP8)
        OCT_TRY(read_word(document, map, "scale", false, rules, COUNT(rules), &index));
    else
        OCT_TRY(refuse(document, map, "scale", "only mxfp8 has a scale rule"));
    numbers->granularity = OCT_PER_BLOCK;
    numbers->block = (int)block;
    numbers->scale_rule = index == 0 ? OCT_E8M0_FLOOR : OCT_E8M0_CEIL;
    numbers->dynamic = true;
    return OCTET_OK;
}

static octet_status read_granularity(const oct_document *document, const oct_node *map, bool weights,
                                     oct_recipe_numbers *numbers) {
    static const char *const of_weights[] = {"tensor", "channel", "block"};
    static const char *const of_activations[] = {"tensor", "channel", "row", "block"};
    static const oct_granularity meaning[] = {OCT_PER_TENSOR, OCT_PER_CHANNEL, OCT_PER_ROW, OCT_PER_BLOCK};
    size_t index = 0, count = weights ? 3 : numbers->format == OCT_FORMAT_UINT8 ? 2 : 4;
    OCT_TRY(read_word(document, map, "granularity", true, weights ? of_weights : of_activations, count, &index));
    numbers->granularity = weights && index == 2 ? OCT_PER_BLOCK : meaning[index];
    numbers->dynamic = !weights && index >= 2;
    int64_t block = 0;
    if (numbers->granularity != OCT_PER_BLOCK) {
        OCT_TRY(refuse(document, map, "block", "only the granularity block has one"));
    } else {
        OCT_TRY(oct_node_int(document, map, "block", true, BLOCK_MIN, BLOCK_MAX, &block));
    }
    numbers->block = (int)block;
    OCT_TRY(refuse(document, map, "scale", "only mxfp8 has a scale rule"));
    if (numbers->dynamic) return no_calibrator(document, map, "a row's scale comes from the row: nothing to calibrate");
    if (numbers->granularity != OCT_PER_BLOCK) return read_calibrator(document, map, numbers);
    return no_calibrator(document, map, "a block's scale is that of its largest: nothing to calibrate");
}

/* Errors are made good by weights that share nothing but the output: scales stay as they were found. */
static octet_status check_compensated(const oct_document *document, const oct_node *map,
                                      const oct_recipe_numbers *numbers) {
    if (!numbers->compensated || numbers->granularity != OCT_PER_BLOCK) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "rounding"),
                         "rounding: compensated goes with a scale a tensor or channel, not a block");
}

static octet_status read_numbers(const oct_document *document, const oct_node *rule, bool weights,
                                 oct_recipe_numbers *numbers) {
    static const char *const formats[] = {"fp32", "fp16", "bf16", "e4m3", "e5m2", "int8", "mxfp8", "nvfp4", "uint8"};
    static const char *const roundings[] = {"nearest", "compensated"};
    static const char *const keys_of_weights[] = {"format",     "granularity", "block", "calibrator",
                                                  "percentile", "rounding",    "scale", NULL};
    static const char *const keys_of_activations[] = {"format",     "granularity", "block", "calibrator",
                                                      "percentile", "scale",       NULL};
    const oct_node *map = oct_node_get(rule, weights ? "weights" : "activations");
    if (is_none(map)) return OCTET_OK;
    OCT_TRY(oct_node_known_keys(document, map, weights ? keys_of_weights : keys_of_activations));
    size_t index = 0, rounding = 0;
    OCT_TRY(read_word(document, map, "format", true, formats, COUNT(formats) - (weights ? 1 : 0), &index));
    if (weights) OCT_TRY(read_word(document, map, "rounding", false, roundings, COUNT(roundings), &rounding));
    numbers->is_set = true;
    numbers->format = (oct_format)oct_format_by_name(formats[index]);
    numbers->compensated = rounding == 1;
    if (oct_format_get(numbers->format)->block > 1) {
        OCT_TRY(read_block_format(document, map, numbers));
        return check_compensated(document, map, numbers);
    }
    if (oct_format_has_scale(numbers->format) || numbers->format == OCT_FORMAT_UINT8) {
        OCT_TRY(read_granularity(document, map, weights, numbers));
        return check_compensated(document, map, numbers);
    }
    for (size_t i = 1; keys_of_weights[i] != NULL; i++) {
        OCT_TRY(refuse(document, map, keys_of_weights[i], "this format has no scale: 'format' stands alone"));
    }
    return OCTET_OK;
}

static octet_status read_smoothing(const oct_document *document, const oct_node *rule, oct_recipe_choice *choice) {
    static const char *const words[] = {"searched", "none"};
    const oct_node *node = oct_node_get(rule, "smoothing");
    if (node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL) {
        choice->smoothing = OCT_SMOOTHING_EXPONENT;
        choice->exponent = node->real;
        if (node->real >= 0 && node->real <= 1) return OCTET_OK;
        return oct_node_fail(document, node, "smoothing: expected an exponent from 0 to 1, found %s", node->string);
    }
    size_t index = 0;
    OCT_TRY(word_of(document, node, "smoothing", words, COUNT(words), &index));
    choice->smoothing = index == 0 ? OCT_SMOOTHING_SEARCHED : OCT_SMOOTHING_NONE;
    return OCTET_OK;
}

static octet_status read_outliers(const oct_document *document, const oct_node *rule, oct_recipe_choice *choice) {
    static const char *const known[] = {"predicate", "above", "action", NULL};
    static const char *const predicates[] = {"max/p99.99"};
    static const char *const actions[] = {"clip", "keep16", "per_channel"};
    static const oct_outlier_action meaning[] = {OCT_OUTLIER_CLIP, OCT_OUTLIER_KEEP16, OCT_OUTLIER_PER_CHANNEL};
    const oct_node *map = oct_node_get(rule, "outliers");
    if (is_none(map)) return OCTET_OK;
    OCT_TRY(oct_node_known_keys(document, map, known));
    size_t index = 0;
    OCT_TRY(read_word(document, map, "predicate", true, predicates, COUNT(predicates), &index));
    OCT_TRY(oct_node_real(document, map, "above", true, &choice->outlier_above));
    if (choice->outlier_above < 1) {
        return oct_node_fail(document, oct_node_get(map, "above"), "above: expected at least 1, found %g",
                             choice->outlier_above);
    }
    OCT_TRY(read_word(document, map, "action", true, actions, COUNT(actions), &index));
    choice->outlier_action = meaning[index];
    return OCTET_OK;
}

static octet_status read_sections(const oct_document *document, const oct_node *map, oct_recipe_rule *rule) {
    static const char *const sections[OCT_SECTION_COUNT] = {"weights",      "activations",     "smoothing",
                                                            "equalization", "bias_correction", "outliers"};
    for (int i = 0; i < OCT_SECTION_COUNT; i++) {
        const oct_node *node = oct_node_get(map, sections[i]);
        if (node == NULL) continue;
        if (node->kind == OCT_NODE_NULL) return oct_node_fail(document, node, "%s: nothing is said of it", sections[i]);
        rule->sections |= 1u << i;
        rule->section_lines[i] = node->line;
    }
    const unsigned given = rule->sections;
    oct_recipe_choice *choice = &rule->choice;
    if (given & 1u << OCT_SECTION_WEIGHTS) OCT_TRY(read_numbers(document, map, true, &choice->weights));
    if (given & 1u << OCT_SECTION_ACTIVATIONS) OCT_TRY(read_numbers(document, map, false, &choice->activations));
    if (given & 1u << OCT_SECTION_SMOOTHING) OCT_TRY(read_smoothing(document, map, choice));
    if (given & 1u << OCT_SECTION_OUTLIERS) OCT_TRY(read_outliers(document, map, choice));
    OCT_TRY(oct_node_bool(document, map, "equalization", false, &choice->equalization));
    return oct_node_bool(document, map, "bias_correction", false, &choice->bias_correction);
}

static octet_status read_rule(oct_document *document, const oct_node *map, oct_recipe_rule *rule) {
    static const char *const known[] = {
        "ops", "keep", "weights", "activations", "smoothing", "equalization", "bias_correction", "outliers", NULL};
    rule->line = map->line;
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(read_selector(document, map, rule));
    OCT_TRY(oct_node_bool(document, map, "keep", false, &rule->keep));
    OCT_TRY(read_sections(document, map, rule));
    if (rule->keep && rule->sections != 0)
        return oct_node_fail(document, map, "keep: stands alone: the ops stay as they are");
    if (!rule->keep && rule->sections == 0) return oct_node_fail(document, map, "the rule says nothing of its ops");
    return OCTET_OK;
}

static octet_status read_all(oct_recipe *recipe) {
    static const char *const known[] = {"recipe", "description", "base", "rules", NULL};
    static const char *const bases[] = {"fp32", "fp16", "bf16"};
    oct_document *document = &recipe->document;
    const oct_node *root = document->root;
    OCT_TRY(oct_node_known_keys(document, root, known));
    recipe->description = "";
    OCT_TRY(oct_node_string(document, root, "recipe", true, &recipe->name));
    OCT_TRY(oct_node_string(document, root, "description", false, &recipe->description));
    size_t base = 0;
    OCT_TRY(read_word(document, root, "base", true, bases, COUNT(bases), &base));
    recipe->base = (oct_format)oct_format_by_name(bases[base]);
    recipe->base_line = oct_node_get(root, "base")->line;
    const oct_node *rules = oct_node_get(root, "rules");
    if (rules == NULL || rules->kind != OCT_NODE_LIST)
        return oct_node_fail(document, rules != NULL ? rules : root, "rules: expected a list of rules ([] for none)");
    if (rules->count > OCT_RECIPE_RULES) return oct_node_fail(document, rules, "rules: more than %d", OCT_RECIPE_RULES);
    recipe->rules = oct_arena_alloc(&document->arena, (rules->count + 1) * sizeof *recipe->rules);
    if (recipe->rules == NULL) return oct_fail_memory();
    for (size_t i = 0; i < rules->count; i++) OCT_TRY(read_rule(document, rules->items[i], &recipe->rules[i]));
    recipe->rule_count = rules->count;
    return OCTET_OK;
}

static octet_status finish(oct_recipe *recipe) {
    octet_status status = read_all(recipe);
    if (status != OCTET_OK) oct_recipe_free(recipe);
    return status;
}

octet_status oct_recipe_read(oct_recipe *recipe, const char *path) {
    *recipe = (oct_recipe){0};
    OCT_TRY(oct_document_read(&recipe->document, path, OCT_RECIPE_BYTES));
    return finish(recipe);
}

octet_status oct_recipe_parse(oct_recipe *recipe, const char *name, const char *text, size_t length) {
    *recipe = (oct_recipe){0};
    OCT_TRY(oct_document_parse_yaml(&recipe->document, name, text, length));
    return finish(recipe);
}

void oct_recipe_free(oct_recipe *recipe) {
    oct_document_free(&recipe->document);
    *recipe = (oct_recipe){0};
}
