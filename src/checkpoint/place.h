/* SPDX-License-Identifier: Apache-2.0 */
/* From what a user names to a directory (inside the checkpoint room; the hub room, which fills the cache, asks the same
 * questions). The local Hugging Face cache:
 *
 *     CACHE/models--ORG--NAME/refs/BRANCH        a commit, 40 hex digits (BRANCH may hold slashes: refs/pr/1)
 *     CACHE/models--ORG--NAME/snapshots/COMMIT/  the files, usually links into ../../blobs/ */
#ifndef OCT_CHECKPOINT_PLACE_H
#define OCT_CHECKPOINT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define OCT_COMMIT_LENGTH 40

typedef struct oct_place {
    char *directory; /* oct_alloc'd, as the others */
    char *id;        /* "" if the directory is not in a cache */
    char *revision;  /* the commit, or "" */
} oct_place;

/* On failure *place is empty. */
octet_status oct_place_find(oct_place *place, const char *text);
void oct_place_free(oct_place *place);

/* Whether text may be [ORG/]NAME. */
bool oct_place_is_hub_id(const char *text, size_t length);
/* Where the cache is, or would be; where the token is kept, or would be. By the environment alone; oct_alloc'd. */
octet_status oct_place_cache_directory(char **directory);
octet_status oct_place_token_file(char **path);
/* "KIND--ORG--NAME", oct_alloc'd; KIND is "models" or "datasets". NULL: no memory. */
char *oct_place_cache_folder(const char *kind, const char *id);

#endif
