/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that carry their size, of callers compiled against earlier and later headers; and a NULL wherever one can be
 * handed in where a status comes out. */
#include "models.h"

#include "runtime/options.h"

/* ---- the rule alone, on a struct as it grew */

typedef struct first {
    size_t struct_size;
    const char *text;
    int64_t number;
} first;

typedef struct second {
    size_t struct_size;
    const char *text;
    int64_t number;
    double added;
    uint32_t also, last;
} second;

#define SECOND_DEFAULT                                                                                                 \
    { sizeof(second), "default", 1, 0.5, 7, 0 }

static void test_older_caller(void **state) {
    (void)state;
    second own = SECOND_DEFAULT;
    const first given = {sizeof given, "given", 2};
    RUNS_OK(oct_options_take(&own, sizeof own, &given, "x"));
    assert_int_equal(own.struct_size, sizeof own);
    assert_string_equal(own.text, "given");
    assert_int_equal(own.number, 2);
    assert_true(own.added > 0.4 && own.added < 0.6);
    assert_int_equal(own.also, 7);
}

static void test_newer_caller(void **state) {
    (void)state;
    first own = {sizeof own, "default", 1};
    second given = {sizeof given, "given", 2, 0.0, 0, 0};
    RUNS_OK(oct_options_take(&own, sizeof own, &given, "x"));
    assert_int_equal(own.struct_size, sizeof own);
    assert_int_equal(own.number, 2);
    given.last = 1;
    own.number = 1;
    FAILS(oct_options_take(&own, sizeof own, &given, "x"), OCTET_UNSUPPORTED, "x: byte 36 is set, 24 bytes are known");
    assert_int_equal(own.number, 1);
}

static void test_no_size(void **state) {
    (void)state;
    static const size_t bad[] = {0, 1, sizeof(size_t), sizeof(second) - 1, sizeof(second) + 1, 4104, SIZE_MAX - 7};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        second own = SECOND_DEFAULT, given = SECOND_DEFAULT;
        given.struct_size = bad[i];
        FAILS(oct_options_take(&own, sizeof own, &given, "x"), OCTET_INVALID_ARGUMENT, "x.struct_size: expected 40");
        FAILS(oct_options_give(&given, &own, sizeof own, "x"), OCTET_INVALID_ARGUMENT, "x.struct_size: expected 40");
    }
}

static void test_given_back(void **state) {
    (void)state;
    const second own = SECOND_DEFAULT;
    struct {
        first it;
        int64_t guard;
    } old = {{sizeof(first), NULL, 0}, -1};
    struct {
        second it;
        int64_t unknown, guard;
    } later = {{sizeof(second) + 8, NULL, 0, 0.0, 0, 0}, -1, -1};
    RUNS_OK(oct_options_give(&old.it, &own, sizeof own, "x"));
    assert_int_equal(old.it.struct_size, sizeof(first));
    assert_int_equal(old.it.number, 1);
    assert_int_equal(old.guard, -1);
    RUNS_OK(oct_options_give(&later.it, &own, sizeof own, "x"));
    assert_int_equal(later.it.struct_size, sizeof(second) + 8);
    assert_int_equal(later.it.also, 7);
    assert_int_equal(later.unknown, 0);
    assert_int_equal(later.guard, -1);
}

/* ---- the public structs */

static char *directory;

/* Room for a struct of a later header; what follows the known fields is zero, then as a test says. */
typedef struct later {
    union {
        octet_open_options open;
        octet_session_options session;
        octet_picture picture;
        octet_lab_figures figures;
        octet_lab_build_options build;
    } it;
    uint8_t more[64];
} later;

static octet_picture picture_of(const uint8_t *rgb) {
    octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
    picture.data = rgb;
    picture.width = 40;
    picture.height = 30;
    return picture;
}

static void test_open(void **state) {
    (void)state;
    octet_model *model = NULL;
    later given = {.it.open = OCTET_OPEN_OPTIONS_DEFAULT};
    given.it.open.batch = -5; /* beyond a struct that ends with device */
    given.it.open.struct_size = offsetof(octet_open_options, classes_file);
    RUNS_OK(octet_model_open(directory, &given.it.open, &model));
    assert_int_equal(octet_model_batch(model), 1);
    octet_model_close(&model);
    given.it.open = (octet_open_options)OCTET_OPEN_OPTIONS_DEFAULT;
    given.it.open.recipe = "no such recipe"; /* beyond a struct of before there were recipes */
    given.it.open.struct_size = offsetof(octet_open_options, recipe);
    RUNS_OK(octet_model_open(directory, &given.it.open, &model));
    octet_model_close(&model);
    given.it.open.struct_size = sizeof given.it.open;
    FAILS(octet_model_open(directory, &given.it.open, &model), OCTET_NOT_FOUND, "no recipe \"no such recipe\"");
    given.it.open = (octet_open_options)OCTET_OPEN_OPTIONS_DEFAULT;
    given.it.open.scales = "scales.json";
    FAILS(octet_model_open(directory, &given.it.open, &model), OCTET_INVALID_ARGUMENT,
          "expected a recipe that uses them");
    given.it.open = (octet_open_options)OCTET_OPEN_OPTIONS_DEFAULT;
    given.it.open.batch = 2;
    given.it.open.struct_size += 16;
    RUNS_OK(octet_model_open(directory, &given.it.open, &model));
    assert_int_equal(octet_model_batch(model), 2);
    octet_model_close(&model);
    ((uint8_t *)&given)[sizeof(octet_open_options) + 15] = 1;
    FAILS(octet_model_open(directory, &given.it.open, &model), OCTET_UNSUPPORTED, "octet_open_options: byte");
    assert_null(model);
}

static void test_session(void **state) {
    (void)state;
    octet_model *model = models_open(directory, 1);
    octet_session *session = NULL;
    later given = {.it.session = OCTET_SESSION_OPTIONS_DEFAULT};
    given.it.session.threads = 1;
    given.it.session.orientation = (octet_orientation)9;
    given.it.session.struct_size = offsetof(octet_session_options, parallel_for);
    FAILS(octet_session_new(model, &given.it.session, &session), OCTET_INVALID_ARGUMENT, "orientation");
    given.it.session.orientation = OCTET_STORED;
    given.it.session.parallel_for_user = &given;
    RUNS_OK(octet_session_new(model, &given.it.session, &session));
    octet_session_free(&session);
    given.it.session.struct_size = sizeof(octet_session_options) + 64;
    ((uint8_t *)&given)[sizeof(octet_session_options) + 63] = 1;
    FAILS(octet_session_new(model, &given.it.session, &session), OCTET_UNSUPPORTED, "octet_session_options: byte");
    octet_model_close(&model);
}

/* An array's elements are as large as the caller's header says. */
static void test_pictures(void **state) {
    (void)state;
    octet_model *model = models_open(directory, 2);
    octet_session *session = models_session(model, 1);
    octet_result *expected[3], *found[3];
    octet_picture known[3];
    later given[3];
    uint8_t *rgb[3];
    memset(given, 0, sizeof given);
    for (int i = 0; i < 3; i++) {
        rgb[i] = models_rgb(40, 30, i);
        known[i] = picture_of(rgb[i]);
        given[i].it.picture = known[i];
        given[i].it.picture.struct_size = sizeof given[i];
    }
    RUNS_OK(octet_session_run(session, known, 3, expected));
    RUNS_OK(octet_session_run(session, &given[0].it.picture, 3, found));
    for (int i = 0; i < 3; i++) {
        models_same(expected[i], found[i]);
        octet_result_free(&expected[i]);
        octet_result_free(&found[i]);
    }
    given[2].more[63] = 1;
    FAILS(octet_session_run(session, &given[0].it.picture, 3, found), OCTET_UNSUPPORTED,
          "picture 2: octet_picture: byte");
    given[1].it.picture.struct_size -= 8;
    FAILS(octet_session_run(session, &given[0].it.picture, 3, found), OCTET_INVALID_ARGUMENT, "as the first's");
    for (int i = 0; i < 3; i++) {
        assert_null(found[i]);
        free(rgb[i]);
    }
    octet_session_free(&session);
    octet_model_close(&model);
}

static void test_figures(void **state) {
    (void)state;
    octet_model *model = models_open(directory, 1);
    octet_lab_figures whole = {.struct_size = sizeof whole}, part = {.struct_size = offsetof(octet_lab_figures, steps)};
    part.steps = 12345;
    RUNS_OK(octet_lab_get_figures(model, &whole));
    RUNS_OK(octet_lab_get_figures(model, &part));
    assert_true(whole.flops > 0 && whole.steps > 0);
    assert_int_equal(part.flops, whole.flops);
    assert_int_equal(part.steps, 12345);
    octet_model_close(&model);
}

static void test_build(void **state) {
    (void)state;
    char *output = strdup(support_join(directory, "made.octet"));
    const int64_t batch = 1;
    char identity[65];
    later given;
    memset(&given, 0, sizeof given);
    given.it.build.struct_size = offsetof(octet_lab_build_options, classes_file);
    given.it.build.recipe = "fp32";
    given.it.build.batches = &batch;
    given.it.build.batch_count = 1;
    given.it.build.effort = 1;
    given.it.build.threads = 1;
    given.it.build.classes_file = "/nowhere/names.txt"; /* beyond what this caller has */
    RUNS_OK(octet_lab_build(directory, &given.it.build, output, identity));
    given.it.build.struct_size = sizeof given;
    given.it.build.classes_file = NULL;
    RUNS_OK(octet_lab_build(directory, &given.it.build, output, identity));
    given.more[0] = 1;
    FAILS(octet_lab_build(directory, &given.it.build, output, identity), OCTET_UNSUPPORTED, "octet_lab_build_options");
    free(output);
}

/* ---- NULL */

static void test_null_arguments(void **state) {
    (void)state;
    octet_model *model = models_open(directory, 1), *none = NULL;
    octet_session *session = models_session(model, 1), *no_session = NULL;
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    octet_result *result = NULL;
    octet_lab_build_options build = {.struct_size = sizeof build};
    octet_lab_figures figures = {.struct_size = sizeof figures};
    char identity[65], *text = NULL;
    uint64_t sum;
    int opens;
    const octet_status found[] = {
        octet_model_open(NULL, NULL, &none),
        octet_model_open(directory, NULL, NULL),
        octet_session_new(NULL, NULL, &no_session),
        octet_session_new(model, NULL, NULL),
        octet_session_run(NULL, &picture, 1, &result),
        octet_session_run(session, NULL, 1, &result),
        octet_session_run(session, &picture, 1, NULL),
        octet_session_run(session, &picture, 0, &result),
        octet_session_run_file(NULL, "a.jpg", &result),
        octet_session_run_file(session, NULL, &result),
        octet_session_run_file(session, "a.jpg", NULL),
        octet_session_run_memory(NULL, "a", 1, &result),
        octet_session_run_memory(session, NULL, 1, &result),
        octet_session_run_memory(session, "a", 1, NULL),
        octet_draw(NULL, "a.jpg", OCTET_UPRIGHT, 0.5f, "b.png"),
        octet_lab_describe(NULL, OCTET_LAB_SUMMARY, &text),
        octet_lab_describe(model, OCTET_LAB_SUMMARY, NULL),
        octet_lab_build(NULL, &build, "a.octet", identity),
        octet_lab_build(directory, NULL, "a.octet", identity),
        octet_lab_build(directory, &build, NULL, identity),
        octet_lab_build(directory, &build, "a.octet", NULL),
        octet_lab_compat(NULL, NULL, &text),
        octet_lab_compat(directory, &opens, NULL),
        octet_lab_get_figures(NULL, &figures),
        octet_lab_get_figures(model, NULL),
        octet_lab_support(NULL),
        octet_lab_machine(NULL),
        octet_lab_time_engine(NULL, 0, NULL),
        octet_lab_time_engine(session, 1, NULL),
        octet_lab_output_checksum(NULL, &sum),
        octet_lab_output_checksum(session, NULL),
        octet_lab_set_jitter(NULL, 0.0, 1),
        octet_lab_set_jitter(session, 2.0, 1),
        octet_lab_open_recipe(directory, NULL, "x", NULL, &none),
        octet_lab_open_recipe(directory, NULL, NULL, "x", &none),
        octet_lab_recipe_text(NULL, "fp16", &text),
        octet_lab_recipe_text(model, NULL, &text),
        octet_lab_recipe_text(model, "fp16", NULL),
        octet_lab_recipe_names(NULL, &text),
        octet_lab_recipe_describe(NULL, "x", "y", 0, &text),
        octet_lab_recipe_describe(model, "x", NULL, 0, &text),
        octet_lab_recipe_check(NULL),
        octet_lab_calibrate(NULL, NULL, NULL, NULL, "a.json"),
    };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        if (found[i] != OCTET_INVALID_ARGUMENT) fail_msg("call %zu: found %s", i, octet_status_name(found[i]));
    }
    assert_true(none == NULL && no_session == NULL && result == NULL && text == NULL);

    uint8_t *rgb = models_rgb(40, 30, 0);
    picture = picture_of(rgb);
    RUNS_OK(octet_session_run(session, &picture, 1, &result));
    assert_int_equal(octet_draw(result, NULL, OCTET_UPRIGHT, 0.5f, "b.png"), OCTET_INVALID_ARGUMENT);
    assert_int_equal(octet_draw(result, "a.jpg", OCTET_UPRIGHT, 0.5f, NULL), OCTET_INVALID_ARGUMENT);
    assert_int_equal(octet_draw(result, "a.jpg", (octet_orientation)7, 0.5f, "b.png"), OCTET_INVALID_ARGUMENT);
    assert_non_null(octet_result_logits(result, NULL, NULL));
    assert_non_null(octet_result_boxes(result, NULL));
    octet_result_picture_size(result, NULL, NULL);
    octet_model_input_size(model, NULL, NULL);
    free(rgb);
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_caller),   cmocka_unit_test(test_newer_caller), cmocka_unit_test(test_no_size),
        cmocka_unit_test(test_given_back),     cmocka_unit_test(test_open),         cmocka_unit_test(test_session),
        cmocka_unit_test(test_pictures),       cmocka_unit_test(test_figures),      cmocka_unit_test(test_build),
        cmocka_unit_test(test_null_arguments),
    };
    directory = models_write_yolos(TINY_FIXED);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    models_drop(directory);
    return failed;
}
