/* SPDX-License-Identifier: Apache-2.0 */
/* Equalization and smoothing leave what the network computes as it was, say by what each value changed, and do not
 * touch what they must not. */
#include "unit/quant/network.h"

#include "graph/quantize.h"
#include "quant/product.h"

#define CLOSE 1e-5 /* of the largest number of a value */

/* ---- values before and after */

typedef struct kept {
    float *data[64];
    size_t count[64];
} kept;

static void keep(void *user, const oct_graph_node *node, const oct_array *output) {
    kept *k = user;
    assert_true(node->output < 64);
    k->count[node->output] = (size_t)oct_shape_count(&output->shape);
    k->data[node->output] = malloc(k->count[node->output] * sizeof(float));
    memcpy(k->data[node->output], output->data, k->count[node->output] * sizeof(float));
}

static void forget(kept *k) {
    for (size_t i = 0; i < 64; i++) free(k->data[i]);
}

/* Every value is what it was times its factors. */
static void expect_equal(const oct_graph *graph, const oct_adjusted *adjusted, const kept *before, const kept *after) {
    for (size_t v = 0; v < adjusted->value_count; v++) {
        const size_t channels = (size_t)graph->values[v].shape.dims[graph->values[v].shape.rank - 1];
        const float *factors = adjusted->values[v];
        double off = 0, most = 0;
        for (size_t i = 0; i < before->count[v]; i++) {
            const double wanted = (double)before->data[v][i] * (factors != NULL ? (double)factors[i % channels] : 1);
            off = fmax(off, fabs((double)after->data[v][i] - wanted));
            most = fmax(most, fabs(wanted));
        }
        if (!(off <= CLOSE * most)) fail_msg("%s: off by %g of %g", graph->values[v].name, off, most);
    }
}

static const oct_graph_node *find(const oct_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0) return &graph->nodes[i];
    fail_msg("no node %s", name);
    return NULL;
}

static const float *factors_of(const oct_graph *graph, const oct_adjusted *adjusted, const char *node) {
    return adjusted->values[find(graph, node)->output];
}

/* ---- equalization */

static void adjust(network *n, builder build, const char *rules, const oct_scale_file *file, oct_adjusted *adjusted,
                   oct_recipe *recipe, oct_decisions *decisions) {
    build(n);
    parse(recipe, "fp32", rules);
    ASSERT_OK(oct_recipe_apply(recipe, &n->graph, decisions));
    ASSERT_OK(oct_quant_adjust(&n->graph, decisions, file, adjusted));
}

static void test_equalized(void **state) {
    (void)state;
    network plain, n;
    oct_adjusted adjusted;
    oct_recipe recipe;
    oct_decisions decisions;
    kept before = {0}, after = {0};
    float logits[12];
    build_convolutions(&plain);
    run(&plain.graph, 1, logits, keep, &before);
    adjust(&n, build_convolutions, "  - ops: {}\n    equalization: true\n", NULL, &adjusted, &recipe, &decisions);
    run(&n.graph, 1, logits, keep, &after);
    expect_equal(&plain.graph, &adjusted, &before, &after);

    /* behind ReLU6: channels that reach 6 are left alone; of those that cannot, some are not */
    static const char *const behind[] = {"a", "b", "d", "e"};
    size_t moved = 0, clipped = 0;
    for (size_t k = 0; k < 4; k++) {
        const size_t value = (size_t)find(&n.graph, behind[k])->output;
        const size_t channels = (size_t)n.graph.values[value].shape.dims[3];
        const float *factors = adjusted.values[value];
        for (size_t i = 0; i < before.count[value]; i++) {
            assert_true(before.data[value][i] < 6 || factors[i % channels] == 1);
            clipped += before.data[value][i] == 6;
        }
        for (size_t c = 0; c < channels; c++) moved += factors[c] != 1;
    }
    assert_true(moved > 10 && clipped > 100);
    /* nothing is known of the picture; c and f are read twice or have a residual */
    const float *of_a = factors_of(&n.graph, &adjusted, "a");
    for (size_t c = 0; of_a != NULL && c < 20; c++) assert_true(of_a[c] == 1);
    assert_null(factors_of(&n.graph, &adjusted, "c"));
    assert_null(factors_of(&n.graph, &adjusted, "f"));
    assert_non_null(strstr(adjusted.report.data, "c: not equalized: more than one op reads its output\n"));
    assert_non_null(strstr(adjusted.report.data, "f: not equalized: a residual is added to its output\n"));
    assert_non_null(strstr(adjusted.report.data, "g: not equalized: more than one op reads its output\n"));
    assert_non_null(strstr(adjusted.report.data, "h, g: equalized\n"));
    assert_non_null(strstr(adjusted.report.data, "a, b: equalized, but for 20 of 20 channels that may reach 6\n"));

    /* through the mean: rows and columns are as large as each other */
    oct_product h, g;
    float rows[16], columns[16];
    assert_true(oct_product_of(&n.graph, find(&n.graph, "h"), &h) && oct_product_of(&n.graph, find(&n.graph, "g"), &g));
    oct_product_row_amax(&h, n.graph.values[find(&n.graph, "h")->inputs[1]].data, rows);
    oct_product_column_amax(&g, n.graph.values[find(&n.graph, "g")->inputs[1]].data, columns);
    for (size_t c = 0; c < 16; c++) assert_true(fabsf(rows[c] - columns[c]) <= 0.03f * rows[c]);
    forget(&before);
    forget(&after);
    oct_adjusted_free(&adjusted);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
    oct_graph_free(&n.graph);
    oct_graph_free(&plain.graph);
    assert_int_equal(oct_alloc_live(), 0);
}

/* The value through attention, with its bias; GELU is left alone. */
static void test_equalized_transformer(void **state) {
    (void)state;
    network plain, n;
    oct_adjusted adjusted;
    oct_recipe recipe;
    oct_decisions decisions;
    kept before = {0}, after = {0};
    float logits[12];
    build_transformer(&plain);
    run(&plain.graph, 2, logits, keep, &before);
    adjust(&n, build_transformer, "  - ops: {kind: linear}\n    equalization: true\n", NULL, &adjusted, &recipe,
           &decisions);
    run(&n.graph, 2, logits, keep, &after);
    expect_equal(&plain.graph, &adjusted, &before, &after);
    assert_non_null(factors_of(&n.graph, &adjusted, "attention"));
    assert_non_null(strstr(adjusted.report.data, "v, proj: equalized\n"));
    assert_non_null(strstr(adjusted.report.data, "fc1: not equalized: its activation is not linear"));
    assert_non_null(strstr(adjusted.report.data, "q: not equalized: no convolution or linear reads its output\n"));
    forget(&before);
    forget(&after);
    oct_adjusted_free(&adjusted);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
    oct_graph_free(&n.graph);
    oct_graph_free(&plain.graph);
    assert_int_equal(oct_alloc_live(), 0);
}

/* ---- smoothing */

#define SMOOTH "  - ops: {kind: linear}\n    activations: {format: int8, granularity: row}\n    smoothing: 0.5\n"

static float shared_factors[48], own_factors[48];
static const char *const ops[] = {"q", "k", "v", "proj", "fc1", "fc2"};

static void add_factors(oct_scale_draft *draft, const char *op, const float *factors, size_t count) {
    const oct_op_vector vector = {op, factors, count};
    ASSERT_OK(oct_scale_draft_smoothing(draft, &vector));
}

static void test_smoothed(void **state) {
    (void)state;
    network plain, n;
    oct_adjusted adjusted;
    oct_recipe recipe;
    oct_decisions decisions;
    oct_scale_draft draft = {0};
    kept before = {0}, after = {0};
    float logits[12];
    uint64_t seed = 9;
    for (size_t i = 0; i < 48; i++) shared_factors[i] = 1 + 0.9f * oct_random_signed(&seed);
    for (size_t i = 0; i < 5; i++) add_factors(&draft, ops[i], shared_factors, 24);
    build_transformer(&plain);
    run(&plain.graph, 3, logits, keep, &before);
    adjust(&n, build_transformer, SMOOTH, &draft.file, &adjusted, &recipe, &decisions);
    run(&n.graph, 3, logits, keep, &after);
    expect_equal(&plain.graph, &adjusted, &before, &after);
    /* into both norms, and through attention into v */
    static const char *const folded[] = {"before", "after", "attention", "v"};
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(factors_of(&n.graph, &adjusted, folded[i]), shared_factors, 24 * sizeof(float));
    for (size_t i = 0; i < adjusted.node_count; i++) assert_null(adjusted.inputs[i]);
    forget(&before);
    forget(&after);
    oct_adjusted_free(&adjusted);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
    oct_graph_free(&n.graph);
    oct_graph_free(&plain.graph);
    oct_scale_draft_free(&draft);
    assert_int_equal(oct_alloc_live(), 0);
}

/* Where readers differ, and behind GELU, the narrow input has the factors: exact but for fp16. */
static void test_smoothed_where_rounded(void **state) {
    (void)state;
    network plain, n;
    oct_recipe recipe;
    oct_decisions decisions;
    oct_lowered lowered;
    oct_scale_draft draft = {0};
    float wanted[12], found[12];
    for (size_t i = 0; i < 48; i++) own_factors[i] = 1 / (1 + (float)i);
    add_factors(&draft, "q", shared_factors, 24);
    add_factors(&draft, "k", own_factors, 24);
    add_factors(&draft, "v", shared_factors, 24);
    add_factors(&draft, "fc2", own_factors, 48);
    build_transformer(&plain);
    build_transformer(&n);
    parse(&recipe, "fp32",
          "  - ops: {kind: linear, name: [q, k, v, fc2]}\n    activations: {format: fp16}\n    smoothing: 0.5\n");
    ASSERT_OK(oct_recipe_apply(&recipe, &n.graph, &decisions));
    ASSERT_OK(oct_quant_lower(&recipe, &n.graph, &decisions, &draft.file, &lowered));
    assert_int_equal(lowered.count, 4);
    for (size_t i = 0; i < 4; i++) assert_non_null(lowered.decisions[i].inputs[0].factors);
    assert_non_null(strstr(lowered.adjusted.report.data, "k: smoothed, its input where it is rounded\n"));
    ASSERT_OK(oct_graph_quantize(&n.graph, lowered.decisions, lowered.count));
    run(&plain.graph, 4, wanted, NULL, NULL);
    run(&n.graph, 4, found, NULL, NULL);
    double off = 0, most = 0;
    for (size_t i = 0; i < 12; i++) {
        off = fmax(off, fabs((double)wanted[i] - (double)found[i]));
        most = fmax(most, fabs((double)wanted[i]));
    }
    assert_true(off > 0 && off < 1e-3 * most);
    oct_lowered_free(&lowered);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
    oct_graph_free(&n.graph);
    oct_graph_free(&plain.graph);
    oct_scale_draft_free(&draft);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_wrong_sizes(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        network n;
        oct_recipe recipe;
        oct_decisions decisions;
        oct_adjusted adjusted;
        oct_scale_draft draft = {0};
        static const uint8_t codes[24 * 24] = {0};
        const oct_op_vector vector = {"q", shared_factors, 23};
        const oct_op_weight weight = {
            "q", OCT_FORMAT_E4M3, OCT_PER_TENSOR, shared_factors, 1, codes, kind == 2 ? 24 * 24 : 24 * 23};
        if (kind == 0) ASSERT_OK(oct_scale_draft_smoothing(&draft, &vector));
        if (kind == 1) ASSERT_OK(oct_scale_draft_bias(&draft, &vector));
        if (kind >= 2) ASSERT_OK(oct_scale_draft_weight(&draft, &weight));
        parse(&recipe, "fp32",
              kind == 2
                  ? "  - ops: {name: q}\n    weights: {format: int8, granularity: tensor, rounding: compensated}\n"
                  : "  - ops: {name: q}\n    weights: {format: e4m3, granularity: tensor, rounding: compensated}\n"
                    "    smoothing: 0.5\n    bias_correction: true\n");
        build_transformer(&n);
        ASSERT_OK(oct_recipe_apply(&recipe, &n.graph, &decisions));
        assert_int_equal(oct_quant_adjust(&n.graph, &decisions, &draft.file, &adjusted), OCTET_MISMATCH);
        assert_non_null(strstr(oct_error_fact(), " of q: expected "));
        oct_decisions_free(&decisions);
        oct_recipe_free(&recipe);
        oct_graph_free(&n.graph);
        oct_scale_draft_free(&draft);
        assert_int_equal(oct_alloc_live(), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equalized),   cmocka_unit_test(test_equalized_transformer),
        cmocka_unit_test(test_smoothed),    cmocka_unit_test(test_smoothed_where_rounded),
        cmocka_unit_test(test_wrong_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
