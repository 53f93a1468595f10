/* SPDX-License-Identifier: Apache-2.0 */
/* Equalization (adjust.h says when it is right), and the factors of values that it shares with smoothing. */
#ifndef OCT_QUANT_EQUALIZE_H
#define OCT_QUANT_EQUALIZE_H

#include "quant/adjust.h"

/* The value's numbers are to be multiplied by `factors`, a channel each, besides what they were already. */
octet_status oct_adjusted_scale_value(oct_adjusted *adjusted, const oct_graph *graph, int32_t value,
                                      const float *factors);
/* Multiplies what a node makes: gamma and beta, or weight and bias. */
octet_status oct_adjusted_scale_node(oct_graph *graph, oct_graph_node *node, const float *factors);

octet_status oct_quant_equalize(oct_graph *graph, const oct_decisions *decisions, oct_adjusted *adjusted);

#endif
