/* SPDX-License-Identifier: Apache-2.0 */
/* From decisions and a scale file to what oct_graph_quantize takes: scales to the bit, outliers, what is missing, and
 * no memory at any point. */
#include "unit/quant/network.h"

#include "graph/quantize.h"
#include "quant/weights.h"

typedef struct lowering {
    network n;
    oct_recipe recipe;
    oct_decisions decisions;
    oct_lowered lowered;
} lowering;

static octet_status lower(lowering *l, builder build, const char *base, const char *rules, const oct_scale_file *file) {
    build(&l->n);
    parse(&l->recipe, base, rules);
    ASSERT_OK(oct_recipe_apply(&l->recipe, &l->n.graph, &l->decisions));
    return oct_quant_lower(&l->recipe, &l->n.graph, &l->decisions, file, &l->lowered);
}

static void end(lowering *l) {
    oct_lowered_free(&l->lowered);
    oct_decisions_free(&l->decisions);
    oct_recipe_free(&l->recipe);
    oct_graph_free(&l->n.graph);
    assert_int_equal(oct_alloc_live(), 0);
}

static const oct_quantize_decision *find(const lowering *l, const char *node) {
    for (size_t i = 0; i < l->lowered.count; i++)
        if (strcmp(l->lowered.decisions[i].node, node) == 0) return &l->lowered.decisions[i];
    return NULL;
}

/* ---- scales */

static void add(oct_scale_draft *draft, oct_scale scale, float one, const float *channels, size_t count) {
    scale.scales = scale.count == 0 ? &one : scale.scales;
    scale.count = scale.count == 0 ? 1 : scale.count;
    scale.channels = channels;
    scale.channel_count = channels != NULL ? count : 0;
    ASSERT_OK(oct_scale_draft_add(draft, &scale));
}

static void test_scales(void **state) {
    (void)state;
    lowering l;
    oct_scale_draft draft = {0};
    add(&draft, (oct_scale){.op = "g", .format = OCT_FORMAT_UINT8, .zero_point = 7, .amax = 3, .threshold = 2}, 0.25f,
        NULL, 0);
    add(&draft, (oct_scale){.op = "pool", .format = OCT_FORMAT_E4M3}, 0x1p-149f, NULL, 0);
    add(&draft, (oct_scale){.op = "h", .format = OCT_FORMAT_NVFP4, .granularity = OCT_PER_BLOCK}, 0.125f, NULL, 0);
    ASSERT_OK(lower(&l, build_convolutions, "fp16",
                    "  - ops: {kind: linear}\n    weights: {format: int8, granularity: channel}\n"
                    "    activations: {format: uint8, granularity: tensor}\n"
                    "  - ops: {kind: global_pool}\n    activations: {format: e4m3, granularity: tensor}\n"
                    "  - ops: {name: h}\n    weights: {format: e4m3, granularity: tensor}\n"
                    "    activations: {format: nvfp4}\n"
                    "  - ops: {name: [a, b]}\n    weights: {format: fp16}\n"
                    "  - ops: {name: b}\n    activations: {format: mxfp8, scale: ceil}\n",
                    &draft.file));
    assert_int_equal(l.lowered.count, 4); /* a's weights are the base's */
    const oct_quantize_decision *g = find(&l, "g"), *h = find(&l, "h");
    const oct_graph *graph = &l.n.graph;
    assert_true(g->inputs[0].format == OCT_FORMAT_UINT8 && g->inputs[0].scale == 0.25f && g->inputs[0].zero_point == 7);
    const float *weight = graph->values[oct_graph_find(graph, "g.weight")].data;
    for (size_t o = 0; o < 12; o++)
        assert_true(g->weight.scales[o] == oct_format_scale(OCT_FORMAT_INT8, oct_amax(weight + o * 16, 16)));
    assert_true(find(&l, "pool")->inputs[0].scale == 0x1p-120f); /* the least that a product takes */
    assert_true(h->inputs[0].scale == 0.125f && h->weight.granularity == OCT_PER_TENSOR);
    assert_true(
        h->weight.scale ==
        oct_format_scale(OCT_FORMAT_E4M3, oct_amax(graph->values[oct_graph_find(graph, "h.weight")].data, 160)));
    assert_true(find(&l, "b")->inputs[0].scale_rule == OCT_E8M0_CEIL &&
                find(&l, "b")->weight.format == OCT_FORMAT_FP32);
    assert_null(find(&l, "a"));
    ASSERT_OK(oct_graph_quantize(&l.n.graph, l.lowered.decisions, l.lowered.count));
    oct_scale_draft_free(&draft);
    end(&l);
}

/* ---- weights: rounded alone as the graph rounds them, by every format and calibrator */

static void test_weights_as_in_the_graph(void **state) {
    (void)state;
    static const char *const kinds[] = {
        "{format: e4m3, granularity: tensor}",
        "{format: e4m3, granularity: channel, calibrator: mse}",
        "{format: e5m2, granularity: channel}",
        "{format: int8, granularity: tensor, calibrator: entropy}",
        "{format: int8, granularity: channel, calibrator: percentile, percentile: 90}",
        "{format: int8, granularity: block, block: 9}",
        "{format: mxfp8}",
        "{format: mxfp8, scale: ceil}",
        "{format: nvfp4}",
        "{format: fp16}",
        "{format: bf16}",
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        lowering l;
        char rules[256];
        float *expected[16], *stored[16];
        (void)snprintf(rules, sizeof rules, "  - ops: {}\n    weights: %s\n", kinds[k]);
        ASSERT_OK(lower(&l, build_convolutions, "fp32", rules, NULL));
        oct_graph *graph = &l.n.graph;
        for (size_t i = 0; i < l.lowered.count; i++) {
            oct_product product;
            size_t node = 0;
            while (strcmp(graph->nodes[node].name, l.lowered.decisions[i].node) != 0) node++;
            assert_true(oct_product_of(graph, &graph->nodes[node], &product));
            expected[i] = oct_alloc(product.count * sizeof(float));
            ASSERT_OK(oct_weight_round(&l.decisions.nodes[node].choice.weights, "w", &product,
                                       graph->values[graph->nodes[node].inputs[1]].data, expected[i]));
        }
        ASSERT_OK(oct_graph_quantize(graph, l.lowered.decisions, l.lowered.count));
        for (size_t i = 0; i < l.lowered.count; i++) {
            size_t node = 0;
            while (strcmp(graph->nodes[node].name, l.lowered.decisions[i].node) != 0) node++;
            const oct_value *weight = &graph->values[graph->nodes[node].inputs[1]];
            const oct_form *form = &weight->forms[0];
            const size_t count = (size_t)oct_shape_count(&weight->shape);
            stored[i] = oct_alloc(count * sizeof(float));
            if (weight->codes != NULL) {
                const bool channel = form->granularity == OCT_PER_CHANNEL;
                const size_t rows = channel ? (size_t)weight->shape.dims[0] : 1;
                oct_scaled_decode(form->format, weight->codes, rows, count / rows, count / rows,
                                  channel ? graph->values[form->scales].data : &form->scale, stored[i]);
            } else {
                memcpy(stored[i], weight->data, count * sizeof(float));
            }
            for (size_t w = 0; w < count; w++)
                if (stored[i][w] != expected[i][w])
                    fail_msg("%s: %s[%zu]: %a alone, %a in the graph", kinds[k], weight->name, w,
                             (double)expected[i][w], (double)stored[i][w]);
            oct_free(stored[i]);
            oct_free(expected[i]);
        }
        end(&l);
    }
}

/* ---- outliers */

static const float of_channels[16] = {1, 2, 3, 100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static void test_outliers(void **state) {
    (void)state;
    static const struct {
        const char *format, *action;
        double above;
        bool kept;
        float scale; /* 0: a scale a channel */
    } kinds[] = {
        {"int8", "clip", 20, false, 4.0f / 127},     {"int8", "clip", 26, false, 100.0f / 127},
        {"e4m3", "clip", 20, false, 4.0f / 448},     {"int8", "keep16", 20, true, 0},
        {"int8", "keep16", 25, false, 100.0f / 127}, {"e4m3", "per_channel", 20, false, 0},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        lowering l;
        oct_scale_draft draft = {0};
        char rules[512];
        const int format = oct_format_by_name(kinds[k].format);
        add(&draft,
            (oct_scale){
                .op = "g", .format = (oct_format)format, .amax = 100, .threshold = 100, .has_p9999 = true, .p9999 = 4},
            oct_format_scale((oct_format)format, 100), of_channels, 16);
        (void)snprintf(
            rules, sizeof rules,
            "  - ops: {name: g}\n    weights: {format: int8, granularity: channel}\n    activations: {format: "
            "%s, granularity: tensor}\n    outliers: {predicate: max/p99.99, above: %g, action: %s}\n",
            kinds[k].format, kinds[k].above, kinds[k].action);
        ASSERT_OK(lower(&l, build_convolutions, "fp16", rules, &draft.file));
        const oct_quantize_decision *g = find(&l, "g");
        const bool touched = 25 > kinds[k].above;
        assert_int_equal(l.lowered.adjusted.report.length > 0, touched);
        assert_int_equal(g == NULL, kinds[k].kept);
        if (g != NULL && kinds[k].scale > 0) assert_true(g->inputs[0].scale == kinds[k].scale);
        if (g != NULL && kinds[k].scale == 0) {
            assert_int_equal(g->inputs[0].granularity, OCT_PER_CHANNEL);
            for (size_t c = 0; c < 16; c++) assert_true(g->inputs[0].scales[c] == of_channels[c] / 448);
        }
        ASSERT_OK(oct_graph_quantize(&l.n.graph, l.lowered.decisions, l.lowered.count));
        oct_scale_draft_free(&draft);
        end(&l);
    }
}

/* ---- what is missing or does not fit: the op, and the way out */

static void test_refused(void **state) {
    (void)state;
#define G "  - ops: {name: g}\n"
#define STATIC "    activations: {format: int8, granularity: tensor}\n"
    static const struct {
        const char *rules, *base;
        int file; /* 0: none; 1: an entry e4m3 of g */
        octet_status status;
        const char *says, *hint;
    } kinds[] = {
        {G STATIC, "fp16", 0, OCTET_NOT_FOUND, "the recipe r needs a scale for g, found none", "octet calibrate"},
        {G STATIC, "fp16", 1, OCTET_MISMATCH, "scale of g: expected one for int8 tensor max, found one for e4m3",
         "calibrate again"},
        {G "    activations: {format: e4m3, granularity: channel}\n", "fp16", 1, OCTET_MISMATCH, "scale of g", NULL},
        {G "    weights: {format: int8, granularity: channel, rounding: compensated}\n", "fp16", 1, OCTET_NOT_FOUND,
         "needs weights rounded with compensation for g", "octet calibrate"},
        {G "    weights: {format: int8, granularity: channel}\n    bias_correction: true\n", "fp16", 0, OCTET_NOT_FOUND,
         "needs a corrected bias for g", NULL},
        {G "    activations: {format: int8, granularity: row}\n    smoothing: 0.5\n", "fp16", 0, OCTET_NOT_FOUND,
         "needs smoothing factors for g", NULL},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        lowering l;
        oct_scale_draft draft = {0};
        add(&draft, (oct_scale){.op = "g", .format = OCT_FORMAT_E4M3}, 1, NULL, 0);
        const octet_status status =
            lower(&l, build_convolutions, kinds[k].base, kinds[k].rules, kinds[k].file == 1 ? &draft.file : NULL);
        if (status != kinds[k].status || strstr(oct_error_fact(), kinds[k].says) == NULL ||
            (kinds[k].hint != NULL && strstr(oct_error_hint(), kinds[k].hint) == NULL))
            fail_msg("%s: %d %s", kinds[k].rules, (int)status, oct_error_text());
        assert_null(l.lowered.decisions);
        oct_scale_draft_free(&draft);
        end(&l);
    }
}

/* ---- memory */

#define EVERYTHING                                                                                                     \
    "  - ops: {kind: linear}\n    weights: {format: int8, granularity: channel, rounding: compensated}\n"              \
    "    activations: {format: int8, granularity: tensor}\n    smoothing: searched\n    equalization: true\n"          \
    "    bias_correction: true\n    outliers: {predicate: max/p99.99, above: 1, action: per_channel}\n"                \
    "  - ops: {kind: [attention, add]}\n    activations: {format: uint8, granularity: tensor}\n"

/* All three passes, then lowering: each allocation fails once, wherever it is. */
static void test_no_memory(void **state) {
    (void)state;
    oct_recipe recipe;
    oct_scale_draft known = {0};
    parse(&recipe, "fp16", EVERYTHING);
    assert_int_equal(calibrate(&recipe, build_transformer, 3, &known), 3);
    assert_true(known.file.smoothing_count == 7 && known.file.rounded_count == 7 && known.file.bias_count == 7);
    bool met = true;
    for (uint64_t n = 1; met; n++) {
        network net;
        oct_decisions decisions;
        oct_lowered lowered;
        build_transformer(&net);
        ASSERT_OK(oct_recipe_apply(&recipe, &net.graph, &decisions));
        const int64_t live = oct_alloc_live();
        oct_alloc_fail_at(n, false);
        const octet_status status = oct_quant_lower(&recipe, &net.graph, &decisions, &known.file, &lowered);
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        assert_true(status == OCTET_OK || oct_alloc_live() >= live);
        oct_lowered_free(&lowered);
        oct_decisions_free(&decisions);
        oct_graph_free(&net.graph);
    }
    oct_scale_draft_free(&known);
    oct_recipe_free(&recipe);
    assert_int_equal(oct_alloc_live(), 0);
}

/* One pass on one picture with the n-th allocation failing; false: none was met. */
static bool learn_with_fault(const oct_recipe *recipe, const oct_scale_file *known, uint64_t n) {
    network net;
    oct_decisions decisions;
    oct_quant_watch_list list;
    oct_scale_draft draft = {0};
    static float numbers[4096];
    build_transformer(&net);
    ASSERT_OK(oct_recipe_apply(recipe, &net.graph, &decisions));
    oct_histogram *histogram;
    ASSERT_OK(oct_histogram_new(&histogram));
    for (size_t i = 0; i < 4096; i++) numbers[i] = sinf((float)i);
    oct_histogram_add(histogram, numbers, 4096);
    oct_alloc_fail_at(n, false);
    octet_status status = oct_quant_needs(recipe, &net.graph, &decisions, known, &list);
    oct_quant_seen seen[32] = {{0}};
    oct_channels channels[32] = {{0}};
    for (size_t i = 0; status == OCTET_OK && i < list.watch_count; i++) {
        const oct_shape *shape = &net.graph.values[list.watches[i].value].shape;
        status = oct_channels_new(&channels[i], list.watches[i].channels);
        if (status != OCTET_OK) break;
        oct_channels_add(&channels[i], numbers, 4, channels[i].count);
        seen[i] = (oct_quant_seen){histogram, &channels[i]};
        if (list.watches[i].rows) status = oct_quant_see(&list, i, numbers, shape);
    }
    if (status == OCTET_OK) status = oct_quant_learn(&list, seen, &draft);
    const bool met = oct_alloc_fault_met();
    oct_alloc_fail_at(0, false);
    if (status != (met ? OCTET_OUT_OF_MEMORY : OCTET_OK)) fail_msg("%d: %s", (int)met, oct_error_text());
    for (size_t i = 0; i < 32; i++) oct_channels_free(&channels[i]);
    oct_histogram_free(histogram);
    oct_quant_watch_list_free(&list);
    oct_scale_draft_free(&draft);
    oct_decisions_free(&decisions);
    oct_graph_free(&net.graph);
    return met;
}

static void test_no_memory_to_learn(void **state) {
    (void)state;
    oct_recipe recipe;
    oct_scale_draft known = {0};
    parse(&recipe, "fp16", EVERYTHING);
    assert_int_equal(calibrate(&recipe, build_transformer, 3, &known), 3);
    const int64_t live = oct_alloc_live();
    for (int pass = 0; pass < 3; pass++) {
        oct_scale_file so_far = known.file;
        if (pass < 1) so_far.smoothing_count = 0;
        if (pass < 2) so_far.count = 0;
        so_far.bias_count = so_far.rounded_count = 0;
        for (uint64_t n = 1; learn_with_fault(&recipe, &so_far, n); n++) assert_int_equal(oct_alloc_live(), live);
    }
    oct_scale_draft_free(&known);
    oct_recipe_free(&recipe);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales),    cmocka_unit_test(test_weights_as_in_the_graph),
        cmocka_unit_test(test_outliers),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_memory_to_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
