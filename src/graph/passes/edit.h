/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes share: nodes that absorb one another, constants that may be written, and the sweep after. */
#ifndef OCT_GRAPH_PASSES_EDIT_H
#define OCT_GRAPH_PASSES_EDIT_H

#include "graph/graph.h"

/* A removed node has this op until oct_edit_sweep. */
#define OCT_OP_REMOVED OCT_OP_COUNT

/* The node that makes `value`, NULL for an input or a constant. */
oct_graph_node *oct_edit_producer(const oct_graph *graph, int32_t value);
/* `value` is made by a node, read by one node alone, and no output: its node may absorb the reader. */
bool oct_edit_is_private(const oct_graph *graph, int32_t value);
/* Node `from` moves to where `into` stands and makes its value; the value it made is nobody's. (Moving later keeps the
 * order: the value moved had that one reader.) */
void oct_edit_absorb(oct_graph *graph, size_t from, size_t into);
/* The constant at node.inputs[index] for writing: itself if only this node reads it, else a copy that the node then
 * reads. NULL: no memory, error set. Node pointers stay valid, value pointers do not. */
float *oct_edit_constant(oct_graph *graph, oct_graph_node *node, int index);
/* Gives a CONV2D or LINEAR without bias one of zeros, named NODE.bias. */
octet_status oct_edit_add_bias(oct_graph *graph, oct_graph_node *node, int64_t length);
/* A new constant, its name made unique. */
int32_t oct_edit_new_constant(oct_graph *graph, const char *name, const oct_shape *shape, float *data);
/* Drops removed nodes, and values that no node makes and that are neither input nor constant; numbers anew. With
 * `unread` also constants nobody reads. */
octet_status oct_edit_sweep(oct_graph *graph, bool unread);

#endif
