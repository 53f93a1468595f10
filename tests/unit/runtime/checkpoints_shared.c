/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of public bug reports, opened and run (../shared/cases: 16, 19, 21, 24): each answers as the reference,
 * or is refused naming what is wrong; never with weights that were not read. */
#include "models.h"

/* ---- the tensors of a checkpoint, to be changed and written again */

typedef struct tensors {
    oct_tensor_source *items;
    size_t count;
} tensors;

static tensors read_tensors(const char *place, const char *file) {
    oct_checkpoint *checkpoint = NULL;
    ASSERT_OK(oct_checkpoint_open(&checkpoint, place));
    size_t count = oct_checkpoint_tensor_count(checkpoint);
    tensors read = {calloc(count + 2, sizeof *read.items), 0};
    assert_non_null(read.items);
    for (size_t i = 0; i < count; i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        if (file != NULL && strstr(tensor->file, file) == NULL) continue;
        oct_tensor_source *item = &read.items[read.count++];
        void *data = malloc(tensor->size + 1);
        assert_non_null(data);
        ASSERT_OK(oct_checkpoint_read_raw(checkpoint, tensor, data));
        *item = (oct_tensor_source){
            .name = strdup(tensor->name), .dtype = tensor->dtype, .rank = tensor->rank, .data = data};
        memcpy(item->shape, tensor->shape, sizeof item->shape);
    }
    oct_checkpoint_close(checkpoint);
    return read;
}

static void free_tensors(tensors *t) {
    for (size_t i = 0; i < t->count; i++) {
        free((void *)(uintptr_t)t->items[i].name);
        free((void *)(uintptr_t)t->items[i].data);
    }
    free(t->items);
}

static oct_tensor_source *find_tensor(const tensors *t, const char *name) {
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->items[i].name, name) == 0) return &t->items[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static float *floats_of(const tensors *t, const char *name) {
    oct_tensor_source *tensor = find_tensor(t, name);
    assert_int_equal(tensor->dtype, OCT_DTYPE_F32);
    return (float *)(uintptr_t)tensor->data;
}

static void rename_tensor(oct_tensor_source *tensor, const char *prefix) {
    char *name = malloc(strlen(prefix) + strlen(tensor->name) + 1);
    assert_non_null(name);
    strcpy(name, prefix);
    strcat(name, tensor->name);
    free((void *)(uintptr_t)tensor->name);
    tensor->name = name;
}

static void drop_tensors(tensors *t, const char *ending, size_t *dropped) {
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (oct_ends_with(t->items[i].name, ending)) {
            free((void *)(uintptr_t)t->items[i].name);
            free((void *)(uintptr_t)t->items[i].data);
        } else {
            t->items[kept++] = t->items[i];
        }
    }
    *dropped = t->count - kept;
    t->count = kept;
}

/* ---- running */

/* The first picture of a case through the model at `place`; a failure leaves its text. */
static octet_status run_case(const char *place, const char *picture, octet_result **result, octet_model **model) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session *session = NULL;
    options.threads = 1;
    *result = NULL;
    octet_status status = octet_model_open(place, &options, model);
    if (status != OCTET_OK) {
        assert_null(*model);
        return status;
    }
    session = models_session(*model, 1);
    status = octet_session_run_file(session, picture, result);
    octet_session_free(&session);
    return status;
}

static void expect_answers(const char *what, const char *place, const char *picture, const oct_node *expected) {
    octet_result *result = NULL;
    octet_model *model = NULL;
    if (run_case(place, picture, &result, &model) != OCTET_OK) fail_msg("%s: %s", what, octet_error_text());
    models_check_case(result, expected, what);
    octet_result_free(&result);
    octet_model_close(&model);
}

static void expect_refused(const char *what, const char *place, const char *picture, const char *words) {
    octet_result *result = NULL;
    octet_model *model = NULL;
    octet_status status = run_case(place, picture, &result, &model);
    assert_null(result);
    octet_model_close(&model);
    if (status == OCTET_OK) fail_msg("%s: answered", what);
    if (status == OCTET_INTERNAL || strstr(octet_error_text(), words) == NULL)
        fail_msg("%s: expected \"%s\", found %s: %s", what, words, octet_status_name(status), octet_error_text());
}

static char *copy_path(const char *path) {
    char *copy = path != NULL ? strdup(path) : NULL;
    return copy;
}

typedef struct variants {
    char *source, *picture, *directory, *config;
    oct_document expected;
} variants;

static bool begin(variants *v, const char *name) {
    char path[512];
    *v = (variants){.source = copy_path(support_shared("data/checkpoints/mobilenetv2_100"))};
    (void)snprintf(path, sizeof path, "cases/%s/p.png", name);
    v->picture = copy_path(support_shared(path));
    (void)snprintf(path, sizeof path, "cases/%s/expected.json", name);
    const char *expected = support_shared(path);
    if (v->source == NULL || v->picture == NULL || expected == NULL) return false;
    RUNS_OK(oct_document_read(&v->expected, expected, OCT_DOCUMENT_LIMIT));
    v->config = support_read_text(support_join(v->source, "config.json"), NULL);
    v->directory = support_temporary_directory();
    return true;
}

static void end(variants *v) {
    models_drop(v->directory);
    free(v->source);
    free(v->picture);
    free(v->config);
    oct_document_free(&v->expected);
}

static void write_variant(const variants *v, const tensors *t, const char *config) {
    support_write_text(support_join(v->directory, "config.json"), config);
    ASSERT_OK(oct_safetensors_write(support_join(v->directory, "model.safetensors"), t->items, t->count));
}

/* config.json with the first `from` replaced. */
static char *edit_config(const variants *v, const char *from, const char *to) {
    const char *at = strstr(v->config, from);
    if (at == NULL) fail_msg("config.json has no %s", from);
    char *edited = malloc(strlen(v->config) + strlen(to) + 1);
    assert_non_null(edited);
    memcpy(edited, v->config, (size_t)(at - v->config));
    strcpy(edited + (at - v->config), to);
    strcat(edited, at + strlen(from));
    return edited;
}

/* ---- 16: names that training code writes */

static void test_16_key_prefixes(void **state) {
    (void)state;
    variants v;
    if (!begin(&v, "16-key-prefixes")) SUPPORT_SKIP("shared cases/16 is not here");
    const oct_node *reference = models_get(models_get(v.expected.root, "expect"), "reference_logits");
    static const char *const prefixes[] = {"module.", "model.", "_orig_mod."};
    size_t dropped = 0;
    for (size_t i = 0; i < 3; i++) {
        tensors t = read_tensors(v.source, NULL);
        for (size_t k = 0; k < t.count; k++) rename_tensor(&t.items[k], prefixes[i]);
        write_variant(&v, &t, v.config);
        expect_answers(prefixes[i], v.directory, v.picture, reference);
        free_tensors(&t);
    }
    tensors t = read_tensors(v.source, NULL);
    drop_tensors(&t, ".num_batches_tracked", &dropped);
    assert_int_equal(dropped, 52);
    write_variant(&v, &t, v.config);
    expect_answers("no_counters", v.directory, v.picture, reference);

    float decay = 0.5f;
    t.items[t.count] =
        (oct_tensor_source){.name = "ema_decay", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {1}, .data = &decay};
    tensors more = {t.items, t.count + 1};
    write_variant(&v, &more, v.config);
    expect_refused("extra", v.directory, v.picture, "ema_decay");

    for (size_t k = 1; k < t.count; k += 2) rename_tensor(&t.items[k], "module.");
    write_variant(&v, &t, v.config);
    expect_refused("mixed_prefix", v.directory, v.picture, "tensor");
    free_tensors(&t);

    t = read_tensors(v.source, NULL);
    drop_tensors(&t, "blocks.3.1.bn2.running_var", &dropped);
    assert_int_equal(dropped, 1);
    write_variant(&v, &t, v.config);
    expect_refused("one_missing", v.directory, v.picture, "blocks.3.1.bn2.running_var");
    free_tensors(&t);
    end(&v);
}

/* ---- 21: config and tensors disagree */

static void refuse_config(const variants *v, const tensors *t, const char *what, const char *from, const char *to,
                          const char *words) {
    char *config = edit_config(v, from, to);
    write_variant(v, t, config);
    expect_refused(what, v->directory, v->picture, words);
    free(config);
}

static void test_21_config_against_tensors(void **state) {
    (void)state;
    variants v;
    if (!begin(&v, "21-head-mismatch")) SUPPORT_SKIP("shared cases/21 is not here");
    const oct_node *expect = models_get(v.expected.root, "expect");
    tensors t = read_tensors(v.source, NULL);
    refuse_config(&v, &t, "num_classes_10", "\"num_classes\": 1000", "\"num_classes\": 10",
                  "classifier.weight: expected [10, 1280], found [1000, 1280]");
    refuse_config(&v, &t, "wrong_width", "\"architecture\": \"mobilenetv2_100\"",
                  "\"architecture\": \"mobilenetv2_050\"",
                  "conv_stem.weight: expected [16, 3, 3, 3], found [32, 3, 3, 3]");
    refuse_config(&v, &t, "unknown_architecture", "mobilenetv2_100", "mobilenetv3_large_100", "mobilenetv3_large_100");
    assert_non_null(strstr(octet_error_text(), "mobilenetv2_140"));
    refuse_config(&v, &t, "label_names_short", "{", "{\"label_names\": [\"only\", \"three\", \"names\"],",
                  "3 labels for 1000 classes");

    char *config = edit_config(&v, "\"custom_load\"", "\"num_classes\": 21841, \"custom_load\"");
    char *own = strstr(strstr(config, "21841") + 5, "\"num_classes\": 1000,");
    assert_non_null(own);
    memset(own, ' ', strlen("\"num_classes\": 1000,"));
    write_variant(&v, &t, config);
    expect_answers("pretrained_cfg_num_classes_differs", v.directory, v.picture,
                   models_get(expect, "reference_logits"));
    free(config);

    oct_tensor_source *weight = find_tensor(&t, "classifier.weight"), *bias = find_tensor(&t, "classifier.bias");
    weight->shape[0] = 1280;
    weight->shape[1] = 1000;
    write_variant(&v, &t, v.config);
    expect_refused("transposed", v.directory, v.picture,
                   "classifier.weight: expected [1000, 1280], found [1280, 1000]");
    weight->shape[0] = 1000;
    weight->shape[1] = 1280;
    bias->shape[0] = 1;
    write_variant(&v, &t, v.config);
    expect_refused("scalar_bias", v.directory, v.picture, "classifier.bias: expected [1000], found [1]");
    bias->shape[0] = 1000;

    float *stem = floats_of(&t, "conv_stem.weight"), *variance = floats_of(&t, "bn1.running_var"), kept = stem[5];
    stem[5] = NAN;
    write_variant(&v, &t, v.config);
    expect_refused("nan_weight", v.directory, v.picture, "conv_stem.weight");
    stem[5] = kept;
    for (int i = 0; i < 32; i++) variance[i] = -variance[i];
    write_variant(&v, &t, v.config);
    expect_refused("negative_running_var", v.directory, v.picture, "bn1.running_var");
    for (int i = 0; i < 32; i++) variance[i] = 0.0f;
    write_variant(&v, &t, v.config);
    expect_answers("zero_running_var", v.directory, v.picture, models_get(expect, "zero_running_var_logits"));

    size_t dropped = 0;
    drop_tensors(&t, "classifier.weight", &dropped);
    drop_tensors(&t, "classifier.bias", &dropped);
    refuse_config(&v, &t, "no_head", "\"num_classes\": 1000", "\"num_classes\": 0", "num_classes");
    free_tensors(&t);
    end(&v);
}

/* ---- detectors: 19 and 24 */

static void check_detector(const octet_result *result, const oct_node *expected) {
    const oct_node *tokens = models_get(expected, "logits"), *list = models_get(expected, "detections");
    size_t rows = 0, columns = 0;
    const float *logits = octet_result_logits(result, &rows, &columns);
    octet_detection found[16];
    double largest = 0.0;
    assert_int_equal(rows, tokens->count);
    for (size_t i = 0; i < rows * columns; i++) largest = fmax(largest, fabs((double)logits[i]));
    for (size_t i = 0; i < rows * columns; i++) {
        models_near((double)logits[i], tokens->items[i / columns]->items[i % columns]->real, 1e-4 * largest, "logit",
                    i);
    }
    assert_int_equal(octet_result_detections(result, 0.0f, found, 16), list->count);
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *box = models_get(list->items[i], "box");
        assert_int_equal(found[i].index, models_get(list->items[i], "index")->integer);
        assert_string_equal(found[i].label, models_text(list->items[i], "label"));
        models_near((double)found[i].score, models_get(list->items[i], "score")->real, 1e-5, "score", i);
        for (size_t k = 0; k < 4; k++) models_near((double)found[i].box[k], box->items[k]->real, 0.01, "box", i);
    }
}

static void expect_detections(const char *what, const char *place, const char *picture, const oct_node *expected) {
    octet_result *result = NULL;
    octet_model *model = NULL;
    if (run_case(place, picture, &result, &model) != OCTET_OK) fail_msg("%s: %s", what, octet_error_text());
    check_detector(result, expected);
    octet_result_free(&result);
    octet_model_close(&model);
}

#define SHARD_A "model-00001-of-00002.safetensors"
#define SHARD_B "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

/* A copy of the good directory, its index with `from` (behind the first `after`) replaced. */
static char *copy_good(const char *good, const char *after, const char *from, const char *to) {
    static const char *const files[] = {"config.json", "preprocessor_config.json", SHARD_A, SHARD_B};
    char *directory = support_temporary_directory();
    for (size_t i = 0; i < 4; i++) {
        size_t size = 0;
        char *bytes = support_read_text(support_join(good, files[i]), &size);
        assert_non_null(bytes);
        support_write_file(support_join(directory, files[i]), bytes, size);
        free(bytes);
    }
    char *index = support_read_text(support_join(good, INDEX), NULL);
    assert_non_null(index);
    char *at = strstr(index, after);
    at = at != NULL ? strstr(at, from) : NULL;
    if (at == NULL) fail_msg("the index has no %s", from);
    FILE *file = fopen(support_join(directory, INDEX), "w");
    assert_non_null(file);
    (void)fprintf(file, "%.*s%s%s", (int)(at - index), index, to, at + strlen(from));
    assert_int_equal(fclose(file), 0);
    free(index);
    return directory;
}

#define FIRST_OF_A "bbox_predictor.layers.0.bias"
#define FIRST_OF_B "bbox_predictor.layers.0.weight"

static void keep_line(void *user, const char *line) {
    (void)snprintf(user, 1024, "%s", line);
}

static void test_19_shards(void **state) {
    (void)state;
    char *good = copy_path(support_shared("cases/19-shards/good")), line[1024] = "";
    char *picture = copy_path(support_shared("cases/19-shards/p.png"));
    const char *path = support_shared("cases/19-shards/expected.json");
    if (good == NULL || picture == NULL || path == NULL) SUPPORT_SKIP("shared cases/19 is not here");
    oct_document document;
    RUNS_OK(oct_document_read(&document, path, OCT_DOCUMENT_LIMIT));
    const oct_node *expected = models_get(models_get(document.root, "expect"), "good");
    expect_detections("good", good, picture, expected);

    static const struct {
        const char *what, *after, *from, *to, *words;
    } edits[] = {
        {"wrong_shard", "\"" FIRST_OF_A "\"", SHARD_A, SHARD_B, FIRST_OF_A},
        {"unlisted_tensor", "weight_map", "\"" FIRST_OF_B "\": \"" SHARD_B "\",", "", FIRST_OF_B},
        {"index_escapes", "\"" FIRST_OF_A "\"", SHARD_A, "../other/model.safetensors", "../other/model.safetensors"},
        {"absolute", "\"" FIRST_OF_A "\"", SHARD_A, "/etc/hostname", "/etc/hostname"},
        {"index_only_strings", "\"" FIRST_OF_A "\"", "\"" SHARD_A "\"", "3", INDEX ":"},
        {"shard_of_other_case", "\"" FIRST_OF_A "\"", SHARD_A, "model-00001-of-00002.SAFETENSORS", "SAFETENSORS"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char *directory = copy_good(good, edits[i].after, edits[i].from, edits[i].to);
        expect_refused(edits[i].what, directory, picture, edits[i].words);
        models_drop(directory);
    }
    char *directory = copy_good(good, "", "weight_map", "weight_map");
    assert_int_equal(unlink(support_join(directory, SHARD_B)), 0);
    expect_refused("missing_shard", directory, picture, SHARD_B);
    models_drop(directory);

    directory = copy_good(good, "total_size", ": ", ": 1");
    expect_detections("wrong_total_size", directory, picture, expected);
    models_drop(directory);

    directory = copy_good(good, "", "weight_map", "weight_map");
    tensors second = read_tensors(good, SHARD_B), first = read_tensors(good, SHARD_A);
    second.items[second.count] = *find_tensor(&first, FIRST_OF_A);
    ASSERT_OK(oct_safetensors_write(support_join(directory, SHARD_B), second.items, second.count + 1));
    expect_refused("same_tensor_twice", directory, picture, FIRST_OF_A);
    assert_non_null(strstr(octet_error_text(), SHARD_A));
    assert_non_null(strstr(octet_error_text(), SHARD_B));
    free_tensors(&second);
    free_tensors(&first);
    models_drop(directory);

    /* One file wins, as in transformers, and it is said which. */
    directory = copy_good(good, "", "weight_map", "weight_map");
    tensors all = read_tensors(good, NULL);
    ASSERT_OK(oct_safetensors_write(support_join(directory, "model.safetensors"), all.items, all.count));
    octet_set_log(keep_line, line);
    expect_detections("stray_single_file", directory, picture, expected);
    octet_set_log(NULL, NULL);
    assert_non_null(strstr(line, "model.safetensors"));
    octet_model *sharded = models_open(good, 1), *single = models_open(directory, 1);
    assert_string_equal(octet_model_fingerprint(sharded), octet_model_fingerprint(single));
    octet_model_close(&sharded);
    octet_model_close(&single);
    free_tensors(&all);
    models_drop(directory);
    oct_document_free(&document);
    free(good);
    free(picture);
}

static void test_24_label_holes(void **state) {
    (void)state;
    char *place = copy_path(support_shared("cases/24-label-holes/model"));
    char *picture = copy_path(support_shared("cases/24-label-holes/p.png"));
    const char *path = support_shared("cases/24-label-holes/expected.json");
    if (place == NULL || picture == NULL || path == NULL) SUPPORT_SKIP("shared cases/24 is not here");
    oct_document document;
    RUNS_OK(oct_document_read(&document, path, OCT_DOCUMENT_LIMIT));
    expect_detections("24", place, picture, models_get(models_get(document.root, "expect"), "run"));
    octet_model *model = models_open(place, 1);
    assert_int_equal(octet_model_class_count(model), 14);
    assert_string_equal(octet_model_label(model, 0), "N/A");
    assert_string_equal(octet_model_label(model, 10), "traffic light");
    assert_string_equal(octet_model_label(model, 13), "stop sign");
    assert_null(octet_model_label(model, 14));
    octet_model_close(&model);
    oct_document_free(&document);
    free(place);
    free(picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_16_key_prefixes),
        cmocka_unit_test(test_21_config_against_tensors),
        cmocka_unit_test(test_19_shards),
        cmocka_unit_test(test_24_label_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
