/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/transformer_layer.h"

#include "graph/blocks/weights.h"

/* Three linears from the rows of one stored linear, so that a recipe can name each. */
static octet_status split_fused(const oct_builder *builder, const oct_transformer_layer *layer, int32_t x,
                                int32_t outputs[3]) {
    int64_t channels = oct_channels(builder->graph, x);
    const int64_t dims[] = {3 * channels, channels};
    const char *const names[] = {layer->query, layer->key, layer->value};
    const char *weights[3], *biases[3];
    int32_t weight[3], bias[3];
    for (int i = 0; i < 3; i++) {
        weights[i] = oct_name(builder, "%s.weight", names[i]);
        biases[i] = oct_name(builder, "%s.bias", names[i]);
        if (weights[i] == NULL || biases[i] == NULL) return oct_error_status();
    }
    OCT_TRY(oct_weight_split(builder->graph, builder->checkpoint, oct_name(builder, "%s.weight", layer->fused), 2, dims,
                             3, weights, weight));
    if (layer->qkv_bias) {
        OCT_TRY(oct_weight_split(builder->graph, builder->checkpoint, oct_name(builder, "%s.bias", layer->fused), 1,
                                 dims, 3, biases, bias));
    }
    for (int i = 0; i < 3; i++) {
        const int32_t inputs[] = {x, weight[i], layer->qkv_bias ? bias[i] : OCT_NONE};
        oct_attributes attributes = {.has_bias = layer->qkv_bias};
        outputs[i] =
            oct_graph_add_node(builder->graph, OCT_OP_LINEAR, names[i], inputs, layer->qkv_bias ? 3 : 2, &attributes);
        if (outputs[i] == OCT_NONE) return oct_error_status();
    }
    return OCTET_OK;
}

int32_t oct_build_transformer_layer(const oct_builder *builder, int32_t x, const oct_transformer_layer *layer) {
    if (x == OCT_NONE || layer->query == NULL || layer->key == NULL || layer->value == NULL) return OCT_NONE;
    int64_t channels = oct_channels(builder->graph, x);
    int32_t normal = oct_build_layer_norm(builder, layer->norm1, x, layer->epsilon);
    if (normal == OCT_NONE) return OCT_NONE;
    int32_t qkv[3];
    if (layer->is_fused) {
        if (layer->fused == NULL || split_fused(builder, layer, normal, qkv) != OCTET_OK) return OCT_NONE;
    } else {
        const char *const names[] = {layer->query, layer->key, layer->value};
        for (int i = 0; i < 3; i++) {
            qkv[i] = oct_build_linear(builder, names[i], normal, channels, layer->qkv_bias);
            if (qkv[i] == OCT_NONE) return OCT_NONE;
        }
    }
    int32_t y = oct_build_attention(builder, layer->attention, qkv[0], qkv[1], qkv[2], layer->heads);
    y = oct_build_linear(builder, layer->projection, y, channels, true);
    x = oct_build_add(builder, layer->sum1, y, x);
    y = oct_build_layer_norm(builder, layer->norm2, x, layer->epsilon);
    y = oct_build_linear(builder, layer->first, y, layer->hidden, true);
    y = oct_build_activation(builder, layer->gelu, y, OCT_ACTIVATION_GELU);
    y = oct_build_linear(builder, layer->second, y, channels, true);
    return oct_build_add(builder, layer->sum2, y, x);
}
