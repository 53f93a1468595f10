/* SPDX-License-Identifier: Apache-2.0 */
/* Hubs and connections that misbehave, each in one way: what is said, and that the cache holds nothing wrong. */
#include "unit/hub/hub.h"

#include <fcntl.h>
#include <sys/resource.h>

#define TEN_MB 10000000

/* One fault, and what must come of a pull. */
typedef struct fault_case {
    server_fault_kind kind;
    const char *method, *part;
    int times;
    long long value;
    const char *text;    /* what the server says */
    octet_status status; /* of the pull */
    const char *said;    /* a part of the error's text */
    size_t retries;
    long long kept; /* bytes left to go on with; -1: no file */
} fault_case;

static void run_case(const fault_case *one) {
    scene *now = scene_open();
    snprintf(now->hub->text, sizeof now->hub->text, "%s", one->text != NULL ? one->text : "");
    server_fault(now->hub, one->kind, one->method, one->part, one->times, one->value);
    octet_status status = scene_pull(now, MODEL);
    if (status != one->status) fail_msg("expected %s, found: %s", oct_status_name(one->status), oct_error_text());
    if (one->said != NULL) scene_expect_text(one->said);
    assert_int_equal(now->retries, one->retries);
    if (status == OCTET_OK) {
        scene_expect_whole(now);
    } else {
        scene_expect_no_weights(now, one->kept);
        server_behave(now->hub); /* and when all is well again, the pull goes on */
        assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
        if (one->kept > 0) assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, one->kept);
        scene_expect_whole(now);
    }
    scene_close(now);
}

static void run_cases(const fault_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) run_case(&cases[i]);
}
#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof *(cases))

static void test_statuses(void **state) {
    (void)state;
    static const fault_case cases[] = {
        {FAULT_STATUS, "GET", "/api/", -1, 401, NULL, OCTET_IO,
         MODEL ": the hub shows it to nobody without a token (HTTP status 401)", 0, -1},
        {FAULT_STATUS, "GET", "/api/", -1, 403, NULL, OCTET_IO, "may not be read without a token (HTTP status 403)", 0,
         -1},
        {FAULT_GATED, "HEAD", "/model.safetensors", -1, 0, "Access to model org/small is restricted", OCTET_IO,
         "Access to model org/small is restricted", 0, -1},
        {FAULT_STATUS, "GET", "/api/", -1, 404, NULL, OCTET_NOT_FOUND,
         MODEL "@main: the hub has no such model or revision (HTTP status 404)", 0, -1},
        {FAULT_STATUS, "HEAD", "/model.safetensors", -1, 404, NULL, OCTET_NOT_FOUND,
         MODEL "@main: the hub lists model.safetensors but has no such file (HTTP status 404)", 0, -1},
        {FAULT_STATUS, "GET", "/api/", 1, 500, NULL, OCTET_OK, NULL, 1, -1},
        {FAULT_STATUS, "GET", "/api/", -1, 503, NULL, OCTET_IO, "answers with HTTP status 503\n  after 3 attempts", 2,
         -1},
        {FAULT_STATUS, "HEAD", "/model.safetensors", 1, 502, NULL, OCTET_OK, NULL, 1, -1},
        {FAULT_STATUS, "GET", "/cdn/", 2, 500, NULL, OCTET_OK, NULL, 2, -1},
        {FAULT_STATUS, "GET", "/cdn/", -1, 403, NULL, OCTET_IO, MODEL ": model.safetensors: 127.0.0.1:", 0,
         -1}, /* the CDN's word is not the hub's */
        {FAULT_STATUS, "GET", "/api/", -1, 418, NULL, OCTET_IO, "answers with HTTP status 418", 0, -1},
        {FAULT_RETRY_AFTER, "GET", "/cdn/", 1, 1, NULL, OCTET_OK, NULL, 1, -1},
        {FAULT_RETRY_AFTER, "GET", "/api/", 1, 3600, NULL, OCTET_IO, "it asks to wait 3600 s; at most 60 s are waited",
         0, -1},
    };
    RUN_CASES(cases);
}

static void test_connections(void **state) {
    (void)state;
    static const fault_case cases[] = {
        {FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000, NULL, OCTET_OK, NULL, 1, -1},
        {FAULT_TRUNCATE, "GET", "/cdn/", -1, 1000, NULL, OCTET_IO, "after 3 attempts", 2, 3000},
        {FAULT_TRUNCATE, "GET", "/cdn/", -1, 0, NULL, OCTET_IO, "the connection failed", 2, -1},
        {FAULT_TRUNCATE, "GET", "/config.json", 1, 3, NULL, OCTET_OK, NULL, 1, -1},
        {FAULT_CHUNKED, "GET", "/cdn/", 1, 0, NULL, OCTET_OK, NULL, 0, -1},
        {FAULT_ENDLESS, "GET", "/cdn/", -1, 0, NULL, OCTET_MISMATCH, "sends more than the 2000", 0, -1},
        {FAULT_STALL, "GET", "/cdn/", 1, 1000000, NULL, OCTET_OK, NULL, 1, -1},
    };
    for (size_t i = 0; i + 1 < sizeof cases / sizeof *cases; i++) run_case(&cases[i]);
    /* a stall ends after the timeout, and the rest comes */
    scene *now = scene_open();
    server_fault(now->hub, FAULT_STALL, "GET", "/cdn/", 1, 1000000);
    assert_int_equal(scene_pull_with(now, &(oct_hub_options){.place = MODEL, .timeout = 1}), OCTET_OK);
    assert_int_equal(now->retries, 1);
    if (strstr(now->stray, "nothing came for 1 s") == NULL) fail_msg("said: %s", now->stray);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, 1000000);
    scene_expect_whole(now);
    scene_close(now);
}

static void test_lies(void **state) {
    (void)state;
    static const fault_case cases[] = {
        {FAULT_SIZE, "HEAD", "/model.safetensors", -1, 1000, NULL, OCTET_MISMATCH,
         "expected 1000 bytes, the server sends", 0, -1},
        {FAULT_SIZE, "HEAD", "/model.safetensors", -1, TEN_MB, NULL, OCTET_MISMATCH,
         "expected 10000000 bytes, the server sends 2000", 0, -1},
        {FAULT_SIZE, "HEAD", "/model.safetensors", -1, 1LL << 41, NULL, OCTET_LIMIT,
         "more than the limit of 1099511627776", 0, -1},
        {FAULT_LENGTH, "GET", "/cdn/", 1, 5, NULL, OCTET_MISMATCH, "the server sends 5", 0, -1},
        {FAULT_WRONG, "GET", "/cdn/", -1, 1234567, NULL, OCTET_VERIFICATION,
         MODEL ": model.safetensors: its SHA-256 is ", 0, -1},
        {FAULT_ENCODED, "GET", "/cdn/", -1, 0, NULL, OCTET_BAD_FORMAT, "a content encoding that was not asked for", 0,
         -1},
        {FAULT_TAG, "HEAD", "/model.safetensors", -1, 0, "\"../../../../evil\"", OCTET_BAD_FORMAT,
         "the hub names no hash of it", 0, -1},
        {FAULT_TAG, "HEAD", "/model.safetensors", -1, 0, "W/\"abc\"", OCTET_BAD_FORMAT, "the hub names no hash of it",
         0, -1},
        {FAULT_COMMIT, "HEAD", "/model.safetensors", -1, 0, "ffffffffffffffffffffffffffffffffffffffff", OCTET_MISMATCH,
         "expected commit " SERVER_COMMIT ", the hub's answer is of \"ffff", 0, -1},
        {FAULT_COMMIT, "HEAD", "/model.safetensors", -1, 0, "", OCTET_MISMATCH, "the hub's answer is of \"\"", 0, -1},
        {FAULT_MANY_HEADERS, "GET", "/api/", -1, 0, NULL, OCTET_LIMIT, "sends headers of more than 65536 bytes", 0, -1},
        {FAULT_REDIRECT, "", "/", -1, 0, "/again", OCTET_BAD_FORMAT, "redirects without end", 0, -1},
        {FAULT_REDIRECT, "GET", "/api/", -1, 0, "file:///etc/passwd", OCTET_BAD_FORMAT, "redirects to what is not http",
         0, -1},
        {FAULT_REDIRECT, "GET", "/api/", -1, 0, "", OCTET_BAD_FORMAT, "redirects to nowhere", 0, -1},
    };
    RUN_CASES(cases);

    /* a small file's hash is git's */
    scene *now = scene_open();
    server_fault(now->hub, FAULT_WRONG, "GET", "/config.json", -1, 3);
    assert_int_equal(scene_pull(now, MODEL), OCTET_VERIFICATION);
    scene_expect_text(MODEL ": config.json: its git SHA-1 is ");
    assert_int_equal(support_count_entries(scene_path(now, FOLDER "/blobs")), 0);
    assert_false(oct_file_exists(scene_path(now, SNAPSHOT)));
    scene_close(now);

    now = scene_open(); /* libcurl has a limit of its own for one line */
    server_fault(now->hub, FAULT_LONG_HEADER, "GET", "/api/", -1, TEN_MB);
    assert_int_not_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(support_count_entries(now->cache), 0);
    scene_close(now);
}

/* ---- ranges */

static void test_ranges(void **state) {
    (void)state;
    /* ignored: the whole file comes, from its start */
    scene *now = scene_open();
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000);
    server_fault(now->hub, FAULT_NO_RANGE, "GET", "/cdn/", 1, 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(now->retries, 1);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, 1000000);
    assert_true(server_last(now->hub, "GET", "/cdn/")->if_range);
    scene_expect_whole(now);
    scene_close(now);

    /* changed in between, and back: another entity tag is not gone on with */
    now = scene_open();
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000);
    server_fault(now->hub, FAULT_NEW_TAG, "GET", "/cdn/", 1, 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_count(now->hub, "GET", "/cdn/"), 3);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, -1);
    scene_expect_whole(now);
    scene_close(now);

    /* changed for good: not what the hub names */
    now = scene_open();
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000);
    server_fault(now->hub, FAULT_NEW_TAG, "GET", "/cdn/", -1, 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_VERIFICATION);
    scene_expect_no_weights(now, -1);
    scene_close(now);

    /* changed between two pulls, where no tag tells: the hash does, and one answer is asked for */
    now = scene_open();
    now->attempts = 1;
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000);
    assert_int_equal(scene_pull(now, MODEL), OCTET_IO);
    scene_expect_no_weights(now, 1000000);
    server_fault(now->hub, FAULT_NEW_TAG, "GET", "/cdn/", 1, 0);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_count(now->hub, "GET", "/cdn/"), 3);
    scene_expect_whole(now);
    scene_close(now);

    /* a range that cannot be */
    now = scene_open();
    now->attempts = 1;
    server_fault(now->hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000000);
    assert_int_equal(scene_pull(now, MODEL), OCTET_IO);
    server_fault(now->hub, FAULT_STATUS, "GET", "/cdn/", 1, 416);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    scene_expect_whole(now);
    scene_close(now);
}

/* ---- the listing */

static void expect_listing(const char *body, octet_status status, const char *said) {
    scene *now = scene_open();
    snprintf(now->hub->text, sizeof now->hub->text, "%s", body);
    server_fault(now->hub, FAULT_BODY, "GET", "/api/", -1, 0);
    assert_int_equal(scene_pull(now, MODEL), status);
    scene_expect_text(said);
    assert_int_equal(server_lines(now->hub), 1);
    assert_int_equal(support_count_entries(now->cache), 0);
    scene_close(now);
}

static void test_listings(void **state) {
    (void)state;
#define SHA "{\"sha\": \"" SERVER_COMMIT "\", "
#define LISTED(name) SHA "\"siblings\": [{\"rfilename\": \"config.json\"}, {\"rfilename\": \"" name "\"}]}"
    static const struct {
        const char *name, *said;
    } escapes[] = {{LISTED("../evil.safetensors"), "leaves its folder"},
                   {LISTED("a/../../evil.safetensors"), "leaves its folder"},
                   {LISTED("a/.."), "leaves its folder"},
                   {LISTED("./config.json"), "leaves its folder"},
                   {LISTED("/etc/evil.safetensors"), "is absolute"},
                   {LISTED("a\\\\..\\\\evil.safetensors"), "a backslash"},
                   {LISTED("a\\nb.safetensors"), "a control character"},
                   {LISTED("a\\u001b[2J.safetensors"), "a control character"},
                   {LISTED("a\\u0085.safetensors"), "a control character"},
                   {LISTED("a//b.safetensors"), "an empty part"},
                   {LISTED("a/"), "an empty part"},
                   {LISTED(""), "is empty"}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        expect_listing(escapes[i].name, OCTET_BAD_FORMAT, escapes[i].said);
    expect_listing("{\"sha\": ", OCTET_BAD_FORMAT, MODEL "@main: the hub's listing:1");
    expect_listing("", OCTET_BAD_FORMAT, "the hub's listing");
    expect_listing("[]", OCTET_BAD_FORMAT, "sha");
    expect_listing("{\"siblings\": []}", OCTET_BAD_FORMAT, "sha");
    expect_listing("{\"sha\": \"main\", \"siblings\": []}", OCTET_BAD_FORMAT, "expected a commit of 40 hex digits");
    expect_listing("{\"sha\": \"../../../../../../../../../../../../etc\"}", OCTET_BAD_FORMAT, "expected a commit");
    expect_listing(SHA "\"siblings\": {}}", OCTET_BAD_FORMAT, "siblings: expected a list of files");
    expect_listing(SHA "\"siblings\": [1]}", OCTET_BAD_FORMAT, "the hub's listing:1");
    expect_listing(SHA "\"siblings\": [{\"rfilename\": 1}]}", OCTET_BAD_FORMAT, "rfilename");
    expect_listing(SHA "\"siblings\": [{\"rfilename\": \"config.json\", \"size\": -1}]}", OCTET_BAD_FORMAT, "size");
    expect_listing(LISTED("config.json"), OCTET_BAD_FORMAT, "lists config.json twice");
    expect_listing(SHA "\"siblings\": [{\"rfilename\": \"pytorch_model.bin\"}]}", OCTET_NOT_FOUND,
                   "octet reads config.json and *.safetensors");

    scene *now = scene_open(); /* a listing without end */
    server_fault(now->hub, FAULT_STATUS, "HEAD", "", 0, 0);
    assert_int_equal(scene_pull(now, MODEL "@ffffffffffffffffffffffffffffffffffffffff"), OCTET_MISMATCH);
    scene_expect_text("asked for commit ffffffffffffffffffffffffffffffffffffffff, the hub answers with " SERVER_COMMIT);
    scene_close(now);
}

/* ---- places that cannot be reached or written */

static void test_unreachable(void **state) {
    (void)state;
    scene *now = scene_open();
    setenv("HF_ENDPOINT", "http://no-such-host.invalid", 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_IO);
    scene_expect_text("no-such-host.invalid: could not find this host's address");
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "https://127.0.0.1:%d", now->hub->port);
    setenv("HF_ENDPOINT", endpoint, 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_IO);
    scene_expect_text("could not make a TLS connection");
    int port;
    int listener = server_listen(&port);
    close(listener); /* nobody listens there now */
    snprintf(endpoint, sizeof endpoint, "http://u:pass@127.0.0.1:%d", port);
    setenv("HF_ENDPOINT", endpoint, 1);
    assert_int_equal(scene_pull(now, MODEL), OCTET_IO);
    scene_expect_text("the connection failed");
    assert_null(strstr(oct_error_text(), "pass"));
    assert_int_equal(now->retries, 2);
    scene_close(now);
}

/* A write that fails as on a full disk leaves what was written, to go on with. */
static void test_no_room(void **state) {
    (void)state;
    scene *now = scene_open();
    const struct rlimit small = {.rlim_cur = 1000000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    octet_status status = scene_pull(now, MODEL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, OCTET_IO);
    scene_expect_text("could not write: File too large");
    scene_expect_text("set HF_HUB_CACHE to another place");
    scene_expect_no_weights(now, 1000000);
    assert_int_equal(scene_pull(now, MODEL), OCTET_OK);
    assert_int_equal(server_last(now->hub, "GET", "/cdn/")->first, 1000000);
    scene_expect_whole(now);
    scene_close(now);

    now = scene_open(); /* a file where the folder should be */
    support_write_text(scene_path(now, FOLDER), "");
    assert_int_not_equal(scene_pull(now, MODEL), OCTET_OK);
    scene_expect_text("expected a directory");
    scene_close(now);
}

int main(int count, char **words) {
    (void)count, (void)words;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_connections), cmocka_unit_test(test_lies),
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_listings),    cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
