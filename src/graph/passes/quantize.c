/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/quantize.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/passes.h"
#include "graph/passes/edit.h"
#include "graph/stored.h"

#define NUMBERS_MOST 3 /* narrow inputs of a node */

static bool own_blocks(oct_format format) {
    return format == OCT_FORMAT_MXFP8 || format == OCT_FORMAT_NVFP4;
}

static bool is_scaled(oct_format format) {
    return oct_format_has_scale(format) || format == OCT_FORMAT_UINT8;
}

static oct_graph_node *find_node(const oct_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0) return &graph->nodes[i];
    return NULL;
}

static bool is_constant(const oct_graph *graph, int32_t value) {
    return graph->values[value].data != NULL || graph->values[value].codes != NULL;
}

static int64_t channels_of(const oct_graph *graph, int32_t value) {
    const oct_shape *shape = &graph->values[value].shape;
    return shape->dims[shape->rank - 1];
}

/* ---- checking a decision */

/* Of activations the inverse must be finite too. */
static octet_status check_scale(const char *node, const char *what, float scale, bool weight) {
    const float least = weight ? FLT_TRUE_MIN : OCT_SCALE_LEAST, most = weight ? FLT_MAX : OCT_SCALE_MOST;
    if (scale >= least && scale <= most) return OCTET_OK;
    return oct_fail(OCTET_INVALID_ARGUMENT, "%s: scale of its %s: expected %g to %g, found %g", node, what,
                    (double)least, (double)most, (double)scale);
}

static octet_status check_vector(const char *node, const char *what, const float *scales, int64_t count, bool weight) {
    for (int64_t i = 0; scales != NULL && i < count; i++) OCT_TRY(check_scale(node, what, scales[i], weight));
    return OCTET_OK;
}

/* `groups`: how many scales there are of a scale a channel. */
static octet_status check_numbers(const char *node, const char *what, const oct_quantize_numbers *n, bool weight,
                                  int64_t groups) {
    static const char *const names[] = {"tensor", "channel", "row", "block"};
    if (n->format == OCT_FORMAT_FP32) return OCTET_OK;
    if (!(weight ? oct_format_is_weight(n->format) : oct_format_is_stored(n->format)))
        return oct_fail(OCTET_UNSUPPORTED, "%s: its %s in %s", node, what, oct_format_name(n->format));
    if (n->factors != NULL && weight) return oct_fail(OCTET_UNSUPPORTED, "%s: its %s with factors", node, what);
    OCT_TRY(check_vector(node, "input's factors", n->factors, groups, false));
    if (n->format == OCT_FORMAT_NVFP4 && !(weight && n->scale == 0)) return check_scale(node, what, n->scale, true);
    if (!is_scaled(n->format)) return OCTET_OK;
    bool good = oct_format_has_scale(n->format);
    switch (n->granularity) {
    case OCT_PER_TENSOR:
        return weight && n->scale == 0 ? OCTET_OK : check_scale(node, what, n->scale, weight);
    case OCT_PER_CHANNEL:
        if (n->scales != NULL || weight) return check_vector(node, what, n->scales, groups, weight);
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: its %s a channel without scales", node, what);
    case OCT_PER_ROW:
        good = good && !weight;
        break;
    case OCT_PER_BLOCK:
        good = good && n->block > 0;
        break;
    default:
        good = false;
    }
    if (good) return OCTET_OK;
    return oct_fail(OCTET_UNSUPPORTED, "%s: its %s in %s with a scale a %s", node, what, oct_format_name(n->format),
                    (unsigned)n->granularity <= OCT_PER_BLOCK ? names[n->granularity] : "?");
}

int oct_quantize_inputs(oct_op op) {
    switch (op) {
    case OCT_OP_CONV2D:
    case OCT_OP_LINEAR:
    case OCT_OP_GLOBAL_POOL:
        return 1;
    case OCT_OP_ADD:
        return 2;
    case OCT_OP_ATTENTION:
        return 3;
    default:
        return 0;
    }
}

static octet_status check_weight(const oct_graph *graph, const oct_graph_node *node, const oct_quantize_numbers *n) {
    if (n->format == OCT_FORMAT_FP32) return OCTET_OK;
    if (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: %s has no weight", node->name, oct_op_rows[node->op].name);
    const oct_value *weight = &graph->values[node->inputs[1]];
    if (weight->data == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: its weight is no constant", node->name);
    return check_numbers(node->name, "weight", n, true, weight->shape.dims[0]);
}

static octet_status check_decision(const oct_graph *graph, const oct_quantize_decision *d) {
    const oct_graph_node *node = find_node(graph, d->node);
    if (node == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the graph has no node of this name", d->node);
    const int count = oct_quantize_inputs(node->op);
    if (count == 0)
        return oct_fail(OCTET_INVALID_ARGUMENT,
                        "%s: expected conv2d, linear, global_pool, add or attention to be quantized, found %s", d->node,
                        oct_op_rows[node->op].name);
    OCT_TRY(check_weight(graph, node, &d->weight));
    for (int j = 0; j < NUMBERS_MOST; j++) {
        const oct_quantize_numbers *n = &d->inputs[j];
        if (n->format == OCT_FORMAT_FP32) continue;
        if (j >= count) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: it has no input %d to be narrow", d->node, j);
        if (n->factors != NULL && is_constant(graph, node->inputs[j]))
            return oct_fail(OCTET_UNSUPPORTED, "%s: factors of input %d, a constant", d->node, j);
        OCT_TRY(check_numbers(d->node, "input", n, false, channels_of(graph, node->inputs[j])));
    }
    if (d->probabilities != OCT_FORMAT_FP32 &&
        (node->op != OCT_OP_ATTENTION || !oct_stored_is_probability(d->probabilities)))
        return oct_fail(OCTET_UNSUPPORTED, "%s: probabilities of %s in %s", d->node, oct_op_rows[node->op].name,
                        oct_format_name(d->probabilities));
    if (d->output.format != OCT_FORMAT_FP32 && graph->values[node->output].is_output)
        return oct_fail(OCTET_UNSUPPORTED, "%s: %s is an output and stays fp32", d->node,
                        graph->values[node->output].name);
    return check_numbers(d->node, "output", &d->output, false, channels_of(graph, node->output));
}

/* ---- forms */

static int block_of(const oct_quantize_numbers *n) {
    return n->format == OCT_FORMAT_MXFP8 ? OCT_MXFP8_BLOCK
                                         : (n->format == OCT_FORMAT_NVFP4 ? OCT_NVFP4_BLOCK : n->block);
}

/* The form but for its vectors. */
static oct_form plain_form(const oct_quantize_numbers *n) {
    oct_form form = oct_form_of(n->format);
    if (is_scaled(n->format)) form.granularity = n->granularity;
    if (own_blocks(n->format)) form.granularity = OCT_PER_BLOCK;
    if (form.granularity == OCT_PER_BLOCK) form.block = block_of(n);
    if ((is_scaled(n->format) && n->granularity == OCT_PER_TENSOR) || n->format == OCT_FORMAT_NVFP4)
        form.scale = n->scale;
    if (n->format == OCT_FORMAT_UINT8) form.zero_point = n->zero_point;
    if (n->format == OCT_FORMAT_MXFP8) form.scale_rule = n->scale_rule;
    return form;
}

static bool same_vector(const oct_graph *graph, int32_t id, const float *wanted) {
    if (id == OCT_NONE || wanted == NULL) return id == OCT_NONE && wanted == NULL;
    const oct_value *vector = &graph->values[id];
    return memcmp(vector->data, wanted, (size_t)vector->shape.dims[0] * sizeof *wanted) == 0;
}

static bool is_form(const oct_graph *graph, const oct_form *form, const oct_quantize_numbers *n) {
    const oct_form plain = plain_form(n);
    return form->format == plain.format && form->granularity == plain.granularity && form->scale == plain.scale &&
           form->block == plain.block && form->zero_point == plain.zero_point && form->scale_rule == plain.scale_rule &&
           same_vector(graph, form->factors, n->factors) &&
           same_vector(graph, form->scales, plain.granularity == OCT_PER_CHANNEL ? n->scales : NULL);
}

/* A constant NAME.WHAT of a copy of `vector`. */
static int32_t add_vector(oct_graph *graph, const char *name, const char *what, const float *vector, int64_t count) {
    const oct_shape shape = {.rank = 1, .dims = {count}};
    float *copy = oct_alloc((size_t)count * sizeof *copy);
    if (copy != NULL) memcpy(copy, vector, (size_t)count * sizeof *copy);
    char *full = oct_sprintf("%s.%s", name, what);
    if (full == NULL) {
        oct_free(copy);
        oct_fail_memory();
        return OCT_NONE;
    }
    const int32_t id = oct_edit_new_constant(graph, full, &shape, copy);
    oct_free(full);
    return id;
}

static octet_status make_form(oct_graph *graph, int32_t value, const oct_quantize_numbers *n, oct_form *form) {
    const int64_t channels = channels_of(graph, value);
    *form = plain_form(n);
    if (form->granularity == OCT_PER_CHANNEL) {
        form->scales = add_vector(graph, graph->values[value].name, "scales", n->scales, channels);
        if (form->scales == OCT_NONE) return oct_error_status();
    }
    if (n->factors == NULL) return OCTET_OK;
    form->factors = add_vector(graph, graph->values[value].name, "factors", n->factors, channels);
    return form->factors == OCT_NONE ? oct_error_status() : OCTET_OK;
}

/* Adds a QUANTIZE behind `value`'s producer (first, if it is the input); OCT_NONE: error set. Values keep their ids. */
static int32_t insert_after(oct_graph *graph, int32_t value, const oct_form *form) {
    char *name = NULL;
    for (unsigned i = 0;; i++) {
        oct_free(name);
        name = i == 0 ? oct_sprintf("%s.%s", graph->values[value].name, oct_format_name(form->format))
                      : oct_sprintf("%s.%s.%u", graph->values[value].name, oct_format_name(form->format), i);
        if (name == NULL || oct_graph_find(graph, name) == OCT_NONE) break;
    }
    if (name == NULL) {
        oct_fail_memory();
        return OCT_NONE;
    }
    const int32_t made = oct_graph_add_node(graph, OCT_OP_QUANTIZE, name, &value, 1, NULL);
    oct_free(name);
    if (made == OCT_NONE) return OCT_NONE;
    oct_form *own = &graph->values[made].forms[0];
    const int32_t stride = own->channel_stride;
    *own = *form;
    own->channel_stride = stride;
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

/* The value that stores `value` in such numbers: itself, what an earlier QUANTIZE made of it, or a new one's. */
static int32_t stored_as(oct_graph *graph, int32_t value, const oct_quantize_numbers *n) {
    if (is_form(graph, &graph->values[value].forms[0], n)) return value;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if (node->op == OCT_OP_QUANTIZE && node->inputs[0] == value &&
            is_form(graph, &graph->values[node->output].forms[0], n))
            return node->output;
    }
    oct_form form;
    if (make_form(graph, value, n, &form) != OCTET_OK) return OCT_NONE;
    return insert_after(graph, value, &form);
}

/* ---- weights */

/* Rounds an output's weights, a row, to mxfp8 or nvfp4. */
static void round_blocks(const oct_quantize_numbers *n, float *row, size_t count, float tensor_scale) {
    uint8_t scale, codes[OCT_MXFP8_BLOCK];
    const size_t block = (size_t)block_of(n);
    for (size_t i = 0; i < count; i += block) {
        const size_t some = count - i < block ? count - i : block;
        if (n->format == OCT_FORMAT_MXFP8) {
            oct_mxfp8_encode(row + i, some, n->scale_rule, &scale, codes);
            oct_mxfp8_decode(&scale, codes, some, row + i);
        } else {
            oct_nvfp4_encode(row + i, some, tensor_scale, &scale, codes);
            oct_nvfp4_decode(&scale, codes, some, tensor_scale, row + i);
        }
    }
}

/* Weights of a format that has no codes in the graph: rounded where they are. */
static octet_status round_weight(oct_value *weight, const oct_quantize_numbers *n) {
    const size_t count = (size_t)oct_shape_count(&weight->shape), rows = (size_t)weight->shape.dims[0];
    oct_form form = plain_form(n);
    if (n->format == OCT_FORMAT_NVFP4 && n->scale == 0) {
        form.scale = oct_nvfp4_tensor_scale(oct_amax_finite(weight->data, count));
        if (form.scale == 0) form.scale = 1; /* all are zero */
    }
    if (own_blocks(n->format)) {
        for (size_t r = 0; r < rows; r++) round_blocks(n, weight->data + r * (count / rows), count / rows, form.scale);
    } else {
        for (size_t i = 0; i < count; i++) weight->data[i] = oct_format_round(n->format, weight->data[i]);
    }
    form.held_wide = true;
    form.channel_stride = weight->forms[0].channel_stride;
    weight->forms[0] = form;
    return OCTET_OK;
}

/* Rows, columns and columns that share a scale. */
typedef struct grouping {
    size_t rows, columns, block, count;
} grouping;

static grouping grouping_of(const oct_shape *shape, const oct_quantize_numbers *n) {
    const size_t count = (size_t)oct_shape_count(shape);
    grouping g = {.rows = n->granularity == OCT_PER_TENSOR ? 1 : (size_t)shape->dims[0]};
    g.columns = count / g.rows;
    g.block = n->granularity == OCT_PER_BLOCK && (size_t)n->block < g.columns ? (size_t)n->block : g.columns;
    g.count = oct_scaled_groups(g.rows, g.columns, g.block);
    return g;
}

static void find_scales(const oct_quantize_numbers *n, const float *data, const grouping *g, float *scales) {
    if (n->granularity == OCT_PER_TENSOR && n->scale > 0)
        scales[0] = n->scale;
    else if (n->granularity == OCT_PER_CHANNEL && n->scales != NULL)
        memcpy(scales, n->scales, g->count * sizeof *scales);
    else
        oct_scaled_scales(n->format, data, g->rows, g->columns, g->block, scales);
}

/* Weights with scales: codes where the graph keeps them, else the numbers they stand for. `scales` and `codes` are
 * memory for them; a scale a channel goes on in a constant. */
static octet_status encode_weight(oct_graph *graph, int32_t id, const oct_quantize_numbers *n, const grouping *g,
                                  float *scales, uint8_t **codes) {
    find_scales(n, graph->values[id].data, g, scales);
    oct_scaled_encode(n->format, graph->values[id].data, g->rows, g->columns, g->block, scales, *codes);
    oct_form form = plain_form(n);
    if (n->granularity == OCT_PER_TENSOR) form.scale = scales[0];
    if (n->granularity == OCT_PER_CHANNEL) {
        form.scales = add_vector(graph, graph->values[id].name, "scale", scales, (int64_t)g->count);
        if (form.scales == OCT_NONE) return oct_error_status();
    }
    oct_value *weight = &graph->values[id];
    form.channel_stride = weight->forms[0].channel_stride;
    form.held_wide = !oct_format_is_coded(n->format) || n->granularity == OCT_PER_BLOCK;
    weight->forms[0] = form;
    if (form.held_wide) {
        oct_scaled_decode(n->format, *codes, g->rows, g->columns, g->block, scales, weight->data);
        return OCTET_OK;
    }
    oct_free(weight->data);
    weight->data = NULL;
    weight->codes = *codes;
    *codes = NULL;
    return OCTET_OK;
}

/* A copy if others read it too. Values' addresses change. */
static octet_status quantize_weight(oct_graph *graph, const oct_quantize_decision *d) {
    const oct_quantize_numbers *n = &d->weight;
    if (n->format == OCT_FORMAT_FP32) return OCTET_OK;
    oct_graph_node *node = find_node(graph, d->node);
    if (graph->values[node->inputs[1]].forms[0].format != OCT_FORMAT_FP32)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: decided twice", d->node);
    if (oct_edit_constant(graph, node, 1) == NULL) return oct_error_status();
    const int32_t id = node->inputs[1];
    if (!oct_format_has_scale(n->format)) return round_weight(&graph->values[id], n);
    const grouping g = grouping_of(&graph->values[id].shape, n);
    float *scales = oct_calloc(g.count, sizeof *scales);
    uint8_t *codes = oct_alloc(g.rows * g.columns);
    const octet_status status =
        scales == NULL || codes == NULL ? oct_fail_memory() : encode_weight(graph, id, n, &g, scales, &codes);
    oct_free(scales);
    oct_free(codes);
    return status;
}

/* ---- inputs and outputs */

/* A constant summand is rounded where it is. What it is rounded to is kept where a constant's form can say it. */
static octet_status round_constant(oct_graph *graph, oct_graph_node *node, int input, const oct_quantize_numbers *n) {
    if (graph->values[node->inputs[input]].forms[0].format != OCT_FORMAT_FP32) return OCTET_OK;
    float *data = oct_edit_constant(graph, node, input);
    if (data == NULL) return oct_error_status();
    oct_value *value = &graph->values[node->inputs[input]];
    oct_form form = plain_form(n);
    const oct_rounding rounding = {.form = &form, .scales = n->scales};
    const int64_t channels = value->shape.dims[value->shape.rank - 1];
    oct_stored_round(&rounding, oct_shape_count(&value->shape) / channels, channels, data, data, NULL, NULL);
    if (form.granularity != OCT_PER_TENSOR || !oct_format_is_weight(form.format)) return OCTET_OK;
    form.channel_stride = value->forms[0].channel_stride;
    form.held_wide = true;
    value->forms[0] = form;
    return OCTET_OK;
}

static octet_status quantize_inputs(oct_graph *graph, const oct_quantize_decision *d) {
    for (int j = 0; j < NUMBERS_MOST; j++) {
        const oct_quantize_numbers *n = &d->inputs[j];
        oct_graph_node *node = find_node(graph, d->node);
        if (n->format == OCT_FORMAT_FP32) continue;
        if (is_constant(graph, node->inputs[j])) {
            OCT_TRY(round_constant(graph, node, j, n));
            continue;
        }
        const int32_t narrow = stored_as(graph, node->inputs[j], n);
        if (narrow == OCT_NONE) return oct_error_status();
        find_node(graph, d->node)->inputs[j] = narrow;
    }
    if (d->probabilities != OCT_FORMAT_FP32) find_node(graph, d->node)->attributes.probabilities = d->probabilities;
    return OCTET_OK;
}

static octet_status quantize_output(oct_graph *graph, const oct_quantize_decision *d) {
    if (d->output.format == OCT_FORMAT_FP32) return OCTET_OK;
    const int32_t value = find_node(graph, d->node)->output;
    const int32_t narrow = stored_as(graph, value, &d->output);
    if (narrow == OCT_NONE) return oct_error_status();
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        if (node->output == narrow) continue;
        for (int j = 0; j < node->input_count; j++)
            if (node->inputs[j] == value) node->inputs[j] = narrow;
    }
    return OCTET_OK;
}

octet_status oct_graph_quantize(oct_graph *graph, const oct_quantize_decision *decisions, size_t count) {
    for (size_t i = 0; i < count; i++) OCT_TRY(check_decision(graph, &decisions[i]));
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_weight(graph, &decisions[i]));
    /* outputs first: inputs then read what is stored, and share it where the form is the same */
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_output(graph, &decisions[i]));
    for (size_t i = 0; i < count; i++) OCT_TRY(quantize_inputs(graph, &decisions[i]));
    OCT_TRY(oct_pass_dead_code(graph));
    return oct_graph_check(graph);
}
