/* SPDX-License-Identifier: Apache-2.0 */
/* The conversions against their definition (every code by ldexp, every float by a search for the nearest code), against
 * ml_dtypes and NumPy (tests/golden/formats), and against case 31 of the shared collection. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "format/format.h"
#include "support/support.h"

static float decode_fp16(uint32_t code) {
    return oct_fp16_decode((uint16_t)code);
}
static float decode_bf16(uint32_t code) {
    return oct_bf16_decode((uint16_t)code);
}
static float decode_e4m3(uint32_t code) {
    return oct_e4m3_decode((uint8_t)code);
}
static float decode_e5m2(uint32_t code) {
    return oct_e5m2_decode((uint8_t)code);
}
static float decode_e2m1(uint32_t code) {
    return oct_e2m1_decode((uint8_t)code);
}
static float decode_e8m0(uint32_t code) {
    return oct_e8m0_decode((uint8_t)code);
}
static uint32_t encode_e2m1(float value) {
    return oct_e2m1_encode(value);
}
static uint32_t encode_e8m0(float value) {
    return oct_e8m0_encode(value);
}
/* case 31 took magnitudes before it cast */
static uint32_t encode_e8m0_magnitude(float value) {
    return oct_e8m0_encode(fabsf(value));
}
static uint32_t encode_fp16(float value) {
    return oct_fp16_encode(value);
}
static uint32_t encode_bf16(float value) {
    return oct_bf16_encode(value);
}
static uint32_t encode_e4m3(float value) {
    return oct_e4m3_encode(value);
}
static uint32_t encode_e5m2(float value) {
    return oct_e5m2_encode(value);
}
static uint32_t encode_e4m3_nan(float value) {
    return oct_e4m3_encode_nan(value);
}
static uint32_t encode_e5m2_inf(float value) {
    return oct_e5m2_encode_inf(value);
}

typedef struct format_case {
    const char *name;
    oct_format format;
    int bits, mantissa, bias;
    uint32_t last; /* largest finite code */
    uint32_t over; /* code of what rounds beyond it */
    float (*decode)(uint32_t);
    uint32_t (*encode)(float);
} format_case;

static const format_case formats[] = {
    {"fp16", OCT_FORMAT_FP16, 16, 10, 15, 0x7bff, 0x7c00, decode_fp16, encode_fp16},
    {"bf16", OCT_FORMAT_BF16, 16, 7, 127, 0x7f7f, 0x7f80, decode_bf16, encode_bf16},
    {"e4m3", OCT_FORMAT_E4M3, 8, 3, 7, 0x7e, 0x7e, decode_e4m3, encode_e4m3},
    {"e4m3 nan", OCT_FORMAT_E4M3, 8, 3, 7, 0x7e, 0x7f, decode_e4m3, encode_e4m3_nan},
    {"e5m2", OCT_FORMAT_E5M2, 8, 2, 15, 0x7b, 0x7b, decode_e5m2, encode_e5m2},
    {"e5m2 inf", OCT_FORMAT_E5M2, 8, 2, 15, 0x7b, 0x7c, decode_e5m2, encode_e5m2_inf},
    {"e2m1", OCT_FORMAT_E2M1, 4, 1, 1, 7, 7, decode_e2m1, encode_e2m1},
};
#define FORMATS (sizeof formats / sizeof *formats)

/* The value of a code without sign by the definition; codes above `last` continue the pattern (480 after 448). */
static double defined(const format_case *f, uint32_t code) {
    int exponent = (int)(code >> f->mantissa);
    int fraction = (int)(code & ((1u << f->mantissa) - 1)), hidden = 1 << f->mantissa;
    if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->mantissa);
    return ldexp(hidden + fraction, exponent - f->bias - f->mantissa);
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_every_code_decodes(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        const format_case *f = &formats[i];
        uint32_t sign = 1u << (f->bits - 1);
        for (uint32_t code = 0; code < sign; code++) {
            float plus = f->decode(code), minus = f->decode(code | sign);
            assert_int_equal(bits_of(plus) ^ bits_of(minus), 0x80000000u);
            assert_false(signbit(plus));
            if (code <= f->last)
                assert_true((double)plus == defined(f, code));
            else if (f->format != OCT_FORMAT_E4M3 && code == f->last + 1)
                assert_true(isinf(plus));
            else
                assert_true(isnan(plus));
        }
    }
}

/* Every code that is not NaN comes back as itself; NaN as a NaN of its sign. */
static void test_every_code_round_trips(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        const format_case *f = &formats[i];
        for (uint32_t code = 0; code < 1u << f->bits; code++) {
            float value = f->decode(code);
            uint32_t back = f->encode(value);
            uint32_t sign = 1u << (f->bits - 1);
            if (isnan(value)) {
                assert_true(isnan(f->decode(back)));
                assert_int_equal(back & sign, code & sign);
            } else if (isinf(value)) {
                assert_int_equal(back, f->over | (code & sign));
            } else {
                assert_int_equal(back, code);
            }
            if (f->format == OCT_FORMAT_FP16) assert_int_equal(back, code); /* payloads too */
        }
    }
}

/* The code nearest to a float that is not NaN; of two as near, the even one. */
static uint32_t nearest(const format_case *f, float value) {
    double magnitude = fabs((double)value);
    uint32_t sign = signbit(value) ? 1u << (f->bits - 1) : 0, low = 0, high = f->last + 1;
    while (high - low > 1) { /* defined(low) <= magnitude, or low is 0 */
        uint32_t middle = (low + high) / 2;
        if (defined(f, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double between = (defined(f, low) + defined(f, low + 1)) / 2; /* exact */
    if (magnitude > between || (magnitude == between && (low & 1))) low++;
    return sign | (low > f->last ? f->over : low);
}

static void check_nearest(const format_case *f, float value) {
    if (isnan(value)) return;
    uint32_t expected = nearest(f, value), found = f->encode(value);
    if (expected != found)
        fail_msg("%s of %a (%08x): expected %x, found %x", f->name, (double)value, bits_of(value), expected, found);
}

static void check_near(const format_case *f, double value) {
    float at = (float)value;
    check_nearest(f, at);
    check_nearest(f, -at);
    check_nearest(f, nextafterf(at, INFINITY));
    check_nearest(f, -nextafterf(at, INFINITY));
    if (at > 0) check_nearest(f, nextafterf(at, 0));
}

static void test_midpoints_and_neighbours(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        for (uint32_t code = 0; code <= formats[i].last; code++) {
            double low = defined(&formats[i], code), high = defined(&formats[i], code + 1);
            check_near(&formats[i], low);
            check_near(&formats[i], (low + high) / 2);
        }
        check_near(&formats[i], defined(&formats[i], formats[i].last + 1));
        check_nearest(&formats[i], INFINITY);
        check_nearest(&formats[i], -INFINITY);
    }
}

static void test_random_floats(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        const oct_format_row *row = oct_format_get(formats[i].format);
        uint64_t random = 31 + i;
        for (int n = 0; n < 1000000; n++) {
            uint64_t word = oct_random_next(&random);
            check_nearest(&formats[i], float_of((uint32_t)word));
            /* inside the format's own range, which random words seldom hit */
            int low = ilogb(row->min_normal) - 16, high = ilogb(row->max_finite) + 2;
            int exponent = low + (int)((word >> 40) % (uint64_t)(high - low));
            check_nearest(&formats[i], ldexpf(1.0f + (float)(word & 0x7fffff) * 0x1p-23f, exponent));
        }
    }
}

/* The columns of formats.def: largest value, smallest normal value, worst relative error between them. */
static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        const format_case *f = &formats[i];
        const oct_format_row *row = oct_format_get(f->format);
        assert_int_equal(row->bits, f->bits);
        assert_true(row->max_finite == defined(f, f->last));
        assert_true(row->min_normal == defined(f, 1u << f->mantissa));
        assert_true(row->error == ldexp(1, -f->mantissa - 1));
        uint64_t random = 7;
        double worst = 0;
        for (int n = 0; n < 200000; n++) {
            double value = row->min_normal * (1 + 30 * oct_random_unit(&random));
            if (value > row->max_finite) continue;
            double error =
                fabs((double)f->decode(f->encode((float)value)) - (double)(float)value) / (double)(float)value;
            if (error > worst) worst = error;
        }
        assert_true(worst <= row->error);
        assert_true(worst > 0.9 * row->error / (1 + row->error)); /* the budget is no wider than it must be */
    }
    for (int i = 0; i < OCT_FORMAT_COUNT; i++) {
        const char *name = oct_format_name((oct_format)i);
        assert_int_equal(oct_format_by_name(name), i);
        assert_int_equal(oct_format_bits((oct_format)i), oct_format_get((oct_format)i)->bits);
        assert_true(oct_format_get((oct_format)i)->block >= 1);
    }
    assert_int_equal(oct_format_by_name("fp7"), -1);
    assert_null(oct_format_get(OCT_FORMAT_COUNT));
    assert_string_equal(oct_format_name(OCT_FORMAT_COUNT), "unknown");
    assert_int_equal(oct_format_bits(OCT_FORMAT_COUNT), 0);
}

/* The processor's rounding mode does not matter. */
static void test_rounding_mode(void **state) {
    (void)state;
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < FORMATS; i++) {
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            uint64_t random = 3;
            for (int n = 0; n < 20000; n++) {
                volatile float value = float_of((uint32_t)oct_random_next(&random));
                volatile uint32_t here = formats[i].encode(value);
                fesetround(modes[m]);
                volatile uint32_t there = formats[i].encode(value);
                fesetround(FE_TONEAREST);
                assert_int_equal(here, there);
            }
        }
    }
}

/* ---- goldens ---- */

static const struct {
    const char *file, *column; /* of tests/golden/formats, and of case 31; NULL: not there */
    uint32_t (*encode)(float);
} references[] = {
    {"e2m1.npy", "ml_dtypes_e2m1", encode_e2m1},
    {"e8m0.npy", NULL, encode_e8m0},
    {NULL, "ml_dtypes_e8m0", encode_e8m0_magnitude},
    {"fp16.npy", "numpy_fp16", encode_fp16},
    {"bf16.npy", "ml_dtypes_bf16", encode_bf16},
    {"e4m3.cast.npy", "ml_dtypes_e4m3fn", encode_e4m3_nan},
    {"e5m2.cast.npy", "ml_dtypes_e5m2", encode_e5m2_inf},
    {"e4m3.saturating.npy", "saturating_e4m3fn", encode_e4m3},
    {"e5m2.saturating.npy", "saturating_e5m2", encode_e5m2},
};
#define REFERENCES (sizeof references / sizeof *references)

static void read_golden(const char *name, support_array *array) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/formats/%s", OCTET_SOURCE_DIR, name);
    assert_true(support_npy_read(path, array));
}

static uint32_t element(const support_array *array, size_t index) {
    uint32_t value = 0; /* little-endian in the file; so is every machine octet runs on */
    memcpy(&value, (const char *)array->data + index * array->element, array->element);
    return value;
}

static void test_golden_codes(void **state) {
    (void)state;
    support_array words, codes;
    read_golden("words.npy", &words);
    assert_true(words.count > 1000);
    for (size_t r = 0; r < REFERENCES; r++) {
        if (references[r].file == NULL) continue;
        read_golden(references[r].file, &codes);
        assert_int_equal(codes.count, words.count);
        for (size_t i = 0; i < words.count; i++) {
            uint32_t found = references[r].encode(float_of(element(&words, i)));
            if (found != element(&codes, i))
                fail_msg("%s of %08x: expected %x, found %x", references[r].file, element(&words, i),
                         element(&codes, i), found);
        }
        support_array_free(&codes);
    }
    support_array_free(&words);
}

static void test_golden_values(void **state) {
    (void)state;
    static const struct {
        const char *file;
        float (*decode)(uint32_t);
        uint32_t codes;
    } decoded[] = {{"e4m3.decode.npy", decode_e4m3, 256},
                   {"e5m2.decode.npy", decode_e5m2, 256},
                   {"e2m1.decode.npy", decode_e2m1, 16},
                   {"e8m0.decode.npy", decode_e8m0, 256}};
    for (size_t d = 0; d < sizeof decoded / sizeof *decoded; d++) {
        support_array values;
        read_golden(decoded[d].file, &values);
        assert_int_equal(values.count, decoded[d].codes);
        for (uint32_t code = 0; code < decoded[d].codes; code++) {
            float expected = float_of(element(&values, code)), found = decoded[d].decode(code);
            assert_true(isnan(expected) ? isnan(found) : bits_of(expected) == bits_of(found));
        }
        support_array_free(&values);
    }
}

static void test_shared_case(void **state) {
    (void)state;
    const char *path = support_shared("cases/31-fp8-rounding/codes.csv");
    if (path == NULL) SUPPORT_SKIP("shared cases/31-fp8-rounding is not here");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[1024];
    int at[REFERENCES], rows = 0;
    for (size_t r = 0; r < REFERENCES; r++) at[r] = -1;
    while (fgets(line, sizeof line, file) != NULL) {
        uint32_t word = (uint32_t)strtoul(line, NULL, 16);
        int column = 0;
        for (char *field = strtok(line, ",\r\n"); field != NULL; field = strtok(NULL, ",\r\n"), column++) {
            for (size_t r = 0; r < REFERENCES; r++) {
                if (references[r].column == NULL) continue;
                if (rows == 0 && strcmp(field, references[r].column) == 0) at[r] = column;
                if (rows == 0 || at[r] != column) continue;
                uint32_t expected = (uint32_t)strtoul(field, NULL, 16), found = references[r].encode(float_of(word));
                if (expected != found)
                    fail_msg("%s of %08x: expected %x, found %x", references[r].column, word, expected, found);
            }
        }
        rows++;
    }
    fclose(file);
    for (size_t r = 0; r < REFERENCES; r++) assert_true(references[r].column == NULL || at[r] > 0);
    assert_int_equal(rows, 520);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_decodes),
        cmocka_unit_test(test_every_code_round_trips),
        cmocka_unit_test(test_midpoints_and_neighbours),
        cmocka_unit_test(test_random_floats),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rounding_mode),
        cmocka_unit_test(test_golden_codes),
        cmocka_unit_test(test_golden_values),
        cmocka_unit_test(test_shared_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
