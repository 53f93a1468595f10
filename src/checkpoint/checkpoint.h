/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint: a directory in the hub's layout (config.json, perhaps preprocessor_config.json, model.safetensors or
 * shards with an index), read without trust. Tensors are read when asked for, so a checkpoint holds no weights itself.
 *
 * Names: a prefix "module.", "_orig_mod." or "model." common to all tensors is stripped. */
#ifndef OCT_CHECKPOINT_CHECKPOINT_H
#define OCT_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/document.h"
#include "base/hash.h"

#define OCT_TENSOR_RANK 8

typedef enum oct_dtype {
    OCT_DTYPE_F64, OCT_DTYPE_F32, OCT_DTYPE_F16, OCT_DTYPE_BF16, OCT_DTYPE_F8_E4M3, OCT_DTYPE_F8_E5M2,
    OCT_DTYPE_I8, OCT_DTYPE_U8, OCT_DTYPE_I32, OCT_DTYPE_I64, OCT_DTYPE_COUNT
} oct_dtype;
const char *oct_dtype_name(oct_dtype dtype); /* as safetensors writes it: "F32" */
unsigned oct_dtype_size(oct_dtype dtype);    /* bytes an element */

typedef struct oct_tensor {
    const char *name;        /* after stripping */
    const char *stored_name; /* as in the file */
    const char *file;        /* path of its file */
    oct_dtype dtype;
    int rank;
    int64_t shape[OCT_TENSOR_RANK];
    uint64_t count;          /* elements */
    uint64_t offset, size;   /* bytes in the file */
    int file_index;
    bool used;               /* a builder asked for it */
} oct_tensor;

typedef struct oct_checkpoint oct_checkpoint;

/* `place`: a directory, or a hub id ("timm/mobilenetv2_100.ra_in1k", with @REVISION) found in the local Hugging Face cache
 * (HF_HUB_CACHE, HF_HOME/hub, ~/.cache/huggingface/hub). Caller closes. Warnings (a single file winning over an index ...) are
 * kept as lines. */
octet_status oct_checkpoint_open(oct_checkpoint **checkpoint, const char *place);
void oct_checkpoint_close(oct_checkpoint *checkpoint);

const char *oct_checkpoint_directory(const oct_checkpoint *checkpoint);
const char *oct_checkpoint_id(const oct_checkpoint *checkpoint);       /* hub id, or "" */
const char *oct_checkpoint_revision(const oct_checkpoint *checkpoint); /* commit, or "" */
const oct_document *oct_checkpoint_config(const oct_checkpoint *checkpoint);        /* config.json */
const oct_document *oct_checkpoint_preprocessor(const oct_checkpoint *checkpoint);  /* NULL: no such file */
size_t oct_checkpoint_warning_count(const oct_checkpoint *checkpoint);
const char *oct_checkpoint_warning(const oct_checkpoint *checkpoint, size_t index);

size_t oct_checkpoint_tensor_count(const oct_checkpoint *checkpoint);
oct_tensor *oct_checkpoint_tensor(oct_checkpoint *checkpoint, size_t index); /* by rising name (bytes) */
oct_tensor *oct_checkpoint_find(oct_checkpoint *checkpoint, const char *name); /* NULL: none */
/* Elements as float32 (exact for every dtype but F64, I32, I64: rounded to nearest even), `values` holds tensor->count.
 * A value that is not finite is an error naming the tensor and its index. */
octet_status oct_checkpoint_read(const oct_checkpoint *checkpoint, const oct_tensor *tensor, float *values);
/* The stored bytes. */
octet_status oct_checkpoint_read_raw(const oct_checkpoint *checkpoint, const oct_tensor *tensor, void *bytes);
/* A tensor no builder asked for is an error naming the first (but "*.num_batches_tracked"). */
octet_status oct_checkpoint_all_used(const oct_checkpoint *checkpoint);
/* SHA-256 over names, types, shapes and bytes of all tensors by rising name, whatever the sharding. */
octet_status oct_checkpoint_fingerprint(const oct_checkpoint *checkpoint, char hex[OCT_SHA256_HEX]);

/* Writing (tools and tests): one safetensors file. */
typedef struct oct_tensor_source {
    const char *name;
    oct_dtype dtype;
    int rank;
    int64_t shape[OCT_TENSOR_RANK];
    const void *data;
} oct_tensor_source;
octet_status oct_safetensors_write(const char *path, const oct_tensor_source *tensors, size_t count);

#endif
