/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the scale file: the JSON tree into entries, every key and value checked. */
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "quant/base64.h"
#include "quant/scales.h"

/* ---- words and numbers */

static bool is_hash(const char *text) {
    return strlen(text) == OCT_SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == OCT_SHA256_HEX - 1;
}

static octet_status read_hash(const oct_document *document, const char *key, const char **value) {
    OCT_TRY(oct_node_string(document, document->root, key, true, value));
    if (is_hash(*value)) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(document->root, key), "%s: expected a hash of %d hex digits", key,
                         OCT_SHA256_HEX - 1);
}

static octet_status read_word(const oct_document *document, const oct_node *map, const char *key,
                              const char *const *words, int count, int *index) {
    const char *text = NULL;
    OCT_TRY(oct_node_string(document, map, key, true, &text));
    for (*index = 0; *index < count; ++*index) {
        if (strcmp(text, words[*index]) == 0) return OCTET_OK;
    }
    return oct_node_fail(document, oct_node_get(map, key), "%s: '%.64s' is not known", key, text);
}

/* A number as the float it was written from: finite, from `least` on. */
static octet_status to_float(const oct_document *document, const oct_node *node, const char *key, float least,
                             float *value) {
    const bool is_number = node->kind == OCT_NODE_INT || node->kind == OCT_NODE_REAL;
    if (is_number && node->real >= (double)least && node->real <= (double)FLT_MAX) {
        *value = (float)node->real;
        return OCTET_OK;
    }
    return oct_node_fail(document, node, "%s: expected a float of at least %g, found %s", key, (double)least,
                         is_number ? "one beyond it" : oct_node_kind_name(node->kind));
}

static octet_status read_float(const oct_document *document, const oct_node *map, const char *key, float *value) {
    double real;
    OCT_TRY(oct_node_real(document, map, key, true, &real));
    return to_float(document, oct_node_get(map, key), key, 0, value);
}

/* A list of floats, into the document's arena. */
static octet_status read_floats(oct_document *document, const oct_node *map, const char *key, float least,
                                const float **values, size_t *count) {
    const oct_node *list = oct_node_get(map, key);
    if (list == NULL || list->kind != OCT_NODE_LIST)
        return oct_node_fail(document, list != NULL ? list : map, "%s: expected a list of numbers", key);
    if (list->count > OCT_SCALES_CHANNELS)
        return oct_node_fail(document, list, "%s: expected at most %d numbers, found %zu", key, OCT_SCALES_CHANNELS,
                             list->count);
    float *own = oct_arena_alloc(&document->arena, (list->count + 1) * sizeof *own);
    if (own == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) OCT_TRY(to_float(document, list->items[i], key, least, &own[i]));
    *values = own;
    *count = list->count;
    return OCTET_OK;
}

static octet_status wrong_count(const oct_document *document, const oct_node *map, const char *key, size_t found,
                                const char *expected) {
    return oct_node_fail(document, oct_node_get(map, key), "%s: expected %s, found %zu", key, expected, found);
}

/* ---- activations */

static octet_status read_format(const oct_document *document, const oct_node *map, oct_scale *scale) {
    const char *text = NULL;
    OCT_TRY(oct_node_string(document, map, "format", true, &text));
    const int format = oct_format_by_name(text);
    const bool own_blocks = format == OCT_FORMAT_MXFP8 || format == OCT_FORMAT_NVFP4;
    if (format < 0 || (!oct_format_has_scale((oct_format)format) && format != OCT_FORMAT_UINT8 && !own_blocks))
        return oct_node_fail(document, oct_node_get(map, "format"), "format: '%.64s' has no scale", text);
    scale->format = (oct_format)format;
    int64_t zero_point = 0;
    OCT_TRY(oct_node_int(document, map, "zero_point", format == OCT_FORMAT_UINT8, 0, 255, &zero_point));
    scale->zero_point = (uint8_t)zero_point;
    if (zero_point == 0 || format == OCT_FORMAT_UINT8) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "zero_point"), "zero_point: %s has none", text);
}

/* Granularity and scales, which must be as many as it says. */
static octet_status read_scales(oct_document *document, const oct_node *map, oct_scale *scale) {
    static const char *const words[] = {"tensor", "channel", "row", "block"};
    static const oct_granularity meaning[] = {OCT_PER_TENSOR, OCT_PER_CHANNEL, OCT_PER_ROW, OCT_PER_BLOCK};
    const bool own_blocks = scale->format == OCT_FORMAT_MXFP8 || scale->format == OCT_FORMAT_NVFP4;
    int index = 0;
    OCT_TRY(read_word(document, map, "granularity", words, 4, &index));
    scale->granularity = meaning[index];
    if (own_blocks ? index != 3 : (scale->format == OCT_FORMAT_UINT8 && index > 1))
        return oct_node_fail(document, oct_node_get(map, "granularity"), "granularity: %s has none a %s",
                             oct_format_name(scale->format), words[index]);
    OCT_TRY(read_floats(document, map, "scale", FLT_TRUE_MIN, &scale->scales, &scale->count));
    if (index == 1) return scale->count > 0 ? OCTET_OK : wrong_count(document, map, "scale", 0, "a scale a channel");
    const size_t wanted = index == 0 || scale->format == OCT_FORMAT_NVFP4;
    if (scale->count == wanted) return OCTET_OK;
    return wrong_count(document, map, "scale", scale->count, wanted == 1 ? "one" : "none: the values bring theirs");
}

static octet_status read_calibrator(const oct_document *document, const oct_node *map, oct_scale *scale) {
    const char *names[OCT_CALIBRATOR_COUNT];
    int index = 0;
    for (int i = 0; i < OCT_CALIBRATOR_COUNT; i++) names[i] = oct_calibrator_name((oct_calibrator)i);
    OCT_TRY(read_word(document, map, "calibrator", names, OCT_CALIBRATOR_COUNT, &index));
    scale->calibrator = (oct_calibrator)index;
    const bool needed = index == OCT_CALIBRATE_PERCENTILE;
    OCT_TRY(oct_node_real(document, map, "percentile", needed, &scale->percentile));
    if (!needed || (scale->percentile > 0 && scale->percentile <= 100)) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "percentile"), "percentile: expected above 0, at most 100");
}

/* What was seen of the values. */
static octet_status read_figures(oct_document *document, const oct_node *map, oct_scale *scale) {
    int64_t values = 0, not_finite = 0;
    OCT_TRY(read_float(document, map, "amax", &scale->amax));
    OCT_TRY(read_float(document, map, "threshold", &scale->threshold));
    OCT_TRY(oct_node_int(document, map, "values", true, 0, INT64_MAX, &values));
    OCT_TRY(oct_node_int(document, map, "not_finite", true, 0, values, &not_finite));
    scale->values = (uint64_t)values;
    scale->not_finite = (uint64_t)not_finite;
    if (scale->threshold > scale->amax)
        return oct_node_fail(document, oct_node_get(map, "threshold"), "threshold: above amax");
    scale->has_p9999 = oct_node_get(map, "p9999") != NULL;
    if (scale->has_p9999) OCT_TRY(read_float(document, map, "p9999", &scale->p9999));
    if (scale->p9999 > scale->amax) return oct_node_fail(document, oct_node_get(map, "p9999"), "p9999: above amax");
    if (oct_node_get(map, "channels") == NULL) return OCTET_OK;
    OCT_TRY(read_floats(document, map, "channels", 0, &scale->channels, &scale->channel_count));
    const bool fits =
        scale->channel_count > 0 && (scale->granularity != OCT_PER_CHANNEL || scale->channel_count == scale->count);
    return fits ? OCTET_OK : wrong_count(document, map, "channels", scale->channel_count, "a number a channel");
}

static octet_status read_scale(oct_document *document, const oct_node *map, oct_scale *scale) {
    static const char *const known[] = {"op",       "format", "granularity", "calibrator", "percentile",
                                        "scale",    "amax",   "zero_point",  "threshold",  "p9999",
                                        "channels", "values", "not_finite",  NULL};
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(oct_node_string(document, map, "op", true, &scale->op));
    OCT_TRY(read_format(document, map, scale));
    OCT_TRY(read_calibrator(document, map, scale));
    OCT_TRY(read_scales(document, map, scale));
    return read_figures(document, map, scale);
}

/* ---- what ops are adjusted by */

static octet_status read_vector(oct_document *document, const oct_node *map, bool factors, oct_op_vector *vector) {
    static const char *const known[] = {"op", "values", NULL};
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(oct_node_string(document, map, "op", true, &vector->op));
    OCT_TRY(
        read_floats(document, map, "values", factors ? OCT_FACTOR_LEAST : -FLT_MAX, &vector->values, &vector->count));
    for (size_t i = 0; factors && i < vector->count; i++) {
        if (vector->values[i] > OCT_FACTOR_MOST)
            return oct_node_fail(document, oct_node_get(map, "values"), "values: expected factors of at most %g",
                                 (double)OCT_FACTOR_MOST);
    }
    return vector->count > 0 ? OCTET_OK : wrong_count(document, map, "values", 0, "a number a channel");
}

static octet_status read_codes(oct_document *document, const oct_node *map, oct_op_weight *weight) {
    const char *text = NULL;
    OCT_TRY(oct_node_string(document, map, "codes", true, &text));
    const size_t length = strlen(text);
    weight->count = oct_base64_count(text, length);
    if (weight->count == 0 || weight->count > OCT_SCALES_WEIGHTS)
        return oct_node_fail(document, oct_node_get(map, "codes"), "codes: expected base64 of 1 to %zu bytes",
                             OCT_SCALES_WEIGHTS);
    uint8_t *codes = oct_arena_alloc(&document->arena, weight->count);
    if (codes == NULL) return oct_fail_memory();
    if (!oct_base64_read(text, length, codes))
        return oct_node_fail(document, oct_node_get(map, "codes"), "codes: expected base64");
    weight->codes = codes;
    return OCTET_OK;
}

/* A code that stands for no number: NaN and infinities, and int8's -128, which no rounding makes. */
static bool is_no_number(oct_format format, uint8_t code) {
    switch (format) {
    case OCT_FORMAT_E4M3:
        return (code & 0x7f) == 0x7f;
    case OCT_FORMAT_E5M2:
        return (code & 0x7f) >= 0x7c;
    default:
        return code == 0x80;
    }
}

static octet_status read_weight(oct_document *document, const oct_node *map, oct_op_weight *weight) {
    static const char *const known[] = {"op", "format", "granularity", "scale", "codes", NULL};
    static const char *const formats[] = {"e4m3", "e5m2", "int8"}, *const granularities[] = {"tensor", "channel"};
    int format = 0, granularity = 0;
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(oct_node_string(document, map, "op", true, &weight->op));
    OCT_TRY(read_word(document, map, "format", formats, 3, &format));
    OCT_TRY(read_word(document, map, "granularity", granularities, 2, &granularity));
    OCT_TRY(read_floats(document, map, "scale", FLT_TRUE_MIN, &weight->scales, &weight->scale_count));
    OCT_TRY(read_codes(document, map, weight));
    weight->format = (oct_format)oct_format_by_name(formats[format]);
    weight->granularity = granularity == 0 ? OCT_PER_TENSOR : OCT_PER_CHANNEL;
    if (granularity == 0 ? weight->scale_count != 1
                         : weight->scale_count == 0 || weight->count % weight->scale_count != 0)
        return wrong_count(document, map, "scale", weight->scale_count, granularity == 0 ? "one" : "one a channel");
    for (size_t i = 0; i < weight->count; i++) {
        if (is_no_number(weight->format, weight->codes[i]))
            return oct_node_fail(document, oct_node_get(map, "codes"), "codes: code %zu, 0x%02x, is no %s number", i,
                                 weight->codes[i], formats[format]);
    }
    return OCTET_OK;
}

/* ---- the whole */

/* A list of maps at `key`, at most OCT_SCALES_TENSORS; absent is none unless required. */
static octet_status read_list(const oct_document *document, const char *key, bool required, const oct_node **list) {
    *list = oct_node_get(document->root, key);
    if (*list == NULL && !required) return OCTET_OK;
    if (*list != NULL && (*list)->kind == OCT_NODE_LIST && (*list)->count <= OCT_SCALES_TENSORS) return OCTET_OK;
    return oct_node_fail(document, *list != NULL ? *list : document->root, "%s: expected a list, of at most %d", key,
                         OCT_SCALES_TENSORS);
}

static octet_status twice(const oct_document *document, const oct_node *map, const char *op) {
    return oct_node_fail(document, map, "op: %s is there twice", op);
}

static octet_status read_entries(oct_scale_file *file) {
    oct_document *document = &file->document;
    const oct_node *list = NULL;
    OCT_TRY(read_list(document, "scales", true, &list));
    oct_scale *scales = oct_arena_alloc(&document->arena, (list->count + 1) * sizeof *scales);
    if (scales == NULL) return oct_fail_memory();
    file->scales = scales;
    for (size_t i = 0; i < list->count; i++) {
        OCT_TRY(read_scale(document, list->items[i], &scales[i]));
        if (oct_scale_file_find(file, scales[i].op) != NULL) return twice(document, list->items[i], scales[i].op);
        file->count++;
    }
    return OCTET_OK;
}

static octet_status read_vectors(oct_scale_file *file, const char *key, bool factors, const oct_op_vector **vectors,
                                 size_t *count) {
    oct_document *document = &file->document;
    const oct_node *list = NULL;
    OCT_TRY(read_list(document, key, false, &list));
    if (list == NULL) return OCTET_OK;
    oct_op_vector *own = oct_arena_alloc(&document->arena, (list->count + 1) * sizeof *own);
    if (own == NULL) return oct_fail_memory();
    *vectors = own;
    for (size_t i = 0; i < list->count; i++) {
        OCT_TRY(read_vector(document, list->items[i], factors, &own[i]));
        for (size_t j = 0; j < i; j++)
            if (strcmp(own[j].op, own[i].op) == 0) return twice(document, list->items[i], own[i].op);
        ++*count;
    }
    return OCTET_OK;
}

static octet_status read_weights(oct_scale_file *file) {
    oct_document *document = &file->document;
    const oct_node *list = NULL;
    OCT_TRY(read_list(document, "weights_rounded", false, &list));
    if (list == NULL) return OCTET_OK;
    oct_op_weight *weights = oct_arena_alloc(&document->arena, (list->count + 1) * sizeof *weights);
    if (weights == NULL) return oct_fail_memory();
    file->rounded = weights;
    for (size_t i = 0; i < list->count; i++) {
        OCT_TRY(read_weight(document, list->items[i], &weights[i]));
        if (oct_scale_file_weight(file, weights[i].op) != NULL) return twice(document, list->items[i], weights[i].op);
        file->rounded_count++;
    }
    return OCTET_OK;
}

static octet_status read_all(oct_scale_file *file) {
    static const char *const known[] = {
        "octet_scales", "model",           "configuration", "weights",   "preprocessing", "data", "recipe",
        "pictures",     "weights_rounded", "scales",        "smoothing", "bias",          NULL};
    oct_document *document = &file->document;
    const oct_node *root = document->root;
    int64_t version = 0;
    OCT_TRY(oct_node_int(document, root, "octet_scales", true, OCT_SCALES_VERSION, OCT_SCALES_VERSION, &version));
    OCT_TRY(oct_node_known_keys(document, root, known));
    OCT_TRY(oct_node_string(document, root, "model", true, &file->keys.model));
    OCT_TRY(read_hash(document, "configuration", &file->keys.configuration));
    OCT_TRY(read_hash(document, "weights", &file->keys.weights));
    OCT_TRY(read_hash(document, "preprocessing", &file->keys.preprocessing));
    OCT_TRY(read_hash(document, "data", &file->keys.data));
    OCT_TRY(oct_node_int(document, root, "pictures", true, 0, INT64_MAX, &file->pictures));
    OCT_TRY(oct_node_string(document, root, "recipe", true, &file->recipe));
    OCT_TRY(read_entries(file));
    OCT_TRY(read_vectors(file, "smoothing", true, &file->smoothing, &file->smoothing_count));
    OCT_TRY(read_vectors(file, "bias", false, &file->bias, &file->bias_count));
    return read_weights(file);
}

octet_status oct_scale_file_read(oct_scale_file *file, const char *path) {
    *file = (oct_scale_file){0};
    uint8_t *data = NULL;
    size_t size = 0;
    OCT_TRY(oct_file_read(path, OCT_DOCUMENT_LIMIT, &data, &size));
    octet_status status = oct_scale_file_parse(file, path, (const char *)data, size);
    oct_free(data);
    return status;
}

octet_status oct_scale_file_parse(oct_scale_file *file, const char *name, const char *text, size_t length) {
    *file = (oct_scale_file){0};
    OCT_TRY(oct_document_parse_json(&file->document, name, text, length));
    const octet_status status = read_all(file);
    if (status != OCTET_OK) oct_scale_file_free(file);
    return status;
}
