/* SPDX-License-Identifier: Apache-2.0 */
/* model.safetensors.index.json (inside the checkpoint room):
 *
 *     {"metadata": {"total_size": BYTES}, "weight_map": {TENSOR: SHARD, ...}}
 *
 * A shard is a relative path inside the directory (no "..", "." or empty part) that ends in .safetensors; what it names
 * may be a link, as in the hub's cache. Each listed tensor must be in the shard named for it, each stored tensor must
 * be listed, none may be stored twice. total_size is only compared, and may be absent. */
#ifndef OCT_CHECKPOINT_SHARDS_H
#define OCT_CHECKPOINT_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/document.h"
#include "checkpoint/checkpoint.h"

typedef struct oct_shard_entry {
    const char *tensor;
    const oct_node *shard; /* its name, and the line */
} oct_shard_entry;

/* Points into the document it was read from. */
typedef struct oct_shard_index {
    const char **shards; /* by rising name, each once */
    size_t shard_count;
    oct_shard_entry *entries; /* by rising tensor name */
    size_t entry_count;
    bool has_total_size;
    double total_size;
} oct_shard_index;

octet_status oct_shard_index_read(const oct_document *document, oct_shard_index *index);
void oct_shard_index_free(oct_shard_index *index);
/* Whether index and shards agree. `tensors` by rising stored name, file_index counting index->shards. */
octet_status oct_shard_index_check(const oct_document *document, const oct_shard_index *index,
                                   const oct_tensor *tensors, size_t count);

#endif
