/* SPDX-License-Identifier: Apache-2.0 */
/* Reading recipes, each mistake by its line and hint, and applying them to a small graph: order, ends, override. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "quant/recipe.h"
#include "support/support.h"

#define HEAD "recipe: r\nbase: fp16\nrules:\n" /* three lines */
#define NUMBERS                                                                                                        \
    "    weights: {format: int8, granularity: channel}\n    activations: {format: int8, granularity: tensor}\n"

/* input -> a (3x3) -> b (depthwise) -> c (1x1) -> pool -> d (linear) */
static void build(oct_graph *graph) {
    *graph = (oct_graph){0};
    int32_t x = oct_graph_input(graph, "input", (oct_shape){4, {1, 8, 8, 3}});
    static const struct {
        const char *name;
        int64_t o, k, c;
        int groups;
    } convolutions[] = {{"a", 16, 3, 3, 1}, {"b", 16, 3, 1, 16}, {"c", 32, 1, 16, 1}};
    for (size_t i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%s.weight", convolutions[i].name);
        const oct_shape shape = {4, {convolutions[i].o, convolutions[i].k, convolutions[i].k, convolutions[i].c}};
        float *data = oct_calloc((size_t)oct_shape_count(&shape), sizeof *data);
        int pad = (int)convolutions[i].k / 2;
        const oct_attributes attributes = {.stride_h = 1,
                                           .stride_w = 1,
                                           .pad_top = pad,
                                           .pad_left = pad,
                                           .pad_bottom = pad,
                                           .pad_right = pad,
                                           .groups = convolutions[i].groups};
        const int32_t inputs[] = {x, oct_graph_constant(graph, name, shape, data)};
        x = oct_graph_add_node(graph, OCT_OP_CONV2D, convolutions[i].name, inputs, 2, &attributes);
    }
    x = oct_graph_add_node(graph, OCT_OP_GLOBAL_POOL, "pool", &x, 1, NULL);
    float *data = oct_calloc(320, sizeof *data);
    const int32_t inputs[] = {x, oct_graph_constant(graph, "d.weight", (oct_shape){2, {10, 32}}, data)};
    x = oct_graph_add_node(graph, OCT_OP_LINEAR, "d", inputs, 2, NULL);
    assert_int_equal(oct_graph_output(graph, x, "logits"), OCTET_OK);
    assert_int_equal(oct_graph_check(graph), OCTET_OK);
}

/* ---- mistakes: each is refused with its line, and says what it is */

typedef struct mistake {
    const char *text;
    int line;
    const char *says, *hint; /* parts of the fact and of the hint; NULL: any */
} mistake;

#define RULE "  - ops: {kind: conv2d}\n" /* line 4 */
static const mistake mistakes[] = {
    {"recipe: r\nbase: fp16\nruls: []\n", 3, "did you mean 'rules'", NULL},
    {"recipe: r\nbase: fp61\nrules: []\n", 2, "expected one of fp32, fp16, bf16, found 'fp61'", "fp16"},
    {"recipe: r\nbase: e4m3\nrules: []\n", 2, "base", NULL},
    {"recipe: r\nbase: 16\nrules: []\n", 2, "'16'", NULL},
    {"recipe: r\nbase:\nrules: []\n", 2, "base", NULL},
    {"recipe: r\nrules: []\n", 1, "missing key 'base'", NULL},
    {"base: fp16\nrules: []\n", 1, "missing key 'recipe'", NULL},
    {"recipe: [r]\nbase: fp16\nrules: []\n", 1, "recipe", NULL},
    {"recipe: r\nbase: fp16\n", 1, "rules", NULL},
    {"recipe: r\nbase: fp16\nrules: {}\n", 3, "rules", NULL},
    {"recipe: r\nbase: fp16\nrules:\n", 3, "rules", NULL},
    {"recipe: r\nrecipe: q\nbase: fp16\nrules: []\n", 2, "twice", NULL},
    {"- 1\n", 1, "expected a map", NULL},
    {"calibrater: max\n", 1, "unknown key 'calibrater'", NULL},
    {HEAD "  - 3\n", 4, "expected a map", NULL},
    {HEAD "  - weights: none\n", 4, "missing key 'ops'", NULL},
    {HEAD "  - ops: all\n    keep: true\n", 4, "expected a map", NULL},
    {HEAD RULE, 4, "says nothing", NULL},
    {HEAD RULE "    keep: false\n", 4, "says nothing", NULL},
    {HEAD RULE "    keep: yes\n", 5, "keep: expected true or false", NULL},
    {HEAD RULE "    keep: true\n    smoothing: 0.5\n", 4, "stands alone", NULL},
    {HEAD RULE "    kep: true\n", 5, "did you mean 'keep'", NULL},
    {HEAD "  - ops: {kind: conv}\n    keep: true\n", 4, "kind: expected one of conv2d", NULL},
    {HEAD "  - ops: {kind: layer_norm}\n    keep: true\n", 4, "kind", NULL},
    {HEAD "  - ops: {kind: []}\n    keep: true\n", 4, "empty list", NULL},
    {HEAD "  - ops: {kind: [conv2d, 3]}\n    keep: true\n", 4, "'3'", NULL},
    {HEAD "  - ops: {name: 3}\n    keep: true\n", 4, "name: expected a pattern", NULL},
    {HEAD "  - ops: {name: ['']}\n    keep: true\n", 4, "name: expected a pattern", NULL},
    {HEAD "  - ops: {name: []}\n    keep: true\n", 4, "name", NULL},
    {HEAD "  - ops: {nme: a}\n    keep: true\n", 4, "did you mean 'name'", NULL},
    {HEAD "  - ops: {kernel: 1}\n    keep: true\n", 4, "kernel", NULL},
    {HEAD "  - ops: {kernel: [1, 1.5]}\n    keep: true\n", 4, "kernel", NULL},
    {HEAD "  - ops: {kernel: [0, 1]}\n    keep: true\n", 4, "kernel", NULL},
    {HEAD "  - ops: {depthwise: maybe}\n    keep: true\n", 4, "depthwise", NULL},
    {HEAD "  - ops: {pixels_from: 1_000}\n    keep: true\n", 4, "pixels_from", NULL},
    {HEAD "  - ops: {pixels_from: 9, pixels_to: 8}\n    keep: true\n", 4, "less than", NULL},
    {HEAD "  - ops: {first: 0}\n    keep: true\n", 4, "first", NULL},
    {HEAD RULE "    weights: e4m3\n", 5, "expected a map", NULL},
    {HEAD RULE "    weights:\n", 5, "weights", NULL},
    {HEAD RULE "    weights: {granularity: tensor}\n", 5, "missing key 'format'", NULL},
    {HEAD RULE "    weights: {format: e4m3}\n", 5, "missing key 'granularity'", NULL},
    {HEAD RULE "    weights: {format: e4m2, granularity: tensor}\n", 5, "'e4m2'", "e4m3"},
    {HEAD RULE "    weights: {format: uint8, granularity: tensor}\n", 5, "'uint8'", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: chanel}\n", 5, "'chanel'", "channel"},
    {HEAD RULE "    weights: {format: e4m3, granularity: row}\n", 5, "'row'", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: tensor, block: 32}\n", 5, "block", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: block}\n", 5, "block", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: block, block: 7}\n", 5, "block", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: tensor, rounding: up}\n", 5, "rounding", NULL},
    {HEAD RULE "    weights: {format: e4m3, granularity: tensor, scale: ceil}\n", 5, "only mxfp8", NULL},
    {HEAD RULE "    weights: {format: fp16, granularity: tensor}\n", 5, "no scale", NULL},
    {HEAD RULE "    weights: {format: nvfp4, block: 32}\n", 5, "block", NULL},
    {HEAD RULE "    weights: {format: mxfp8, granularity: tensor}\n", 5, "granularity", NULL},
    {HEAD RULE "    weights: {format: mxfp8, calibrator: max}\n", 5, "nothing to calibrate", NULL},
    {HEAD RULE "    weights: {format: mxfp8, rounding: compensated}\n", 5, "not a block", NULL},
    {HEAD RULE "    weights: {format: int8, granularity: block, block: 8, rounding: compensated}\n", 5, "not a block",
     NULL},
    {HEAD RULE "    weights: {format: int8, granularity: block, block: 8, calibrator: mse}\n", 5,
     "nothing to calibrate", NULL},
    {HEAD RULE "    weights: {format: nvfp4, scale: ceil}\n", 5, "only mxfp8", NULL},
    {HEAD RULE "    activations: {format: int8, granularity: tensor, rounding: nearest}\n", 5, "rounding", NULL},
    {HEAD RULE "    activations: {format: int8, granularity: row, calibrator: max}\n", 5, "nothing to calibrate", NULL},
    {HEAD RULE "    activations: {format: uint8, granularity: row}\n", 5, "'row'", NULL},
    {HEAD RULE "    activations: {format: int8, granularity: tensor, calibrator: maximum}\n", 5, "'maximum'", NULL},
    {HEAD RULE "    activations: {format: int8, granularity: tensor, calibrator: percentile}\n", 5, "percentile", NULL},
    {HEAD RULE "    activations: {format: int8, granularity: tensor, percentile: 99}\n", 5, "only the calibrator",
     NULL},
    {HEAD RULE "    activations:\n      format: int8\n      granularity: tensor\n      calibrator: percentile\n      "
               "percentile: 99.99%\n",
     9, "'99.99%'", NULL},
    {HEAD RULE "    activations:\n      format: int8\n      granularity: tensor\n      calibrator: percentile\n      "
               "percentile: 100.1\n",
     9, "at most 100", NULL},
    {HEAD RULE "    activations:\n      format: int8\n      granularity: tensor\n      calibrator: percentile\n      "
               "percentile: .inf\n",
     9, "finite", NULL},
    {HEAD RULE "    activations:\n      format: int8\n      granularity: tensor\n      calibrator: percentile\n      "
               "percentile: 0\n",
     9, "above 0", NULL},
    {HEAD RULE "    smoothing: 1.5\n", 5, "from 0 to 1", NULL},
    {HEAD RULE "    smoothing: .nan\n", 5, "from 0 to 1", NULL},
    {HEAD RULE "    smoothing: search\n", 5, "'search'", "searched"},
    {HEAD RULE "    smoothing: true\n", 5, "smoothing", NULL},
    {HEAD RULE "    equalization: 1\n", 5, "equalization", NULL},
    {HEAD RULE "    bias_correction: NO\n", 5, "bias_correction", NULL},
    {HEAD RULE "    outliers: clip\n", 5, "expected a map", NULL},
    {HEAD RULE "    outliers: {above: 20, action: clip}\n", 5, "missing key 'predicate'", NULL},
    {HEAD RULE "    outliers: {predicate: max/p99, above: 20, action: clip}\n", 5, "'max/p99'", "max/p99.99"},
    {HEAD RULE "    outliers: {predicate: max/p99.99, above: 0.5, action: clip}\n", 5, "at least 1", NULL},
    {HEAD RULE "    outliers: {predicate: max/p99.99, above: x, action: clip}\n", 5, "above: expected a number", NULL},
    {HEAD RULE "    outliers: {predicate: max/p99.99, above: 20, action: keep}\n", 5, "'keep'", "keep16"},
};

static void test_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake *m = &mistakes[i];
        char where[32];
        oct_recipe recipe;
        if (oct_recipe_parse(&recipe, "r.yaml", m->text, strlen(m->text)) == OCTET_OK)
            fail_msg("accepted:\n%s", m->text);
        (void)snprintf(where, sizeof where, "r.yaml:%d: ", m->line);
        if (strncmp(oct_error_fact(), where, strlen(where)) != 0 || strstr(oct_error_fact(), m->says) == NULL ||
            (m->hint != NULL && strstr(oct_error_hint(), m->hint) == NULL))
            fail_msg("%s\nexpected %s ... %s, found: %s", m->text, where, m->says, oct_error_text());
        assert_null(recipe.rules);
    }
    assert_int_equal(oct_alloc_live(), 0);
}

/* Only against a graph. */
static const mistake mismatches[] = {
    {HEAD "  - ops: {name: [a, e]}\n    keep: true\n", 4, "pattern 'e'", "named '"},
    {HEAD "  - ops:\n      name:\n        - a\n        - conv*\n    keep: true\n", 7, "pattern 'conv*'", "named '"},
    {HEAD "  - ops: {kind: linear, name: a}\n    keep: true\n", 4, "pattern 'a'", "named 'd'"},
    {HEAD "  - ops: {not: x}\n    keep: true\n", 4, "pattern 'x'", NULL},
    {HEAD "  - ops: {kernel: [5, 5]}\n    keep: true\n", 4, "selects no op", NULL},
    {HEAD "  - ops: {name: a, not: a}\n    keep: true\n", 4, "selects no op", NULL},
    {HEAD "  - ops: {kind: attention}\n    keep: true\n", 4, "selects no op", NULL},
    {HEAD "  - ops: {kind: global_pool}\n" NUMBERS, 5, "pool, an op of kind global_pool, which has no weights",
     "rule of its own"},
    {HEAD RULE "    outliers: {predicate: max/p99.99, above: 20, action: clip}\n", 5, "no static activation scale",
     NULL},
    {HEAD RULE NUMBERS "    outliers: {predicate: max/p99.99, above: 20, action: clip}\n" RULE
                       "    activations: {format: int8, granularity: row}\n",
     7, "no static activation scale", NULL},
    {HEAD RULE "    weights: {format: fp32}\n", 5, "weights: the op 'a' would have fp32", NULL},
    {HEAD RULE "    activations: {format: fp32}\n", 5, "activations: the op 'a' would have fp32", NULL},
    {HEAD RULE "    smoothing: searched\n", 5, "smoothing: the op 'a' is no linear or 1x1", NULL},
    {HEAD "  - ops: {name: b}\n    smoothing: searched\n", 5, "smoothing: the op 'b' is no linear or 1x1", NULL},
};

static void test_mismatches(void **state) {
    (void)state;
    oct_graph graph;
    build(&graph);
    for (size_t i = 0; i < sizeof mismatches / sizeof *mismatches; i++) {
        const mistake *m = &mismatches[i];
        char where[32];
        oct_recipe recipe;
        oct_decisions decisions;
        if (oct_recipe_parse(&recipe, "r.yaml", m->text, strlen(m->text)) != OCTET_OK) fail_msg("%s", oct_error_text());
        if (oct_recipe_apply(&recipe, &graph, &decisions) == OCTET_OK) fail_msg("accepted:\n%s", m->text);
        (void)snprintf(where, sizeof where, "r.yaml:%d: ", m->line);
        if (strncmp(oct_error_fact(), where, strlen(where)) != 0 || strstr(oct_error_fact(), m->says) == NULL ||
            (m->hint != NULL && strstr(oct_error_hint(), m->hint) == NULL))
            fail_msg("%s\nexpected %s ... %s, found: %s", m->text, where, m->says, oct_error_text());
        assert_null(decisions.nodes);
        oct_recipe_free(&recipe);
    }
    oct_graph_free(&graph);
    assert_int_equal(oct_alloc_live(), 0);
}

/* ---- what comes out, as text: the whole table */

static void expect_table(const char *text, const char *table) {
    oct_graph graph;
    oct_recipe recipe;
    oct_decisions decisions;
    oct_text found = {0};
    build(&graph);
    if (oct_recipe_parse(&recipe, "r.yaml", text, strlen(text)) != OCTET_OK ||
        oct_recipe_apply(&recipe, &graph, &decisions) != OCTET_OK)
        fail_msg("%s\n%s", text, oct_error_text());
    oct_decisions_print(&recipe, &graph, &decisions, &found);
    assert_string_equal(found.data, table);
    oct_text_free(&found);
    oct_decisions_free(&decisions);
    oct_recipe_free(&recipe);
    oct_graph_free(&graph);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_tables(void **state) {
    (void)state;
    expect_table("recipe: none at all\nbase: bf16\nrules: []\n",
                 "a conv2d [1, 8, 8, 16]: bf16 (base, line 2)\n"
                 "b conv2d [1, 8, 8, 16]: bf16 (base, line 2)\n"
                 "c conv2d [1, 8, 8, 32]: bf16 (base, line 2)\n"
                 "pool global_pool [1, 32]: bf16 (base, line 2)\n"
                 "d linear [1, 10]: bf16 (base, line 2)\n"
                 "recipe none at all: 0 of 5 ops narrow, the others bf16\n");
    expect_table(HEAD "  - ops: {}\n" NUMBERS                                                      /* 4 .. 6 */
                      "    smoothing: 0.25\n"                                                      /* 7 */
                      "  - ops: {kind: conv2d, depthwise: true}\n    keep: true\n"                 /* 8 */
                      "  - ops: {name: ['[ac]', d], last: 2}\n"                                    /* 10 */
                      "    weights: {format: e4m3, granularity: channel, rounding: compensated}\n" /* 11 */
                      "    bias_correction: true\n"
                      "  - ops: {kind: conv2d, kernel: [1, 1], pixels_from: 64, channels_out_from: 32}\n" /* 13 */
                      "    activations:\n      format: int8\n      granularity: tensor\n      calibrator: percentile\n"
                      "      percentile: 99.99\n"
                      "    outliers: {predicate: max/p99.99, above: 1e2, action: per_channel}\n"
                      "  - ops: {kind: global_pool}\n    activations: {format: mxfp8, scale: ceil}\n", /* 20 */
                 "a conv2d [1, 8, 8, 16]: weights int8 channel max, activations int8 tensor max, smoothing 0.25 "
                 "(rule 1, line 4)\n"
                 "b conv2d [1, 8, 8, 16]: fp16 (rule 2, line 8)\n"
                 "c conv2d [1, 8, 8, 32]: weights e4m3 compensated channel max, activations int8 tensor percentile "
                 "99.99, smoothing 0.25, bias correction, per_channel where max/p99.99 > 100 (rule 1, line 4; rule "
                 "3, line 10; rule 4, line 13)\n"
                 "pool global_pool [1, 32]: activations mxfp8 ceil (rule 5, line 20)\n"
                 "d linear [1, 10]: weights e4m3 compensated channel max, activations int8 tensor max, smoothing "
                 "0.25, bias correction (rule 1, line 4; rule 3, line 10)\n"
                 "recipe r: 4 of 5 ops narrow, the others fp16\n");
    /* later says other: none, and both ends */
    expect_table(HEAD
                 "  - ops: {kind: [conv2d, linear]}\n" NUMBERS "  - ops: {kind: [conv2d, linear], first: 1, last: 1}\n"
                 "    activations: none\n"
                 "  - ops: {kind: linear}\n    weights: {format: bf16}\n    activations: {format: int8, granularity: "
                 "block, block: 128}\n",
                 "a conv2d [1, 8, 8, 16]: weights int8 channel max (rule 1, line 4; rule 2, line 7)\n"
                 "b conv2d [1, 8, 8, 16]: weights int8 channel max, activations int8 tensor max (rule 1, line 4)\n"
                 "c conv2d [1, 8, 8, 32]: weights int8 channel max, activations int8 tensor max (rule 1, line 4)\n"
                 "pool global_pool [1, 32]: fp16 (base, line 2)\n"
                 "d linear [1, 10]: weights bf16, activations int8 block 128 dynamic (rule 3, line 9)\n"
                 "recipe r: 4 of 5 ops narrow, the others fp16\n");
}

/* Case 43: what people write, in a recipe's own fields. */
static void test_yaml_scalars(void **state) {
    (void)state;
    const char *text = "\xef\xbb\xbfrecipe: 0123456\r\ndescription: NO\r\nbase: fp16\r\nrules: []\r\n";
    oct_recipe recipe;
    assert_int_equal(oct_recipe_parse(&recipe, "r.yaml", text, strlen(text)), OCTET_OK);
    assert_string_equal(recipe.name, "0123456");
    assert_string_equal(recipe.description, "NO");
    oct_recipe_free(&recipe);
    static const struct {
        const char *file;
        int line;
    } bad[] = {{"duplicate_key", 2}, {"tab", 2},        {"anchor_bomb", 0},  {"alias_cycle", 0}, {"two_documents", 2},
               {"bom_crlf", 1},      {"python_tag", 1}, {"unterminated", 0}, {"unknown_key", 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[128], where[16];
        (void)snprintf(name, sizeof name, "cases/43-yaml-scalars/%s.yaml", bad[i].file);
        const char *path = support_shared(name);
        if (path == NULL) SUPPORT_SKIP("shared %s is not here", name);
        if (oct_recipe_read(&recipe, path) == OCTET_OK) fail_msg("%s was read", name);
        (void)snprintf(where, sizeof where, ".yaml:%d: ", bad[i].line);
        if (bad[i].line > 0 && strstr(oct_error_fact(), where) == NULL) fail_msg("%s", oct_error_text());
    }
    assert_int_equal(oct_alloc_live(), 0);
}

/* Every allocation fails once, and from then on. */
static void test_no_memory(void **state) {
    (void)state;
    static const char text[] = HEAD "  - ops: {name: [a, b], not: [c]}\n" NUMBERS;
    oct_graph graph;
    build(&graph);
    int64_t live = oct_alloc_live();
    for (int forever = 0; forever < 2; forever++) {
        bool met = true;
        for (uint64_t n = 1; met; n++) {
            oct_recipe recipe;
            oct_decisions decisions;
            oct_text table = {0};
            oct_alloc_fail_at(n, forever == 1);
            octet_status status = oct_recipe_parse(&recipe, "r.yaml", text, strlen(text));
            if (status == OCTET_OK) {
                status = oct_recipe_apply(&recipe, &graph, &decisions);
                if (status == OCTET_OK) {
                    oct_decisions_print(&recipe, &graph, &decisions, &table);
                    if (table.failed) status = OCTET_OUT_OF_MEMORY;
                    oct_text_free(&table);
                    oct_decisions_free(&decisions);
                }
                oct_recipe_free(&recipe);
            }
            met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
            assert_int_equal(oct_alloc_live(), live);
        }
    }
    oct_graph_free(&graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_mismatches), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_yaml_scalars), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
