/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON beside the weights: any document, and the index of shards held against tensors that agree with it, then
 * against one fewer. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds) {
    if (!holds) abort();
}

static int shard_number(const oct_shard_index *index, const char *name) {
    for (size_t i = 0; i < index->shard_count; i++)
        if (strcmp(index->shards[i], name) == 0) return (int)i;
    abort();
}

static void check_index(const oct_document *document, const oct_shard_index *index) {
    oct_tensor *tensors = oct_calloc(index->entry_count, sizeof *tensors);
    require(tensors != NULL && index->entry_count > 0 && index->shard_count > 0);
    for (size_t i = 0; i < index->entry_count; i++) {
        const char *shard = index->entries[i].shard->string;
        require(shard[0] != '/' && strncmp(shard, "../", 3) != 0 && strstr(shard, "/../") == NULL);
        tensors[i].name = tensors[i].stored_name = index->entries[i].tensor;
        tensors[i].file_index = shard_number(index, shard);
        tensors[i].file = shard;
    }
    require(oct_shard_index_check(document, index, tensors, index->entry_count) == OCTET_OK);
    require(oct_shard_index_check(document, index, tensors, index->entry_count - 1) == OCTET_MISMATCH);
    oct_free(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    oct_document document = {0};
    if (oct_document_parse_json(&document, "fuzz.json", (const char *)data, size) != OCTET_OK) return 0;
    oct_shard_index index;
    if (oct_shard_index_read(&document, &index) == OCTET_OK) {
        check_index(&document, &index);
        oct_shard_index_free(&index);
    }
    oct_document_free(&document);
    return 0;
}
