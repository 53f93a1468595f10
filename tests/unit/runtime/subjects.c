/* SPDX-License-Identifier: Apache-2.0 */
/* Our own two subjects, weights and pictures in the project, against timm and transformers (tests/golden/README.md). */
#include "models.h"

#define PICTURES 16
#define TOLERANCE 1e-4
#define PIXELS 0.01
#define THRESHOLD 0.5

static const char *golden(const char *name) {
    static char paths[2][512];
    static int next;
    next = !next;
    (void)snprintf(paths[next], sizeof paths[next], GOLDEN "%s", name);
    return paths[next];
}

/* The weights are the ones that the goldens are of. */
static void check_weights(const char *subject) {
    oct_document document;
    RUNS_OK(oct_document_read(&document, golden("subjects.json"), OCT_DOCUMENT_LIMIT));
    char path[512], hex[OCT_SHA256_HEX];
    uint8_t digest[OCT_SHA256_SIZE];
    size_t size = 0;
    (void)snprintf(path, sizeof path, OCTET_SOURCE_DIR "/subjects/%s/model.safetensors", subject);
    char *bytes = support_read_text(path, &size);
    assert_non_null(bytes);
    RUNS_OK(oct_sha256_of(bytes, size, digest));
    oct_sha256_hex(digest, hex);
    oct_text text = {0};
    drawn_print(document.root, &text);
    if (strstr(text.data, hex) == NULL) fail_msg("%s: tests/golden/subjects.json has another hash", path);
    oct_text_free(&text);
    free(bytes);
    oct_document_free(&document);
}

static octet_result *run_picture(octet_session *session, const char *kind, const oct_node *line) {
    char path[512];
    (void)snprintf(path, sizeof path, OCTET_SOURCE_DIR "/subjects/pictures/%s/%s", kind, models_text(line, "name"));
    models_watch seen = {0};
    octet_result *result = NULL;
    octet_lab_set_watch(models_watch_event, &seen, 0);
    octet_status status = octet_session_run_file(session, path, &result);
    octet_lab_set_watch(NULL, NULL, 0);
    RUNS_OK(status);
    assert_int_equal(seen.width, models_get(line, "width")->integer);
    assert_int_equal(seen.height, models_get(line, "height")->integer);
    assert_int_equal(seen.input_height, models_get(line, "input")->items[0]->integer);
    assert_int_equal(seen.input_width, models_get(line, "input")->items[1]->integer);
    assert_string_equal(seen.resized, models_text(line, "sha256"));
    return result;
}

/* Logits of a picture within the tolerance; returns how far they are off, as a part of the largest. */
static double check_logits(const octet_result *result, const support_array *expected, size_t picture) {
    size_t rows = 0, columns = 0;
    const float *logits = octet_result_logits(result, &rows, &columns);
    size_t count = rows * columns;
    assert_int_equal(expected->count, PICTURES * count);
    const float *values = support_floats(expected) + picture * count;
    double largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)values[i]));
    for (size_t i = 0; i < count; i++) {
        double off = fabs((double)logits[i] - (double)values[i]) / largest;
        if (!(off <= TOLERANCE)) fail_msg("picture %zu, logit %zu: off by %g of the largest", picture, i, off);
        worst = fmax(worst, off);
    }
    return worst;
}

static void test_classifier(void **state) {
    (void)state;
    support_array logits;
    check_weights("mobilenetv2_035");
    models_lines lines = models_read_lines(golden("subject_mobilenetv2_035.pictures.jsonl"));
    assert_int_equal(lines.count, PICTURES);
    assert_true(support_npy_read(golden("subject_mobilenetv2_035.logits.npy"), &logits));
    octet_model *model = models_open(OCTET_SOURCE_DIR "/subjects/mobilenetv2_035", 1);
    octet_session *session = models_session(model, 1);
    double worst = 0.0;
    int right = 0;
    for (size_t i = 0; i < PICTURES; i++) {
        octet_result *result = run_picture(session, "classify", lines.items[i].root);
        worst = fmax(worst, check_logits(result, &logits, i));
        octet_class best;
        assert_int_equal(octet_result_top(result, &best, 1), 1);
        const float *row = support_floats(&logits) + i * octet_model_class_count(model);
        for (size_t c = 0; c < octet_model_class_count(model); c++) assert_true(row[c] <= row[best.index]);
        right += best.index == models_get(lines.items[i].root, "label")->integer;
        octet_result_free(&result);
    }
    print_message("classifier: off by at most %.2g of the largest logit, %d of %d right\n", worst, right, PICTURES);
    octet_session_free(&session);
    octet_model_close(&model);
    support_array_free(&logits);
    models_free_lines(&lines);
}

static void check_detections(const octet_result *result, const oct_node *list, const float *pixels) {
    octet_detection found[64];
    size_t all = octet_result_detections(result, -1.0f, found, 64);
    assert_in_range(all, 1, 64);
    for (size_t t = 0; t < all; t++) {
        for (size_t k = 0; k < 4; k++)
            models_near((double)found[t].box[k], (double)pixels[4 * t + k], PIXELS, "box of token", t);
    }
    size_t count = octet_result_detections(result, (float)THRESHOLD, found, 64);
    assert_int_equal(count, list->count);
    for (size_t i = 0; i < count; i++) {
        const oct_node *entry = list->items[i], *box = models_get(entry, "box");
        assert_int_equal(found[i].token, models_get(entry, "token")->integer);
        assert_int_equal(found[i].index, models_get(entry, "index")->integer);
        assert_string_equal(found[i].label, models_text(entry, "label"));
        models_near((double)found[i].score, models_get(entry, "score")->real, TOLERANCE, "score", i);
        for (size_t k = 0; k < 4; k++)
            models_near((double)found[i].box[k], box->items[k]->real, PIXELS, "box of detection", i);
    }
}

static void test_detector(void **state) {
    (void)state;
    support_array logits, pixels;
    check_weights("yolos");
    models_lines lines = models_read_lines(golden("subject_yolos.pictures.jsonl"));
    models_lines detections = models_read_lines(golden("subject_yolos.detections.jsonl"));
    assert_int_equal(lines.count, PICTURES);
    assert_int_equal(detections.count, PICTURES);
    assert_true(support_npy_read(golden("subject_yolos.logits.npy"), &logits));
    assert_true(support_npy_read(golden("subject_yolos.pixels.npy"), &pixels));
    octet_model *model = models_open(OCTET_SOURCE_DIR "/subjects/yolos", 1);
    octet_session *session = models_session(model, 1);
    double worst = 0.0;
    size_t found = 0;
    for (size_t i = 0; i < PICTURES; i++) {
        octet_result *result = run_picture(session, "detect", lines.items[i].root);
        const oct_node *list = models_get(detections.items[i].root, "detections");
        worst = fmax(worst, check_logits(result, &logits, i));
        check_detections(result, list, support_floats(&pixels) + i * (pixels.count / PICTURES));
        found += list->count;
        octet_result_free(&result);
    }
    print_message("detector: off by at most %.2g of the largest logit, %zu detections\n", worst, found);
    octet_session_free(&session);
    octet_model_close(&model);
    support_array_free(&logits);
    support_array_free(&pixels);
    models_free_lines(&lines);
    models_free_lines(&detections);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classifier), cmocka_unit_test(test_detector)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
