/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/quantize.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/passes.h"
#include "graph/passes/edit.h"
#include "graph/stored.h"

/* ---- nodes put in place */

/* Adds a node of one input behind `value`'s producer (first, if it is the input); OCT_NONE: error set. Values keep
 * their ids. */
static int32_t insert_after(oct_graph *graph, int32_t value, oct_op op, oct_format format, const oct_form *form) {
    char *name = NULL;
    for (unsigned i = 0;; i++) {
        oct_free(name);
        name = i == 0 ? oct_sprintf("%s.%s", graph->values[value].name, oct_format_name(format))
                      : oct_sprintf("%s.%s.%u", graph->values[value].name, oct_format_name(format), i);
        if (name == NULL || oct_graph_find(graph, name) == OCT_NONE) break;
    }
    if (name == NULL) {
        oct_fail_memory();
        return OCT_NONE;
    }
    const int32_t made = oct_graph_add_node(graph, op, name, &value, 1, NULL);
    oct_free(name);
    if (made == OCT_NONE) return OCT_NONE;
    oct_form *own = &graph->values[made].forms[0];
    if (form != NULL) {
        const int32_t stride = own->channel_stride;
        *own = *form;
        own->channel_stride = stride;
    }
    const oct_graph_node node = graph->nodes[graph->node_count - 1];
    const int32_t place = graph->values[value].producer + 1; /* OCT_NONE is -1 */
    for (size_t i = graph->node_count - 1; i > (size_t)place; i--) {
        graph->nodes[i] = graph->nodes[i - 1];
        graph->values[graph->nodes[i].output].producer = (int32_t)i;
    }
    graph->nodes[place] = node;
    graph->values[made].producer = place;
    return made;
}

static bool same_form(const oct_form *a, const oct_form *b) {
    return a->format == b->format && a->granularity == b->granularity &&
           (!oct_format_has_scale(a->format) || a->granularity != OCT_PER_TENSOR || a->scale == b->scale);
}

/* The value that stores `value` in `form`: what it was read from, if that is so, else made by a QUANTIZE, an earlier
 * one if there is. */
static int32_t stored_as(oct_graph *graph, int32_t value, const oct_form *form) {
    const oct_graph_node *before = oct_edit_producer(graph, value);
    if (before != NULL && before->op == OCT_OP_DEQUANTIZE &&
        same_form(&graph->values[before->inputs[0]].forms[before->forms[0]], form))
        return before->inputs[0];
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (node->op == OCT_OP_QUANTIZE && node->inputs[0] == value &&
            same_form(&graph->values[node->output].forms[0], form))
            return node->output;
    }
    return insert_after(graph, value, OCT_OP_QUANTIZE, form->format, form);
}

/* ---- one decision */

static oct_graph_node *find_node(const oct_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0) return &graph->nodes[i];
    return NULL;
}

static octet_status check_scale(const char *node, const char *what, oct_format format, float scale) {
    if (!oct_format_has_scale(format) || (scale >= OCT_SCALE_LEAST && scale <= 0x1p120f)) return OCTET_OK;
    return oct_fail(OCTET_INVALID_ARGUMENT, "%s: scale of its %s: expected %g to %g, found %g", node, what,
                    (double)OCT_SCALE_LEAST, 0x1p120, (double)scale);
}

static octet_status check_decision(const oct_graph *graph, const oct_quantize_decision *d) {
    const oct_graph_node *node = find_node(graph, d->node);
    if (node == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the graph has no node of this name", d->node);
    if (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected conv2d or linear to be quantized, found %s", d->node,
                        oct_op_rows[node->op].name);
    const oct_value *weight = &graph->values[node->inputs[1]];
    if (weight->data == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: its weight is no constant", d->node);
    if (!oct_format_is_weight(d->weight) || !oct_format_is_stored(d->input) || !oct_format_is_stored(d->output))
        return oct_fail(OCTET_UNSUPPORTED, "%s: weight in %s, input in %s, output in %s", d->node,
                        oct_format_name(d->weight), oct_format_name(d->input), oct_format_name(d->output));
    if ((d->input == OCT_FORMAT_INT8) != (d->weight == OCT_FORMAT_INT8)) {
        oct_fail(OCTET_UNSUPPORTED, "%s: input in %s times weight in %s", d->node, oct_format_name(d->input),
                 oct_format_name(d->weight));
        return oct_detail("int8 goes with int8");
    }
    if (d->weight_granularity != OCT_PER_TENSOR && d->weight_granularity != OCT_PER_CHANNEL)
        return oct_fail(OCTET_UNSUPPORTED, "%s: weight with neither a scale a tensor nor a channel", d->node);
    OCT_TRY(check_scale(d->node, "output", d->output, d->output_scale));
    if (d->input_granularity == OCT_PER_ROW) {
        if (node->op == OCT_OP_LINEAR && oct_format_has_scale(d->input)) return OCTET_OK;
        return oct_fail(OCTET_UNSUPPORTED, "%s: a scale a row of its input: for linear in int8 or e4m3", d->node);
    }
    if (d->input_granularity != OCT_PER_TENSOR)
        return oct_fail(OCTET_UNSUPPORTED, "%s: input with neither a scale a tensor nor a row", d->node);
    return check_scale(d->node, "input", d->input, d->input_scale);
}

static octet_status weight_scales(const oct_quantize_decision *d, const oct_value *weight, size_t groups,
                                  float *scales) {
    const size_t count = (size_t)oct_shape_count(&weight->shape);
    if (d->weight_scales == NULL) {
        oct_scaled_scales(d->weight, weight->data, groups, count / groups, count / groups, scales);
        return OCTET_OK;
    }
    memcpy(scales, d->weight_scales, groups * sizeof *scales);
    for (size_t i = 0; i < groups; i++)
        if (!(scales[i] > 0) || isinf(scales[i]))
            return oct_fail(OCTET_INVALID_ARGUMENT, "%s: scale %zu of its weight is %g", d->node, i, (double)scales[i]);
    return OCTET_OK;
}

/* The weight as a constant of codes, a copy if others read it too. Values' addresses change. */
static octet_status quantize_weight(oct_graph *graph, const oct_quantize_decision *d) {
    if (d->weight == OCT_FORMAT_FP32) return OCTET_OK;
    oct_graph_node *node = find_node(graph, d->node);
    if (oct_edit_constant(graph, node, 1) == NULL) return oct_error_status();
    const int32_t id = node->inputs[1];
    const oct_value *weight = &graph->values[id];
    const bool channels = d->weight_granularity == OCT_PER_CHANNEL;
    const size_t groups = channels ? (size_t)weight->shape.dims[0] : 1;
    const size_t count = (size_t)oct_shape_count(&weight->shape);
    float *scales = oct_calloc(groups, sizeof *scales);
    uint8_t *codes = oct_alloc(count);
    octet_status status = scales == NULL || codes == NULL ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK) status = weight_scales(d, weight, groups, scales);
    if (status != OCTET_OK) {
        oct_free(scales);
        oct_free(codes);
        return status;
    }
    oct_scaled_encode(d->weight, weight->data, groups, count / groups, count / groups, scales, codes);
    const float first = scales[0];
    int32_t place = OCT_NONE;
    if (channels) {
        char *name = oct_sprintf("%s.scale", weight->name);
        const oct_shape shape = {.rank = 1, .dims = {(int64_t)groups}};
        place = name == NULL ? OCT_NONE : oct_edit_new_constant(graph, name, &shape, scales); /* takes scales over */
        if (name == NULL) oct_free(scales);
        oct_free(name);
        if (place == OCT_NONE) {
            oct_free(codes);
            return oct_fail_memory();
        }
    } else {
        oct_free(scales);
    }
    oct_value *value = &graph->values[id];
    oct_free(value->data);
    value->data = NULL;
    value->codes = codes;
    value->forms[0].format = d->weight;
    value->forms[0].granularity = d->weight_granularity;
    value->forms[0].scale = channels ? 1.0f : first;
    value->forms[0].scales = place;
    return OCTET_OK;
}

static oct_form form_of(oct_format format, oct_granularity granularity, float scale) {
    const bool scaled = oct_format_has_scale(format);
    return (oct_form){.format = format,
                      .granularity = scaled ? granularity : OCT_PER_TENSOR,
                      .scale = scaled && granularity == OCT_PER_TENSOR ? scale : 1.0f,
                      .scales = OCT_NONE};
}

static octet_status quantize_input(oct_graph *graph, const oct_quantize_decision *d) {
    if (d->input == OCT_FORMAT_FP32) return OCTET_OK;
    const oct_form form = form_of(d->input, d->input_granularity, d->input_scale);
    const int32_t narrow = stored_as(graph, find_node(graph, d->node)->inputs[0], &form);
    if (narrow == OCT_NONE) return oct_error_status();
    find_node(graph, d->node)->inputs[0] = narrow;
    return OCTET_OK;
}

/* Readers of the output other than `narrow`'s own node get the numbers back from the narrow form. An output of the
 * graph stays fp32. */
static octet_status quantize_output(oct_graph *graph, const oct_quantize_decision *d) {
    if (d->output == OCT_FORMAT_FP32) return OCTET_OK;
    const int32_t value = find_node(graph, d->node)->output;
    const oct_form form = form_of(d->output, OCT_PER_TENSOR, d->output_scale);
    if (graph->values[value].is_output)
        return oct_fail(OCTET_UNSUPPORTED, "%s: %s is an output and stays fp32", d->node, graph->values[value].name);
    const int32_t narrow = stored_as(graph, value, &form);
    if (narrow == OCT_NONE) return oct_error_status();
    bool wanted = false;
    for (size_t i = 0; i < graph->node_count; i++)
        for (int j = 0; j < graph->nodes[i].input_count; j++)
            wanted |= graph->nodes[i].inputs[j] == value && graph->nodes[i].output != narrow;
    if (!wanted) return OCTET_OK;
    const int32_t wide = insert_after(graph, narrow, OCT_OP_DEQUANTIZE, OCT_FORMAT_FP32, NULL);
    if (wide == OCT_NONE) return oct_error_status();
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        if (node->output == narrow) continue;
        for (int j = 0; j < node->input_count; j++)
            if (node->inputs[j] == value) node->inputs[j] = wide;
    }
    return OCTET_OK;
}

octet_status oct_graph_quantize(oct_graph *graph, const oct_quantize_decision *decisions, size_t count) {
    for (size_t i = 0; i < count; i++) OCT_TRY(check_decision(graph, &decisions[i]));
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_weight(graph, &decisions[i]));
    /* outputs first: inputs then read what is stored, and share it where the form is the same */
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_output(graph, &decisions[i]));
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_input(graph, &decisions[i]));
    OCT_TRY(oct_pass_dead_code(graph));
    return oct_graph_check(graph);
}

/* ---- fusing */

static bool stores_narrow(const oct_graph_node *node, const oct_form *form) {
    const bool rows = form->granularity == OCT_PER_ROW;
    switch (node->op) {
    case OCT_OP_CONV2D:
    case OCT_OP_LINEAR:
        return !rows;
    case OCT_OP_ADD:
    case OCT_OP_LAYER_NORM:
    case OCT_OP_ACTIVATION:
        return true;
    default:
        return false;
    }
}

static bool fits(const oct_graph *graph, const oct_graph_node *quantize) {
    const oct_value *x = &graph->values[quantize->inputs[0]], *y = &graph->values[quantize->output];
    if (x->producer == OCT_NONE || x->form_count != 1 || x->forms[0].format != OCT_FORMAT_FP32 || y->is_output)
        return false;
    return stores_narrow(&graph->nodes[x->producer], &y->forms[0]);
}

static void fuse(oct_graph *graph, oct_graph_node *quantize) {
    const int32_t from = quantize->inputs[0], narrow = quantize->output;
    oct_value *value = &graph->values[from];
    value->forms[value->form_count++] = graph->values[narrow].forms[0];
    graph->values[narrow].producer = OCT_NONE;
    quantize->op = OCT_OP_REMOVED;
    quantize->input_count = 0;
    bool wide = value->is_output;
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            wide |= node->inputs[j] == from && node->forms[j] == 0;
            if (node->inputs[j] != narrow) continue;
            node->inputs[j] = from;
            node->forms[j] = 1;
        }
    }
    if (wide) return;
    value->forms[0] = value->forms[1];
    value->form_count = 1;
    for (size_t i = 0; i < graph->node_count; i++)
        for (int j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == from) graph->nodes[i].forms[j] = 0;
}

octet_status oct_pass_fuse_quantize(oct_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == OCT_OP_QUANTIZE && fits(graph, &graph->nodes[i])) fuse(graph, &graph->nodes[i]);
    OCT_TRY(oct_edit_sweep(graph, false));
    return oct_graph_check(graph);
}

size_t oct_graph_unfused(const oct_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == OCT_OP_QUANTIZE || graph->nodes[i].op == OCT_OP_DEQUANTIZE;
    return count;
}
