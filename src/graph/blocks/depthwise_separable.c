/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/depthwise_separable.h"

int32_t oct_build_depthwise_separable(const oct_builder *builder, const char *name, int32_t x,
                                      const oct_depthwise_separable *block) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    int64_t in = oct_channels(builder->graph, x);
    const oct_convolution depthwise = {in, in, block->kernel, block->stride, block->kernel / 2, .depthwise = true};
    const oct_convolution pointwise = {in, block->out, .kernel = 1, .stride = 1};
    int32_t y = oct_build_convolution(builder, oct_name(builder, "%s.conv_dw", name), x, &depthwise);
    y = oct_build_batch_norm_act(builder, oct_name(builder, "%s.bn1", name), y, block->epsilon, block->activation);
    y = oct_build_convolution(builder, oct_name(builder, "%s.conv_pw", name), y, &pointwise);
    y = oct_build_batch_norm(builder, oct_name(builder, "%s.bn2", name), y, block->epsilon);
    return block->stride == 1 && block->out == in ? oct_build_add(builder, name, y, x) : y;
}
