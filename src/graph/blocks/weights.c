/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/weights.h"

#include <string.h>

#include "base/alloc.h"

/* Shapes of stored tensors may have more dimensions than a value's, so they have their own text. */
static void print_dims(int rank, const int64_t *dims, oct_text *text) {
    oct_text_puts(text, "[");
    for (int i = 0; i < rank; i++) oct_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)dims[i]);
    oct_text_puts(text, "]");
}

static octet_status fail_shape(const char *place, const char *name, int rank, const int64_t *dims,
                               const oct_tensor *tensor) {
    oct_text expected = {0}, found = {0};
    octet_status status;
    print_dims(rank, dims, &expected);
    if (tensor != NULL) {
        print_dims(tensor->rank, tensor->shape, &found);
    } else {
        oct_text_puts(&found, "no such tensor");
    }
    if (expected.failed || found.failed) {
        status = oct_fail_memory();
    } else {
        status = oct_fail(OCTET_MISMATCH, "%s: %s: expected %s, found %s", place, name, expected.data, found.data);
    }
    oct_text_free(&expected);
    oct_text_free(&found);
    return status;
}

static octet_status find_weight(oct_checkpoint *checkpoint, const char *name, int rank, const int64_t *dims,
                                const oct_tensor **found) {
    oct_tensor *tensor = oct_checkpoint_find(checkpoint, name);
    if (tensor == NULL) return fail_shape(oct_checkpoint_directory(checkpoint), name, rank, dims, NULL);
    bool same = tensor->rank == rank;
    for (int i = 0; same && i < rank; i++) same = tensor->shape[i] == dims[i];
    if (!same) return fail_shape(tensor->file, name, rank, dims, tensor);
    switch (tensor->is_coded ? OCT_DTYPE_F32 : tensor->dtype) {
    case OCT_DTYPE_F64:
    case OCT_DTYPE_F32:
    case OCT_DTYPE_F16:
    case OCT_DTYPE_BF16:
        break;
    default: /* codes without their scales are not the weights */
        return oct_fail(OCTET_UNSUPPORTED, "%s: %s: expected F32, F16, BF16 or F64, found %s", tensor->file, name,
                        oct_dtype_name(tensor->dtype));
    }
    tensor->used = true;
    *found = tensor;
    return OCTET_OK;
}

octet_status oct_weight_read(oct_checkpoint *checkpoint, const char *name, int rank, const int64_t *dims,
                             float **data) {
    *data = NULL;
    if (name == NULL) return oct_error_status(); /* it could not be made: reported there */
    const oct_tensor *tensor = NULL;
    OCT_TRY(find_weight(checkpoint, name, rank, dims, &tensor));
    size_t size;
    if (!oct_mul_size((size_t)tensor->count, sizeof(float), &size)) return oct_fail_memory();
    float *values = oct_alloc(size);
    if (values == NULL) return oct_fail_memory();
    octet_status status = oct_checkpoint_read(checkpoint, tensor, values);
    if (status != OCTET_OK) {
        oct_free(values);
        return status;
    }
    *data = values;
    return OCTET_OK;
}

int32_t oct_weight(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int rank, const int64_t *dims) {
    float *data;
    if (oct_weight_read(checkpoint, name, rank, dims, &data) != OCTET_OK) return OCT_NONE;
    return oct_graph_constant(graph, name, oct_shape_of(rank, dims), data);
}

int32_t oct_weight_conv(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int64_t o, int64_t c,
                        int64_t kh, int64_t kw) {
    const int64_t stored[] = {o, c, kh, kw}, given[] = {o, kh, kw, c};
    float *data;
    if (oct_weight_read(checkpoint, name, 4, stored, &data) != OCTET_OK) return OCT_NONE;
    if (c > 1 && kh * kw > 1) {
        int64_t taps = kh * kw, size = c * taps;
        float *moved = oct_alloc((size_t)(o * size) * sizeof(float));
        if (moved == NULL) {
            oct_free(data);
            oct_fail_memory();
            return OCT_NONE;
        }
        for (int64_t i = 0; i < o; i++) {
            for (int64_t channel = 0; channel < c; channel++) {
                for (int64_t tap = 0; tap < taps; tap++) {
                    moved[i * size + tap * c + channel] = data[i * size + channel * taps + tap];
                }
            }
        }
        oct_free(data);
        data = moved;
    }
    return oct_graph_constant(graph, name, oct_shape_of(4, given), data);
}

octet_status oct_weight_split(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int rank,
                              const int64_t *dims, int parts, const char *const *names, int32_t *ids) {
    for (int i = 0; i < parts; i++) ids[i] = OCT_NONE;
    float *data;
    OCT_TRY(oct_weight_read(checkpoint, name, rank, dims, &data));
    oct_shape shape = oct_shape_of(rank, dims);
    shape.dims[0] /= parts;
    size_t count = (size_t)oct_shape_count(&shape);
    octet_status status = OCTET_OK;
    for (int i = 0; i < parts && status == OCTET_OK; i++) {
        if (names[i] == NULL) {
            status = oct_error_status();
            break;
        }
        float *part = oct_alloc(count * sizeof(float));
        if (part != NULL) memcpy(part, data + (size_t)i * count, count * sizeof(float));
        ids[i] = oct_graph_constant(graph, names[i], shape, part);
        if (ids[i] == OCT_NONE) status = oct_error_status();
    }
    oct_free(data);
    return status;
}
