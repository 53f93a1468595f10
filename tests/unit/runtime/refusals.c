/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be run, refused by name: pictures, sizes of input, options. */
#include "models.h"

static void test_refused_pictures(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    octet_model *model = models_open(directory, 2);
    octet_session *session = models_session(model, 1);
    octet_result *results[3];
    uint8_t *rgb = models_rgb(8, 8, 0);
    octet_picture good = models_picture(OCTET_PICTURE_RGB8);
    good.data = rgb;
    good.width = good.height = 8;

    octet_picture list[3] = {good, good, good};
    list[1].struct_size = 8;
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "octet_picture.struct_size: expected");
    for (int i = 0; i < 3; i++) assert_null(results[i]);
    list[1] = good;
    list[1].kind = (octet_picture_kind)17;
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "picture 1: picture: unknown kind 17");
    list[1] = good;
    list[1].data = NULL;
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "picture 1: picture: expected data");
    list[1] = models_picture(OCTET_PICTURE_MEMORY);
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "expected data, found NULL");
    list[1].data = rgb;
    list[1].size = 0;
    FAILS(octet_session_run(session, list, 3, results), OCTET_BAD_FORMAT, "picture 1");
    list[1] = models_picture(OCTET_PICTURE_FILE);
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "expected a path, found NULL");
    list[1].path = "/nowhere/a.jpg";
    FAILS(octet_session_run(session, list, 3, results), OCTET_NOT_FOUND, "/nowhere/a.jpg");
    list[1].path = directory;
    FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "is a directory, expected a file");
    static const int32_t bad[][2] = {
        {0, 8}, {8, 0}, {-1, 8}, {8, INT32_MIN}, {INT32_MAX, INT32_MAX}, {1 << 14, 1 << 14}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        list[1] = good;
        list[1].width = bad[i][0];
        list[1].height = bad[i][1];
        FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "expected 1 to 178956970 pixels");
        list[1].kind = OCTET_PICTURE_INPUT;
        FAILS(octet_session_run(session, list, 3, results), OCTET_INVALID_ARGUMENT, "expected 1 to 178956970 pixels");
    }
    list[1] = good;
    list[1].kind = OCTET_PICTURE_INPUT;
    FAILS(octet_session_run(session, list, 3, results), OCTET_MISMATCH,
          "expected height 32 and width 48, found 8 and 8");
    for (int i = 0; i < 3; i++) assert_null(results[i]);

    FAILS(octet_session_run(NULL, list, 3, results), OCTET_INVALID_ARGUMENT, "expected a session");
    FAILS(octet_session_run(session, NULL, 3, results), OCTET_INVALID_ARGUMENT, "expected a session");
    FAILS(octet_session_run(session, list, 0, results), OCTET_INVALID_ARGUMENT, "at least one picture");
    FAILS(octet_session_run(session, list, 3, NULL), OCTET_INVALID_ARGUMENT, "room for results");
    FAILS(octet_session_run_memory(session, NULL, 3, results), OCTET_INVALID_ARGUMENT, "expected data");
    FAILS(octet_session_run_file(session, NULL, results), OCTET_INVALID_ARGUMENT, "expected a path");
    RUNS_OK(octet_session_run(session, &good, 1, results)); /* a failure leaves nothing behind */
    octet_result_free(results);
    octet_session_free(&session);
    octet_model_close(&model);
    free(rgb);
    models_drop(directory);
}

/* A picture whose input size the model cannot be built for says so, and the next picture is answered. */
static void test_size_that_cannot_be_built(void **state) {
    (void)state;
    char *directory = models_write_yolos("{\"shortest_edge\": 20000, \"longest_edge\": 400000}");
    octet_model *model = NULL;
    octet_status status = octet_model_open(directory, NULL, &model);
    if (status == OCTET_OK) {
        octet_session *session = models_session(model, 1);
        octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
        octet_result *result = NULL;
        uint8_t *rgb = models_rgb(9, 9, 1);
        picture.data = rgb;
        picture.width = 9;
        picture.height = 9;
        status = octet_session_run(session, &picture, 1, &result);
        assert_null(result);
        octet_session_free(&session);
        octet_model_close(&model);
        free(rgb);
    }
    assert_int_not_equal(status, OCTET_OK);
    assert_int_not_equal(status, OCTET_INTERNAL);
    assert_true(strlen(octet_error_text()) > 10);
    models_drop(directory);

    directory = models_write_yolos(TINY_EDGES);
    model = models_open(directory, 1);
    octet_session *session = models_session(model, 1);
    octet_picture thin = models_picture(OCTET_PICTURE_RGB8);
    octet_result *result = NULL;
    uint8_t *rgb = models_rgb(3000, 1, 1);
    thin.data = rgb;
    thin.width = 3000;
    thin.height = 1; /* 96 x 0: a side is nothing */
    FAILS(octet_session_run(session, &thin, 1, &result), OCTET_UNSUPPORTED, "");
    assert_null(result);
    thin.width = 40;
    thin.height = 30;
    RUNS_OK(octet_session_run(session, &thin, 1, &result));
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    free(rgb);
    models_drop(directory);
}

static void test_refused_options(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    octet_model *model = (octet_model *)&state;
    octet_session *session = (octet_session *)&state;
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    FAILS(octet_model_open(directory, NULL, NULL), OCTET_INVALID_ARGUMENT, "expected an address");
    FAILS(octet_model_open(NULL, NULL, &model), OCTET_INVALID_ARGUMENT, "expected a path or hub id");
    assert_null(model);
    open.struct_size--;
    FAILS(octet_model_open(directory, &open, &model), OCTET_INVALID_ARGUMENT, "octet_open_options.struct_size");
    open = (octet_open_options)OCTET_OPEN_OPTIONS_DEFAULT;
    static const int64_t batches[] = {-1, 1025, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        open.batch = batches[i];
        FAILS(octet_model_open(directory, &open, &model), OCTET_INVALID_ARGUMENT, "batch: expected 0 to 1024");
    }
    open.batch = 0;
    RUNS_OK(octet_model_open(directory, &open, &model));
    assert_int_equal(octet_model_batch(model), 1);
    octet_model_close(&model);
    open.device = "tpu";
    FAILS(octet_model_open(directory, &open, &model), OCTET_NO_DEVICE, "\"tpu\"");
    open.device = "cpu";
    open.height = 32;
    FAILS(octet_model_open(directory, &open, &model), OCTET_INVALID_ARGUMENT, "expected height and width");
    open.width = -16;
    FAILS(octet_model_open(directory, &open, &model), OCTET_INVALID_ARGUMENT, "both positive");
    open.width = 1 << 30;
    FAILS(octet_model_open(directory, &open, &model), OCTET_UNSUPPORTED, "pixels a side");
    open.width = 64;
    open.threads = 1u << 30;
    FAILS(octet_model_open(directory, &open, &model), OCTET_INVALID_ARGUMENT, "threads");
    open.threads = 1;
    RUNS_OK(octet_model_open(directory, &open, &model));
    int32_t height = 0, width = 0;
    octet_model_input_size(model, &height, &width);
    assert_int_equal(height, 32);
    assert_int_equal(width, 64);

    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    FAILS(octet_session_new(model, NULL, NULL), OCTET_INVALID_ARGUMENT, "expected an address");
    FAILS(octet_session_new(NULL, NULL, &session), OCTET_INVALID_ARGUMENT, "expected an open model");
    assert_null(session);
    options.struct_size = 0;
    FAILS(octet_session_new(model, &options, &session), OCTET_INVALID_ARGUMENT, "octet_session_options.struct_size");
    options = (octet_session_options)OCTET_SESSION_OPTIONS_DEFAULT;
    options.threads = 4096;
    FAILS(octet_session_new(model, &options, &session), OCTET_INVALID_ARGUMENT, "threads: expected 0 to 1024");
    options.threads = 1;
    options.orientation = (octet_orientation)9;
    FAILS(octet_session_new(model, &options, &session), OCTET_INVALID_ARGUMENT, "orientation");
    octet_model_close(&model);
    octet_model_close(&model);
    octet_model_close(NULL);
    octet_session_free(&session);
    octet_session_free(NULL);
    octet_result_free(NULL);
    octet_free(NULL);
    models_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_pictures),
        cmocka_unit_test(test_size_that_cannot_be_built),
        cmocka_unit_test(test_refused_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
