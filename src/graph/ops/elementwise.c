/* SPDX-License-Identifier: Apache-2.0 */
/* ACTIVATION: f(x). ADD: activation(x + y), y of x's shape or with batch 1, then added to every picture. */
#include "graph/ops/rules.h"

static octet_status check_activation(const char *node, const oct_attributes *attributes) {
    if ((unsigned)attributes->activation < OCT_ACTIVATION_COUNT) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "%s: no activation %d", node, (int)attributes->activation);
}

octet_status oct_op_activation_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                     int count, oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 1, count));
    OCT_TRY(check_activation(node, attributes));
    *output = inputs[0];
    return OCTET_OK;
}

void oct_op_activation_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                 oct_array *output) {
    (void)count;
    int64_t elements = oct_shape_count(&output->shape);
    for (int64_t i = 0; i < elements; i++) {
        output->data[i] = (float)oct_activation_reference(attributes->activation, (double)inputs[0].data[i]);
    }
}

int64_t oct_op_activation_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                                const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return oct_shape_count(output);
}

octet_status oct_op_add_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                              oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 2, count));
    OCT_TRY(check_activation(node, attributes));
    oct_shape expected = inputs[0];
    if (inputs[1].rank > 0 && inputs[1].dims[0] == 1) expected.dims[0] = 1;
    OCT_TRY(oct_rule_expect(node, "second input", &expected, &inputs[1]));
    *output = inputs[0];
    return OCTET_OK;
}

void oct_op_add_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)count;
    int64_t elements = oct_shape_count(&output->shape), period = oct_shape_count(&inputs[1].shape);
    for (int64_t i = 0; i < elements; i++) {
        double sum = (double)inputs[0].data[i] + (double)inputs[1].data[i % period];
        output->data[i] = (float)oct_activation_reference(attributes->activation, sum);
    }
}

int64_t oct_op_add_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                         const oct_shape *output) {
    (void)attributes, (void)inputs, (void)count;
    return oct_shape_count(output);
}
