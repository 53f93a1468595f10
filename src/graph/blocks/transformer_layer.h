/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a vision transformer with the norms before:
 *     y = x + projection(attention(query, key, value of norm1(x)));  out = y + second(gelu(first(norm2(y)))) */
#ifndef OCT_GRAPH_BLOCKS_TRANSFORMER_LAYER_H
#define OCT_GRAPH_BLOCKS_TRANSFORMER_LAYER_H

#include "graph/blocks/builder.h"

/* Names are the modules' in the checkpoint; those of steps that are no module (the sums) are the family's choice. A
 * NULL name makes the call fail: oct_name reported why. */
typedef struct oct_transformer_layer {
    const char *norm1, *query, *key, *value;
    const char *fused; /* query, key and value stored as one linear of this name, rows in that order; NULL: apart */
    bool is_fused;
    const char *attention, *projection, *sum1;
    const char *norm2, *first, *gelu, *second, *sum2;
    int heads;
    int64_t hidden; /* channels between first and second */
    bool qkv_bias;
    double epsilon;
} oct_transformer_layer;
int32_t oct_build_transformer_layer(const oct_builder *builder, int32_t x, const oct_transformer_layer *layer);

#endif
