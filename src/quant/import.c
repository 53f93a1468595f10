/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a quantized checkpoint, its recipe, its weights. */
#include "quant/import.h"

#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define WEIGHT ".weight"

/* ---- tensors */

/* MODULE.a or MODULE.b: whichever there is, marked as used; NULL: neither. */
static oct_tensor *find_scale(oct_checkpoint *checkpoint, oct_import *import, const char *module, const char *a,
                              const char *b) {
    const char *const words[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *name = words[i] != NULL ? oct_arena_sprintf(&import->arena, "%s.%s", module, words[i]) : NULL;
        oct_tensor *tensor = name != NULL ? oct_checkpoint_find(checkpoint, name) : NULL;
        if (tensor == NULL) continue;
        tensor->used = true;
        return tensor;
    }
    return NULL;
}

/* Numbers of a tensor of scales: finite and above 0. */
static octet_status read_scales(const oct_checkpoint *checkpoint, oct_import *import, const oct_tensor *tensor,
                                size_t most, const float **values) {
    const size_t count = (size_t)tensor->count;
    if (tensor->count == 0 || tensor->count > most)
        return oct_fail(OCTET_MISMATCH, "%s: tensor %s: expected at most %zu scales, found %llu", tensor->file,
                        tensor->name, most, (unsigned long long)tensor->count);
    float *own = oct_arena_alloc(&import->arena, count * sizeof *own);
    if (own == NULL) return oct_fail_memory();
    OCT_TRY(oct_checkpoint_read(checkpoint, tensor, own));
    for (size_t i = 0; i < count; i++) {
        if (!(own[i] > 0) || own[i] > FLT_MAX)
            return oct_fail(OCTET_BAD_FORMAT, "%s: tensor %s: element %zu: expected a scale above 0, found %g",
                            tensor->file, tensor->name, i, (double)own[i]);
    }
    *values = own;
    return OCTET_OK;
}

static octet_status missing(const oct_tensor *weight, const char *module, const char *what) {
    return oct_fail(OCTET_MISMATCH, "%s: tensor %s is quantized, but there is no %s.%s", weight->file, weight->name,
                    module, what);
}

static octet_status read_op(oct_checkpoint *checkpoint, oct_import *import, const oct_tensor *weight) {
    oct_import_op *op = &import->ops[import->count];
    const oct_dtype expected = import->scheme.format == OCT_FORMAT_INT8 ? OCT_DTYPE_I8 : OCT_DTYPE_F8_E4M3;
    if (weight->dtype != expected)
        return oct_fail(OCTET_MISMATCH, "%s: tensor %s: expected %s as %s says, found %s", weight->file, weight->name,
                        oct_dtype_name(expected), import->scheme.method, oct_dtype_name(weight->dtype));
    op->name = oct_arena_strndup(&import->arena, weight->name, strlen(weight->name) - strlen(WEIGHT));
    if (op->name == NULL) return oct_fail_memory();
    const size_t outputs = weight->rank > 0 ? (size_t)weight->shape[0] : 1;
    const oct_tensor *scale = find_scale(checkpoint, import, op->name, "weight_scale", "weight_scale_inv");
    if (scale == NULL) return missing(weight, op->name, "weight_scale");
    OCT_TRY(read_scales(checkpoint, import, scale, outputs, &op->scales));
    op->scale_count = (size_t)scale->count;
    if (op->scale_count != (import->scheme.weights == OCT_PER_TENSOR ? 1 : outputs))
        return oct_fail(OCTET_MISMATCH, "%s: tensor %s: expected %zu scales, found %zu", scale->file, scale->name,
                        import->scheme.weights == OCT_PER_TENSOR ? (size_t)1 : outputs, op->scale_count);
    const oct_tensor *input = find_scale(checkpoint, import, op->name, "input_scale", "activation_scale");
    if (import->scheme.activations && !import->scheme.dynamic) {
        const float *value = NULL;
        if (input == NULL) return missing(weight, op->name, "input_scale");
        OCT_TRY(read_scales(checkpoint, import, input, 1, &value));
        op->input_scale = value[0];
    }
    const oct_tensor *factors = find_scale(checkpoint, import, op->name, "pre_quant_scale", NULL);
    if (factors != NULL) {
        OCT_TRY(read_scales(checkpoint, import, factors, OCT_SCALES_CHANNELS, &op->factors));
        op->factor_count = (size_t)factors->count;
    }
    import->count++;
    return OCTET_OK;
}

static bool is_quantized(const oct_tensor *tensor) {
    return oct_ends_with(tensor->name, WEIGHT) &&
           (tensor->dtype == OCT_DTYPE_F8_E4M3 || tensor->dtype == OCT_DTYPE_I8 || tensor->dtype == OCT_DTYPE_U8);
}

static octet_status read_ops(oct_checkpoint *checkpoint, oct_import *import) {
    const size_t count = oct_checkpoint_tensor_count(checkpoint);
    import->ops = oct_arena_alloc(&import->arena, (count + 1) * sizeof *import->ops);
    if (import->ops == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count; i++) {
        oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        if (!is_quantized(tensor)) continue;
        OCT_TRY(read_op(checkpoint, import, tensor));
        tensor->is_coded = true;
    }
    if (import->count > 0) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "%s: %s %s, but no weight of the checkpoint is quantized",
                    oct_checkpoint_config(checkpoint)->path, import->scheme.method, import->scheme.algorithm);
}

/* ---- the recipe */

/* A name as a pattern that matches it alone. */
static void put_name(oct_text *text, const char *name) {
    char *pattern = oct_alloc(3 * strlen(name) + 1);
    if (pattern == NULL) {
        text->failed = true;
        return;
    }
    size_t length = 0;
    for (; *name != '\0'; name++) {
        const bool special = strchr("*?[", *name) != NULL;
        if (special) pattern[length++] = '[';
        pattern[length++] = *name;
        if (special) pattern[length++] = ']';
    }
    pattern[length] = '\0';
    oct_text_json(text, pattern);
    oct_free(pattern);
}

static void put_rule(oct_import *import, size_t first, size_t count) {
    const oct_import_scheme *scheme = &import->scheme;
    oct_text *text = &import->recipe;
    const char *format = oct_format_name(scheme->format);
    oct_text_puts(text, "  - ops:\n      name:\n");
    for (size_t i = 0; i < count; i++) {
        oct_text_puts(text, "        - ");
        put_name(text, import->ops[first + i].name);
        oct_text_puts(text, "\n");
    }
    oct_text_printf(text, "    weights: {format: %s, granularity: %s, rounding: compensated}\n", format,
                    scheme->weights == OCT_PER_TENSOR ? "tensor" : "channel");
    if (scheme->activations)
        oct_text_printf(text, "    activations: {format: %s, granularity: %s}\n", format,
                        scheme->dynamic ? "row" : "tensor");
}

/* Ops with factors have rules of their own. */
static void put_smoothing(oct_import *import) {
    oct_text *text = &import->recipe;
    for (size_t i = 0; i < import->count; i++) {
        if (import->ops[i].factors == NULL) continue;
        oct_text_puts(text, "  - ops: {name: ");
        put_name(text, import->ops[i].name);
        oct_text_puts(text, "}\n    smoothing: 0.5\n");
    }
}

static octet_status write_recipe(oct_import *import) {
    const oct_import_scheme *scheme = &import->scheme;
    oct_text *text = &import->recipe;
    char *description =
        oct_arena_sprintf(&import->arena, "%s %s, as the checkpoint says", scheme->method, scheme->algorithm);
    if (description == NULL) return oct_fail_memory();
    oct_text_puts(text, "recipe: imported\ndescription: ");
    oct_text_json(text, description);
    oct_text_puts(text, "\nbase: fp16\nrules:\n");
    for (size_t i = 0; i < import->count; i += OCT_RECIPE_PATTERNS)
        put_rule(import, i, import->count - i < OCT_RECIPE_PATTERNS ? import->count - i : OCT_RECIPE_PATTERNS);
    put_smoothing(import);
    return text->failed ? oct_fail_memory() : OCTET_OK;
}

static octet_status write_scales(oct_import *import) {
    for (size_t i = 0; i < import->count; i++) {
        const oct_import_op *op = &import->ops[i];
        const float most = op->input_scale * (float)oct_format_get(import->scheme.format)->element_max;
        const oct_scale scale = {.op = op->name,
                                 .format = import->scheme.format,
                                 .scales = &op->input_scale,
                                 .count = 1,
                                 .amax = most < FLT_MAX ? most : FLT_MAX,
                                 .threshold = most < FLT_MAX ? most : FLT_MAX};
        if (op->input_scale > 0) OCT_TRY(oct_scale_draft_add(&import->draft, &scale));
        const oct_op_vector factors = {op->name, op->factors, op->factor_count};
        if (op->factors != NULL) OCT_TRY(oct_scale_draft_smoothing(&import->draft, &factors));
    }
    return OCTET_OK;
}

/* ---- all */

static octet_status read_scheme(oct_checkpoint *checkpoint, oct_import *import) {
    oct_document own = {0};
    char *path = oct_path_join(oct_checkpoint_directory(checkpoint), "hf_quant_config.json");
    if (path == NULL) return oct_fail_memory();
    const bool exists = oct_file_exists(path);
    octet_status status = exists ? oct_document_read(&own, path, OCT_DOCUMENT_LIMIT) : OCTET_OK;
    if (status == OCTET_OK)
        status = oct_import_parse(oct_checkpoint_config(checkpoint), exists ? &own : NULL, &import->scheme);
    if (status == OCTET_OK && import->scheme.found) {
        import->scheme.method = oct_arena_strdup(&import->arena, import->scheme.method);
        import->scheme.algorithm = oct_arena_strdup(&import->arena, import->scheme.algorithm);
        if (import->scheme.method == NULL || import->scheme.algorithm == NULL) status = oct_fail_memory();
    }
    oct_document_free(&own);
    oct_free(path);
    return status;
}

static octet_status read_all(oct_checkpoint *checkpoint, oct_import *import) {
    OCT_TRY(read_scheme(checkpoint, import));
    if (!import->scheme.found) return OCTET_OK;
    OCT_TRY(read_ops(checkpoint, import));
    OCT_TRY(write_recipe(import));
    return write_scales(import);
}

octet_status oct_import_read(oct_checkpoint *checkpoint, oct_import *import) {
    *import = (oct_import){0};
    const octet_status status = read_all(checkpoint, import);
    if (status != OCTET_OK || !import->scheme.found) oct_import_free(import);
    return status;
}

void oct_import_free(oct_import *import) {
    oct_scale_draft_free(&import->draft);
    oct_text_free(&import->recipe);
    oct_arena_free(&import->arena);
    *import = (oct_import){0};
}

/* ---- weights */

static const oct_graph_node *find_node(const oct_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0) return &graph->nodes[i];
    return NULL;
}

static bool feeds_batch_norm(const oct_graph *graph, const oct_graph_node *node) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == OCT_OP_BATCH_NORM && graph->nodes[i].inputs[0] == node->output) return true;
    return false;
}

static octet_status check_op(const oct_graph *graph, const oct_import_op *op, const oct_graph_node *node) {
    const char *why = NULL;
    if (node == NULL || (node->op != OCT_OP_CONV2D && node->op != OCT_OP_LINEAR) ||
        graph->values[node->inputs[1]].data == NULL)
        why = "no convolution or linear of its own in this family's graph";
    else if (feeds_batch_norm(graph, node))
        why = "followed by a batch norm, whose folding would change its codes";
    if (why != NULL) return oct_fail(OCTET_UNSUPPORTED, "quantized module %s: %s", op->name, why);
    const oct_shape *shape = &graph->values[node->inputs[1]].shape;
    const int64_t inputs = shape->dims[shape->rank - 1];
    if (op->scale_count > 1 && (int64_t)op->scale_count != shape->dims[0])
        return oct_fail(OCTET_MISMATCH, "quantized module %s: expected %lld scales, found %zu", op->name,
                        (long long)shape->dims[0], op->scale_count);
    if (op->factors != NULL && ((int64_t)op->factor_count != inputs || node->op != OCT_OP_LINEAR))
        return oct_fail(OCTET_MISMATCH,
                        "quantized module %s: pre_quant_scale: expected %lld factors of a linear, found %zu", op->name,
                        (long long)inputs, op->factor_count);
    return OCTET_OK;
}

/* The numbers in the graph are the codes' own, without a scale: so they are codes, in the order of the op. */
static octet_status take_weight(oct_import *import, const oct_import_op *op, const oct_shape *shape, float *weight) {
    const size_t count = (size_t)oct_shape_count(shape), row = count / (size_t)shape->dims[0];
    uint8_t *codes = oct_alloc(count + 1);
    if (codes == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count; i++) {
        const bool beyond = import->scheme.format == OCT_FORMAT_INT8 && weight[i] < -127;
        import->clipped += beyond;
        if (import->scheme.format == OCT_FORMAT_INT8)
            codes[i] = (uint8_t)oct_int8_encode(weight[i], 1);
        else
            codes[i] = oct_e4m3_encode(weight[i]);
    }
    const oct_op_weight entry = {.op = op->name,
                                 .format = import->scheme.format,
                                 .granularity = import->scheme.weights,
                                 .scales = op->scales,
                                 .scale_count = op->scale_count,
                                 .codes = codes,
                                 .count = count};
    octet_status status = OCTET_OK;
    if (oct_scale_file_weight(&import->draft.file, op->name) == NULL) /* the same in every graph */
        status = oct_scale_draft_weight(&import->draft, &entry);
    oct_scaled_decode(entry.format, codes, op->scale_count, count / op->scale_count, count / op->scale_count,
                      op->scales, weight);
    for (size_t i = 0; op->factors != NULL && i < count; i++) weight[i] *= op->factors[i % row];
    oct_free(codes);
    return status;
}

octet_status oct_import_weights(oct_import *import, oct_graph *graph) {
    import->clipped = 0;
    for (size_t i = 0; i < import->count; i++) {
        const oct_import_op *op = &import->ops[i];
        const oct_graph_node *node = find_node(graph, op->name);
        OCT_TRY(check_op(graph, op, node));
        const oct_value *weight = &graph->values[node->inputs[1]];
        OCT_TRY(take_weight(import, op, &weight->shape, weight->data));
    }
    return OCTET_OK;
}
