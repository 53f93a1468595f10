/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph in float32, after the passes, to a quantized one: decisions in, rewritten nodes out.
 *
 * For each decision the product's weight becomes a constant of codes, and its input is read from a QUANTIZE node (one
 * for all readers that want the same form). If the output is to be stored narrow, a QUANTIZE and, for readers that want
 * numbers, a DEQUANTIZE follow the product. oct_pass_fuse_quantize then moves QUANTIZE nodes into the nodes before them
 * (docs/architecture.md, "A value owns its stored forms"); those it must leave are what remains of the op. */
#ifndef OCT_GRAPH_QUANTIZE_H
#define OCT_GRAPH_QUANTIZE_H

#include "graph/graph.h"

typedef struct oct_quantize_decision {
    const char *node;                   /* a CONV2D or LINEAR by the node's name */
    oct_format weight;                  /* fp32: left as it is; int8, e4m3 */
    oct_granularity weight_granularity; /* OCT_PER_TENSOR or OCT_PER_CHANNEL */
    const float *weight_scales;         /* 1 or one a channel; NULL: from the largest magnitudes */
    oct_format input;                   /* fp32: as it is; fp16, bf16, int8, e4m3 */
    oct_granularity input_granularity;  /* OCT_PER_TENSOR, static; OCT_PER_ROW, dynamic: LINEAR */
    float input_scale;                  /* OCT_PER_TENSOR of int8, e4m3: > 0 */
    oct_format output;                  /* how the product's output is stored for everyone; fp32: as it is */
    float output_scale;                 /* likewise */
} oct_quantize_decision;

/* An error names the node: none of this name, not a product, its weight no constant, a scale that cannot be, formats
 * that do not go together. On failure the graph may only be freed. */
octet_status oct_graph_quantize(oct_graph *graph, const oct_quantize_decision *decisions, size_t count);
/* QUANTIZE nodes into their producers: a CONV2D, LINEAR, ADD, LAYER_NORM or ACTIVATION stores the narrow form beside
 * the wide one, or instead of it where nobody reads that. A scale a row is found by those whose row is whole: ADD,
 * LAYER_NORM, ACTIVATION. */
octet_status oct_pass_fuse_quantize(oct_graph *graph);
/* QUANTIZE and DEQUANTIZE nodes. */
size_t oct_graph_unfused(const oct_graph *graph);

#endif
