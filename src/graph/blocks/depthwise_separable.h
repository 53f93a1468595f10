/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, then a pointwise one: NAME.conv_dw, bn1 (activation), conv_pw, bn2; with stride 1 and as many
 * channels out as in, the input is added. */
#ifndef OCT_GRAPH_BLOCKS_DEPTHWISE_SEPARABLE_H
#define OCT_GRAPH_BLOCKS_DEPTHWISE_SEPARABLE_H

#include "graph/blocks/builder.h"

typedef struct oct_depthwise_separable {
    int64_t out;
    int kernel, stride;
    oct_activation activation;
    double epsilon;
} oct_depthwise_separable;
int32_t oct_build_depthwise_separable(const oct_builder *builder, const char *name, int32_t x,
                                      const oct_depthwise_separable *block);

#endif
