/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored in which form once the narrow ones are decided: quantize.h. */
#include "base/alloc.h"
#include "graph/passes/edit.h"
#include "graph/quantize.h"
#include "graph/stored.h"

static bool is_constant(const oct_value *value) {
    return value->data != NULL || value->codes != NULL;
}

/* Readers of each form of a value; QUANTIZE nodes apart. An output of the graph is a reader of its first form. */
typedef struct readers {
    size_t others[2], quantizes[2];
} readers;

static readers count_readers(const oct_graph *graph, int32_t value) {
    readers r = {.others = {graph->values[value].is_output ? 1 : 0}};
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != value) continue;
            if (node->op == OCT_OP_QUANTIZE)
                r.quantizes[node->forms[j]]++;
            else
                r.others[node->forms[j]]++;
        }
    }
    return r;
}

/* ---- fusing */

static bool finds_rows(const oct_form *form) {
    return form->granularity == OCT_PER_ROW || form->granularity == OCT_PER_BLOCK;
}

/* The picture is rounded before the first step, where it lies, over and over if it stays: its numbers must come out the
 * same again. */
static bool rounds_picture(const oct_graph *graph, int32_t value, const oct_form *form) {
    const readers r = count_readers(graph, value);
    return value == graph->input && r.others[0] == 0 && r.quantizes[0] == 1 && form->format != OCT_FORMAT_INT8 &&
           !finds_rows(form) && form->factors == OCT_NONE;
}

/* Forms of the value that would be read without this QUANTIZE. */
static size_t forms_left(const oct_graph *graph, const oct_graph_node *quantize) {
    const int32_t value = quantize->inputs[0];
    readers r = count_readers(graph, value);
    r.quantizes[quantize->forms[0]]--;
    size_t left = 0;
    for (int f = 0; f < graph->values[value].form_count; f++) left += r.others[f] + r.quantizes[f] > 0;
    return left;
}

/* Rounded from the node's own result, and into room for it. */
static bool fits(const oct_graph *graph, const oct_graph_node *quantize) {
    const int32_t value = quantize->inputs[0];
    const oct_value *x = &graph->values[value], *y = &graph->values[quantize->output];
    if (x->forms[quantize->forms[0]].format != OCT_FORMAT_FP32 || y->is_output || forms_left(graph, quantize) > 1)
        return false;
    if (x->producer == OCT_NONE) return rounds_picture(graph, value, &y->forms[0]);
    const oct_op op = graph->nodes[x->producer].op;
    return op != OCT_OP_QUANTIZE && !oct_op_moves(op);
}

/* Readers of `from` in form `f` read `to` in form `g`. */
static void read_instead(oct_graph *graph, int32_t from, int f, int32_t to, int g) {
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != from || node->forms[j] != f) continue;
            node->forms[j] = (uint8_t)g; /* first: the other way round, gcc 12.2 at -O2 makes wrong code of it */
            node->inputs[j] = to;
        }
    }
}

static void fuse(oct_graph *graph, oct_graph_node *quantize) {
    const int32_t from = quantize->inputs[0], narrow = quantize->output;
    oct_value *value = &graph->values[from];
    quantize->op = OCT_OP_REMOVED;
    quantize->input_count = 0;
    graph->values[narrow].producer = OCT_NONE;
    const readers r = count_readers(graph, from);
    int count = 0; /* forms that stay move to the front */
    for (int f = 0; f < value->form_count; f++) {
        if (r.others[f] + r.quantizes[f] == 0) continue;
        value->forms[count] = value->forms[f];
        read_instead(graph, from, f, from, count++);
    }
    value->forms[count] = graph->values[narrow].forms[0];
    read_instead(graph, narrow, 0, from, count);
    value->form_count = count + 1;
}

octet_status oct_pass_fuse_quantize(oct_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == OCT_OP_QUANTIZE && fits(graph, &graph->nodes[i])) fuse(graph, &graph->nodes[i]);
    OCT_TRY(oct_edit_sweep(graph, false));
    return oct_graph_check(graph);
}

size_t oct_graph_unfused(const oct_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++) count += graph->nodes[i].op == OCT_OP_QUANTIZE;
    return count;
}

/* ---- the base */

static oct_form base_form(const oct_form *wide, oct_format base) {
    oct_form form = oct_form_of(base);
    form.channel_stride = wide->channel_stride;
    return form;
}

/* Whether a constant there is rounded: weights, and what is added or concatenated. */
static bool takes_base(const oct_graph_node *node, int input) {
    if (node->op == OCT_OP_CONV2D || node->op == OCT_OP_LINEAR) return input == 1;
    return node->op == OCT_OP_ADD || node->op == OCT_OP_CONCAT;
}

/* Whether all who read the constant want it rounded. */
static bool all_take_base(const oct_graph *graph, int32_t value) {
    for (size_t i = 0; i < graph->node_count; i++)
        for (int j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == value && !takes_base(&graph->nodes[i], j)) return false;
    return !graph->values[value].is_output;
}

static octet_status round_constant(oct_graph *graph, oct_graph_node *node, int input, oct_format base) {
    if (graph->values[node->inputs[input]].forms[0].format != OCT_FORMAT_FP32) return OCTET_OK;
    if (!all_take_base(graph, node->inputs[input]) && oct_edit_constant(graph, node, input) == NULL)
        return oct_error_status();
    oct_value *value = &graph->values[node->inputs[input]];
    const int64_t count = oct_shape_count(&value->shape);
    for (int64_t i = 0; i < count; i++) value->data[i] = oct_format_round(base, value->data[i]);
    value->forms[0] = base_form(&value->forms[0], base);
    value->forms[0].held_wide = true;
    return OCTET_OK;
}

static octet_status round_constants(oct_graph *graph, oct_format base) {
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++)
            if (takes_base(node, j) && is_constant(&graph->values[node->inputs[j]]))
                OCT_TRY(round_constant(graph, node, j, base));
    }
    return OCTET_OK;
}

/* What is moved is in the base's format if it was before. */
static bool moves_base(const oct_graph *graph, const oct_graph_node *node, oct_format base) {
    for (int j = 0; j < node->input_count; j++)
        if (graph->values[node->inputs[j]].forms[node->forms[j]].format != base) return false;
    return !graph->values[node->output].is_output;
}

/* The base's form for those who read the wide one; that stays for outputs and for a QUANTIZE, which rounds what was
 * not rounded yet. A value without room for a third form, and the picture, are rounded for a QUANTIZE too. */
static void store_base(oct_graph *graph, int32_t id, oct_format base) {
    oct_value *value = &graph->values[id];
    if (value->forms[0].format != OCT_FORMAT_FP32) return;
    const readers r = count_readers(graph, id);
    const size_t wanted = r.others[0] - (value->is_output ? 1 : 0);
    const bool keeps = value->is_output || r.quantizes[0] > 0;
    if (wanted == 0 && keeps) return;
    if (!keeps || (!value->is_output && (value->form_count > 1 || id == graph->input))) {
        value->forms[0] = base_form(&value->forms[0], base);
        return;
    }
    if (value->form_count > 1) return;
    value->forms[1] = base_form(&value->forms[0], base);
    value->form_count = 2;
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++)
            if (node->inputs[j] == id && node->op != OCT_OP_QUANTIZE) node->forms[j] = 1;
    }
}

octet_status oct_graph_store_base(oct_graph *graph, oct_format base) {
    if (base == OCT_FORMAT_FP32) return OCTET_OK;
    if (base != OCT_FORMAT_FP16 && base != OCT_FORMAT_BF16)
        return oct_fail(OCTET_INVALID_ARGUMENT, "base: expected fp32, fp16 or bf16, found %s", oct_format_name(base));
    OCT_TRY(round_constants(graph, base));
    if (graph->value_count > 0 && !is_constant(&graph->values[graph->input])) store_base(graph, graph->input, base);
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        oct_form *out = &graph->values[node->output].forms[0];
        if (!oct_op_moves(node->op))
            store_base(graph, node->output, base);
        else if (moves_base(graph, node, base))
            *out = base_form(out, base);
    }
    return oct_graph_check(graph);
}

/* ---- codes or numbers */

static bool multiplies_codes(const oct_graph *graph, const oct_graph_node *node, int input) {
    if (input != 0 || node->input_count < 2) return false;
    const oct_value *x = &graph->values[node->inputs[0]], *weight = &graph->values[node->inputs[1]];
    return oct_stored_is_int8_product(node->op, &node->attributes, &weight->shape, &x->forms[node->forms[0]],
                                      &weight->forms[0]);
}

static size_t count_products(const oct_graph *graph, int32_t value, int form) {
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++)
            count += node->inputs[j] == value && node->forms[j] == form && multiplies_codes(graph, node, j);
    }
    return count;
}

/* The numbers first, the codes second, for the products. */
static void split(oct_graph *graph, int32_t id) {
    oct_value *value = &graph->values[id];
    value->forms[1] = value->forms[0];
    value->form_count = 2;
    for (size_t i = 0; i < graph->node_count; i++) {
        oct_graph_node *node = &graph->nodes[i];
        if (node->inputs[0] == id && multiplies_codes(graph, node, 0)) node->forms[0] = 1;
    }
    value->forms[0].held_wide = true;
}

static void hold(oct_graph *graph, int32_t id, int f) {
    oct_value *value = &graph->values[id];
    if (value->forms[f].format == OCT_FORMAT_FP32) return;
    const readers r = count_readers(graph, id);
    const size_t products = count_products(graph, id, f), all = r.others[f] + r.quantizes[f];
    const bool made = value->producer != OCT_NONE && !oct_op_moves(graph->nodes[value->producer].op);
    if (made && products > 0 && products == all) return; /* codes */
    if (made && products > 0 && value->form_count == 1 && graph->nodes[value->producer].op != OCT_OP_QUANTIZE)
        split(graph, id);
    else
        value->forms[f].held_wide = true;
}

octet_status oct_graph_hold_wide(oct_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) {
        if (is_constant(&graph->values[i])) continue;
        for (int f = graph->values[i].form_count - 1; f >= 0; f--) hold(graph, (int32_t)i, f);
    }
    return oct_graph_check(graph);
}
