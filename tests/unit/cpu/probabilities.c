/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that rounds its probabilities: the bits of the order that cpu/kernels/attention_f32.h states, in every set.
 * q, k and v are slices of the picture's tokens. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "cpu/kernel.h"
#include "cpu/kernels/attention_f32.h"
#include "engine/engine.h"
#include "graph/math.h"

#define DEPTH 24
#define MOST_TOKENS 700

/* One case: tokens, heads, what the probabilities are rounded to. */
typedef struct attention_case {
    int64_t tokens;
    int heads;
    oct_format format;
} attention_case;

static float rounded(oct_format format, float p) {
    switch (format) {
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(oct_e4m3_encode(p * 256.0f)) * 0x1p-8f;
    case OCT_FORMAT_INT8:
        return rintf(p * 127.0f) * (1.0f / 127.0f);
    case OCT_FORMAT_FP16:
        return oct_fp16_decode(oct_fp16_encode(p));
    default:
        return oct_bf16_decode(oct_bf16_encode(p));
    }
}

/* One query row of one head. */
static void attend(const attention_case *c, const float *q, const float *k, const float *v, int64_t stride, float scale,
                   float *out) {
    float p[MOST_TOKENS], l[OCT_ATTENTION_LANES] = {0}, top = -FLT_MAX;
    for (int64_t j = 0; j < c->tokens; j++) {
        float sum = 0;
        for (int i = 0; i < DEPTH; i++) sum = fmaf(q[i], k[j * stride + i], sum);
        p[j] = sum * scale;
        top = fmaxf(top, p[j]);
    }
    for (int64_t j = 0; j < c->tokens; j++) {
        p[j] = oct_exp(p[j] - top);
        l[j % OCT_ATTENTION_LANES] += p[j];
        p[j] = rounded(c->format, p[j]);
    }
    for (int half = OCT_ATTENTION_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) l[i] += l[i + half];
    for (int i = 0; i < DEPTH; i++) {
        float sum = 0;
        for (int64_t j = 0; j < c->tokens; j++) sum = fmaf(p[j], v[j * stride + i], sum);
        out[i] = sum * (1.0f / l[0]);
    }
}

static void make_graph(const attention_case *c, oct_graph *graph) {
    const int64_t channels = c->heads * DEPTH;
    memset(graph, 0, sizeof *graph);
    const int32_t x = oct_graph_input(graph, "x", oct_shape_of(3, (const int64_t[]){1, 3 * c->tokens, channels}));
    int32_t parts[3];
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        const oct_attributes slice = {.start = i * c->tokens, .length = c->tokens};
        parts[i] = oct_graph_add_node(graph, OCT_OP_SLICE, names[i], &x, 1, &slice);
    }
    const oct_attributes a = {.heads = c->heads, .scale = 0.5, .probabilities = c->format};
    const int32_t out = oct_graph_add_node(graph, OCT_OP_ATTENTION, "attention", parts, 3, &a);
    assert_int_equal(oct_graph_output(graph, out, "out"), OCTET_OK);
    assert_int_equal(oct_graph_check(graph), OCTET_OK);
}

/* The attention's output; caller frees. */
static float *run(const attention_case *c, const char *isa, const float *input, size_t input_bytes, size_t bytes) {
    oct_graph graph;
    oct_weights *weights;
    oct_plan *plan;
    oct_engine *engine;
    oct_context *context;
    make_graph(c, &graph);
    const oct_plan_options options = {.batch = 1, .force_isa = isa};
    assert_int_equal(oct_weights_from_graph(&weights, &graph), OCTET_OK);
    if (oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    oct_graph_free(&graph);
    assert_int_equal(oct_engine_open(&engine, plan, weights, oct_cpu_backend(), NULL, true), OCTET_OK);
    oct_weights_release(weights);
    assert_int_equal(oct_context_new(&context, engine, NULL), OCTET_OK);
    oct_engine_release(engine);
    memcpy(oct_context_input(context, NULL), input, input_bytes);
    assert_int_equal(oct_context_run(context), OCTET_OK);
    float *out = oct_alloc(bytes);
    assert_non_null(out);
    memcpy(out, oct_context_output(context, 0, NULL), bytes);
    oct_context_free(context);
    return out;
}

static void check_case(const attention_case *c, uint64_t seed) {
    const int64_t channels = c->heads * DEPTH, count = c->tokens * channels;
    float *x = oct_alloc((size_t)(3 * count) * sizeof *x), *right = oct_alloc((size_t)count * sizeof *right);
    assert_true(x != NULL && right != NULL);
    for (int64_t i = 0; i < 3 * count; i++) x[i] = oct_random_signed(&seed) * 2.0f;
    for (int64_t t = 0; t < c->tokens; t++)
        for (int h = 0; h < c->heads; h++) {
            const int64_t at = h * DEPTH;
            attend(c, x + t * channels + at, x + count + at, x + 2 * count + at, channels, 0.5f,
                   right + t * channels + at);
        }
    for (int isa = 0; isa <= OCT_ISA_AVX512; isa++) {
        if (!oct_isa_present((oct_isa)isa)) continue;
        float *out =
            run(c, oct_isa_name((oct_isa)isa), x, (size_t)(3 * count) * sizeof *x, (size_t)count * sizeof *right);
        for (int64_t i = 0; i < count; i++)
            if (memcmp(&out[i], &right[i], sizeof *out) != 0)
                fail_msg("%s, %s, %d tokens: number %d: expected %a, found %a", oct_isa_name((oct_isa)isa),
                         oct_format_name(c->format), (int)c->tokens, (int)i, (double)right[i], (double)out[i]);
        oct_free(out);
    }
    oct_free(x);
    oct_free(right);
}

static void probabilities_are_rounded_below_the_rows_largest(void **state) {
    (void)state;
    static const oct_format formats[] = {OCT_FORMAT_E4M3, OCT_FORMAT_INT8, OCT_FORMAT_FP16, OCT_FORMAT_BF16};
    static const int64_t tokens[] = {1, 17, 256, 257, 600};
    for (size_t f = 0; f < 4; f++)
        for (size_t t = 0; t < 5; t++) {
            const attention_case c = {tokens[t], t % 2 == 0 ? 1 : 2, formats[f]};
            check_case(&c, 100 * f + t + 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_rounded_below_the_rows_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
