/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the header of a safetensors file. */
#include "checkpoint/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/document.h"
#include "checkpoint/dtype.h"

octet_status oct_safetensors_header_size(const char *path, const uint8_t first[8], uint64_t file_size, size_t *size) {
    uint64_t length = oct_load_little(first, 8);
    if (length > OCT_SAFETENSORS_HEADER_LIMIT) {
        oct_fail(OCTET_LIMIT, "%s: header of %" PRIu64 " bytes, the limit is %u", path, length,
                 OCT_SAFETENSORS_HEADER_LIMIT);
        return oct_hint("this may not be a safetensors file");
    }
    if (file_size < 8 || length > file_size - 8)
        return oct_fail(OCTET_BAD_FORMAT, "%s: header of %" PRIu64 " bytes, the file holds %" PRIu64, path, length,
                        file_size < 8 ? 0 : file_size - 8);
    *size = (size_t)length;
    return OCTET_OK;
}

static octet_status check_name(const oct_document *document, const oct_node *node, const char *name) {
    if (name[0] == '\0') return oct_node_fail(document, node, "a tensor's name is empty");
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return oct_node_fail(document, node, "a tensor's name holds the control character 0x%02x",
                                 (unsigned)(unsigned char)*c);
    return OCTET_OK;
}

static octet_status check_metadata(const oct_document *document, const oct_node *metadata) {
    if (metadata->kind != OCT_NODE_MAP)
        return oct_node_fail(document, metadata, "__metadata__: expected a map of strings, found %s",
                             oct_node_kind_name(metadata->kind));
    for (size_t i = 0; i < metadata->count; i++)
        if (metadata->items[i]->kind != OCT_NODE_STRING)
            return oct_node_fail(document, metadata->items[i], "__metadata__: %s: expected a string, found %s",
                                 metadata->keys[i], oct_node_kind_name(metadata->items[i]->kind));
    return OCTET_OK;
}

/* One number of a shape or of data_offsets. */
static octet_status natural(const oct_document *document, const oct_node *node, const char *tensor, const char *key,
                            int64_t *value) {
    if (node->kind != OCT_NODE_INT)
        return oct_node_fail(document, node, "tensor %s: %s: expected integers, found %s", tensor, key,
                             oct_node_kind_name(node->kind));
    if (node->integer < 0)
        return oct_node_fail(document, node, "tensor %s: %s: %" PRId64 " is negative", tensor, key, node->integer);
    *value = node->integer;
    return OCTET_OK;
}

static octet_status list_of(const oct_document *document, const oct_node *map, const char *tensor, const char *key,
                            const oct_node **list) {
    *list = oct_node_get(map, key);
    if (*list == NULL) return oct_node_fail(document, map, "tensor %s: %s is missing", tensor, key);
    if ((*list)->kind != OCT_NODE_LIST)
        return oct_node_fail(document, *list, "tensor %s: %s: expected a list, found %s", tensor, key,
                             oct_node_kind_name((*list)->kind));
    return OCTET_OK;
}

static octet_status parse_tensor(const oct_document *document, const char *name, const oct_node *node, size_t header,
                                 uint64_t file_size, oct_tensor *tensor) {
    OCT_TRY(check_name(document, node, name));
    if (node->kind != OCT_NODE_MAP)
        return oct_node_fail(document, node, "tensor %s: expected a map, found %s", name,
                             oct_node_kind_name(node->kind));
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i];
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 && strcmp(key, "data_offsets") != 0)
            return oct_node_fail(document, node->items[i], "tensor %s: unknown key %s", name, key);
    }

    const oct_node *dtype = oct_node_get(node, "dtype");
    if (dtype == NULL) return oct_node_fail(document, node, "tensor %s: dtype is missing", name);
    if (dtype->kind != OCT_NODE_STRING)
        return oct_node_fail(document, dtype, "tensor %s: dtype: expected a string, found %s", name,
                             oct_node_kind_name(dtype->kind));
    if (!oct_dtype_by_name(dtype->string, &tensor->dtype)) {
        oct_fail(OCTET_UNSUPPORTED, "%s: tensor %s: dtype %s is not supported", document->path, name, dtype->string);
        return oct_detail("supported: F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I8, U8, I32, I64");
    }

    const oct_node *shape, *offsets;
    OCT_TRY(list_of(document, node, name, "shape", &shape));
    if (shape->count > OCT_TENSOR_RANK)
        return oct_fail(OCTET_LIMIT, "%s: tensor %s: %zu dimensions, the limit is %d", document->path, name,
                        shape->count, OCT_TENSOR_RANK);
    tensor->rank = (int)shape->count;
    tensor->count = 1;
    uint64_t bytes = 0;
    bool overflow = false;
    for (size_t i = 0; i < shape->count; i++) {
        OCT_TRY(natural(document, shape->items[i], name, "shape", &tensor->shape[i]));
        overflow |= __builtin_mul_overflow(tensor->count, (uint64_t)tensor->shape[i], &tensor->count);
    }
    overflow |= __builtin_mul_overflow(tensor->count, (uint64_t)oct_dtype_size(tensor->dtype), &bytes);
    if (overflow) return oct_node_fail(document, shape, "tensor %s: the product of its shape overflows", name);

    OCT_TRY(list_of(document, node, name, "data_offsets", &offsets));
    if (offsets->count != 2)
        return oct_node_fail(document, offsets, "tensor %s: data_offsets: expected 2 numbers, found %zu", name,
                             offsets->count);
    int64_t begin = 0, end = 0;
    OCT_TRY(natural(document, offsets->items[0], name, "data_offsets", &begin));
    OCT_TRY(natural(document, offsets->items[1], name, "data_offsets", &end));
    uint64_t data = file_size - 8 - header;
    if (begin > end)
        return oct_node_fail(document, offsets, "tensor %s: data begins at %" PRId64 ", after its end at %" PRId64,
                             name, begin, end);
    if ((uint64_t)end > data)
        return oct_node_fail(document, offsets,
                             "tensor %s: data ends at %" PRId64 ", the file holds %" PRIu64 " bytes of data", name, end,
                             data);
    tensor->size = (uint64_t)(end - begin);
    if (tensor->size != bytes)
        return oct_node_fail(document, offsets,
                             "tensor %s: expected %" PRIu64 " bytes for its shape in %s, found %" PRIu64, name, bytes,
                             oct_dtype_name(tensor->dtype), tensor->size);
    tensor->offset = 8 + header + (uint64_t)begin;
    return OCTET_OK;
}

static int by_offset(const void *a, const void *b) {
    const oct_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Every byte of the data belongs to exactly one tensor. Sorts the tensors by offset. */
static octet_status check_cover(const char *path, oct_tensor *tensors, size_t count, uint64_t data,
                                uint64_t file_size) {
    if (count > 1) qsort(tensors, count, sizeof *tensors, by_offset);
    uint64_t at = data;
    for (size_t i = 0; i < count; i++) {
        const oct_tensor *tensor = &tensors[i];
        if (tensor->offset < at)
            return oct_fail(OCTET_BAD_FORMAT, "%s: tensors %s and %s overlap", path, tensors[i - 1].name, tensor->name);
        if (tensor->offset > at)
            return oct_fail(OCTET_BAD_FORMAT, "%s: %" PRIu64 " bytes before tensor %s belong to no tensor", path,
                            tensor->offset - at, tensor->name);
        at += tensor->size;
    }
    if (at != file_size)
        return oct_fail(OCTET_BAD_FORMAT, "%s: %" PRIu64 " bytes after the last tensor", path, file_size - at);
    return OCTET_OK;
}

static octet_status parse_tensors(const oct_document *document, const char *path, size_t header, uint64_t file_size,
                                  int file_index, oct_arena *arena, oct_tensor_list *list) {
    const oct_node *root = document->root;
    if (root->kind != OCT_NODE_MAP)
        return oct_node_fail(document, root, "expected a map of tensors, found %s", oct_node_kind_name(root->kind));
    size_t first = list->count;
    if (!oct_grow((void **)&list->items, sizeof *list->items, first + root->count, &list->capacity))
        return oct_fail_memory();
    for (size_t i = 0; i < root->count; i++) {
        if (strcmp(root->keys[i], "__metadata__") == 0) {
            OCT_TRY(check_metadata(document, root->items[i]));
            continue;
        }
        oct_tensor tensor = {.file = path, .file_index = file_index};
        OCT_TRY(parse_tensor(document, root->keys[i], root->items[i], header, file_size, &tensor));
        tensor.name = tensor.stored_name = oct_arena_strdup(arena, root->keys[i]);
        if (tensor.name == NULL) return oct_fail_memory();
        list->items[list->count++] = tensor;
    }
    oct_tensor *added = list->count > first ? &list->items[first] : NULL;
    return check_cover(path, added, list->count - first, 8 + header, file_size);
}

octet_status oct_safetensors_parse(const char *path, const char *header, size_t size, uint64_t file_size,
                                   int file_index, oct_arena *arena, oct_tensor_list *list) {
    if (size == 0 || header[0] != '{') return oct_fail(OCTET_BAD_FORMAT, "%s: the header does not begin with {", path);
    oct_document document = {0};
    OCT_TRY(oct_document_parse_json(&document, path, header, size));
    octet_status status = parse_tensors(&document, path, size, file_size, file_index, arena, list);
    oct_document_free(&document);
    return status;
}

octet_status oct_safetensors_scan(const oct_file *file, const char *path, int file_index, oct_arena *arena,
                                  oct_tensor_list *list) {
    if (file->size < 8)
        return oct_fail(OCTET_BAD_FORMAT, "%s: %" PRIu64 " bytes, too short for a safetensors file", path, file->size);
    uint8_t first[8];
    size_t size = 0;
    OCT_TRY(oct_file_read_at(file, 0, first, sizeof first));
    OCT_TRY(oct_safetensors_header_size(path, first, file->size, &size));
    char *header = oct_alloc(size);
    if (header == NULL) return oct_fail_memory();
    octet_status status = oct_file_read_at(file, 8, header, size);
    if (status == OCTET_OK) status = oct_safetensors_parse(path, header, size, file->size, file_index, arena, list);
    oct_free(header);
    return status;
}
