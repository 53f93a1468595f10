/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the rows of a watched value: some rows as they are, for searching, and for each op that reads it sums
 * over the rows that its outputs are products of (of a convolution with a kernel, patches). */
#ifndef OCT_QUANT_ROWS_H
#define OCT_QUANT_ROWS_H

#include "graph/quantize.h"
#include "quant/compensate.h"
#include "quant/learn.h"
#include "quant/product.h"

typedef struct oct_rows_op {
    const oct_graph_node *node;
    oct_product product;
    oct_shape kernel; /* of the weight */
    oct_gram *grams;  /* one a group, or NULL; may be another op's that reads the same rows */
    bool owns_grams;
    double *sums, *rounded_sums; /* [groups][taps][depth], of the rows and of what their codes stand for; or NULL */
    uint64_t count;              /* rows in them */
    bool is_rounded;             /* activations are narrow: by `form` and `scales` */
    oct_form form;
    const float *scales;
} oct_rows_op;

struct oct_quant_rows {
    size_t channels;
    float *sample; /* [OCT_SEARCH_ROWS][channels], or NULL */
    size_t sampled;
    uint64_t pictures;
    oct_rows_op *ops;
    size_t op_count;
};

octet_status oct_rows_new(oct_quant_rows **rows, size_t channels, size_t op_capacity, bool sample);
/* `numbers` of its activations: all zero if they are not narrow. */
octet_status oct_rows_add_op(oct_quant_rows *rows, const oct_graph *graph, const oct_graph_node *node, bool gram,
                             bool sums, const oct_quantize_numbers *numbers);
uint64_t oct_rows_bytes(const oct_quant_rows *rows);
octet_status oct_rows_see(oct_quant_rows *rows, const float *values, const float *factors, const oct_shape *shape);
void oct_rows_free(oct_quant_rows *rows); /* NULL is fine */

/* The form that such numbers make of an activation, but for its vectors. */
oct_form oct_rows_form(const oct_quantize_numbers *numbers);

#endif
