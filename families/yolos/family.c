/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOS as transformers has it (YolosForObjectDetection): a vision transformer with detection tokens behind the
 * patches, whose last states go through two small heads: classes (with no-object) and boxes. */
#include <string.h>

#include "base/alloc.h"
#include "graph/blocks/mlp_head.h"
#include "graph/blocks/patch_embedding.h"
#include "graph/blocks/position_embedding.h"
#include "graph/blocks/transformer_layer.h"
#include "graph/blocks/weights.h"
#include "graph/layouts.h"

#define HEAD_LAYERS 3
#define SIDE_MAX 4096 /* pixels of a built picture: 65,536 patches of 16 */

static const char *const architectures[] = {"yolos", NULL};

/* config.json; absent fields have transformers' defaults */
typedef struct yolos {
    int64_t channels, layers, heads, hidden, patch, tokens, classes;
    int height, width;
    bool qkv_bias, mid_positions;
    double epsilon;
} yolos;

static bool claims(const oct_document *config) {
    return oct_config_is_one_of(config, "model_type", architectures);
}

/* The first of `architectures` must be the detector: a bare YolosModel has no heads. */
static octet_status check_architecture(const oct_document *config) {
    const oct_node *list = oct_node_get(config->root, "architectures");
    if (list == NULL || list->kind != OCT_NODE_LIST || list->count == 0) return OCTET_OK;
    const oct_node *first = list->items[0];
    if (first->kind == OCT_NODE_STRING && strcmp(first->string, "YolosForObjectDetection") == 0) return OCTET_OK;
    return oct_config_unsupported(config, list, "architectures: only YolosForObjectDetection is supported, found %s",
                                  first->kind == OCT_NODE_STRING ? first->string : oct_node_kind_name(first->kind));
}

/* As many as id2label has, else num_labels, else transformers' two. */
static octet_status read_classes(const oct_document *config, yolos *settings) {
    const oct_node *labels = oct_node_get(config->root, "id2label");
    if (labels != NULL && labels->kind == OCT_NODE_MAP) {
        settings->classes = (int64_t)labels->count;
    } else {
        OCT_TRY(oct_node_int(config, config->root, "num_labels", false, 0, 1 << 24, &settings->classes));
        labels = oct_node_get(config->root, "num_labels");
    }
    if (settings->classes > 0) return OCTET_OK;
    return oct_config_unsupported(config, labels, "no classes: this detector could only find no object");
}

static octet_status read_settings(const oct_document *config, yolos *settings) {
    *settings = (yolos){.channels = 768,
                        .layers = 12,
                        .heads = 12,
                        .hidden = 3072,
                        .patch = 16,
                        .tokens = 100,
                        .classes = 2,
                        .height = 512,
                        .width = 864,
                        .qkv_bias = true,
                        .mid_positions = true,
                        .epsilon = 1e-12};
    const oct_node *root = config->root;
    OCT_TRY(check_architecture(config));
    OCT_TRY(oct_node_int(config, root, "hidden_size", false, 1, 1 << 16, &settings->channels));
    OCT_TRY(oct_node_int(config, root, "num_hidden_layers", false, 1, 1000, &settings->layers));
    OCT_TRY(oct_node_int(config, root, "num_attention_heads", false, 1, 1 << 16, &settings->heads));
    OCT_TRY(oct_node_int(config, root, "intermediate_size", false, 1, 1 << 20, &settings->hidden));
    OCT_TRY(oct_node_int(config, root, "num_detection_tokens", false, 1, 1 << 16, &settings->tokens));
    int patch[2] = {16, 16};
    OCT_TRY(oct_config_size(config, root, "patch_size", 1, 1024, &patch[0], &patch[1]));
    settings->patch = patch[0];
    OCT_TRY(oct_config_size(config, root, "image_size", 1, 1 << 14, &settings->height, &settings->width));
    OCT_TRY(oct_node_bool(config, root, "qkv_bias", false, &settings->qkv_bias));
    OCT_TRY(oct_node_bool(config, root, "use_mid_position_embeddings", false, &settings->mid_positions));
    OCT_TRY(oct_node_real(config, root, "layer_norm_eps", false, &settings->epsilon));
    OCT_TRY(oct_config_only_string(config, root, "hidden_act", "gelu"));
    OCT_TRY(read_classes(config, settings));

    int64_t colours = 3;
    OCT_TRY(oct_node_int(config, root, "num_channels", false, 1, 1 << 16, &colours));
    if (colours != 3) {
        return oct_config_unsupported(config, oct_node_get(root, "num_channels"),
                                      "num_channels: only 3 is supported, found %lld", (long long)colours);
    }
    if (settings->channels % settings->heads != 0) {
        return oct_node_fail(config, oct_node_get(root, "num_attention_heads"),
                             "num_attention_heads: %lld heads do not divide hidden_size, %lld",
                             (long long)settings->heads, (long long)settings->channels);
    }
    if (!(settings->epsilon >= 0 && settings->epsilon < 1)) {
        return oct_node_fail(config, oct_node_get(root, "layer_norm_eps"), "layer_norm_eps: expected 0 to 1, found %g",
                             settings->epsilon);
    }
    if (patch[0] != patch[1]) {
        return oct_config_unsupported(config, oct_node_get(root, "patch_size"),
                                      "patch_size: only square patches are supported, found %d x %d", patch[0],
                                      patch[1]);
    }
    /* a part of a patch at the right and below is dropped; transformers stores the positions between the layers for a
     * count that is then not rows times columns, and cannot run the model either */
    int64_t rows = settings->height / settings->patch, columns = settings->width / settings->patch;
    int64_t counted = (int64_t)settings->height * settings->width / (settings->patch * settings->patch);
    if (rows == 0 || columns == 0 || (settings->mid_positions && counted != rows * columns)) {
        return oct_config_unsupported(config, oct_node_get(root, "image_size"),
                                      "image_size: %d x %d does not give whole patches of %lld pixels",
                                      settings->height, settings->width, (long long)settings->patch);
    }
    return OCTET_OK;
}

static octet_status describe(const oct_checkpoint *checkpoint, oct_model *model) {
    yolos settings;
    OCT_TRY(read_settings(oct_checkpoint_config(checkpoint), &settings));
    *model = (oct_model){
        .task = OCT_TASK_DETECTION,
        .architecture = "yolos",
        .height = settings.height,
        .width = settings.width,
        .size_multiple = 1,
        .min_size = (int)settings.patch,
        .max_size = SIDE_MAX,
        .classes = (int)settings.classes,
        .tokens = (int)settings.tokens,
    };
    return OCTET_OK;
}

/* Positions stored for the checkpoint's own size, as a constant [1, tokens, channels] for height x width. */
static int32_t positions(const oct_builder *builder, const yolos *settings, const char *name, const float *stored,
                         int height, int width) {
    if (name == NULL) return OCT_NONE;
    const oct_position_grid grid = {1, settings->tokens, settings->height / settings->patch,
                                    settings->width / settings->patch, settings->channels};
    int64_t rows = height / settings->patch, columns = width / settings->patch;
    oct_shape shape = {.rank = 3, .dims = {1, grid.first + rows * columns + grid.last, grid.channels}};
    float *data;
    if (oct_position_resize(&grid, stored, rows, columns, &data) != OCTET_OK) return OCT_NONE;
    return oct_graph_constant(builder->graph, name, shape, data);
}

static int64_t stored_tokens(const yolos *settings) {
    return 1 + settings->height / settings->patch * (settings->width / settings->patch) + settings->tokens;
}

static int32_t build_embeddings(const oct_builder *builder, const yolos *settings, int height, int width) {
    oct_graph *graph = builder->graph;
    oct_checkpoint *checkpoint = builder->checkpoint;
    int64_t channels = settings->channels;
    oct_shape picture = {.rank = 4, .dims = {1, height, width, 3}};
    int32_t x = oct_graph_input(graph, "input", picture);
    x = oct_build_patch_embedding(builder, "vit.embeddings.patch_embeddings.projection",
                                  "vit.embeddings.patch_embeddings", x, (int)settings->patch, channels);
    if (x == OCT_NONE) return OCT_NONE;
    const int64_t first[] = {1, 1, channels}, last[] = {1, settings->tokens, channels};
    int32_t parts[] = {OCT_NONE, x, OCT_NONE};
    parts[0] = oct_weight(graph, checkpoint, "vit.embeddings.cls_token", 3, first);
    if (parts[0] == OCT_NONE) return OCT_NONE;
    parts[2] = oct_weight(graph, checkpoint, "vit.embeddings.detection_tokens", 3, last);
    x = oct_build_concat(builder, "vit.embeddings.tokens", parts, 3);
    if (x == OCT_NONE) return OCT_NONE;

    const char *name = "vit.embeddings.position_embeddings";
    const int64_t dims[] = {1, stored_tokens(settings), channels};
    float *stored;
    if (oct_weight_read(checkpoint, name, 3, dims, &stored) != OCTET_OK) return OCT_NONE;
    int32_t y = positions(builder, settings, name, stored, height, width);
    oct_free(stored);
    return oct_build_add(builder, "vit.embeddings", x, y);
}

static int32_t build_layer(const oct_builder *builder, const yolos *settings, int index, int32_t x) {
    const char *name = oct_name(builder, "vit.encoder.layer.%d", index);
    if (name == NULL) return OCT_NONE;
    const oct_transformer_layer layer = {
        .norm1 = oct_name(builder, "%s.layernorm_before", name),
        .query = oct_name(builder, "%s.attention.attention.query", name),
        .key = oct_name(builder, "%s.attention.attention.key", name),
        .value = oct_name(builder, "%s.attention.attention.value", name),
        .attention = oct_name(builder, "%s.attention.attention", name),
        .projection = oct_name(builder, "%s.attention.output.dense", name),
        .sum1 = oct_name(builder, "%s.attention.residual", name),
        .norm2 = oct_name(builder, "%s.layernorm_after", name),
        .first = oct_name(builder, "%s.intermediate.dense", name),
        .gelu = oct_name(builder, "%s.intermediate", name),
        .second = oct_name(builder, "%s.output.dense", name),
        .sum2 = oct_name(builder, "%s.output", name),
        .heads = (int)settings->heads,
        .hidden = settings->hidden,
        .qkv_bias = settings->qkv_bias,
        .epsilon = settings->epsilon,
    };
    return oct_build_transformer_layer(builder, x, &layer);
}

/* The layers; after each but the last its own positions are added, where the model has them. */
static int32_t build_encoder(const oct_builder *builder, const yolos *settings, int height, int width, int32_t x) {
    float *mid = NULL;
    if (settings->mid_positions) {
        /* the name of the hub's files, and the one since transformers 5 moved the parameter */
        static const char *const names[] = {"vit.encoder.mid_position_embeddings",
                                            "vit.encoder.interpolation.mid_position_embeddings"};
        const int64_t dims[] = {settings->layers - 1, 1, stored_tokens(settings), settings->channels};
        bool moved = oct_checkpoint_find(builder->checkpoint, names[0]) == NULL &&
                     oct_checkpoint_find(builder->checkpoint, names[1]) != NULL;
        if (oct_weight_read(builder->checkpoint, names[moved], 4, dims, &mid) != OCTET_OK) return OCT_NONE;
    }
    int64_t size = stored_tokens(settings) * settings->channels;
    for (int i = 0; i < settings->layers && x != OCT_NONE; i++) {
        x = build_layer(builder, settings, i, x);
        if (mid == NULL || i + 1 == settings->layers) continue;
        const char *name = oct_name(builder, "vit.encoder.mid_position_embeddings.%d", i);
        int32_t y = positions(builder, settings, name, mid + i * size, height, width);
        x = y == OCT_NONE ? OCT_NONE : oct_build_add(builder, oct_name(builder, "vit.encoder.layer.%d", i), x, y);
    }
    oct_free(mid);
    return x;
}

static octet_status build(oct_checkpoint *checkpoint, const oct_model *model, int height, int width, oct_graph *graph) {
    yolos settings;
    OCT_TRY(read_settings(oct_checkpoint_config(checkpoint), &settings));
    OCT_TRY(oct_model_check_size(model, height, width));
    const oct_builder builder = {graph, checkpoint};
    int32_t x = build_embeddings(&builder, &settings, height, width);
    x = build_encoder(&builder, &settings, height, width, x);
    x = oct_build_layer_norm(&builder, "vit.layernorm", x, settings.epsilon);
    if (x == OCT_NONE) return oct_error_status();
    int64_t total = graph->values[x].shape.dims[1];
    x = oct_build_slice(&builder, "vit.detection_tokens", x, total - settings.tokens, settings.tokens);
    int32_t classes = oct_build_mlp_head(&builder, "class_labels_classifier", x, HEAD_LAYERS, settings.classes + 1);
    OCT_TRY(oct_graph_output(graph, classes, "logits"));
    int32_t boxes = oct_build_mlp_head(&builder, "bbox_predictor", x, HEAD_LAYERS, 4);
    boxes = oct_build_activation(&builder, "bbox_predictor.sigmoid", boxes, OCT_ACTIVATION_SIGMOID);
    OCT_TRY(oct_graph_output(graph, boxes, "boxes"));
    return oct_checkpoint_all_used(checkpoint);
}

const oct_family oct_family_yolos = {
    .name = "yolos",
    .layout = "transformers",
    .processor = "Yolos",
    .claims = claims,
    .architectures = architectures,
    .describe = describe,
    .build = build,
};
