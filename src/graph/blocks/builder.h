/* SPDX-License-Identifier: Apache-2.0 */
/* Single layers with their weights, by the names both timm and transformers use: a module NAME has NAME.weight,
 * NAME.bias, a batch norm also NAME.running_mean and NAME.running_var. Each returns the layer's value, named NAME, or
 * OCT_NONE with the error set; OCT_NONE or a NULL name in gives OCT_NONE out, so calls are chained and the last is
 * checked. */
#ifndef OCT_GRAPH_BLOCKS_BUILDER_H
#define OCT_GRAPH_BLOCKS_BUILDER_H

#include "graph/family.h"

typedef struct oct_builder {
    oct_graph *graph;
    oct_checkpoint *checkpoint;
} oct_builder;

/* A name that lives as long as the graph; NULL: no memory, error set. */
const char *oct_name(const oct_builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct oct_convolution {
    int64_t in, out; /* channels */
    int kernel, stride, padding;
    bool depthwise; /* groups = in = out */
    bool bias;
} oct_convolution;
int32_t oct_build_convolution(const oct_builder *builder, const char *name, int32_t x, const oct_convolution *layer);
/* A negative variance is an error here: no engine could fold it. */
int32_t oct_build_batch_norm(const oct_builder *builder, const char *name, int32_t x, double epsilon);
/* NAME, and then the activation as NAME.act */
int32_t oct_build_batch_norm_act(const oct_builder *builder, const char *name, int32_t x, double epsilon,
                                 oct_activation activation);
int32_t oct_build_activation(const oct_builder *builder, const char *name, int32_t x, oct_activation activation);
int32_t oct_build_linear(const oct_builder *builder, const char *name, int32_t x, int64_t out, bool bias);
int32_t oct_build_layer_norm(const oct_builder *builder, const char *name, int32_t x, double epsilon);
int32_t oct_build_add(const oct_builder *builder, const char *name, int32_t x, int32_t y);
int32_t oct_build_slice(const oct_builder *builder, const char *name, int32_t x, int64_t start, int64_t length);
int32_t oct_build_reshape(const oct_builder *builder, const char *name, int32_t x, oct_shape shape);
/* query, key and value to [n, t, c]; scores by 1 / sqrt(c / heads) */
int32_t oct_build_attention(const oct_builder *builder, const char *name, int32_t query, int32_t key, int32_t value,
                            int heads);
/* The last axis of a value; 0 for OCT_NONE. */
int64_t oct_channels(const oct_graph *graph, int32_t value);

#endif
