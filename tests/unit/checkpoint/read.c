/* SPDX-License-Identifier: Apache-2.0 */
/* Reading tensors: every dtype as float, values that are not finite, prefixes, what was used, fingerprints. */
#include "unit/checkpoint/files.h"

#include <math.h>

#include "base/hash.h"

#define SINGLE "model.safetensors"

static void write_file(const char *directory, const oct_tensor_source *tensors, size_t count) {
    if (oct_safetensors_write(support_join(directory, SINGLE), tensors, count) != OCTET_OK)
        fail_msg("%s", oct_error_text());
}

static void test_dtypes(void **state) {
    (void)state;
    static const double f64[4] = {1.5, -0.1, 1e-300, 0x1.0000001p0}; /* the last lies in the middle: to even, down */
    static const float f32[4] = {1.5f, -0.1f, 1e-45f, 3e38f};
    static const uint16_t f16[4] = {0x3e00, 0xae66, 0x0001, 0x7bff}, bf16[4] = {0x3fc0, 0xbdcd, 0x0001, 0x7f7f};
    static const uint8_t e4m3[4] = {0x3c, 0x9d, 0x01, 0x7e}, e5m2[4] = {0x3e, 0xae, 0x01, 0x7b};
    static const int8_t i8[4] = {0, 1, -128, 127};
    static const uint8_t u8[4] = {0, 1, 128, 255};
    static const int32_t i32[4] = {0, -1, 16777217, INT32_MIN}; /* 2^24 + 1 to even */
    static const int64_t i64[4] = {0, -1, 16777219, INT64_MAX};
    static const struct {
        oct_dtype dtype;
        const void *data;
        float values[4];
    } rows[] = {
        {OCT_DTYPE_F64, f64, {1.5f, -0.1f, 0.0f, 1.0f}},
        {OCT_DTYPE_F32, f32, {1.5f, -0.1f, 1e-45f, 3e38f}},
        {OCT_DTYPE_F16, f16, {1.5f, -0x1.998p-4f, 0x1p-24f, 65504.0f}},
        {OCT_DTYPE_BF16, bf16, {1.5f, -0x1.9ap-4f, 0x1p-133f, 0x1.fep127f}},
        {OCT_DTYPE_F8_E4M3, e4m3, {1.5f, -0x1.ap-4f, 0x1p-9f, 448.0f}},
        {OCT_DTYPE_F8_E5M2, e5m2, {1.5f, -0x1.8p-4f, 0x1p-16f, 57344.0f}},
        {OCT_DTYPE_I8, i8, {0, 1, -128, 127}},
        {OCT_DTYPE_U8, u8, {0, 1, 128, 255}},
        {OCT_DTYPE_I32, i32, {0, -1, 16777216.0f, -0x1p31f}},
        {OCT_DTYPE_I64, i64, {0, -1, 16777220.0f, 0x1p63f}},
    };
    assert_int_equal(sizeof rows / sizeof *rows, OCT_DTYPE_COUNT);
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const oct_tensor_source tensor = {
            .name = "a", .dtype = rows[i].dtype, .rank = 1, .shape = {4}, .data = rows[i].data};
        write_file(directory, &tensor, 1);
        oct_checkpoint *checkpoint = files_open(directory);
        const oct_tensor *found = oct_checkpoint_find(checkpoint, "a");
        float values[4];
        uint64_t raw[4];
        assert_int_equal(found->dtype, rows[i].dtype);
        assert_int_equal(found->size, 4 * oct_dtype_size(rows[i].dtype));
        assert_int_equal(oct_checkpoint_read(checkpoint, found, values), OCTET_OK);
        for (size_t j = 0; j < 4; j++)
            if (values[j] != rows[i].values[j])
                fail_msg("%s element %zu: expected %a, found %a", oct_dtype_name(rows[i].dtype), j,
                         (double)rows[i].values[j], (double)values[j]);
        assert_int_equal(oct_checkpoint_read_raw(checkpoint, found, raw), OCTET_OK);
        assert_memory_equal(raw, rows[i].data, found->size);
        oct_checkpoint_close(checkpoint);
    }
    assert_string_equal(oct_dtype_name(OCT_DTYPE_COUNT), "unknown");
    assert_int_equal(oct_dtype_size(OCT_DTYPE_COUNT), 0);
    files_drop(directory);
}

static octet_status count_up(const oct_tensor_source *tensor, uint64_t first, size_t count, void *bytes) {
    (void)tensor;
    for (size_t i = 0; i < count; i++) ((float *)bytes)[i] = (float)(first + i);
    return OCTET_OK;
}

/* More than one piece, and a last piece that is not whole. */
static void test_long_tensor(void **state) {
    (void)state;
    enum { COUNT = 100003 };
    char *directory = files_directory();
    const oct_tensor_source tensor = {
        .name = "a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {COUNT}, .produce = count_up};
    write_file(directory, &tensor, 1);
    oct_checkpoint *checkpoint = files_open(directory);
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    assert_int_equal(oct_checkpoint_read(checkpoint, oct_checkpoint_find(checkpoint, "a"), values), OCTET_OK);
    for (int i = 0; i < COUNT; i++) assert_true(values[i] == (float)i);
    free(values);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

static void test_not_finite(void **state) {
    (void)state;
    static const float nan_at_5[8] = {0, 1, 2, 3, 4, NAN, 6, 7}, minus_infinity = -INFINITY;
    static const double too_large[2] = {1, 1e39};
    static const uint8_t nan8[3] = {0, 0xff, 0};
    static const struct {
        oct_tensor_source tensor;
        const char *fact;
    } rows[] = {
        {{"conv.weight", OCT_DTYPE_F32, 3, {2, 1, 4}, nan_at_5, NULL, NULL},
         SINGLE ": tensor conv.weight: element 5 ([1, 0, 1]) is nan, expected a finite number"},
        {{"scalar", OCT_DTYPE_F32, 0, {0}, &minus_infinity, NULL, NULL},
         SINGLE ": tensor scalar: element 0 is -infinite, expected a finite number"},
        {{"wide", OCT_DTYPE_F64, 1, {2}, too_large, NULL, NULL},
         SINGLE ": tensor wide: element 1 ([1]) is infinite, expected a finite number"},
        {{"eight", OCT_DTYPE_F8_E4M3, 1, {3}, nan8, NULL, NULL},
         SINGLE ": tensor eight: element 1 ([1]) is nan, expected a finite number"},
    };
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(directory, &rows[i].tensor, 1);
        oct_checkpoint *checkpoint = files_open(directory);
        float values[8];
        assert_int_equal(oct_checkpoint_read(checkpoint, oct_checkpoint_tensor(checkpoint, 0), values),
                         OCTET_BAD_FORMAT);
        assert_string_equal(files_fact(directory), rows[i].fact);
        oct_checkpoint_close(checkpoint);
    }
    files_drop(directory);
}

/* A file that shrank after it was opened. */
static void test_shrunk_file(void **state) {
    (void)state;
    char *directory = files_directory();
    const oct_tensor_source tensor = {
        .name = "a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {1000}, .produce = count_up};
    write_file(directory, &tensor, 1);
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(truncate(support_join(directory, SINGLE), 1000), 0);
    float values[1000];
    char hex[OCT_SHA256_HEX];
    assert_int_not_equal(oct_checkpoint_read(checkpoint, oct_checkpoint_tensor(checkpoint, 0), values), OCTET_OK);
    assert_int_not_equal(oct_checkpoint_read_raw(checkpoint, oct_checkpoint_tensor(checkpoint, 0), values), OCTET_OK);
    assert_int_not_equal(oct_checkpoint_fingerprint(checkpoint, hex), OCTET_OK);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

/* ---- names ---- */

static const float one = 1;

static void write_names(const char *directory, const char *const *names, size_t count) {
    oct_tensor_source tensors[4];
    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++)
        tensors[i] =
            (oct_tensor_source){.name = names[i], .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {1}, .data = &one};
    write_file(directory, tensors, count);
}

static void test_prefixes(void **state) {
    (void)state;
    static const struct {
        const char *stored[2], *names[2];
    } rows[] = {
        {{"a.weight", "b"}, {"a.weight", "b"}},
        {{"module.a.weight", "module.b"}, {"a.weight", "b"}},
        {{"_orig_mod.a.weight", "_orig_mod.b"}, {"a.weight", "b"}},
        {{"model.a.weight", "model.b"}, {"a.weight", "b"}},
        {{"module._orig_mod.a.weight", "module._orig_mod.b"}, {"a.weight", "b"}},
        {{"_orig_mod.module.model.a.weight", "_orig_mod.module.model.b"}, {"a.weight", "b"}},
        {{"module.a.weight", "b"}, {"b", "module.a.weight"}},             /* not common */
        {{"module.model.a.weight", "module.b"}, {"b", "model.a.weight"}}, /* the second not common */
        {{"model.", "model.a"}, {"model.", "model.a"}},                   /* nothing would be left */
        {{"models.a", "models.b"}, {"models.a", "models.b"}},             /* not such a prefix */
        {{"vit.a", "vit.b"}, {"vit.a", "vit.b"}},
    };
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_names(directory, rows[i].stored, 2);
        oct_checkpoint *checkpoint = files_open(directory);
        for (size_t j = 0; j < 2; j++) {
            const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, j);
            assert_string_equal(tensor->name, rows[i].names[j]);
            assert_ptr_equal(oct_checkpoint_find(checkpoint, rows[i].names[j]), tensor);
            assert_true(strlen(tensor->stored_name) >= strlen(tensor->name));
        }
        assert_null(oct_checkpoint_tensor(checkpoint, 2));
        oct_checkpoint_close(checkpoint);
    }
    files_drop(directory);
}

static void test_all_used(void **state) {
    (void)state;
    char *directory = files_directory();
    write_names(directory, (const char *const[]){"a", "bn.num_batches_tracked", "ema", "z"}, 4);
    oct_checkpoint *checkpoint = files_open(directory);
    oct_checkpoint_find(checkpoint, "a")->used = true;
    assert_int_equal(oct_checkpoint_all_used(checkpoint), OCTET_MISMATCH);
    assert_string_equal(files_fact(directory), SINGLE ": tensor ema has no place in this architecture");
    assert_string_equal(oct_error_detail(), "and 1 more");
    oct_checkpoint_find(checkpoint, "ema")->used = true;
    assert_int_equal(oct_checkpoint_all_used(checkpoint), OCTET_MISMATCH);
    assert_string_equal(oct_error_detail(), "");
    oct_checkpoint_find(checkpoint, "z")->used = true;
    assert_int_equal(oct_checkpoint_all_used(checkpoint), OCTET_OK);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

/* ---- fingerprints ---- */

static void append(uint8_t *bytes, size_t *size, const void *data, size_t length) {
    memcpy(bytes + *size, data, length);
    *size += length;
}

static void append_number(uint8_t *bytes, size_t *size, uint64_t value) {
    for (int i = 0; i < 8; i++) bytes[(*size)++] = (uint8_t)(value >> (8 * i));
}

/* The hashed bytes written out by hand, as checkpoint.h specifies them. */
static void test_fingerprint_by_hand(void **state) {
    (void)state;
    static const uint16_t half[2] = {0x3c00, 0x4000};
    const oct_tensor_source tensors[2] = {
        {.name = "module.b", .dtype = OCT_DTYPE_F32, .data = &one},
        {.name = "module.a", .dtype = OCT_DTYPE_F16, .rank = 2, .shape = {1, 2}, .data = half}};
    uint8_t bytes[512], digest[OCT_SHA256_SIZE];
    size_t size = 0;
    append(bytes, &size, "octet checkpoint fingerprint 1\n", 32);
    append_number(bytes, &size, 2);
    append_number(bytes, &size, 1);
    append(bytes, &size, "a", 1);
    append_number(bytes, &size, 3);
    append(bytes, &size, "F16", 3);
    append_number(bytes, &size, 2);
    append_number(bytes, &size, 1);
    append_number(bytes, &size, 2);
    append_number(bytes, &size, 4);
    append(bytes, &size, "\x00\x3c\x00\x40", 4);
    append_number(bytes, &size, 1);
    append(bytes, &size, "b", 1);
    append_number(bytes, &size, 3);
    append(bytes, &size, "F32", 3);
    append_number(bytes, &size, 0);
    append_number(bytes, &size, 4);
    append(bytes, &size, "\x00\x00\x80\x3f", 4);
    char expected[OCT_SHA256_HEX], found[OCT_SHA256_HEX];
    assert_int_equal(oct_sha256_of(bytes, size, digest), OCTET_OK);
    oct_sha256_hex(digest, expected);
    char *directory = files_directory();
    write_file(directory, tensors, 2);
    files_fingerprint(directory, found);
    assert_string_equal(expected, found);
    files_drop(directory);
}

static void test_fingerprints_differ(void **state) {
    (void)state;
    static const float two[2] = {1, 2}, other[2] = {1, 3};
    static const uint16_t two16[2] = {0x3c00, 0x4000};
    const oct_tensor_source same[] = {
        {.name = "a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = two},
        {.name = "module.a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = two},
        {.name = "model.module.a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = two}};
    const oct_tensor_source different[] = {
        {.name = "b", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = two},
        {.name = "a", .dtype = OCT_DTYPE_F16, .rank = 1, .shape = {2}, .data = two16},
        {.name = "a", .dtype = OCT_DTYPE_F32, .rank = 2, .shape = {1, 2}, .data = two},
        {.name = "a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = other},
        {.name = "a", .dtype = OCT_DTYPE_I32, .rank = 1, .shape = {2}, .data = two},
    };
    char *directory = files_directory(), first[OCT_SHA256_HEX], found[OCT_SHA256_HEX];
    write_file(directory, &same[0], 1);
    files_fingerprint(directory, first);
    for (size_t i = 1; i < sizeof same / sizeof *same; i++) {
        write_file(directory, &same[i], 1);
        files_fingerprint(directory, found);
        assert_string_equal(first, found);
    }
    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        write_file(directory, &different[i], 1);
        files_fingerprint(directory, found);
        assert_string_not_equal(first, found);
    }
    files_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_long_tensor),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_shrunk_file),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_all_used),
        cmocka_unit_test(test_fingerprint_by_hand),
        cmocka_unit_test(test_fingerprints_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
