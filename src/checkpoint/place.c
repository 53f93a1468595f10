/* SPDX-License-Identifier: Apache-2.0 */
/* Directories, hub ids and the local Hugging Face cache. */
#include "checkpoint/place.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#define REF_LIMIT 4096 /* bytes of a ref file */
#define PREFIX_MIN 4   /* digits of an abbreviated commit */

void oct_place_free(oct_place *place) {
    oct_free(place->directory);
    oct_free(place->id);
    oct_free(place->revision);
    *place = (oct_place){0};
}

static octet_status keep(oct_place *place, char *directory, char *id, char *revision) {
    *place = (oct_place){.directory = directory, .id = id, .revision = revision};
    if (directory != NULL && id != NULL && revision != NULL) return OCTET_OK;
    oct_place_free(place);
    return oct_fail_memory();
}

static bool is_hex(const char *text, size_t length) {
    return strspn(text, "0123456789abcdef") >= length;
}

static bool is_commit(const char *text) {
    return strlen(text) == OCT_COMMIT_LENGTH && is_hex(text, OCT_COMMIT_LENGTH);
}

/* ---- ids ---- */

/* [ORG/]NAME, each of letters, digits, "_", "-", ".", without "--" and "..", as the hub's own client checks. */
bool oct_place_is_hub_id(const char *text, size_t length) {
    size_t slashes = 0, part = 0;
    if (length == 0 || length > 192) return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i], next = i + 1 < length ? text[i + 1] : '\0';
        bool edge = part == 0 || next == '/' || next == '\0';
        if (c == '/') {
            if (part == 0 || next == '\0' || ++slashes > 1) return false;
            part = 0;
            continue;
        }
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!word && (edge || (c != '-' && c != '.') || c == next)) return false;
        if (++part > 96) return false;
    }
    return true;
}

char *oct_place_cache_folder(const char *kind, const char *id) {
    const char *slash = strchr(id, '/');
    if (slash == NULL) return oct_sprintf("%s--%s", kind, id);
    return oct_sprintf("%s--%.*s--%s", kind, (int)(slash - id), id, slash + 1);
}

/* Fills id and revision of a directory that lies at .../models--ORG--NAME/snapshots/COMMIT. */
static octet_status find_directory(oct_place *place, const char *directory) {
    char *real = realpath(directory, NULL);
    if (real == NULL) return oct_fail_errno(directory, "cannot open");
    char *id = NULL, *revision = NULL;
    char *commit = strrchr(real, '/'), *snapshots = NULL, *folder = NULL;
    if (commit != NULL && is_commit(commit + 1)) {
        *commit = '\0';
        snapshots = strrchr(real, '/');
    }
    if (snapshots != NULL && strcmp(snapshots, "/snapshots") == 0) {
        *snapshots = '\0';
        folder = strrchr(real, '/');
    }
    if (folder != NULL && oct_starts_with(folder, "/models--")) {
        char *name = folder + strlen("/models--"), *dashes = strstr(name, "--");
        id = dashes == NULL ? oct_strdup(name) : oct_sprintf("%.*s/%s", (int)(dashes - name), name, dashes + 2);
        revision = oct_strdup(commit + 1);
    } else {
        id = oct_strdup("");
        revision = oct_strdup("");
    }
    free(real);
    return keep(place, oct_strdup(directory), id, revision);
}

/* ---- the cache ---- */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* "ROOT/REST"; a leading ~ of ROOT is the home directory, as the hub's client reads its variables. */
static char *under(const char *root, const char *rest) {
    const char *home = root[0] == '~' && (root[1] == '/' || root[1] == '\0') ? environment("HOME") : NULL;
    const char *slash = rest[0] != '\0' ? "/" : "";
    return home != NULL ? oct_sprintf("%s%s%s%s", home, root + 1, slash, rest)
                        : oct_sprintf("%s%s%s", root, slash, rest);
}

typedef struct cache_root {
    const char *variable, *rest;
} cache_root;

/* The directory of the first variable that is set. */
static octet_status first_set(const cache_root *roots, size_t count, const char *hint, char **directory) {
    for (size_t i = 0; i < count; i++) {
        const char *root = environment(roots[i].variable);
        if (root == NULL) continue;
        *directory = under(root, roots[i].rest);
        return *directory != NULL ? OCTET_OK : oct_fail_memory();
    }
    oct_fail(OCTET_NOT_FOUND, "cannot tell where the Hugging Face cache is: HOME is not set");
    return oct_hint("set %s", hint);
}

octet_status oct_place_cache_directory(char **directory) {
    static const cache_root roots[] = {{"HF_HUB_CACHE", ""},
                                       {"HUGGINGFACE_HUB_CACHE", ""},
                                       {"HF_HOME", "hub"},
                                       {"XDG_CACHE_HOME", "huggingface/hub"},
                                       {"HOME", ".cache/huggingface/hub"}};
    return first_set(roots, sizeof roots / sizeof *roots, "HF_HUB_CACHE", directory);
}

octet_status oct_place_token_file(char **path) {
    static const cache_root roots[] = {{"HF_TOKEN_PATH", ""},
                                       {"HF_HOME", "token"},
                                       {"XDG_CACHE_HOME", "huggingface/token"},
                                       {"HOME", ".cache/huggingface/token"}};
    return first_set(roots, sizeof roots / sizeof *roots, "HF_HOME", path);
}

/* Adds the hint to the failure just reported. */
static octet_status hint_pull(const char *id, const char *revision) {
    if (revision[0] != '\0') return oct_hint("octet pull %s@%s", id, revision);
    return oct_hint("octet pull %s", id);
}

/* The commit a ref file holds; *commit stays NULL if there is no such file. */
static octet_status read_ref(const char *repository, const char *ref, char **commit) {
    for (const char *part = ref;;) { /* a ref is a name, not a way out of refs/ */
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return oct_fail(OCTET_INVALID_ARGUMENT, "%s is not a revision", ref);
        if (part[length] == '\0') break;
        part += length + 1;
    }
    char *path = oct_sprintf("%s/refs/%s", repository, ref);
    if (path == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    if (oct_file_exists(path) && !oct_file_is_directory(path)) {
        uint8_t *text = NULL;
        size_t size = 0;
        status = oct_file_read(path, REF_LIMIT, &text, &size);
        if (status == OCTET_OK) {
            while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL) text[--size] = '\0';
            if (size != OCT_COMMIT_LENGTH || !is_commit((const char *)text)) {
                status = oct_fail(OCTET_BAD_FORMAT, "%s: expected a commit of %d hex digits", path, OCT_COMMIT_LENGTH);
            } else {
                *commit = oct_strdup((const char *)text);
                if (*commit == NULL) status = oct_fail_memory();
            }
        }
        oct_free(text);
    }
    oct_free(path);
    return status;
}

/* The one snapshot whose commit begins with `prefix`; *commit stays NULL if there is none. */
static octet_status complete_commit(const char *repository, const char *prefix, char **commit) {
    size_t length = strlen(prefix);
    if (length < PREFIX_MIN || length > OCT_COMMIT_LENGTH || !is_hex(prefix, length)) return OCTET_OK;
    char *path = oct_path_join(repository, "snapshots");
    if (path == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && status == OCTET_OK && (entry = readdir(directory)) != NULL;) {
        if (!is_commit(entry->d_name) || !oct_starts_with(entry->d_name, prefix)) continue;
        if (*commit != NULL) {
            const char *a = *commit, *b = entry->d_name;
            bool ordered = strcmp(a, b) < 0;
            status = oct_fail(OCTET_INVALID_ARGUMENT, "revision %s is ambiguous: %s and %s", prefix, ordered ? a : b,
                              ordered ? b : a);
        } else if ((*commit = oct_strdup(entry->d_name)) == NULL) {
            status = oct_fail_memory();
        }
    }
    if (directory != NULL) closedir(directory);
    oct_free(path);
    return status;
}

static octet_status find_commit(const char *repository, const char *id, const char *revision, char **commit) {
    OCT_TRY(read_ref(repository, revision[0] != '\0' ? revision : "main", commit));
    if (*commit == NULL) OCT_TRY(complete_commit(repository, revision, commit));
    if (*commit != NULL) return OCTET_OK;
    oct_fail(OCTET_NOT_FOUND, "%s: revision %s is not in the local cache", id, revision[0] != '\0' ? revision : "main");
    oct_detail("looked in %s", repository);
    return hint_pull(id, revision);
}

static octet_status find_snapshot(oct_place *place, const char *repository, const char *id, const char *revision) {
    char *commit = NULL;
    octet_status status = find_commit(repository, id, revision, &commit);
    if (status != OCTET_OK) {
        oct_free(commit);
        return status;
    }
    char *directory = oct_sprintf("%s/snapshots/%s", repository, commit);
    if (directory != NULL && !oct_file_is_directory(directory)) {
        oct_fail(OCTET_NOT_FOUND, "%s: no such directory", directory);
        status = hint_pull(id, revision);
        oct_free(directory);
        oct_free(commit);
        return status;
    }
    return keep(place, directory, oct_strdup(id), commit);
}

static octet_status find_id(oct_place *place, const char *id, const char *revision) {
    char *cache = NULL, *folder = NULL, *repository = NULL;
    OCT_TRY(oct_place_cache_directory(&cache));
    octet_status status;
    folder = oct_place_cache_folder("models", id);
    repository = folder != NULL ? oct_path_join(cache, folder) : NULL;
    if (repository == NULL) {
        status = oct_fail_memory();
    } else if (!oct_file_is_directory(repository)) {
        oct_fail(OCTET_NOT_FOUND, "%s: neither a directory nor a model in the local cache", id);
        oct_detail("looked in %s", cache);
        status = hint_pull(id, revision);
    } else {
        status = find_snapshot(place, repository, id, revision);
    }
    oct_free(cache);
    oct_free(folder);
    oct_free(repository);
    return status;
}

octet_status oct_place_find(oct_place *place, const char *text) {
    *place = (oct_place){0};
    if (text == NULL || text[0] == '\0') return oct_fail(OCTET_INVALID_ARGUMENT, "the checkpoint's place is empty");
    if (oct_file_is_directory(text)) return find_directory(place, text);
    if (oct_file_exists(text)) {
        oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected a checkpoint directory, found a file", text);
        return oct_hint("name the directory that holds config.json and the weights");
    }
    const char *at = strchr(text, '@');
    size_t length = at != NULL ? (size_t)(at - text) : strlen(text);
    if (!oct_place_is_hub_id(text, length)) return oct_fail(OCTET_NOT_FOUND, "%s: no such directory", text);
    if (at != NULL && at[1] == '\0') return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the revision after @ is empty", text);
    char *id = oct_strndup(text, length);
    if (id == NULL) return oct_fail_memory();
    octet_status status = find_id(place, id, at != NULL ? at + 1 : "");
    oct_free(id);
    return status;
}
