/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE and DEQUANTIZE: the identity. What they change is the form in which the numbers are stored. */
#include <string.h>

#include "graph/ops/rules.h"

static octet_status same_shape(const char *node, const oct_shape *inputs, int count, oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(oct_rule_rank(node, "input", &inputs[0], 2, OCT_RANK));
    *output = inputs[0];
    return OCTET_OK;
}

octet_status oct_op_quantize_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                   int count, oct_shape *output) {
    (void)attributes;
    return same_shape(node, inputs, count, output);
}

octet_status oct_op_dequantize_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                     int count, oct_shape *output) {
    (void)attributes;
    return same_shape(node, inputs, count, output);
}

void oct_op_quantize_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                               oct_array *output) {
    (void)attributes, (void)count;
    memcpy(output->data, inputs[0].data, (size_t)oct_shape_count(&output->shape) * sizeof(float));
}

void oct_op_dequantize_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                 oct_array *output) {
    oct_op_quantize_reference(attributes, inputs, count, output);
}

int64_t oct_op_quantize_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                              const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return oct_shape_count(output);
}

int64_t oct_op_dequantize_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                                const oct_shape *output) {
    return oct_op_quantize_flops(attributes, inputs, count, output);
}
