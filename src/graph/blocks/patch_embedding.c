/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/patch_embedding.h"

int32_t oct_build_patch_embedding(const oct_builder *builder, const char *projection, const char *tokens, int32_t x,
                                  int patch, int64_t channels) {
    const oct_convolution layer = {oct_channels(builder->graph, x), channels, .kernel = patch, .stride = patch,
                                   .bias = true};
    x = oct_build_convolution(builder, projection, x, &layer);
    if (x == OCT_NONE) return OCT_NONE;
    const oct_shape *grid = &oct_graph_value(builder->graph, x)->shape;
    oct_shape shape = {.rank = 3, .dims = {1, grid->dims[1] * grid->dims[2], channels}};
    return oct_build_reshape(builder, tokens, x, shape);
}

int32_t oct_build_concat(const oct_builder *builder, const char *name, const int32_t *parts, int count) {
    if (name == NULL) return OCT_NONE;
    return oct_graph_add_node(builder->graph, OCT_OP_CONCAT, name, parts, count, NULL);
}
