/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution or linear seen as one thing: weights [outputs][taps][depth], in `groups` groups that do not meet; a
 * linear has one tap and one group. Input channel i stands in column i % depth of the outputs of group i / depth. */
#ifndef OCT_QUANT_PRODUCT_H
#define OCT_QUANT_PRODUCT_H

#include "graph/graph.h"

typedef struct oct_product {
    int64_t outputs, taps, depth, groups, inputs; /* inputs = depth * groups */
    size_t count;                                 /* of weights */
} oct_product;

/* False: no convolution or linear, or its weight is no float32 constant. */
bool oct_product_of(const oct_graph *graph, const oct_graph_node *node, oct_product *product);

/* Largest magnitudes of what one output, one input channel is multiplied with. */
void oct_product_row_amax(const oct_product *product, const float *weight, float *amax);
void oct_product_column_amax(const oct_product *product, const float *weight, float *amax);
/* Multiplied by (or divided by) a factor an output or input channel. */
void oct_product_scale_rows(const oct_product *product, float *weight, const float *factors);
void oct_product_divide_columns(const oct_product *product, float *weight, const float *factors);

#endif
