/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub tests share: a server with a small model on it, an empty cache, a pull, and what must hold after it. */
#ifndef OCT_TESTS_HUB_HUB_H
#define OCT_TESTS_HUB_HUB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "hub/hub.h"
#include "support/support.h"
#include "unit/hub/server.h"

#define MODEL "org/small"
#define FOLDER "models--org--small"
#define SNAPSHOT FOLDER "/snapshots/" SERVER_COMMIT
#define WEIGHTS_FLOATS ((size_t)500000) /* 2 MB: more than sockets hold back */

typedef struct scene {
    server *hub;
    char *cache;
    const server_file *config, *weights;
    char stray[128]; /* the last note of a retry */
    size_t retries, waits, fetched, cached;
    const char *cancel_at; /* file whose first bytes cancel the pull */
    unsigned attempts;
} scene;

/* A safetensors file of one tensor. */
static inline void *scene_weights(size_t floats, size_t *size) {
    char header[128];
    int length = snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                          floats, 4 * floats);
    while (length % 8 != 0) header[length++] = ' ';
    *size = 8 + (size_t)length + 4 * floats;
    unsigned char *bytes = calloc(*size, 1);
    if (bytes == NULL) support_die("weights");
    bytes[0] = (unsigned char)length;
    memcpy(bytes + 8, header, (size_t)length);
    for (size_t i = 0; i < floats; i++) {
        float value = (float)i;
        memcpy(bytes + 8 + (size_t)length + 4 * i, &value, 4);
    }
    return bytes;
}

static inline void scene_environment(const scene *now) {
    static const char *const unset[] = {"HUGGINGFACE_HUB_CACHE",
                                        "HF_TOKEN",
                                        "HUGGING_FACE_HUB_TOKEN",
                                        "HF_TOKEN_PATH",
                                        "HF_HUB_OFFLINE",
                                        "XDG_CACHE_HOME",
                                        "http_proxy",
                                        "all_proxy",
                                        "ALL_PROXY"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    setenv("no_proxy", "*", 1);
    setenv("HF_HUB_CACHE", now->cache, 1);
    setenv("HF_HOME", now->cache, 1); /* no token lies there */
    setenv("HF_ENDPOINT", server_endpoint(now->hub), 1);
}

static inline scene *scene_open(void) {
    scene *now = calloc(1, sizeof *now);
    if (now == NULL) support_die("scene");
    now->hub = server_start();
    now->cache = support_temporary_directory();
    now->attempts = 3;
    scene_environment(now);
    size_t size = 0;
    void *weights = scene_weights(WEIGHTS_FLOATS, &size);
    now->config = server_add(now->hub, "config.json", "{\"a\": 1}", 8, false);
    server_add(now->hub, "README.md", "read", 4, false);
    now->weights = server_add(now->hub, "model.safetensors", weights, size, true);
    server_add(now->hub, "onnx/model.onnx", "onnx", 4, true);
    free(weights);
    return now;
}

static inline void scene_close(scene *now) {
    server_stop(now->hub);
    support_remove_tree(now->cache);
    free(now->cache);
    free(now);
}

static inline bool scene_watch(void *user, const oct_hub_event *event) {
    scene *now = user;
    now->retries += event->state == OCT_HUB_RETRYING;
    now->waits += event->state == OCT_HUB_WAITING;
    now->fetched += event->state == OCT_HUB_FETCHED;
    now->cached += event->state == OCT_HUB_CACHED;
    if (event->state == OCT_HUB_RETRYING) snprintf(now->stray, sizeof now->stray, "%s", event->note);
    assert_true(event->done <= event->size);
    if (event->all_size > 0) assert_true(event->all_done <= event->all_size);
    return now->cancel_at == NULL || strcmp(now->cancel_at, event->file) != 0 || event->done == 0;
}

static inline octet_status scene_pull_with(scene *now, const oct_hub_options *options) {
    oct_hub_options asked = *options;
    asked.progress = scene_watch;
    asked.user = now;
    asked.attempts = now->attempts;
    asked.backoff_ms = 5;
    if (asked.timeout == 0) asked.timeout = 10;
    now->retries = now->waits = now->fetched = now->cached = 0;
    oct_hub_pulled pulled;
    octet_status status = oct_hub_pull(&asked, &pulled);
    if (status == OCTET_OK) {
        assert_string_equal(pulled.commit, SERVER_COMMIT);
        assert_true(oct_file_is_directory(pulled.directory));
        assert_int_equal(pulled.fetched, now->fetched);
        assert_int_equal(pulled.files, now->fetched + now->cached);
    } else {
        assert_null(pulled.directory);
    }
    oct_hub_pulled_free(&pulled);
    return status;
}

static inline octet_status scene_pull(scene *now, const char *place) {
    return scene_pull_with(now, &(oct_hub_options){.place = place});
}

static inline const char *scene_path(const scene *now, const char *below) {
    return support_join(now->cache, below);
}

/* FOLDER/blobs/HASH + suffix */
static inline const char *scene_blob(const scene *now, const server_file *file, const char *suffix) {
    char below[256];
    snprintf(below, sizeof below, FOLDER "/blobs/%s%s", file->etag, suffix);
    return scene_path(now, below);
}

static inline long long scene_size(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? (long long)facts.st_size : -1;
}

static inline void scene_expect_bytes(const scene *now, const server_file *file, const char *path) {
    size_t size = 0;
    char *bytes = support_read_text(path, &size);
    assert_non_null(bytes);
    assert_int_equal(size, file->size);
    assert_memory_equal(bytes, now->hub->bytes + file->at, size);
    free(bytes);
}

static inline void scene_expect_text(const char *part) {
    if (strstr(oct_error_text(), part) == NULL) fail_msg("expected \"%s\" in: %s", part, oct_error_text());
}

/* All there, nothing beside it. */
static inline void scene_expect_whole(const scene *now) {
    scene_expect_bytes(now, now->config, scene_path(now, SNAPSHOT "/config.json"));
    scene_expect_bytes(now, now->weights, scene_path(now, SNAPSHOT "/model.safetensors"));
    assert_int_equal(support_count_entries(scene_path(now, SNAPSHOT)), 2);
    assert_int_equal(support_count_entries(scene_path(now, FOLDER "/blobs")), 2);
    char *ref = support_read_text(scene_path(now, FOLDER "/refs/main"), NULL);
    assert_non_null(ref);
    assert_string_equal(ref, SERVER_COMMIT);
    free(ref);
}

/* After a failure on the weights: no blob of theirs, no link, no ref; `kept` bytes to go on with (-1: no such file). */
static inline void scene_expect_no_weights(const scene *now, long long kept) {
    assert_int_equal(scene_size(scene_blob(now, now->weights, "")), -1);
    assert_int_equal(scene_size(scene_blob(now, now->weights, ".incomplete")), kept);
    struct stat facts;
    assert_int_equal(lstat(scene_path(now, SNAPSHOT "/model.safetensors"), &facts), -1);
    assert_false(oct_file_exists(scene_path(now, FOLDER "/refs/main")));
}

#endif
