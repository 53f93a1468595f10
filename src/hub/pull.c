/* SPDX-License-Identifier: Apache-2.0 */
/* A pull: the listing, each file, and at last the ref, so that a revision never names a snapshot that lacks a file. */
#include <string.h>

#include "base/alloc.h"
#include "hub/repository.h"

static octet_status hash_cached(const oct_hub_repository *repository, oct_hub_file *file) {
    char git[41];
    char *path = oct_sprintf("%s/snapshots/%s/%s", repository->folder, repository->commit, file->name);
    if (path == NULL) return oct_fail_memory();
    octet_status status = oct_hub_digest(path, file->sha256, git);
    oct_free(path);
    return status;
}

static octet_status pull_file(const oct_hub_repository *repository, oct_hub_file *file, oct_hub_client *client,
                              bool *fetched) {
    oct_hub_event *event = &client->event;
    event->file = file->name;
    event->size = file->size;
    event->done = 0;
    event->sha256 = "";
    *fetched = false;
    uint64_t listed = file->size;
    if (!oct_hub_has(repository, file)) OCT_TRY(oct_hub_fetch(repository, file, client, fetched));
    if (file->sha256[0] == '\0' && !file->git && file->hash[0] != '\0')
        memcpy(file->sha256, file->hash, sizeof file->hash);
    if (file->sha256[0] == '\0') OCT_TRY(hash_cached(repository, file));
    if (event->all_size > 0) event->all_size += file->size - listed;
    event->all_done += file->size - event->done;
    event->done = event->size = file->size;
    event->sha256 = file->sha256;
    return oct_hub_tell(client, *fetched ? OCT_HUB_FETCHED : OCT_HUB_CACHED, NULL);
}

static octet_status pull_files(oct_hub_repository *repository, oct_hub_client *client, oct_hub_pulled *pulled) {
    client->event.count = repository->count;
    bool known = true;
    for (size_t i = 0; i < repository->count; i++) {
        known = known && repository->files[i].size_known;
        client->event.all_size += repository->files[i].size;
    }
    if (!known) client->event.all_size = 0;
    for (size_t i = 0; i < repository->count; i++) {
        bool fetched = false;
        client->event.index = i;
        OCT_TRY(pull_file(repository, &repository->files[i], client, &fetched));
        pulled->fetched += fetched ? 1 : 0;
    }
    return oct_hub_write_ref(repository);
}

static octet_status pull(oct_hub_repository *repository, oct_hub_client *client, const oct_hub_options *options,
                         oct_hub_pulled *pulled) {
    OCT_TRY(oct_hub_list(repository, client, options));
    OCT_TRY(pull_files(repository, client, pulled));
    pulled->files = repository->count;
    memcpy(pulled->commit, repository->commit, sizeof pulled->commit);
    pulled->directory = oct_sprintf("%s/snapshots/%s", repository->folder, repository->commit);
    return pulled->directory != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status oct_hub_pull(const oct_hub_options *options, oct_hub_pulled *pulled) {
    oct_hub_repository repository;
    oct_hub_client client;
    *pulled = (oct_hub_pulled){0};
    OCT_TRY(oct_hub_repository_open(&repository, options));
    octet_status status = oct_hub_client_open(&client, options);
    if (status == OCTET_OK) {
        status = pull(&repository, &client, options, pulled);
        oct_hub_client_close(&client);
    }
    if (status != OCTET_OK) oct_hub_pulled_free(pulled);
    oct_hub_repository_close(&repository);
    return status;
}

void oct_hub_pulled_free(oct_hub_pulled *pulled) {
    oct_free(pulled->directory);
    *pulled = (oct_hub_pulled){0};
}
