/* SPDX-License-Identifier: Apache-2.0 */
/* Reading how pictures are prepared from a checkpoint's configuration, with the references' own defaults. */
#include <string.h>

#include "image/preprocess.h"

enum { SIDE_LIMIT = 1 << 16 };

static const oct_preprocess imagenet = {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};

static const oct_node *present(const oct_node *map, const char *key) {
    const oct_node *node = oct_node_get(map, key);
    return node == NULL || node->kind == OCT_NODE_NULL ? NULL : node;
}

/* A side in pixels; *side as it was where the key is absent. */
static octet_status read_side(const oct_document *document, const oct_node *map, const char *key, bool required,
                              int *side) {
    int64_t value = *side;
    OCT_TRY(oct_node_int(document, map, key, required, 1, SIDE_LIMIT, &value));
    *side = (int)value;
    return OCTET_OK;
}

static octet_status side_of(const oct_document *document, const oct_node *node, int *side) {
    if (node->kind != OCT_NODE_INT || node->integer < 1 || node->integer > SIDE_LIMIT)
        return oct_node_fail(document, node, "expected a side of 1 to %d pixels", SIDE_LIMIT);
    *side = (int)node->integer;
    return OCTET_OK;
}

/* Three numbers, or one for all channels. */
static octet_status read_channels(const oct_document *document, const oct_node *map, const char *key,
                                  double values[3]) {
    const oct_node *node = present(map, key);
    if (node == NULL) return OCTET_OK;
    if (node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL) {
        values[0] = values[1] = values[2] = node->real;
        return OCTET_OK;
    }
    return oct_node_reals(document, map, key, true, values, 3);
}

static octet_status check_std(const oct_document *document, const oct_node *map, const char *key,
                              const oct_preprocess *preprocess) {
    for (int c = 0; c < 3; c++) {
        if (!((float)preprocess->std[c] != 0.0f))
            return oct_node_fail(document, oct_node_get(map, key), "%s of zero", key);
    }
    return OCTET_OK;
}

static octet_status read_timm_filter(const oct_document *document, const oct_node *map, oct_filter *filter) {
    const char *name = NULL;
    OCT_TRY(oct_node_string(document, map, "interpolation", false, &name));
    if (name == NULL || name[0] == 0) name = "bicubic";
    for (oct_filter f = OCT_FILTER_NEAREST; f <= OCT_FILTER_LANCZOS; f++) {
        if (strcmp(name, oct_filter_name(f)) == 0) {
            *filter = f;
            return OCTET_OK;
        }
    }
    return oct_node_fail(document, oct_node_get(map, "interpolation"), "unknown interpolation \"%s\"", name);
}

static octet_status read_timm_size(const oct_document *document, const oct_node *map, oct_preprocess *preprocess) {
    const oct_node *size = present(map, "input_size");
    preprocess->height = preprocess->width = 224;
    if (size == NULL) return OCTET_OK;
    if (size->kind != OCT_NODE_LIST || size->count != 3)
        return oct_node_fail(document, size, "expected input_size to be channels, height and width");
    if (size->items[0]->kind != OCT_NODE_INT || size->items[0]->integer != 3)
        return oct_node_fail(document, size, "expected input_size of three channels");
    OCT_TRY(side_of(document, size->items[1], &preprocess->height));
    return side_of(document, size->items[2], &preprocess->width);
}

static octet_status read_timm_crop(const oct_document *document, const oct_node *map, oct_preprocess *preprocess) {
    OCT_TRY(oct_node_real(document, map, "crop_pct", false, &preprocess->crop_pct));
    if (preprocess->crop_pct == 0.0) preprocess->crop_pct = 0.875; /* as timm takes it */
    int side = preprocess->height < preprocess->width ? preprocess->height : preprocess->width;
    int longer = preprocess->height < preprocess->width ? preprocess->width : preprocess->height;
    if (!(preprocess->crop_pct > 0.0) || side / preprocess->crop_pct < 1.0 ||
        longer / preprocess->crop_pct > SIDE_LIMIT)
        return oct_node_fail(document, oct_node_get(map, "crop_pct"), "crop_pct out of range for the input size");
    const char *mode = NULL;
    OCT_TRY(oct_node_string(document, map, "crop_mode", false, &mode));
    if (mode == NULL || mode[0] == 0 || strcmp(mode, "center") == 0)
        preprocess->fit = OCT_FIT_CROP;
    else if (strcmp(mode, "squash") == 0)
        preprocess->fit = OCT_FIT_SQUASH;
    else if (strcmp(mode, "border") == 0)
        preprocess->fit = OCT_FIT_BORDER;
    else
        return oct_node_fail(document, oct_node_get(map, "crop_mode"), "unknown crop_mode \"%s\"", mode);
    return OCTET_OK;
}

octet_status oct_preprocess_from_timm(oct_preprocess *preprocess, const oct_document *config) {
    *preprocess = imagenet;
    preprocess->crop_pct = 0.875;
    preprocess->resize = preprocess->rescale = preprocess->normalize = preprocess->divide = true;
    preprocess->rescale_factor = 1.0 / 255.0;
    preprocess->size_multiple = 1;
    const oct_node *map = present(config->root, "pretrained_cfg");
    if (map == NULL) map = config->root; /* the older form keeps it all on one level */
    if (map->kind != OCT_NODE_MAP) return oct_node_fail(config, map, "expected pretrained_cfg to be a map");
    OCT_TRY(read_timm_size(config, map, preprocess));
    OCT_TRY(read_timm_filter(config, map, &preprocess->filter));
    OCT_TRY(read_timm_crop(config, map, preprocess));
    OCT_TRY(read_channels(config, map, "mean", preprocess->mean));
    OCT_TRY(read_channels(config, map, "std", preprocess->std));
    return check_std(config, map, "std", preprocess);
}

/* STEM and one of the class names that transformers has given the same processor over the years. */
static bool is_processor(const char *name, const char *stem) {
    static const char *const ends[] = {"ImageProcessor", "ImageProcessorPil", "ImageProcessorFast", "FeatureExtractor"};
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0) return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (strcmp(name + length, ends[i]) == 0) return true;
    }
    return false;
}

static octet_status read_processor_type(const oct_document *document, const oct_node *map, const char *stem) {
    const char *key = present(map, "image_processor_type") != NULL ? "image_processor_type" : "feature_extractor_type";
    const char *name = NULL;
    OCT_TRY(oct_node_string(document, map, key, false, &name));
    if (name == NULL || is_processor(name, stem)) return OCTET_OK;
    oct_node_fail(document, oct_node_get(map, key), "unknown %s \"%s\"", key, name);
    return oct_hint("%sImageProcessor is known", stem);
}

/* {"height", "width"}, {"shortest_edge", "longest_edge"}, {"max_height", "max_width"}: the sets that the processor
 * takes; no other key beside them. */
static octet_status read_size_map(const oct_document *document, const oct_node *size, oct_preprocess *preprocess) {
    static const struct {
        const char *first, *second;
        oct_fit fit;
    } sets[] = {{"height", "width", OCT_FIT_FIXED},
                {"shortest_edge", "longest_edge", OCT_FIT_EDGES},
                {"max_height", "max_width", OCT_FIT_INSIDE}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (size->count != 2 || !present(size, sets[i].first) || !present(size, sets[i].second)) continue;
        bool edges = sets[i].fit == OCT_FIT_EDGES;
        preprocess->fit = sets[i].fit;
        int *first = edges ? &preprocess->shortest_edge : &preprocess->height;
        int *second = edges ? &preprocess->longest_edge : &preprocess->width;
        OCT_TRY(read_side(document, size, sets[i].first, true, first));
        return read_side(document, size, sets[i].second, true, second);
    }
    oct_node_fail(document, size, "size that the image processor does not take");
    return oct_hint("height and width, shortest_edge and longest_edge, or max_height and max_width");
}

static octet_status read_size(const oct_document *document, const oct_node *map, oct_preprocess *preprocess) {
    const oct_node *size = preprocess->resize ? present(map, "size") : NULL;
    preprocess->fit = OCT_FIT_EDGES;
    preprocess->shortest_edge = 800;
    preprocess->longest_edge = 1333;
    if (size == NULL) return OCTET_OK;
    if (size->kind == OCT_NODE_MAP) {
        preprocess->shortest_edge = preprocess->longest_edge = 0;
        return read_size_map(document, size, preprocess);
    }
    if (size->kind == OCT_NODE_LIST && size->count == 2) {
        preprocess->fit = OCT_FIT_FIXED;
        OCT_TRY(side_of(document, size->items[0], &preprocess->height));
        return side_of(document, size->items[1], &preprocess->width);
    }
    OCT_TRY(side_of(document, size, &preprocess->shortest_edge)); /* the old form: a side, with max_size beside it */
    return read_side(document, map, "max_size", false, &preprocess->longest_edge);
}

static octet_status read_padding(const oct_document *document, const oct_node *map, oct_preprocess *preprocess) {
    OCT_TRY(oct_node_bool(document, map, "pad_and_return_pixel_mask", false, &preprocess->pad));
    OCT_TRY(oct_node_bool(document, map, "do_pad", false, &preprocess->pad));
    const oct_node *size = present(map, "pad_size");
    if (size == NULL) return OCTET_OK;
    if (size->kind != OCT_NODE_MAP) {
        OCT_TRY(side_of(document, size, &preprocess->pad_height));
        preprocess->pad_width = preprocess->pad_height;
        return OCTET_OK;
    }
    OCT_TRY(read_side(document, size, "height", true, &preprocess->pad_height));
    return read_side(document, size, "width", true, &preprocess->pad_width);
}

static octet_status read_resample(const oct_document *document, const oct_node *map, oct_filter *filter) {
    static const oct_filter codes[] = {OCT_FILTER_NEAREST, OCT_FILTER_LANCZOS, OCT_FILTER_BILINEAR,
                                       OCT_FILTER_BICUBIC, OCT_FILTER_BOX,     OCT_FILTER_HAMMING};
    int64_t code = 2;
    OCT_TRY(oct_node_int(document, map, "resample", false, 0, 5, &code));
    *filter = codes[code];
    return OCTET_OK;
}

octet_status oct_preprocess_from_transformers(oct_preprocess *preprocess, const oct_document *config,
                                              const char *stem) {
    const oct_node *map = config->root;
    *preprocess = imagenet;
    preprocess->crop_pct = 1.0;
    preprocess->resize = preprocess->rescale = preprocess->normalize = preprocess->pad = true;
    preprocess->rescale_factor = 1.0 / 255.0;
    preprocess->size_multiple = 16;
    if (map->kind != OCT_NODE_MAP)
        return oct_node_fail(config, map, "expected a map of the image processor's settings");
    OCT_TRY(read_processor_type(config, map, stem));
    OCT_TRY(oct_node_bool(config, map, "do_resize", false, &preprocess->resize));
    OCT_TRY(read_size(config, map, preprocess));
    OCT_TRY(read_resample(config, map, &preprocess->filter));
    OCT_TRY(read_padding(config, map, preprocess));
    OCT_TRY(oct_node_bool(config, map, "do_rescale", false, &preprocess->rescale));
    OCT_TRY(oct_node_bool(config, map, "do_normalize", false, &preprocess->normalize));
    OCT_TRY(oct_node_real(config, map, "rescale_factor", false, &preprocess->rescale_factor));
    OCT_TRY(read_channels(config, map, "image_mean", preprocess->mean));
    OCT_TRY(read_channels(config, map, "image_std", preprocess->std));
    return preprocess->normalize ? check_std(config, map, "image_std", preprocess) : OCTET_OK;
}
