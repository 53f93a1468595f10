/* SPDX-License-Identifier: Apache-2.0 */
/* The detector end to end against transformers (tests/golden/README.md), resized to one size and by its edges: resized
 * pixels by hash, every token's logits within 1e-4 of the largest, boxes within 0.01 pixel, the same detections.
 * Without OCTET_LONG a part of the pictures. */
#include "models.h"

#define TOKENS 100
#define COLUMNS 4
#define TOLERANCE 1e-4
#define PIXELS 0.01
#define THRESHOLD 0.5

typedef struct golden {
    models_lines pictures, detections;
    support_array logits, boxes, pixels;
} golden;

static const char *golden_path(const char *rule, const char *suffix) {
    static char path[512];
    (void)snprintf(path, sizeof path, GOLDEN "yolos_tiny_bccd.%s.%s", rule, suffix);
    return path;
}

static golden read_golden(const char *rule) {
    golden g = {.pictures = models_read_lines(golden_path(rule, "pictures.jsonl"))};
    assert_true(support_npy_read(golden_path(rule, "logits.npy"), &g.logits));
    assert_true(support_npy_read(golden_path(rule, "boxes.npy"), &g.boxes));
    assert_true(support_npy_read(golden_path(rule, "pixels.npy"), &g.pixels));
    assert_int_equal(g.logits.count, g.pictures.count * TOKENS * COLUMNS);
    assert_int_equal(g.boxes.count, g.pictures.count * TOKENS * 4);
    if (strcmp(rule, "fixed") == 0) g.detections = models_read_lines(golden_path(rule, "detections.jsonl"));
    return g;
}

static void free_golden(golden *g) {
    models_free_lines(&g->pictures);
    models_free_lines(&g->detections);
    support_array_free(&g->logits);
    support_array_free(&g->boxes);
    support_array_free(&g->pixels);
}

/* The checkpoint's directory under another resizing rule; the weights are linked. */
static char *checkpoint_by_edges(const char *checkpoint) {
    char *directory = support_temporary_directory();
    static const char *const linked[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        char *target = realpath(support_join(checkpoint, linked[i]), NULL);
        assert_non_null(target);
        assert_int_equal(symlink(target, support_join(directory, linked[i])), 0);
        free(target);
    }
    models_write_preprocessor(directory, "{\"shortest_edge\": 512, \"longest_edge\": 864}");
    return directory;
}

typedef struct worst_seen {
    double logit, pixel;
    size_t detections;
} worst_seen;

static void check_logits(const octet_result *result, const golden *g, size_t row, double scale, worst_seen *worst) {
    size_t rows = 0, columns = 0;
    const float *logits = octet_result_logits(result, &rows, &columns);
    const float *expected = support_floats(&g->logits) + row * TOKENS * COLUMNS;
    assert_int_equal(rows, TOKENS);
    assert_int_equal(columns, COLUMNS);
    for (size_t i = 0; i < TOKENS * COLUMNS; i++) {
        double off = fabs((double)logits[i] - (double)expected[i]) / scale;
        if (!(off <= TOLERANCE)) fail_msg("row %zu, logit %zu: off by %g of the largest", row, i, off);
        worst->logit = fmax(worst->logit, off);
    }
}

/* Every token, as a detection above a threshold that all reach. */
static void check_boxes(const octet_result *result, const golden *g, size_t row, worst_seen *worst) {
    octet_detection found[TOKENS];
    assert_int_equal(octet_result_detections(result, -1.0f, found, TOKENS), TOKENS);
    for (size_t token = 0; token < TOKENS; token++) {
        assert_int_equal(found[token].token, token);
        for (size_t i = 0; i < 4; i++) {
            double off =
                fabs((double)found[token].box[i] - (double)support_floats(&g->pixels)[(row * TOKENS + token) * 4 + i]);
            if (!(off <= PIXELS)) fail_msg("row %zu, token %zu: box off by %g pixels", row, token, off);
            worst->pixel = fmax(worst->pixel, off);
        }
    }
}

/* Detections in order of tokens; one whose score is a hair from the threshold may be on the other side. */
static void check_detections(const octet_result *result, const golden *g, size_t row, worst_seen *worst) {
    const oct_node *list = models_get(g->detections.items[row].root, "detections");
    octet_detection found[TOKENS];
    size_t count = octet_result_detections(result, (float)THRESHOLD, found, TOKENS), i = 0, j = 0;
    while (i < count || j < list->count) {
        int64_t token = j < list->count ? models_get(list->items[j], "token")->integer : TOKENS;
        if (i < count && found[i].token < token && (double)found[i].score - THRESHOLD < TOLERANCE) {
            i++;
            continue;
        }
        double score = j < list->count ? models_get(list->items[j], "score")->real : 0.0;
        if (i == count || found[i].token > token) {
            if (score - THRESHOLD >= TOLERANCE) fail_msg("row %zu: token %d is not detected", row, (int)token);
            j++;
            continue;
        }
        assert_int_equal(found[i].token, token);
        assert_int_equal(found[i].index, models_get(list->items[j], "index")->integer);
        assert_string_equal(found[i].label, models_text(list->items[j], "label"));
        models_near((double)found[i].score, score, TOLERANCE, "score of token", (size_t)token);
        const oct_node *box = models_get(list->items[j], "box");
        for (size_t k = 0; k < 4; k++)
            models_near((double)found[i].box[k], box->items[k]->real, PIXELS, "box of token", (size_t)token);
        worst->detections++;
        i++;
        j++;
    }
}

static void check_row(octet_session *session, const golden *g, size_t row, worst_seen *worst) {
    const oct_node *line = g->pictures.items[row].root;
    char path[512];
    (void)snprintf(path, sizeof path, "data/%s/%s", models_text(line, "set"), models_text(line, "name"));
    const char *file = support_shared(path);
    if (file == NULL) fail_msg("%s is not there", path);
    models_watch seen = {0};
    octet_result *result = NULL;
    octet_lab_set_watch(models_watch_event, &seen, 0);
    octet_status status = octet_session_run_file(session, file, &result);
    octet_lab_set_watch(NULL, NULL, 0);
    RUNS_OK(status);
    int32_t width = 0, height = 0;
    octet_result_picture_size(result, &width, &height);
    assert_int_equal(width, models_get(line, "width")->integer);
    assert_int_equal(height, models_get(line, "height")->integer);
    assert_int_equal(seen.input_height, models_get(line, "input")->items[0]->integer);
    assert_int_equal(seen.input_width, models_get(line, "input")->items[1]->integer);
    assert_string_equal(seen.resized, models_text(line, "sha256"));
    check_logits(result, g, row, models_get(line, "max_abs_logit")->real, worst);
    check_boxes(result, g, row, worst);
    if (row < g->detections.count) check_detections(result, g, row, worst);
    octet_result_free(&result);
}

/* Every `step`-th of the first `first` pictures, and of the rest. */
static void check_rule(const char *rule, size_t first, size_t step, size_t rest_step) {
    const char *checkpoint = support_shared("data/checkpoints/yolos_tiny_bccd");
    if (checkpoint == NULL) SUPPORT_SKIP("shared data/checkpoints/yolos_tiny_bccd is not here");
    char *edges = strcmp(rule, "edges") == 0 ? checkpoint_by_edges(checkpoint) : NULL;
    golden g = read_golden(rule);
    octet_model *model = models_open(edges != NULL ? edges : checkpoint, 1);
    octet_session *session = models_session(model, 1);
    worst_seen worst = {0};
    size_t count = 0;
    for (size_t row = 0; row < g.pictures.count; row++) {
        size_t place = row < first ? row : row - first;
        if (!models_long() && place % (row < first ? step : rest_step) != 0) continue;
        check_row(session, &g, row, &worst);
        count++;
    }
    print_message("%s: %zu pictures, logits off by at most %.2g of the largest, boxes by %.2g pixels, %zu detections\n",
                  rule, count, worst.logit, worst.pixel, worst.detections);
    octet_session_free(&session);
    octet_model_close(&model);
    free_golden(&g);
    if (edges != NULL) models_drop(edges);
}

static void test_fixed(void **state) {
    (void)state;
    check_rule("fixed", 72, 5, 7);
}

static void test_edges(void **state) {
    (void)state;
    check_rule("edges", 16, 8, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixed), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
