/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph, questions about it, shape inference and checks. */
#include "graph/graph.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/ops.h"
#include "graph/ops/rules.h"
#include "graph/stored.h"

#define GRAPH_ELEMENTS_MAX ((int64_t)1 << 40) /* a value's elements: far above any model, far below overflow */
#define GRAPH_ITEMS_MAX ((size_t)1 << 24)     /* values or nodes */

static const char *const activation_names[OCT_ACTIVATION_COUNT] = {
    [OCT_ACTIVATION_NONE] = "none", [OCT_ACTIVATION_RELU] = "relu",       [OCT_ACTIVATION_RELU6] = "relu6",
    [OCT_ACTIVATION_GELU] = "gelu", [OCT_ACTIVATION_SIGMOID] = "sigmoid",
};

const char *oct_activation_name(oct_activation activation) {
    return (unsigned)activation < OCT_ACTIVATION_COUNT ? activation_names[activation] : "unknown";
}

/* ---- shapes */

int64_t oct_shape_count(const oct_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->dims[i];
    return count;
}

bool oct_shape_equal(const oct_shape *a, const oct_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

oct_shape oct_shape_of(int rank, const int64_t *dims) {
    oct_shape shape = {.rank = rank};
    for (int i = 0; i < rank && i < OCT_RANK; i++) shape.dims[i] = dims[i];
    return shape;
}

void oct_shape_print(const oct_shape *shape, oct_text *text) {
    oct_text_puts(text, "[");
    for (int i = 0; i < shape->rank && i < OCT_RANK; i++) {
        oct_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)shape->dims[i]);
    }
    oct_text_puts(text, "]");
}

static octet_status check_shape(const char *name, const oct_shape *shape) {
    if (shape->rank < 1 || shape->rank > OCT_RANK) {
        return oct_fail(OCTET_MISMATCH, "%s: expected 1 to %d dimensions, found %d", name, OCT_RANK, shape->rank);
    }
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        if (dim < 1 || dim > GRAPH_ELEMENTS_MAX || count > GRAPH_ELEMENTS_MAX / dim) {
            return oct_fail(dim < 1 ? OCTET_MISMATCH : OCTET_LIMIT, "%s: shape %s has %s", name,
                            oct_shape_text(shape).bytes, dim < 1 ? "an empty dimension" : "too many elements");
        }
        count *= dim;
    }
    return OCTET_OK;
}

/* ---- building */

static int32_t add_value(oct_graph *graph, const char *name, const oct_shape *shape, float *data) {
    if (check_shape(name, shape) != OCTET_OK) goto failed;
    if (name[0] == '\0' || oct_graph_find(graph, name) != OCT_NONE) {
        oct_fail(OCTET_INVALID_ARGUMENT, "%s", name[0] == '\0' ? "a value without a name" : name);
        if (name[0] != '\0') oct_detail("the graph already has a value of this name");
        goto failed;
    }
    if (graph->value_count >= GRAPH_ITEMS_MAX) {
        oct_fail(OCTET_LIMIT, "%s: a graph has at most %zu values", name, GRAPH_ITEMS_MAX);
        goto failed;
    }
    char *copy = oct_arena_strdup(&graph->arena, name);
    if (copy == NULL ||
        !oct_grow((void **)&graph->values, sizeof *graph->values, graph->value_count + 1, &graph->value_capacity)) {
        oct_fail_memory();
        goto failed;
    }
    oct_value *value = &graph->values[graph->value_count];
    *value = (oct_value){.name = copy, .shape = *shape, .form_count = 1, .producer = OCT_NONE, .data = data};
    value->forms[0] = oct_form_of(OCT_FORMAT_FP32);
    value->forms[0].channel_stride = (int32_t)shape->dims[shape->rank - 1];
    return (int32_t)graph->value_count++;
failed:
    oct_free(data);
    return OCT_NONE;
}

int32_t oct_graph_input(oct_graph *graph, const char *name, oct_shape shape) {
    for (size_t i = 0; i < graph->value_count; i++) {
        const oct_value *other = &graph->values[i];
        if (other->producer == OCT_NONE && other->data == NULL && other->codes == NULL) {
            oct_fail(OCTET_INVALID_ARGUMENT, "%s: the graph already has the input %s", name, graph->values[i].name);
            return OCT_NONE;
        }
    }
    int32_t id = add_value(graph, name, &shape, NULL);
    if (id != OCT_NONE) graph->input = id;
    return id;
}

int32_t oct_graph_constant(oct_graph *graph, const char *name, oct_shape shape, float *data) {
    if (data == NULL) {
        oct_fail_memory();
        return OCT_NONE;
    }
    return add_value(graph, name, &shape, data);
}

static octet_status infer_node(const oct_graph *graph, const oct_graph_node *node, const oct_shape *shapes,
                               oct_shape *output) {
    oct_shape inputs[OCT_NODE_INPUTS];
    for (int i = 0; i < node->input_count; i++) {
        int32_t id = node->inputs[i];
        inputs[i] = shapes != NULL ? shapes[id] : graph->values[id].shape;
    }
    OCT_TRY(oct_op_rows[node->op].shape(node->name, &node->attributes, inputs, node->input_count, output));
    return check_shape(node->name, output);
}

int32_t oct_graph_add_node(oct_graph *graph, oct_op op, const char *name, const int32_t *inputs, int input_count,
                           const oct_attributes *attributes) {
    oct_graph_node node = {.op = op, .name = name, .input_count = input_count};
    if (attributes != NULL) node.attributes = *attributes;
    if ((unsigned)op >= OCT_OP_COUNT || input_count < 1 || input_count > OCT_NODE_INPUTS) {
        oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected 1 to %d inputs of a known op, found %d of op %d", name,
                 OCT_NODE_INPUTS, input_count, (int)op);
        return OCT_NONE;
    }
    for (int i = 0; i < input_count; i++) {
        if (inputs[i] == OCT_NONE) return OCT_NONE; /* reported where it failed */
        if (inputs[i] < 0 || (size_t)inputs[i] >= graph->value_count) {
            oct_fail(OCTET_INVALID_ARGUMENT, "%s: input %d: no value %d", name, i, (int)inputs[i]);
            return OCT_NONE;
        }
        node.inputs[i] = inputs[i];
    }
    oct_shape shape;
    if (infer_node(graph, &node, NULL, &shape) != OCTET_OK) return OCT_NONE;
    if (!oct_grow((void **)&graph->nodes, sizeof *graph->nodes, graph->node_count + 1, &graph->node_capacity)) {
        oct_fail_memory();
        return OCT_NONE;
    }
    node.output = add_value(graph, name, &shape, NULL);
    if (node.output == OCT_NONE) return OCT_NONE;
    oct_value *value = &graph->values[node.output];
    value->producer = (int32_t)graph->node_count;
    node.name = value->name;
    graph->nodes[graph->node_count++] = node;
    return node.output;
}

octet_status oct_graph_output(oct_graph *graph, int32_t value, const char *name) {
    if (value == OCT_NONE) return oct_error_status(); /* reported where it failed */
    if (value < 0 || (size_t)value >= graph->value_count) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: no value %d", name, (int)value);
    }
    int32_t other = oct_graph_find(graph, name);
    if (other != OCT_NONE && other != value) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the graph already has a value of this name", name);
    }
    char *copy = oct_arena_strdup(&graph->arena, name);
    if (copy == NULL) return oct_fail_memory();
    graph->values[value].name = copy;
    graph->values[value].is_output = true;
    return OCTET_OK;
}

void oct_graph_free(oct_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) {
        oct_free(graph->values[i].data);
        oct_free(graph->values[i].codes);
    }
    oct_free(graph->values);
    oct_free(graph->nodes);
    oct_arena_free(&graph->arena);
    *graph = (oct_graph){0};
}

/* ---- questions */

const oct_value *oct_graph_value(const oct_graph *graph, int32_t id) {
    return id >= 0 && (size_t)id < graph->value_count ? &graph->values[id] : NULL;
}

int32_t oct_graph_find(const oct_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->value_count; i++) {
        if (strcmp(graph->values[i].name, name) == 0) return (int32_t)i;
    }
    return OCT_NONE;
}

size_t oct_graph_uses(const oct_graph *graph, int32_t value) {
    size_t uses = graph->values[value].is_output ? 1 : 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) uses += node->inputs[j] == value;
    }
    return uses;
}

int64_t oct_node_flops(const oct_graph *graph, const oct_graph_node *node) {
    oct_shape inputs[OCT_NODE_INPUTS];
    for (int i = 0; i < node->input_count; i++) inputs[i] = graph->values[node->inputs[i]].shape;
    return oct_op_rows[node->op].flops(&node->attributes, inputs, node->input_count,
                                       &graph->values[node->output].shape);
}

static int64_t form_bytes(const oct_value *value, const oct_form *form) {
    int64_t channels = value->shape.dims[value->shape.rank - 1];
    int64_t stride = form->channel_stride > channels ? form->channel_stride : channels;
    return oct_shape_count(&value->shape) / channels * stride * (int64_t)oct_form_bits(form) / 8;
}

int64_t oct_node_bytes(const oct_graph *graph, const oct_graph_node *node) {
    int64_t bytes = 0;
    for (int i = 0; i < node->input_count; i++) {
        const oct_value *value = &graph->values[node->inputs[i]];
        bytes += form_bytes(value, &value->forms[node->forms[i]]);
    }
    const oct_value *output = &graph->values[node->output];
    for (int f = 0; f < output->form_count; f++) bytes += form_bytes(output, &output->forms[f]);
    return bytes;
}

/* ---- shape inference and checks */

octet_status oct_graph_infer(oct_graph *graph, int64_t batch) {
    if (batch < 1) return oct_fail(OCTET_INVALID_ARGUMENT, "batch: expected 1 or more, found %lld", (long long)batch);
    oct_shape *shapes = oct_calloc(graph->value_count, sizeof *shapes);
    if (shapes == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < graph->value_count; i++) {
        const oct_value *value = &graph->values[i];
        shapes[i] = value->shape;
        /* else a constant, also one whose data went to the weights, or made below */
        bool is_input =
            (int32_t)i == graph->input && value->data == NULL && value->codes == NULL && value->producer == OCT_NONE;
        if (!is_input) continue;
        shapes[i].dims[0] = batch;
        status = check_shape(value->name, &shapes[i]);
        if (status != OCTET_OK) break;
    }
    for (size_t i = 0; i < graph->node_count && status == OCTET_OK; i++) {
        status = infer_node(graph, &graph->nodes[i], shapes, &shapes[graph->nodes[i].output]);
    }
    if (status == OCTET_OK) {
        for (size_t i = 0; i < graph->value_count; i++) graph->values[i].shape = shapes[i];
    }
    oct_free(shapes);
    return status;
}

/* Where the first infinity or NaN is; `count`: nowhere. By blocks without a way out, which compilers make vectors of:
 * every weight passes here at each opening. */
static int64_t first_not_finite(const float *values, int64_t count) {
    enum { BLOCK = 64 };
    int64_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        uint32_t bits[BLOCK], found = 0;
        memcpy(bits, values + i, sizeof bits);
        for (int k = 0; k < BLOCK; k++) found |= (uint32_t)((bits[k] & 0x7f800000u) == 0x7f800000u);
        if (found != 0) break;
    }
    while (i < count && isfinite(values[i])) i++;
    return i;
}

static bool own_blocks(oct_format format) {
    return format == OCT_FORMAT_MXFP8 || format == OCT_FORMAT_NVFP4;
}

static bool is_finite_vector(const oct_graph *graph, int32_t id, int64_t length, float least) {
    if (id < 0 || id >= (int32_t)graph->value_count) return false;
    const oct_value *vector = &graph->values[id];
    if (vector->data == NULL || vector->shape.rank != 1 || vector->shape.dims[0] != length) return false;
    for (int64_t i = 0; i < length; i++)
        if (!(vector->data[i] >= least && isfinite(vector->data[i]))) return false;
    return true;
}

static bool form_is_possible(const oct_graph *graph, const oct_value *value, const oct_form *form) {
    const bool activation = value->data == NULL && value->codes == NULL;
    const float least = activation ? OCT_SCALE_LEAST : FLT_TRUE_MIN;
    const int64_t channels = value->shape.dims[value->shape.rank - 1];
    if (!(activation ? oct_format_is_stored(form->format) : oct_format_is_weight(form->format))) return false;
    if ((form->scales != OCT_NONE) != (form->granularity == OCT_PER_CHANNEL)) return false;
    if ((form->block > 0) != (form->granularity == OCT_PER_BLOCK) || form->block < 0) return false;
    if (form->factors != OCT_NONE && !(activation && is_finite_vector(graph, form->factors, channels, FLT_TRUE_MIN)))
        return false;
    switch (form->granularity) {
    case OCT_PER_TENSOR:
        return !own_blocks(form->format) && form->scale >= least && isfinite(form->scale);
    case OCT_PER_CHANNEL:
        return (oct_format_has_scale(form->format) || form->format == OCT_FORMAT_UINT8) &&
               is_finite_vector(graph, form->scales, activation ? channels : value->shape.dims[0], least);
    case OCT_PER_ROW:
        return activation && oct_format_has_scale(form->format);
    case OCT_PER_BLOCK:
        if (form->format == OCT_FORMAT_MXFP8) return form->block == OCT_MXFP8_BLOCK;
        if (form->format == OCT_FORMAT_NVFP4) return form->block == OCT_NVFP4_BLOCK && form->scale >= FLT_TRUE_MIN;
        return oct_format_has_scale(form->format);
    }
    return false;
}

static octet_status check_value(const oct_graph *graph, size_t id) {
    const oct_value *value = &graph->values[id];
    if (value->name == NULL || value->name[0] == '\0') return oct_fail(OCTET_INTERNAL, "value %zu has no name", id);
    OCT_TRY(check_shape(value->name, &value->shape));
    if (oct_graph_find(graph, value->name) != (int32_t)id) {
        return oct_fail(OCTET_INTERNAL, "%s: two values have this name", value->name);
    }
    if (value->form_count < 1 || value->form_count > 2) {
        return oct_fail(OCTET_INTERNAL, "%s: expected 1 or 2 stored forms, found %d", value->name, value->form_count);
    }
    const bool constant = value->data != NULL || value->codes != NULL;
    for (int f = 0; f < value->form_count; f++) {
        const oct_form *form = &value->forms[f];
        if (form->channel_stride < value->shape.dims[value->shape.rank - 1] || !form_is_possible(graph, value, form) ||
            (constant && (f > 0 || (value->codes != NULL) == oct_form_is_float(form)))) {
            return oct_fail(OCTET_INTERNAL, "%s: stored form %d is not possible", value->name, f);
        }
    }
    if (value->form_count == 2 && value->forms[1].format == OCT_FORMAT_FP32)
        return oct_fail(OCTET_INTERNAL, "%s: of two stored forms the second is fp32", value->name);
    if (value->is_output && !constant && value->forms[0].format != OCT_FORMAT_FP32)
        return oct_fail(OCTET_INTERNAL, "%s: an output that is not fp32", value->name);
    if (value->codes != NULL) {
        if (!oct_format_is_coded(value->forms[0].format))
            return oct_fail(OCTET_INTERNAL, "%s: codes of %s", value->name, oct_format_name(value->forms[0].format));
        if (value->data != NULL || value->producer != OCT_NONE)
            return oct_fail(OCTET_INTERNAL, "%s: codes beside other data", value->name);
    } else if (value->data != NULL) {
        if (value->producer != OCT_NONE) return oct_fail(OCTET_INTERNAL, "%s: a constant made by a node", value->name);
        int64_t count = oct_shape_count(&value->shape), bad = first_not_finite(value->data, count);
        if (bad < count) {
            return oct_fail(OCTET_BAD_FORMAT, "%s: element %lld is %f", value->name, (long long)bad,
                            (double)value->data[bad]);
        }
    } else if (value->producer == OCT_NONE && (int32_t)id != graph->input) {
        return oct_fail(OCTET_INTERNAL, "%s: neither the input, nor a constant, nor made by a node", value->name);
    }
    return OCTET_OK;
}

/* QUANTIZE stores one narrow form. What only moves numbers rounds nothing: it stores what all its inputs are stored in,
 * or fp32. The picture has one form. */
static octet_status check_forms(const oct_graph *graph, const oct_graph_node *node) {
    const oct_value *out = &graph->values[node->output];
    const oct_form *to = &out->forms[0];
    if (node->op == OCT_OP_QUANTIZE && (to->format == OCT_FORMAT_FP32 || out->form_count != 1))
        return oct_fail(OCTET_INTERNAL, "%s: quantizes to %s", node->name, oct_format_name(to->format));
    if (node->attributes.probabilities != OCT_FORMAT_FP32 &&
        (node->op != OCT_OP_ATTENTION || !oct_stored_is_probability(node->attributes.probabilities)))
        return oct_fail(OCTET_INTERNAL, "%s: probabilities in %s", node->name,
                        oct_format_name(node->attributes.probabilities));
    if (!oct_op_moves(node->op)) return OCTET_OK;
    if (out->form_count != 1) return oct_fail(OCTET_INTERNAL, "%s: moves numbers into two forms", node->name);
    if (to->format == OCT_FORMAT_FP32) return OCTET_OK;
    for (int j = 0; j < node->input_count; j++) {
        const oct_form *from = &graph->values[node->inputs[j]].forms[node->forms[j]];
        if (from->format != to->format || from->granularity != to->granularity || from->scale != to->scale ||
            from->zero_point != to->zero_point || to->granularity != OCT_PER_TENSOR)
            return oct_fail(OCTET_INTERNAL, "%s: moves %s to %s", node->name, oct_format_name(from->format),
                            oct_format_name(to->format));
    }
    return OCTET_OK;
}

octet_status oct_graph_check(const oct_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) OCT_TRY(check_value(graph, i));
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        if ((unsigned)node->op >= OCT_OP_COUNT || node->name == NULL || node->input_count < 1 ||
            node->input_count > OCT_NODE_INPUTS || node->output < 0 || (size_t)node->output >= graph->value_count ||
            graph->values[node->output].producer != (int32_t)i) {
            return oct_fail(OCTET_INTERNAL, "node %zu: op, inputs or output are not possible", i);
        }
        for (int j = 0; j < node->input_count; j++) {
            int32_t id = node->inputs[j];
            if (id < 0 || (size_t)id >= graph->value_count || graph->values[id].producer >= (int32_t)i) {
                return oct_fail(OCTET_INTERNAL, "%s: input %d is not made before the node", node->name, j);
            }
            if (node->forms[j] >= graph->values[id].form_count)
                return oct_fail(OCTET_INTERNAL, "%s: input %d has no stored form %d", node->name, j, node->forms[j]);
        }
        OCT_TRY(check_forms(graph, node));
        oct_shape shape;
        OCT_TRY(infer_node(graph, node, NULL, &shape));
        OCT_TRY(oct_rule_expect(node->name, "output", &shape, &graph->values[node->output].shape));
    }
    return OCTET_OK;
}
