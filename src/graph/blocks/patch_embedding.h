/* SPDX-License-Identifier: Apache-2.0 */
/* A picture cut into patches, each a token: the convolution PROJECTION (kernel = stride = patch, with bias), then its
 * pixels in row order as tokens, named TOKENS: [n, rows * columns, channels]. */
#ifndef OCT_GRAPH_BLOCKS_PATCH_EMBEDDING_H
#define OCT_GRAPH_BLOCKS_PATCH_EMBEDDING_H

#include "graph/blocks/builder.h"

int32_t oct_build_patch_embedding(const oct_builder *builder, const char *projection, const char *tokens, int32_t x,
                                  int patch, int64_t channels);

/* `count` values of [n or 1, t, channels] one after the other along t. */
int32_t oct_build_concat(const oct_builder *builder, const char *name, const int32_t *parts, int count);

#endif
