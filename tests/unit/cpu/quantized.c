/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized networks on the CPU. int8: the bits of the reference evaluation, in every set and with any number of
 * threads. All formats: the same bits in every set, and fused as unfused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cpu/kernel.h"
#include "engine/plan_file.h"
#include "unit/engine/quantized_graph.h"

#define BATCH 2
#define OUTPUTS 2

typedef struct recipe {
    uint64_t seed;
    quantized_kind kind;
    oct_format base;
    bool exact; /* exact_graph_make's, else random_graph_make's */
    bool fused;
} recipe;

static float *draw_input(const oct_graph *graph, uint64_t seed) {
    const int64_t count = oct_shape_count(&graph->values[graph->input].shape);
    float *input = oct_alloc((size_t)count * sizeof *input);
    for (int64_t i = 0; input != NULL && i < count; i++) input[i] = oct_random_signed(&seed);
    return input;
}

static octet_status make(const recipe *r, oct_graph *graph) {
    uint64_t random = r->seed * 7919;
    memset(graph, 0, sizeof *graph);
    if (!(r->exact ? exact_graph_make(graph, r->seed) : random_graph_make(graph, r->seed))) return oct_error_status();
    OCT_TRY(oct_graph_infer(graph, BATCH));
    float *input = draw_input(graph, r->seed);
    if (input == NULL) return oct_fail_memory();
    octet_status status = quantize_products(graph, input, r->kind, &random);
    oct_free(input);
    OCT_TRY(status);
    OCT_TRY(oct_graph_store_base(graph, r->base));
    if (r->fused) OCT_TRY(oct_pass_fuse_quantize(graph));
    return oct_graph_hold_wide(graph);
}

typedef struct result {
    float *data[OUTPUTS];
    size_t bytes[OUTPUTS];
} result;

static void result_free(result *r) {
    for (int o = 0; o < OUTPUTS; o++) oct_free(r->data[o]);
}

static void evaluate(const recipe *r, result *out) {
    oct_graph graph;
    oct_array arrays[OUTPUTS];
    assert_int_equal(make(r, &graph), OCTET_OK);
    float *input = draw_input(&graph, r->seed);
    assert_int_equal(oct_graph_evaluate(&graph, input, arrays, OUTPUTS, NULL, NULL), OCTET_OK);
    for (int o = 0; o < OUTPUTS; o++) {
        out->data[o] = arrays[o].data;
        out->bytes[o] = (size_t)oct_shape_count(&arrays[o].shape) * sizeof(float);
    }
    oct_free(input);
    oct_graph_free(&graph);
}

static octet_status append(void *user, const void *data, size_t size) {
    oct_text_append(user, data, size);
    return OCTET_OK;
}

typedef struct cursor {
    const char *data;
    size_t at;
} cursor;

static octet_status next(void *user, void *data, size_t size) {
    cursor *c = user;
    memcpy(data, c->data + c->at, size);
    c->at += size;
    return OCTET_OK;
}

/* The plan and weights written and read again. */
static void through_files(oct_plan **plan, oct_weights **weights) {
    oct_text bytes = {0}, more = {0};
    oct_plan_write(*plan, &bytes);
    assert_int_equal(oct_weights_write(*weights, append, &more), OCTET_OK);
    assert_int_equal(more.length, oct_weights_file_size(*weights));
    oct_plan_free(*plan);
    oct_weights_release(*weights);
    cursor c = {more.data, 0};
    assert_int_equal(oct_plan_read(plan, "plan", (const uint8_t *)bytes.data, bytes.length), OCTET_OK);
    assert_int_equal(oct_weights_read(weights, "weights", more.length, next, &c), OCTET_OK);
    oct_text_free(&bytes);
    oct_text_free(&more);
}

static octet_status open(const recipe *r, const char *isa, oct_pool *pool, bool files, oct_engine **engine,
                         float **input) {
    oct_graph graph;
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    const oct_plan_options options = {.batch = BATCH, .force_isa = isa};
    octet_status status = make(r, &graph);
    *input = status == OCTET_OK ? draw_input(&graph, r->seed) : NULL;
    if (status == OCTET_OK && *input == NULL) status = oct_fail_memory();
    if (status == OCTET_OK) status = oct_weights_from_graph(&weights, &graph);
    if (status == OCTET_OK) status = oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options);
    oct_graph_free(&graph);
    if (status == OCTET_OK && files) through_files(&plan, &weights);
    if (status == OCTET_OK) status = oct_engine_open(engine, plan, weights, oct_cpu_backend(), pool, true);
    oct_weights_release(weights);
    return status;
}

static void run(const recipe *r, const char *isa, oct_pool *pool, bool files, result *out) {
    oct_engine *engine;
    oct_context *context;
    float *input;
    if (open(r, isa, pool, files, &engine, &input) != OCTET_OK) fail_msg("seed %d: %s", (int)r->seed, oct_error_text());
    assert_int_equal(oct_context_new(&context, engine, pool), OCTET_OK);
    const oct_plan *plan = oct_engine_plan(engine);
    const oct_shape *shape = &plan->tensors[plan->input].shape;
    memcpy(oct_context_input(context, NULL), input, (size_t)oct_shape_count(shape) * sizeof *input);
    assert_int_equal(oct_context_run(context), OCTET_OK);
    for (size_t o = 0; o < OUTPUTS; o++) {
        const float *data = oct_context_output(context, o, &shape);
        out->bytes[o] = (size_t)oct_shape_count(shape) * sizeof *data;
        out->data[o] = oct_alloc(out->bytes[o]);
        memcpy(out->data[o], data, out->bytes[o]);
    }
    oct_context_free(context);
    oct_engine_release(engine);
    oct_free(input);
}

static void expect_equal(const recipe *r, const char *what, const result *a, const result *b) {
    for (int o = 0; o < OUTPUTS; o++) {
        assert_int_equal(a->bytes[o], b->bytes[o]);
        if (memcmp(a->data[o], b->data[o], a->bytes[o]) != 0) fail_msg("seed %d, %s: other bits", (int)r->seed, what);
    }
}

static void int8_is_the_reference_to_the_bit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        recipe r = {.seed = seed, .kind = QUANTIZED_INT8, .exact = true, .fused = true};
        result right, out;
        evaluate(&r, &right);
        for (int isa = 0; isa < OCT_ISA_COUNT; isa++) {
            if (!oct_isa_present((oct_isa)isa)) continue;
            run(&r, oct_isa_name((oct_isa)isa), NULL, isa % 2 == 1, &out);
            expect_equal(&r, oct_isa_name((oct_isa)isa), &right, &out);
            result_free(&out);
        }
        r.fused = false;
        evaluate(&r, &out);
        expect_equal(&r, "evaluated unfused", &right, &out);
        result_free(&out);
        run(&r, NULL, NULL, false, &out);
        expect_equal(&r, "run unfused", &right, &out);
        result_free(&out);
        result_free(&right);
    }
}

static void threads_do_not_matter(void **state) {
    (void)state;
    for (uint64_t seed = 5; seed <= 7; seed++) {
        const recipe r = {.seed = seed, .kind = QUANTIZED_INT8, .exact = true, .fused = true};
        const recipe mixed = {.seed = seed, .kind = QUANTIZED_MIXED, .fused = true};
        result right, alone, out;
        evaluate(&r, &right);
        run(&mixed, NULL, NULL, false, &alone);
        for (unsigned threads = 1; threads <= 8; threads++) {
            oct_pool *pool;
            assert_int_equal(oct_pool_new(&pool, threads), OCTET_OK);
            run(&r, NULL, pool, false, &out);
            expect_equal(&r, "threads", &right, &out);
            result_free(&out);
            run(&mixed, NULL, pool, false, &out);
            expect_equal(&mixed, "threads", &alone, &out);
            result_free(&out);
            oct_pool_free(pool);
        }
        result_free(&right);
        result_free(&alone);
    }
}

/* |a - b| over |a|, as vectors. */
static double distance(const result *a, const result *b, int o) {
    double difference = 0, length = 1e-30;
    for (size_t i = 0; i < a->bytes[o] / sizeof(float); i++) {
        difference += pow((double)a->data[o][i] - (double)b->data[o][i], 2);
        length += pow((double)a->data[o][i], 2);
    }
    return sqrt(difference / length);
}

/* Sums differ in their last bits from the reference, so now and then a code by one, and that goes on from there: whole
 * networks are near, single steps are held by opcheck. */
static void all_formats_have_the_same_bits_in_every_set(void **state) {
    (void)state;
    static const oct_format bases[] = {OCT_FORMAT_FP32, OCT_FORMAT_FP16, OCT_FORMAT_BF16};
    for (uint64_t seed = 1; seed <= 36; seed++) {
        recipe r = {.seed = seed, .kind = (quantized_kind)(seed % 4), .base = bases[seed / 4 % 3], .fused = true};
        result right, plain, out;
        evaluate(&r, &right);
        run(&r, "c", NULL, false, &plain);
        for (int o = 0; o < OUTPUTS; o++)
            if (!(distance(&right, &plain, o) < (r.kind == QUANTIZED_MIXED ? 0.4 : 0.05)))
                fail_msg("seed %d, output %d: %g off", (int)seed, o, distance(&right, &plain, o));
        for (int isa = 1; isa < OCT_ISA_COUNT; isa++) {
            if (!oct_isa_present((oct_isa)isa)) continue;
            run(&r, oct_isa_name((oct_isa)isa), NULL, isa == 1, &out);
            expect_equal(&r, oct_isa_name((oct_isa)isa), &plain, &out);
            result_free(&out);
        }
        result_free(&plain);
        result_free(&right);
    }
}

/* Where no value has more than two forms, rounding in a step of its own gives what rounding in the step before does. */
static void unfused_is_fused(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        recipe r = {.seed = seed, .kind = (quantized_kind)(seed % 3), .fused = true};
        result plain, out;
        run(&r, NULL, NULL, false, &plain);
        r.fused = false;
        run(&r, NULL, NULL, false, &out);
        expect_equal(&r, "unfused", &plain, &out);
        result_free(&out);
        result_free(&plain);
    }
}

/* The narrow form goes beside the wide one where both are read, instead of it where one is. */
static void quantize_is_fused(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        oct_graph graph;
        recipe r = {.seed = seed, .kind = QUANTIZED_INT8, .exact = true};
        assert_int_equal(make(&r, &graph), OCTET_OK);
        const size_t before = oct_graph_unfused(&graph);
        oct_graph_free(&graph);
        r.fused = true;
        assert_int_equal(make(&r, &graph), OCTET_OK);
        size_t both = 0, narrow = 0;
        for (size_t i = 0; i < graph.value_count; i++) {
            const oct_value *value = &graph.values[i];
            both += value->form_count == 2;
            narrow += value->form_count == 1 && value->codes == NULL && value->forms[0].format == OCT_FORMAT_INT8;
        }
        assert_true(both > 0 && narrow > 0);
        /* left: the picture's, and the reshaped tokens' */
        assert_int_equal(oct_graph_unfused(&graph), 2);
        assert_true(before > 6);
        oct_graph_free(&graph);
    }
}

/* With a base, all but the outputs, biases and what is narrow is stored in it; int8 codes go to int8 products alone. */
static void the_base_is_stored(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        oct_graph graph;
        const recipe r = {.seed = seed, .kind = QUANTIZED_MIXED, .base = OCT_FORMAT_FP16, .fused = true};
        assert_int_equal(make(&r, &graph), OCTET_OK);
        size_t base = 0;
        for (size_t i = 0; i < graph.node_count; i++) {
            const oct_graph_node *node = &graph.nodes[i];
            const oct_value *out = &graph.values[node->output];
            for (int f = 0; f < out->form_count; f++) {
                base += out->forms[f].format == OCT_FORMAT_FP16;
                assert_true(oct_form_is_float(&out->forms[f]) || out->forms[f].format == OCT_FORMAT_INT8);
            }
            for (int j = 0; j < node->input_count; j++) {
                const oct_value *x = &graph.values[node->inputs[j]];
                if (oct_form_is_float(&x->forms[node->forms[j]]) || x->codes != NULL) continue;
                const oct_value *weight = &graph.values[node->inputs[1]];
                assert_true(j == 0 && oct_stored_is_int8_product(node->op, &node->attributes, &weight->shape,
                                                                 &x->forms[node->forms[0]], &weight->forms[0]));
            }
        }
        assert_true(base > 0);
        oct_graph_free(&graph);
    }
}

/* One decision that is not possible, and what is said of it. */
typedef struct refusal {
    const char *fact;
    oct_op op; /* of the first such node */
    oct_quantize_decision decision;
} refusal;

static const float zero_scales[512];

static const refusal refusals[] = {
    {"nobody: the graph has no node", OCT_OP_COUNT, {.node = "nobody"}},
    {"found layer_norm", OCT_OP_LAYER_NORM, {0}},
    {"add has no weight", OCT_OP_ADD, {.weight = {.format = OCT_FORMAT_INT8}}},
    {"its weight in uint8", OCT_OP_CONV2D, {.weight = {.format = OCT_FORMAT_UINT8}}},
    {"its weight in e4m3 with a scale a row",
     OCT_OP_CONV2D,
     {.weight = {.format = OCT_FORMAT_E4M3, .granularity = OCT_PER_ROW}}},
    {"scale of its weight",
     OCT_OP_CONV2D,
     {.weight = {.format = OCT_FORMAT_E4M3, .granularity = OCT_PER_CHANNEL, .scales = zero_scales}}},
    {"its weight with factors", OCT_OP_CONV2D, {.weight = {.format = OCT_FORMAT_INT8, .factors = zero_scales}}},
    {"its input in e8m0", OCT_OP_CONV2D, {.inputs[0] = {.format = OCT_FORMAT_E8M0}}},
    {"scale of its input: expected", OCT_OP_CONV2D, {.inputs[0] = {.format = OCT_FORMAT_INT8}}},
    {"scale of its input: expected", OCT_OP_CONV2D, {.inputs[0] = {.format = OCT_FORMAT_INT8, .scale = NAN}}},
    {"scale of its input: expected", OCT_OP_CONV2D, {.inputs[0] = {.format = OCT_FORMAT_UINT8, .scale = -1}}},
    {"scale of its input: expected", OCT_OP_CONV2D, {.inputs[0] = {.format = OCT_FORMAT_NVFP4}}},
    {"its input a channel without scales",
     OCT_OP_CONV2D,
     {.inputs[0] = {.format = OCT_FORMAT_INT8, .granularity = OCT_PER_CHANNEL}}},
    {"scale of its input: expected",
     OCT_OP_CONV2D,
     {.inputs[0] = {.format = OCT_FORMAT_INT8, .granularity = OCT_PER_CHANNEL, .scales = zero_scales}}},
    {"scale of its input's factors",
     OCT_OP_CONV2D,
     {.inputs[0] = {.format = OCT_FORMAT_INT8, .scale = 1, .factors = zero_scales}}},
    {"its input in uint8 with a scale a row",
     OCT_OP_CONV2D,
     {.inputs[0] = {.format = OCT_FORMAT_UINT8, .granularity = OCT_PER_ROW}}},
    {"its input in int8 with a scale a block",
     OCT_OP_CONV2D,
     {.inputs[0] = {.format = OCT_FORMAT_INT8, .granularity = OCT_PER_BLOCK}}},
    {"it has no input 1 to be narrow", OCT_OP_CONV2D, {.inputs[1] = {.format = OCT_FORMAT_INT8, .scale = 1}}},
    {"it has no input 2 to be narrow", OCT_OP_ADD, {.inputs[2] = {.format = OCT_FORMAT_INT8, .scale = 1}}},
    {"probabilities of conv2d", OCT_OP_CONV2D, {.probabilities = OCT_FORMAT_E4M3}},
    {"probabilities of attention in mxfp8", OCT_OP_ATTENTION, {.probabilities = OCT_FORMAT_MXFP8}},
    {"scale of its output", OCT_OP_CONV2D, {.output = {.format = OCT_FORMAT_E4M3}}},
};

static bool op_graph(uint64_t seed, oct_op op, oct_graph *graph, const char **name) {
    memset(graph, 0, sizeof *graph);
    if (!random_graph_make(graph, seed)) return false;
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == op && !graph->values[graph->nodes[i].output].is_output) {
            *name = graph->nodes[i].name;
            return true;
        }
    if (op == OCT_OP_COUNT) return true;
    oct_graph_free(graph);
    return false;
}

static void bad_decisions_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        oct_graph graph;
        oct_quantize_decision d = refusals[i].decision;
        const char *name = d.node;
        uint64_t seed = 1;
        while (!op_graph(seed, refusals[i].op, &graph, &name)) assert_true(++seed < 1000);
        d.node = name;
        if (oct_graph_quantize(&graph, &d, 1) == OCTET_OK) fail_msg("not refused: %s", refusals[i].fact);
        if (strstr(oct_error_fact(), refusals[i].fact) == NULL)
            fail_msg("expected \"%s\", found \"%s\"", refusals[i].fact, oct_error_fact());
        oct_graph_free(&graph);
    }
}

/* Twice the same weight, an output of the graph, a base that is none. */
static void other_refusals(void **state) {
    (void)state;
    oct_graph graph;
    const char *name = NULL;
    assert_true(op_graph(1, OCT_OP_CONV2D, &graph, &name));
    const oct_quantize_decision twice[2] = {{.node = name, .weight = {.format = OCT_FORMAT_INT8}},
                                            {.node = name, .weight = {.format = OCT_FORMAT_E4M3}}};
    assert_int_equal(oct_graph_quantize(&graph, twice, 2), OCTET_INVALID_ARGUMENT);
    assert_non_null(strstr(oct_error_fact(), "decided twice"));
    oct_graph_free(&graph);
    memset(&graph, 0, sizeof graph);
    assert_true(exact_graph_make(&graph, 1));
    const oct_quantize_decision out = {.node = graph.nodes[graph.node_count - 1].name,
                                       .output = {.format = OCT_FORMAT_FP16}};
    assert_int_equal(oct_graph_quantize(&graph, &out, 1), OCTET_UNSUPPORTED);
    assert_non_null(strstr(oct_error_fact(), "is an output and stays fp32"));
    assert_int_equal(oct_graph_store_base(&graph, OCT_FORMAT_E4M3), OCTET_INVALID_ARGUMENT);
    oct_graph_free(&graph);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const recipe r = {.seed = 3, .kind = QUANTIZED_MIXED, .fused = true};
    for (uint64_t n = 1;; n++) {
        const int64_t live = oct_alloc_live();
        oct_engine *engine = NULL;
        float *input = NULL;
        oct_alloc_fail_at(n, n % 2 == 0);
        const octet_status status = open(&r, NULL, NULL, false, &engine, &input);
        const bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        oct_engine_release(engine);
        oct_free(input);
        assert_int_equal(oct_alloc_live(), live);
        if (!met) break;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_is_the_reference_to_the_bit),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(all_formats_have_the_same_bits_in_every_set),
        cmocka_unit_test(unfused_is_fused),
        cmocka_unit_test(quantize_is_fused),
        cmocka_unit_test(the_base_is_stored),
        cmocka_unit_test(bad_decisions_are_refused),
        cmocka_unit_test(other_refusals),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
