/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

const char *oct_name(const oct_builder *builder, const char *format, ...) {
    char buffer[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof buffer) {
        oct_fail(OCTET_LIMIT, "%.60s..: a name has at most %zu bytes", buffer, sizeof buffer - 1);
        return NULL;
    }
    const char *name = oct_arena_strdup(&builder->graph->arena, buffer);
    if (name == NULL) oct_fail_memory();
    return name;
}

int64_t oct_channels(const oct_graph *graph, int32_t value) {
    const oct_value *v = oct_graph_value(graph, value);
    return v == NULL ? 0 : v->shape.dims[v->shape.rank - 1];
}

/* MODULE.PART as a vector */
static int32_t vector(const oct_builder *builder, const char *module, const char *part, int64_t length) {
    const char *name = oct_name(builder, "%s.%s", module, part);
    return name == NULL ? OCT_NONE : oct_weight(builder->graph, builder->checkpoint, name, 1, &length);
}

int32_t oct_build_convolution(const oct_builder *builder, const char *name, int32_t x, const oct_convolution *layer) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    const char *weight = oct_name(builder, "%s.weight", name);
    if (weight == NULL) return OCT_NONE;
    oct_attributes attributes = {
        .stride_h = layer->stride,
        .stride_w = layer->stride,
        .pad_top = layer->padding,
        .pad_left = layer->padding,
        .pad_bottom = layer->padding,
        .pad_right = layer->padding,
        .groups = layer->depthwise ? (int)layer->in : 1,
        .has_bias = layer->bias,
    };
    int32_t inputs[3] = {x};
    inputs[1] = oct_weight_conv(builder->graph, builder->checkpoint, weight, layer->out,
                                layer->depthwise ? 1 : layer->in, layer->kernel, layer->kernel);
    if (inputs[1] == OCT_NONE) return OCT_NONE;
    if (layer->bias) inputs[2] = vector(builder, name, "bias", layer->out);
    return oct_graph_add_node(builder->graph, OCT_OP_CONV2D, name, inputs, layer->bias ? 3 : 2, &attributes);
}

int32_t oct_build_batch_norm(const oct_builder *builder, const char *name, int32_t x, double epsilon) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    int64_t channels = oct_channels(builder->graph, x);
    int32_t inputs[5] = {x};
    for (int i = 0; i < 4; i++) {
        inputs[1 + i] = vector(builder, name, parts[i], channels);
        if (inputs[1 + i] == OCT_NONE) return OCT_NONE;
    }
    const oct_value *variance = oct_graph_value(builder->graph, inputs[4]);
    for (int64_t c = 0; c < channels; c++) {
        if (variance->data[c] >= 0) continue;
        oct_fail(OCTET_BAD_FORMAT, "%s: %s: element %lld: expected a variance of 0 or more, found %g",
                 oct_checkpoint_find(builder->checkpoint, variance->name)->file, variance->name, (long long)c,
                 (double)variance->data[c]);
        oct_detail("folding it into the weights before would give values that are not numbers");
        return OCT_NONE;
    }
    oct_attributes attributes = {.epsilon = epsilon};
    return oct_graph_add_node(builder->graph, OCT_OP_BATCH_NORM, name, inputs, 5, &attributes);
}

int32_t oct_build_activation(const oct_builder *builder, const char *name, int32_t x, oct_activation activation) {
    if (name == NULL) return OCT_NONE;
    oct_attributes attributes = {.activation = activation};
    return oct_graph_add_node(builder->graph, OCT_OP_ACTIVATION, name, &x, 1, &attributes);
}

int32_t oct_build_batch_norm_act(const oct_builder *builder, const char *name, int32_t x, double epsilon,
                                 oct_activation activation) {
    x = oct_build_batch_norm(builder, name, x, epsilon);
    if (x == OCT_NONE) return OCT_NONE;
    return oct_build_activation(builder, oct_name(builder, "%s.act", name), x, activation);
}

int32_t oct_build_linear(const oct_builder *builder, const char *name, int32_t x, int64_t out, bool bias) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    const char *weight = oct_name(builder, "%s.weight", name);
    if (weight == NULL) return OCT_NONE;
    const int64_t dims[] = {out, oct_channels(builder->graph, x)};
    int32_t inputs[3] = {x};
    inputs[1] = oct_weight(builder->graph, builder->checkpoint, weight, 2, dims);
    if (inputs[1] == OCT_NONE) return OCT_NONE;
    if (bias) inputs[2] = vector(builder, name, "bias", out);
    oct_attributes attributes = {.has_bias = bias};
    return oct_graph_add_node(builder->graph, OCT_OP_LINEAR, name, inputs, bias ? 3 : 2, &attributes);
}

int32_t oct_build_layer_norm(const oct_builder *builder, const char *name, int32_t x, double epsilon) {
    if (name == NULL || x == OCT_NONE) return OCT_NONE;
    int64_t channels = oct_channels(builder->graph, x);
    int32_t inputs[3] = {x};
    inputs[1] = vector(builder, name, "weight", channels);
    if (inputs[1] == OCT_NONE) return OCT_NONE;
    inputs[2] = vector(builder, name, "bias", channels);
    oct_attributes attributes = {.epsilon = epsilon};
    return oct_graph_add_node(builder->graph, OCT_OP_LAYER_NORM, name, inputs, 3, &attributes);
}

int32_t oct_build_add(const oct_builder *builder, const char *name, int32_t x, int32_t y) {
    if (name == NULL) return OCT_NONE;
    const int32_t inputs[] = {x, y};
    return oct_graph_add_node(builder->graph, OCT_OP_ADD, name, inputs, 2, NULL);
}

int32_t oct_build_slice(const oct_builder *builder, const char *name, int32_t x, int64_t start, int64_t length) {
    if (name == NULL) return OCT_NONE;
    oct_attributes attributes = {.start = start, .length = length};
    return oct_graph_add_node(builder->graph, OCT_OP_SLICE, name, &x, 1, &attributes);
}

int32_t oct_build_reshape(const oct_builder *builder, const char *name, int32_t x, oct_shape shape) {
    if (name == NULL) return OCT_NONE;
    oct_attributes attributes = {.shape = shape};
    return oct_graph_add_node(builder->graph, OCT_OP_RESHAPE, name, &x, 1, &attributes);
}

int32_t oct_build_attention(const oct_builder *builder, const char *name, int32_t query, int32_t key, int32_t value,
                            int heads) {
    if (name == NULL || query == OCT_NONE) return OCT_NONE;
    const int32_t inputs[] = {query, key, value};
    double size = (double)(oct_channels(builder->graph, query) / heads);
    oct_attributes attributes = {.heads = heads, .scale = 1 / sqrt(size)};
    return oct_graph_add_node(builder->graph, OCT_OP_ATTENTION, name, inputs, 3, &attributes);
}
