/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph in float32, after the passes, to a quantized one: decisions in, rewritten nodes out.
 *
 *     oct_graph_quantize       weights become narrow constants; narrow inputs are read from QUANTIZE nodes, one for all
 *                              readers that want the same form
 *     oct_graph_store_base     what is still float32 is stored in the base's format
 *     oct_pass_fuse_quantize   QUANTIZE nodes go into the nodes before them, as a form of their value
 *     oct_graph_hold_wide      for a backend that computes in float32: what memory holds as numbers, what as codes
 *
 * in this order. Where a value has two forms (docs/architecture.md, "A value owns its stored forms") both are rounded
 * from the same float32 result, never one from the other. Each of these leaves a graph that may be evaluated
 * (graph/ops.h). On failure the graph may only be freed. */
#ifndef OCT_GRAPH_QUANTIZE_H
#define OCT_GRAPH_QUANTIZE_H

#include "graph/graph.h"

/* How the numbers of a weight or an activation become narrow. All zero: left as they are. Arrays are the caller's and
 * copied. */
typedef struct oct_quantize_numbers {
    oct_format format; /* OCT_FORMAT_FP32: left as it is */
    oct_granularity
        granularity;          /* of formats with a scale; of mxfp8 and nvfp4 it is OCT_PER_BLOCK whatever stands here */
    int block;                /* OCT_PER_BLOCK: 1 or more; mxfp8 and nvfp4 have their own */
    oct_e8m0_rule scale_rule; /* mxfp8 */
    uint8_t zero_point;       /* uint8 */
    float scale;              /* OCT_PER_TENSOR, nvfp4 (of the tensor); of weights 0: from the largest magnitude */
    const float *scales;      /* OCT_PER_CHANNEL: one a channel; of weights NULL: from the largest magnitudes */
    const float *factors;     /* activations: NULL, or one a channel, as oct_form.factors */
} oct_quantize_numbers;

typedef struct oct_quantize_decision {
    const char *node;               /* a node by its name: CONV2D, LINEAR, GLOBAL_POOL, ADD, ATTENTION */
    oct_quantize_numbers weight;    /* CONV2D, LINEAR; all formats but uint8; granularity tensor, channel, block */
    oct_quantize_numbers inputs[3]; /* the first of CONV2D, LINEAR, GLOBAL_POOL; both of ADD; q, k, v of ATTENTION */
    oct_format probabilities;       /* ATTENTION: fp32 (as they are), fp16, bf16, e4m3, int8 */
    oct_quantize_numbers output;    /* how the node's output is stored for every reader */
} oct_quantize_decision;

/* How many inputs of an op are made narrow together: 1 of a convolution, linear or mean, 2 of an addition, q, k and v
 * of attention; 0: none ever. */
int oct_quantize_inputs(oct_op op);
/* An error names the node: none of this name, not one of the ops above, its weight no constant, numbers that cannot be,
 * or that this op has no place for. */
octet_status oct_graph_quantize(oct_graph *graph, const oct_quantize_decision *decisions, size_t count);

/* `base`: fp32 (nothing happens), fp16 or bf16. Every activation that is stored as fp32 is stored in it, the picture
 * too; weights of products and constants that are added or concatenated (positions, tokens) are rounded to it. Biases,
 * gamma, beta, scales and the graph's outputs stay fp32. fp16 beyond 65504 is infinity; a constant that becomes one is
 * an error. */
octet_status oct_graph_store_base(oct_graph *graph, oct_format base);

/* A QUANTIZE goes into the node before it, which then stores the narrow form beside the wide one, or instead of it
 * where nobody reads that. It stays where the value already has two forms in use, where the node before only moves
 * numbers, and behind the picture unless that alone is wanted, with static scales and not in int8. */
octet_status oct_pass_fuse_quantize(oct_graph *graph);
/* QUANTIZE nodes that are left. */
size_t oct_graph_unfused(const oct_graph *graph);

/* Marks what memory holds as float32: all narrow forms but the int8 ones whose readers are all int8 products
 * (oct_stored_is_int8_product). One that such products and others read becomes two forms, codes and numbers, if there
 * is room, else numbers. */
octet_status oct_graph_hold_wide(oct_graph *graph);

#endif
