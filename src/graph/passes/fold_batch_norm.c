/* SPDX-License-Identifier: Apache-2.0 */
/* gamma (w x + b - mean) / sqrt(variance + epsilon) + beta  =  (w s) x + (b - mean) s + beta,  s = gamma /
 * sqrt(variance + epsilon) by output channel; all of it in double, rounded once. */
#include <math.h>

#include "base/alloc.h"
#include "graph/passes.h"
#include "graph/passes/edit.h"

static octet_status check_variance(const oct_graph *graph, int32_t variance) {
    const oct_value *value = &graph->values[variance];
    int64_t count = value->data != NULL ? oct_shape_count(&value->shape) : 0;
    for (int64_t c = 0; c < count; c++) {
        if (value->data[c] >= 0 && isfinite(value->data[c])) continue;
        oct_fail(OCTET_BAD_FORMAT, "%s: element %lld: expected a variance of 0 or more, found %g", value->name,
                 (long long)c, (double)value->data[c]);
        return oct_detail("folding it into the weights before would give values that are not numbers");
    }
    return OCTET_OK;
}

/* The product that `norm` may be folded into, or NULL. */
static oct_graph_node *product_before(const oct_graph *graph, const oct_graph_node *norm) {
    if (norm->op != OCT_OP_BATCH_NORM || !oct_edit_is_private(graph, norm->inputs[0])) return NULL;
    oct_graph_node *product = oct_edit_producer(graph, norm->inputs[0]);
    if (product->op != OCT_OP_CONV2D && product->op != OCT_OP_LINEAR) return NULL;
    if (product->attributes.activation != OCT_ACTIVATION_NONE || product->attributes.has_residual) return NULL;
    if (graph->values[product->inputs[1]].data == NULL) return NULL;
    if (product->attributes.has_bias && graph->values[product->inputs[2]].data == NULL) return NULL;
    for (int i = 1; i < norm->input_count; i++) {
        if (graph->values[norm->inputs[i]].data == NULL) return NULL;
    }
    return product;
}

static octet_status fold(oct_graph *graph, oct_graph_node *product, const oct_graph_node *norm) {
    int64_t channels = graph->values[norm->inputs[1]].shape.dims[0];
    if (!product->attributes.has_bias) OCT_TRY(oct_edit_add_bias(graph, product, channels));
    float *weight = oct_edit_constant(graph, product, 1);
    if (weight == NULL) return oct_error_status();
    float *bias = oct_edit_constant(graph, product, 2);
    if (bias == NULL) return oct_error_status();
    const float *gamma = graph->values[norm->inputs[1]].data, *beta = graph->values[norm->inputs[2]].data;
    const float *mean = graph->values[norm->inputs[3]].data, *variance = graph->values[norm->inputs[4]].data;
    int64_t depth = oct_shape_count(&graph->values[product->inputs[1]].shape) / channels;
    for (int64_t c = 0; c < channels; c++) {
        double scale = (double)gamma[c] / sqrt((double)variance[c] + norm->attributes.epsilon);
        bool finite = true;
        for (int64_t i = c * depth; i < (c + 1) * depth; i++) {
            weight[i] = (float)((double)weight[i] * scale);
            if (fabsf(weight[i]) < 0x1p-126f) weight[i] = 0;
            finite = finite && isfinite(weight[i]);
        }
        bias[c] = (float)(((double)bias[c] - (double)mean[c]) * scale + (double)beta[c]);
        if (!finite || !isfinite(bias[c])) {
            oct_fail(OCTET_BAD_FORMAT, "%s: channel %lld is not finite once %s is folded in",
                     graph->values[product->inputs[1]].name, (long long)c, norm->name);
            return oct_detail("%s[%lld] is %g, %s[%lld] is %g", graph->values[norm->inputs[1]].name, (long long)c,
                              (double)gamma[c], graph->values[norm->inputs[4]].name, (long long)c, (double)variance[c]);
        }
    }
    return OCTET_OK;
}

octet_status oct_pass_fold_batch_norm(oct_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *norm = &graph->nodes[i];
        if (norm->op != OCT_OP_BATCH_NORM) continue;
        OCT_TRY(check_variance(graph, norm->inputs[4]));
        oct_graph_node *product = product_before(graph, norm);
        if (product == NULL) continue;
        OCT_TRY(fold(graph, product, norm));
        oct_edit_absorb(graph, (size_t)(product - graph->nodes), i);
    }
    return oct_edit_sweep(graph, false);
}
