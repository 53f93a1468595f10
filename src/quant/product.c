/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/product.h"

#include <math.h>
#include <string.h>

bool oct_product_of(const oct_graph *graph, const oct_graph_node *node, oct_product *product) {
    if (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR) return false;
    const oct_value *weight = &graph->values[node->inputs[1]];
    if (weight->data == NULL) return false;
    const oct_shape *shape = &weight->shape;
    *product = (oct_product){.outputs = shape->dims[0], .depth = shape->dims[shape->rank - 1], .groups = 1, .taps = 1};
    if (node->op == OCT_OP_CONV2D) {
        product->taps = shape->dims[1] * shape->dims[2];
        product->groups = node->attributes.groups > 1 ? node->attributes.groups : 1;
    }
    product->inputs = product->depth * product->groups;
    product->count = (size_t)oct_shape_count(shape);
    return true;
}

void oct_product_row_amax(const oct_product *product, const float *weight, float *amax) {
    const size_t row = (size_t)(product->taps * product->depth);
    for (int64_t o = 0; o < product->outputs; o++) amax[o] = oct_amax_finite(weight + (size_t)o * row, row);
}

/* The first input channel that output `o` reads. */
static int64_t first_input(const oct_product *product, int64_t o) {
    return o / (product->outputs / product->groups) * product->depth;
}

void oct_product_column_amax(const oct_product *product, const float *weight, float *amax) {
    memset(amax, 0, (size_t)product->inputs * sizeof *amax);
    for (int64_t o = 0; o < product->outputs; o++) {
        float *mine = amax + first_input(product, o);
        for (int64_t t = 0; t < product->taps; t++, weight += product->depth)
            for (int64_t c = 0; c < product->depth; c++) mine[c] = fmaxf(mine[c], fabsf(weight[c]));
    }
}

void oct_product_scale_rows(const oct_product *product, float *weight, const float *factors) {
    const int64_t row = product->taps * product->depth;
    for (int64_t o = 0; o < product->outputs; o++, weight += row)
        for (int64_t i = 0; i < row; i++) weight[i] *= factors[o];
}

void oct_product_divide_columns(const oct_product *product, float *weight, const float *factors) {
    for (int64_t o = 0; o < product->outputs; o++) {
        const float *mine = factors + first_input(product, o);
        for (int64_t t = 0; t < product->taps; t++, weight += product->depth)
            for (int64_t c = 0; c < product->depth; c++) weight[c] /= mine[c];
    }
}
