/* SPDX-License-Identifier: Apache-2.0 */
/* MobileNetV2 as timm has it: a stem, a depthwise separable block, 16 or more inverted residuals, a head. */
#include <string.h>

#include "graph/blocks/depthwise_separable.h"
#include "graph/blocks/inverted_residual.h"
#include "graph/layouts.h"

#define EPSILON 1e-5
#define ACTIVATION OCT_ACTIVATION_RELU6

/* name, multipliers of channels and of blocks a stage; whether stem, head and the depth of the first and last stage are
 * fixed */
#define VARIANTS(X)                                                                                                    \
    X("mobilenetv2_035", 0.35, 1.0, false)                                                                             \
    X("mobilenetv2_050", 0.5, 1.0, false)                                                                              \
    X("mobilenetv2_075", 0.75, 1.0, false)                                                                             \
    X("mobilenetv2_100", 1.0, 1.0, false)                                                                              \
    X("mobilenetv2_110d", 1.1, 1.2, true)                                                                              \
    X("mobilenetv2_120d", 1.2, 1.4, true)                                                                              \
    X("mobilenetv2_140", 1.4, 1.0, false)

typedef struct mobilenet {
    const char *name;
    double width, depth;
    bool fixed_ends;
} mobilenet;
#define ROW(...) {__VA_ARGS__},
static const mobilenet variants[] = {VARIANTS(ROW)};
#undef ROW
#define NAME(name, ...) name,
static const char *const architectures[] = {VARIANTS(NAME) NULL};
#undef NAME

typedef struct stage {
    int blocks, stride; /* of the first block */
    int expansion, channels;
} stage;
static const stage stages[] = {
    {1, 1, 1, 16}, {2, 2, 6, 24}, {3, 2, 6, 32}, {4, 2, 6, 64}, {3, 1, 6, 96}, {3, 2, 6, 160}, {1, 1, 6, 320},
};
enum { STAGES = sizeof stages / sizeof stages[0] };

static const mobilenet *variant_of(const char *name) {
    for (size_t i = 0; architectures[i] != NULL; i++) {
        if (strcmp(architectures[i], name) == 0) return &variants[i];
    }
    oct_fail(OCTET_INVALID_ARGUMENT, "%s is no MobileNetV2", name);
    return NULL;
}

/* The nearest multiple of 8, at least 8, and never below nine tenths of what was asked. */
static int64_t scaled(int64_t channels, double width) {
    double wanted = (double)channels * width;
    int64_t rounded = (int64_t)(wanted + 4) / 8 * 8;
    if (rounded < 8) rounded = 8;
    return (double)rounded < 0.9 * wanted ? rounded + 8 : rounded;
}

static int64_t stage_blocks(const mobilenet *variant, int index) {
    bool end = index == 0 || index == STAGES - 1;
    if (variant->fixed_ends && end) return stages[index].blocks;
    double blocks = stages[index].blocks * variant->depth;
    int64_t whole = (int64_t)blocks;
    return (double)whole < blocks ? whole + 1 : whole;
}

static bool claims(const oct_document *config) {
    return oct_config_is_one_of(config, "architecture", architectures);
}

static octet_status describe(const oct_checkpoint *checkpoint, oct_model *model) {
    static const char *const no_arguments[] = {NULL};
    return oct_timm_describe(oct_checkpoint_config(checkpoint), "avg", no_arguments, model);
}

static int32_t build_body(const oct_builder *builder, const mobilenet *variant, int32_t x) {
    for (int i = 0; i < STAGES; i++) {
        int64_t blocks = stage_blocks(variant, i), out = scaled(stages[i].channels, variant->width);
        for (int64_t j = 0; j < blocks; j++) {
            const char *name = oct_name(builder, "blocks.%d.%d", i, (int)j);
            int stride = j == 0 ? stages[i].stride : 1;
            if (stages[i].expansion == 1) {
                const oct_depthwise_separable block = {out, 3, stride, ACTIVATION, EPSILON};
                x = oct_build_depthwise_separable(builder, name, x, &block);
            } else {
                int64_t expanded = oct_channels(builder->graph, x) * stages[i].expansion;
                const oct_inverted_residual block = {expanded, out, 3, stride, ACTIVATION, EPSILON};
                x = oct_build_inverted_residual(builder, name, x, &block);
            }
        }
    }
    return x;
}

static octet_status build(oct_checkpoint *checkpoint, const oct_model *model, int height, int width, oct_graph *graph) {
    OCT_TRY(oct_model_check_size(model, height, width));
    const mobilenet *variant = variant_of(model->architecture);
    if (variant == NULL) return oct_error_status();
    int64_t stem = variant->fixed_ends ? 32 : scaled(32, variant->width);
    int64_t head = variant->fixed_ends || variant->width < 1 ? 1280 : scaled(1280, variant->width);

    const oct_builder builder = {graph, checkpoint};
    oct_shape picture = {.rank = 4, .dims = {1, height, width, 3}};
    int32_t x = oct_graph_input(graph, "input", picture);
    const oct_convolution first = {3, stem, .kernel = 3, .stride = 2, .padding = 1};
    x = oct_build_convolution(&builder, "conv_stem", x, &first);
    x = oct_build_batch_norm_act(&builder, "bn1", x, EPSILON, ACTIVATION);
    x = build_body(&builder, variant, x);
    const oct_convolution last = {oct_channels(graph, x), head, .kernel = 1, .stride = 1};
    x = oct_build_convolution(&builder, "conv_head", x, &last);
    x = oct_build_batch_norm_act(&builder, "bn2", x, EPSILON, ACTIVATION);
    x = oct_graph_add_node(graph, OCT_OP_GLOBAL_POOL, "global_pool", &x, 1, NULL);
    x = oct_build_linear(&builder, "classifier", x, model->classes, true);
    OCT_TRY(oct_graph_output(graph, x, "logits"));
    return oct_checkpoint_all_used(checkpoint);
}

const oct_family oct_family_mobilenetv2 = {
    .name = "mobilenetv2",
    .layout = "timm",
    .claims = claims,
    .architectures = architectures,
    .describe = describe,
    .build = build,
};
