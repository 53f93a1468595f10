/* SPDX-License-Identifier: Apache-2.0 */
/* Products of E4M3 as the tensor cores make them (tensor_core.h), where other evaluations sum in float32: the oracle
 * that single steps on such a device are held against. */
#ifndef OCT_GRAPH_EXACT_H
#define OCT_GRAPH_EXACT_H

#include "graph/stored.h"

/* CONV2D without groups, or LINEAR: input in e4m3 with a scale for the tensor, weight in e4m3 with one for the tensor
 * or a channel. */
bool oct_exact_is_product(oct_op op, const oct_attributes *attributes, const oct_stored *inputs);
/* The node's output before it is stored. Terms of a convolution come in the order row, column, channel of the window,
 * zeros outside the picture. `promote`: as oct_tensor_core_dot. */
octet_status oct_exact_product(oct_op op, const oct_attributes *attributes, const oct_stored *inputs, int64_t promote,
                               oct_array *output);

#endif
