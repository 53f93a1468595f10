/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of public bug reports, from file to classes or boxes: the decoded pixels by hash and the answers that Pillow
 * with timm or transformers gives (../shared/cases: 01, 05, 07, 08, 10). */
#include "models.h"

typedef struct case_files {
    const char *name; /* "01-grey16-png" */
    oct_document expected;
    octet_model *model;
    octet_session *sessions[2]; /* by octet_orientation */
} case_files;

static bool begin(case_files *c, const char *name, const char *checkpoint) {
    char path[512];
    *c = (case_files){.name = name};
    (void)snprintf(path, sizeof path, "cases/%s/expected.json", name);
    const char *expected = support_shared(path);
    (void)snprintf(path, sizeof path, "data/checkpoints/%s", checkpoint);
    const char *place = support_shared(path);
    if (expected == NULL || place == NULL) return false;
    RUNS_OK(oct_document_read(&c->expected, expected, OCT_DOCUMENT_LIMIT));
    c->model = models_open(place, 1);
    for (int i = 0; i < 2; i++) {
        octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
        options.threads = 1;
        options.orientation = (octet_orientation)i;
        RUNS_OK(octet_session_new(c->model, &options, &c->sessions[i]));
    }
    return true;
}

static void end(case_files *c) {
    for (int i = 0; i < 2; i++) octet_session_free(&c->sessions[i]);
    octet_model_close(&c->model);
    oct_document_free(&c->expected);
}

/* Runs one picture; its decoded pixels are as `facts` says. */
static octet_result *run_picture(case_files *c, const char *file, octet_orientation orientation,
                                 const oct_node *facts) {
    char path[512];
    (void)snprintf(path, sizeof path, "cases/%s/%s", c->name, file);
    const char *place = support_shared(path);
    if (place == NULL) fail_msg("%s is not there", path);
    models_watch seen = {0};
    octet_result *result = NULL;
    octet_lab_set_watch(models_watch_event, &seen, 0);
    octet_status status = octet_session_run_file(c->sessions[orientation], place, &result);
    octet_lab_set_watch(NULL, NULL, 0);
    RUNS_OK(status);
    if (facts == NULL) return result;
    if (strcmp(seen.decoded, models_text(facts, "rgb_sha256")) != 0) fail_msg("%s: other pixels than Pillow's", path);
    int32_t width = 0, height = 0;
    octet_result_picture_size(result, &width, &height);
    assert_int_equal(width, models_get(facts, "width")->integer);
    assert_int_equal(height, models_get(facts, "height")->integer);
    return result;
}

/* Cases whose entries are a file each, with pixels and, for most, classes. */
static void check_files(const char *name, size_t least) {
    case_files c;
    if (!begin(&c, name, "mobilenetv2_100")) SUPPORT_SKIP("shared cases/%s is not here", name);
    const oct_node *files = models_get(c.expected.root, "expect");
    size_t pixels = 0, classes = 0;
    for (size_t i = 0; i < files->count; i++) {
        const oct_node *entry = files->items[i];
        if (oct_node_get(entry, "rgb_sha256") == NULL) continue;
        octet_result *result = run_picture(&c, files->keys[i], OCTET_STORED, entry);
        const oct_node *answers = oct_node_get(entry, "mobilenetv2_100");
        if (answers != NULL) models_check_case(result, answers, files->keys[i]);
        pixels++;
        classes += answers != NULL;
        octet_result_free(&result);
    }
    print_message("%s: %zu pictures, classes of %zu\n", name, pixels, classes);
    assert_true(pixels >= least);
    end(&c);
}

static void test_01_grey16(void **state) {
    (void)state;
    check_files("01-grey16-png", 2);
}

static void test_05_jpeg_sampling(void **state) {
    (void)state;
    check_files("05-jpeg-sampling", 14);
}

static void test_07_wrong_extension(void **state) {
    (void)state;
    check_files("07-wrong-extension", 11);
}

static void test_08_orientation(void **state) {
    (void)state;
    case_files c;
    size_t classes = 0;
    if (!begin(&c, "08-exif-orientation", "mobilenetv2_100")) SUPPORT_SKIP("shared cases/08 is not here");
    const oct_node *files = models_get(c.expected.root, "expect");
    for (size_t i = 0; i < files->count; i++) {
        static const struct {
            octet_orientation orientation;
            const char *pixels, *classes;
        } readings[] = {{OCTET_STORED, "as_stored", "mobilenetv2_100_as_timm_validate_does"},
                        {OCTET_UPRIGHT, "upright", "mobilenetv2_100_upright"}};
        for (int k = 0; k < 2; k++) {
            const oct_node *facts = oct_node_get(files->items[i], readings[k].pixels);
            const oct_node *answers = oct_node_get(files->items[i], readings[k].classes);
            if (facts == NULL) continue;
            octet_result *result = run_picture(&c, files->keys[i], readings[k].orientation, facts);
            if (answers != NULL) models_check_case(result, answers, files->keys[i]);
            classes += answers != NULL;
            octet_result_free(&result);
        }
    }
    print_message("08: %zu pictures, %zu readings with classes\n", files->count, classes);
    assert_true(files->count >= 15 && classes >= 4);
    end(&c);
}

/* Numbers are rounded to four or five decimals; boxes hold to 0.01 pixel of the Pillow backend, which the other backend
 * would miss by a tenth. */
static void test_10_pillow_backend(void **state) {
    (void)state;
    case_files c;
    if (!begin(&c, "10-yolos-backend", "yolos_tiny_bccd")) SUPPORT_SKIP("shared cases/10 is not here");
    static const char *const files[] = {"odd.jpg", "cells.jpg"};
    for (size_t f = 0; f < 2; f++) {
        const oct_node *entry = models_get(models_get(c.expected.root, "expect"), files[f]);
        const oct_node *pil = models_get(entry, "pil_backend"), *list = models_get(pil, "detections");
        const oct_node *head = models_get(pil, "logits_head");
        octet_result *result = run_picture(&c, files[f], OCTET_UPRIGHT, NULL);
        size_t rows = 0, columns = 0;
        const float *logits = octet_result_logits(result, &rows, &columns);
        double bound = 1e-4 * models_get(pil, "logits_max_abs")->real;
        for (size_t i = 0; i < head->count; i++) {
            for (size_t k = 0; k < columns; k++)
                models_near((double)logits[i * columns + k], head->items[i]->items[k]->real, bound, "token", i);
        }
        octet_detection found[100];
        size_t count = octet_result_detections(result, 0.5f, found, 100);
        assert_int_equal(count, models_get(pil, "n")->integer);
        for (size_t i = 0; i < list->count; i++) {
            const oct_node *box = models_get(list->items[i], "box");
            size_t at = 0;
            while (at < count && fabs((double)found[at].score - models_get(list->items[i], "score")->real) > 1e-4) at++;
            if (at == count) fail_msg("%s: detection %zu is missing", files[f], i);
            assert_int_equal(found[at].index, models_get(list->items[i], "index")->integer);
            for (size_t k = 0; k < 4; k++)
                models_near((double)found[at].box[k], box->items[k]->real, 0.01, files[f], i);
        }
        octet_result_free(&result);
    }
    end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_01_grey16),          cmocka_unit_test(test_05_jpeg_sampling),
        cmocka_unit_test(test_07_wrong_extension), cmocka_unit_test(test_08_orientation),
        cmocka_unit_test(test_10_pillow_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
