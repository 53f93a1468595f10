/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/inverted_residual.h"

int32_t oct_build_inverted_residual(const oct_builder *builder, const char *name, int32_t x,
                                    const oct_inverted_residual *block) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    int64_t in = oct_channels(builder->graph, x), mid = block->expanded;
    const oct_convolution expand = {in, mid, .kernel = 1, .stride = 1};
    const oct_convolution depthwise = {mid, mid, block->kernel, block->stride, block->kernel / 2, .depthwise = true};
    const oct_convolution project = {mid, block->out, .kernel = 1, .stride = 1};
    int32_t y = oct_build_convolution(builder, oct_name(builder, "%s.conv_pw", name), x, &expand);
    y = oct_build_batch_norm_act(builder, oct_name(builder, "%s.bn1", name), y, block->epsilon, block->activation);
    y = oct_build_convolution(builder, oct_name(builder, "%s.conv_dw", name), y, &depthwise);
    y = oct_build_batch_norm_act(builder, oct_name(builder, "%s.bn2", name), y, block->epsilon, block->activation);
    y = oct_build_convolution(builder, oct_name(builder, "%s.conv_pwl", name), y, &project);
    y = oct_build_batch_norm(builder, oct_name(builder, "%s.bn3", name), y, block->epsilon);
    return block->stride == 1 && block->out == in ? oct_build_add(builder, name, y, x) : y;
}
