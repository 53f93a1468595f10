/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime's tests share: models small enough to open thousands of times, drawn into temporary directories;
 * pictures by formula; JSON of goldens and cases; comparing a result with what a reference says. */
#ifndef OCT_TESTS_RUNTIME_MODELS_H
#define OCT_TESTS_RUNTIME_MODELS_H

#include "unit/families/drawn.h"

#include "base/document.h"
#include "octet/lab.h"
#include "octet/octet.h"

#define RUNS_OK(expression)                                                                                            \
    do {                                                                                                               \
        if ((expression) != OCTET_OK) fail_msg("%s", octet_error_text());                                              \
    } while (0)

/* Fails with this status, and the text has these words. */
#define FAILS(expression, status, words)                                                                               \
    do {                                                                                                               \
        octet_status fails_got = (expression);                                                                         \
        if (fails_got != (status) || strstr(octet_error_text(), (words)) == NULL)                                      \
            fail_msg("expected %s with \"%s\", found %s: %s", octet_status_name(status), (words),                      \
                     octet_status_name(fails_got), octet_error_text());                                                \
    } while (0)

static inline bool models_long(void) {
    const char *set = getenv("OCTET_LONG");
    return set != NULL && set[0] != '\0' && strcmp(set, "0") != 0;
}

/* ---- drawn models */

static inline void models_add(drawn_model *drawn, const char *name, int rank, const int64_t *shape) {
    drawn_tensor *tensor = &drawn->tensors[drawn->count++];
    *tensor = (drawn_tensor){.dtype = OCT_DTYPE_F32, .rank = rank};
    assert_true(strlen(name) < sizeof tensor->name);
    strcpy(tensor->name, name);
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    tensor->data = oct_alloc((size_t)drawn_elements(tensor) * sizeof(float));
    assert_non_null(tensor->data);
    draw_tensor(name, rank, shape, tensor->data);
}

static inline void models_add_linear(drawn_model *drawn, const char *name, int64_t outputs, int64_t inputs) {
    char full[160];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    models_add(drawn, full, inputs > 0 ? 2 : 1, (int64_t[]){outputs, inputs});
    (void)snprintf(full, sizeof full, "%s.bias", name);
    models_add(drawn, full, 1, (int64_t[]){outputs});
}

#define TINY_HIDDEN 16
#define TINY_TOKENS 3
#define TINY_CLASSES 3
#define TINY_HEIGHT 32
#define TINY_WIDTH 48

/* A YOLOS of one layer. */
static inline void models_tiny_yolos(drawn_model *drawn) {
    static const char *const layer[] = {"attention.attention.query", "attention.attention.key",
                                        "attention.attention.value", "attention.output.dense"};
    const int64_t h = TINY_HIDDEN, places = 1 + (TINY_HEIGHT / 16) * (TINY_WIDTH / 16) + TINY_TOKENS;
    char name[128];
    *drawn = (drawn_model){.tensors = oct_calloc(64, sizeof *drawn->tensors)};
    assert_non_null(drawn->tensors);
    oct_text_puts(&drawn->config,
                  "{\"architectures\": [\"YolosForObjectDetection\"], \"model_type\": \"yolos\", \"hidden_size\": 16,\n"
                  "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"intermediate_size\": 32,\n"
                  "\"hidden_act\": \"gelu\", \"layer_norm_eps\": 1e-12, \"image_size\": [32, 48], \"patch_size\": 16,\n"
                  "\"num_channels\": 3, \"qkv_bias\": true, \"num_detection_tokens\": 3,\n"
                  "\"use_mid_position_embeddings\": false,\n"
                  "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}\n");
    models_add(drawn, "vit.embeddings.cls_token", 3, (int64_t[]){1, 1, h});
    models_add(drawn, "vit.embeddings.detection_tokens", 3, (int64_t[]){1, TINY_TOKENS, h});
    models_add(drawn, "vit.embeddings.position_embeddings", 3, (int64_t[]){1, places, h});
    models_add(drawn, "vit.embeddings.patch_embeddings.projection.weight", 4, (int64_t[]){h, 3, 16, 16});
    models_add(drawn, "vit.embeddings.patch_embeddings.projection.bias", 1, (int64_t[]){h});
    for (size_t i = 0; i < sizeof layer / sizeof layer[0]; i++) {
        (void)snprintf(name, sizeof name, "vit.encoder.layer.0.%s", layer[i]);
        models_add_linear(drawn, name, h, h);
    }
    models_add_linear(drawn, "vit.encoder.layer.0.intermediate.dense", 2 * h, h);
    models_add_linear(drawn, "vit.encoder.layer.0.output.dense", h, 2 * h);
    models_add_linear(drawn, "vit.encoder.layer.0.layernorm_before", h, 0);
    models_add_linear(drawn, "vit.encoder.layer.0.layernorm_after", h, 0);
    models_add_linear(drawn, "vit.layernorm", h, 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "class_labels_classifier.layers.%d", i);
        models_add_linear(drawn, name, i < 2 ? h : TINY_CLASSES + 1, h);
        (void)snprintf(name, sizeof name, "bbox_predictor.layers.%d", i);
        models_add_linear(drawn, name, i < 2 ? h : 4, h);
    }
}

#define TINY_FIXED "{\"height\": 32, \"width\": 48}"
#define TINY_EDGES "{\"shortest_edge\": 32, \"longest_edge\": 96}"

static inline void models_write_preprocessor(const char *directory, const char *size) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"image_processor_type\": \"YolosImageProcessor\", \"do_resize\": true, \"size\": %s,\n"
                   "\"resample\": 2, \"do_rescale\": true, \"rescale_factor\": 0.00392156862745098,\n"
                   "\"do_normalize\": true, \"image_mean\": [0.485, 0.456, 0.406],\n"
                   "\"image_std\": [0.229, 0.224, 0.225], \"do_pad\": false}\n",
                   size);
    support_write_text(support_join(directory, "preprocessor_config.json"), text);
}

/* The tiny YOLOS in a new directory; models_drop frees it. */
static inline char *models_write_yolos(const char *size) {
    drawn_model drawn;
    char *directory = support_temporary_directory();
    models_tiny_yolos(&drawn);
    drawn_write(&drawn, directory);
    models_write_preprocessor(directory, size);
    drawn_free(&drawn);
    return directory;
}

#define SMALL_CLASSES 5

/* MobileNetV2 0.35 with five classes, 64 x 64. `labels`: more of config.json, or "". */
static inline char *models_write_mobilenet(const char *labels) {
    drawn_model drawn;
    drawn_load(&drawn, "mobilenetv2_035", false);
    for (size_t i = 0; i < drawn.count; i++) {
        drawn_tensor *tensor = &drawn.tensors[i];
        if (oct_starts_with(tensor->name, "classifier.")) tensor->shape[0] = SMALL_CLASSES;
        if (tensor->dtype != OCT_DTYPE_F32) continue;
        tensor->data = oct_alloc((size_t)drawn_elements(tensor) * sizeof(float));
        assert_non_null(tensor->data);
        draw_tensor(tensor->name, tensor->rank, tensor->shape, tensor->data);
    }
    char *directory = support_temporary_directory(), *config = NULL;
    drawn_config(&drawn, "{", labels[0] != '\0' ? labels : "{");
    while ((config = strstr(drawn.config.data, "1000")) != NULL) memcpy(config, "   5", 4);
    for (char *at = drawn.config.data; (at = strstr(at, "224")) != NULL; at += 3) {
        if (at[-1] != '.') memcpy(at, " 64", 3); /* the input's sides, not a channel's deviation */
    }
    drawn_write(&drawn, directory);
    drawn_free(&drawn);
    return directory;
}

static inline void models_drop(char *directory) {
    support_remove_tree(directory);
    free(directory);
}

static inline octet_model *models_open(const char *place, int64_t batch) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    options.batch = batch;
    options.threads = 1;
    RUNS_OK(octet_model_open(place, &options, &model));
    return model;
}

static inline octet_session *models_session(octet_model *model, uint32_t threads) {
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_session *session = NULL;
    options.threads = threads;
    RUNS_OK(octet_session_new(model, &options, &session));
    return session;
}

/* ---- pictures */

static inline uint8_t models_level(int x, int y, int c, int number) {
    return (uint8_t)(7 * x + 13 * y + 101 * c + 29 * number + 3 * ((x * y + 17 * number) % 251));
}

static inline uint8_t *models_rgb(int width, int height, int number) {
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3), *to = rgb;
    assert_non_null(rgb);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < 3; c++) *to++ = models_level(x, y, c, number);
        }
    }
    return rgb;
}

/* The same as an encoded file (PPM); the caller frees. */
static inline uint8_t *models_ppm(int width, int height, int number, size_t *size) {
    char header[64];
    int length = snprintf(header, sizeof header, "P6\n%d %d\n255\n", width, height);
    uint8_t *rgb = models_rgb(width, height, number);
    size_t bytes = (size_t)width * (size_t)height * 3;
    uint8_t *file = malloc((size_t)length + bytes);
    assert_non_null(file);
    memcpy(file, header, (size_t)length);
    memcpy(file + length, rgb, bytes);
    free(rgb);
    *size = (size_t)length + bytes;
    return file;
}

static inline octet_picture models_picture(octet_picture_kind kind) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    picture.kind = kind;
    return picture;
}

/* Two results say the same, to the bit. */
static inline void models_same(const octet_result *a, const octet_result *b) {
    size_t rows = 0, columns = 0, other_rows = 0, other_columns = 0;
    int32_t width = 0, height = 0, other_width = 0, other_height = 0;
    const float *x = octet_result_logits(a, &rows, &columns), *y = octet_result_logits(b, &other_rows, &other_columns);
    assert_int_equal(rows, other_rows);
    assert_int_equal(columns, other_columns);
    assert_memory_equal(x, y, rows * columns * sizeof *x);
    x = octet_result_boxes(a, &rows);
    y = octet_result_boxes(b, &other_rows);
    assert_int_equal(rows, other_rows);
    if (rows > 0) assert_memory_equal(x, y, rows * 4 * sizeof *x);
    octet_result_picture_size(a, &width, &height);
    octet_result_picture_size(b, &other_width, &other_height);
    assert_int_equal(width, other_width);
    assert_int_equal(height, other_height);
}

/* ---- what passes: SHA-256 of the bytes of events */

typedef struct models_watch {
    char decoded[OCT_SHA256_HEX], resized[OCT_SHA256_HEX];
    int64_t height, width; /* of the decoded picture */
    int64_t input_height, input_width;
} models_watch;

static inline void models_watch_event(void *user, const octet_lab_event *event) {
    models_watch *seen = user;
    uint8_t digest[OCT_SHA256_SIZE];
    bool decoded = strcmp(event->what, "decoded pixels") == 0, resized = strcmp(event->what, "resized pixels") == 0;
    if (strcmp(event->what, "input") == 0) {
        seen->input_height = event->shape[0];
        seen->input_width = event->shape[1];
    }
    if (!decoded && !resized) return;
    assert_int_equal(event->rank, 3);
    assert_int_equal(event->shape[2], 3);
    assert_int_equal(oct_sha256_of(event->data, (size_t)(event->shape[0] * event->shape[1] * 3), digest), OCTET_OK);
    oct_sha256_hex(digest, decoded ? seen->decoded : seen->resized);
    if (!decoded) return;
    seen->height = event->shape[0];
    seen->width = event->shape[1];
}

/* ---- JSON of goldens and cases */

static inline const oct_node *models_get(const oct_node *map, const char *key) {
    const oct_node *node = oct_node_get(map, key);
    if (node == NULL) fail_msg("no %s", key);
    return node;
}

static inline const char *models_text(const oct_node *map, const char *key) {
    const oct_node *node = models_get(map, key);
    assert_int_equal(node->kind, OCT_NODE_STRING);
    return node->string;
}

/* Lines of a .jsonl file, each a document. */
typedef struct models_lines {
    oct_document *items;
    size_t count;
} models_lines;

static inline models_lines models_read_lines(const char *path) {
    models_lines lines = {0};
    char *text = support_read_text(path, NULL);
    if (text == NULL) fail_msg("%s cannot be read", path);
    for (const char *at = text; *at != '\0'; at++) lines.count += *at == '\n';
    lines.items = calloc(lines.count, sizeof *lines.items);
    assert_non_null(lines.items);
    const char *at = text;
    for (size_t i = 0; i < lines.count; i++) {
        const char *end = strchr(at, '\n');
        RUNS_OK(oct_document_parse_json(&lines.items[i], path, at, (size_t)(end - at)));
        at = end + 1;
    }
    free(text);
    return lines;
}

static inline void models_free_lines(models_lines *lines) {
    for (size_t i = 0; i < lines->count; i++) oct_document_free(&lines->items[i]);
    free(lines->items);
}

/* A number within `bound`; NaN never is. */
static inline void models_near(double found, double expected, double bound, const char *what, size_t index) {
    if (!(fabs(found - expected) <= bound))
        fail_msg("%s %zu: expected %.9g within %.3g, found %.9g", what, index, expected, bound, found);
}

/* The classes of a case: "top", "every_40th_logit", "max_abs_logit", five decimals each. */
static inline void models_check_case(const octet_result *result, const oct_node *expected, const char *what) {
    size_t rows = 0, columns = 0;
    const float *logits = octet_result_logits(result, &rows, &columns);
    double bound = 1e-4 * models_get(expected, "max_abs_logit")->real + 1e-5;
    const oct_node *top = models_get(expected, "top"), *some = models_get(expected, "every_40th_logit");
    octet_class found[10];
    size_t count = octet_result_top(result, found, top->count);
    assert_int_equal(count, top->count);
    for (size_t i = 0; i < some->count; i++)
        models_near((double)logits[40 * i], some->items[i]->real, bound, what, 40 * i);
    for (size_t i = 0; i < top->count; i++) {
        int64_t index = models_get(top->items[i], "index")->integer;
        models_near((double)logits[index], models_get(top->items[i], "logit")->real, bound, what, (size_t)index);
        models_near((double)found[i].logit, models_get(top->items[i], "logit")->real, bound, what, i);
        models_near((double)found[i].probability, models_get(top->items[i], "probability")->real, 3 * bound, what, i);
    }
    if (models_get(expected, "gap_1_2")->real > 2 * bound)
        assert_int_equal(found[0].index, models_get(top->items[0], "index")->integer);
}

#endif
