/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h: pulling. */
#include "base/alloc.h"
#include "hub/hub.h"
#include "octet/lab.h"
#include "runtime/options.h"

typedef struct listener {
    octet_lab_pull_progress progress;
    void *user;
} listener;

static octet_lab_pull_state state_of(oct_hub_state state) {
    switch (state) {
    case OCT_HUB_ASKING:
        return OCTET_LAB_PULL_ASKING;
    case OCT_HUB_FETCHING:
        return OCTET_LAB_PULL_FETCHING;
    case OCT_HUB_WAITING:
        return OCTET_LAB_PULL_WAITING;
    case OCT_HUB_RETRYING:
        return OCTET_LAB_PULL_RETRYING;
    case OCT_HUB_FETCHED:
        return OCTET_LAB_PULL_FETCHED;
    case OCT_HUB_CACHED:
        break;
    }
    return OCTET_LAB_PULL_CACHED;
}

static bool tell(void *user, const oct_hub_event *event) {
    const listener *to = user;
    const octet_lab_pull_event told = {
        .struct_size = sizeof told,
        .state = state_of(event->state),
        .file = event->file,
        .size = event->size,
        .done = event->done,
        .sha256 = event->sha256,
        .index = event->index,
        .count = event->count,
        .all_size = event->all_size,
        .all_done = event->all_done,
        .note = event->note,
    };
    return to->progress(to->user, &told) == 0;
}

octet_status octet_lab_pull(const octet_lab_pull_options *options, octet_lab_pull_progress progress, void *user,
                            char **directory) {
    if (directory == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "octet_lab_pull: no place for the directory");
    *directory = NULL;
    octet_lab_pull_options own = OCTET_LAB_PULL_OPTIONS_DEFAULT;
    if (options != NULL) OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_lab_pull_options"));
    if (own.id == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "octet_lab_pull: expected options that name a repository");
    listener to = {.progress = progress, .user = user};
    const oct_hub_options hub = {
        .place = own.id,
        .dataset = own.dataset != 0,
        .include = own.include,
        .timeout = own.timeout,
        .progress = progress != NULL ? tell : NULL,
        .user = &to,
    };
    oct_hub_pulled pulled;
    OCT_TRY(oct_hub_pull(&hub, &pulled));
    *directory = pulled.directory;
    return OCTET_OK;
}
