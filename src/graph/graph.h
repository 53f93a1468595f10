/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values and nodes in topological order. Layouts are NHWC for pictures and [batch, tokens, channels] for
 * sequences; the last axis is the channel. Activations carry the batch in dims[0]; constants hold float32 (neutral
 * weights), float32 already rounded to a format's numbers, or codes of eight bits.
 *
 * A value owns its stored forms (one or two): how its numbers are kept in memory at that edge. A residual may be kept
 * wide for the add and narrow for the next product. A node says which form of each input it reads. Kernels round to the
 * form when they store (graph/stored.h has the rules); see docs/architecture.md.
 *
 * A node is an op (ops.def) with inputs, one output and attributes. After the passes, a convolution or linear node
 * carries what was fused into it:  out = activation(product + bias + residual). */
#ifndef OCT_GRAPH_GRAPH_H
#define OCT_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "format/format.h"

#define OCT_RANK 4
#define OCT_NODE_INPUTS 8
#define OCT_NONE (-1)

typedef struct oct_shape {
    int rank;
    int64_t dims[OCT_RANK];
} oct_shape;

typedef enum oct_granularity { OCT_PER_TENSOR, OCT_PER_CHANNEL, OCT_PER_ROW, OCT_PER_BLOCK } oct_granularity;

/* One stored form of a value. Formats with a scale: real = code * scale. Activations: a scale a tensor or a channel,
 * known before, or a row or block of it, found from the numbers when they are stored. Constants: one a tensor, one a
 * channel, which is the first axis of a weight, or one a block of an output's weights, in their order.
 *
 * What memory holds is codes, or, held wide, the float32 numbers that the codes stand for, which every float32 kernel
 * can read: the way of a backend without units for the format (oct_graph_hold_wide). */
typedef struct oct_form {
    oct_format format;
    oct_granularity granularity;
    float scale;              /* OCT_PER_TENSOR, static; of nvfp4: float32 under the scales of the blocks */
    int32_t scales;           /* OCT_PER_CHANNEL: value id of a constant with a scale a channel; else OCT_NONE */
    int32_t factors;          /* activations: OCT_NONE, or a constant with a factor a channel: what is rounded and
                                 stored is x[c] * factors[c] */
    int32_t block;            /* OCT_PER_BLOCK: values along the last axis that share a scale; else 0 */
    uint8_t zero_point;       /* uint8 */
    oct_e8m0_rule scale_rule; /* mxfp8 */
    bool held_wide;           /* memory holds float32 */
    int32_t channel_stride;   /* elements from one pixel or token to the next; >= channels; padding lanes are zero */
} oct_form;
/* The form of a format without a scale, or of one with scale 1 a tensor; channel stride 0. */
oct_form oct_form_of(oct_format format);
/* What memory holds is float32, whatever the format. */
static inline bool oct_form_is_float(const oct_form *form) {
    return form->format == OCT_FORMAT_FP32 || form->held_wide;
}
/* Bits of an element in memory. */
unsigned oct_form_bits(const oct_form *form);
/* "fp16", "e4m3 tensor", "int8 row", "e4m3 block 128", "mxfp8" */
void oct_form_print(const oct_form *form, oct_text *text);

typedef struct oct_value {
    const char *name; /* unique in the graph: the module's name in the checkpoint where there is one */
    oct_shape shape;
    oct_form forms[2];
    int form_count;
    int32_t producer; /* node, or OCT_NONE for an input or a constant */
    float *data;      /* constants: elements in row order, oct_alloc'd, owned by the graph; else NULL */
    uint8_t *codes;   /* constants of e4m3 or int8, instead of data: a code an element, owned likewise; else NULL */
    bool is_output;
} oct_value;

typedef enum oct_op {
#define OCT_OP(identifier, name, ...) OCT_OP_##identifier,
#include "graph/ops.def"
#undef OCT_OP
    OCT_OP_COUNT
} oct_op;

typedef enum oct_activation {
    OCT_ACTIVATION_NONE,
    OCT_ACTIVATION_RELU,
    OCT_ACTIVATION_RELU6,
    OCT_ACTIVATION_GELU,
    OCT_ACTIVATION_SIGMOID,
    OCT_ACTIVATION_COUNT
} oct_activation;
const char *oct_activation_name(oct_activation activation);

/* Attributes of all ops; each op's row in ops.def says which it reads. Unused ones are zero. */
typedef struct oct_attributes {
    int stride_h, stride_w;                       /* CONV2D */
    int pad_top, pad_left, pad_bottom, pad_right; /* CONV2D: zeros */
    int groups;                                   /* CONV2D: 1 dense, = channels depthwise */
    oct_activation activation;                    /* ACTIVATION, and fused: CONV2D, LINEAR, ADD */
    double epsilon;                               /* BATCH_NORM, LAYER_NORM */
    int heads;                                    /* ATTENTION */
    double scale;                                 /* ATTENTION: scores are q.k * scale */
    oct_format probabilities;                     /* ATTENTION: what the weights are rounded to (graph/stored.h) */
    int64_t start, length;                        /* SLICE, along axis 1 */
    oct_shape shape;                              /* RESHAPE: dims[0] is ignored (the batch stays) */
    bool has_bias, has_residual;                  /* CONV2D, LINEAR: inputs are x, weight, [bias], [residual] */
} oct_attributes;

typedef struct oct_graph_node {
    oct_op op;
    const char *name;
    int32_t inputs[OCT_NODE_INPUTS]; /* value ids */
    uint8_t forms[OCT_NODE_INPUTS];  /* which stored form of each it reads */
    int input_count;
    int32_t output;
    oct_attributes attributes;
} oct_graph_node;

typedef struct oct_graph {
    oct_value *values;
    size_t value_count, value_capacity;
    oct_graph_node *nodes; /* every input of nodes[i] is an input, a constant, or made by nodes[j], j < i */
    size_t node_count, node_capacity;
    int32_t input;   /* the picture: [batch, height, width, 3] */
    oct_arena arena; /* names */
} oct_graph;         /* all zero: empty */

/* Formats an activation may be stored in, those of constants, and of these those kept as codes where the scale is a
 * tensor's or a channel's. */
bool oct_format_is_stored(oct_format format);
bool oct_format_is_weight(oct_format format);
bool oct_format_is_coded(oct_format format);

/* ---- building. Each adder returns the id of the new value, or OCT_NONE with the error text set (out of memory, a
 * shape that does not fit: the text names the node, expected and found). Passing OCT_NONE as an input returns OCT_NONE
 * at once, so a builder may chain calls and check the last. Names are copied. */
int32_t oct_graph_input(oct_graph *graph, const char *name, oct_shape shape);
/* takes ownership of `data` (oct_alloc'd), also on failure */
int32_t oct_graph_constant(oct_graph *graph, const char *name, oct_shape shape, float *data);
int32_t oct_graph_add_node(oct_graph *graph, oct_op op, const char *name, const int32_t *inputs, int input_count,
                           const oct_attributes *attributes);
octet_status oct_graph_output(oct_graph *graph, int32_t value, const char *name); /* renames the value */
void oct_graph_free(oct_graph *graph);

/* ---- questions */
const oct_value *oct_graph_value(const oct_graph *graph, int32_t id);
int32_t oct_graph_find(const oct_graph *graph, const char *name); /* value id or OCT_NONE */
size_t oct_graph_uses(const oct_graph *graph, int32_t value);     /* nodes that read it, plus 1 if an output */
int64_t oct_shape_count(const oct_shape *shape);
bool oct_shape_equal(const oct_shape *a, const oct_shape *b);
oct_shape oct_shape_of(int rank, const int64_t *dims);
void oct_shape_print(const oct_shape *shape, oct_text *text);               /* "[1, 112, 112, 32]" */
int64_t oct_node_flops(const oct_graph *graph, const oct_graph_node *node); /* two a multiply-add */
int64_t oct_node_bytes(const oct_graph *graph, const oct_graph_node *node); /* read and written once, by stored form */

/* ---- shape inference and checks */
octet_status oct_graph_infer(oct_graph *graph, int64_t batch); /* sets dims[0] of every activation anew */
octet_status oct_graph_check(const oct_graph *graph);          /* ids, order, shapes, names, finite constants */

/* ---- dumps */
void oct_graph_dump(const oct_graph *graph, oct_text *text); /* a line a node */
void oct_graph_dot(const oct_graph *graph, oct_text *text);  /* Graphviz */

#endif
