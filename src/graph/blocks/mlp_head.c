/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/mlp_head.h"

int32_t oct_build_mlp_head(const oct_builder *builder, const char *name, int32_t x, int layers, int64_t out) {
    int64_t channels = oct_channels(builder->graph, x);
    for (int i = 0; i < layers; i++) {
        const char *layer = oct_name(builder, "%s.layers.%d", name, i);
        x = oct_build_linear(builder, layer, x, i + 1 < layers ? channels : out, true);
        if (x == OCT_NONE) return OCT_NONE;
        if (i + 1 < layers) {
            x = oct_build_activation(builder, oct_name(builder, "%s.relu", layer), x, OCT_ACTIVATION_RELU);
        }
    }
    return x;
}
