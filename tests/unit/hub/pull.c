/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls that go well: the cache's layout, what is asked of whom, what is wanted; and stopping, in order and not.
 * Also the server that tests/cli/pull.sh asks. */
#include "unit/hub/hub.h"

#include <sys/file.h>
#include <fcntl.h>

#include "checkpoint/checkpoint.h"

static void expect_link(const scene *now, const char *name, const char *target) {
    char below[512], found[512];
    snprintf(below, sizeof below, SNAPSHOT "/%s", name);
    ssize_t length = readlink(scene_path(now, below), found, sizeof found - 1);
    assert_true(length > 0);
    found[length] = '\0';
    assert_string_equal(found, target);
}

static void test_layout(void **state) {
    (void)state;
    scene *now = scene_open();
    char target[128];
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    scene_expect_whole(now);
    assert_int_equal(now->fetched, 2);
    snprintf(target, sizeof target, "../../blobs/%s", now->config->etag);
    assert_int_equal(strlen(now->config->etag), 40);
    expect_link(now, "config.json", target);
    snprintf(target, sizeof target, "../../blobs/%s", now->weights->etag);
    assert_int_equal(strlen(now->weights->etag), 64);
    expect_link(now, "model.safetensors", target);

    oct_checkpoint *checkpoint;
    assert_int_equal(oct_checkpoint_open(&checkpoint, MODEL), OCTET_OK);
    assert_string_equal(oct_checkpoint_id(checkpoint), MODEL);
    assert_string_equal(oct_checkpoint_revision(checkpoint), SERVER_COMMIT);
    assert_int_equal(oct_checkpoint_tensor_count(checkpoint), 1);
    oct_checkpoint_close(checkpoint);
    scene_close(now);
}

static void test_complete(void **state) {
    (void)state;
    scene *now = scene_open();
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    server_behave(now->hub);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(now->cached, 2);
    assert_int_equal(server_lines(now->hub), 1); /* the listing, nothing else */

    /* the same by commit: no ref of that name */
    assert_int_equal(scene_pull(now, MODEL "@" SERVER_COMMIT), OCTET_OK);
    assert_int_equal(support_count_entries(scene_path(now, FOLDER "/refs")), 1);
    /* a branch of two words, the same commit: only a ref more */
    assert_int_equal(scene_pull(now, MODEL "@refs/pr/1"), OCTET_OK);
    assert_int_equal(now->cached, 2);
    assert_non_null(server_last(now->hub, "GET", "/api/models/org/small/revision/refs%2Fpr%2F1"));
    assert_int_equal(scene_size(scene_path(now, FOLDER "/refs/refs/pr/1")), 40);

    /* a blob that lost bytes, a link that went astray: both are mended */
    assert_int_equal(truncate(scene_blob(now, now->weights, ""), 10), 0);
    assert_int_equal(unlink(scene_path(now, SNAPSHOT "/config.json")), 0);
    assert_int_equal(symlink("../../blobs/nowhere", scene_path(now, SNAPSHOT "/config.json")), 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(now->fetched, 1);
    assert_int_equal(now->cached, 1);
    scene_expect_bytes(now, now->weights, scene_path(now, SNAPSHOT "/model.safetensors"));
    scene_expect_bytes(now, now->config, scene_path(now, SNAPSHOT "/config.json"));

    /* a listing without sizes */
    now->hub->siblings_without_size = true;
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(now->cached, 2);
    scene_close(now);
}

/* Everything the endpoint is asked carries the token, nothing the CDN is asked does. */
static void expect_tokens(const scene *now, const char *token) {
    size_t cdn = 0;
    for (size_t i = 0; i < server_lines(now->hub); i++) {
        const server_line *line = &now->hub->line[i];
        assert_string_equal(line->token, line->cdn ? "" : token);
        cdn += line->cdn;
    }
    assert_true(cdn > 0);
    assert_true(server_lines(now->hub) > cdn);
}

static void test_token(void **state) {
    (void)state;
    scene *now = scene_open();
    setenv("HF_TOKEN", " hf_secret\n", 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    expect_tokens(now, "Bearer hf_secret");
    scene_close(now);

    now = scene_open();
    support_write_text(scene_path(now, "token"), "hf_file\n");
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    expect_tokens(now, "Bearer hf_file");
    scene_close(now);

    now = scene_open();
    setenv("HF_TOKEN", "hf_a\nX-Evil: yes", 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_INVALID_ARGUMENT);
    scene_expect_text("HF_TOKEN: holds what cannot be a token");
    assert_null(strstr(oct_error_text(), "hf_a"));
    assert_int_equal(server_lines(now->hub), 0);
    scene_close(now);
}

static void test_dataset(void **state) {
    (void)state;
    scene *now = scene_open();
    server_add(now->hub, "data/a b.tar", "tar", 3, true);
    server_add(now->hub, "data/empty.txt", "", 0, false);
    assert_int_equal(scene_pull_with(now, &(oct_hub_options){.place = MODEL, .dataset = true}), OCTET_OK);
    assert_int_equal(now->fetched, 6);
    assert_non_null(server_last(now->hub, "GET", "/api/datasets/org/small/revision/main"));
    assert_non_null(server_last(now->hub, "HEAD", "/datasets/org/small/resolve/" SERVER_COMMIT "/config.json"));
    char found[512];
    ssize_t length = readlink(scene_path(now, "datasets--org--small/snapshots/" SERVER_COMMIT "/data/empty.txt"), found,
                              sizeof found - 1);
    assert_true(length > 0);
    found[length] = '\0';
    assert_string_equal(found, "../../../blobs/e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"); /* git's empty blob */
    scene_close(now);

    now = scene_open();
    const oct_hub_options some = {.place = MODEL, .dataset = true, .include = "*.onnx"};
    assert_int_equal(scene_pull_with(now, &some), OCTET_OK);
    assert_int_equal(now->fetched, 1);
    const oct_hub_options none = {.place = MODEL, .dataset = true, .include = "*.parquet"};
    assert_int_equal(scene_pull_with(now, &none), OCTET_NOT_FOUND);
    scene_expect_text("holds no file that is wanted");
    scene_close(now);
}

static void test_what_is_no_place(void **state) {
    (void)state;
    scene *now = scene_open();
    static const char *const places[] = {"",
                                         "a/b/c",
                                         "../a",
                                         "a b",
                                         "org/small@",
                                         "org/small@../x",
                                         "org/small@a//b",
                                         "org/small@/a",
                                         "org/small@a\nb",
                                         "@main"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_int_equal(scene_pull(now, places[i]), OCTET_INVALID_ARGUMENT);
    static const char *const endpoints[] = {"huggingface.co", "ftp://127.0.0.1", "http://", "http://a b", "https:///x"};
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        setenv("HF_ENDPOINT", endpoints[i], 1);
        assert_int_equal(scene_pull(now, MODEL), OCTET_INVALID_ARGUMENT);
        scene_expect_text("HF_ENDPOINT: expected an address");
    }
    setenv("HF_HUB_OFFLINE", "1", 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_INVALID_ARGUMENT);
    scene_expect_text("HF_HUB_OFFLINE is set");
    assert_int_equal(server_lines(now->hub), 0);
    assert_int_equal(support_count_entries(now->cache), 0);
    scene_close(now);
}

/* ---- stopping and going on */

static void test_cancel(void **state) {
    (void)state;
    scene *now = scene_open();
    now->cancel_at = "model.safetensors";
    assert_int_equal(scene_pull(now, MODEL), OCTET_CANCELLED);
    long long kept = scene_size(scene_blob(now, now->weights, ".incomplete"));
    assert_true(kept > 0);
    scene_expect_no_weights(now, kept);
    now->cancel_at = NULL;
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, kept);
    assert_int_equal(now->cached, 1);
    scene_expect_whole(now);
    scene_close(now);
}

/* A pull in a process of its own. */
static pid_t pull_beside(scene *now) {
    pid_t child = fork();
    if (child == 0) {
        const oct_hub_options options = {.place = MODEL, .timeout = 10};
        oct_hub_pulled pulled;
        _exit(oct_hub_pull(&options, &pulled) == OCTET_OK ? 0 : 1);
    }
    (void)now;
    return child;
}

static void wait_for_bytes(const char *path, long long bytes) {
    for (int i = 0; i < 1000 && scene_size(path) < bytes; i++) usleep(5000);
    assert_true(scene_size(path) >= bytes);
}

static void test_killed(void **state) {
    (void)state;
    scene *now = scene_open();
    server_fault(now->hub, FAULT_STALL, "GET", "/cdn/", 1, 1000000);
    pid_t child = pull_beside(now);
    wait_for_bytes(scene_blob(now, now->weights, ".incomplete"), 1000000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    scene_expect_no_weights(now, 1000000);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, 1000000);
    scene_expect_whole(now);
    scene_close(now);
}

/* Two at once fetch each file once. */
static void test_together(void **state) {
    (void)state;
    scene *now = scene_open();
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1,
                 1000000); /* the first waits half a second before it goes on */
    pid_t child = pull_beside(now);
    wait_for_bytes(scene_blob(now, now->weights, ".incomplete"), 1000000);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_true(now->waits > 0);
    assert_int_equal(now->cached, 2);
    int code = -1;
    waitpid(child, &code, 0);
    assert_int_equal(code, 0);
    assert_int_equal(server_count(now->hub, "GET", "/cdn/"), 2);
    scene_expect_whole(now);
    scene_close(now);
}

/* What was left by something else than us is not trusted. */
static void test_wrong_incomplete(void **state) {
    (void)state;
    scene *now = scene_open();
    assert_int_equal(oct_make_directories(scene_path(now, FOLDER "/blobs")), OCTET_OK);
    support_write_text(scene_blob(now, now->weights, ".incomplete"), "not its first bytes");
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_count(now->hub, "GET", "/cdn/"), 2); /* the rest, then all of it */
    scene_expect_whole(now);
    scene_close(now);

    now = scene_open(); /* whole but wrong; then longer than the file */
    assert_int_equal(oct_make_directories(scene_path(now, FOLDER "/blobs")), OCTET_OK);
    support_write_text(scene_blob(now, now->config, ".incomplete"), "{\"a\": 2}");
    assert_int_equal(truncate(scene_blob(now, now->config, ".incomplete"), 8), 0);
    support_write_text(scene_blob(now, now->weights, ".incomplete"), "");
    assert_int_equal(truncate(scene_blob(now, now->weights, ".incomplete"), (off_t)now->weights->size + 1), 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    scene_expect_whole(now);
    scene_close(now);
}

/* test_hub_pull --serve [well|stall|wrong|gone]: the server alone, until it is killed; its address is printed. For
 * tests of the command. */
static int serve(const char *how) {
    scene *now = scene_open();
    support_remove_tree(now->cache);
    if (strcmp(how, "stall") == 0) server_fault(now->hub, FAULT_STALL, "GET", "/cdn/", 1, 1000000);
    if (strcmp(how, "wrong") == 0) server_fault(now->hub, FAULT_WRONG, "GET", "/cdn/", -1, 1234567);
    if (strcmp(how, "gone") == 0) server_fault(now->hub, FAULT_STATUS, "GET", "/api/", -1, 404);
    puts(server_endpoint(now->hub));
    fflush(stdout);
    pause();
    return 0;
}

int main(int count, char **words) {
    if (count >= 2 && strcmp(words[1], "--serve") == 0) return serve(count > 2 ? words[2] : "well");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_dataset),
        cmocka_unit_test(test_what_is_no_place),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_wrong_incomplete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
