/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: each rewrites a graph into an equal one (to rounding). Order: fold, fuse, dead code (oct_passes_run).
 *
 * A node that absorbs its reader keeps its own name and makes the reader's value: after the passes conv_stem makes
 * bn1.act. So recipes name layers and taps name numbers as the checkpoint's modules do. Value ids are given anew. On
 * failure the graph may only be freed. */
#ifndef OCT_GRAPH_PASSES_H
#define OCT_GRAPH_PASSES_H

#include "graph/graph.h"

/* Batch norm after a convolution or linear: into its weight and bias, in double; weights below 2^-126 become 0
 * (denormals). A negative or non-finite variance, or a result that is not finite, is an error naming the tensor. */
octet_status oct_pass_fold_batch_norm(oct_graph *graph);
/* relu, relu6, gelu, sigmoid into the convolution, linear or add before it, where that value has no other reader. */
octet_status oct_pass_fuse_activation(oct_graph *graph);
/* x + product into the product's residual, where the product has no activation and no other reader. */
octet_status oct_pass_fuse_residual(oct_graph *graph);
/* layer norm's affine into the linears that read it alone: weight * gamma, bias + weight beta (optional: not part of
 * run). */
octet_status oct_pass_fold_layer_norm(oct_graph *graph);
/* nodes and constants nobody reads */
octet_status oct_pass_dead_code(oct_graph *graph);
octet_status oct_passes_run(oct_graph *graph);

#endif
