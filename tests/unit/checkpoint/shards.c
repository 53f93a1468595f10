/* SPDX-License-Identifier: Apache-2.0 */
/* Sharded checkpoints: what index and files may disagree about, and what a directory may lack. */
#include "unit/checkpoint/files.h"

#include <math.h>

#include "base/alloc.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"
#define SHARD_A "model-00001-of-00002.safetensors"
#define SHARD_B "model-00002-of-00002.safetensors"

static const float ones[4] = {1, 2, 3, 4}, zeros[4];

static void write_tensors(const char *path, const char *const *names, size_t count, const float *data) {
    oct_tensor_source tensors[4];
    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++)
        tensors[i] =
            (oct_tensor_source){.name = names[i], .dtype = OCT_DTYPE_F32, .rank = 2, .shape = {2, 2}, .data = data};
    if (oct_safetensors_write(path, tensors, count) != OCTET_OK) fail_msg("%s", oct_error_text());
}

static void write_index(const char *directory, const char *weight_map, int total_size) {
    char text[2048];
    snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": %d},\n\"weight_map\": {\n%s}}\n", total_size,
             weight_map);
    support_write_text(support_join(directory, INDEX), text);
}

#define MAP(a, b, c, d) "\"a\": \"" a "\",\n\"b.w\": \"" b "\",\n\"c\": \"" c "\",\n\"d\": \"" d "\"\n"
#define GOOD_MAP MAP(SHARD_A, SHARD_B, SHARD_A, SHARD_B)

/* a and c in the first shard, b.w and d in the second */
static char *good_directory(void) {
    char *directory = files_directory();
    write_tensors(support_join(directory, SHARD_A), (const char *const[]){"a", "c"}, 2, ones);
    write_tensors(support_join(directory, SHARD_B), (const char *const[]){"d", "b.w"}, 2, ones);
    write_index(directory, GOOD_MAP, 64);
    return directory;
}

static void test_good(void **state) {
    (void)state;
    char *directory = good_directory();
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_warning_count(checkpoint), 0);
    assert_int_equal(oct_checkpoint_tensor_count(checkpoint), 4);
    static const char *const names[] = {"a", "b.w", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        float values[4];
        assert_string_equal(tensor->name, names[i]);
        assert_ptr_equal(oct_checkpoint_find(checkpoint, names[i]), tensor);
        assert_int_equal(oct_checkpoint_read(checkpoint, tensor, values), OCTET_OK);
        assert_memory_equal(values, ones, sizeof ones);
    }
    assert_non_null(strstr(oct_checkpoint_find(checkpoint, "d")->file, SHARD_B));
    assert_null(oct_checkpoint_find(checkpoint, "e"));
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

static void test_single_file_has_the_same_fingerprint(void **state) {
    (void)state;
    char sharded[OCT_SHA256_HEX], single[OCT_SHA256_HEX];
    char *directory = good_directory();
    files_fingerprint(directory, sharded);
    files_drop(directory);
    directory = files_directory();
    write_tensors(support_join(directory, SINGLE), (const char *const[]){"d", "a", "c", "b.w"}, 4, ones);
    files_fingerprint(directory, single);
    assert_string_equal(sharded, single);
    files_drop(directory);
}

static void test_missing_shard(void **state) {
    (void)state;
    char *directory = good_directory();
    unlink(support_join(directory, SHARD_B));
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_NOT_FOUND);
    assert_non_null(strstr(oct_error_fact(), SHARD_B));
    files_drop(directory);
}

/* The upper-case file is not the shard the index names; and an upper-case name in the index is no shard's. */
static void test_shard_of_other_case(void **state) {
    (void)state;
    char *directory = good_directory();
    rename(support_join(directory, SHARD_B), support_join(directory, "model-00002-of-00002.SAFETENSORS"));
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_NOT_FOUND);
    assert_non_null(strstr(oct_error_fact(), SHARD_B));
    write_index(directory, MAP(SHARD_A, "model-00002-of-00002.SAFETENSORS", SHARD_A, SHARD_B), 64);
    files_refused(directory, OCTET_BAD_FORMAT,
                  INDEX
                  ":4: tensor b.w: shard model-00002-of-00002.SAFETENSORS: expected a name that ends in .safetensors");
    files_drop(directory);
}

static void test_index_and_shards_disagree(void **state) {
    (void)state;
    char *directory = good_directory();
    write_index(directory, MAP(SHARD_B, SHARD_B, SHARD_A, SHARD_B), 64);
    files_refused(directory, OCTET_MISMATCH, INDEX ":3: tensor a is in shard " SHARD_A ", the index names " SHARD_B);
    write_index(directory, "\"a\": \"" SHARD_A "\", \"c\": \"" SHARD_A "\", \"d\": \"" SHARD_B "\"", 64);
    files_refused(directory, OCTET_MISMATCH, SHARD_B ": tensor b.w is not listed in the index " INDEX);
    write_index(directory, GOOD_MAP ", \"e\": \"" SHARD_B "\"", 64);
    files_refused(directory, OCTET_MISMATCH, INDEX ":7: tensor e is not in shard " SHARD_B ", nor in any other");
    write_index(directory, GOOD_MAP, 64);
    write_tensors(support_join(directory, SHARD_B), (const char *const[]){"d", "b.w", "a"}, 3, zeros);
    files_refused(directory, OCTET_MISMATCH, "tensor a is stored twice: in " SHARD_A " and in " SHARD_B);
    files_drop(directory);
}

static void test_bad_index(void **state) {
    (void)state;
    static const struct {
        const char *text;
        octet_status status;
        const char *fact;
    } indexes[] = {
        {"[]", OCTET_BAD_FORMAT, INDEX ":1: expected a map, found a list"},
        {"{}", OCTET_BAD_FORMAT, INDEX ":1: weight_map is missing"},
        {"{\n\"weight_map\": []}", OCTET_BAD_FORMAT, INDEX ":2: weight_map: expected a map, found a list"},
        {"{\"weight_map\": {}}", OCTET_BAD_FORMAT, INDEX ":1: weight_map is empty"},
        {"{\"weight_map\": {\n\n\"a\": 3}}", OCTET_BAD_FORMAT,
         INDEX ":3: tensor a: expected the name of a shard, found an integer"},
        {"{\"weight_map\": {\"a\": null}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: expected the name of a shard, found null"},
        {"{\"weight_map\": {\"a\": \"/etc/hostname\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard /etc/hostname: expected a path inside the directory, found an absolute one"},
        {"{\"weight_map\": {\"a\": \"../other/model.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard ../other/model.safetensors: expected a path inside the directory, without empty "
               "parts, . and .."},
        {"{\"weight_map\": {\"a\": \"sub/../../model.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard sub/../../model.safetensors: expected a path inside the directory, without empty "
               "parts, . and .."},
        {"{\"weight_map\": {\"a\": \"./model.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard ./model.safetensors: expected a path inside the directory, without empty parts, . "
               "and .."},
        {"{\"weight_map\": {\"a\": \"sub//model.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard sub//model.safetensors: expected a path inside the directory, without empty parts, "
               ". and .."},
        {"{\"weight_map\": {\"a\": \"\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard : expected a path inside the directory, without empty parts, . and .."},
        {"{\"weight_map\": {\"a\": \"sub/\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: shard sub/: expected a path inside the directory, without empty parts, . and .."},
        {"{\"weight_map\": {\"a\": \"..\\\\model.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: the shard's name holds the character 0x5c"},
        {"{\"weight_map\": {\"a\": \"a\\nb.safetensors\"}}", OCTET_BAD_FORMAT,
         INDEX ":1: tensor a: the shard's name holds the character 0x0a"},
        {"{\"weight_map\": {\"a\": \"" SHARD_A "\"}, \"x\": {\"y\": 1, \"y\": 2}}", OCTET_BAD_FORMAT, NULL},
        {"{\"weight_map\": {\"a\": \"x\\u0000.safetensors\"}}", OCTET_BAD_FORMAT, NULL},
    };
    char *directory = good_directory();
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        support_write_text(support_join(directory, INDEX), indexes[i].text);
        oct_checkpoint *checkpoint;
        if (indexes[i].fact != NULL)
            files_refused(directory, indexes[i].status, indexes[i].fact);
        else
            assert_int_equal(oct_checkpoint_open(&checkpoint, directory), indexes[i].status);
    }
    files_drop(directory);
}

static void test_total_size_warns(void **state) {
    (void)state;
    char *directory = good_directory();
    write_index(directory, GOOD_MAP, 65);
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_warning_count(checkpoint), 1);
    assert_non_null(
        strstr(oct_checkpoint_warning(checkpoint, 0), INDEX ": total_size is 65, the tensors hold 64 bytes"));
    assert_string_equal(oct_checkpoint_warning(checkpoint, 1), "");
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

static void test_stray_single_file_wins_and_says_so(void **state) {
    (void)state;
    char *directory = good_directory();
    write_tensors(support_join(directory, SINGLE), (const char *const[]){"a", "b.w", "c", "d"}, 4, zeros);
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_warning_count(checkpoint), 1);
    assert_non_null(
        strstr(oct_checkpoint_warning(checkpoint, 0), "read " SINGLE "; " INDEX " and its shards are ignored"));
    float values[4];
    assert_int_equal(oct_checkpoint_read(checkpoint, oct_checkpoint_find(checkpoint, "a"), values), OCTET_OK);
    assert_memory_equal(values, zeros, sizeof zeros);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

/* Shards may be links, as in the hub's cache, and lie in a folder of the directory. */
static void test_links_and_folders(void **state) {
    (void)state;
    char *directory = good_directory(), *elsewhere = support_temporary_directory();
    mkdir(support_join(directory, "sub"), 0777);
    rename(support_join(directory, SHARD_A), support_join(elsewhere, "blob"));
    assert_int_equal(symlink(support_join(elsewhere, "blob"), support_join(directory, "sub/" SHARD_A)), 0);
    write_index(directory, MAP("sub/" SHARD_A, SHARD_B, "sub/" SHARD_A, SHARD_B), 64);
    oct_checkpoint_close(files_open(directory));
    unlink(support_join(elsewhere, "blob"));
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_NOT_FOUND);
    assert_non_null(strstr(oct_error_fact(), "sub/" SHARD_A));
    files_drop(directory);
    files_drop(elsewhere);
}

/* ---- directories without what is needed ---- */

static void test_no_weights(void **state) {
    (void)state;
    static const struct {
        const char *file;
        octet_status status;
        const char *fact;
    } found[] = {
        {"README.md", OCTET_NOT_FOUND, ": no weights: neither " SINGLE " nor " INDEX},
        {"pytorch_model.bin", OCTET_UNSUPPORTED, ": found pytorch_model.bin, but no " SINGLE},
        {"last.ckpt", OCTET_UNSUPPORTED, ": found last.ckpt, but no " SINGLE},
        {"tf_model.h5", OCTET_UNSUPPORTED, ": found tf_model.h5, but no " SINGLE},
        {"ema.safetensors", OCTET_NOT_FOUND, ": found ema.safetensors, but neither " SINGLE " nor " INDEX},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        char *directory = files_directory();
        support_write_text(support_join(directory, found[i].file), "");
        files_refused(directory, found[i].status, found[i].fact);
        assert_string_not_equal(oct_error_hint(), "");
        files_drop(directory);
    }
    char *directory = files_directory();
    support_write_text(support_join(directory, "pytorch_model.bin"), "");
    files_refused(directory, OCTET_UNSUPPORTED, ": found pytorch_model.bin, but no " SINGLE);
    assert_non_null(strstr(oct_error_hint(), "torch.load(\"pytorch_model.bin\", weights_only=True)"));
    files_drop(directory);
}

static void test_configs(void **state) {
    (void)state;
    char *directory = good_directory();
    const char *config = support_join(directory, "config.json");
    unlink(config);
    files_refused(directory, OCTET_NOT_FOUND, ": config.json is missing");
    support_write_text(config, "[]");
    files_refused(directory, OCTET_BAD_FORMAT, "config.json:1: expected a map, found a list");
    unlink(config);
    mkdir(config, 0777);
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_INVALID_ARGUMENT);
    rmdir(config);
    support_write_text(config, "{\"architecture\": \"x\", \"pretrained_cfg\": {}}");
    checkpoint = files_open(directory);
    assert_null(oct_checkpoint_preprocessor(checkpoint));
    assert_non_null(oct_node_get(oct_checkpoint_config(checkpoint)->root, "pretrained_cfg"));
    oct_checkpoint_close(checkpoint);
    support_write_text(support_join(directory, "preprocessor_config.json"), "3");
    files_refused(directory, OCTET_BAD_FORMAT, "preprocessor_config.json:1: expected a map, found an integer");
    support_write_text(support_join(directory, "preprocessor_config.json"), "{\"size\": 3}");
    checkpoint = files_open(directory);
    assert_non_null(oct_node_get(oct_checkpoint_preprocessor(checkpoint)->root, "size"));
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

static void test_unreadable(void **state) {
    (void)state;
    if (geteuid() == 0) SUPPORT_SKIP("the superuser reads every file");
    char *directory = good_directory();
    chmod(support_join(directory, SHARD_A), 0);
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, directory), OCTET_IO);
    assert_non_null(strstr(oct_error_fact(), SHARD_A));
    files_drop(directory);
}

/* Case 19 of the shared collection: real shards of a small detector, and the same tensors in one file. */
static void test_shared_case(void **state) {
    (void)state;
    const char *good = support_shared("cases/19-shards/good");
    if (good == NULL) SUPPORT_SKIP("shared cases/19-shards is not here");
    oct_checkpoint *checkpoint = files_open(good);
    size_t count = oct_checkpoint_tensor_count(checkpoint);
    oct_tensor_source *sources = calloc(count, sizeof *sources);
    assert_non_null(sources);
    char sharded[OCT_SHA256_HEX], single[OCT_SHA256_HEX];
    assert_int_equal(oct_checkpoint_fingerprint(checkpoint, sharded), OCTET_OK);
    for (size_t i = 0; i < count; i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        void *bytes = malloc(tensor->size + 1);
        assert_int_equal(oct_checkpoint_read_raw(checkpoint, tensor, bytes), OCTET_OK);
        sources[i] =
            (oct_tensor_source){.name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank, .data = bytes};
        memcpy(sources[i].shape, tensor->shape, sizeof tensor->shape);
    }
    char *directory = files_directory();
    assert_int_equal(oct_safetensors_write(support_join(directory, SINGLE), sources, count), OCTET_OK);
    files_fingerprint(directory, single);
    assert_string_equal(sharded, single);
    for (size_t i = 0; i < count; i++) free((void *)sources[i].data);
    free(sources);
    oct_checkpoint_close(checkpoint);
    files_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_single_file_has_the_same_fingerprint),
        cmocka_unit_test(test_missing_shard),
        cmocka_unit_test(test_shard_of_other_case),
        cmocka_unit_test(test_index_and_shards_disagree),
        cmocka_unit_test(test_bad_index),
        cmocka_unit_test(test_total_size_warns),
        cmocka_unit_test(test_stray_single_file_wins_and_says_so),
        cmocka_unit_test(test_links_and_folders),
        cmocka_unit_test(test_no_weights),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_shared_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
