/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: the reference's bytes, arguments it refuses, writes and allocations that fail. */
#include "unit/checkpoint/files.h"

#include "base/alloc.h"
#include "base/file.h"

static const double eight[2] = {1, 2};
static const float four[2] = {3, 4};
static const uint16_t two[3] = {5, 6, 7};
static const uint8_t single[5] = {8, 9, 10, 11, 12};

/* All dtypes, names out of order, a scalar, an empty tensor, characters that JSON escapes. */
static const oct_tensor_source all[] = {
    {.name = "u8", .dtype = OCT_DTYPE_U8, .rank = 1, .shape = {5}, .data = single},
    {.name = "i8", .dtype = OCT_DTYPE_I8, .rank = 1, .shape = {5}, .data = single},
    {.name = "e5m2", .dtype = OCT_DTYPE_F8_E5M2, .rank = 1, .shape = {3}, .data = single},
    {.name = "e4m3", .dtype = OCT_DTYPE_F8_E4M3, .rank = 1, .shape = {3}, .data = single},
    {.name = "f16", .dtype = OCT_DTYPE_F16, .rank = 1, .shape = {3}, .data = two},
    {.name = "bf16", .dtype = OCT_DTYPE_BF16, .rank = 2, .shape = {3, 1}, .data = two},
    {.name = "i32", .dtype = OCT_DTYPE_I32, .rank = 1, .shape = {2}, .data = four},
    {.name = "f32.b", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = four},
    {.name = "f32.a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {2}, .data = four},
    {.name = "f64", .dtype = OCT_DTYPE_F64, .rank = 1, .shape = {2}, .data = eight},
    {.name = "i64", .dtype = OCT_DTYPE_I64, .data = eight},
    {.name = "empty", .dtype = OCT_DTYPE_F32, .rank = 2, .shape = {0, 4}},
    {.name = "quote\" back\\slash \xc3\xa9", .dtype = OCT_DTYPE_U8, .rank = 1, .shape = {1}, .data = single},
};
#define ALL_COUNT (sizeof all / sizeof *all)

/* Made by safetensors 0.8.0 (Rust, through Python) of the same tensors. */
static const char reference_header[] =
    "{\"i64\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"f64\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]},"
    "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[24,24]},"
    "\"f32.a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
    "\"f32.b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]},"
    "\"i32\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[40,48]},"
    "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[3,1],\"data_offsets\":[48,54]},"
    "\"f16\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[54,60]},"
    "\"e4m3\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[60,63]},"
    "\"e5m2\":{\"dtype\":\"F8_E5M2\",\"shape\":[3],\"data_offsets\":[63,66]},"
    "\"i8\":{\"dtype\":\"I8\",\"shape\":[5],\"data_offsets\":[66,71]},"
    "\"quote\\\" back\\\\slash \xc3\xa9\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[71,72]},"
    "\"u8\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[72,77]}}";

static void test_reference_layout(void **state) {
    (void)state;
    char *directory = files_directory();
    const char *path = support_join(directory, "model.safetensors");
    assert_int_equal(oct_safetensors_write(path, all, ALL_COUNT), OCTET_OK);
    size_t size = 0, length = strlen(reference_header), padded = (length + 7) / 8 * 8;
    char *bytes = support_read_text(path, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 8 + padded + 77);
    for (size_t i = 0; i < 8; i++) assert_int_equal((uint8_t)bytes[i], (uint8_t)((uint64_t)padded >> (8 * i)));
    assert_memory_equal(bytes + 8, reference_header, length);
    for (size_t i = length; i < padded; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded + 8, eight, sizeof eight);
    assert_memory_equal(bytes + 8 + padded + 72, single, sizeof single);
    free(bytes);
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_tensor_count(checkpoint), ALL_COUNT);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

static octet_status refuse(const oct_tensor_source *tensor, uint64_t first, size_t count, void *bytes) {
    (void)first, (void)count, (void)bytes;
    return oct_fail(OCTET_CANCELLED, "tensor %s: no more", tensor->name);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        oct_tensor_source tensors[2];
        octet_status status;
        const char *fact;
    } rows[] = {
        {{{.name = "", .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "\"\" is not a tensor's name"},
        {{{.name = "__metadata__", .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "\"__metadata__\" is not a tensor's name"},
        {{{.name = "a", .data = four}, {.name = "a", .data = four}}, OCTET_INVALID_ARGUMENT, "tensor a is given twice"},
        {{{.name = "a", .rank = 1, .shape = {-1}, .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "tensor a: dtype or shape cannot be written"},
        {{{.name = "a", .rank = 9, .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "tensor a: dtype or shape cannot be written"},
        {{{.name = "a", .rank = 2, .shape = {INT64_MAX, 3}, .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "tensor a: dtype or shape cannot be written"},
        {{{.name = "a", .dtype = OCT_DTYPE_COUNT, .data = four}, {.name = "b", .data = four}},
         OCTET_INVALID_ARGUMENT,
         "tensor a: dtype or shape cannot be written"},
        {{{.name = "a"}, {.name = "b", .data = four}}, OCTET_INVALID_ARGUMENT, "tensor a: no data"},
        {{{.name = "a", .produce = refuse}, {.name = "b", .data = four}}, OCTET_CANCELLED, "tensor a: no more"},
    };
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        octet_status status = oct_safetensors_write(support_join(directory, "model.safetensors"), rows[i].tensors, 2);
        assert_string_equal(oct_error_fact(), rows[i].fact);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(support_count_entries(directory), 1); /* config.json: nothing half written stays */
    }
    files_drop(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

/* Whatever allocation or write fails, a whole file stays: the old one or the new one. */
static void test_faults(void **state) {
    (void)state;
    char *directory = files_directory();
    const char *path = support_join(directory, "model.safetensors");
    size_t whole = 0;
    assert_int_equal(oct_safetensors_write(path, all, ALL_COUNT), OCTET_OK);
    free(support_read_text(path, &whole));
    support_write_text(path, "old");
    for (int kind = 0; kind < 4; kind++) {
        bool met = true;
        for (uint64_t n = 1; met && n < 1000; n++) {
            if (kind < 2)
                oct_alloc_fail_at(n, kind == 1);
            else
                oct_file_fail_at(n, kind == 3);
            octet_status status = oct_safetensors_write(path, all, ALL_COUNT);
            met = kind < 2 ? oct_alloc_fault_met() : oct_file_fault_met();
            oct_alloc_fail_at(0, false);
            oct_file_fail_at(0, false);
            assert_int_equal(oct_alloc_live(), 0);
            size_t size = 0;
            char *text = support_read_text(path, &size);
            assert_non_null(text);
            /* the new file, whole, may stand after a failure too: where only the directory could not be synced */
            bool old = strcmp(text, "old") == 0;
            assert_true(old ? status != OCTET_OK : size == whole);
            free(text);
            if (!old) support_write_text(path, "old");
            assert_int_equal(support_count_entries(directory), 2);
        }
        assert_false(met);
    }
    files_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_layout),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
