/* SPDX-License-Identifier: Apache-2.0 */
/* CONV2D: out[n, y, x, o] = activation(sum over i, j, c of in[n, y stride_h + i - pad_top, x stride_w + j - pad_left, g
 * + c] weight[o, i, j, c] + bias[o] + residual[n, y, x, o]), zeros outside the picture, g the first channel of o's
 * group. */
#include "graph/ops/rules.h"

octet_status oct_op_conv2d_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                                 oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 2 + attributes->has_bias + attributes->has_residual, count));
    const oct_shape *x = &inputs[0], *weight = &inputs[1];
    OCT_TRY(oct_rule_rank(node, "input", x, 4, 4));
    OCT_TRY(oct_rule_rank(node, "weight", weight, 4, 4));
    int64_t groups = attributes->groups;
    if (groups < 1 || x->dims[3] % groups != 0 || weight->dims[0] % groups != 0) {
        return oct_fail(OCTET_MISMATCH, "%s: %lld groups do not divide %lld input and %lld output channels", node,
                        (long long)groups, (long long)x->dims[3], (long long)weight->dims[0]);
    }
    oct_shape expected = *weight;
    expected.dims[3] = x->dims[3] / groups;
    OCT_TRY(oct_rule_expect(node, "weight", &expected, weight));
    if (attributes->stride_h < 1 || attributes->stride_w < 1 || attributes->pad_top < 0 || attributes->pad_left < 0 ||
        attributes->pad_bottom < 0 || attributes->pad_right < 0) {
        return oct_fail(OCTET_MISMATCH, "%s: strides must be 1 or more and padding 0 or more", node);
    }
    int64_t height = x->dims[1] + attributes->pad_top + attributes->pad_bottom - weight->dims[1];
    int64_t width = x->dims[2] + attributes->pad_left + attributes->pad_right - weight->dims[2];
    if (height < 0 || width < 0) {
        return oct_fail(OCTET_MISMATCH, "%s: input %s is smaller than the %lld x %lld kernel", node,
                        oct_shape_text(x).bytes, (long long)weight->dims[1], (long long)weight->dims[2]);
    }
    *output = (oct_shape){
        .rank = 4,
        .dims = {x->dims[0], height / attributes->stride_h + 1, width / attributes->stride_w + 1, weight->dims[0]}};
    int bias = oct_bias_index(attributes), residual = oct_residual_index(attributes);
    if (bias != OCT_NONE) OCT_TRY(oct_rule_vector(node, "bias", weight->dims[0], &inputs[bias]));
    if (residual != OCT_NONE) OCT_TRY(oct_rule_expect(node, "residual", output, &inputs[residual]));
    return OCTET_OK;
}

void oct_op_conv2d_reference(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output) {
    (void)count;
    const oct_array *x = &inputs[0], *weight = &inputs[1];
    int64_t height = x->shape.dims[1], width = x->shape.dims[2], channels = x->shape.dims[3];
    int64_t kernel_h = weight->shape.dims[1], kernel_w = weight->shape.dims[2], depth = weight->shape.dims[3];
    int64_t batch = output->shape.dims[0], out_h = output->shape.dims[1], out_w = output->shape.dims[2];
    int64_t out_c = output->shape.dims[3], group = out_c / attributes->groups; /* outputs a group */
    int bias = oct_bias_index(attributes), residual = oct_residual_index(attributes);
    int64_t at = 0;
    for (int64_t n = 0; n < batch; n++) {
        for (int64_t y = 0; y < out_h; y++) {
            for (int64_t column = 0; column < out_w; column++) {
                for (int64_t o = 0; o < out_c; o++, at++) {
                    double sum = 0;
                    for (int64_t i = 0; i < kernel_h; i++) {
                        int64_t row = y * attributes->stride_h + i - attributes->pad_top;
                        if (row < 0 || row >= height) continue;
                        for (int64_t j = 0; j < kernel_w; j++) {
                            int64_t col = column * attributes->stride_w + j - attributes->pad_left;
                            if (col < 0 || col >= width) continue;
                            sum += oct_dot(x->data + ((n * height + row) * width + col) * channels + o / group * depth,
                                           weight->data + ((o * kernel_h + i) * kernel_w + j) * depth, depth);
                        }
                    }
                    if (bias != OCT_NONE) sum += (double)inputs[bias].data[o];
                    if (residual != OCT_NONE) sum += (double)inputs[residual].data[at];
                    output->data[at] = (float)oct_activation_reference(attributes->activation, sum);
                }
            }
        }
    }
}

int64_t oct_op_conv2d_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                            const oct_shape *output) {
    (void)attributes, (void)count;
    return 2 * oct_shape_count(output) * inputs[1].dims[1] * inputs[1].dims[2] * inputs[1].dims[3];
}
