/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM: (x - mean) / sqrt(variance + epsilon) * gamma + beta by channel, with the statistics given.
 * LAYER_NORM: the same with mean and (biased) variance of the row itself, over its channels. */
#include <math.h>

#include "graph/ops/rules.h"

static octet_status norm_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                               const char *const *what, int expected, oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, expected, count));
    OCT_TRY(oct_rule_rank(node, "input", &inputs[0], 2, 4));
    for (int i = 1; i < count; i++) {
        OCT_TRY(oct_rule_vector(node, what[i - 1], inputs[0].dims[inputs[0].rank - 1], &inputs[i]));
    }
    if (!(attributes->epsilon >= 0) || isinf(attributes->epsilon)) {
        return oct_fail(OCTET_MISMATCH, "%s: epsilon: expected 0 or more, found %g", node, attributes->epsilon);
    }
    *output = inputs[0];
    return OCTET_OK;
}

octet_status oct_op_batch_norm_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                     int count, oct_shape *output) {
    static const char *const what[] = {"gamma", "beta", "mean", "variance"};
    return norm_shape(node, attributes, inputs, count, what, 5, output);
}

void oct_op_batch_norm_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                 oct_array *output) {
    (void)count;
    const float *gamma = inputs[1].data, *beta = inputs[2].data, *mean = inputs[3].data, *variance = inputs[4].data;
    int64_t channels = inputs[1].shape.dims[0], elements = oct_shape_count(&output->shape);
    for (int64_t i = 0; i < elements; i++) {
        int64_t c = i % channels;
        double centred = (double)inputs[0].data[i] - (double)mean[c];
        output->data[i] =
            (float)(centred / sqrt((double)variance[c] + attributes->epsilon) * (double)gamma[c] + (double)beta[c]);
    }
}

int64_t oct_op_batch_norm_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                                const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return 2 * oct_shape_count(output);
}

octet_status oct_op_layer_norm_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                     int count, oct_shape *output) {
    static const char *const what[] = {"gamma", "beta"};
    return norm_shape(node, attributes, inputs, count, what, 3, output);
}

void oct_op_layer_norm_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                 oct_array *output) {
    (void)count;
    const float *gamma = inputs[1].data, *beta = inputs[2].data;
    int64_t channels = inputs[1].shape.dims[0], rows = oct_shape_count(&output->shape) / channels;
    for (int64_t row = 0; row < rows; row++) {
        const float *x = inputs[0].data + row * channels;
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < channels; c++) sum += (double)x[c];
        double mean = sum / (double)channels;
        for (int64_t c = 0; c < channels; c++) squares += ((double)x[c] - mean) * ((double)x[c] - mean);
        double scale = 1 / sqrt(squares / (double)channels + attributes->epsilon);
        for (int64_t c = 0; c < channels; c++) {
            output->data[row * channels + c] =
                (float)(((double)x[c] - mean) * scale * (double)gamma[c] + (double)beta[c]);
        }
    }
}

int64_t oct_op_layer_norm_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                                const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return 8 * oct_shape_count(output);
}
