/* SPDX-License-Identifier: Apache-2.0 */
/* Ops: values worked by hand, shapes that do not fit with their texts, building, inference, checks, dumps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/ops.h"

#define SHAPE(...)                                                                                                     \
    oct_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static int32_t constant(oct_graph *graph, const char *name, oct_shape shape, const float *values) {
    size_t count = (size_t)oct_shape_count(&shape);
    float *data = oct_alloc(count * sizeof(float));
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) data[i] = values != NULL ? values[i] : 1.0f;
    return oct_graph_constant(graph, name, shape, data);
}

static void expect_values(const oct_graph *graph, const float *input, const float *expected, size_t count) {
    oct_array output;
    assert_int_equal(oct_graph_check(graph), OCTET_OK);
    assert_int_equal(oct_graph_evaluate(graph, input, &output, 1, NULL, NULL), OCTET_OK);
    assert_int_equal(oct_shape_count(&output.shape), count);
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)output.data[i] - (double)expected[i]) <= 1e-6)) {
            fail_msg("element %zu: %g, expected %g", i, (double)output.data[i], (double)expected[i]);
        }
    }
    oct_free(output.data);
}

static void expect_fact(int32_t id, const char *fact) {
    assert_int_equal(id, OCT_NONE);
    assert_string_equal(oct_error_fact(), fact);
}

/* ---- values */

static void test_conv2d(void **state) {
    (void)state;
    oct_graph graph = {0};
    /* 3 x 3 picture 1..9, kernel 2 x 2 of ones, stride 2, one row of zeros above and one column left; bias 10 */
    const float picture[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, ten = 10;
    int32_t inputs[] = {oct_graph_input(&graph, "x", SHAPE(1, 3, 3, 1)), constant(&graph, "w", SHAPE(1, 2, 2, 1), NULL),
                        constant(&graph, "b", SHAPE(1), &ten)};
    oct_attributes a = {.stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1, .groups = 1, .has_bias = true};
    int32_t y = oct_graph_add_node(&graph, OCT_OP_CONV2D, "conv", inputs, 3, &a);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    const float expected[] = {11, 15, 21, 38};
    expect_values(&graph, picture, expected, 4);
    assert_int_equal(oct_node_flops(&graph, &graph.nodes[0]), 2 * 4 * 4);
    assert_int_equal(oct_node_bytes(&graph, &graph.nodes[0]), 4 * (9 + 4 + 1 + 4));
    oct_graph_free(&graph);
}

static void test_conv2d_groups(void **state) {
    (void)state;
    oct_graph graph = {0};
    /* 4 channels in 2 groups, 2 outputs: 1*1 + 2*2 and 3*3 + 4*4; residual -20, then relu */
    const float picture[] = {1, 2, 3, 4}, weight[] = {1, 2, 3, 4}, residual[] = {-20, -20};
    int32_t inputs[] = {oct_graph_input(&graph, "x", SHAPE(1, 1, 1, 4)),
                        constant(&graph, "w", SHAPE(2, 1, 1, 2), weight),
                        constant(&graph, "r", SHAPE(1, 1, 1, 2), residual)};
    oct_attributes a = {
        .stride_h = 1, .stride_w = 1, .groups = 2, .has_residual = true, .activation = OCT_ACTIVATION_RELU};
    int32_t y = oct_graph_add_node(&graph, OCT_OP_CONV2D, "conv", inputs, 3, &a);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    const float expected[] = {0, 5};
    expect_values(&graph, picture, expected, 2);
    oct_graph_free(&graph);
}

static void test_linear(void **state) {
    (void)state;
    oct_graph graph = {0};
    const float x[] = {1, 2, 3, 4}, w[] = {1, 0, 0, 1, 1, 1}, b[] = {0, 0, 100};
    int32_t inputs[] = {oct_graph_input(&graph, "x", SHAPE(1, 2, 2)), constant(&graph, "w", SHAPE(3, 2), w),
                        constant(&graph, "b", SHAPE(3), b)};
    oct_attributes a = {.has_bias = true};
    assert_int_equal(oct_graph_output(&graph, oct_graph_add_node(&graph, OCT_OP_LINEAR, "fc", inputs, 3, &a), "out"),
                     OCTET_OK);
    const float expected[] = {1, 2, 103, 3, 4, 107};
    expect_values(&graph, x, expected, 6);
    oct_graph_free(&graph);
}

static void test_norms(void **state) {
    (void)state;
    oct_graph graph = {0};
    const float x[] = {1, 3}, two[] = {2, 2}, one[] = {1, 1}, four[] = {4, 4};
    int32_t input = oct_graph_input(&graph, "x", SHAPE(1, 2));
    /* batch norm, mean 1, variance 4: (0, 1), times 2 plus 1: (1, 3); layer norm of it: (-1, 1), times 2 plus 1: (-1,
     * 3) */
    int32_t batch[] = {input, constant(&graph, "g", SHAPE(2), two), constant(&graph, "b", SHAPE(2), one),
                       constant(&graph, "m", SHAPE(2), one), constant(&graph, "v", SHAPE(2), four)};
    int32_t y = oct_graph_add_node(&graph, OCT_OP_BATCH_NORM, "bn", batch, 5, &(oct_attributes){0});
    int32_t layer[] = {y, batch[1], batch[2]};
    y = oct_graph_add_node(&graph, OCT_OP_LAYER_NORM, "ln", layer, 3, &(oct_attributes){0});
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    const float expected[] = {-1, 3};
    expect_values(&graph, x, expected, 2);
    oct_graph_free(&graph);
}

static void test_activations(void **state) {
    (void)state;
    assert_true(oct_activation_reference(OCT_ACTIVATION_RELU6, 7) == 6);
    assert_true(oct_activation_reference(OCT_ACTIVATION_SIGMOID, 0) == 0.5);
    assert_true(fabs(oct_activation_reference(OCT_ACTIVATION_GELU, 1) - 0.841344746068543) < 1e-15);
    assert_true(oct_activation_reference(OCT_ACTIVATION_GELU, -INFINITY) == 0);
    assert_true(oct_activation_reference(OCT_ACTIVATION_GELU, INFINITY) == INFINITY);
    for (int i = 0; i < OCT_ACTIVATION_COUNT; i++) {
        assert_true(isnan(oct_activation_reference((oct_activation)i, NAN)));
        assert_string_not_equal(oct_activation_name((oct_activation)i), "unknown");
    }
    oct_graph graph = {0};
    const float x[] = {-2, 0, 2};
    int32_t input = oct_graph_input(&graph, "x", SHAPE(1, 3));
    int32_t y = oct_graph_add_node(&graph, OCT_OP_ACTIVATION, "act", &input, 1,
                                   &(oct_attributes){.activation = OCT_ACTIVATION_RELU});
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    const float expected[] = {0, 0, 2};
    expect_values(&graph, x, expected, 3);
    oct_graph_free(&graph);
}

static void test_attention(void **state) {
    (void)state;
    oct_graph graph = {0};
    /* two tokens, two heads of one channel. Head 0: q = (0, ln 3), k = (0, 1): token 0 averages v, token 1 weighs 1
     * : 3. Head 1: q = 0: both tokens average. */
    const float q[] = {0, 0, 1.0986122886681098f, 0}, k[] = {0, 5, 1, 7}, v[] = {0, 2, 4, 4};
    int32_t inputs[] = {oct_graph_input(&graph, "q", SHAPE(1, 2, 2)), constant(&graph, "k", SHAPE(1, 2, 2), k),
                        constant(&graph, "v", SHAPE(1, 2, 2), v)};
    oct_attributes a = {.heads = 2, .scale = 1};
    assert_int_equal(
        oct_graph_output(&graph, oct_graph_add_node(&graph, OCT_OP_ATTENTION, "att", inputs, 3, &a), "out"), OCTET_OK);
    const float expected[] = {2, 3, 3, 3};
    expect_values(&graph, q, expected, 4);
    oct_graph_free(&graph);
}

/* concat, add with batch 1, slice, reshape, pool; at batch 1 and 2 */
static void test_moves(void **state) {
    (void)state;
    oct_graph graph = {0};
    const float picture[] = {1, 2, 3, 4, 5, 6, 7, 8}, token[] = {-1, -2}, position[] = {100, 100, 10, 10, 0, 0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 1, 2, 2));
    x = oct_graph_add_node(&graph, OCT_OP_RESHAPE, "tokens", &x, 1, &(oct_attributes){.shape = SHAPE(1, 2, 2)});
    int32_t parts[] = {constant(&graph, "cls", SHAPE(1, 1, 2), token), x};
    x = oct_graph_add_node(&graph, OCT_OP_CONCAT, "all", parts, 2, NULL);
    int32_t sum[] = {x, constant(&graph, "pos", SHAPE(1, 3, 2), position)};
    x = oct_graph_add_node(&graph, OCT_OP_ADD, "sum", sum, 2, NULL);
    x = oct_graph_add_node(&graph, OCT_OP_SLICE, "two", &x, 1, &(oct_attributes){.start = 0, .length = 2});
    x = oct_graph_add_node(&graph, OCT_OP_RESHAPE, "map", &x, 1, &(oct_attributes){.shape = SHAPE(1, 1, 2, 2)});
    x = oct_graph_add_node(&graph, OCT_OP_GLOBAL_POOL, "pool", &x, 1, NULL);
    assert_int_equal(oct_graph_output(&graph, x, "out"), OCTET_OK);
    const float expected[] = {(99 + 11) / 2.0f, (98 + 12) / 2.0f, (99 + 15) / 2.0f, (98 + 16) / 2.0f};
    expect_values(&graph, picture, expected, 2);
    assert_int_equal(oct_graph_infer(&graph, 2), OCTET_OK);
    expect_values(&graph, picture, expected, 4);
    oct_graph_free(&graph);
}

/* ---- shapes that do not fit */

static void test_shape_errors(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 4, 4, 3));
    int32_t w = constant(&graph, "w", SHAPE(8, 3, 3, 4), NULL), b = constant(&graph, "b", SHAPE(7), NULL);
    int32_t good = constant(&graph, "good", SHAPE(8, 3, 3, 3), NULL), t = constant(&graph, "t", SHAPE(1, 5, 3), NULL);
    int32_t odd = constant(&graph, "odd", SHAPE(1, 5, 4), NULL);
    oct_attributes a = {.stride_h = 1, .stride_w = 1, .groups = 1};
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, w}, 2, &a),
                "c: weight: expected [8, 3, 3, 3], found [8, 3, 3, 4]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, good, b}, 3, &a),
                "c: expected 2 inputs, found 3");
    a.has_bias = true;
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, good, b}, 3, &a),
                "c: bias: expected [8], found [7]");
    a.groups = 2;
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, good, b}, 3, &a),
                "c: 2 groups do not divide 3 input and 8 output channels");
    a = (oct_attributes){.stride_h = 1, .stride_w = 1, .groups = 1, .has_residual = true};
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, good, x}, 3, &a),
                "c: residual: expected [1, 2, 2, 8], found [1, 4, 4, 3]");
    int32_t large = constant(&graph, "large", SHAPE(8, 5, 5, 3), NULL);
    a.has_residual = false;
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, large}, 2, &a),
                "c: input [1, 4, 4, 3] is smaller than the 5 x 5 kernel");
    a.stride_h = 0;
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){x, good}, 2, &a),
                "c: strides must be 1 or more and padding 0 or more");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONV2D, "c", (int32_t[]){t, good}, 2, &a),
                "c: input: expected 4 dimensions, found [1, 5, 3]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_LINEAR, "l", (int32_t[]){t, x}, 2, NULL),
                "l: weight: expected 2 dimensions, found [1, 4, 4, 3]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_LINEAR, "l", (int32_t[]){b, x}, 2, NULL),
                "l: input: expected 2 to 4 dimensions, found [7]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_LAYER_NORM, "n", (int32_t[]){t, b, b}, 3, NULL),
                "n: gamma: expected [3], found [7]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_BATCH_NORM, "n", (int32_t[]){t, b, b}, 3, NULL),
                "n: expected 5 inputs, found 3");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_ADD, "s", (int32_t[]){t, odd}, 2, NULL),
                "s: second input: expected [1, 5, 3], found [1, 5, 4]");
    expect_fact(
        oct_graph_add_node(&graph, OCT_OP_ATTENTION, "a", (int32_t[]){t, t, odd}, 3, &(oct_attributes){.heads = 1}),
        "a: value: expected [1, 5, 3], found [1, 5, 4]");
    expect_fact(
        oct_graph_add_node(&graph, OCT_OP_ATTENTION, "a", (int32_t[]){t, t, t}, 3, &(oct_attributes){.heads = 2}),
        "a: 2 heads do not divide 3 channels");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_GLOBAL_POOL, "p", &t, 1, NULL),
                "p: input: expected 4 dimensions, found [1, 5, 3]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_RESHAPE, "r", &x, 1, &(oct_attributes){.shape = SHAPE(1, 7, 7)}),
                "r: [1, 7, 7] does not hold the elements of [1, 4, 4, 3]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_CONCAT, "k", (int32_t[]){t, odd}, 2, NULL),
                "k: input: expected [1, 5, 3], found [1, 5, 4]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_SLICE, "s", &t, 1, &(oct_attributes){.start = 4, .length = 2}),
                "s: 2 tokens from token 4 do not lie within [1, 5, 3]");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_ACTIVATION, "f", &t, 1, &(oct_attributes){.activation = 99}),
                "f: no activation 99");
    assert_int_equal(graph.node_count, 0);
    oct_graph_free(&graph);
}

static void test_building_errors(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 2));
    expect_fact(oct_graph_input(&graph, "y", SHAPE(1, 2)), "y: the graph already has the input x");
    expect_fact(constant(&graph, "x", SHAPE(2), NULL), "x");
    expect_fact(constant(&graph, "", SHAPE(2), NULL), "a value without a name");
    expect_fact(oct_graph_constant(&graph, "e", SHAPE(2, 0), oct_alloc(1)), "e: shape [2, 0] has an empty dimension");
    expect_fact(oct_graph_constant(&graph, "h", SHAPE(INT64_C(1) << 39, 4), oct_alloc(1)),
                "h: shape [549755813888, 4] has too many elements");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_ADD, "s", (int32_t[]){x, 77}, 2, NULL), "s: input 1: no value 77");
    /* a failure earlier in a chain stays the one reported */
    oct_fail(OCTET_IO, "the first");
    expect_fact(oct_graph_add_node(&graph, OCT_OP_ADD, "s", (int32_t[]){x, OCT_NONE}, 2, NULL), "the first");
    assert_int_equal(oct_graph_output(&graph, OCT_NONE, "o"), OCTET_IO);
    int32_t y = oct_graph_add_node(&graph, OCT_OP_ADD, "s", (int32_t[]){x, x}, 2, NULL);
    assert_int_equal(oct_graph_output(&graph, y, "x"), OCTET_INVALID_ARGUMENT);
    assert_int_equal(oct_graph_output(&graph, y, "out"), OCTET_OK);
    assert_int_equal(oct_graph_uses(&graph, x), 2);
    assert_int_equal(oct_graph_uses(&graph, y), 1);
    assert_int_equal(oct_graph_find(&graph, "out"), y);
    assert_int_equal(oct_graph_infer(&graph, 0), OCTET_INVALID_ARGUMENT);
    oct_array two[2];
    assert_int_equal(oct_graph_evaluate(&graph, (float[]){1, 2}, two, 2, NULL, NULL), OCTET_INVALID_ARGUMENT);
    graph.values[x].name = "out";
    assert_int_equal(oct_graph_check(&graph), OCTET_INTERNAL);
    oct_graph_free(&graph);
}

static void test_check_constants(void **state) {
    (void)state;
    oct_graph graph = {0};
    const float values[] = {1, NAN};
    oct_graph_input(&graph, "x", SHAPE(1, 2));
    constant(&graph, "c", SHAPE(2), values);
    assert_int_equal(oct_graph_check(&graph), OCTET_BAD_FORMAT);
    assert_string_equal(oct_error_fact(), "c: element 1 is nan");
    oct_graph_free(&graph);
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < OCT_OP_COUNT; i++) assert_int_equal(oct_op_by_name(oct_op_rows[i].name), i);
    assert_int_equal(oct_op_by_name("no such op"), -1);
}

static void test_dumps(void **state) {
    (void)state;
    oct_graph graph = {0};
    int32_t x = oct_graph_input(&graph, "x", SHAPE(1, 4, 4, 3));
    oct_attributes a = {.stride_h = 2, .stride_w = 2, .groups = 1, .activation = OCT_ACTIVATION_RELU6};
    x = oct_graph_add_node(&graph, OCT_OP_CONV2D, "conv",
                           (int32_t[]){x, constant(&graph, "w\"1", SHAPE(8, 3, 3, 3), NULL)}, 2, &a);
    assert_int_equal(oct_graph_output(&graph, x, "out \"quoted\""), OCTET_OK);
    oct_text text = {0};
    oct_graph_dump(&graph, &text);
    assert_string_equal(text.data,
                        "out \"quoted\" conv2d [1, 1, 1, 8] fp32 node=conv kernel=3x3 stride=2x2 pad=0,0,0,0 "
                        "relu6 <- x w\"1[8, 3, 3, 3] (output)\n");
    oct_text_free(&text);
    oct_graph_dot(&graph, &text);
    assert_non_null(strstr(text.data, "digraph"));
    assert_non_null(strstr(text.data, "out \\\"quoted\\\"\\nconv2d"));
    assert_non_null(strstr(text.data, "v0 -> v2;"));
    oct_text_free(&text);
    oct_graph_free(&graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d),          cmocka_unit_test(test_conv2d_groups),
        cmocka_unit_test(test_linear),          cmocka_unit_test(test_norms),
        cmocka_unit_test(test_activations),     cmocka_unit_test(test_attention),
        cmocka_unit_test(test_moves),           cmocka_unit_test(test_shape_errors),
        cmocka_unit_test(test_building_errors), cmocka_unit_test(test_check_constants),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
