/* SPDX-License-Identifier: Apache-2.0 */
/* Memory ends at every place of opening a model and running pictures, once and for good: OUT_OF_MEMORY, no results, no
 * block left, and the next run answers as if nothing had been. */
#include "models.h"

static uint8_t *file_bytes;
static size_t file_size;
static char *const *places;

/* One picture through a model of its own; `kept` open model: another through that. */
static octet_status open_and_run(const char *place, octet_result **result) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    octet_session *session = NULL;
    char *text = NULL;
    open.threads = options.threads = 1;
    open.batch = 2;
    octet_status status = octet_model_open(place, &open, &model);
    if (status == OCTET_OK) status = octet_session_new(model, &options, &session);
    if (status == OCTET_OK) status = octet_session_run_memory(session, file_bytes, file_size, result);
    for (int view = OCTET_LAB_SUMMARY; view <= (int)OCTET_LAB_SHAPES && status == OCTET_OK; view++) {
        status = octet_lab_describe(model, (octet_lab_view)view, &text);
        if (status != OCTET_OK) assert_null(text);
        octet_free(text);
        text = NULL;
    }
    if (status != OCTET_OK) octet_result_free(result);
    octet_session_free(&session);
    octet_model_close(&model);
    return status;
}

static void fail_everywhere(const char *place, bool forever) {
    octet_result *expected = NULL, *found = NULL;
    RUNS_OK(open_and_run(place, &expected)); /* what is made once stays */
    RUNS_OK(open_and_run(place, &found));
    octet_result_free(&found);
    int64_t live = oct_alloc_live();
    uint64_t failures = 0, harmless = 0, n = 1;
    for (;; n++) {
        oct_alloc_fail_at(n, forever);
        octet_status status = open_and_run(place, &found);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (status == OCTET_OK) {
            models_same(expected, found);
            octet_result_free(&found);
            harmless += met;
        } else {
            if (status != OCTET_OUT_OF_MEMORY)
                fail_msg("allocation %llu: %s: %s", (unsigned long long)n, octet_status_name(status),
                         octet_error_text());
            assert_null(found);
            failures++;
        }
        if (oct_alloc_live() != live)
            fail_msg("allocation %llu: %lld blocks are left over", (unsigned long long)n,
                     (long long)(oct_alloc_live() - live));
        if (!met) break;
    }
    RUNS_OK(open_and_run(place, &found));
    models_same(expected, found);
    octet_result_free(&found);
    octet_result_free(&expected);
    print_message("%llu allocations, %llu failed the call, %llu were done without\n", (unsigned long long)(n - 1),
                  (unsigned long long)failures, (unsigned long long)harmless);
    assert_true(failures > 100);
}

static void test_once(void **state) {
    (void)state;
    fail_everywhere(places[0], false);
}

static void test_for_good(void **state) {
    (void)state;
    fail_everywhere(places[0], true);
}

static void test_size_that_follows_the_picture(void **state) {
    (void)state;
    fail_everywhere(places[1], false);
}

/* A session whose run failed for lack of memory runs the next picture. */
static void test_session_goes_on(void **state) {
    (void)state;
    octet_model *model = models_open(places[1], 2);
    octet_session *session = models_session(model, 1);
    octet_result *expected = NULL, *found = NULL;
    uint64_t n = 1;
    RUNS_OK(octet_session_run_memory(session, file_bytes, file_size, &expected));
    for (bool met = true; met; n++) {
        octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
        uint8_t *rgb = models_rgb(30 + (int)(n % 40), 30, 1);
        picture.data = rgb;
        picture.width = 30 + (int32_t)(n % 40);
        picture.height = 30;
        oct_alloc_fail_at(n, false);
        octet_status status = octet_session_run(session, &picture, 1, &found);
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (status != OCTET_OK) assert_int_equal(status, OCTET_OUT_OF_MEMORY);
        octet_result_free(&found);
        RUNS_OK(octet_session_run_memory(session, file_bytes, file_size, &found));
        models_same(expected, found);
        octet_result_free(&found);
        free(rgb);
    }
    assert_true(n > 10);
    octet_result_free(&expected);
    octet_session_free(&session);
    octet_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_for_good),
        cmocka_unit_test(test_size_that_follows_the_picture),
        cmocka_unit_test(test_session_goes_on),
    };
    char *made[2] = {models_write_yolos(TINY_FIXED), models_write_yolos(TINY_EDGES)};
    places = made;
    file_bytes = models_ppm(60, 40, 2, &file_size);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(file_bytes);
    for (int i = 0; i < 2; i++) models_drop(made[i]);
    return failed;
}
