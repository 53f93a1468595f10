/* SPDX-License-Identifier: Apache-2.0 */
/* Expand, depthwise, project: NAME.conv_pw, bn1 (activation), conv_dw, bn2 (activation), conv_pwl, bn3; with stride 1
 * and as many channels out as in, the input is added. */
#ifndef OCT_GRAPH_BLOCKS_INVERTED_RESIDUAL_H
#define OCT_GRAPH_BLOCKS_INVERTED_RESIDUAL_H

#include "graph/blocks/builder.h"

typedef struct oct_inverted_residual {
    int64_t expanded, out; /* channels */
    int kernel, stride;
    oct_activation activation;
    double epsilon;
} oct_inverted_residual;
int32_t oct_build_inverted_residual(const oct_builder *builder, const char *name, int32_t x,
                                    const oct_inverted_residual *block);

#endif
