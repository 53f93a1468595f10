/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sharded checkpoint. */
#include "checkpoint/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static int by_tensor(const void *a, const void *b) {
    return strcmp(((const oct_shard_entry *)a)->tensor, ((const oct_shard_entry *)b)->tensor);
}

static int by_string(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static octet_status refuse_shard(const oct_document *document, const oct_shard_entry *entry, const char *why) {
    return oct_node_fail(document, entry->shard, "tensor %s: shard %s: %s", entry->tensor, entry->shard->string, why);
}

static octet_status check_shard_name(const oct_document *document, const oct_shard_entry *entry) {
    if (entry->shard->kind != OCT_NODE_STRING)
        return oct_node_fail(document, entry->shard, "tensor %s: expected the name of a shard, found %s", entry->tensor,
                             oct_node_kind_name(entry->shard->kind));
    const char *name = entry->shard->string;
    if (name[0] == '/')
        return refuse_shard(document, entry, "expected a path inside the directory, found an absolute one");
    for (const char *part = name;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return refuse_shard(document, entry, "expected a path inside the directory, without empty parts, . and ..");
        if (part[length] == '\0') break;
        part += length + 1;
    }
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '\\')
            return oct_node_fail(document, entry->shard, "tensor %s: the shard's name holds the character 0x%02x",
                                 entry->tensor, (unsigned)(unsigned char)*c);
    if (!oct_ends_with(name, ".safetensors"))
        return refuse_shard(document, entry, "expected a name that ends in .safetensors");
    return OCTET_OK;
}

static octet_status read_entries(const oct_document *document, const oct_node *map, oct_shard_index *index) {
    index->entries = oct_calloc(map->count, sizeof *index->entries);
    index->shards = oct_calloc(map->count, sizeof *index->shards);
    if (index->entries == NULL || index->shards == NULL) return oct_fail_memory();
    index->entry_count = map->count;
    for (size_t i = 0; i < map->count; i++) {
        index->entries[i] = (oct_shard_entry){.tensor = map->keys[i], .shard = map->items[i]};
        OCT_TRY(check_shard_name(document, &index->entries[i]));
        index->shards[i] = map->items[i]->string;
    }
    qsort(index->entries, map->count, sizeof *index->entries, by_tensor);
    qsort(index->shards, map->count, sizeof *index->shards, by_string);
    for (size_t i = 0; i < map->count; i++)
        if (i == 0 || strcmp(index->shards[index->shard_count - 1], index->shards[i]) != 0)
            index->shards[index->shard_count++] = index->shards[i];
    return OCTET_OK;
}

octet_status oct_shard_index_read(const oct_document *document, oct_shard_index *index) {
    *index = (oct_shard_index){0};
    const oct_node *root = document->root;
    if (root->kind != OCT_NODE_MAP)
        return oct_node_fail(document, root, "expected a map, found %s", oct_node_kind_name(root->kind));
    const oct_node *map = oct_node_get(root, "weight_map");
    if (map == NULL) return oct_node_fail(document, root, "weight_map is missing");
    if (map->kind != OCT_NODE_MAP)
        return oct_node_fail(document, map, "weight_map: expected a map, found %s", oct_node_kind_name(map->kind));
    if (map->count == 0) return oct_node_fail(document, map, "weight_map is empty");
    const oct_node *total = oct_node_get(oct_node_get(root, "metadata"), "total_size");
    if (total != NULL && (total->kind == OCT_NODE_INT || total->kind == OCT_NODE_REAL)) {
        index->has_total_size = true;
        index->total_size = total->real;
    }
    octet_status status = read_entries(document, map, index);
    if (status != OCTET_OK) oct_shard_index_free(index);
    return status;
}

void oct_shard_index_free(oct_shard_index *index) {
    oct_free(index->entries);
    oct_free((void *)index->shards);
    *index = (oct_shard_index){0};
}

octet_status oct_shard_index_check(const oct_document *document, const oct_shard_index *index,
                                   const oct_tensor *tensors, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const oct_tensor *a = &tensors[i - 1], *b = &tensors[i];
        if (strcmp(a->stored_name, b->stored_name) == 0)
            return oct_fail(OCTET_MISMATCH, "tensor %s is stored twice: in %s and in %s", a->stored_name, a->file,
                            b->file);
    }
    /* Both lists are sorted by name, so that they are walked side by side. */
    size_t e = 0, t = 0;
    while (e < index->entry_count || t < count) {
        const oct_shard_entry *entry = e < index->entry_count ? &index->entries[e] : NULL;
        const oct_tensor *tensor = t < count ? &tensors[t] : NULL;
        int order = entry == NULL ? 1 : tensor == NULL ? -1 : strcmp(entry->tensor, tensor->stored_name);
        if (order > 0) {
            oct_fail(OCTET_MISMATCH, "%s: tensor %s is not listed in the index %s", tensor->file, tensor->stored_name,
                     document->path);
            return oct_detail("a reader that goes by the index would leave it out");
        }
        if (order < 0) {
            (void)oct_node_fail(document, entry->shard, "tensor %s is not in shard %s, nor in any other", entry->tensor,
                                entry->shard->string);
            return OCTET_MISMATCH;
        }
        if (strcmp(entry->shard->string, index->shards[tensor->file_index]) != 0) {
            (void)oct_node_fail(document, entry->shard, "tensor %s is in shard %s, the index names %s", entry->tensor,
                                index->shards[tensor->file_index], entry->shard->string);
            return OCTET_MISMATCH;
        }
        e++;
        t++;
    }
    return OCTET_OK;
}
