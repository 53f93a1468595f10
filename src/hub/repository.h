/* SPDX-License-Identifier: Apache-2.0 */
/* A repository: where its files lie, on the hub and in the cache (inside the hub room). */
#ifndef OCT_HUB_REPOSITORY_H
#define OCT_HUB_REPOSITORY_H

#include "hub/request.h"

typedef struct oct_hub_file {
    char *name;    /* checked: a path that stays inside its snapshot */
    uint64_t size; /* as listed, then as the file's own answer says */
    bool size_known;
    bool git;        /* the hash is git's SHA-1 of the contents, else their SHA-256 */
    char hash[65];   /* "" until asked for */
    char sha256[65]; /* "" until known */
} oct_hub_file;

typedef struct oct_hub_repository {
    char *id, *revision; /* as asked; revision "main" if none was */
    bool dataset;
    char commit[41];
    oct_hub_file *files; /* those wanted, by rising name, each once */
    size_t count;
    char *folder; /* CACHE/models--ORG--NAME */
    char *locks;  /* CACHE/.locks/models--ORG--NAME */
} oct_hub_repository;

/* Checks what was asked for; asks nobody. */
octet_status oct_hub_repository_open(oct_hub_repository *repository, const oct_hub_options *options);
void oct_hub_repository_close(oct_hub_repository *repository);

/* Asks the hub for the commit and the names; keeps the files wanted. */
octet_status oct_hub_list(oct_hub_repository *repository, oct_hub_client *client, const oct_hub_options *options);
/* OK, or why this name is none of a file in a snapshot: absolute, "..", a backslash, a control character, too long. */
octet_status oct_hub_check_name(const char *name);
/* ENDPOINT/ID/resolve/COMMIT/FILE, oct_alloc'd. NULL: no memory. */
char *oct_hub_file_url(const oct_hub_repository *repository, const oct_hub_client *client, const char *name);
/* Puts what the status means for a repository, and what to do, in place of a failed answer's bare text. */
octet_status oct_hub_explain(const oct_hub_repository *repository, const oct_hub_client *client,
                             const oct_hub_response *response, const char *file);

/* Whether the snapshot has the file, of the size known if one is; then size and, if its name is one, sha256 are set. */
bool oct_hub_has(const oct_hub_repository *repository, oct_hub_file *file);
/* FOLDER/blobs/HASH + suffix, oct_alloc'd. NULL: no memory. */
char *oct_hub_blob(const oct_hub_repository *repository, const oct_hub_file *file, const char *suffix);
/* Makes the snapshot's link to the blob, or mends it. */
octet_status oct_hub_link(const oct_hub_repository *repository, const oct_hub_file *file);
octet_status oct_hub_write_ref(const oct_hub_repository *repository);
/* Waits for the lock of the file's blob, telling progress. Closing *descriptor gives it back. */
octet_status oct_hub_lock(const oct_hub_repository *repository, const oct_hub_file *file, oct_hub_client *client,
                          int *descriptor);

/* Hashes of a whole file: SHA-256 and git's SHA-1, as hex. */
octet_status oct_hub_digest(const char *path, char sha256[65], char git_sha1[41]);
/* The blob of one file, whole and checked, and the link to it. *fetched: false if the blob was there. */
octet_status oct_hub_fetch(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                           bool *fetched);

#endif
