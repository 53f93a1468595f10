/* SPDX-License-Identifier: Apache-2.0 */
/* What each op of ops.def brings: its shape rule, its reference body in plain C (float32 in, sums in double, float32
 * out: slow and obviously right), its count of operations. */
#ifndef OCT_GRAPH_OPS_H
#define OCT_GRAPH_OPS_H

#include "graph/graph.h"

/* A dense float32 tensor in row order. */
typedef struct oct_array {
    oct_shape shape;
    float *data;
} oct_array;

typedef struct oct_op_row {
    const char *name;
    /* Output shape from the inputs' shapes; an error names `node` and what does not fit. */
    octet_status (*shape)(const char *node, const oct_attributes *attributes, const oct_shape *inputs, int count,
                          oct_shape *output);
    /* `output->data` is made by the caller. Shapes were checked. */
    void (*reference)(const oct_attributes *attributes, const oct_array *inputs, int count, oct_array *output);
    int64_t (*flops)(const oct_attributes *attributes, const oct_shape *inputs, int count, const oct_shape *output);
    double tolerance;
} oct_op_row;

#define OCT_OP(identifier, name, stem, tolerance)                                                                      \
    octet_status oct_op_##stem##_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,    \
                                       int count, oct_shape *output);                                                  \
    void oct_op_##stem##_reference(const oct_attributes *attributes, const oct_array *inputs, int count,               \
                                   oct_array *output);                                                                 \
    int64_t oct_op_##stem##_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,                \
                                  const oct_shape *output);
#include "graph/ops.def"
#undef OCT_OP

extern const oct_op_row oct_op_rows[OCT_OP_COUNT];
int oct_op_by_name(const char *name); /* -1: none */
/* RESHAPE, CONCAT, SLICE: the output's numbers are inputs' numbers. */
bool oct_op_moves(oct_op op);

/* The activation functions in double, and their float32 bodies shared by every backend are in graph/math.h. */
double oct_activation_reference(oct_activation activation, double x);

/* Runs the whole graph by reference bodies (tests; the oracle of passes and engines). `outputs` gets one oct_alloc'd
 * array a graph output, in order of value id; caller frees the data. `tap` (may be NULL) sees every node's output. On
 * failure nothing is owed. The graph must have passed oct_graph_check. */
size_t oct_graph_output_count(const oct_graph *graph);
typedef void (*oct_graph_tap)(void *user, const oct_graph_node *node, const oct_array *output);
octet_status oct_graph_evaluate(const oct_graph *graph, const float *input, oct_array *outputs, size_t output_count,
                                oct_graph_tap tap, void *user);
/* The same with products of e4m3 summed as Hopper's tensor cores sum them (graph/exact.h). */
octet_status oct_graph_evaluate_exact(const oct_graph *graph, const float *input, oct_array *outputs,
                                      size_t output_count, oct_graph_tap tap, void *user);

#endif
