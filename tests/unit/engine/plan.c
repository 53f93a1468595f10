/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: memory never shared by the living, hostile plans refused by name, failing allocations leak nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/internal.h"
#include "unit/engine/random_graph.h"

#include "unit/engine/reference_backend.h"

typedef struct fixture {
    oct_weights *weights;
    oct_plan *plan;
} fixture;

static octet_status make(fixture *f, uint64_t seed, int64_t batch) {
    oct_graph graph;
    memset(&graph, 0, sizeof graph);
    memset(f, 0, sizeof *f);
    const oct_plan_options options = {.batch = batch};
    octet_status status = random_graph_make(&graph, seed) ? OCTET_OK : oct_error_status();
    if (status == OCTET_OK) status = oct_weights_from_graph(&f->weights, &graph);
    if (status == OCTET_OK) status = oct_plan_make(&f->plan, &graph, f->weights, reference_backend(), &options);
    oct_graph_free(&graph);
    return status;
}

static void drop(fixture *f) {
    oct_plan_free(f->plan);
    oct_weights_release(f->weights);
}

static void blocks_never_meet(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < 300; round++) {
        oct_memory_block blocks[40];
        const size_t count = 1 + oct_random_below(&random, 40);
        uint64_t most = 0, total;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = (oct_memory_block){.size = 64 * (1 + oct_random_below(&random, 20))};
            blocks[i].first = (int32_t)oct_random_below(&random, 30);
            blocks[i].last = blocks[i].first + (int32_t)oct_random_below(&random, 6);
        }
        assert_int_equal(oct_memory_place(blocks, count, &total), OCTET_OK);
        for (int32_t step = 0; step < 40; step++) {
            uint64_t alive = 0;
            for (size_t i = 0; i < count; i++)
                if (blocks[i].first <= step && step <= blocks[i].last) alive += blocks[i].size;
            if (most < alive) most = alive;
        }
        assert_true(total >= most && total <= 2 * most + 64 * 20);
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < i; j++)
                if (blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last)
                    assert_true(blocks[i].offset + blocks[i].size <= blocks[j].offset ||
                                blocks[j].offset + blocks[j].size <= blocks[i].offset);
    }
}

/* Byte by byte: who wrote last, and is it still there when it is read? */
static void tensors_stand_while_read(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture f;
        assert_int_equal(make(&f, seed, 1 + (int64_t)(seed % 3)), OCTET_OK);
        assert_int_equal(oct_plan_check(f.plan, f.weights, reference_backend()), OCTET_OK);
        const size_t lines = f.plan->arena_size / 64;
        int32_t *owner = calloc(lines, sizeof *owner);
        assert_non_null(owner);
        for (size_t i = 0; i < lines; i++) owner[i] = -1;
        for (int32_t s = -1; s < (int32_t)f.plan->step_count; s++) {
            const oct_plan_step *step = s < 0 ? NULL : &f.plan->steps[s];
            int32_t writer = s < 0 ? f.plan->input : step->output;
            for (int j = 0; step != NULL && j < step->input_count; j++) {
                if (step->inputs[j].kind != OCT_OPERAND_TENSOR) continue;
                const oct_plan_tensor *in = &f.plan->tensors[step->inputs[j].index];
                for (uint64_t l = in->offset / 64; l < (in->offset + in->size) / 64; l++)
                    assert_int_equal(owner[l], owner[in->offset / 64]);
                const int32_t by = owner[in->offset / 64];
                assert_true(by == step->inputs[j].index || f.plan->tensors[by].offset == in->offset);
            }
            if (step != NULL && oct_step_is_view(f.plan, step)) continue;
            const oct_plan_tensor *out = &f.plan->tensors[writer];
            for (uint64_t l = out->offset / 64; l < (out->offset + out->size) / 64; l++) owner[l] = writer;
        }
        free(owner);
        drop(&f);
    }
}

static void reuse_pays(void **state) {
    (void)state;
    fixture f;
    assert_int_equal(make(&f, 5, 1), OCTET_OK);
    uint64_t sum = 0;
    for (size_t i = 0; i < f.plan->tensor_count; i++) sum += f.plan->tensors[i].size;
    assert_true(f.plan->arena_size < sum);
    drop(&f);
}

static void same_graph_same_plan(void **state) {
    (void)state;
    fixture a, b;
    assert_int_equal(make(&a, 9, 2), OCTET_OK);
    assert_int_equal(make(&b, 9, 2), OCTET_OK);
    oct_text one = {0}, two = {0};
    oct_plan_dump(a.plan, &one);
    oct_plan_memory(a.plan, &one);
    oct_plan_dump(b.plan, &two);
    oct_plan_memory(b.plan, &two);
    assert_string_equal(one.data, two.data);
    oct_text_free(&one);
    oct_text_free(&two);
    drop(&a);
    drop(&b);
}

/* ---- hostile plans: one defect an entry */

/* A step whose first input is an activation another step made. */
static size_t reader(const oct_plan *plan) {
    for (size_t i = 2; i < plan->step_count; i++)
        if (plan->steps[i].inputs[0].kind == OCT_OPERAND_TENSOR && plan->steps[i].op == OCT_OP_CONV2D) return i;
    return 1;
}

static void cyclic(oct_plan *p) {
    p->steps[1].inputs[0].index = p->steps[3].output;
}
static void out_of_order(oct_plan *p) {
    const oct_plan_step step = p->steps[1];
    p->steps[1] = p->steps[2];
    p->steps[2] = step;
}
static void reads_beyond(oct_plan *p) {
    p->steps[reader(p)].inputs[0].index = (int32_t)p->tensor_count;
}
static void reads_negative(oct_plan *p) {
    p->steps[reader(p)].inputs[0].index = -1;
}
static void constant_beyond(oct_plan *p) {
    p->steps[0].inputs[1].index = 100000;
}
static void writes_beyond(oct_plan *p) {
    p->steps[0].output = (int32_t)p->tensor_count;
}
static void no_operand(oct_plan *p) {
    p->steps[0].inputs[0].kind = OCT_OPERAND_NONE;
}
static void too_many_inputs(oct_plan *p) {
    p->steps[0].input_count = OCT_PLAN_INPUTS + 1;
}
static void unknown_op(oct_plan *p) {
    p->steps[0].op = OCT_OP_COUNT;
}
static void unknown_activation(oct_plan *p) {
    p->steps[0].attributes.activation = OCT_ACTIVATION_COUNT;
}
static void unknown_tactic(oct_plan *p) {
    p->steps[0].tactic = "magic";
}
static void no_tactic(oct_plan *p) {
    p->steps[0].tactic = NULL;
}
static void wrong_shape(oct_plan *p) {
    p->tensors[p->steps[0].output].shape.dims[1]--;
    oct_plan_tensor *t = &p->tensors[p->steps[0].output];
    assert_true(oct_tensor_bytes(&t->shape, &t->form, &t->size));
}
static void wrong_size(oct_plan *p) {
    p->tensors[p->steps[0].output].size -= 64;
}
static void huge_shape(oct_plan *p) {
    p->tensors[p->steps[0].output].shape.dims[1] = INT64_MAX;
}
static void empty_shape(oct_plan *p) {
    p->tensors[p->steps[0].output].shape.dims[2] = 0;
}
static void bad_rank(oct_plan *p) {
    p->tensors[p->steps[0].output].shape.rank = 77;
}
static void narrow_stride(oct_plan *p) {
    p->tensors[p->steps[0].output].form.channel_stride = 0;
}
/* The first step's output as narrow numbers. */
static oct_form *narrow(oct_plan *p, oct_format format, oct_granularity granularity) {
    oct_form *form = &p->tensors[p->steps[0].output].form;
    form->format = format;
    form->granularity = granularity;
    form->held_wide = true;
    return form;
}
static void scale_format(oct_plan *p) {
    narrow(p, OCT_FORMAT_E8M0, OCT_PER_TENSOR);
}
static void held_fp32(oct_plan *p) {
    narrow(p, OCT_FORMAT_FP32, OCT_PER_TENSOR);
}
static void empty_block(oct_plan *p) {
    narrow(p, OCT_FORMAT_E4M3, OCT_PER_BLOCK)->block = 0;
}
static void coded_block(oct_plan *p) {
    oct_form *form = narrow(p, OCT_FORMAT_INT8, OCT_PER_BLOCK);
    form->block = 8;
    form->held_wide = false;
}
static void other_block(oct_plan *p) {
    narrow(p, OCT_FORMAT_MXFP8, OCT_PER_BLOCK)->block = 16;
}
static void row_of_fp16(oct_plan *p) {
    narrow(p, OCT_FORMAT_FP16, OCT_PER_ROW);
}
static void stray_scales(oct_plan *p) {
    narrow(p, OCT_FORMAT_E4M3, OCT_PER_TENSOR)->scales = 0;
}
static void no_rule(oct_plan *p) {
    oct_form *form = narrow(p, OCT_FORMAT_MXFP8, OCT_PER_BLOCK);
    form->block = 32;
    form->scale_rule = (oct_e8m0_rule)7;
}
static void no_scale(oct_plan *p) {
    narrow(p, OCT_FORMAT_E4M3, OCT_PER_TENSOR)->scale = NAN;
}
static void zero_scale(oct_plan *p) {
    narrow(p, OCT_FORMAT_INT8, OCT_PER_TENSOR)->scale = 0;
}
static void factors_beyond(oct_plan *p) {
    narrow(p, OCT_FORMAT_INT8, OCT_PER_TENSOR)->factors = 100000;
}
static void odd_scales(oct_plan *p) {
    narrow(p, OCT_FORMAT_INT8, OCT_PER_CHANNEL)->scales = p->steps[0].inputs[1].index;
}
static void odd_probabilities(oct_plan *p) {
    p->steps[0].attributes.probabilities = OCT_FORMAT_E4M3;
}
static void unknown_format(oct_plan *p) {
    p->tensors[p->steps[0].output].form.format = OCT_FORMAT_COUNT;
}
static void beyond_arena(oct_plan *p) {
    p->tensors[p->steps[0].output].offset = p->arena_size;
}
static void wrapping_offset(oct_plan *p) {
    p->tensors[p->steps[0].output].offset = UINT64_MAX - 63;
}
static void crooked_offset(oct_plan *p) {
    p->tensors[p->steps[0].output].offset += 4;
}
/* Two tensors at one place of their own, behind all others. */
static void move_together(oct_plan *p, int32_t a, int32_t b) {
    p->tensors[a].offset = p->tensors[b].offset = p->arena_size;
    p->arena_size += p->tensors[a].size > p->tensors[b].size ? p->tensors[a].size : p->tensors[b].size;
}
static void over_live(oct_plan *p) {
    move_together(p, p->steps[0].output, p->steps[1].output);
}
static void over_later_read(oct_plan *p) { /* the block's residual, read again by the add after it */
    move_together(p, p->steps[0].output, p->steps[2].output);
}
static void over_input(oct_plan *p) {
    move_together(p, p->input, p->steps[1].output);
}
static void wrong_lifetime(oct_plan *p) {
    p->tensors[p->steps[0].output].last = 99;
}
static void wrong_birth(oct_plan *p) {
    p->tensors[p->steps[1].output].first = 0;
}
static void made_twice(oct_plan *p) {
    p->steps[2].output = p->steps[1].output;
    p->steps[2].op = p->steps[1].op;
    p->steps[2] = p->steps[1];
}
static void output_beyond(oct_plan *p) {
    p->outputs[0] = -5;
}
static void output_unmarked(oct_plan *p) {
    p->tensors[p->outputs[0]].is_output = false;
}
static void no_outputs(oct_plan *p) {
    p->output_count = 0;
}
static void input_beyond(oct_plan *p) {
    p->input = 1 << 30;
}
static void other_batch(oct_plan *p) {
    p->batch = 7;
}
static void other_backend(oct_plan *p) {
    p->backend = "abacus";
}
static void zero_stride(oct_plan *p) {
    p->steps[0].attributes.stride_h = 0;
}

static const struct hostile {
    const char *name;
    void (*spoil)(oct_plan *plan);
    const char *expected; /* part of the fact */
} hostile[] = {
    {"cyclic", cyclic, ""},
    {"out of order", out_of_order, ""},
    {"reads beyond", reads_beyond, " of "},
    {"reads negative", reads_negative, " is tensor -1 of "},
    {"constant beyond", constant_beyond, " is constant 100000 of "},
    {"writes beyond", writes_beyond, "output is tensor "},
    {"no operand", no_operand, "input 0"},
    {"too many inputs", too_many_inputs, "9 inputs"},
    {"unknown op", unknown_op, "no such op"},
    {"unknown activation", unknown_activation, "no such activation"},
    {"unknown tactic", unknown_tactic, "no tactic magic"},
    {"no tactic", no_tactic, "no tactic (none)"},
    {"wrong shape", wrong_shape, "output shape: expected ["},
    {"wrong size", wrong_size, "bytes, found "},
    {"huge shape", huge_shape, "bad shape"},
    {"empty shape", empty_shape, "bad shape"},
    {"bad rank", bad_rank, "bad shape"},
    {"narrow stride", narrow_stride, "bad shape or channel stride"},
    {"unknown format", unknown_format, "activations are not stored in"},
    {"a format of scales", scale_format, "activations are not stored in e8m0"},
    {"held wide fp32", held_fp32, "no scale of this kind goes with fp32"},
    {"a block of nothing", empty_block, "no scale of this kind goes with e4m3"},
    {"a block of codes", coded_block, "no scale of this kind goes with int8"},
    {"mxfp8 in blocks of 16", other_block, "no scale of this kind goes with mxfp8"},
    {"a row of fp16", row_of_fp16, "no scale of this kind goes with fp16"},
    {"scales a tensor", stray_scales, "no scale of this kind goes with e4m3"},
    {"a rule of no name", no_rule, "no scale of this kind goes with mxfp8"},
    {"a scale that is none", no_scale, "a scale of nan"},
    {"a scale of nothing", zero_scale, "a scale of 0"},
    {"factors beyond", factors_beyond, "its form names constant 100000 of"},
    {"scales that are no vector", odd_scales, "is no vector of its channels"},
    {"probabilities of others", odd_probabilities, "probabilities in e4m3"},
    {"beyond arena", beyond_arena, "ends beyond the arena"},
    {"wrapping offset", wrapping_offset, "ends beyond the arena"},
    {"crooked offset", crooked_offset, "is not a multiple of 64"},
    {"over a live tensor", over_live, "over its own input"},
    {"over what is read later", over_later_read, "which was overwritten"},
    {"over the input", over_input, "input is overwritten"},
    {"wrong lifetime", wrong_lifetime, "not 99 as the plan says"},
    {"wrong birth", wrong_birth, "not 0 as the plan says"},
    {"made twice", made_twice, "is made twice"},
    {"output beyond", output_beyond, "is tensor -5 of "},
    {"output unmarked", output_unmarked, "cannot be an output"},
    {"no outputs", no_outputs, "no output"},
    {"input beyond", input_beyond, "the input is tensor"},
    {"other batch", other_batch, "in a plan of batch 7"},
    {"other backend", other_backend, "plan for backend abacus"},
    {"zero stride", zero_stride, "strides must be"},
};

static void hostile_plans_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        fixture f;
        assert_int_equal(make(&f, 3, 2), OCTET_OK);
        hostile[i].spoil(f.plan);
        const octet_status status = oct_plan_check(f.plan, f.weights, reference_backend());
        if (status == OCTET_OK || strstr(oct_error_fact(), hostile[i].expected) == NULL)
            fail_msg("%s: %s", hostile[i].name, status == OCTET_OK ? "accepted" : oct_error_fact());
        /* an engine refuses it too, and frees the plan */
        oct_engine *engine;
        assert_int_not_equal(oct_engine_open(&engine, f.plan, f.weights, reference_backend(), NULL, true), OCTET_OK);
        assert_null(engine);
        oct_weights_release(f.weights);
    }
}

/* ---- engines */

static void engines_agree_with_the_graph(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        const int64_t batch = 1 + (int64_t)(seed % 3);
        oct_graph graph;
        memset(&graph, 0, sizeof graph);
        assert_true(random_graph_make(&graph, seed));
        assert_int_equal(oct_graph_infer(&graph, batch), OCTET_OK);
        const int64_t count = oct_shape_count(&graph.values[graph.input].shape);
        float *input = oct_alloc((size_t)count * sizeof *input);
        uint64_t random = seed;
        for (int64_t i = 0; i < count; i++) input[i] = oct_random_signed(&random);
        oct_array right[2];
        assert_int_equal(oct_graph_evaluate(&graph, input, right, 2, NULL, NULL), OCTET_OK);
        oct_graph_free(&graph);

        fixture f;
        oct_engine *engine;
        oct_context *context;
        assert_int_equal(make(&f, seed, batch), OCTET_OK);
        assert_int_equal(oct_engine_open(&engine, f.plan, f.weights, reference_backend(), NULL, true), OCTET_OK);
        for (size_t i = 0; i < f.weights->count; i++) assert_null(f.weights->items[i].data);
        assert_int_equal(oct_context_new(&context, engine, NULL), OCTET_OK);
        oct_engine_release(engine);
        int stride;
        memcpy(oct_context_input(context, &stride), input, (size_t)count * sizeof *input);
        assert_int_equal(stride, 3);
        for (int run = 0; run < 2; run++) { /* the second without filling the input anew */
            assert_int_equal(oct_context_run(context), OCTET_OK);
            for (size_t o = 0; o < 2; o++) {
                const oct_shape *shape;
                const float *out = oct_context_output(context, o, &shape);
                assert_true(oct_shape_equal(shape, &right[o].shape));
                assert_memory_equal(out, right[o].data, (size_t)oct_shape_count(shape) * sizeof *out);
            }
        }
        oct_context_free(context);
        oct_weights_release(f.weights);
        oct_free(input);
        oct_free(right[0].data);
        oct_free(right[1].data);
    }
}

static void released_weights_are_missed(void **state) {
    (void)state;
    fixture f, g;
    oct_engine *engine;
    assert_int_equal(make(&f, 4, 1), OCTET_OK);
    assert_int_equal(make(&g, 4, 1), OCTET_OK);
    assert_int_equal(oct_engine_open(&engine, f.plan, f.weights, reference_backend(), NULL, true), OCTET_OK);
    oct_engine_release(engine);
    assert_int_equal(oct_engine_open(&engine, g.plan, f.weights, reference_backend(), NULL, true),
                     OCTET_INVALID_ARGUMENT);
    assert_non_null(strstr(oct_error_fact(), "were released"));
    oct_weights_release(f.weights);
    oct_weights_release(g.weights);
}

static octet_status whole_life(void) {
    fixture f;
    oct_engine *engine = NULL;
    oct_context *context = NULL;
    octet_status status = make(&f, 6, 1);
    if (status == OCTET_OK) {
        status = oct_engine_open(&engine, f.plan, f.weights, reference_backend(), NULL, true);
        f.plan = NULL;
    }
    if (status == OCTET_OK) status = oct_context_new(&context, engine, NULL);
    if (status == OCTET_OK) status = oct_context_run(context);
    oct_context_free(context);
    oct_engine_release(engine);
    drop(&f);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    assert_int_equal(whole_life(), OCTET_OK);
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++) {
            const int64_t live = oct_alloc_live();
            oct_alloc_fail_at(n, forever != 0);
            const octet_status status = whole_life();
            const bool met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            assert_int_equal(oct_alloc_live(), live);
            if (!met) break;
            assert_int_equal(status, OCTET_OUT_OF_MEMORY);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_never_meet),
        cmocka_unit_test(tensors_stand_while_read),
        cmocka_unit_test(reuse_pays),
        cmocka_unit_test(same_graph_same_plan),
        cmocka_unit_test(hostile_plans_are_refused),
        cmocka_unit_test(engines_agree_with_the_graph),
        cmocka_unit_test(released_weights_are_missed),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
