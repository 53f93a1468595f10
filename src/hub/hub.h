/* SPDX-License-Identifier: Apache-2.0 */
/* The Hugging Face hub: a repository's files into the local cache, laid out as huggingface_hub lays them out.
 *
 *     CACHE/models--ORG--NAME/blobs/ETAG               a file's bytes; ETAG: its SHA-256 (LFS), or git's SHA-1 of it
 *     CACHE/models--ORG--NAME/blobs/ETAG.incomplete    what has come so far; the next pull goes on from there
 *     CACHE/models--ORG--NAME/snapshots/COMMIT/FILE    a link to ../../blobs/ETAG
 *     CACHE/models--ORG--NAME/refs/REVISION            the commit, written when all its files are there
 *     CACHE/.locks/models--ORG--NAME/ETAG.lock         held (flock) by the one process that fetches this blob
 *
 * A blob gets its name after its size and its hash were found to be those the hub names, so whatever happens, nobody
 * sees a wrong or partial file under a snapshot. Everything the hub says (names, sizes, headers, JSON) is bounded and
 * checked.
 *
 * Read from the environment: HF_ENDPOINT (https://huggingface.co), HF_TOKEN or the token file, HF_HUB_OFFLINE, and the
 * variables that place.h says tell where the cache is. The token goes to the endpoint's own origin and to no other. */
#ifndef OCT_HUB_HUB_H
#define OCT_HUB_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OCT_HUB_TIMEOUT 30                       /* seconds without a byte */
#define OCT_HUB_ATTEMPTS 5                       /* of one request, those that get nowhere */
#define OCT_HUB_BACKOFF_MS 500                   /* before the second attempt; doubles */
#define OCT_HUB_LONGEST_WAIT 60                  /* seconds a server may ask us to wait (Retry-After) */
#define OCT_HUB_JSON_LIMIT ((size_t)32 << 20)    /* bytes of a listing */
#define OCT_HUB_FILES_LIMIT ((size_t)200000)     /* files of a repository */
#define OCT_HUB_FILE_LIMIT ((uint64_t)1 << 40)   /* bytes of one file */
#define OCT_HUB_NAME_LIMIT ((size_t)1024)        /* bytes of a file's name with its folders */
#define OCT_HUB_HEADERS_LIMIT ((size_t)64 << 10) /* bytes of one answer's headers */

typedef enum oct_hub_state {
    OCT_HUB_ASKING,   /* for the listing (no file), or for a file's size and hash */
    OCT_HUB_FETCHING, /* bytes come */
    OCT_HUB_WAITING,  /* for another process that fetches this file, or before trying again: `note` */
    OCT_HUB_RETRYING, /* once after each failure, `note`, that trying again may help */
    OCT_HUB_FETCHED,
    OCT_HUB_CACHED /* was there already */
} oct_hub_state;

typedef struct oct_hub_event {
    oct_hub_state state;
    const char *file;            /* "" while asking for the listing */
    uint64_t size, done;         /* bytes of the file; `done` counts what an earlier pull left */
    const char *sha256;          /* FETCHED, CACHED */
    size_t index, count;         /* of this file among those wanted */
    uint64_t all_size, all_done; /* bytes of all files; all_size 0: the hub does not say */
    const char *note;
} oct_hub_event;

/* Called often, also while nothing comes (about once a second). False cancels; what has come is kept. */
typedef bool (*oct_hub_progress)(void *user, const oct_hub_event *event);

typedef struct oct_hub_options {
    const char *place; /* [ORG/]NAME[@REVISION]; REVISION: branch, tag, commit; none: main */
    bool dataset;
    const char *include; /* a shell pattern over whole names; NULL: of a model what octet reads, of a data set all */
    unsigned timeout;    /* seconds; 0: OCT_HUB_TIMEOUT */
    oct_hub_progress progress; /* may be NULL */
    void *user;
    unsigned attempts, backoff_ms; /* 0: as above (tests are in a hurry) */
} oct_hub_options;

typedef struct oct_hub_pulled {
    char *directory; /* the snapshot; oct_alloc'd */
    char commit[41];
    size_t files, fetched; /* wanted; those that were not there yet */
} oct_hub_pulled;

/* On failure *pulled is empty. VERIFICATION: a file is not what the hub says it is. CANCELLED: by `progress`. */
octet_status oct_hub_pull(const oct_hub_options *options, oct_hub_pulled *pulled);
void oct_hub_pulled_free(oct_hub_pulled *pulled);

#endif
