/* SPDX-License-Identifier: Apache-2.0 */
/* The repository's place in the cache: blobs, links, refs, locks. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/place.h"
#include "hub/repository.h"

#define REVISION_LIMIT 255
#define LOCK_TICK_MS 50

/* ---- what was asked for */

/* A revision becomes a file below refs/: the rules of a file's name hold. */
static octet_status read_place(oct_hub_repository *repository, const char *place) {
    if (place == NULL) place = "";
    const char *at = strchr(place, '@');
    size_t length = at != NULL ? (size_t)(at - place) : strlen(place);
    const char *revision = at != NULL ? at + 1 : "main";
    if (!oct_place_is_hub_id(place, length)) {
        oct_fail(OCTET_INVALID_ARGUMENT, "\"%.*s\" is not the id of a repository on the hub", (int)length, place);
        return oct_hint("an id is ORGANIZATION/NAME, with @REVISION behind it or not");
    }
    if (revision[0] == '\0') return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the revision after @ is empty", place);
    if (strlen(revision) > REVISION_LIMIT || oct_hub_check_name(revision) != OCTET_OK)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s is not a revision", revision);
    repository->id = oct_strndup(place, length);
    repository->revision = oct_strdup(revision);
    return repository->id != NULL && repository->revision != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status find_folders(oct_hub_repository *repository) {
    char *cache = NULL;
    OCT_TRY(oct_place_cache_directory(&cache));
    char *name = oct_place_cache_folder(repository->dataset ? "datasets" : "models", repository->id);
    if (name != NULL) {
        repository->folder = oct_path_join(cache, name);
        repository->locks = oct_sprintf("%s/.locks/%s", cache, name);
    }
    oct_free(cache);
    oct_free(name);
    return repository->folder != NULL && repository->locks != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status oct_hub_repository_open(oct_hub_repository *repository, const oct_hub_options *options) {
    *repository = (oct_hub_repository){.dataset = options->dataset};
    octet_status status = read_place(repository, options->place);
    if (status == OCTET_OK) status = find_folders(repository);
    if (status != OCTET_OK) oct_hub_repository_close(repository);
    return status;
}

void oct_hub_repository_close(oct_hub_repository *repository) {
    for (size_t i = 0; i < repository->count; i++) oct_free(repository->files[i].name);
    oct_free(repository->files);
    oct_free(repository->id);
    oct_free(repository->revision);
    oct_free(repository->folder);
    oct_free(repository->locks);
    *repository = (oct_hub_repository){0};
}

/* ---- files */

static char *snapshot_path(const oct_hub_repository *repository, const char *name) {
    return oct_sprintf("%s/snapshots/%s/%s", repository->folder, repository->commit, name);
}

char *oct_hub_blob(const oct_hub_repository *repository, const oct_hub_file *file, const char *suffix) {
    return oct_sprintf("%s/blobs/%s%s", repository->folder, file->hash, suffix);
}

bool oct_hub_has(const oct_hub_repository *repository, oct_hub_file *file) {
    char *path = snapshot_path(repository, file->name);
    struct stat facts;
    bool has = path != NULL && stat(path, &facts) == 0 && S_ISREG(facts.st_mode) &&
               (!file->size_known || (uint64_t)facts.st_size == file->size);
    if (has) {
        char target[OCT_HUB_NAME_LIMIT * 4];
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        const char *name = oct_path_base(target);
        if (strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64) memcpy(file->sha256, name, 65);
        file->size = (uint64_t)facts.st_size;
        file->size_known = true;
    }
    oct_free(path);
    return has;
}

/* The directories above `path`. */
static octet_status make_parents(const char *path) {
    char *directory = oct_strndup(path, (size_t)(oct_path_base(path) - path));
    if (directory == NULL) return oct_fail_memory();
    octet_status status = oct_make_directories(directory);
    oct_free(directory);
    return status;
}

/* "../../blobs/HASH", with one more ".." for each folder in the file's name */
static void put_target(oct_text *target, const oct_hub_file *file) {
    oct_text_puts(target, "../../");
    for (const char *at = file->name; (at = strchr(at, '/')) != NULL; at++) oct_text_puts(target, "../");
    oct_text_printf(target, "blobs/%s", file->hash);
}

static bool points_at(const char *path, const char *target) {
    char found[OCT_HUB_NAME_LIMIT * 4];
    ssize_t length = readlink(path, found, sizeof found - 1);
    found[length > 0 ? length : 0] = '\0';
    return strcmp(found, target) == 0;
}

/* Whatever is at `path` gives way in one step. */
static octet_status replace_link(const char *path, const char *target) {
    char *fresh = oct_sprintf("%s.%ld.tmp", path, (long)getpid());
    if (fresh == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    if (symlink(target, fresh) != 0) {
        status = oct_fail_errno(fresh, "could not make the link");
    } else if (rename(fresh, path) != 0) {
        status = oct_fail_errno(path, "could not replace it");
        (void)unlink(fresh);
    }
    oct_free(fresh);
    return status;
}

octet_status oct_hub_link(const oct_hub_repository *repository, const oct_hub_file *file) {
    oct_text target = {0};
    char *path = snapshot_path(repository, file->name);
    put_target(&target, file);
    octet_status status = path == NULL || target.failed ? oct_fail_memory() : make_parents(path);
    if (status == OCTET_OK && symlink(target.data, path) != 0) {
        if (errno != EEXIST) {
            status = oct_fail_errno(path, "could not make the link");
        } else if (!points_at(path, target.data)) {
            status = replace_link(path, target.data);
        }
    }
    oct_text_free(&target);
    oct_free(path);
    return status;
}

octet_status oct_hub_write_ref(const oct_hub_repository *repository) {
    if (strcmp(repository->revision, repository->commit) == 0) return OCTET_OK;
    char *path = oct_sprintf("%s/refs/%s", repository->folder, repository->revision);
    if (path == NULL) return oct_fail_memory();
    uint8_t *now = NULL;
    size_t size = 0;
    octet_status status = OCTET_OK;
    bool same = oct_file_exists(path) && oct_file_read(path, 4096, &now, &size) == OCTET_OK && size == 40 &&
                memcmp(now, repository->commit, 40) == 0;
    if (!same) status = make_parents(path);
    if (!same && status == OCTET_OK) status = oct_file_write(path, repository->commit, 40);
    oct_free(now);
    oct_free(path);
    return status;
}

/* ---- locks */

/* Others remove lock files they gave back: what is locked must still be what the path names. */
static bool still_named(int descriptor, const char *path) {
    struct stat held, named;
    return fstat(descriptor, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

static octet_status lock_path(const char *path, oct_hub_client *client, int *descriptor) {
    for (;;) {
        int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (opened < 0) return oct_fail_errno(path, "could not open the lock");
        bool held = flock(opened, LOCK_EX | LOCK_NB) == 0;
        int reason = errno;
        if (held && still_named(opened, path)) {
            *descriptor = opened;
            return OCTET_OK;
        }
        (void)close(opened);
        if (held || reason == EINTR) continue;
        if (reason != EWOULDBLOCK) {
            errno = reason;
            return oct_fail_errno(path, "could not lock");
        }
        OCT_TRY(oct_hub_tell(client, OCT_HUB_WAITING, "waits: another process fetches it"));
        OCT_TRY(oct_hub_sleep(client, LOCK_TICK_MS));
    }
}

octet_status oct_hub_lock(const oct_hub_repository *repository, const oct_hub_file *file, oct_hub_client *client,
                          int *descriptor) {
    *descriptor = -1;
    char *path = oct_sprintf("%s/%s.lock", repository->locks, file->hash);
    if (path == NULL) return oct_fail_memory();
    octet_status status = make_parents(path);
    if (status == OCTET_OK) status = lock_path(path, client, descriptor);
    oct_free(path);
    return status;
}
