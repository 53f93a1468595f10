/* SPDX-License-Identifier: Apache-2.0 */
/* The N-th allocation fails, for every N, once and for good: opening, reading and hashing fail with a status and leave
 * nothing behind. */
#include "unit/checkpoint/files.h"

#include "base/alloc.h"

#define SHARD_A "model-00001-of-00002.safetensors"
#define SHARD_B "model-00002-of-00002.safetensors"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static const float values[4] = {1, 2, 3, 4};

static char *sharded_directory(void) {
    char *directory = files_directory();
    const oct_tensor_source a = {.name = "module.a", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {4}, .data = values};
    const oct_tensor_source b = {
        .name = "module.b", .dtype = OCT_DTYPE_F32, .rank = 2, .shape = {2, 2}, .data = values};
    assert_int_equal(oct_safetensors_write(support_join(directory, SHARD_A), &a, 1), OCTET_OK);
    assert_int_equal(oct_safetensors_write(support_join(directory, SHARD_B), &b, 1), OCTET_OK);
    support_write_text(support_join(directory, "model.safetensors.index.json"),
                       "{\"metadata\": {\"total_size\": 1},\n\"weight_map\": {\"module.a\": \"" SHARD_A
                       "\", \"module.b\": \"" SHARD_B "\"}}");
    support_write_text(support_join(directory, "preprocessor_config.json"), "{\"size\": {\"height\": 4}}");
    return directory;
}

/* Opens, reads every tensor, hashes, closes. */
static octet_status use(const char *place) {
    oct_checkpoint *checkpoint = NULL;
    char hex[OCT_SHA256_HEX];
    octet_status status = oct_checkpoint_open(&checkpoint, place);
    if (status != OCTET_OK) {
        assert_null(checkpoint);
        return status;
    }
    for (size_t i = 0; status == OCTET_OK && i < oct_checkpoint_tensor_count(checkpoint); i++) {
        float read[4];
        status = oct_checkpoint_read(checkpoint, oct_checkpoint_tensor(checkpoint, i), read);
    }
    if (status == OCTET_OK) status = oct_checkpoint_fingerprint(checkpoint, hex);
    oct_checkpoint_close(checkpoint);
    return status;
}

/* With the fault in the first n allocations every outcome is OUT_OF_MEMORY; without it, `expected`. */
static void every_fault(const char *place, octet_status expected) {
    for (int forever = 0; forever < 2; forever++) {
        bool met = true;
        for (uint64_t n = 1; met; n++) {
            assert_true(n < 2000);
            oct_alloc_fail_at(n, forever != 0);
            octet_status status = use(place);
            met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            if (status != (met ? OCTET_OUT_OF_MEMORY : expected))
                fail_msg("allocation %d, %s: %s: %s", (int)n, forever ? "for good" : "once", oct_status_name(status),
                         oct_error_text());
            assert_int_equal(oct_alloc_live(), 0);
        }
    }
}

static void test_sharded(void **state) {
    (void)state;
    char *directory = sharded_directory();
    every_fault(directory, OCTET_OK);
    files_drop(directory);
}

static void test_hub_id(void **state) {
    (void)state;
    char *root = support_temporary_directory(), *directory = sharded_directory();
    mkdir(support_join(root, "models--a--b"), 0777);
    mkdir(support_join(root, "models--a--b/snapshots"), 0777);
    mkdir(support_join(root, "models--a--b/refs"), 0777);
    assert_int_equal(symlink(directory, support_join(root, "models--a--b/snapshots/" COMMIT)), 0);
    support_write_text(support_join(root, "models--a--b/refs/main"), COMMIT "\n");
    setenv("HF_HUB_CACHE", root, 1);
    every_fault("a/b", OCTET_OK);
    every_fault("a/b@0123456", OCTET_OK);
    every_fault("a/b@none", OCTET_NOT_FOUND);
    every_fault("a/c", OCTET_NOT_FOUND);
    files_drop(root);
    files_drop(directory);
}

static void test_failures(void **state) {
    (void)state;
    char *directory = sharded_directory();
    unlink(support_join(directory, SHARD_B));
    every_fault(directory, OCTET_NOT_FOUND);
    unlink(support_join(directory, "model.safetensors.index.json"));
    every_fault(directory, OCTET_NOT_FOUND); /* a .safetensors file under another name */
    unlink(support_join(directory, SHARD_A));
    support_write_text(support_join(directory, "pytorch_model.bin"), "");
    every_fault(directory, OCTET_UNSUPPORTED);
    files_write_raw(support_join(directory, "model.safetensors"), "{\"a\":{}}", 8, 0);
    every_fault(directory, OCTET_BAD_FORMAT);
    files_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharded),
        cmocka_unit_test(test_hub_id),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
