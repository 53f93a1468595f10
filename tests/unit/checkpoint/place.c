/* SPDX-License-Identifier: Apache-2.0 */
/* Places: directories, hub ids, the local Hugging Face cache. */
#include "unit/checkpoint/files.h"

#include "checkpoint/place.h"

#define COMMIT_A "0123456789abcdef0123456789abcdef01234567"
#define COMMIT_B "0123456789ffffff0123456789abcdef01234567"
#define COMMIT_C "ffffffffffffffffffffffffffffffffffffffff"
#define ID "timm/mobilenetv2_100.ra_in1k"

static void make_directories(const char *path) {
    char text[4096];
    snprintf(text, sizeof text, "%s", path);
    for (char *slash = text + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        (void)mkdir(text, 0777);
    }
    (void)mkdir(text, 0777);
}

/* main: A, with blobs and links as the hub's client makes them; v1: B; refs/pr/1: C, not pulled */
static char *make_cache(const char *below) {
    char *root = support_temporary_directory();
    char repository[2048], path[2200];
    snprintf(repository, sizeof repository, "%s/%smodels--timm--mobilenetv2_100.ra_in1k", root, below);
    snprintf(path, sizeof path, "%s/blobs", repository);
    make_directories(path);
    snprintf(path, sizeof path, "%s/refs/refs/pr", repository);
    make_directories(path);
    static const char *const commits[] = {COMMIT_A, COMMIT_B};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/snapshots/%s", repository, commits[i]);
        make_directories(path);
        assert_int_equal(symlink("../../blobs/config", support_join(path, "config.json")), 0);
        assert_int_equal(symlink("../../blobs/weights", support_join(path, "model.safetensors")), 0);
    }
    support_write_text(support_join(repository, "blobs/config"), "{}");
    static const float one = 1;
    const oct_tensor_source tensor = {.name = "a", .dtype = OCT_DTYPE_F32, .data = &one};
    assert_int_equal(oct_safetensors_write(support_join(repository, "blobs/weights"), &tensor, 1), OCTET_OK);
    support_write_text(support_join(repository, "refs/main"), COMMIT_A);
    support_write_text(support_join(repository, "refs/v1"), COMMIT_B "\n");
    support_write_text(support_join(repository, "refs/broken"), "not a commit");
    support_write_text(support_join(repository, "refs/refs/pr/1"), COMMIT_C);
    return root;
}

static void set_only(const char *name, const char *value) {
    static const char *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
                                            "HOME"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    if (name != NULL) setenv(name, value, 1);
}

static void expect_commit(const char *place, const char *commit) {
    oct_checkpoint *checkpoint = files_open(place);
    assert_string_equal(oct_checkpoint_id(checkpoint), ID);
    assert_string_equal(oct_checkpoint_revision(checkpoint), commit);
    assert_non_null(strstr(oct_checkpoint_directory(checkpoint), commit));
    assert_int_equal(oct_checkpoint_tensor_count(checkpoint), 1);
    oct_checkpoint_close(checkpoint);
}

static void expect_refused(const char *place, octet_status status, const char *part, const char *hint) {
    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, place), status);
    if (strstr(oct_error_fact(), part) == NULL) fail_msg("expected \"%s\" in: %s", part, oct_error_text());
    if (hint != NULL) assert_string_equal(oct_error_hint(), hint);
}

static void test_revisions(void **state) {
    (void)state;
    char *root = make_cache("");
    set_only("HF_HUB_CACHE", root);
    expect_commit(ID, COMMIT_A);
    expect_commit(ID "@main", COMMIT_A);
    expect_commit(ID "@v1", COMMIT_B);
    expect_commit(ID "@" COMMIT_B, COMMIT_B);
    expect_commit(ID "@0123456789f", COMMIT_B);
    expect_commit(support_join(root, "models--timm--mobilenetv2_100.ra_in1k/snapshots/" COMMIT_B), COMMIT_B);
    expect_commit(support_join(root, "models--timm--mobilenetv2_100.ra_in1k/snapshots/" COMMIT_B "/"), COMMIT_B);

    expect_refused(ID "@0123", OCTET_INVALID_ARGUMENT, "revision 0123 is ambiguous: " COMMIT_A " and " COMMIT_B, NULL);
    expect_refused(ID "@012", OCTET_NOT_FOUND, "revision 012 is not in the local cache", "octet pull " ID "@012");
    expect_refused(ID "@v2", OCTET_NOT_FOUND, ID ": revision v2 is not in the local cache", "octet pull " ID "@v2");
    expect_refused(ID "@broken", OCTET_BAD_FORMAT, "refs/broken: expected a commit of 40 hex digits", NULL);
    expect_refused(ID "@refs/pr/1", OCTET_NOT_FOUND, COMMIT_C ": no such directory", "octet pull " ID "@refs/pr/1");
    expect_refused(ID "@../main", OCTET_INVALID_ARGUMENT, "../main is not a revision", NULL);
    expect_refused(ID "@", OCTET_INVALID_ARGUMENT, "the revision after @ is empty", NULL);
    expect_refused("timm/other", OCTET_NOT_FOUND, "timm/other: neither a directory nor a model in the local cache",
                   "octet pull timm/other");
    expect_refused("timm/other@main", OCTET_NOT_FOUND, "timm/other: neither", "octet pull timm/other@main");
    files_drop(root);
}

static void test_where_the_cache_is(void **state) {
    (void)state;
    char *root = make_cache("");
    set_only("HUGGINGFACE_HUB_CACHE", root);
    expect_commit(ID, COMMIT_A);
    files_drop(root);

    root = make_cache("hub/");
    set_only("HF_HOME", root);
    expect_commit(ID, COMMIT_A);
    setenv("HF_HUB_CACHE", "/nowhere", 1); /* comes first */
    expect_refused(ID, OCTET_NOT_FOUND, "neither a directory", NULL);
    setenv("HF_HUB_CACHE", "", 1); /* empty is as unset */
    expect_commit(ID, COMMIT_A);
    setenv("HOME", root, 1);
    setenv("HF_HOME", "~", 1);
    expect_commit(ID, COMMIT_A);
    setenv("HF_HUB_CACHE", "~/hub", 1);
    expect_commit(ID, COMMIT_A);
    files_drop(root);

    root = make_cache("huggingface/hub/");
    set_only("XDG_CACHE_HOME", root);
    expect_commit(ID, COMMIT_A);
    files_drop(root);

    root = make_cache(".cache/huggingface/hub/");
    set_only("HOME", root);
    expect_commit(ID, COMMIT_A);
    files_drop(root);

    set_only(NULL, NULL);
    expect_refused(ID, OCTET_NOT_FOUND, "cannot tell where the Hugging Face cache is", "set HF_HUB_CACHE");
}

static void test_what_is_no_place(void **state) {
    (void)state;
    char *directory = files_directory();
    set_only("HF_HUB_CACHE", directory);
    expect_refused("", OCTET_INVALID_ARGUMENT, "the checkpoint's place is empty", NULL);
    expect_refused(support_join(directory, "config.json"), OCTET_INVALID_ARGUMENT,
                   "expected a checkpoint directory, found a file", NULL);
    static const char *const no_ids[] = {"/nowhere/model", "./model", "a/b/c", "a//b", "a/", "/a",
                                         "a--b/c",         "a..b",    "-a/b",  "a/b-", ".a", "a b",
                                         "a\nb",           "@main",   "a/b?c"};
    for (size_t i = 0; i < sizeof no_ids / sizeof *no_ids; i++)
        expect_refused(no_ids[i], OCTET_NOT_FOUND, "no such directory", NULL);
    expect_refused("gpt2", OCTET_NOT_FOUND, "gpt2: neither a directory nor a model in the local cache",
                   "octet pull gpt2");
    files_drop(directory);
}

/* A directory that is in no cache has neither id nor revision, whatever its name. */
static void test_plain_directories(void **state) {
    (void)state;
    char *root = support_temporary_directory();
    static const char *const names[] = {"model", "models--a--b", "snapshots/" COMMIT_A, "models--a--b/" COMMIT_A};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = support_join(root, names[i]);
        make_directories(path);
        oct_place place;
        assert_int_equal(oct_place_find(&place, path), OCTET_OK);
        assert_string_equal(place.directory, path);
        assert_string_equal(place.id, "");
        assert_string_equal(place.revision, "");
        oct_place_free(&place);
    }
    const char *path = support_join(root, "models--gpt2/snapshots/" COMMIT_A);
    make_directories(path);
    oct_place place;
    assert_int_equal(oct_place_find(&place, path), OCTET_OK);
    assert_string_equal(place.id, "gpt2");
    assert_string_equal(place.revision, COMMIT_A);
    oct_place_free(&place);
    files_drop(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_revisions),
        cmocka_unit_test(test_where_the_cache_is),
        cmocka_unit_test(test_what_is_no_place),
        cmocka_unit_test(test_plain_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
