/* SPDX-License-Identifier: Apache-2.0 */
/* LINEAR: out[.., m] = activation(sum over k of in[.., k] weight[m, k] + bias[m] + residual[.., m]). */
#include "graph/ops/rules.h"

octet_status oct_op_linear_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                                 oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 2 + attributes->has_bias + attributes->has_residual, count));
    const oct_shape *x = &inputs[0], *weight = &inputs[1];
    OCT_TRY(oct_rule_rank(node, "input", x, 2, 4));
    OCT_TRY(oct_rule_rank(node, "weight", weight, 2, 2));
    oct_shape expected = {.rank = 2, .dims = {weight->dims[0], x->dims[x->rank - 1]}};
    OCT_TRY(oct_rule_expect(node, "weight", &expected, weight));
    *output = *x;
    output->dims[x->rank - 1] = weight->dims[0];
    int bias = oct_bias_index(attributes), residual = oct_residual_index(attributes);
    if (bias != OCT_NONE) OCT_TRY(oct_rule_vector(node, "bias", weight->dims[0], &inputs[bias]));
    if (residual != OCT_NONE) OCT_TRY(oct_rule_expect(node, "residual", output, &inputs[residual]));
    return OCTET_OK;
}

void oct_op_linear_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)count;
    const oct_array *x = &inputs[0], *weight = &inputs[1];
    int64_t out = weight->shape.dims[0], depth = weight->shape.dims[1];
    int64_t rows = oct_shape_count(&output->shape) / out;
    int bias = oct_bias_index(attributes), residual = oct_residual_index(attributes);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t m = 0; m < out; m++) {
            double sum = oct_dot(x->data + row * depth, weight->data + m * depth, depth);
            if (bias != OCT_NONE) sum += (double)inputs[bias].data[m];
            if (residual != OCT_NONE) sum += (double)inputs[residual].data[row * out + m];
            output->data[row * out + m] = (float)oct_activation_reference(attributes->activation, sum);
        }
    }
}

int64_t oct_op_linear_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                            const oct_shape *output) {
    (void)attributes, (void)count;
    return 2 * oct_shape_count(output) * inputs[1].dims[1];
}
