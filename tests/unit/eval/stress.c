/* SPDX-License-Identifier: Apache-2.0 */
/* Stress inputs: at least 29, each of its own name and its own numbers, the same whenever they are made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "eval/stress.h"

#define SIDE 34
#define NUMBERS ((size_t)SIDE * SIDE * 3)

static float made[64][NUMBERS], again[NUMBERS];

static void test_inputs(void **state) {
    (void)state;
    assert_in_range(stress_count(), 29, 64);
    for (size_t i = 0; i < stress_count(); i++) {
        stress_fill(i, made[i], SIDE, SIDE);
        stress_fill(i, again, SIDE, SIDE);
        assert_memory_equal(made[i], again, sizeof again);
        bool beyond = false;
        for (size_t k = 0; k < NUMBERS; k++) {
            assert_true(isfinite(made[i][k]));
            beyond = beyond || fabsf(made[i][k]) >= 65520.0f;
        }
        assert_int_equal(stress_is_beyond_fp16(i), beyond);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(stress_name(i), stress_name(j));
            assert_memory_not_equal(made[i], made[j], sizeof again);
        }
    }
}

/* Every number of a subject's output is counted once, and a finite network gives finite numbers for a finite picture.
 */
static void test_run(void **state) {
    (void)state;
    octet_model *model;
    octet_session *session;
    int32_t height, width;
    if (octet_model_open(OCTET_SOURCE_DIR "/subjects/mobilenetv2_035", NULL, &model) != OCTET_OK)
        fail_msg("%s", octet_error_text());
    assert_int_equal(octet_session_new(model, NULL, &session), OCTET_OK);
    octet_model_input_size(model, &height, &width);
    float *buffer = test_malloc((size_t)(height + 1) * (size_t)width * 3 * sizeof *buffer);
    for (size_t i = 0; i < stress_count(); i++) {
        stress_outcome outcome;
        assert_int_equal(stress_run(session, i, buffer, height, width, &outcome), OCTET_OK);
        assert_int_equal(outcome.nans + outcome.infinities, 0);
        assert_true(outcome.largest > 0.0f);
    }
    stress_outcome outcome;
    assert_int_equal(stress_run(session, 0, buffer, height + 1, width, &outcome), OCTET_MISMATCH);
    test_free(buffer);
    octet_session_free(&session);
    octet_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
