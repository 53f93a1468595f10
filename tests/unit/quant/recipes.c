/* SPDX-License-Identifier: Apache-2.0 */
/* Every recipe of every family applied to that family's graph (weights of zeros: names and shapes are all it takes): it
 * selects what it is meant to, and nothing else. A recipe file that is not in the table is a failure. */
#include "unit/families/drawn.h"

#include "quant/recipe.h"

#define FAMILIES OCTET_SOURCE_DIR "/families/"

typedef struct expected {
    const char *recipe;
    int weights, activations; /* nodes whose weights, whose activations are not the base's */
} expected;

/* 17 depthwise, 34 pointwise, the stem, the classifier; 10 residual adds are in the products after the passes. */
static const expected mobilenetv2[] = {
    {"published", 34, 34},
    {"weights_only", 34, 0},
    {"activations_only", 0, 34},
    {"weights_tensor", 34, 34},
    {"percentile", 34, 34},
    {"entropy", 34, 34},
    {"mse", 34, 34},
    {"outliers", 34, 34},
    {"rows", 34, 34},
    {"row_blocks", 34, 34},
    {"compensated", 34, 34},
    {"edges_kept", 30, 30},
    {"depthwise", 51, 51},
    {"whole", 53, 54},
    {"int8", 53, 53},
    {"int8_compensated", 34, 34},
    {"int8_rows_compensated", 34, 34},
    {"int8_equalized", 52, 52},
    {"uint8", 53, 53},
    {"mxfp8", 34, 34},
    {"nvfp4", 34, 34},
    {"mixed", 38, 38},
};
/* 72 linears and 12 attentions of the encoder, the patches, 6 linears of the heads. */
static const expected yolos[] = {
    {"published", 72, 72},
    {"weights_only", 72, 0},
    {"activations_only", 0, 72},
    {"per_channel", 72, 72},
    {"rows", 72, 72},
    {"row_blocks", 72, 72},
    {"percentile", 72, 72},
    {"outliers", 72, 72},
    {"mlp", 24, 24},
    {"only_query", 12, 12},
    {"only_key", 12, 12},
    {"only_value", 12, 12},
    {"only_attention_output", 12, 12},
    {"only_intermediate", 12, 12},
    {"only_output", 12, 12},
    {"edges_kept", 60, 60},
    {"attention", 72, 84},
    {"whole", 79, 91},
    {"int8", 72, 72},
    {"int8_rows", 72, 72},
    {"int8_smoothed", 72, 72},
    {"int8_searched", 72, 72},
    {"int8_smoothed_compensated", 72, 72},
    {"int8_row_blocks", 72, 72},
    {"mxfp8", 72, 72},
    {"nvfp4", 72, 72},
    {"mixed", 48, 48},
    {"mixed_compensated", 48, 48},
};
/* 72 linears and 12 attentions, the patches, the head. */
static const expected vit[] = {
    {"fp8", 72, 72},
    {"weights_only", 72, 0},
    {"activations_only", 0, 72},
    {"per_channel", 72, 72},
    {"rows", 72, 72},
    {"row_blocks", 72, 72},
    {"percentile", 72, 72},
    {"outliers", 72, 72},
    {"mlp", 24, 24},
    {"only_query", 12, 12},
    {"only_key", 12, 12},
    {"only_value", 12, 12},
    {"only_projection", 12, 12},
    {"only_fc1", 12, 12},
    {"only_fc2", 12, 12},
    {"edges_kept", 60, 60},
    {"attention", 72, 84},
    {"whole", 74, 86},
    {"int8", 72, 72},
    {"int8_rows", 72, 72},
    {"int8_smoothed", 72, 72},
    {"int8_searched", 72, 72},
    {"int8_smoothed_compensated", 72, 72},
    {"int8_row_blocks", 72, 72},
    {"mxfp8", 72, 72},
    {"nvfp4", 72, 72},
    {"mixed", 48, 48},
};

static void build_zeros(const char *name, oct_graph *graph) {
    drawn_model drawn;
    char *directory = support_temporary_directory();
    drawn_load(&drawn, name, false);
    drawn_write_zeros(&drawn, directory);
    drawn_free(&drawn);
    ASSERT_OK(build_directory(directory, 0, 0, graph));
    support_remove_tree(directory);
    free(directory);
}

static bool is_narrow(const oct_recipe_numbers *numbers) {
    return numbers->is_set && oct_format_bits(numbers->format) <= 8;
}

static void check(const char *family, const expected *entry, const oct_graph *graph) {
    char path[512];
    oct_recipe recipe;
    oct_decisions decisions;
    (void)snprintf(path, sizeof path, FAMILIES "%s/recipes/%s.yaml", family, entry->recipe);
    ASSERT_OK(oct_recipe_read(&recipe, path));
    assert_string_equal(recipe.name, entry->recipe);
    assert_true(recipe.description[0] != '\0');
    ASSERT_OK(oct_recipe_apply(&recipe, graph, &decisions));
    int weights = 0, activations = 0, narrow = 0;
    for (size_t i = 0; i < decisions.count; i++) {
        weights += is_narrow(&decisions.nodes[i].choice.weights);
        activations += is_narrow(&decisions.nodes[i].choice.activations);
        narrow += decisions.nodes[i].is_narrow;
    }
    assert_int_equal(narrow, decisions.narrow);
    if (weights != entry->weights || activations != entry->activations)
        fail_msg("%s: expected %d weights and %d activations, found %d and %d", path, entry->weights,
                 entry->activations, weights, activations);
    oct_text text = {0};
    oct_decisions_print(&recipe, graph, &decisions, &text);
    assert_false(text.failed);
    oct_text_free(&text);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
}

static void check_family(const char *family, const char *model, const expected *entries, size_t count) {
    oct_graph graph = {0};
    build_zeros(model, &graph);
    for (size_t i = 0; i < count; i++) check(family, &entries[i], &graph);
    oct_graph_free(&graph);
    char path[512];
    (void)snprintf(path, sizeof path, FAMILIES "%s/recipes", family);
    assert_int_equal(support_count_entries(path), count);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_mobilenetv2(void **state) {
    (void)state;
    check_family("mobilenetv2", "mobilenetv2_100", mobilenetv2, sizeof mobilenetv2 / sizeof *mobilenetv2);
}
static void test_yolos(void **state) {
    (void)state;
    check_family("yolos", "yolos_tiny_mid", yolos, sizeof yolos / sizeof *yolos);
}
static void test_vit(void **state) {
    (void)state;
    check_family("vit", "vit_tiny_patch16_224", vit, sizeof vit / sizeof *vit);
}

/* The published recipes to the letter: what is narrow, and what is not. */
static void test_published(void **state) {
    (void)state;
    static const struct {
        const char *family, *model, *narrow;
        oct_granularity weights;
    } published[] = {{"mobilenetv2", "mobilenetv2_100", "conv2d", OCT_PER_CHANNEL},
                     {"yolos", "yolos_small", "linear", OCT_PER_TENSOR}};
    for (size_t p = 0; p < 2; p++) {
        oct_graph graph = {0};
        char path[512];
        oct_recipe recipe;
        oct_decisions decisions;
        build_zeros(published[p].model, &graph);
        (void)snprintf(path, sizeof path, FAMILIES "%s/recipes/published.yaml", published[p].family);
        ASSERT_OK(oct_recipe_read(&recipe, path));
        ASSERT_OK(oct_recipe_apply(&recipe, &graph, &decisions));
        assert_int_equal(recipe.base, OCT_FORMAT_FP16);
        for (size_t i = 0; i < decisions.count; i++) {
            const oct_decision *decision = &decisions.nodes[i];
            const oct_graph_node *node = &graph.nodes[i];
            const char *name = node->name;
            bool kept = strstr(name, "conv_dw") || strstr(name, "conv_stem") || strstr(name, "classifier") ||
                        strstr(name, "predictor") || strstr(name, "projection");
            bool product = strcmp(oct_op_rows[node->op].name, published[p].narrow) == 0;
            if (decision->is_narrow != (product && !kept)) fail_msg("%s", name);
            if (!decision->is_narrow) continue;
            const oct_recipe_numbers *weights = &decision->choice.weights, *inputs = &decision->choice.activations;
            assert_true(weights->format == OCT_FORMAT_E4M3 && weights->granularity == published[p].weights);
            assert_true(weights->calibrator == OCT_CALIBRATE_MAX && !weights->compensated && !weights->dynamic);
            assert_true(inputs->format == OCT_FORMAT_E4M3 && inputs->granularity == OCT_PER_TENSOR);
            assert_true(inputs->calibrator == OCT_CALIBRATE_MAX && !inputs->dynamic);
        }
        oct_decisions_free(&decisions);
        oct_recipe_free(&recipe);
        oct_graph_free(&graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mobilenetv2),
        cmocka_unit_test(test_yolos),
        cmocka_unit_test(test_vit),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
