/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors file, read without trust (inside the checkpoint room).
 *
 *     offset  size  meaning
 *          0     8  N, length of the header, little-endian; at most 100,000,000 and what the file holds
 *          8     N  JSON, UTF-8, begins with '{', may end in spaces: a map of tensor name to
 *                   {"dtype": "F32", "shape": [d, ...], "data_offsets": [begin, end]}; offsets count from 8 + N
 *                   "__metadata__", if present, is a map of strings and no tensor
 *      8 + N     .  the data: every byte belongs to exactly one tensor
 *
 * Refused: unknown dtypes (by name), ranks above OCT_TENSOR_RANK, numbers that are not integers or negative, products
 * that overflow, begin > end, end past the data, end - begin other than the shape's bytes, overlaps, holes, bytes after
 * the last tensor, duplicate and unknown keys, names that are empty or hold control characters. */
#ifndef OCT_CHECKPOINT_SAFETENSORS_H
#define OCT_CHECKPOINT_SAFETENSORS_H

#include "base/arena.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"

#define OCT_SAFETENSORS_HEADER_LIMIT 100000000u

typedef struct oct_tensor_list {
    oct_tensor *items; /* oct_alloc'd */
    size_t count, capacity;
} oct_tensor_list;

/* The length of the header from the file's first 8 bytes. */
octet_status oct_safetensors_header_size(const char *path, const uint8_t first[8], uint64_t file_size, size_t *size);
/* Appends the tensors of a header to `list`; names go to `arena`, `path` is kept as tensor->file. On failure the list
 * holds part of them: the caller drops it. Needs no file: fuzzers and tests call it on memory. */
octet_status oct_safetensors_parse(const char *path, const char *header, size_t size, uint64_t file_size,
                                   int file_index, oct_arena *arena, oct_tensor_list *list);
/* Both for an open file. */
octet_status oct_safetensors_scan(const oct_file *file, const char *path, int file_index, oct_arena *arena,
                                  oct_tensor_list *list);

#endif
