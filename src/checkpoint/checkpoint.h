/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint: a directory in the hub's layout (config.json, perhaps preprocessor_config.json, model.safetensors or
 * shards with an index), read without trust. Tensors are read when asked for, so a checkpoint holds no weights itself.
 *
 * Names: a prefix "module.", "_orig_mod." or "model." common to all tensors is stripped, again while one is left
 * ("module._orig_mod.").
 *
 * Weights: model.safetensors, else the shards that model.safetensors.index.json lists. Every length, offset and name is
 * checked at opening; safetensors.h has the rules. Tensors are read through files held open from then on. */
#ifndef OCT_CHECKPOINT_CHECKPOINT_H
#define OCT_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/document.h"
#include "base/hash.h"

#define OCT_TENSOR_RANK 8

typedef enum oct_dtype {
    OCT_DTYPE_F64,
    OCT_DTYPE_F32,
    OCT_DTYPE_F16,
    OCT_DTYPE_BF16,
    OCT_DTYPE_F8_E4M3,
    OCT_DTYPE_F8_E5M2,
    OCT_DTYPE_I8,
    OCT_DTYPE_U8,
    OCT_DTYPE_I32,
    OCT_DTYPE_I64,
    OCT_DTYPE_COUNT
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
    uint64_t count;        /* elements */
    uint64_t offset, size; /* bytes in the file */
    int file_index;
    bool used;     /* a builder asked for it */
    bool is_coded; /* codes, whose reader will see to their scales: a builder may read them as numbers */
} oct_tensor;

typedef struct oct_checkpoint oct_checkpoint;

/* `place`: a directory, or a hub id ("timm/mobilenetv2_100.ra_in1k", with @REVISION: branch, tag, commit or the start
 * of one) found in the local Hugging Face cache (HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
 * ~/.cache/huggingface/hub: the first that is set). A directory inside such a cache knows its id and revision too.
 * Caller closes; on failure *checkpoint is NULL. Warnings (a single file winning over an index ...) are kept as lines.
 */
octet_status oct_checkpoint_open(oct_checkpoint **checkpoint, const char *place);
void oct_checkpoint_close(oct_checkpoint *checkpoint);

const char *oct_checkpoint_directory(const oct_checkpoint *checkpoint);
const char *oct_checkpoint_id(const oct_checkpoint *checkpoint);                   /* hub id, or "" */
const char *oct_checkpoint_revision(const oct_checkpoint *checkpoint);             /* commit, or "" */
const oct_document *oct_checkpoint_config(const oct_checkpoint *checkpoint);       /* config.json */
const oct_document *oct_checkpoint_preprocessor(const oct_checkpoint *checkpoint); /* NULL: no such file */
size_t oct_checkpoint_warning_count(const oct_checkpoint *checkpoint);
const char *oct_checkpoint_warning(const oct_checkpoint *checkpoint, size_t index);

size_t oct_checkpoint_tensor_count(const oct_checkpoint *checkpoint);
oct_tensor *oct_checkpoint_tensor(oct_checkpoint *checkpoint, size_t index);   /* by rising name (bytes) */
oct_tensor *oct_checkpoint_find(oct_checkpoint *checkpoint, const char *name); /* NULL: none */
/* Elements as float32 (exact for every dtype but F64, I32, I64: rounded to nearest even), `values` holds tensor->count.
 * A value that is not finite (in the file, or after rounding) is an error naming the tensor and its index. Reads in
 * bounded pieces, allocates nothing; several threads may read at once. */
octet_status oct_checkpoint_read(const oct_checkpoint *checkpoint, const oct_tensor *tensor, float *values);
/* The stored bytes, tensor->size of them. */
octet_status oct_checkpoint_read_raw(const oct_checkpoint *checkpoint, const oct_tensor *tensor, void *bytes);
/* A tensor no builder asked for is an error naming the first (but "*.num_batches_tracked"). */
octet_status oct_checkpoint_all_used(const oct_checkpoint *checkpoint);
/* What the weights are: the same for one file, for shards and under a stripped prefix; another for other names, dtypes
 * (F16 and F32 of the same values differ), shapes or bytes. SHA-256 of, all numbers little-endian:
 *
 *     32  "octet checkpoint fingerprint 1\n" and a zero byte
 *      8  number of tensors
 *     and for each tensor, by rising name (bytes, after stripping):
 *      8  length of the name         then the name, without a zero
 *      8  length of the dtype's name then its name ("F32", "BF16", "F8_E4M3", ...)
 *      8  rank                       then the rank dimensions, 8 bytes each
 *      8  number of bytes            then the bytes as stored
 */
octet_status oct_checkpoint_fingerprint(const oct_checkpoint *checkpoint, char hex[OCT_SHA256_HEX]);

/* Writing (tools and tests): one safetensors file, whole or not at all, the same bytes as safetensors' own writer
 * makes: tensors by falling alignment of their dtype, then by rising name; header padded to 8 bytes; no metadata. */
typedef struct oct_tensor_source oct_tensor_source;
struct oct_tensor_source {
    const char *name;
    oct_dtype dtype;
    int rank;
    int64_t shape[OCT_TENSOR_RANK];
    const void *data; /* the bytes, or NULL: `produce` makes them */
    /* Puts elements first .. first + count - 1 at `bytes`; called in rising order, in bounded pieces. */
    octet_status (*produce)(const oct_tensor_source *tensor, uint64_t first, size_t count, void *bytes);
    void *user; /* for produce */
};
octet_status oct_safetensors_write(const char *path, const oct_tensor_source *tensors, size_t count);

#endif
