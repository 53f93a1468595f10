/* SPDX-License-Identifier: Apache-2.0 */
/* The plain vision transformer as timm has it: patches, a class token, learned positions, norms before, the class
 * token's last state classified. */
#include <string.h>

#include "graph/blocks/patch_embedding.h"
#include "graph/blocks/transformer_layer.h"
#include "graph/layouts.h"

#define EPSILON 1e-6
#define LAYERS 12
#define HEAD_SIZE 64

/* name, channels, patch and picture in pixels */
#define VARIANTS(X)                                                                                                    \
    X("vit_tiny_patch16_224", 192, 16, 224)                                                                            \
    X("vit_tiny_patch16_384", 192, 16, 384)                                                                            \
    X("vit_small_patch8_224", 384, 8, 224)                                                                             \
    X("vit_small_patch16_224", 384, 16, 224)                                                                           \
    X("vit_small_patch16_384", 384, 16, 384)                                                                           \
    X("vit_small_patch32_224", 384, 32, 224)                                                                           \
    X("vit_small_patch32_384", 384, 32, 384)                                                                           \
    X("vit_base_patch8_224", 768, 8, 224)                                                                              \
    X("vit_base_patch16_224", 768, 16, 224)                                                                            \
    X("vit_base_patch16_384", 768, 16, 384)                                                                            \
    X("vit_base_patch32_224", 768, 32, 224)                                                                            \
    X("vit_base_patch32_384", 768, 32, 384)

typedef struct transformer {
    const char *name;
    int64_t channels;
    int patch, size;
} transformer;
#define ROW(...) {__VA_ARGS__},
static const transformer variants[] = {VARIANTS(ROW)};
#undef ROW
#define NAME(name, ...) name,
static const char *const architectures[] = {VARIANTS(NAME) NULL};
#undef NAME

static const transformer *variant_of(const char *name) {
    for (size_t i = 0; architectures[i] != NULL; i++) {
        if (strcmp(architectures[i], name) == 0) return &variants[i];
    }
    oct_fail(OCTET_INVALID_ARGUMENT, "%s is no plain vision transformer", name);
    return NULL;
}

static bool claims(const oct_document *config) {
    return oct_config_is_one_of(config, "architecture", architectures);
}

/* model_args that only repeat what the variant is are fine; what would change the graph is refused by its line. */
static octet_status check_arguments(const oct_document *config) {
    const oct_node *arguments = oct_node_get(config->root, "model_args");
    if (arguments == NULL || arguments->kind != OCT_NODE_MAP) return OCTET_OK;
    OCT_TRY(oct_config_only_bool(config, arguments, "class_token", true));
    OCT_TRY(oct_config_only_bool(config, arguments, "no_embed_class", false));
    OCT_TRY(oct_config_only_bool(config, arguments, "qkv_bias", true));
    OCT_TRY(oct_config_only_string(config, arguments, "global_pool", "token"));
    const oct_node *registers = oct_node_get(arguments, "reg_tokens");
    int64_t count = 0;
    OCT_TRY(oct_node_int(config, arguments, "reg_tokens", false, 0, 1 << 20, &count));
    if (count == 0) return OCTET_OK;
    return oct_config_unsupported(config, registers, "reg_tokens: register tokens are not supported");
}

static octet_status describe(const oct_checkpoint *checkpoint, oct_model *model) {
    static const char *const arguments[] = {"img_size",    "class_token", "no_embed_class", "qkv_bias", "reg_tokens",
                                            "global_pool", NULL};
    const oct_document *config = oct_checkpoint_config(checkpoint);
    OCT_TRY(oct_timm_describe(config, "token", arguments, model));
    OCT_TRY(check_arguments(config));
    const transformer *variant = variant_of(model->architecture);
    if (variant == NULL) return oct_error_status();
    /* the positions are learned for one size: the name's, unless the model was made for another */
    model->height = model->width = variant->size;
    OCT_TRY(oct_config_size(config, oct_node_get(config->root, "model_args"), "img_size", variant->patch, 4096,
                            &model->height, &model->width));
    model->fixed_size = true;
    model->size_multiple = variant->patch;
    model->min_size = model->height < model->width ? model->height : model->width;
    model->max_size = model->height < model->width ? model->width : model->height;
    if (model->height % variant->patch == 0 && model->width % variant->patch == 0) return OCTET_OK;
    return oct_fail(OCTET_UNSUPPORTED, "%s: img_size: %d x %d are not multiples of the patch, %d pixels", config->path,
                    model->height, model->width, variant->patch);
}

static int32_t build_layer(const oct_builder *builder, const transformer *variant, int index, int32_t x) {
    const char *name = oct_name(builder, "blocks.%d", index);
    if (name == NULL) return OCT_NONE;
    const oct_transformer_layer layer = {
        .norm1 = oct_name(builder, "%s.norm1", name),
        .query = oct_name(builder, "%s.attn.query", name),
        .key = oct_name(builder, "%s.attn.key", name),
        .value = oct_name(builder, "%s.attn.value", name),
        .is_fused = true,
        .fused = oct_name(builder, "%s.attn.qkv", name),
        .attention = oct_name(builder, "%s.attn.attention", name),
        .projection = oct_name(builder, "%s.attn.proj", name),
        .sum1 = oct_name(builder, "%s.attn.residual", name),
        .norm2 = oct_name(builder, "%s.norm2", name),
        .first = oct_name(builder, "%s.mlp.fc1", name),
        .gelu = oct_name(builder, "%s.mlp.act", name),
        .second = oct_name(builder, "%s.mlp.fc2", name),
        .sum2 = name,
        .heads = (int)(variant->channels / HEAD_SIZE),
        .hidden = 4 * variant->channels,
        .qkv_bias = true,
        .epsilon = EPSILON,
    };
    return oct_build_transformer_layer(builder, x, &layer);
}

static octet_status build(oct_checkpoint *checkpoint, const oct_model *model, int height, int width, oct_graph *graph) {
    OCT_TRY(oct_model_check_size(model, height, width));
    const transformer *variant = variant_of(model->architecture);
    if (variant == NULL) return oct_error_status();
    int64_t channels = variant->channels;
    const oct_builder builder = {graph, checkpoint};
    oct_shape picture = {.rank = 4, .dims = {1, height, width, 3}};
    int32_t x = oct_graph_input(graph, "input", picture);
    x = oct_build_patch_embedding(&builder, "patch_embed.proj", "patch_embed", x, variant->patch, channels);
    if (x == OCT_NONE) return oct_error_status();

    const int64_t token[] = {1, 1, channels};
    const int64_t positions[] = {1, 1 + graph->values[x].shape.dims[1], channels};
    const int32_t parts[] = {oct_weight(graph, checkpoint, "cls_token", 3, token), x};
    x = oct_build_concat(&builder, "tokens", parts, 2);
    if (x == OCT_NONE) return oct_error_status();
    x = oct_build_add(&builder, "pos_drop", x, oct_weight(graph, checkpoint, "pos_embed", 3, positions));

    for (int i = 0; i < LAYERS; i++) x = build_layer(&builder, variant, i, x);
    x = oct_build_layer_norm(&builder, "norm", x, EPSILON);
    x = oct_build_slice(&builder, "class_token", x, 0, 1);
    x = oct_build_reshape(&builder, "fc_norm", x, (oct_shape){.rank = 2, .dims = {1, channels}});
    x = oct_build_linear(&builder, "head", x, model->classes, true);
    OCT_TRY(oct_graph_output(graph, x, "logits"));
    return oct_checkpoint_all_used(checkpoint);
}

const oct_family oct_family_vit = {
    .name = "vit",
    .layout = "timm",
    .claims = claims,
    .architectures = architectures,
    .describe = describe,
    .build = build,
};
