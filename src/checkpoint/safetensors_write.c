/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a safetensors file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/dtype.h"

#define PIECE ((size_t)64 << 10)

/* The reference writer's order of dtypes, so that each tensor lies aligned behind those of larger elements. */
static int dtype_rank(oct_dtype dtype) {
    static const oct_dtype rising[] = {OCT_DTYPE_U8,  OCT_DTYPE_I8,   OCT_DTYPE_F8_E5M2, OCT_DTYPE_F8_E4M3,
                                       OCT_DTYPE_F16, OCT_DTYPE_BF16, OCT_DTYPE_I32,     OCT_DTYPE_F32,
                                       OCT_DTYPE_F64, OCT_DTYPE_I64};
    for (int i = 0; i < (int)(sizeof rising / sizeof *rising); i++)
        if (rising[i] == dtype) return i;
    return -1;
}

static int file_order(const void *a, const void *b) {
    const oct_tensor_source *x = *(const oct_tensor_source *const *)a, *y = *(const oct_tensor_source *const *)b;
    int order = dtype_rank(y->dtype) - dtype_rank(x->dtype);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const oct_tensor_source *const *)a)->name, (*(const oct_tensor_source *const *)b)->name);
}

static octet_status count_elements(const oct_tensor_source *tensor, uint64_t *count) {
    uint64_t bytes;
    bool bad = oct_dtype_size(tensor->dtype) == 0 || tensor->rank < 0 || tensor->rank > OCT_TENSOR_RANK;
    *count = 1;
    for (int i = 0; i < tensor->rank && !bad; i++)
        bad = tensor->shape[i] < 0 || __builtin_mul_overflow(*count, (uint64_t)tensor->shape[i], count);
    if (!bad)
        bad = __builtin_mul_overflow(*count, (uint64_t)oct_dtype_size(tensor->dtype), &bytes) || bytes > INT64_MAX;
    if (bad) return oct_fail(OCTET_INVALID_ARGUMENT, "tensor %s: dtype or shape cannot be written", tensor->name);
    if (tensor->data == NULL && tensor->produce == NULL && *count > 0)
        return oct_fail(OCTET_INVALID_ARGUMENT, "tensor %s: no data", tensor->name);
    return OCTET_OK;
}

static octet_status check_names(const oct_tensor_source **order, size_t count) {
    if (count > 1) qsort(order, count, sizeof *order, by_name);
    for (size_t i = 0; i < count; i++) {
        if (order[i]->name[0] == '\0' || strcmp(order[i]->name, "__metadata__") == 0)
            return oct_fail(OCTET_INVALID_ARGUMENT, "\"%s\" is not a tensor's name", order[i]->name);
        if (i > 0 && strcmp(order[i - 1]->name, order[i]->name) == 0)
            return oct_fail(OCTET_INVALID_ARGUMENT, "tensor %s is given twice", order[i]->name);
    }
    return OCTET_OK;
}

static octet_status make_header(oct_text *header, const oct_tensor_source **order, size_t count) {
    uint64_t offset = 0;
    oct_text_puts(header, "{");
    for (size_t i = 0; i < count; i++) {
        const oct_tensor_source *tensor = order[i];
        uint64_t elements, end;
        OCT_TRY(count_elements(tensor, &elements));
        if (__builtin_add_overflow(offset, elements * oct_dtype_size(tensor->dtype), &end) || end > INT64_MAX)
            return oct_fail(OCTET_INVALID_ARGUMENT, "the tensors up to %s are too large for a file", tensor->name);
        if (i > 0) oct_text_puts(header, ",");
        oct_text_json(header, tensor->name);
        oct_text_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", oct_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->rank; d++)
            oct_text_printf(header, "%s%" PRId64, d > 0 ? "," : "", tensor->shape[d]);
        oct_text_printf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, end);
        offset = end;
    }
    oct_text_puts(header, "}");
    while (!header->failed && header->length % 8 != 0) oct_text_puts(header, " ");
    return header->failed ? oct_fail_memory() : OCTET_OK;
}

static octet_status write_tensor(oct_writer *writer, const oct_tensor_source *tensor, uint8_t *piece) {
    uint64_t count;
    size_t element = oct_dtype_size(tensor->dtype);
    OCT_TRY(count_elements(tensor, &count));
    if (tensor->data != NULL) return oct_writer_write(writer, tensor->data, (size_t)(count * element));
    for (uint64_t done = 0; done < count;) {
        size_t some = count - done < PIECE / element ? (size_t)(count - done) : PIECE / element;
        OCT_TRY(tensor->produce(tensor, done, some, piece));
        OCT_TRY(oct_writer_write(writer, piece, some * element));
        done += some;
    }
    return OCTET_OK;
}

static octet_status write_all(oct_writer *writer, const oct_text *header, const oct_tensor_source **order, size_t count,
                              uint8_t *piece) {
    uint8_t length[8];
    oct_store_little(length, 8, header->length);
    OCT_TRY(oct_writer_write(writer, length, sizeof length));
    OCT_TRY(oct_writer_write(writer, header->data, header->length));
    for (size_t i = 0; i < count; i++) OCT_TRY(write_tensor(writer, order[i], piece));
    return OCTET_OK;
}

octet_status oct_safetensors_write(const char *path, const oct_tensor_source *tensors, size_t count) {
    oct_text header = {0};
    oct_writer *writer = NULL;
    const oct_tensor_source **order = oct_calloc(count, sizeof *order);
    uint8_t *piece = oct_alloc(PIECE);
    octet_status status = order != NULL && piece != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) {
        for (size_t i = 0; i < count; i++) order[i] = &tensors[i];
        status = check_names(order, count);
    }
    if (status == OCTET_OK) {
        if (count > 1) qsort(order, count, sizeof *order, file_order);
        status = make_header(&header, order, count);
    }
    if (status == OCTET_OK) status = oct_writer_open(&writer, path);
    if (status == OCTET_OK) {
        status = write_all(writer, &header, order, count, piece);
        if (status == OCTET_OK)
            status = oct_writer_commit(writer);
        else
            oct_writer_abort(writer);
    }
    oct_free(piece);
    oct_free((void *)order);
    oct_text_free(&header);
    return status;
}
