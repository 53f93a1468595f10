/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/layouts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SIDE_MAX 16384 /* pixels: above any input of a vision model */

bool oct_config_is_one_of(const oct_document *config, const char *key, const char *const *names) {
    const oct_node *node = oct_node_get(config->root, key);
    if (node == NULL || node->kind != OCT_NODE_STRING) return false;
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(node->string, names[i]) == 0) return true;
    }
    return false;
}

octet_status oct_config_unsupported(const oct_document *config, const oct_node *node, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (node == NULL) return oct_fail(OCTET_UNSUPPORTED, "%s: %s", config->path, text);
    return oct_fail(OCTET_UNSUPPORTED, "%s:%d: %s", config->path, node->line, text);
}

octet_status oct_config_only_string(const oct_document *config, const oct_node *map, const char *key,
                                    const char *only) {
    const char *value = NULL;
    OCT_TRY(oct_node_string(config, map, key, false, &value));
    if (value == NULL || strcmp(value, only) == 0) return OCTET_OK;
    return oct_config_unsupported(config, oct_node_get(map, key), "%s: only %s is supported, found %s", key, only,
                                  value);
}

octet_status oct_config_only_bool(const oct_document *config, const oct_node *map, const char *key, bool only) {
    bool value = only;
    OCT_TRY(oct_node_bool(config, map, key, false, &value));
    if (value == only) return OCTET_OK;
    return oct_config_unsupported(config, oct_node_get(map, key), "%s: only %s is supported", key,
                                  only ? "true" : "false");
}

octet_status oct_config_size(const oct_document *config, const oct_node *map, const char *key, int low, int high,
                             int *height, int *width) {
    const oct_node *node = oct_node_get(map, key);
    if (node == NULL || node->kind == OCT_NODE_NULL) return OCTET_OK;
    const oct_node *sides[2] = {node, node};
    if (node->kind == OCT_NODE_LIST && node->count == 2) {
        sides[0] = node->items[0];
        sides[1] = node->items[1];
    }
    for (int i = 0; i < 2; i++) {
        if (sides[i]->kind == OCT_NODE_INT && sides[i]->integer >= low && sides[i]->integer <= high) continue;
        return oct_node_fail(config, node, "%s: expected a whole number from %d to %d, or two: height, width", key, low,
                             high);
    }
    *height = (int)sides[0]->integer;
    *width = (int)sides[1]->integer;
    return OCTET_OK;
}

static octet_status read_classes(const oct_document *config, const oct_node *pretrained, oct_model *model) {
    int64_t classes = -1;
    OCT_TRY(oct_node_int(config, config->root, "num_classes", false, 0, 1 << 24, &classes));
    const oct_node *node = oct_node_get(config->root, "num_classes");
    if (classes < 0) {
        OCT_TRY(oct_node_int(config, pretrained, "num_classes", true, 0, 1 << 24, &classes));
        node = oct_node_get(pretrained, "num_classes");
    }
    model->classes = (int)classes;
    if (classes > 0) return OCTET_OK;
    oct_config_unsupported(config, node, "num_classes: 0: this is a feature extractor without classes");
    return oct_hint("take the checkpoint with its classifier, or train one");
}

static octet_status read_input_size(const oct_document *config, const oct_node *pretrained, oct_model *model) {
    double size[3] = {3, 224, 224};
    OCT_TRY(oct_node_reals(config, pretrained, "input_size", false, size, 3));
    const oct_node *node = oct_node_get(pretrained, "input_size");
    for (int i = 1; i < 3; i++) {
        if (size[i] >= 1 && size[i] <= SIDE_MAX && size[i] == (double)(int)size[i]) continue;
        return oct_node_fail(config, node, "input_size: expected sides of 1 to %d pixels, found %g", SIDE_MAX, size[i]);
    }
    if (size[0] != 3) {
        return oct_config_unsupported(config, node, "input_size: only 3 channels are supported, found %g", size[0]);
    }
    model->height = (int)size[1];
    model->width = (int)size[2];
    return oct_node_bool(config, pretrained, "fixed_input_size", false, &model->fixed_size);
}

octet_status oct_timm_describe(const oct_document *config, const char *pool, const char *const *known_arguments,
                               oct_model *model) {
    const char *architecture = NULL;
    OCT_TRY(oct_node_string(config, config->root, "architecture", true, &architecture));
    *model = (oct_model){.task = OCT_TASK_CLASSIFICATION, .size_multiple = 1, .min_size = 1, .max_size = SIDE_MAX};
    if (strlen(architecture) >= sizeof model->architecture) {
        return oct_node_fail(config, oct_node_get(config->root, "architecture"), "architecture: the name is too long");
    }
    strcpy(model->architecture, architecture);
    const oct_node *pretrained = oct_node_get(config->root, "pretrained_cfg");
    if (pretrained == NULL || pretrained->kind != OCT_NODE_MAP) pretrained = config->root; /* as older timm wrote */
    OCT_TRY(oct_config_only_string(config, config->root, "global_pool", pool));
    const oct_node *arguments = oct_node_get(config->root, "model_args");
    for (size_t i = 0; arguments != NULL && arguments->kind == OCT_NODE_MAP && i < arguments->count; i++) {
        size_t k = 0;
        while (known_arguments[k] != NULL && strcmp(known_arguments[k], arguments->keys[i]) != 0) k++;
        if (known_arguments[k] != NULL) continue;
        return oct_config_unsupported(config, arguments->items[i], "model_args: %s is not supported",
                                      arguments->keys[i]);
    }
    OCT_TRY(read_classes(config, pretrained, model));
    return read_input_size(config, pretrained, model);
}

octet_status oct_model_check_size(const oct_model *model, int height, int width) {
    if (model->fixed_size) {
        if (height == model->height && width == model->width) return OCTET_OK;
        return oct_fail(OCTET_UNSUPPORTED, "size: %s is built for %d x %d alone, not for %d x %d (height x width)",
                        model->architecture, model->height, model->width, height, width);
    }
    bool fits = height >= model->min_size && height <= model->max_size && width >= model->min_size &&
                width <= model->max_size && height % model->size_multiple == 0 && width % model->size_multiple == 0;
    if (fits) return OCTET_OK;
    return oct_fail(OCTET_UNSUPPORTED,
                    "size: %s takes sides from %d to %d pixels in steps of %d, not %d x %d (height x width)",
                    model->architecture, model->min_size, model->max_size, model->size_multiple, height, width);
}
