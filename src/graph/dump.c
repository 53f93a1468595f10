/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as text: a line a node, or Graphviz. */
#include "graph/graph.h"
#include "graph/ops.h"

static void print_forms(const oct_value *value, oct_text *text) {
    for (int f = 0; f < value->form_count; f++) {
        const oct_form *form = &value->forms[f];
        oct_text_puts(text, f > 0 ? " + " : " ");
        oct_form_print(form, text);
        if (form->channel_stride != value->shape.dims[value->shape.rank - 1]) {
            oct_text_printf(text, "/%d", (int)form->channel_stride);
        }
    }
}

static void print_attributes(const oct_graph *graph, const oct_graph_node *node, oct_text *text) {
    const oct_attributes *a = &node->attributes;
    char number[32];
    if (node->op == OCT_OP_CONV2D) {
        const oct_shape *weight = &graph->values[node->inputs[1]].shape;
        oct_text_printf(text, " kernel=%lldx%lld stride=%dx%d pad=%d,%d,%d,%d", (long long)weight->dims[1],
                        (long long)weight->dims[2], a->stride_h, a->stride_w, a->pad_top, a->pad_left, a->pad_bottom,
                        a->pad_right);
        if (a->groups != 1) oct_text_printf(text, " groups=%d", a->groups);
    }
    if (node->op == OCT_OP_BATCH_NORM || node->op == OCT_OP_LAYER_NORM) {
        oct_text_printf(text, " epsilon=%s", oct_format_double(a->epsilon, number));
    }
    if (node->op == OCT_OP_ATTENTION) {
        oct_text_printf(text, " heads=%d scale=%s", a->heads, oct_format_double(a->scale, number));
        if (a->probabilities != OCT_FORMAT_FP32)
            oct_text_printf(text, " probabilities=%s", oct_format_name(a->probabilities));
    }
    if (node->op == OCT_OP_SLICE) {
        oct_text_printf(text, " start=%lld length=%lld", (long long)a->start, (long long)a->length);
    }
    if (a->activation != OCT_ACTIVATION_NONE) oct_text_printf(text, " %s", oct_activation_name(a->activation));
}

void oct_graph_dump(const oct_graph *graph, oct_text *text) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        const oct_value *output = &graph->values[node->output];
        oct_text_printf(text, "%s %s ", output->name, oct_op_rows[node->op].name);
        oct_shape_print(&output->shape, text);
        print_forms(output, text);
        if (node->name != output->name) oct_text_printf(text, " node=%s", node->name);
        print_attributes(graph, node, text);
        oct_text_puts(text, " <-");
        for (int j = 0; j < node->input_count; j++) {
            const oct_value *input = &graph->values[node->inputs[j]];
            oct_text_printf(text, " %s", input->name);
            if (input->data != NULL || input->codes != NULL) oct_shape_print(&input->shape, text);
            const oct_form *form = &input->forms[node->forms[j]];
            if (input->form_count == 1 && form->format == OCT_FORMAT_FP32) continue;
            oct_text_puts(text, ":");
            oct_form_print(form, text);
        }
        oct_text_puts(text, output->is_output ? " (output)\n" : "\n");
    }
}

/* Names come from files: JSON strings are Graphviz strings, but for escapes it shows as they are. */
void oct_graph_dot(const oct_graph *graph, oct_text *text) {
    oct_text_puts(text, "digraph graph_ {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n"
                        "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (size_t i = 0; i < graph->value_count; i++) {
        const oct_value *value = &graph->values[i];
        bool is_input = value->producer == OCT_NONE && value->data == NULL && value->codes == NULL;
        if (!is_input && value->producer == OCT_NONE) continue; /* weights are not drawn */
        oct_text label = {0};
        if (is_input) {
            oct_text_printf(&label, "%s\ninput ", value->name);
        } else {
            const oct_graph_node *node = &graph->nodes[value->producer];
            oct_text_printf(&label, "%s\n%s", value->name, oct_op_rows[node->op].name);
            print_attributes(graph, node, &label);
            oct_text_puts(&label, "\n");
        }
        oct_shape_print(&value->shape, &label);
        print_forms(value, &label);
        oct_text_printf(text, "  v%zu [label=", i);
        if (label.failed) text->failed = true;
        oct_text_json(text, label.failed ? "" : label.data);
        oct_text_puts(text, value->is_output ? ", peripheries=2];\n" : "];\n");
        oct_text_free(&label);
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        for (int j = 0; j < node->input_count; j++) {
            const oct_value *input = &graph->values[node->inputs[j]];
            if (input->data == NULL && input->codes == NULL)
                oct_text_printf(text, "  v%d -> v%d;\n", (int)node->inputs[j], (int)node->output);
        }
    }
    oct_text_puts(text, "}\n");
}
