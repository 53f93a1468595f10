/* SPDX-License-Identifier: Apache-2.0 */
/* What configurations of other tools say of their quantization. */
#include <string.h>

#include "quant/import.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static octet_status refuse(const oct_document *document, const oct_node *node, const char *what, const char *name) {
    (void)oct_fail(OCTET_UNSUPPORTED, "%s:%d: %s: '%.64s' is not supported", document->path, node->line, what, name);
    return oct_hint("take the checkpoint that was quantized, and a recipe of this family");
}

/* ---- ModelOpt */

static octet_status read_modelopt(const oct_document *document, const oct_node *map, oct_import_scheme *scheme) {
    static const struct {
        const char *name;
        oct_import_scheme scheme;
    } known[] = {
        {"FP8", {.format = OCT_FORMAT_E4M3, .weights = OCT_PER_TENSOR, .activations = true}},
        {"FP8_PER_CHANNEL_PER_TOKEN",
         {.format = OCT_FORMAT_E4M3, .weights = OCT_PER_CHANNEL, .activations = true, .dynamic = true}},
        {"W8A8_SQ_PER_CHANNEL", {.format = OCT_FORMAT_INT8, .weights = OCT_PER_CHANNEL, .activations = true}},
    };
    const char *algorithm = NULL;
    OCT_TRY(oct_node_string(document, map, "quant_algo", true, &algorithm));
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(known[i].name, algorithm) != 0) continue;
        *scheme = known[i].scheme;
        scheme->found = true;
        scheme->method = "modelopt";
        scheme->algorithm = algorithm;
        return OCTET_OK;
    }
    return refuse(document, oct_node_get(map, "quant_algo"), "quant_algo", algorithm);
}

/* ---- transformers */

static octet_status read_fp8(const oct_document *document, const oct_node *map, oct_import_scheme *scheme) {
    const oct_node *block = oct_node_get(map, "weight_block_size");
    const char *activations = "dynamic";
    OCT_TRY(oct_node_string(document, map, "activation_scheme", false, &activations));
    if (block != NULL && block->kind != OCT_NODE_NULL)
        return refuse(document, block, "weight_block_size", "scales of blocks of several outputs");
    if (strcmp(activations, "static") != 0 && strcmp(activations, "dynamic") != 0)
        return refuse(document, oct_node_get(map, "activation_scheme"), "activation_scheme", activations);
    *scheme = (oct_import_scheme){.format = OCT_FORMAT_E4M3, .weights = OCT_PER_TENSOR, .activations = true};
    scheme->algorithm = activations;
    scheme->dynamic = strcmp(activations, "dynamic") == 0;
    return OCTET_OK;
}

/* Type and bits of weights or activations, which both must have. */
static octet_status read_arguments(const oct_document *document, const oct_node *map, oct_format *format,
                                   const char **strategy) {
    const char *type = NULL;
    int64_t bits = 0;
    bool symmetric = true;
    OCT_TRY(oct_node_int(document, map, "num_bits", true, 1, 64, &bits));
    OCT_TRY(oct_node_string(document, map, "type", true, &type));
    OCT_TRY(oct_node_string(document, map, "strategy", true, strategy));
    OCT_TRY(oct_node_bool(document, map, "symmetric", false, &symmetric));
    if (bits != 8)
        return oct_node_fail(document, oct_node_get(map, "num_bits"), "num_bits: expected 8, found %d", (int)bits);
    if (!symmetric) return refuse(document, oct_node_get(map, "symmetric"), "symmetric", "false");
    if (strcmp(type, "float") != 0 && strcmp(type, "int") != 0)
        return refuse(document, oct_node_get(map, "type"), "type", type);
    *format = strcmp(type, "float") == 0 ? OCT_FORMAT_E4M3 : OCT_FORMAT_INT8;
    return OCTET_OK;
}

static octet_status read_activations(const oct_document *document, const oct_node *map, oct_import_scheme *scheme) {
    oct_format format = OCT_FORMAT_FP32;
    const char *strategy = NULL;
    OCT_TRY(read_arguments(document, map, &format, &strategy));
    OCT_TRY(oct_node_bool(document, map, "dynamic", false, &scheme->dynamic));
    if (format != scheme->format)
        return oct_node_fail(document, map, "input_activations: expected the weights' type, %s, found %s",
                             oct_format_name(scheme->format), oct_format_name(format));
    scheme->activations = true;
    if (strcmp(strategy, scheme->dynamic ? "token" : "tensor") == 0) return OCTET_OK;
    return refuse(document, oct_node_get(map, "strategy"),
                  scheme->dynamic ? "strategy of dynamic activations" : "strategy of static activations", strategy);
}

static octet_status check_targets(const oct_document *document, const oct_node *group) {
    const oct_node *targets = oct_node_get(group, "targets");
    if (targets == NULL || targets->kind != OCT_NODE_LIST || targets->count == 0)
        return oct_node_fail(document, targets != NULL ? targets : group, "targets: expected a list of names");
    for (size_t i = 0; i < targets->count; i++) {
        const char *name = targets->items[i]->kind == OCT_NODE_STRING ? targets->items[i]->string : "";
        if (strcmp(name, "Linear") != 0 && strcmp(name, "Conv2d") != 0)
            return refuse(document, targets->items[i], "targets", name);
    }
    return OCTET_OK;
}

static octet_status read_compressed(const oct_document *document, const oct_node *map, oct_import_scheme *scheme) {
    const oct_node *groups = oct_node_get(map, "config_groups");
    if (groups == NULL || groups->kind != OCT_NODE_MAP || groups->count != 1)
        return oct_node_fail(document, groups != NULL ? groups : map, "config_groups: expected one group");
    const oct_node *group = groups->items[0], *weights = oct_node_get(group, "weights");
    const oct_node *activations = oct_node_get(group, "input_activations");
    const char *strategy = NULL;
    if (weights == NULL || weights->kind != OCT_NODE_MAP)
        return oct_node_fail(document, weights != NULL ? weights : group, "weights: expected a map");
    OCT_TRY(check_targets(document, group));
    *scheme = (oct_import_scheme){.algorithm = groups->keys[0]};
    OCT_TRY(read_arguments(document, weights, &scheme->format, &strategy));
    if (strcmp(strategy, "tensor") != 0 && strcmp(strategy, "channel") != 0)
        return refuse(document, oct_node_get(weights, "strategy"), "strategy of weights", strategy);
    scheme->weights = strcmp(strategy, "tensor") == 0 ? OCT_PER_TENSOR : OCT_PER_CHANNEL;
    const oct_node *output = oct_node_get(group, "output_activations");
    if (output != NULL && output->kind != OCT_NODE_NULL)
        return refuse(document, output, "output_activations", "narrow outputs");
    if (activations == NULL || activations->kind == OCT_NODE_NULL) return OCTET_OK;
    return read_activations(document, activations, scheme);
}

static octet_status read_method(const oct_document *document, const oct_node *map, oct_import_scheme *scheme) {
    const char *method = NULL;
    if (map->kind != OCT_NODE_MAP) return oct_node_fail(document, map, "quantization_config: expected a map");
    OCT_TRY(oct_node_string(document, map, "quant_method", true, &method));
    if (strcmp(method, "modelopt") == 0) return read_modelopt(document, map, scheme);
    if (strcmp(method, "fp8") == 0) {
        OCT_TRY(read_fp8(document, map, scheme));
    } else if (strcmp(method, "fbgemm_fp8") == 0) {
        *scheme = (oct_import_scheme){.format = OCT_FORMAT_E4M3,
                                      .weights = OCT_PER_CHANNEL,
                                      .activations = true,
                                      .dynamic = true,
                                      .algorithm = method};
    } else if (strcmp(method, "compressed-tensors") == 0) {
        OCT_TRY(read_compressed(document, map, scheme));
    } else {
        return refuse(document, oct_node_get(map, "quant_method"), "quant_method", method);
    }
    scheme->found = true;
    scheme->method = method;
    return OCTET_OK;
}

octet_status oct_import_parse(const oct_document *config, const oct_document *own, oct_import_scheme *scheme) {
    *scheme = (oct_import_scheme){0};
    const oct_node *map = oct_node_get(config->root, "quantization_config");
    if (map != NULL && map->kind != OCT_NODE_NULL) OCT_TRY(read_method(config, map, scheme));
    if (own == NULL) return OCTET_OK;
    const oct_node *quantization = oct_node_get(own->root, "quantization");
    if (quantization == NULL || quantization->kind != OCT_NODE_MAP)
        return oct_node_fail(own, quantization != NULL ? quantization : own->root, "quantization: expected a map");
    oct_import_scheme second = {0};
    OCT_TRY(read_modelopt(own, quantization, &second));
    if (scheme->found && (scheme->format != second.format || scheme->weights != second.weights ||
                          scheme->activations != second.activations || scheme->dynamic != second.dynamic))
        return oct_node_fail(own, oct_node_get(quantization, "quant_algo"), "quant_algo: %s, but %s says %s %s",
                             second.algorithm, config->path, scheme->method, scheme->algorithm);
    *scheme = second;
    return OCTET_OK;
}
