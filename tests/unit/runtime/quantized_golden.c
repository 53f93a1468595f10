/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of quantized engines against the PyTorch reference (tools/reference/quantized_golden.py), on equal inputs:
 * after each step its codes are held to the golden's and then replaced by them, so that the next step reads what the
 * reference read. Of each narrow form at most 0.1% of the codes differ, each by one; wide forms by float32's order of
 * sums. In every instruction set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "engine/engine.h"
#include "models.h"
#include "runtime/recipes.h"
#include "support/support.h"

#define SIZE 48
#define SHARE 0.001

typedef struct golden {
    oct_document rows; /* an object a stored form */
    support_array bytes;
    const char *name;
    const char *producers[4096]; /* of each tensor: the op whose numbers it has */
    const char *last;            /* the op of the last row: what comes behind has no golden */
    bool past;
    size_t compared;
} golden;

static void golden_path(char *path, size_t size, const char *name, const char *suffix) {
    (void)snprintf(path, size, OCTET_SOURCE_DIR "/tests/golden/quantized/%s.%s", name, suffix);
}

static void golden_read(golden *g, const char *name) {
    char path[512];
    memset(g, 0, sizeof *g);
    g->name = name;
    golden_path(path, sizeof path, name, "json");
    RUNS_OK(oct_document_read(&g->rows, path, OCT_DOCUMENT_LIMIT));
    golden_path(path, sizeof path, name, "npy");
    if (!support_npy_read(path, &g->bytes)) fail_msg("%s", path);
    assert_int_equal(g->rows.root->kind, OCT_NODE_LIST);
    g->last = oct_node_get(g->rows.root->items[g->rows.root->count - 1], "op")->string;
}

static void golden_free(golden *g) {
    oct_document_free(&g->rows);
    free(g->bytes.data);
}

static const char *text_of(const oct_node *row, const char *key) {
    return oct_node_get(row, key)->string;
}

/* The row of an op's form; NULL: none. */
static const oct_node *find_row(const golden *g, const char *op, const oct_form *form) {
    static const char *const granularities[] = {"tensor", "channel", "row", "block"};
    for (size_t i = 0; i < g->rows.root->count; i++) {
        const oct_node *row = g->rows.root->items[i];
        if (strcmp(text_of(row, "op"), op) != 0 || strcmp(text_of(row, "format"), oct_format_name(form->format)) != 0)
            continue;
        if (oct_format_has_scale(form->format) &&
            strcmp(text_of(row, "granularity"), granularities[form->granularity]) != 0)
            continue;
        const oct_node *scale = oct_node_get(row, "scale");
        if (scale == NULL || (float)scale->real == form->scale) return row;
    }
    return NULL;
}

/* Element i of a row: its code, and the scale it is to be multiplied with. */
static float code_at(const golden *g, const oct_node *row, int64_t i) {
    const char *element = text_of(row, "element");
    const uint8_t *codes = (const uint8_t *)g->bytes.data + oct_node_get(row, "codes")->integer;
    float value;
    uint16_t half;
    if (strcmp(element, "int8") == 0) return (float)(int8_t)codes[i];
    if (strcmp(element, "e4m3") == 0) return oct_e4m3_decode(codes[i]);
    if (strcmp(element, "fp16") == 0) {
        memcpy(&half, codes + 2 * i, sizeof half);
        return oct_fp16_decode(half);
    }
    memcpy(&value, codes + 4 * i, sizeof value);
    return value;
}

static float scale_at(const golden *g, const oct_node *row, int64_t i, int64_t channels) {
    const oct_node *at = oct_node_get(row, "scales"), *scale = oct_node_get(row, "scale");
    if (at == NULL) return scale != NULL ? (float)scale->real : 1.0f;
    const int64_t block = oct_node_get(row, "block")->integer, blocks = (channels + block - 1) / block;
    float value;
    memcpy(&value, (const uint8_t *)g->bytes.data + at->integer + 4 * (i / channels * blocks + i % channels / block),
           sizeof value);
    return value;
}

/* A code's place among the codes of its format, by what they stand for. */
static int place(const char *format, float units) {
    const float size = fabsf(units);
    int at;
    if (strcmp(format, "int8") == 0)
        at = (int)lrintf(size);
    else if (strcmp(format, "nvfp4") == 0)
        at = (int)lrintf(size < 2 ? size * 2 : size < 4 ? size + 2 : size / 2 + 4);
    else
        at = oct_e4m3_encode(size);
    return units < 0 ? -at : at;
}

/* ---- one stored form */

static void compare(golden *g, const oct_node *row, const oct_plan_tensor *tensor, const float *found, bool inner) {
    const int64_t count = oct_shape_count(&tensor->shape), channels = tensor->shape.dims[tensor->shape.rank - 1];
    const char *format = text_of(row, "format");
    const bool narrow =
        oct_format_has_scale(tensor->form.format) || strcmp(format, "mxfp8") == 0 || strcmp(format, "nvfp4") == 0;
    int64_t differ = 0;
    int most = 0;
    float largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(code_at(g, row, i)));
    assert_int_equal(oct_node_get(row, "count")->integer, count);
    for (int64_t i = 0; i < count; i++) {
        const float expected = code_at(g, row, i), scale = scale_at(g, row, i, channels);
        if (narrow) {
            const int apart = abs(place(format, scale > 0 ? found[i] / scale : 0) - place(format, expected));
            differ += apart > 0;
            if (apart > most) most = apart;
        } else if (!(fabsf(found[i] - expected) <= 1e-5f * largest + 0x1p-10f * fabsf(expected))) {
            fail_msg("%s: %s: element %lld: expected %g, found %g", g->name, tensor->name, (long long)i,
                     (double)expected, (double)found[i]);
        }
    }
    /* a rounded probability that falls to the other side moves its sum by more than a last bit */
    if ((double)differ > SHARE * (double)count || (most > 1 && !inner))
        fail_msg("%s: %s: %lld of %lld codes differ, by up to %d", g->name, tensor->name, (long long)differ,
                 (long long)count, most);
    g->compared++;
}

/* The golden's numbers or codes, into the arena. */
static void replace(const golden *g, const oct_node *row, const oct_plan_tensor *tensor, uint8_t *bytes) {
    const int64_t count = oct_shape_count(&tensor->shape), channels = tensor->shape.dims[tensor->shape.rank - 1];
    const bool is_float = oct_form_is_float(&tensor->form);
    float *scales = (float *)(void *)(bytes + oct_tensor_scales(tensor));
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i / channels * tensor->form.channel_stride + i % channels;
        const float code = code_at(g, row, i), scale = scale_at(g, row, i, channels);
        if (is_float)
            ((float *)(void *)bytes)[at] = code * scale;
        else
            ((int8_t *)bytes)[at] = (int8_t)code;
        if (oct_form_keeps_row_scales(&tensor->form)) scales[i / channels] = scale;
    }
}

static void hold(golden *g, const oct_plan *plan, const oct_plan_step *step, int32_t index, const char *op,
                 uint8_t *arena) {
    const oct_plan_tensor *tensor = &plan->tensors[index];
    float *found = oct_alloc((size_t)oct_shape_count(&tensor->shape) * sizeof *found);
    assert_non_null(found);
    const oct_node *row = find_row(g, op, &tensor->form);
    if (row == NULL)
        fail_msg("%s: %s is stored in a form (%s) that the reference has not", g->name, tensor->name,
                 oct_format_name(tensor->form.format));
    oct_tensor_read(tensor, arena + tensor->offset, found);
    compare(g, row, tensor, found, step->op == OCT_OP_ATTENTION && step->attributes.probabilities != OCT_FORMAT_FP32);
    replace(g, row, tensor, arena + tensor->offset);
    oct_free(found);
}

static void tap(void *user, const oct_plan *plan, size_t index, const void *output, double seconds) {
    (void)seconds;
    golden *g = user;
    const oct_plan_step *step = &plan->steps[index];
    uint8_t *arena = (uint8_t *)(uintptr_t)output - plan->tensors[step->output].offset;
    const bool moves = step->op == OCT_OP_RESHAPE || step->op == OCT_OP_QUANTIZE;
    const char *op = moves ? g->producers[step->inputs[0].index] : step->name;
    assert_true(plan->tensor_count <= sizeof g->producers / sizeof g->producers[0]);
    g->producers[step->output] = op;
    if (step->has_second) g->producers[step->second] = op;
    if (g->past || op == NULL || step->op == OCT_OP_RESHAPE) return; /* NULL: the picture */
    hold(g, plan, step, step->output, op, arena);
    if (step->has_second) hold(g, plan, step, step->second, op, arena);
    g->past = strcmp(op, g->last) == 0;
}

/* ---- a whole network */

/* The picture by formula of tools/reference/drawn_weights.md, as network input. */
static float formula(int64_t x, int64_t y, int64_t c) {
    return ((float)((7 * x + 13 * y + 101 * c + 3 * (x * y % 251)) & 255) - 128.0f) / 64.0f;
}

static void open_model(octet_model **model, const char *subject, const char *recipe, const char *name) {
    char place[512], path[512];
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    oct_model_recipe *made;
    (void)snprintf(place, sizeof place, OCTET_SOURCE_DIR "/subjects/%s", subject);
    golden_path(path, sizeof path, name, "scales.json");
    options.height = options.width = SIZE;
    RUNS_OK(octet_model_open(place, &options, model));
    RUNS_OK(oct_model_recipe_open(*model, recipe, NULL, NULL, &made));
    (*model)->recipe = made;
    RUNS_OK(oct_scale_file_read(&made->scales, path)); /* its keys are no checkpoint's: not asked for */
    made->has_scales = true;
}

static void run(octet_model *model, golden *g, const char *isa) {
    oct_graph graph;
    oct_weights *weights;
    oct_plan *plan;
    oct_engine *engine;
    oct_context *context;
    const oct_plan_options options = {.batch = 1, .force_isa = isa};
    RUNS_OK(oct_model_graph(model, SIZE, SIZE, &graph));
    RUNS_OK(oct_weights_from_graph(&weights, &graph));
    RUNS_OK(oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options));
    oct_graph_free(&graph);
    RUNS_OK(oct_engine_open(&engine, plan, weights, oct_cpu_backend(), NULL, true));
    RUNS_OK(oct_context_new(&context, engine, NULL));
    int stride;
    float *input = oct_context_input(context, &stride);
    for (int64_t i = 0; i < SIZE * SIZE; i++)
        for (int64_t c = 0; c < 3; c++) input[i * stride + c] = formula(i % SIZE, i / SIZE, c);
    oct_context_set_tap(context, tap, g);
    RUNS_OK(oct_context_run(context));
    oct_context_free(context);
    oct_engine_release(engine);
    oct_weights_release(weights);
}

static void hold_recipe(const char *subject, const char *recipe) {
    char name[128];
    golden g;
    (void)snprintf(name, sizeof name, "%s.%s", subject, recipe);
    golden_read(&g, name);
    for (int isa = 1; isa < OCT_ISA_COUNT; isa++) {
        octet_model *model;
        if (!oct_isa_present((oct_isa)isa)) continue;
        open_model(&model, subject, recipe, name);
        g.past = false;
        g.compared = 0;
        memset(g.producers, 0, sizeof g.producers);
        run(model, &g, oct_isa_name((oct_isa)isa));
        assert_int_equal(g.compared, g.rows.root->count); /* each form that the reference stores */
        octet_model_close(&model);
    }
    golden_free(&g);
}

#define TEST(subject, recipe)                                                                                          \
    static void test_##subject##_##recipe(void **state) {                                                              \
        (void)state;                                                                                                   \
        hold_recipe(#subject, #recipe);                                                                                \
    }
TEST(mobilenetv2_035, published)
TEST(mobilenetv2_035, int8)
TEST(yolos, published)
TEST(yolos, int8_smoothed)
TEST(yolos, mxfp8)
TEST(yolos, nvfp4)
TEST(yolos, attention)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mobilenetv2_035_published),
        cmocka_unit_test(test_mobilenetv2_035_int8),
        cmocka_unit_test(test_yolos_published),
        cmocka_unit_test(test_yolos_int8_smoothed),
        cmocka_unit_test(test_yolos_mxfp8),
        cmocka_unit_test(test_yolos_nvfp4),
        cmocka_unit_test(test_yolos_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
