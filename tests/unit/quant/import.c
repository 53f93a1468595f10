/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints quantized elsewhere: their recipe and scales give their own codes again, the float32 graph what these
 * stand for; and every way of saying what is not supported is refused by name. */
#include "unit/quant/network.h"

#include "base/file.h"
#include "graph/quantize.h"
#include "quant/import.h"
#include "support/support.h"

#define INPUTS 6
#define OUTPUTS 4

static char *directory;
static int begin(void **state) {
    (void)state;
    directory = support_temporary_directory();
    return 0;
}
static int end(void **state) {
    (void)state;
    support_remove_tree(directory);
    free(directory);
    return 0;
}

/* ---- checkpoints: linear "first.dense", then "second" */

typedef struct quantized {
    oct_dtype dtype;
    int scales;          /* of a weight */
    bool input, factors; /* MODULE.input_scale, first.dense.pre_quant_scale */
    const char *scale;   /* the name of the weight's scales */
    int lacks;           /* 1: a scale, 2: an input scale; 3: a scale is 0 */
} quantized;

static uint8_t codes[2][OUTPUTS * INPUTS];
static float scales[2][OUTPUTS] = {{0.5f, 0.25f, 0.01f, 3}, {0.125f, 1, 2, 0.7f}}, inputs[2] = {0.03f, 0.4f};
static const float factors[INPUTS] = {1, 0.5f, 2, 0.25f, 1, 8};

static void write_checkpoint(const quantized *q, const char *config, const char *own) {
    static const char *const modules[] = {"first.dense", "second"};
    static char names[2][4][64];
    oct_tensor_source tensors[8];
    size_t count = 0;
    uint64_t seed = 1;
    scales[1][0] = q->lacks == 3 ? 0 : 0.125f;
    for (int m = 0; m < 2; m++) {
        const int64_t rows = m == 0 ? OUTPUTS : 2, columns = m == 0 ? INPUTS : OUTPUTS;
        for (int64_t i = 0; i < rows * columns; i++) {
            codes[m][i] = (uint8_t)oct_random_below(&seed, 256);
            if (q->dtype == OCT_DTYPE_F8_E4M3 && (codes[m][i] & 0x7f) == 0x7f) codes[m][i] = 0x7e;
        }
        const char *const what[] = {"weight", q->scale, "input_scale", "pre_quant_scale"};
        for (int t = 0; t < 4; t++) (void)snprintf(names[m][t], 64, "%s.%s", modules[m], what[t]);
        tensors[count++] = (oct_tensor_source){
            .name = names[m][0], .dtype = q->dtype, .rank = 2, .shape = {rows, columns}, .data = codes[m]};
        if (q->lacks != 1)
            tensors[count++] = (oct_tensor_source){.name = names[m][1],
                                                   .dtype = OCT_DTYPE_F32,
                                                   .rank = q->scales == 1 ? 0 : 2,
                                                   .shape = {rows, 1},
                                                   .data = scales[m]};
        if (q->input && q->lacks != 2)
            tensors[count++] = (oct_tensor_source){.name = names[m][2], .dtype = OCT_DTYPE_F32, .data = &inputs[m]};
        if (q->factors && m == 0)
            tensors[count++] = (oct_tensor_source){
                .name = names[m][3], .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {INPUTS}, .data = factors};
    }
    ASSERT_OK(oct_safetensors_write(support_join(directory, "model.safetensors"), tensors, count));
    support_write_text(support_join(directory, "config.json"), config);
    const char *second = support_join(directory, "hf_quant_config.json");
    if (own != NULL)
        support_write_text(second, own);
    else
        (void)remove(second);
}

/* As a family would: constants read by name. */
static void build(oct_checkpoint *checkpoint, oct_graph *graph, bool renamed) {
    *graph = (oct_graph){0};
    int32_t x = oct_graph_input(graph, "input", (oct_shape){2, {1, INPUTS}});
    static const char *const modules[] = {"first.dense", "second"};
    for (int m = 0; m < 2; m++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s.weight", modules[m]);
        oct_tensor *tensor = oct_checkpoint_find(checkpoint, name);
        float *data = oct_alloc((size_t)tensor->count * sizeof *data);
        ASSERT_OK(oct_checkpoint_read(checkpoint, tensor, data));
        tensor->used = true;
        const int32_t both[] = {
            x, oct_graph_constant(graph, name, (oct_shape){2, {tensor->shape[0], tensor->shape[1]}}, data)};
        x = oct_graph_add_node(graph, OCT_OP_LINEAR, renamed && m == 1 ? "other" : modules[m], both, 2, NULL);
    }
    ASSERT_OK(oct_graph_output(graph, x, "logits"));
    ASSERT_OK(oct_graph_check(graph));
}

/* ---- what is supported */

#define CT(weights, activations)                                                                                       \
    "{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {"          \
    "\"weights\": {" weights "}, \"input_activations\": " activations                                                  \
    ", \"targets\": [\"Linear\"]}}, \"ignore\": [\"lm_head\"]}}"
#define MODELOPT(algorithm)                                                                                            \
    "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {\"quant_algo\": \"" algorithm                         \
    "\", \"kv_cache_quant_algo\": null, \"exclude_modules\": [\"head\"]}}"

static const struct {
    const char *config, *own;
    quantized tensors;
    const char *rule; /* part of the recipe */
} good[] = {
    {"{}",
     MODELOPT("FP8"),
     {OCT_DTYPE_F8_E4M3, 1, true, false, "weight_scale", 0},
     "weights: {format: e4m3, granularity: tensor, rounding: compensated}\n    activations: {format: e4m3, "
     "granularity: "
     "tensor}\n"},
    {"{\"quantization_config\": {\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\"}}",
     MODELOPT("FP8"),
     {OCT_DTYPE_F8_E4M3, 1, true, false, "weight_scale", 0},
     "- \"first.dense\"\n        - \"second\"\n"},
    {"{}",
     MODELOPT("FP8_PER_CHANNEL_PER_TOKEN"),
     {OCT_DTYPE_F8_E4M3, OUTPUTS, false, false, "weight_scale", 0},
     "activations: {format: e4m3, granularity: row}"},
    {"{}",
     MODELOPT("W8A8_SQ_PER_CHANNEL"),
     {OCT_DTYPE_I8, OUTPUTS, true, true, "weight_scale", 0},
     "  - ops: {name: \"first.dense\"}\n    smoothing: 0.5\n"},
    {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"activation_scheme\": \"static\"}}",
     NULL,
     {OCT_DTYPE_F8_E4M3, 1, true, false, "weight_scale_inv", 0},
     "activations: {format: e4m3, granularity: tensor}"},
    {"{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": null}}",
     NULL,
     {OCT_DTYPE_F8_E4M3, 1, false, false, "weight_scale_inv", 0},
     "activations: {format: e4m3, granularity: row}"},
    {"{\"quantization_config\": {\"quant_method\": \"fbgemm_fp8\"}}",
     NULL,
     {OCT_DTYPE_F8_E4M3, OUTPUTS, false, false, "weight_scale", 0},
     "granularity: channel"},
    {CT("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"channel\", \"symmetric\": true",
        "{\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"token\", \"dynamic\": true}"),
     NULL,
     {OCT_DTYPE_I8, OUTPUTS, false, false, "weight_scale", 0},
     "activations: {format: int8, granularity: row}"},
    {CT("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\"",
        "{\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\", \"dynamic\": false}"),
     NULL,
     {OCT_DTYPE_F8_E4M3, 1, true, false, "weight_scale", 0},
     "activations: {format: e4m3, granularity: tensor}"},
    {CT("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"channel\"", "null"),
     NULL,
     {OCT_DTYPE_F8_E4M3, OUTPUTS, false, false, "weight_scale", 0},
     "granularity: channel, rounding: compensated}\n"},
};

static float scale_of(const quantized *q, int m, int64_t row) {
    return scales[m][q->scales == 1 ? 0 : row];
}

/* The code as the graph keeps it: int8 without -128. */
static uint8_t kept(const quantized *q, uint8_t code) {
    return q->dtype == OCT_DTYPE_I8 && code == 0x80 ? 0x81 : code;
}

static void expect_weights(const quantized *q, const oct_graph *graph, bool as_codes) {
    for (int m = 0; m < 2; m++) {
        const oct_value *weight =
            &graph->values[oct_graph_find(graph, m == 0 ? "first.dense.weight" : "second.weight")];
        const int64_t columns = weight->shape.dims[1];
        for (int64_t i = 0; i < weight->shape.dims[0] * columns; i++) {
            const uint8_t code = kept(q, codes[m][i]);
            const float number = q->dtype == OCT_DTYPE_I8 ? (float)(int8_t)code : oct_e4m3_decode(code);
            const float factor = q->factors && m == 0 ? factors[i % columns] : 1;
            if (as_codes)
                assert_true(weight->codes[i] == code || (number == 0 && (weight->codes[i] & 0x7f) == 0));
            else
                assert_true(weight->data[i] == number * scale_of(q, m, i / columns) * factor);
        }
    }
}

static void test_supported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const quantized *q = &good[i].tensors;
        oct_checkpoint *checkpoint;
        oct_import import;
        oct_graph graph;
        oct_recipe recipe;
        oct_decisions decisions;
        oct_lowered lowered;
        write_checkpoint(q, good[i].config, good[i].own);
        ASSERT_OK(oct_checkpoint_open(&checkpoint, directory));
        ASSERT_OK(oct_import_read(checkpoint, &import));
        assert_int_equal(import.count, 2);
        build(checkpoint, &graph, false);
        ASSERT_OK(oct_checkpoint_all_used(checkpoint));
        ASSERT_OK(oct_import_weights(&import, &graph));
        expect_weights(q, &graph, false);
        if (strstr(import.recipe.data, good[i].rule) == NULL)
            fail_msg("%s\nlacks %s", import.recipe.data, good[i].rule);
        ASSERT_OK(oct_recipe_parse(&recipe, "imported", import.recipe.data, import.recipe.length));
        ASSERT_OK(oct_recipe_apply(&recipe, &graph, &decisions));
        ASSERT_OK(oct_quant_lower(&recipe, &graph, &decisions, &import.draft.file, &lowered));
        assert_int_equal(lowered.count, 2);
        for (int m = 0; m < 2; m++) {
            if (q->input) assert_true(lowered.decisions[m].inputs[0].scale == inputs[m]);
            assert_int_equal(lowered.decisions[m].inputs[0].factors != NULL, q->factors && m == 0);
        }
        ASSERT_OK(oct_graph_quantize(&graph, lowered.decisions, lowered.count));
        expect_weights(q, &graph, true);
        oct_lowered_free(&lowered);
        oct_decisions_free(&decisions);
        oct_recipe_free(&recipe);
        oct_graph_free(&graph);
        oct_import_free(&import);
        oct_checkpoint_close(checkpoint);
        assert_int_equal(oct_alloc_live(), 0);
    }
}

/* ---- what is not */

static const quantized usual = {OCT_DTYPE_F8_E4M3, 1, true, false, "weight_scale", 0};
#define METHOD(rest) "{\n\"quantization_config\": {\"quant_method\": " rest "}}"
#define EIGHT "\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\""

static const struct {
    const char *config, *own, *says;
} bad[] = {
    {"{}", MODELOPT("NVFP4"), "hf_quant_config.json:1: quant_algo: 'NVFP4' is not supported"},
    {"{}", MODELOPT("W4A16_AWQ"), "'W4A16_AWQ'"},
    {"{}", MODELOPT("MIXED_PRECISION"), "'MIXED_PRECISION'"},
    {"{}", MODELOPT("fp8"), "'fp8'"},
    {"{}", "{}", "hf_quant_config.json:1: quantization: expected a map"},
    {"{}", "{\"quantization\": {}}", "quant_algo"},
    {"{}", "{\"quantization\": {\"quant_algo\": 3}}", "quant_algo"},
    {"{}", "[1", "hf_quant_config.json"},
    {METHOD("\"bitsandbytes\", \"load_in_8bit\": true"), NULL, "config.json:2: quant_method: 'bitsandbytes' is not"},
    {METHOD("\"gptq\", \"bits\": 4"), NULL, "'gptq'"},
    {METHOD("\"awq\""), NULL, "'awq'"},
    {METHOD("\"mxfp4\""), NULL, "'mxfp4'"},
    {METHOD("3"), NULL, "quant_method"},
    {"{\"quantization_config\": {}}", NULL, "quant_method"},
    {"{\"quantization_config\": \"fp8\"}", NULL, "quantization_config: expected a map"},
    {METHOD("\"modelopt\", \"quant_algo\": \"FP8_PB_WO\""), NULL, "'FP8_PB_WO'"},
    {METHOD("\"modelopt\", \"quant_algo\": \"FP8\""), MODELOPT("W8A8_SQ_PER_CHANNEL"), "config.json says modelopt FP8"},
    {METHOD("\"fp8\", \"weight_block_size\": [128, 128]"), NULL, "weight_block_size"},
    {METHOD("\"fp8\", \"activation_scheme\": \"sometimes\""), NULL, "'sometimes'"},
    {METHOD("\"compressed-tensors\""), NULL, "config_groups: expected one group"},
    {METHOD("\"compressed-tensors\", \"config_groups\": {\"a\": {}, \"b\": {}}"), NULL, "expected one group"},
    {METHOD("\"compressed-tensors\", \"config_groups\": {\"a\": {}}"), NULL, "weights: expected a map"},
    {CT("\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\"", "null"), NULL, "num_bits: expected 8, found 4"},
    {CT("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"block\"", "null"), NULL, "strategy of weights: 'block'"},
    {CT("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"tensor\", \"symmetric\": false", "null"), NULL,
     "symmetric"},
    {CT("\"num_bits\": 8, \"type\": \"posit\", \"strategy\": \"tensor\"", "null"), NULL, "'posit'"},
    {CT("\"num_bits\": 8, \"strategy\": \"tensor\"", "null"), NULL, "type"},
    {CT(EIGHT, "{\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"token\", \"dynamic\": true}"), NULL,
     "expected the weights' type, e4m3, found int8"},
    {CT(EIGHT, "{" EIGHT ", \"dynamic\": true}"), NULL, "strategy of dynamic activations: 'tensor'"},
    {CT(EIGHT, "{\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"group\"}"), NULL, "static activations: 'group'"},
    {"{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {\"weights\": "
     "{" EIGHT "}, \"targets\": [\"re:.*down\"]}}}}",
     NULL, "targets: 're:.*down'"},
};

static void expect_refused(const quantized *q, const char *config, const char *own, const char *says) {
    oct_checkpoint *checkpoint;
    oct_import import;
    write_checkpoint(q, config, own);
    ASSERT_OK(oct_checkpoint_open(&checkpoint, directory));
    if (oct_import_read(checkpoint, &import) == OCTET_OK) fail_msg("read: %s %s", config, own != NULL ? own : "");
    if (strstr(oct_error_fact(), says) == NULL) fail_msg("expected %s, found %s", says, oct_error_text());
    assert_true(import.ops == NULL && !import.scheme.found);
    oct_checkpoint_close(checkpoint);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(&usual, bad[i].config, bad[i].own, bad[i].says);
    const char *fp8 = MODELOPT("FP8");
    quantized q = usual;
    q.lacks = 1;
    expect_refused(&q, "{}", fp8, "there is no first.dense.weight_scale");
    q.lacks = 2;
    expect_refused(&q, "{}", fp8, "there is no first.dense.input_scale");
    q.lacks = 3;
    expect_refused(&q, "{}", fp8, "second.weight_scale: element 0: expected a scale above 0, found 0");
    q.lacks = 0;
    q.scales = OUTPUTS;
    expect_refused(&q, "{}", fp8, "tensor first.dense.weight_scale: expected 1 scales, found 4");
    q.scales = 1;
    expect_refused(&q, "{}", MODELOPT("FP8_PER_CHANNEL_PER_TOKEN"), "expected 4 scales, found 1");
    q.dtype = OCT_DTYPE_I8;
    expect_refused(&q, "{}", fp8, "expected F8_E4M3 as modelopt says, found I8");
    q.dtype = OCT_DTYPE_U8;
    expect_refused(&q, "{}", fp8, "found U8");
}

/* Nothing of quantization; a module that is no op; memory. */
static void test_other(void **state) {
    (void)state;
    oct_checkpoint *checkpoint;
    oct_import import;
    oct_graph graph;
    write_checkpoint(&usual, "{\"quantization_config\": null}", NULL);
    ASSERT_OK(oct_checkpoint_open(&checkpoint, directory));
    ASSERT_OK(oct_import_read(checkpoint, &import));
    assert_true(!import.scheme.found && import.arena.blocks == NULL);
    oct_checkpoint_close(checkpoint);

    write_checkpoint(&usual, "{}", MODELOPT("FP8"));
    ASSERT_OK(oct_checkpoint_open(&checkpoint, directory));
    ASSERT_OK(oct_import_read(checkpoint, &import));
    build(checkpoint, &graph, true);
    assert_int_equal(oct_import_weights(&import, &graph), OCTET_UNSUPPORTED);
    assert_non_null(strstr(oct_error_fact(), "quantized module second: no convolution or linear of its own"));
    oct_graph_free(&graph);
    oct_import_free(&import);
    bool met = true;
    for (uint64_t n = 1; met; n++) {
        oct_alloc_fail_at(n, false);
        octet_status status = oct_import_read(checkpoint, &import);
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        oct_import_free(&import);
    }
    oct_checkpoint_close(checkpoint);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_supported),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_other),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
