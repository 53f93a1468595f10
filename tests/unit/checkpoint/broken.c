/* SPDX-License-Identifier: Apache-2.0 */
/* Broken safetensors files: one defect an entry, one writer, one expected message. */
#include "unit/checkpoint/files.h"

#include "base/alloc.h"

typedef struct broken_file {
    const char *name; /* of the defect */
    const char *header;
    size_t data; /* bytes behind the header */
    octet_status status;
    const char *fact; /* a star at its end stands for words of the JSON library */
} broken_file;

#define FILE_NAME "model.safetensors"
#define TENSOR(name, dtype, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"
#define GOOD TENSOR("a", "F32", "[2]", 0, 8)

static const broken_file broken_files[] = {
    {"empty header", "", 0, OCTET_BAD_FORMAT, FILE_NAME ": the header does not begin with {"},
    {"space before", " {" GOOD "}", 8, OCTET_BAD_FORMAT, FILE_NAME ": the header does not begin with {"},
    {"a list", "[1]", 0, OCTET_BAD_FORMAT, FILE_NAME ": the header does not begin with {"},
    {"no tensors", "{}", 0, OCTET_BAD_FORMAT, FILE_NAME ": holds no tensors"},
    {"only metadata", "{\"__metadata__\":{\"format\":\"pt\"}}", 0, OCTET_BAD_FORMAT, FILE_NAME ": holds no tensors"},
    {"metadata list", "{\"__metadata__\":[]," GOOD "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: __metadata__: expected a map of strings, found a list"},
    {"metadata number", "{\"__metadata__\":{\"a\":1}," GOOD "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: __metadata__: a: expected a string, found an integer"},
    {"tensor is a list", "{\"a\":[]}", 0, OCTET_BAD_FORMAT, FILE_NAME ":1: tensor a: expected a map, found a list"},
    {"empty name", "{" TENSOR("", "F32", "[2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: a tensor's name is empty"},
    {"control character", "{" TENSOR("a\\u001b[1m", "F32", "[2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: a tensor's name holds the control character 0x1b"},
    {"unknown key", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: unknown key x"},
    {"no dtype", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: dtype is missing"},
    {"dtype number", "{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: dtype: expected a string, found an integer"},
    {"dtype BOOL", "{" TENSOR("a", "BOOL", "[2]", 0, 2) "}", 2, OCTET_UNSUPPORTED,
     FILE_NAME ": tensor a: dtype BOOL is not supported"},
    {"dtype U16", "{" TENSOR("a", "U16", "[2]", 0, 4) "}", 4, OCTET_UNSUPPORTED,
     FILE_NAME ": tensor a: dtype U16 is not supported"},
    {"dtype in lower case", "{" TENSOR("a", "f32", "[2]", 0, 8) "}", 8, OCTET_UNSUPPORTED,
     FILE_NAME ": tensor a: dtype f32 is not supported"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape is missing"},
    {"shape number", "{" TENSOR("a", "F32", "2", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape: expected a list, found an integer"},
    {"shape negative", "{" TENSOR("a", "F32", "[-2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape: -2 is negative"},
    {"shape negative twice", "{" TENSOR("a", "F32", "[-1,-2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape: -1 is negative"},
    {"shape real", "{" TENSOR("a", "F32", "[2.0]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape: expected integers, found a number"},
    {"shape string", "{" TENSOR("a", "F32", "[\"2\"]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: shape: expected integers, found a string"},
    {"shape beyond 64 bits", "{" TENSOR("a", "F32", "[18446744073709551618]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: column 49: *"},
    {"product overflows", "{" TENSOR("a", "F32", "[4294967296,4294967298]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: the product of its shape overflows"},
    {"bytes overflow", "{" TENSOR("a", "F32", "[4611686018427387906]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: the product of its shape overflows"},
    {"nine dimensions", "{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}", 8, OCTET_LIMIT,
     FILE_NAME ": tensor a: 9 dimensions, the limit is 8"},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data_offsets is missing"},
    {"one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data_offsets: expected 2 numbers, found 1"},
    {"three offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data_offsets: expected 2 numbers, found 3"},
    {"offset negative", "{" TENSOR("a", "F32", "[2]", -8, 0) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data_offsets: -8 is negative"},
    {"offset real", "{" TENSOR("a", "F32", "[2]", 0, 8.0) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data_offsets: expected integers, found a number"},
    {"begin after end", "{" TENSOR("a", "F32", "[2]", 8, 0) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data begins at 8, after its end at 0"},
    {"end after the file", "{" TENSOR("a", "F32", "[2]", 0, 8) "}", 7, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: data ends at 8, the file holds 7 bytes of data"},
    {"end far after the file", "{" TENSOR("a", "F32", "[2]", 9223372036854775799, 9223372036854775807) "}", 8,
     OCTET_BAD_FORMAT, FILE_NAME ":1: tensor a: data ends at 9223372036854775807, the file holds 8 bytes of data"},
    {"too few bytes", "{" TENSOR("a", "F32", "[3]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: expected 12 bytes for its shape in F32, found 8"},
    {"too many bytes", "{" TENSOR("a", "F16", "[2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: tensor a: expected 4 bytes for its shape in F16, found 8"},
    {"overlap", "{" GOOD "," TENSOR("b", "F32", "[2]", 4, 12) "}", 12, OCTET_BAD_FORMAT,
     FILE_NAME ": tensors a and b overlap"},
    {"same bytes", "{" GOOD "," TENSOR("b", "F32", "[2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ": tensors a and b overlap"},
    {"hole at the start", "{" TENSOR("a", "F32", "[2]", 4, 12) "}", 12, OCTET_BAD_FORMAT,
     FILE_NAME ": 4 bytes before tensor a belong to no tensor"},
    {"hole between", "{" GOOD "," TENSOR("b", "F32", "[1]", 9, 13) "}", 13, OCTET_BAD_FORMAT,
     FILE_NAME ": 1 bytes before tensor b belong to no tensor"},
    {"trailing bytes", "{" GOOD "}", 9, OCTET_BAD_FORMAT, FILE_NAME ": 1 bytes after the last tensor"},
    {"duplicate name", "{" GOOD "," TENSOR("a", "F32", "[2]", 8, 16) "}", 16, OCTET_BAD_FORMAT,
     FILE_NAME ":1: column 57: duplicate object key*"},
    {"not JSON", "{" GOOD ",}", 8, OCTET_BAD_FORMAT, FILE_NAME ":1: column 55: *"},
    {"text after the header", "{" GOOD "} x", 8, OCTET_BAD_FORMAT, FILE_NAME ":1: column 56: *"},
    {"not UTF-8", "{" TENSOR("a\xff", "F32", "[2]", 0, 8) "}", 8, OCTET_BAD_FORMAT,
     FILE_NAME ":1: byte 0xff is not UTF-8"},
};

static bool same_fact(const char *expected, const char *found) {
    size_t length = strlen(expected);
    if (length > 0 && expected[length - 1] == '*') return strncmp(expected, found, length - 1) == 0;
    return strcmp(expected, found) == 0;
}

static void test_broken_files(void **state) {
    (void)state;
    char *directory = files_directory();
    const char *path = support_join(directory, FILE_NAME);
    size_t right = 0;
    for (size_t i = 0; i < sizeof broken_files / sizeof *broken_files; i++) {
        const broken_file *b = &broken_files[i];
        files_write_raw(path, b->header, strlen(b->header), b->data);
        oct_checkpoint *checkpoint = NULL;
        octet_status status = oct_checkpoint_open(&checkpoint, directory);
        if (status != b->status || !same_fact(b->fact, files_fact(directory)))
            print_error("%s: expected %s \"%s\", found %s \"%s\"\n", b->name, oct_status_name(b->status), b->fact,
                        oct_status_name(status), files_fact(directory));
        else
            right++;
        assert_null(checkpoint);
    }
    files_drop(directory);
    assert_int_equal(right, sizeof broken_files / sizeof *broken_files);
}

/* The eight bytes before the header. */
static void test_broken_lengths(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint8_t bytes[16];
        size_t size;
        octet_status status;
        const char *fact;
    } files[] = {
        {"empty file", {0}, 0, OCTET_BAD_FORMAT, FILE_NAME ": 0 bytes, too short for a safetensors file"},
        {"seven bytes", {0}, 7, OCTET_BAD_FORMAT, FILE_NAME ": 7 bytes, too short for a safetensors file"},
        {"length 0", {0}, 8, OCTET_BAD_FORMAT, FILE_NAME ": the header does not begin with {"},
        {"length beyond the file", {9}, 16, OCTET_BAD_FORMAT, FILE_NAME ": header of 9 bytes, the file holds 8"},
        {"length 100,000,001",
         {0x01, 0xe1, 0xf5, 0x05},
         16,
         OCTET_LIMIT,
         FILE_NAME ": header of 100000001 bytes, the limit is 100000000"},
        {"length 100,000,000",
         {0x00, 0xe1, 0xf5, 0x05},
         16,
         OCTET_BAD_FORMAT,
         FILE_NAME ": header of 100000000 bytes, the file holds 8"},
        {"length 2^64 - 1",
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         16,
         OCTET_LIMIT,
         FILE_NAME ": header of 18446744073709551615 bytes, the limit is 100000000"},
        {"a zip archive", "PK\003\004\024\000\010\010", 16, OCTET_LIMIT,
         FILE_NAME ": header of 578712638083779408 bytes, the limit is 100000000"},
    };
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        support_write_file(support_join(directory, FILE_NAME), files[i].bytes, files[i].size);
        print_message("%s\n", files[i].name);
        files_refused(directory, files[i].status, files[i].fact);
    }
    files_drop(directory);
}

static void test_deep_header(void **state) {
    (void)state;
    char *directory = files_directory();
    char deep[1000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    files_write_raw(support_join(directory, FILE_NAME), deep, sizeof deep, 0);
    files_refused(directory, OCTET_LIMIT, FILE_NAME ":1: nested deeper than 64");
    files_drop(directory);
}

/* What looks odd and is right. */
static void test_odd_and_right(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data, tensors;
    } files[] = {
        {"{" GOOD "}", 8, 1},
        {"{" GOOD "}   ", 8, 1},                                    /* padded */
        {"{\n" GOOD "\n}", 8, 1},                                   /* with lines */
        {"{" TENSOR("z", "I64", "[]", 0, 8) "}", 8, 1},             /* a scalar */
        {"{" TENSOR("z", "F32", "[0,7]", 0, 0) "," GOOD "}", 8, 2}, /* nothing in it */
        {"{" TENSOR("b", "U8", "[1]", 8, 9) "," GOOD "}", 9, 2},    /* not in the order of the data */
        {"{" TENSOR("a", "U8", "[1]", 0, 1) "," TENSOR("b", "F32", "[1]", 1, 5) "}", 5, 2}, /* not aligned */
        {"{\"__metadata__\":{}," GOOD "}", 8, 1},
    };
    char *directory = files_directory();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        files_write_raw(support_join(directory, FILE_NAME), files[i].header, strlen(files[i].header), files[i].data);
        oct_checkpoint *checkpoint = files_open(directory);
        assert_int_equal(oct_checkpoint_tensor_count(checkpoint), files[i].tensors);
        oct_checkpoint_close(checkpoint);
    }
    files_drop(directory);
}

/* Every truncation, and bits flipped at random, of a small directory: right or refused, never more. */
static void test_truncations_and_flips(void **state) {
    (void)state;
    char *directory = files_directory();
    const char *path = support_join(directory, FILE_NAME);
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"}," GOOD "," TENSOR("b.c", "F16", "[2,1]", 8, 12) "}  ";
    files_write_raw(path, header, strlen(header), 12);
    size_t size = 0;
    char *good = support_read_text(path, &size);
    assert_non_null(good);
    oct_checkpoint *checkpoint = NULL;
    for (size_t cut = 0; cut < size; cut++) {
        support_write_file(path, good, cut);
        assert_int_not_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_OK);
        assert_null(checkpoint);
    }
    uint64_t random = 1;
    for (int round = 0; round < 3000; round++) {
        char bytes[512];
        assert_true(size <= sizeof bytes);
        memcpy(bytes, good, size);
        for (int flips = 0; flips <= round % 3; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t bit = (size_t)(random >> 33) % (8 * size);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
        }
        support_write_file(path, bytes, size);
        if (oct_checkpoint_open(&checkpoint, directory) != OCTET_OK) continue;
        for (size_t i = 0; i < oct_checkpoint_tensor_count(checkpoint); i++) {
            float values[64];
            const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
            assert_true(tensor->count <= 64);
            (void)oct_checkpoint_read(checkpoint, tensor, values);
        }
        oct_checkpoint_close(checkpoint);
    }
    free(good);
    files_drop(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_files),          cmocka_unit_test(test_broken_lengths),
        cmocka_unit_test(test_deep_header),           cmocka_unit_test(test_odd_and_right),
        cmocka_unit_test(test_truncations_and_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
