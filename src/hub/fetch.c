/* SPDX-License-Identifier: Apache-2.0 */
/* One file: its size and hash, its bytes (going on where an earlier attempt stopped), the check, the name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hub/repository.h"

#define PROGRESS_COUNTS ((uint64_t)1 << 20) /* bytes after which earlier failures are forgotten */
#define RESTARTS 2                          /* times the file may change while it comes */

typedef struct transfer {
    oct_hub_client *client;
    const oct_hub_file *file;
    const char *path; /* .incomplete */
    int descriptor;
    uint64_t have;
    bool joined;             /* bytes of more than one answer are in the file */
    bool answered;           /* the first piece of this answer was seen */
    bool changed;            /* what comes does not continue what is there */
    char etag[OCT_HUB_ETAG]; /* strong tag of the answer the bytes are from, "" if unknown */
    char origin[256];        /* whose tag that is */
} transfer;

/* ---- size and hash */

/* W/"abc" and "abc" as abc; false if that is no hash. */
static bool read_hash(oct_hub_file *file, const char *etag) {
    if (strncmp(etag, "W/", 2) == 0) etag += 2;
    size_t length = strlen(etag);
    if (length >= 2 && etag[0] == '"' && etag[length - 1] == '"') etag++, length -= 2;
    if ((length != 40 && length != 64) || strspn(etag, "0123456789abcdef") < length) return false;
    memcpy(file->hash, etag, length);
    file->hash[length] = '\0';
    file->git = length == 40;
    return true;
}

static octet_status read_facts(const oct_hub_repository *repository, oct_hub_file *file,
                               const oct_hub_response *response) {
    if (strcmp(response->commit, repository->commit) != 0)
        return oct_fail(OCTET_MISMATCH, "expected commit %s, the hub's answer is of \"%s\"", repository->commit,
                        response->commit);
    const char *etag = response->linked_etag[0] != '\0' ? response->linked_etag : response->etag;
    if (!read_hash(file, etag)) {
        oct_fail(OCTET_BAD_FORMAT, "the hub names no hash of it, so that nothing could be checked");
        return oct_detail("its entity tag is %s", etag[0] != '\0' ? etag : "missing");
    }
    int64_t size = response->linked_size >= 0 ? response->linked_size : response->status == 200 ? response->length : -1;
    if (size < 0) return oct_fail(OCTET_BAD_FORMAT, "the hub does not say its size");
    if ((uint64_t)size > OCT_HUB_FILE_LIMIT)
        return oct_fail(OCTET_LIMIT, "the hub says it has %lld bytes, more than the limit of %llu", (long long)size,
                        (unsigned long long)OCT_HUB_FILE_LIMIT);
    file->size = (uint64_t)size;
    file->size_known = true;
    return OCTET_OK;
}

static octet_status ask_facts(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                              const char *url) {
    oct_hub_response response = {0};
    oct_hub_request request = {.url = url, .head = true};
    if (oct_hub_ask(client, &request, NULL, &response) != OCTET_OK)
        return oct_hub_explain(repository, client, &response, file->name);
    if (read_facts(repository, file, &response) == OCTET_OK) return OCTET_OK;
    return oct_error_prefix("%s: %s", repository->id, file->name);
}

/* ---- bytes */

static octet_status empty(transfer *now) {
    if (ftruncate(now->descriptor, 0) != 0) return oct_fail_errno(now->path, "could not empty it");
    now->have = 0;
    now->joined = false;
    return OCTET_OK;
}

static bool is_strong(const char *etag) {
    size_t length = strlen(etag);
    return length >= 2 && etag[0] == '"' && etag[length - 1] == '"';
}

/* The first piece of an answer: does it go on where we are, and is it as long as it must be? */
static octet_status begin(transfer *now, const oct_hub_response *response) {
    const oct_hub_file *file = now->file;
    now->answered = true;
    if (response->status == 206) {
        bool other_tag = now->etag[0] != '\0' && response->etag[0] != '\0' &&
                         strcmp(now->origin, response->origin) == 0 && strcmp(now->etag, response->etag) != 0;
        bool other_size = response->range_total >= 0 && (uint64_t)response->range_total != file->size;
        now->changed =
            other_tag || other_size || response->range_first < 0 || (uint64_t)response->range_first != now->have;
        if (now->changed) return oct_fail(OCTET_MISMATCH, "the file changed between two parts of it");
        now->joined = now->have > 0;
    } else if (now->have > 0) {
        OCT_TRY(empty(now)); /* the server gives the whole file, asked or not */
    }
    if (response->length >= 0 && (uint64_t)response->length != file->size - now->have)
        return oct_fail(OCTET_MISMATCH, "expected %llu bytes, the server sends %lld",
                        (unsigned long long)(file->size - now->have), (long long)response->length);
    now->etag[0] = '\0';
    if (is_strong(response->etag)) memcpy(now->etag, response->etag, sizeof now->etag);
    memcpy(now->origin, response->origin, sizeof now->origin);
    return OCTET_OK;
}

static octet_status fail_write(const transfer *now) {
    int reason = errno;
    oct_fail_errno(now->path, "could not write");
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        return oct_hint("make room there, or set HF_HUB_CACHE to another place; the same pull goes on from here");
    return oct_error_status();
}

static octet_status take(void *user, const oct_hub_response *response, const void *data, size_t size) {
    transfer *now = user;
    if (!now->answered) OCT_TRY(begin(now, response));
    if (size > now->file->size - now->have)
        return oct_fail(OCTET_MISMATCH, "the server sends more than the %llu bytes the hub says it has",
                        (unsigned long long)now->file->size);
    for (size_t used = 0; used < size;) {
        ssize_t written = pwrite(now->descriptor, (const char *)data + used, size - used, (off_t)now->have);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return fail_write(now);
        used += (size_t)written;
        now->have += (uint64_t)written;
    }
    now->client->event.all_done += now->have - now->client->event.done;
    now->client->event.done = now->have;
    return oct_hub_tell(now->client, OCT_HUB_FETCHING, NULL);
}

/* One attempt; OK when the file has all its bytes. */
static octet_status attempt(transfer *now, const char *url, oct_hub_response *response) {
    oct_hub_request request = {.url = url,
                               .first = now->have,
                               .if_range = now->etag[0] != '\0' ? now->etag : NULL,
                               .if_range_origin = now->origin,
                               .sink = take,
                               .user = now};
    now->answered = now->changed = false;
    OCT_TRY(oct_hub_attempt(now->client, &request, response));
    if (now->have == now->file->size) return OCTET_OK;
    response->transient = true;
    return oct_fail(OCTET_IO, "ends at byte %llu of %llu", (unsigned long long)now->have,
                    (unsigned long long)now->file->size);
}

/* Starting anew: the count of bytes goes back. */
static octet_status restart(transfer *now) {
    OCT_TRY(empty(now));
    now->etag[0] = '\0';
    now->client->event.all_done -= now->client->event.done;
    now->client->event.done = 0;
    return OCTET_OK;
}

static octet_status fetch_bytes(transfer *now, const char *url, oct_hub_response *response) {
    unsigned restarts = 0, attempts = 1;
    while (now->have < now->file->size) {
        uint64_t before = now->have;
        OCT_TRY(oct_hub_tell(now->client, OCT_HUB_FETCHING, NULL));
        octet_status status = attempt(now, url, response);
        if (status == OCTET_OK) break;
        if ((now->changed || (response->status == 416 && before > 0)) && restarts++ < RESTARTS) {
            OCT_TRY(restart(now));
            continue;
        }
        if (now->have > before + PROGRESS_COUNTS) attempts = 1;
        OCT_TRY(oct_hub_again(now->client, response, attempts++));
    }
    return OCTET_OK;
}

/* ---- the check */

/* OK and *right, or a failure of reading. */
static octet_status check(const transfer *now, oct_hub_file *file, bool *right, char *found, size_t capacity) {
    char sha256[65], git[41];
    OCT_TRY(oct_hub_digest(now->path, sha256, git));
    const char *hash = file->git ? git : sha256;
    *right = strcmp(hash, file->hash) == 0;
    (void)snprintf(found, capacity, "%s", hash);
    if (*right) memcpy(file->sha256, sha256, sizeof sha256);
    return OCTET_OK;
}

static octet_status fetch_checked(transfer *now, oct_hub_file *file, const char *url, oct_hub_response *response) {
    for (;;) {
        char found[65];
        bool right = false;
        OCT_TRY(fetch_bytes(now, url, response));
        OCT_TRY(check(now, file, &right, found, sizeof found));
        if (right) return OCTET_OK;
        if (!now->joined)
            return oct_fail(OCTET_VERIFICATION, "its %s is %s, the hub says %s", file->git ? "git SHA-1" : "SHA-256",
                            found, file->hash);
        OCT_TRY(restart(now)); /* parts of two contents, perhaps: one answer must do */
    }
}

/* ---- the name */

static octet_status sync_directory(const char *path) {
    char *directory = oct_strndup(path, (size_t)(oct_path_base(path) - path));
    if (directory == NULL) return oct_fail_memory();
    int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = opened >= 0 && (fsync(opened) == 0 || errno == EINVAL);
    octet_status status = synced ? OCTET_OK : oct_fail_errno(directory, "could not sync");
    if (opened >= 0) (void)close(opened);
    oct_free(directory);
    return status;
}

static octet_status publish(const transfer *now, const char *blob) {
    if (fsync(now->descriptor) != 0) return fail_write(now);
    if (rename(now->path, blob) != 0) return oct_fail_errno(blob, "could not give the file its name");
    return sync_directory(blob);
}

/* ---- the whole */

static octet_status check_space(const transfer *now) {
    struct statvfs space;
    uint64_t missing = now->file->size - now->have;
    if (fstatvfs(now->descriptor, &space) != 0) return OCTET_OK;
    uint64_t left = (uint64_t)space.f_bavail * space.f_frsize;
    if (missing <= left) return OCTET_OK;
    oct_fail(OCTET_IO, "needs %llu bytes, the disk has %llu left", (unsigned long long)missing,
             (unsigned long long)left);
    oct_detail("at %s", now->path);
    return oct_hint("make room there, or set HF_HUB_CACHE to another place");
}

static octet_status open_incomplete(transfer *now) {
    struct stat facts;
    now->descriptor = open(now->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (now->descriptor < 0 || fstat(now->descriptor, &facts) != 0) return oct_fail_errno(now->path, "could not open");
    if (!S_ISREG(facts.st_mode)) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is not a file", now->path);
    now->have = (uint64_t)facts.st_size;
    now->joined = now->have > 0;
    if (now->have > now->file->size) OCT_TRY(empty(now));
    now->client->event.done = now->have;
    now->client->event.all_done += now->have;
    /* a hub that sends the file itself tags it with the hash; another host's tag is known after its first answer */
    (void)snprintf(now->etag, sizeof now->etag, "\"%s\"", now->file->hash);
    memcpy(now->origin, now->client->endpoint, oct_hub_origin(now->client->endpoint));
    return OCTET_OK;
}

/* Keeps what the next pull can go on with, and no more. */
static void leave(const transfer *now, octet_status status) {
    if (status == OCTET_MISMATCH || status == OCTET_VERIFICATION || now->have == 0) (void)unlink(now->path);
}

static octet_status fetch_locked(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                                 const char *url, const char *blob) {
    transfer now = {.client = client, .file = file, .descriptor = -1};
    oct_hub_response response = {0};
    char *path = oct_hub_blob(repository, file, ".incomplete");
    if (path == NULL) return oct_fail_memory();
    now.path = path;
    octet_status status = open_incomplete(&now);
    if (status == OCTET_OK) {
        status = check_space(&now);
        if (status == OCTET_OK) status = fetch_checked(&now, file, url, &response);
        if (status == OCTET_OK) status = publish(&now, blob);
        if (status != OCTET_OK) leave(&now, status);
    }
    if (now.descriptor >= 0) (void)close(now.descriptor);
    oct_free(path);
    return status == OCTET_OK ? OCTET_OK : oct_hub_explain(repository, client, &response, file->name);
}

/* Whether the blob is there; one of another size is not what it is called, and gives way. */
static bool has_blob(const oct_hub_file *file, const char *blob) {
    struct stat facts;
    return lstat(blob, &facts) == 0 && S_ISREG(facts.st_mode) && (uint64_t)facts.st_size == file->size;
}

static octet_status fetch_blob(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                               const char *url, bool *fetched) {
    char *blob = oct_hub_blob(repository, file, "");
    if (blob == NULL) return oct_fail_memory();
    char *blobs = oct_strndup(blob, (size_t)(oct_path_base(blob) - blob));
    octet_status status = blobs != NULL ? oct_make_directories(blobs) : oct_fail_memory();
    int lock = -1;
    if (status == OCTET_OK && !has_blob(file, blob)) {
        status = oct_hub_lock(repository, file, client, &lock);
        *fetched = status == OCTET_OK && !has_blob(file, blob); /* another may have fetched it while we waited */
        if (*fetched) status = fetch_locked(repository, file, client, url, blob);
        if (lock >= 0) (void)close(lock);
    }
    oct_free(blobs);
    oct_free(blob);
    return status;
}

octet_status oct_hub_fetch(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                           bool *fetched) {
    *fetched = false;
    char *url = oct_hub_file_url(repository, client, file->name);
    if (url == NULL) return oct_fail_memory();
    octet_status status = ask_facts(repository, file, client, url);
    client->event.size = file->size;
    if (status == OCTET_OK) status = fetch_blob(repository, file, client, url, fetched);
    if (status == OCTET_OK) status = oct_hub_link(repository, file);
    oct_free(url);
    return status;
}
