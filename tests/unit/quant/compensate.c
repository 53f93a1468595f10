/* SPDX-License-Identifier: Apache-2.0 */
/* Compensated rounding: NumPy's codes, less error than to nearest, and what has no inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "quant/compensate.h"
#include "support/support.h"

static support_array golden(const char *name) {
    support_array array;
    char path[512];
    (void)snprintf(path, sizeof path, OCTET_SOURCE_DIR "/tests/golden/compensated/%s.npy", name);
    if (!support_npy_read(path, &array)) fail_msg("%s", path);
    return array;
}

static void test_golden(void **state) {
    (void)state;
    support_array x = golden("inputs"), w = golden("weights");
    const size_t rows = x.shape[0], inputs = x.shape[1], outputs = w.shape[0];
    const float *weight = support_floats(&w);
    static const struct {
        const char *name;
        oct_format format;
        bool channel;
    } kinds[] = {{"int8", OCT_FORMAT_INT8, true}, {"e4m3", OCT_FORMAT_E4M3, false}};
    for (size_t k = 0; k < 2; k++) {
        support_array expected = golden(kinds[k].name);
        oct_gram gram;
        float scales[64];
        uint8_t codes[4096];
        assert_true(outputs <= 64 && w.count <= sizeof codes && expected.count == w.count);
        for (size_t o = 0; o < outputs; o++)
            scales[o] = oct_format_scale(kinds[k].format, kinds[k].channel ? oct_amax(weight + o * inputs, inputs)
                                                                           : oct_amax(weight, w.count));
        assert_int_equal(oct_gram_new(&gram, inputs), OCTET_OK);
        /* in two calls, of other lengths than the slices */
        oct_gram_add(&gram, support_floats(&x), 7, inputs);
        oct_gram_add(&gram, support_floats(&x) + 7 * inputs, rows - 7, inputs);
        assert_int_equal(oct_compensate(kinds[k].format, "w", &gram, weight, outputs, scales, codes), OCTET_OK);
        assert_memory_equal(codes, expected.data, w.count);
        oct_gram_free(&gram);
        support_array_free(&expected);
    }
    support_array_free(&x);
    support_array_free(&w);
    assert_int_equal(oct_alloc_live(), 0);
}

/* Squared error of the outputs over the rows. */
static double error_of(const float *x, size_t rows, size_t inputs, const float *w, const float *rounded,
                       size_t outputs) {
    double error = 0;
    for (size_t r = 0; r < rows; r++) {
        for (size_t o = 0; o < outputs; o++) {
            double off = 0;
            for (size_t i = 0; i < inputs; i++)
                off += (double)x[r * inputs + i] * ((double)w[o * inputs + i] - (double)rounded[o * inputs + i]);
            error += off * off;
        }
    }
    return error;
}

/* Inputs of few directions, more columns than tiles are wide, more rows than a slice has. */
static void test_better_than_nearest(void **state) {
    (void)state;
    enum { ROWS = 300, INPUTS = 53, OUTPUTS = 11, DIRECTIONS = 6 };
    static float x[ROWS * INPUTS], w[OUTPUTS * INPUTS], nearest[OUTPUTS * INPUTS], rounded[OUTPUTS * INPUTS];
    static const oct_format formats[] = {OCT_FORMAT_E4M3, OCT_FORMAT_E5M2, OCT_FORMAT_INT8};
    float basis[DIRECTIONS * INPUTS], scales[OUTPUTS];
    uint8_t codes[OUTPUTS * INPUTS];
    uint64_t seed = 3;
    for (size_t i = 0; i < DIRECTIONS * INPUTS; i++) basis[i] = oct_random_signed(&seed);
    for (size_t i = 0; i < OUTPUTS * INPUTS; i++) w[i] = oct_random_signed(&seed);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t d = 0; d < DIRECTIONS; d++) {
            const float much = oct_random_signed(&seed);
            for (size_t i = 0; i < INPUTS; i++) x[r * INPUTS + i] += much * basis[d * INPUTS + i];
        }
    }
    for (size_t f = 0; f < 3; f++) {
        oct_gram gram;
        assert_int_equal(oct_gram_new(&gram, INPUTS), OCTET_OK);
        oct_gram_add(&gram, x, ROWS, INPUTS);
        assert_int_equal(gram.rows, ROWS);
        oct_scaled_scales(formats[f], w, OUTPUTS, INPUTS, INPUTS, scales);
        oct_scaled_encode(formats[f], w, OUTPUTS, INPUTS, INPUTS, scales, codes);
        oct_scaled_decode(formats[f], codes, OUTPUTS, INPUTS, INPUTS, scales, nearest);
        assert_int_equal(oct_compensate(formats[f], "w", &gram, w, OUTPUTS, scales, codes), OCTET_OK);
        oct_scaled_decode(formats[f], codes, OUTPUTS, INPUTS, INPUTS, scales, rounded);
        const double before = error_of(x, ROWS, INPUTS, w, nearest, OUTPUTS);
        const double after = error_of(x, ROWS, INPUTS, w, rounded, OUTPUTS);
        if (!(after < before / 4)) fail_msg("%s: %g after %g", oct_format_name(formats[f]), after, before);
        oct_gram_free(&gram);
    }
}

static void test_no_inputs(void **state) {
    (void)state;
    static const float w[] = {0.3f, -1, 0.7f, 0.26f}, scale = 1.0f / 127;
    static const float rows[] = {NAN, 1, 1, 1};
    uint8_t codes[4], nearest[4];
    oct_gram gram;
    assert_int_equal(oct_gram_new(&gram, 4), OCTET_OK);
    assert_int_equal(oct_compensate(OCT_FORMAT_INT8, "w", &gram, w, 1, &scale, codes), OCTET_OK);
    oct_scaled_encode(OCT_FORMAT_INT8, w, 1, 4, 4, &scale, nearest);
    assert_memory_equal(codes, nearest, 4);
    oct_gram_add(&gram, rows, 1, 4);
    assert_int_equal(oct_compensate(OCT_FORMAT_INT8, "conv", &gram, w, 1, &scale, codes), OCTET_MISMATCH);
    assert_non_null(strstr(oct_error_fact(), "conv: inputs that are not finite"));
    oct_gram_free(&gram);
    assert_int_equal(oct_gram_new(&gram, OCT_COMPENSATED_DEPTH + 1), OCTET_UNSUPPORTED);
    bool met = true;
    for (uint64_t n = 1; met; n++) {
        oct_alloc_fail_at(n, false);
        octet_status status = oct_gram_new(&gram, 4);
        if (status == OCTET_OK) status = oct_compensate(OCT_FORMAT_INT8, "w", &gram, w, 1, &scale, codes);
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_OUT_OF_MEMORY : OCTET_OK);
        oct_gram_free(&gram);
    }
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_better_than_nearest),
        cmocka_unit_test(test_no_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
