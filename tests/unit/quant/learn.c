/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration from the first pass to the quantized graph, on the reference evaluation: what each option is to do for
 * the outputs it does, and entries say what was seen. */
#include "unit/quant/network.h"

#include "graph/passes.h"
#include "graph/quantize.h"
#include "quant/weights.h"

#define CALIBRATED 24 /* pictures to learn from; the errors are over others */
#define JUDGED 8

/* Squared error of the logits of a recipe's network by that of the logits. *off: the mean error of each logit. */
static double error_of(const oct_recipe *recipe, builder build, const oct_scale_file *file, double off[12]) {
    network plain, n;
    oct_decisions decisions;
    oct_lowered lowered;
    double error = 0, size = 0;
    build(&plain);
    build(&n);
    ASSERT_OK(oct_recipe_apply(recipe, &n.graph, &decisions));
    ASSERT_OK(oct_quant_lower(recipe, &n.graph, &decisions, file, &lowered));
    ASSERT_OK(oct_graph_quantize(&n.graph, lowered.decisions, lowered.count));
    ASSERT_OK(oct_graph_store_base(&n.graph, recipe->base));
    ASSERT_OK(oct_pass_fuse_quantize(&n.graph));
    ASSERT_OK(oct_graph_check(&n.graph));
    memset(off, 0, 12 * sizeof *off);
    for (uint64_t p = 0; p < JUDGED; p++) {
        float wanted[12], found[12];
        run(&plain.graph, 1000 + p, wanted, NULL, NULL);
        run(&n.graph, 1000 + p, found, NULL, NULL);
        for (size_t i = 0; i < 12; i++) {
            const double d = (double)found[i] - (double)wanted[i];
            error += d * d;
            size += (double)wanted[i] * (double)wanted[i];
            off[i] += d / JUDGED;
        }
    }
    oct_lowered_free(&lowered);
    oct_decisions_free(&decisions);
    oct_graph_free(&n.graph);
    oct_graph_free(&plain.graph);
    return error / size;
}

static double learnt_error(const char *rules, builder build, int passes, double off[12]) {
    oct_recipe recipe;
    oct_scale_draft draft = {0};
    parse(&recipe, "fp16", rules);
    assert_int_equal(calibrate(&recipe, build, CALIBRATED, &draft), passes);
    const double error = error_of(&recipe, build, &draft.file, off);
    oct_scale_draft_free(&draft);
    oct_recipe_free(&recipe);
    assert_int_equal(oct_alloc_live(), 0);
    return error;
}

/* ---- every format and granularity goes from recipe to outputs */

#define ALL "  - ops: {kind: [conv2d, linear]}\n"
#define INT8_WEIGHTS "    weights: {format: int8, granularity: channel}\n"
static const struct {
    const char *rules;
    int passes;
    double most[2]; /* relative squared error, of either network: 1.5 times what was found */
} formats[] = {
    {ALL "    weights: {format: e4m3, granularity: channel}\n", 0, {5.4e-3, 1.1e-2}},
    {ALL "    weights: {format: e4m3, granularity: tensor}\n    activations: {format: e4m3, granularity: tensor}\n",
     1,
     {6.8e-3, 2.5e-2}},
    {ALL "    weights: {format: e5m2, granularity: channel}\n    activations: {format: e5m2, granularity: tensor}\n",
     1,
     {4.7e-3, 7.5e-2}},
    {ALL INT8_WEIGHTS "    activations: {format: int8, granularity: tensor}\n", 1, {3.0e-4, 1.1e-2}},
    {ALL INT8_WEIGHTS "    activations: {format: int8, granularity: channel}\n", 1, {1.3e-4, 5.7e-4}},
    {ALL INT8_WEIGHTS "    activations: {format: uint8, granularity: tensor}\n", 1, {1.2e-4, 3.5e-4}},
    {ALL INT8_WEIGHTS "    activations: {format: uint8, granularity: channel}\n", 1, {1.3e-4, 5.7e-4}},
    {ALL "    weights: {format: int8, granularity: channel, calibrator: mse}\n"
         "    activations: {format: int8, granularity: tensor, calibrator: mse}\n",
     1,
     {3.1e-4, 5.1e-4}},
    {ALL "    weights: {format: e4m3, granularity: tensor, calibrator: percentile, percentile: 99.9}\n"
         "    activations: {format: e4m3, granularity: tensor, calibrator: entropy}\n",
     1,
     {1.2e-2, 2.0e-1}},
    {ALL "    weights: {format: int8, granularity: block, block: 8}\n"
         "    activations: {format: int8, granularity: block, block: 8}\n",
     0,
     {8.1e-5, 7.0e-4}},
    {ALL "    weights: {format: mxfp8}\n    activations: {format: mxfp8, scale: ceil}\n", 0, {1.9e-2, 2.8e-2}},
    {ALL "    weights: {format: nvfp4}\n    activations: {format: nvfp4}\n", 1, {3.2e-2, 1.1e-1}},
    {ALL "    weights: {format: bf16}\n    activations: {format: bf16}\n", 0, {6.4e-6, 1.9e-4}},
};

static void test_formats(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        for (int t = 0; t < 2; t++) {
            double off[12];
            const double error =
                learnt_error(formats[i].rules, t ? build_transformer : build_convolutions, formats[i].passes, off);
            if (!(error > 0 && error <= formats[i].most[t])) fail_msg("%s%d: %g", formats[i].rules, t, error);
        }
    }
}

/* Attention's three inputs and its probabilities, additions, a constant summand, the mean. */
static void test_other_ops(void **state) {
    (void)state;
    static const struct {
        const char *format;
        double most;
    } kinds[] = {{"e4m3, granularity: tensor", 4e-3}, {"int8, granularity: tensor", 2e-2}, {"mxfp8", 4e-3}};
    for (size_t k = 0; k < 3; k++) {
        char rules[256];
        double off[12];
        (void)snprintf(rules, sizeof rules, "  - ops: {kind: [attention, add]}\n    activations: {format: %s}\n",
                       kinds[k].format);
        const double error = learnt_error(rules, build_transformer, k < 2, off);
        if (!(error > 0 && error < kinds[k].most)) fail_msg("%s: %g", kinds[k].format, error);
    }
    double off[12];
    const double error =
        learnt_error("  - ops: {kind: global_pool}\n    activations: {format: int8, granularity: tensor}\n",
                     build_convolutions, 1, off);
    assert_true(error > 0 && error < 1e-4);
}

/* ---- what entries say */

typedef struct extremes {
    float most[16];
    size_t values;
} extremes;

static void look(void *user, const oct_graph_node *node, const oct_array *output) {
    extremes *e = user;
    if (strcmp(node->name, "h") != 0) return;
    const size_t count = (size_t)oct_shape_count(&output->shape);
    for (size_t i = 0; i < count; i++) e->most[i % 16] = fmaxf(e->most[i % 16], fabsf(output->data[i]));
    e->values += count;
}

static void test_entries(void **state) {
    (void)state;
    oct_recipe recipe;
    oct_scale_draft draft = {0};
    network plain;
    extremes e = {0};
    parse(&recipe, "fp16",
          "  - ops: {kind: global_pool}\n    activations: {format: int8, granularity: tensor, calibrator: percentile, "
          "percentile: 50}\n    outliers: {predicate: max/p99.99, above: 1, action: per_channel}\n"
          "  - ops: {name: g}\n    activations: {format: nvfp4}\n");
    assert_int_equal(calibrate(&recipe, build_convolutions, CALIBRATED, &draft), 1);
    build_convolutions(&plain);
    for (uint64_t p = 0; p < CALIBRATED; p++) {
        float logits[12];
        run(&plain.graph, p, logits, look, &e);
    }
    const oct_scale *pool = oct_scale_file_find(&draft.file, "pool"), *g = oct_scale_file_find(&draft.file, "g");
    assert_true(draft.file.count == 2 && pool->channel_count == 16 && pool->values == e.values);
    assert_memory_equal(pool->channels, e.most, sizeof e.most);
    assert_true(pool->amax == oct_amax(e.most, 16) && pool->threshold < 0.5f * pool->amax);
    assert_true(pool->has_p9999 && pool->p9999 > pool->threshold && pool->p9999 <= pool->amax);
    assert_true(pool->scales[0] == pool->threshold / 127 && pool->percentile == 50);
    assert_true(g->scales[0] == oct_nvfp4_tensor_scale(g->amax) && g->granularity == OCT_PER_BLOCK);
    oct_graph_free(&plain.graph);
    oct_scale_draft_free(&draft);
    oct_recipe_free(&recipe);
    assert_int_equal(oct_alloc_live(), 0);
}

/* ---- what the options are for */

static double sum_of(const double off[12]) {
    double sum = 0;
    for (size_t i = 0; i < 12; i++) sum += off[i] * off[i];
    return sum;
}

/* The geometric mean over networks of unlike weights: one network's error is a matter of chance. */
#define NETWORKS 8
static double mean_error(const char *rules, builder build, int passes) {
    double sum = 0, off[12];
    for (network_number = 0; network_number < NETWORKS; network_number++)
        sum += log(learnt_error(rules, build, passes, off));
    network_number = 0;
    return exp(sum / NETWORKS);
}

/* Depthwise convolutions and kernels, too; a scale a tensor and a channel. */
static void test_compensated_is_better(void **state) {
    (void)state;
    static const char *const kinds[] = {"e4m3, granularity: channel", "int8, granularity: tensor"};
    for (size_t k = 0; k < 2; k++) {
        for (int t = 0; t < 2; t++) {
            const builder build = t ? build_transformer : build_convolutions;
            char rules[256];
            (void)snprintf(rules, sizeof rules, ALL "    weights: {format: %s}\n", kinds[k]);
            const double nearest = mean_error(rules, build, 0);
            (void)snprintf(rules, sizeof rules, ALL "    weights: {format: %s, rounding: compensated}\n", kinds[k]);
            const double better = mean_error(rules, build, 1);
            if (!(better < nearest / (t ? 2 : 10))) fail_msg("%s %d: %g from %g", kinds[k], t, better, nearest);
        }
    }
}

static void test_bias_is_corrected(void **state) {
    (void)state;
    double before[12], after[12];
    const char *rules = "  - ops: {kind: linear, name: g}\n    weights: {format: e4m3, granularity: tensor}\n"
                        "    activations: {format: e4m3, granularity: tensor}\n";
    (void)learnt_error(rules, build_convolutions, 1, before);
    char with[512];
    (void)snprintf(with, sizeof with, "%s    bias_correction: true\n", rules);
    (void)learnt_error(with, build_convolutions, 2, after);
    if (!(sum_of(after) < 0.1 * sum_of(before))) fail_msg("%g after, %g before", sum_of(after), sum_of(before));
}

static void test_smoothing_helps(void **state) {
    (void)state;
    static const struct {
        const char *activations;
        int passes;
        double most; /* of the error without, by the better of the two ways */
    } kinds[] = {{"{format: int8, granularity: tensor}", 1, 0.75},
                 {"{format: int8, granularity: tensor, calibrator: percentile, percentile: 99.9}", 1, 1},
                 {"{format: int8, granularity: row}", 0, 0.75}};
    for (size_t k = 0; k < 3; k++) {
        static const char *const how[] = {"none", "0.5", "searched"};
        double error[3];
        for (size_t i = 0; i < 3; i++) {
            char rules[512];
            (void)snprintf(rules, sizeof rules,
                           "  - ops: {kind: linear}\n" INT8_WEIGHTS "    activations: %s\n    smoothing: %s\n",
                           kinds[k].activations, how[i]);
            error[i] = mean_error(rules, build_transformer, kinds[k].passes + (i > 0));
        }
        const double best = fmin(error[1], error[2]);
        if (!(best < kinds[k].most * error[0]))
            fail_msg("%s: %g, smoothed %g, searched %g", kinds[k].activations, error[0], error[1], error[2]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),           cmocka_unit_test(test_other_ops),
        cmocka_unit_test(test_entries),           cmocka_unit_test(test_compensated_is_better),
        cmocka_unit_test(test_bias_is_corrected), cmocka_unit_test(test_smoothing_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
