/* SPDX-License-Identifier: Apache-2.0 */
/* From what a user names to a directory (inside the checkpoint room). The local Hugging Face cache:
 *
 *     CACHE/models--ORG--NAME/refs/BRANCH        a commit, 40 hex digits (BRANCH may hold slashes: refs/pr/1)
 *     CACHE/models--ORG--NAME/snapshots/COMMIT/  the files, usually links into ../../blobs/ */
#ifndef OCT_CHECKPOINT_PLACE_H
#define OCT_CHECKPOINT_PLACE_H

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

#endif
