/* SPDX-License-Identifier: Apache-2.0 */
/* Two small networks for tests of quantization, their weights drawn with channels of very unlike sizes; their pictures;
 * and a calibration as the runtime does it, on the reference evaluation. */
#ifndef OCT_TESTS_QUANT_NETWORK_H
#define OCT_TESTS_QUANT_NETWORK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "graph/ops.h"
#include "quant/learn.h"
#include "quant/lower.h"

#define ASSERT_OK(expression)                                                                                          \
    do {                                                                                                               \
        if ((expression) != OCTET_OK) fail_msg("%s", oct_error_text());                                                \
    } while (0)

#define PICTURE 16 /* pixels a side */
#define NONE OCT_ACTIVATION_NONE
#define CLIP OCT_ACTIVATION_RELU6

/* ---- building */

/* Other weights for other numbers. */
static uint64_t network_number;

typedef struct network {
    oct_graph graph;
    uint64_t seed;
} network;

/* Numbers in [-size, size); those of every fifth channel of the last axis sixteen times as large. */
static inline int32_t drawn(network *n, const char *name, const char *what, oct_shape shape, float size) {
    char full[64];
    (void)snprintf(full, sizeof full, "%s.%s", name, what);
    const int64_t count = oct_shape_count(&shape), channels = shape.dims[shape.rank - 1];
    float *data = oct_calloc((size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i % channels;
        data[i] = size * oct_random_signed(&n->seed) * (channels > 4 && c % 5 == 2 ? 16 : 1);
    }
    return oct_graph_constant(&n->graph, full, shape, data);
}

static inline int64_t channels_of(const network *n, int32_t x) {
    const oct_shape *shape = &n->graph.values[x].shape;
    return shape->dims[shape->rank - 1];
}

static inline int32_t conv(network *n, const char *name, int32_t x, int64_t o, int64_t k, int stride, bool depthwise,
                           oct_activation activation, int32_t residual) {
    const int64_t depth = depthwise ? 1 : channels_of(n, x);
    const int pad = stride > 2 ? 0 : (int)k / 2;
    const oct_attributes attributes = {.stride_h = stride,
                                       .stride_w = stride,
                                       .pad_top = pad,
                                       .pad_left = pad,
                                       .pad_bottom = pad,
                                       .pad_right = pad,
                                       .groups = depthwise ? (int)o : 1,
                                       .activation = activation,
                                       .has_bias = true,
                                       .has_residual = residual != OCT_NONE};
    const int32_t inputs[] = {
        x, drawn(n, name, "weight", (oct_shape){4, {o, k, k, depth}}, 1 / sqrtf((float)(k * k * depth))),
        drawn(n, name, "bias", (oct_shape){1, {o}}, 0.3f), residual};
    return oct_graph_add_node(&n->graph, OCT_OP_CONV2D, name, inputs, residual != OCT_NONE ? 4 : 3, &attributes);
}

static inline int32_t linear(network *n, const char *name, int32_t x, int64_t m, oct_activation activation,
                             int32_t residual) {
    const int64_t k = channels_of(n, x);
    const oct_attributes attributes = {
        .activation = activation, .has_bias = true, .has_residual = residual != OCT_NONE};
    const int32_t inputs[] = {x, drawn(n, name, "weight", (oct_shape){2, {m, k}}, 1 / sqrtf((float)k)),
                              drawn(n, name, "bias", (oct_shape){1, {m}}, 0.3f), residual};
    return oct_graph_add_node(&n->graph, OCT_OP_LINEAR, name, inputs, residual != OCT_NONE ? 4 : 3, &attributes);
}

static inline int32_t norm(network *n, const char *name, int32_t x) {
    const oct_attributes attributes = {.epsilon = 1e-6};
    const oct_shape shape = {1, {channels_of(n, x)}};
    const int32_t inputs[] = {x, drawn(n, name, "gamma", shape, 1), drawn(n, name, "beta", shape, 0.2f)};
    return oct_graph_add_node(&n->graph, OCT_OP_LAYER_NORM, name, inputs, 3, &attributes);
}

static inline void finish(network *n, int32_t x) {
    ASSERT_OK(oct_graph_output(&n->graph, x, "logits"));
    ASSERT_OK(oct_graph_check(&n->graph));
}

/* a 3x3, ReLU6 -> b depthwise, ReLU6 -> c 1x1 -> d 1x1, ReLU6 -> e depthwise, ReLU6 -> f 1x1, + c -> pool -> g */
static inline void build_convolutions(network *n) {
    *n = (network){.seed = 11 + 100 * network_number};
    int32_t x = oct_graph_input(&n->graph, "input", (oct_shape){4, {1, PICTURE, PICTURE, 3}});
    x = conv(n, "a", x, 20, 3, 2, false, CLIP, OCT_NONE);
    x = conv(n, "b", x, 20, 3, 1, true, CLIP, OCT_NONE);
    const int32_t c = conv(n, "c", x, 10, 1, 1, false, NONE, OCT_NONE);
    x = conv(n, "d", c, 40, 1, 1, false, CLIP, OCT_NONE);
    x = conv(n, "e", x, 40, 3, 1, true, CLIP, OCT_NONE);
    x = conv(n, "f", x, 10, 1, 1, false, NONE, c);
    x = conv(n, "h", x, 16, 1, 1, false, NONE, OCT_NONE);
    x = oct_graph_add_node(&n->graph, OCT_OP_GLOBAL_POOL, "pool", &x, 1, NULL);
    finish(n, linear(n, "g", x, 12, NONE, OCT_NONE));
}

/* patches + positions -> before -> q, k, v -> attention -> proj + residual -> after -> fc1, GELU -> fc2 + residual ->
 * head */
static inline void build_transformer(network *n) {
    *n = (network){.seed = 5 + 100 * network_number};
    int32_t x = oct_graph_input(&n->graph, "input", (oct_shape){4, {1, PICTURE, PICTURE, 3}});
    x = conv(n, "patches", x, 24, 4, 4, false, NONE, OCT_NONE);
    const oct_attributes tokens = {.shape = {3, {1, 16, 24}}};
    x = oct_graph_add_node(&n->graph, OCT_OP_RESHAPE, "tokens", &x, 1, &tokens);
    const int32_t sum[] = {x, drawn(n, "embedding", "positions", (oct_shape){3, {1, 16, 24}}, 0.5f)};
    const int32_t wide = oct_graph_add_node(&n->graph, OCT_OP_ADD, "embedding", sum, 2, NULL);
    x = norm(n, "before", wide);
    const int32_t qkv[] = {linear(n, "q", x, 24, NONE, OCT_NONE), linear(n, "k", x, 24, NONE, OCT_NONE),
                           linear(n, "v", x, 24, NONE, OCT_NONE)};
    const oct_attributes heads = {.heads = 4, .scale = 0.05};
    x = oct_graph_add_node(&n->graph, OCT_OP_ATTENTION, "attention", qkv, 3, &heads);
    const int32_t middle = linear(n, "proj", x, 24, NONE, wide);
    x = linear(n, "fc1", norm(n, "after", middle), 48, OCT_ACTIVATION_GELU, OCT_NONE);
    finish(n, linear(n, "head", linear(n, "fc2", x, 24, NONE, middle), 12, NONE, OCT_NONE));
}

typedef void (*builder)(network *n);

/* ---- running */

static inline void draw_picture(uint64_t number, float *pixels) {
    uint64_t seed = number + 100;
    for (size_t i = 0; i < (size_t)PICTURE * PICTURE * 3; i++) pixels[i] = 2 * oct_random_signed(&seed);
}

/* The logits of picture `number`; `tap` may be NULL. */
static inline void run(const oct_graph *graph, uint64_t number, float logits[12], oct_graph_tap tap, void *user) {
    static float pixels[PICTURE * PICTURE * 3];
    oct_array output;
    draw_picture(number, pixels);
    ASSERT_OK(oct_graph_evaluate(graph, pixels, &output, 1, tap, user));
    const size_t count = (size_t)oct_shape_count(&output.shape);
    memcpy(logits, output.data + (count - 12), 12 * sizeof(float));
    oct_free(output.data);
}

/* ---- calibrating */

typedef struct seeing {
    oct_quant_watch_list *list;
    const oct_graph *graph; /* as it was */
    oct_histogram **histograms;
    oct_channels *channels;
} seeing;

static inline void see(void *user, const oct_graph_node *node, const oct_array *output) {
    seeing *s = user;
    const char *name = s->graph->values[node->output].name;
    for (size_t i = 0; i < s->list->watch_count; i++) {
        const oct_quant_watch *watch = &s->list->watches[i];
        if (strcmp(watch->of, name) != 0) continue;
        const size_t count = (size_t)oct_shape_count(&output->shape);
        float *own = oct_alloc(count * sizeof *own);
        for (size_t j = 0; j < count; j++)
            own[j] = output->data[j] * (watch->factors != NULL ? watch->factors[j % watch->channels] : 1.0f);
        if (watch->histogram) oct_histogram_add(s->histograms[i], own, count);
        if (watch->channel_ranges) oct_channels_add(&s->channels[i], own, count / watch->channels, watch->channels);
        oct_free(own);
        if (watch->rows) ASSERT_OK(oct_quant_see(s->list, i, output->data, &output->shape));
    }
}

static inline void one_pass(const oct_graph *graph, oct_quant_watch_list *list, uint64_t pictures,
                            oct_scale_draft *draft) {
    seeing s = {.list = list, .graph = graph};
    oct_quant_seen *seen = oct_calloc(list->watch_count + 1, sizeof *seen);
    s.histograms = oct_calloc(list->watch_count + 1, sizeof(oct_histogram *));
    s.channels = oct_calloc(list->watch_count + 1, sizeof *s.channels);
    for (size_t i = 0; i < list->watch_count; i++) {
        if (list->watches[i].histogram) ASSERT_OK(oct_histogram_new(&s.histograms[i]));
        if (list->watches[i].channel_ranges) ASSERT_OK(oct_channels_new(&s.channels[i], list->watches[i].channels));
        seen[i] = (oct_quant_seen){s.histograms[i], &s.channels[i]};
    }
    for (uint64_t p = 0; p < pictures; p++) {
        float logits[12], pixels[PICTURE * PICTURE * 3];
        draw_picture(p, pixels);
        /* the picture itself may be watched, too */
        const oct_graph_node picture = {.output = graph->input};
        const oct_array array = {graph->values[graph->input].shape, pixels};
        see(&s, &picture, &array);
        run(graph, p, logits, see, &s);
    }
    ASSERT_OK(oct_quant_learn(list, seen, draft));
    for (size_t i = 0; i < list->watch_count; i++) {
        oct_histogram_free(s.histograms[i]);
        oct_channels_free(&s.channels[i]);
    }
    oct_free(s.channels);
    oct_free(s.histograms);
    oct_free(seen);
}

/* All passes; how many they were. */
static inline int calibrate(const oct_recipe *recipe, builder build, uint64_t pictures, oct_scale_draft *draft) {
    int passes = 0;
    for (;;) {
        network plain, adjusted;
        oct_decisions decisions;
        oct_quant_watch_list list;
        build(&plain);
        build(&adjusted);
        ASSERT_OK(oct_recipe_apply(recipe, &adjusted.graph, &decisions));
        ASSERT_OK(oct_quant_needs(recipe, &adjusted.graph, &decisions, &draft->file, &list));
        const bool done = list.pass == OCT_PASS_NONE;
        assert_int_equal(done, list.passes == 0);
        if (!done) one_pass(&plain.graph, &list, pictures, draft);
        oct_quant_watch_list_free(&list);
        oct_decisions_free(&decisions);
        oct_graph_free(&adjusted.graph);
        oct_graph_free(&plain.graph);
        if (done) return passes;
        passes++;
    }
}

static inline void parse(oct_recipe *recipe, const char *base, const char *rules) {
    char text[2048];
    (void)snprintf(text, sizeof text, "recipe: r\nbase: %s\nrules:\n%s", base, rules);
    ASSERT_OK(oct_recipe_parse(recipe, "r.yaml", text, strlen(text)));
}

#endif
