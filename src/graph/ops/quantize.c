/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE: the identity. What it changes is the form in which the numbers are stored. */
#include <string.h>

#include "graph/ops/rules.h"

octet_status oct_op_quantize_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                   int count, oct_shape *output) {
    (void)attributes;
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(oct_rule_rank(node, "input", &inputs[0], 2, OCT_RANK));
    *output = inputs[0];
    return OCTET_OK;
}

void oct_op_quantize_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                               oct_array *output) {
    (void)attributes, (void)count;
    memcpy(output->data, inputs[0].data, (size_t)oct_shape_count(&output->shape) * sizeof(float));
}

int64_t oct_op_quantize_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                              const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return oct_shape_count(output);
}
