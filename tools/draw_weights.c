/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a checkpoint of a supported architecture whose weights are drawn by a formula from each tensor's name and shape
 * (reference/drawn_weights.md, rule 1), so that tests need no file of weights. The same bytes on every machine.
 *
 *     draw_weights ARCHITECTURE DIRECTORY [options]
 *
 *     ARCHITECTURE   mobilenetv2_{035,050,075,100,110d,120d,140}; vit_{tiny,small,base}_patch{16,32}_{224,384},
 *                    vit_base_patch8_224; yolos_{tiny,small,base}
 *     --height H --width W   input size (ViT, YOLOS: whole patches count)
 *     --classes N            labels; without no-object
 *     --dtype F32|F16|BF16   how the weights are stored (the drawn value rounded to nearest even)
 *     --seed N               other weights of the same kind; 0, the default, is the rule itself
 *     --prefix TEXT          put before each name ("module.")
 *     --hub-names            YOLOS: mid position embeddings under the name the hub's files have
 *                            (vit.encoder.mid_position_embeddings), their values as under transformers' own name
 *     YOLOS: --hidden N --layers N --heads N --tokens N --mlp N --mid --no-mid --no-qkv-bias
 *
 * Written: config.json, model.safetensors, and for YOLOS preprocessor_config.json. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "format/format.h"

#define GOLDEN_GAMMA 0x9e3779b97f4a7c15u /* splitmix64's step */
#define MAX_PIXELS 16384
#define MID_POSITIONS "vit.encoder.interpolation.mid_position_embeddings"
#define MID_POSITIONS_HUB "vit.encoder.mid_position_embeddings"

typedef struct options {
    const char *architecture, *directory, *prefix;
    int64_t seed, height, width, classes; /* -1: the architecture's own */
    int64_t hidden, layers, heads, tokens, mlp;
    int mid; /* -1: the architecture's own */
    bool qkv_bias, hub_names;
    oct_dtype dtype;
} options;

typedef struct drawing {
    const options *options;
    oct_arena arena;
    oct_tensor_source *tensors;
    size_t count, capacity;
    oct_text config, preprocessor;
} drawing;

/* ---- the rule ---- */

typedef enum draw_kind { DRAW_VARIANCE, DRAW_SMALL, DRAW_NORM, DRAW_PRODUCT, DRAW_HALF } draw_kind;

static draw_kind kind_of(const char *name, int rank) {
    const char *dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
    if (strcmp(last, "running_var") == 0) return DRAW_VARIANCE;
    if (strcmp(last, "running_mean") == 0 || strcmp(last, "bias") == 0) return DRAW_SMALL;
    if (strcmp(last, "weight") == 0) return rank == 1 ? DRAW_NORM : DRAW_PRODUCT;
    return DRAW_HALF;
}

/* sqrt(3 / fan_in) as float, fan_in the product of all dimensions but the first */
static float product_scale(const oct_tensor_source *tensor) {
    double fan_in = 1;
    for (int i = 1; i < tensor->rank; i++) fan_in *= (double)tensor->shape[i];
    return (float)sqrt(3.0 / fan_in);
}

static float drawn_value(draw_kind kind, double scale, int64_t k) {
    int64_t n = k - (1 << 23);
    switch (kind) {
    case DRAW_VARIANCE:
        return (float)((double)(k + (1 << 23)) * 0x1p-24);
    case DRAW_SMALL:
        return (float)((double)n * 0x1p-27);
    case DRAW_NORM:
        return (float)((double)(n + (1 << 26)) * 0x1p-26);
    case DRAW_PRODUCT:
        return (float)(scale * (double)n * 0x1p-23);
    case DRAW_HALF:
        break;
    }
    return (float)((double)n * 0x1p-24);
}

static void store(oct_dtype dtype, float value, uint8_t *bytes) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == OCT_DTYPE_F16) bits = oct_fp16_encode(value);
    if (dtype == OCT_DTYPE_BF16) bits = oct_bf16_encode(value);
    for (unsigned i = 0; i < oct_dtype_size(dtype); i++) bytes[i] = (uint8_t)(bits >> (8 * i));
}

static octet_status produce(const oct_tensor_source *tensor, uint64_t first, size_t count, void *bytes) {
    const options *o = tensor->user;
    const char *name = tensor->name + strlen(o->prefix);
    if (strcmp(name, MID_POSITIONS_HUB) == 0) name = MID_POSITIONS;
    uint64_t state = (oct_fnv1a_text(name) ^ (uint64_t)o->seed * GOLDEN_GAMMA) + first * GOLDEN_GAMMA;
    draw_kind kind = kind_of(name, tensor->rank);
    double scale = kind == DRAW_PRODUCT ? (double)product_scale(tensor) : 0;
    uint8_t *out = bytes;
    for (size_t i = 0; i < count; i++, out += oct_dtype_size(tensor->dtype))
        store(tensor->dtype, drawn_value(kind, scale, (int64_t)(oct_random_next(&state) >> 40)), out);
    return OCTET_OK;
}

/* ---- lists of tensors ---- */

/* A tensor; only the first `rank` dimensions count. */
static octet_status add(drawing *d, const char *name, int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
    if (!oct_grow((void **)&d->tensors, sizeof *d->tensors, d->count + 1, &d->capacity)) return oct_fail_memory();
    oct_tensor_source *tensor = &d->tensors[d->count];
    *tensor = (oct_tensor_source){.dtype = d->options->dtype, .rank = rank, .shape = {d0, d1, d2, d3}};
    tensor->name = oct_arena_sprintf(&d->arena, "%s%s", d->options->prefix, name);
    tensor->produce = produce;
    tensor->user = (void *)d->options;
    if (tensor->name == NULL) return oct_fail_memory();
    d->count++;
    return OCTET_OK;
}

static octet_status add_named(drawing *d, const char *module, const char *leaf, int rank, int64_t d0, int64_t d1,
                              int64_t d2, int64_t d3) {
    const char *name = oct_arena_sprintf(&d->arena, "%s.%s", module, leaf);
    return name != NULL ? add(d, name, rank, d0, d1, d2, d3) : oct_fail_memory();
}

static octet_status add_linear(drawing *d, const char *module, int64_t out, int64_t in, bool bias) {
    OCT_TRY(add_named(d, module, "weight", 2, out, in, 0, 0));
    return bias ? add_named(d, module, "bias", 1, out, 0, 0, 0) : OCTET_OK;
}

static octet_status add_norm(drawing *d, const char *module, int64_t channels) {
    OCT_TRY(add_named(d, module, "weight", 1, channels, 0, 0, 0));
    return add_named(d, module, "bias", 1, channels, 0, 0, 0);
}

static octet_status add_conv_norm(drawing *d, const char *module, const char *conv, const char *norm, int64_t out,
                                  int64_t in, int64_t kernel) {
    const char *dot = module[0] != '\0' ? "." : "";
    const char *convolution = oct_arena_sprintf(&d->arena, "%s%s%s", module, dot, conv);
    const char *batch_norm = oct_arena_sprintf(&d->arena, "%s%s%s", module, dot, norm);
    if (convolution == NULL || batch_norm == NULL) return oct_fail_memory();
    OCT_TRY(add_named(d, convolution, "weight", 4, out, in, kernel, kernel));
    OCT_TRY(add_norm(d, batch_norm, out));
    OCT_TRY(add_named(d, batch_norm, "running_mean", 1, out, 0, 0, 0));
    return add_named(d, batch_norm, "running_var", 1, out, 0, 0, 0);
}

static int64_t own(int64_t given, int64_t otherwise) {
    return given >= 0 ? given : otherwise;
}

static void timm_config(drawing *d, int64_t features, const char *pool, bool fixed, double crop, double deviation,
                        int64_t height, int64_t width, const char *first, const char *classifier) {
    char number[32];
    int64_t classes = own(d->options->classes, 1000);
    oct_text_printf(&d->config, "{\n \"architecture\": \"%s\",\n \"num_classes\": %" PRId64 ",\n",
                    d->options->architecture, classes);
    oct_text_printf(&d->config, " \"num_features\": %" PRId64 ",\n \"global_pool\": \"%s\",\n \"pretrained_cfg\": {\n",
                    features, pool);
    oct_text_printf(&d->config, "  \"input_size\": [3, %" PRId64 ", %" PRId64 "],\n  \"fixed_input_size\": %s,\n",
                    height, width, fixed ? "true" : "false");
    oct_text_printf(&d->config,
                    "  \"interpolation\": \"bicubic\",\n  \"crop_pct\": %s,\n  \"crop_mode\": \"center\",\n",
                    oct_format_double(crop, number));
    oct_text_puts(&d->config, deviation == 0.5
                                  ? "  \"mean\": [0.5, 0.5, 0.5],\n  \"std\": [0.5, 0.5, 0.5],\n"
                                  : "  \"mean\": [0.485, 0.456, 0.406],\n  \"std\": [0.229, 0.224, 0.225],\n");
    oct_text_printf(&d->config,
                    "  \"num_classes\": %" PRId64 ",\n  \"first_conv\": \"%s\",\n  \"classifier\": \"%s\"\n }\n}\n",
                    classes, first, classifier);
}

/* ---- MobileNetV2 as timm builds it ---- */

/* channels * percent / 100 rounded to a multiple of 8, never more than a tenth down */
static int64_t scaled(int64_t channels, int64_t percent) {
    int64_t rounded = (channels * percent + 400) / 800 * 8;
    if (rounded < 8) rounded = 8;
    return rounded * 1000 < 9 * channels * percent ? rounded + 8 : rounded;
}

static octet_status mobilenetv2_block(drawing *d, int stage, int block, int64_t in, int64_t out) {
    const char *module = oct_arena_sprintf(&d->arena, "blocks.%d.%d", stage, block);
    if (module == NULL) return oct_fail_memory();
    if (stage == 0) { /* no expansion */
        OCT_TRY(add_conv_norm(d, module, "conv_dw", "bn1", in, 1, 3));
        return add_conv_norm(d, module, "conv_pw", "bn2", out, in, 1);
    }
    OCT_TRY(add_conv_norm(d, module, "conv_pw", "bn1", 6 * in, in, 1));
    OCT_TRY(add_conv_norm(d, module, "conv_dw", "bn2", 6 * in, 1, 3));
    return add_conv_norm(d, module, "conv_pwl", "bn3", out, 6 * in, 1);
}

static octet_status mobilenetv2(drawing *d, int64_t width, int64_t depth, bool fixed_ends) {
    static const struct {
        int channels, repeats;
    } stages[7] = {{16, 1}, {24, 2}, {32, 3}, {64, 4}, {96, 3}, {160, 3}, {320, 1}};
    int64_t in = fixed_ends ? 32 : scaled(32, width), head = fixed_ends || width <= 100 ? 1280 : scaled(1280, width);
    OCT_TRY(add_conv_norm(d, "", "conv_stem", "bn1", in, 3, 3));
    for (int s = 0; s < 7; s++) {
        int64_t out = scaled(stages[s].channels, width), repeats = stages[s].repeats;
        if (!fixed_ends || (s > 0 && s < 6)) repeats = (repeats * depth + 99) / 100;
        for (int b = 0; b < repeats; b++) OCT_TRY(mobilenetv2_block(d, s, b, b == 0 ? in : out, out));
        in = out;
    }
    OCT_TRY(add_conv_norm(d, "", "conv_head", "bn2", head, in, 1));
    timm_config(d, head, "avg", false, 0.875, 0.225, own(d->options->height, 224), own(d->options->width, 224),
                "conv_stem", "classifier");
    return add_linear(d, "classifier", own(d->options->classes, 1000), head, true);
}

/* ---- ViT as timm builds it ---- */

static octet_status vit_block(drawing *d, int block, int64_t hidden) {
    static const struct {
        const char *leaf;
        int out, in; /* in hidden; in 0: a norm */
    } parts[] = {{"norm1", 1, 0}, {"attn.qkv", 3, 1}, {"attn.proj", 1, 1},
                 {"norm2", 1, 0}, {"mlp.fc1", 4, 1},  {"mlp.fc2", 1, 4}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *module = oct_arena_sprintf(&d->arena, "blocks.%d.%s", block, parts[i].leaf);
        if (module == NULL) return oct_fail_memory();
        if (parts[i].in == 0)
            OCT_TRY(add_norm(d, module, hidden));
        else
            OCT_TRY(add_linear(d, module, parts[i].out * hidden, parts[i].in * hidden, true));
    }
    return OCTET_OK;
}

static octet_status vit(drawing *d, int64_t hidden, int64_t patch, int64_t size) {
    int64_t height = own(d->options->height, size), width = own(d->options->width, size);
    OCT_TRY(add(d, "cls_token", 3, 1, 1, hidden, 0));
    OCT_TRY(add(d, "pos_embed", 3, 1, 1 + (height / patch) * (width / patch), hidden, 0));
    OCT_TRY(add(d, "patch_embed.proj.weight", 4, hidden, 3, patch, patch));
    OCT_TRY(add(d, "patch_embed.proj.bias", 1, hidden, 0, 0, 0));
    for (int b = 0; b < 12; b++) OCT_TRY(vit_block(d, b, hidden));
    OCT_TRY(add_norm(d, "norm", hidden));
    timm_config(d, hidden, "token", true, size == 384 ? 1.0 : 0.9, 0.5, height, width, "patch_embed.proj", "head");
    return add_linear(d, "head", own(d->options->classes, 1000), hidden, true);
}

/* ---- YOLOS as transformers builds it ---- */

typedef struct yolos_size {
    int64_t hidden, heads, layers, mlp, height, width, tokens, classes;
    bool mid;
} yolos_size;

static octet_status yolos_layer(drawing *d, int layer, const yolos_size *size) {
    const struct {
        const char *leaf;
        int64_t out, in; /* in 0: a norm */
        bool bias;
    } parts[] = {{"attention.attention.query", size->hidden, size->hidden, d->options->qkv_bias},
                 {"attention.attention.key", size->hidden, size->hidden, d->options->qkv_bias},
                 {"attention.attention.value", size->hidden, size->hidden, d->options->qkv_bias},
                 {"attention.output.dense", size->hidden, size->hidden, true},
                 {"intermediate.dense", size->mlp, size->hidden, true},
                 {"output.dense", size->hidden, size->mlp, true},
                 {"layernorm_before", size->hidden, 0, true},
                 {"layernorm_after", size->hidden, 0, true}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *module = oct_arena_sprintf(&d->arena, "vit.encoder.layer.%d.%s", layer, parts[i].leaf);
        if (module == NULL) return oct_fail_memory();
        if (parts[i].in == 0)
            OCT_TRY(add_norm(d, module, parts[i].out));
        else
            OCT_TRY(add_linear(d, module, parts[i].out, parts[i].in, parts[i].bias));
    }
    return OCTET_OK;
}

static octet_status yolos_head(drawing *d, const char *head, int64_t hidden, int64_t out) {
    for (int i = 0; i < 3; i++) {
        const char *module = oct_arena_sprintf(&d->arena, "%s.layers.%d", head, i);
        if (module == NULL) return oct_fail_memory();
        OCT_TRY(add_linear(d, module, i < 2 ? hidden : out, hidden, true));
    }
    return OCTET_OK;
}

static void yolos_config(drawing *d, const yolos_size *size) {
    oct_text *text = &d->config;
    oct_text_puts(text, "{\n \"architectures\": [\"YolosForObjectDetection\"],\n \"model_type\": \"yolos\",\n");
    oct_text_printf(text, " \"hidden_size\": %" PRId64 ",\n \"num_hidden_layers\": %" PRId64 ",\n", size->hidden,
                    size->layers);
    oct_text_printf(text, " \"num_attention_heads\": %" PRId64 ",\n \"intermediate_size\": %" PRId64 ",\n", size->heads,
                    size->mlp);
    oct_text_printf(
        text, " \"hidden_act\": \"gelu\",\n \"layer_norm_eps\": 1e-12,\n \"image_size\": [%" PRId64 ", %" PRId64 "],\n",
        size->height, size->width);
    oct_text_printf(text, " \"patch_size\": 16,\n \"num_channels\": 3,\n \"qkv_bias\": %s,\n",
                    d->options->qkv_bias ? "true" : "false");
    oct_text_printf(text, " \"num_detection_tokens\": %" PRId64 ",\n \"use_mid_position_embeddings\": %s,\n",
                    size->tokens, size->mid ? "true" : "false");
    oct_text_puts(text, " \"hidden_dropout_prob\": 0.0,\n \"attention_probs_dropout_prob\": 0.0,\n \"id2label\": {");
    for (int64_t i = 0; i < size->classes; i++)
        oct_text_printf(text, "%s\"%" PRId64 "\": \"class %" PRId64 "\"", i > 0 ? ", " : "", i, i);
    oct_text_puts(text, "},\n \"label2id\": {");
    for (int64_t i = 0; i < size->classes; i++)
        oct_text_printf(text, "%s\"class %" PRId64 "\": %" PRId64, i > 0 ? ", " : "", i, i);
    oct_text_puts(text, "}\n}\n");

    text = &d->preprocessor;
    oct_text_puts(text, "{\n \"image_processor_type\": \"YolosImageProcessor\",\n \"do_resize\": true,\n");
    if (d->options->height >= 0 || d->options->width >= 0)
        oct_text_printf(text, " \"size\": {\"height\": %" PRId64 ", \"width\": %" PRId64 "},\n", size->height,
                        size->width);
    else
        oct_text_printf(text, " \"size\": {\"shortest_edge\": %" PRId64 ", \"longest_edge\": 1333},\n", size->height);
    oct_text_puts(text, " \"resample\": 2,\n \"do_rescale\": true,\n \"rescale_factor\": 0.00392156862745098,\n"
                        " \"do_normalize\": true,\n \"image_mean\": [0.485, 0.456, 0.406],\n"
                        " \"image_std\": [0.229, 0.224, 0.225],\n \"do_pad\": false\n}\n");
}

static octet_status yolos(drawing *d, yolos_size size) {
    const options *o = d->options;
    size.hidden = own(o->hidden, size.hidden);
    size.heads = own(o->heads, size.heads);
    size.layers = own(o->layers, 12);
    size.mlp = own(o->mlp, 4 * size.hidden);
    size.height = own(o->height, size.height);
    size.width = own(o->width, size.width);
    size.tokens = own(o->tokens, 100);
    size.classes = own(o->classes, 91);
    if (o->mid >= 0) size.mid = o->mid != 0;
    if (size.hidden % size.heads != 0)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%" PRId64 " heads do not divide a width of %" PRId64, size.heads,
                        size.hidden);

    int64_t positions = (size.height / 16) * (size.width / 16) + 1 + size.tokens;
    OCT_TRY(add(d, "vit.embeddings.cls_token", 3, 1, 1, size.hidden, 0));
    OCT_TRY(add(d, "vit.embeddings.detection_tokens", 3, 1, size.tokens, size.hidden, 0));
    OCT_TRY(add(d, "vit.embeddings.position_embeddings", 3, 1, positions, size.hidden, 0));
    OCT_TRY(add(d, "vit.embeddings.patch_embeddings.projection.weight", 4, size.hidden, 3, 16, 16));
    OCT_TRY(add(d, "vit.embeddings.patch_embeddings.projection.bias", 1, size.hidden, 0, 0, 0));
    for (int i = 0; i < size.layers; i++) OCT_TRY(yolos_layer(d, i, &size));
    if (size.mid && size.layers > 1) { /* transformers counts these by area, whole patches or not */
        int64_t mid_positions = size.height * size.width / 256 + 1 + size.tokens;
        OCT_TRY(add(d, o->hub_names ? MID_POSITIONS_HUB : MID_POSITIONS, 4, size.layers - 1, 1, mid_positions,
                    size.hidden));
    }
    OCT_TRY(add_norm(d, "vit.layernorm", size.hidden));
    OCT_TRY(yolos_head(d, "class_labels_classifier", size.hidden, size.classes + 1));
    OCT_TRY(yolos_head(d, "bbox_predictor", size.hidden, 4));
    yolos_config(d, &size);
    return OCTET_OK;
}

/* ---- the program ---- */

static octet_status build(drawing *d) {
    static const struct {
        const char *name;
        int width, depth;
        bool fixed_ends;
    } mobilenets[] = {{"mobilenetv2_035", 35, 100, false},  {"mobilenetv2_050", 50, 100, false},
                      {"mobilenetv2_075", 75, 100, false},  {"mobilenetv2_100", 100, 100, false},
                      {"mobilenetv2_110d", 110, 120, true}, {"mobilenetv2_120d", 120, 140, true},
                      {"mobilenetv2_140", 140, 100, false}};
    static const struct {
        const char *name;
        int hidden, patch, size;
    } vits[] = {{"vit_tiny_patch16_224", 192, 16, 224},  {"vit_tiny_patch16_384", 192, 16, 384},
                {"vit_small_patch16_224", 384, 16, 224}, {"vit_small_patch16_384", 384, 16, 384},
                {"vit_small_patch32_224", 384, 32, 224}, {"vit_small_patch32_384", 384, 32, 384},
                {"vit_base_patch16_224", 768, 16, 224},  {"vit_base_patch16_384", 768, 16, 384},
                {"vit_base_patch32_224", 768, 32, 224},  {"vit_base_patch32_384", 768, 32, 384},
                {"vit_base_patch8_224", 768, 8, 224}};
    static const struct {
        const char *name;
        yolos_size size;
    } detectors[] = {{"yolos_tiny", {.hidden = 192, .heads = 3, .height = 800, .width = 1333, .mid = false}},
                     {"yolos_small", {.hidden = 384, .heads = 6, .height = 512, .width = 864, .mid = true}},
                     {"yolos_base", {.hidden = 768, .heads = 12, .height = 800, .width = 1344, .mid = true}}};
    const char *name = d->options->architecture;
    for (size_t i = 0; i < sizeof mobilenets / sizeof *mobilenets; i++)
        if (strcmp(name, mobilenets[i].name) == 0)
            return mobilenetv2(d, mobilenets[i].width, mobilenets[i].depth, mobilenets[i].fixed_ends);
    for (size_t i = 0; i < sizeof vits / sizeof *vits; i++)
        if (strcmp(name, vits[i].name) == 0) return vit(d, vits[i].hidden, vits[i].patch, vits[i].size);
    for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++)
        if (strcmp(name, detectors[i].name) == 0) return yolos(d, detectors[i].size);
    oct_fail(OCTET_UNSUPPORTED, "architecture %s is not known", name);
    return oct_hint("one of mobilenetv2_*, vit_*_patch*_*, yolos_tiny, yolos_small, yolos_base");
}

static octet_status write_text(const char *directory, const char *name, const oct_text *text) {
    if (text->failed) return oct_fail_memory();
    if (text->length == 0) return OCTET_OK;
    char *path = oct_path_join(directory, name);
    if (path == NULL) return oct_fail_memory();
    octet_status status = oct_file_write(path, text->data, text->length);
    oct_free(path);
    return status;
}

static octet_status write_all(drawing *d) {
    OCT_TRY(build(d));
    OCT_TRY(oct_make_directories(d->options->directory));
    OCT_TRY(write_text(d->options->directory, "config.json", &d->config));
    OCT_TRY(write_text(d->options->directory, "preprocessor_config.json", &d->preprocessor));
    char *path = oct_path_join(d->options->directory, "model.safetensors");
    if (path == NULL) return oct_fail_memory();
    octet_status status = oct_safetensors_write(path, d->tensors, d->count);
    oct_free(path);
    return status;
}

static void drop(drawing *d) {
    oct_free(d->tensors);
    oct_text_free(&d->config);
    oct_text_free(&d->preprocessor);
    oct_arena_free(&d->arena);
}

static int usage(const char *what) {
    fprintf(stderr,
            "draw_weights: %s\nusage: draw_weights ARCHITECTURE DIRECTORY [--seed N] [--height H] [--width W] "
            "[--classes N]\n  [--dtype F32|F16|BF16] [--prefix TEXT] [--hidden N] [--layers N] [--heads N] [--tokens N]"
            " [--mlp N]\n  [--mid] [--no-mid] [--no-qkv-bias] [--hub-names]\n",
            what);
    return 2;
}

static bool parse_dtype(const char *text, oct_dtype *dtype) {
    static const oct_dtype allowed[] = {OCT_DTYPE_F32, OCT_DTYPE_F16, OCT_DTYPE_BF16};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (strcmp(text, oct_dtype_name(allowed[i])) != 0) continue;
        *dtype = allowed[i];
        return true;
    }
    return false;
}

/* Whether argv[*at] is an option and good; moves *at past its value. */
static bool parse_option(options *o, int argc, char **argv, int *at) {
    const struct {
        const char *name;
        int64_t low, high, *value;
    } numbers[] = {{"--seed", 0, INT64_MAX, &o->seed},     {"--height", 16, MAX_PIXELS, &o->height},
                   {"--width", 16, MAX_PIXELS, &o->width}, {"--classes", 1, 1 << 20, &o->classes},
                   {"--hidden", 1, 1 << 14, &o->hidden},   {"--layers", 1, 1 << 10, &o->layers},
                   {"--heads", 1, 1 << 10, &o->heads},     {"--tokens", 1, 1 << 14, &o->tokens},
                   {"--mlp", 1, 1 << 16, &o->mlp}};
    const char *name = argv[*at];
    if (strcmp(name, "--mid") == 0 || strcmp(name, "--no-mid") == 0) return o->mid = name[2] == 'm', true;
    if (strcmp(name, "--no-qkv-bias") == 0) return o->qkv_bias = false, true;
    if (strcmp(name, "--hub-names") == 0) return o->hub_names = true, true;
    if (*at + 1 >= argc) return false;
    const char *value = argv[++*at];
    if (strcmp(name, "--prefix") == 0) return o->prefix = value, true;
    if (strcmp(name, "--dtype") == 0) return parse_dtype(value, &o->dtype);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return oct_parse_int(value, numbers[i].low, numbers[i].high, numbers[i].value);
    return false;
}

int main(int argc, char **argv) {
    options o = {.prefix = "",
                 .height = -1,
                 .width = -1,
                 .classes = -1,
                 .hidden = -1,
                 .layers = -1,
                 .heads = -1,
                 .tokens = -1,
                 .mlp = -1,
                 .mid = -1,
                 .qkv_bias = true,
                 .dtype = OCT_DTYPE_F32};
    if (argc < 3 || argv[1][0] == '-') return usage("expected an architecture and a directory");
    o.architecture = argv[1];
    o.directory = argv[2];
    for (int i = 3; i < argc; i++) {
        int option = i;
        if (!parse_option(&o, argc, argv, &i)) return usage(argv[option]);
    }
    drawing d = {.options = &o};
    octet_status status = write_all(&d);
    if (status != OCTET_OK) fprintf(stderr, "draw_weights: %s\n", oct_error_text());
    drop(&d);
    return status == OCTET_OK ? 0 : 1;
}
