/* SPDX-License-Identifier: Apache-2.0 */
/* Linears NAME.layers.0, .1 .. with relu between: hidden channels = the input's, `out` at the end. */
#ifndef OCT_GRAPH_BLOCKS_MLP_HEAD_H
#define OCT_GRAPH_BLOCKS_MLP_HEAD_H

#include "graph/blocks/builder.h"

int32_t oct_build_mlp_head(const oct_builder *builder, const char *name, int32_t x, int layers, int64_t out);

#endif
