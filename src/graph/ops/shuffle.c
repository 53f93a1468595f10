/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that average or move elements: GLOBAL_POOL, RESHAPE, CONCAT, SLICE. */
#include <string.h>

#include "graph/ops/rules.h"

octet_status oct_op_global_pool_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                      int count, oct_shape *output) {
    (void)attributes;
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(oct_rule_rank(node, "input", &inputs[0], 4, 4));
    *output = (oct_shape){.rank = 2, .dims = {inputs[0].dims[0], inputs[0].dims[3]}};
    return OCTET_OK;
}

void oct_op_global_pool_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                  oct_array *output) {
    (void)attributes, (void)count;
    const oct_shape *x = &inputs[0].shape;
    int64_t pixels = x->dims[1] * x->dims[2], channels = x->dims[3];
    for (int64_t n = 0; n < x->dims[0]; n++) {
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t p = 0; p < pixels; p++) sum += (double)inputs[0].data[(n * pixels + p) * channels + c];
            output->data[n * channels + c] = (float)(sum / (double)pixels);
        }
    }
}

int64_t oct_op_global_pool_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                                 const oct_shape *output) {
    (void)attributes, (void)count, (void)output;
    return oct_shape_count(&inputs[0]);
}

octet_status oct_op_reshape_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                  int count, oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(oct_rule_rank(node, "shape", &attributes->shape, 1, OCT_RANK));
    *output = attributes->shape;
    output->dims[0] = inputs[0].dims[0];
    /* the batch stays, so the rest must hold the same number; an empty or huge dimension never does */
    int64_t left = oct_shape_count(&inputs[0]) / inputs[0].dims[0];
    for (int i = 1; i < output->rank && left > 0; i++) {
        left = output->dims[i] > 0 && left % output->dims[i] == 0 ? left / output->dims[i] : 0;
    }
    if (left == 1) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "%s: %s does not hold the elements of %s", node, oct_shape_text(output).bytes,
                    oct_shape_text(&inputs[0]).bytes);
}

void oct_op_reshape_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)attributes, (void)count;
    memcpy(output->data, inputs[0].data, (size_t)oct_shape_count(&output->shape) * sizeof(float));
}

int64_t oct_op_reshape_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                             const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count, (void)output;
    return 0;
}

octet_status oct_op_concat_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                                 oct_shape *output) {
    (void)attributes;
    for (int i = 0; i < count; i++) {
        OCT_TRY(oct_rule_rank(node, "input", &inputs[i], 3, 3));
        if (i == 0) {
            *output = inputs[0];
            continue;
        }
        if (output->dims[0] == 1) output->dims[0] = inputs[i].dims[0];
        output->dims[1] += inputs[i].dims[1];
    }
    for (int i = 0; i < count; i++) {
        oct_shape expected = {.rank = 3, .dims = {output->dims[0], inputs[i].dims[1], output->dims[2]}};
        if (inputs[i].dims[0] == 1) expected.dims[0] = 1;
        OCT_TRY(oct_rule_expect(node, "input", &expected, &inputs[i]));
    }
    return OCTET_OK;
}

void oct_op_concat_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)attributes;
    float *at = output->data;
    for (int64_t n = 0; n < output->shape.dims[0]; n++) {
        for (int i = 0; i < count; i++) {
            int64_t size = inputs[i].shape.dims[1] * inputs[i].shape.dims[2];
            int64_t picture = inputs[i].shape.dims[0] == 1 ? 0 : n;
            memcpy(at, inputs[i].data + picture * size, (size_t)size * sizeof(float));
            at += size;
        }
    }
}

int64_t oct_op_concat_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                            const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count, (void)output;
    return 0;
}

octet_status oct_op_slice_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                                oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(oct_rule_rank(node, "input", &inputs[0], 3, 3));
    int64_t tokens = inputs[0].dims[1];
    if (attributes->start < 0 || attributes->start >= tokens || attributes->length < 1 ||
        attributes->length > tokens - attributes->start) {
        return oct_fail(OCTET_MISMATCH, "%s: %lld tokens from token %lld do not lie within %s", node,
                        (long long)attributes->length, (long long)attributes->start, oct_shape_text(&inputs[0]).bytes);
    }
    *output = inputs[0];
    output->dims[1] = attributes->length;
    return OCTET_OK;
}

void oct_op_slice_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)count;
    int64_t tokens = inputs[0].shape.dims[1], channels = inputs[0].shape.dims[2];
    int64_t size = attributes->length * channels;
    for (int64_t n = 0; n < output->shape.dims[0]; n++) {
        memcpy(output->data + n * size, inputs[0].data + (n * tokens + attributes->start) * channels,
               (size_t)size * sizeof(float));
    }
}

int64_t oct_op_slice_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                           const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count, (void)output;
    return 0;
}
