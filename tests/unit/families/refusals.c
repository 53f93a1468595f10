/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose names, shapes, values or configuration are not what the family wants: each is refused with a text
 * that says where, what was expected and what was found; and those that differ but are right load with the same
 * outputs. */
#include "drawn.h"

#define MOBILENET "mobilenetv2_035"
#define YOLOS "yolos_tiny_96x128"
#define VIT "vit_tiny_patch16_224"

typedef struct drawn_fixture {
    drawn_model drawn;
    char *directory;
} drawn_fixture;

static void begin(drawn_fixture *fixture, const char *name) {
    drawn_load(&fixture->drawn, name, true);
    fixture->directory = support_temporary_directory();
}

static void end(drawn_fixture *fixture) {
    drawn_free(&fixture->drawn);
    support_remove_tree(fixture->directory);
    free(fixture->directory);
}

/* Writes, builds and wants a refusal whose fact has each of `parts` (NULL-ended). */
static void expect_refusal(const drawn_fixture *fixture, octet_status status, const char *const *parts) {
    oct_graph graph;
    drawn_write(&fixture->drawn, fixture->directory);
    octet_status found = build_directory(fixture->directory, 32, 32, &graph);
    if (found == OCTET_OK) fail_msg("built, expected %s", parts[0]);
    for (size_t i = 0; parts[i] != NULL; i++) {
        if (strstr(oct_error_text(), parts[i]) == NULL) fail_msg("%s\nhas no: %s", oct_error_text(), parts[i]);
    }
    assert_int_equal(found, status);
}
#define EXPECT_REFUSAL(fixture, status, ...) expect_refusal(fixture, status, (const char *const[]){__VA_ARGS__, NULL})

/* The sum of all logits of a small picture: equal graphs give equal sums. */
static double sum_of_logits(const char *directory) {
    oct_graph graph;
    ASSERT_OK(build_directory(directory, 32, 32, &graph));
    float *input = draw_input(32, 32, 5);
    oct_array logits;
    ASSERT_OK(oct_graph_evaluate(&graph, input, &logits, 1, NULL, NULL));
    double sum = 0;
    for (int64_t i = 0; i < oct_shape_count(&logits.shape); i++) sum += (double)logits.data[i] * (double)(i + 1);
    oct_free(logits.data);
    oct_free(input);
    oct_graph_free(&graph);
    return sum;
}

static void prefix(drawn_model *drawn, const char *with, int every) {
    for (size_t i = 0; i < drawn->count; i += (size_t)every) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s%.100s", with, drawn->tensors[i].name);
        memcpy(drawn->tensors[i].name, name, sizeof name);
    }
}

/* ---- names */

static void test_prefixes(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, MOBILENET);
    drawn_write(&fixture.drawn, fixture.directory);
    double right = sum_of_logits(fixture.directory);
    end(&fixture);
    assert_true(isfinite(right) && right != 0);
    static const char *const prefixes[] = {"module.", "model.", "_orig_mod."};
    for (size_t i = 0; i < 3; i++) {
        begin(&fixture, MOBILENET);
        prefix(&fixture.drawn, prefixes[i], 1);
        drawn_write(&fixture.drawn, fixture.directory);
        assert_true(sum_of_logits(fixture.directory) == right);
        end(&fixture);
    }
    begin(&fixture, MOBILENET);
    prefix(&fixture.drawn, "module.", 2);
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH, ".weight", "found no such tensor");
    end(&fixture);
}

static void test_missing_and_extra(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, MOBILENET);
    drawn_drop(&fixture.drawn, "blocks.3.1.bn2.running_var");
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH, "blocks.3.1.bn2.running_var: expected [", "found no such tensor");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_tensor *tensor = drawn_find(&fixture.drawn, "blocks.3.1.bn2.running_var");
    (void)snprintf(tensor->name, sizeof tensor->name,
                   "ema_decay"); /* one missing, one extra: the missing one is said */
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH, "blocks.3.1.bn2.running_var");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_model *drawn = &fixture.drawn;
    tensor = drawn_find(drawn, "bn1.num_batches_tracked"); /* its place is free: counters are not written */
    *tensor = (drawn_tensor){.name = "ema_decay", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {1}};
    tensor->data = oct_calloc(1, sizeof(float));
    drawn_write(drawn, fixture.directory);
    oct_graph graph;
    assert_int_not_equal(build_directory(fixture.directory, 32, 32, &graph), OCTET_OK);
    assert_non_null(strstr(oct_error_text(), "ema_decay"));
    end(&fixture);
}

/* ---- shapes and values */

static void test_head_mismatch(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, MOBILENET);
    drawn_config(&fixture.drawn, "\"num_classes\": 1000", "\"num_classes\": 10");
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH,
                   "model.safetensors: classifier.weight: expected [10, 1280], found [1000, 1280]");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_tensor *weight = drawn_find(&fixture.drawn, "classifier.weight");
    weight->shape[0] = 1280;
    weight->shape[1] = 1000;
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH, "classifier.weight: expected [1000, 1280], found [1280, 1000]");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_find(&fixture.drawn, "classifier.bias")->shape[0] = 1;
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH, "classifier.bias: expected [1000], found [1]");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_config(&fixture.drawn, MOBILENET, "mobilenetv2_050");
    EXPECT_REFUSAL(&fixture, OCTET_MISMATCH,
                   "blocks.1.0.conv_pwl.weight: expected [16, 48, 1, 1], found [8, 48, 1, 1]");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_config(&fixture.drawn, "\"num_classes\": 1000,\n\"num_features\"", "\"num_classes\": 0,\n\"num_features\"");
    drawn_drop(&fixture.drawn, "classifier.weight");
    drawn_drop(&fixture.drawn, "classifier.bias");
    EXPECT_REFUSAL(&fixture, OCTET_UNSUPPORTED, "config.json:2: num_classes: 0", "feature extractor without classes");
    end(&fixture);
}

static void test_top_level_classes_count(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, MOBILENET);
    drawn_write(&fixture.drawn, fixture.directory);
    double right = sum_of_logits(fixture.directory);
    char *second = strstr(fixture.drawn.config.data, "\"num_classes\": 1000,\n\"pool_size\"");
    assert_non_null(second);
    memcpy(second, "\"num_classes\": 2184", strlen("\"num_classes\": 2184"));
    drawn_write(&fixture.drawn, fixture.directory);
    assert_true(sum_of_logits(fixture.directory) == right);
    end(&fixture);
}

static void test_values(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, MOBILENET);
    drawn_find(&fixture.drawn, "conv_stem.weight")->data[5] = NAN;
    EXPECT_REFUSAL(&fixture, OCTET_BAD_FORMAT, "conv_stem.weight", "5");
    end(&fixture);

    begin(&fixture, MOBILENET);
    drawn_find(&fixture.drawn, "bn1.running_var")->data[3] = -0.25f;
    EXPECT_REFUSAL(&fixture, OCTET_BAD_FORMAT, "model.safetensors: bn1.running_var: element 3", "found -0.25");
    end(&fixture);

    begin(&fixture, MOBILENET); /* 1 / sqrt(0 + 1e-5): large, and right */
    drawn_tensor *variance = drawn_find(&fixture.drawn, "bn1.running_var");
    memset(variance->data, 0, (size_t)drawn_elements(variance) * sizeof(float));
    drawn_write(&fixture.drawn, fixture.directory);
    assert_true(isfinite(sum_of_logits(fixture.directory)));
    end(&fixture);

    begin(&fixture, MOBILENET); /* codes without scales are no weights */
    drawn_find(&fixture.drawn, "classifier.bias")->dtype = OCT_DTYPE_I32;
    EXPECT_REFUSAL(&fixture, OCTET_UNSUPPORTED, "classifier.bias: expected F32, F16, BF16 or F64, found I32");
    end(&fixture);
}

/* ---- configurations */

typedef struct change {
    const char *name, *from, *to;
    octet_status status;
    const char *text;
} change;

static void test_configurations(void **state) {
    (void)state;
    static const change changes[] = {
        {MOBILENET, "\"architecture\": \"" MOBILENET "\"", "\"architecture\": \"mobilenetv3_large_100\"",
         OCTET_UNSUPPORTED, "config.json:1: architecture: mobilenetv3_large_100 is not supported"},
        {MOBILENET, "\"architecture\"", "\"name\"", OCTET_UNSUPPORTED, "found neither"},
        {MOBILENET, "\"global_pool\": \"avg\"", "\"global_pool\": \"max\"", OCTET_UNSUPPORTED,
         "config.json:4: global_pool: only avg is supported, found max"},
        {MOBILENET, "\"global_pool\"", "\"model_args\": {\"in_chans\": 1}, \"global_pool\"", OCTET_UNSUPPORTED,
         "config.json:4: model_args: in_chans is not supported"},
        {MOBILENET, "[3,", "[1,", OCTET_UNSUPPORTED, "input_size: only 3 channels are supported, found 1"},
        {MOBILENET, "[3,\n224", "[3,\n0", OCTET_BAD_FORMAT, "input_size: expected sides of 1 to"},
        {MOBILENET, "1000", "\"many\"", OCTET_BAD_FORMAT, "config.json:2: num_classes"},
        {VIT, "\"global_pool\": \"token\"", "\"global_pool\": \"avg\"", OCTET_UNSUPPORTED,
         "config.json:4: global_pool: only token is supported, found avg"},
        {VIT, "\"global_pool\"", "\"model_args\": {\"reg_tokens\": 4}, \"global_pool\"", OCTET_UNSUPPORTED,
         "config.json:4: reg_tokens: register tokens are not supported"},
        {VIT, "\"global_pool\"", "\"model_args\": {\"class_token\": false}, \"global_pool\"", OCTET_UNSUPPORTED,
         "config.json:4: class_token: only true is supported"},
        {VIT, "\"global_pool\"", "\"model_args\": {\"init_values\": 1e-5}, \"global_pool\"", OCTET_UNSUPPORTED,
         "config.json:4: model_args: init_values is not supported"},
        {VIT, "\"num_features\"", "\"x\"", OCTET_UNSUPPORTED, "is built for 224 x 224 alone, not for 32 x 32"},
        {VIT, "vit_tiny_patch16_224", "vit_tiny_patch16_224_distilled", OCTET_UNSUPPORTED,
         "supported: mobilenetv2_035"},
        {YOLOS, "\"gelu\"", "\"gelu_new\"", OCTET_UNSUPPORTED, "hidden_act: only gelu is supported, found gelu_new"},
        {YOLOS, "YolosForObjectDetection", "YolosModel", OCTET_UNSUPPORTED,
         "config.json:1: architectures: only YolosForObjectDetection is supported, found YolosModel"},
        {YOLOS, "\"num_attention_heads\": 3", "\"num_attention_heads\": 5", OCTET_BAD_FORMAT,
         "num_attention_heads: 5 heads do not divide hidden_size, 192"},
        {YOLOS, "\"num_channels\": 3", "\"num_channels\": 4", OCTET_UNSUPPORTED, "num_channels: only 3 is supported"},
        {YOLOS, "\"patch_size\": 16", "\"patch_size\": [16, 8]", OCTET_UNSUPPORTED, "only square patches"},
        {YOLOS, "\"model_type\": \"yolos\"", "\"model_type\": \"detr\"", OCTET_UNSUPPORTED,
         "model_type: detr is not supported"},
        {YOLOS, "\"num_hidden_layers\": 12", "\"num_hidden_layers\": -1", OCTET_BAD_FORMAT, "num_hidden_layers"},
        {YOLOS, "\"num_hidden_layers\": 12", "\"num_hidden_layers\": 11", OCTET_MISMATCH, "vit.encoder.layer.11."},
        {YOLOS, "\"num_detection_tokens\": 20", "\"num_detection_tokens\": 21", OCTET_MISMATCH,
         "vit.embeddings.detection_tokens: expected [1, 21, 192], found [1, 20, 192]"},
        {YOLOS, "\"use_mid_position_embeddings\": false", "\"use_mid_position_embeddings\": true", OCTET_MISMATCH,
         "vit.encoder.mid_position_embeddings: expected [11, 1, 69, 192], found no such tensor"},
        {YOLOS, "\"qkv_bias\": true", "\"qkv_bias\": false", OCTET_MISMATCH, "attention.attention."},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        drawn_fixture fixture;
        begin(&fixture, changes[i].name);
        drawn_config(&fixture.drawn, changes[i].from, changes[i].to);
        drawn_write(&fixture.drawn, fixture.directory);
        oct_graph graph;
        octet_status status = build_directory(fixture.directory, 32, 32, &graph);
        if (status == OCTET_OK) fail_msg("row %zu built, expected %s", i, changes[i].text);
        if (strstr(oct_error_text(), changes[i].text) == NULL) {
            fail_msg("row %zu: %s\nhas no: %s", i, oct_error_text(), changes[i].text);
        }
        if (changes[i].status != status && changes[i].status != OCTET_MISMATCH) {
            fail_msg("row %zu: status %s", i, oct_status_name(status));
        }
        end(&fixture);
    }
}

/* Right, though written otherwise. */
static void test_accepted(void **state) {
    (void)state;
    static const change changes[] = {
        {VIT, "\"global_pool\"", "\"model_args\": {\"img_size\": 224, \"reg_tokens\": 0}, \"global_pool\"", OCTET_OK,
         ""},
        {MOBILENET, "\"num_features\"", "\"model_args\": {}, \"num_features\"", OCTET_OK, ""},
        {MOBILENET, "\"pretrained_cfg\"", "\"pretrained_cfg_of_old\"", OCTET_OK, ""},
        {YOLOS, "[96,\n128]", "[101,\n130]", OCTET_OK, ""}, /* parts of a patch are dropped */
        {YOLOS, "\"patch_size\": 16", "\"patch_size\": [16, 16]", OCTET_OK, ""},
        {YOLOS, "\"architectures\": [\"YolosForObjectDetection\"],", "", OCTET_OK, ""},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        drawn_fixture fixture;
        begin(&fixture, changes[i].name);
        drawn_config(&fixture.drawn, changes[i].from, changes[i].to);
        drawn_write(&fixture.drawn, fixture.directory);
        oct_graph graph;
        if (build_directory(fixture.directory, 0, 0, &graph) != OCTET_OK) fail_msg("row %zu: %s", i, oct_error_text());
        oct_graph_free(&graph);
        end(&fixture);
    }
}

static void test_moved_mid_positions(void **state) {
    (void)state;
    drawn_fixture fixture;
    begin(&fixture, "yolos_tiny_96x128_mid");
    for (size_t i = 0; i < fixture.drawn.count; i++) {
        drawn_tensor *tensor = &fixture.drawn.tensors[i];
        if (strstr(tensor->name, "mid_position") == NULL) continue;
        bool moved = strstr(tensor->name, "interpolation") != NULL;
        (void)snprintf(tensor->name, sizeof tensor->name, "vit.encoder.%smid_position_embeddings",
                       moved ? "" : "interpolation.");
    }
    drawn_write(&fixture.drawn, fixture.directory);
    oct_graph graph;
    ASSERT_OK(build_directory(fixture.directory, 0, 0, &graph));
    oct_graph_free(&graph);
    end(&fixture);
}

/* Every value of a config in turn replaced by each of these: some still build, the others say why; none reads a field
 * as what it is not, and nothing is held after. */
static const char *const replacements[] = {"null",  "true", "-1",    "0",  "1",  "3",      "9007199254740993",
                                           "1e300", "0.5",  "\"x\"", "[]", "{}", "[7, 7]", "{\"a\": [1]}"};

static size_t replace_each(oct_node *node, const oct_document *document, const oct_node *const *with, size_t count,
                           const char *directory) {
    size_t built = 0;
    for (size_t i = 0; (node->kind == OCT_NODE_LIST || node->kind == OCT_NODE_MAP) && i < node->count; i++) {
        oct_node *right = node->items[i];
        built += replace_each(right, document, with, count, directory);
        for (size_t k = 0; k < count; k++) {
            oct_text text = {0};
            node->items[i] = (oct_node *)with[k];
            drawn_print(document->root, &text);
            support_write_file(support_join(directory, "config.json"), text.data, text.length);
            oct_text_free(&text);
            int64_t held = oct_alloc_live();
            oct_graph graph = {0};
            octet_status status = build_directory(directory, 32, 32, &graph);
            if (status == OCTET_OK) {
                oct_graph_free(&graph);
                built++;
            } else {
                assert_true(oct_error_fact()[0] != '\0' && status != OCTET_INTERNAL);
            }
            assert_int_equal(oct_alloc_live(), held);
        }
        node->items[i] = right;
    }
    return built;
}

static void test_replaced_values(void **state) {
    (void)state;
    enum { COUNT = sizeof replacements / sizeof replacements[0] };
    oct_document documents[COUNT];
    const oct_node *with[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char text[64]; /* a document is a list or a map, so each stands in a list */
        (void)snprintf(text, sizeof text, "[%s]", replacements[i]);
        ASSERT_OK(oct_document_parse_json(&documents[i], "replacement", text, strlen(text)));
        with[i] = documents[i].root->items[0];
    }
    for (int model = 0; model < 2; model++) {
        drawn_model drawn;
        if (model == 0) {
            drawn_load_small(&drawn);
        } else {
            drawn_load(&drawn, MOBILENET, true);
        }
        char *directory = support_temporary_directory();
        drawn_write(&drawn, directory);
        oct_document document;
        ASSERT_OK(oct_document_parse_json(&document, "config", drawn.config.data, drawn.config.length));
        drawn_free(&drawn);
        size_t built = replace_each(document.root, &document, with, COUNT, directory);
        print_message("%zu built all the same\n", built);
        assert_true(built > 0);
        oct_document_free(&document);
        support_remove_tree(directory);
        free(directory);
    }
    for (size_t i = 0; i < COUNT; i++) oct_document_free(&documents[i]);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes),        cmocka_unit_test(test_missing_and_extra),
        cmocka_unit_test(test_head_mismatch),   cmocka_unit_test(test_top_level_classes_count),
        cmocka_unit_test(test_values),          cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_accepted),        cmocka_unit_test(test_moved_mid_positions),
        cmocka_unit_test(test_replaced_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
