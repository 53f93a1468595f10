/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/scales.h"

#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

#define VERSION 1

static const char *const granularities[] = {"tensor", "channel"};

/* ---- reading */

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

/* A number as the float it was written from: finite, at least `least`. */
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

static octet_status read_values(oct_document *document, const oct_node *map, oct_scale *scale) {
    const oct_node *list = oct_node_get(map, "scale");
    if (list == NULL || list->kind != OCT_NODE_LIST || list->count == 0)
        return oct_node_fail(document, list != NULL ? list : map, "scale: expected a list of numbers");
    if (list->count > OCT_SCALES_CHANNELS || (scale->granularity == OCT_PER_TENSOR && list->count != 1))
        return oct_node_fail(document, list, "scale: %zu scales for one %s", list->count,
                             scale->granularity == OCT_PER_TENSOR ? "tensor" : "op");
    float *values = oct_arena_alloc(&document->arena, list->count * sizeof *values);
    if (values == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++)
        OCT_TRY(to_float(document, list->items[i], "scale", 0x1p-149f, &values[i]));
    scale->scales = values;
    scale->count = list->count;
    return OCTET_OK;
}

static octet_status read_format(const oct_document *document, const oct_node *map, oct_scale *scale) {
    const char *text = NULL;
    OCT_TRY(oct_node_string(document, map, "format", true, &text));
    const int format = oct_format_by_name(text);
    if (format < 0 || (!oct_format_has_scale((oct_format)format) && format != OCT_FORMAT_UINT8))
        return oct_node_fail(document, oct_node_get(map, "format"), "format: '%.64s' has no static scale", text);
    scale->format = (oct_format)format;
    int64_t zero_point = 0;
    OCT_TRY(oct_node_int(document, map, "zero_point", format == OCT_FORMAT_UINT8, 0, 255, &zero_point));
    scale->zero_point = (uint8_t)zero_point;
    if (zero_point == 0 || format == OCT_FORMAT_UINT8) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "zero_point"), "zero_point: %s has none", text);
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

static octet_status read_scale(oct_document *document, const oct_node *map, oct_scale *scale) {
    static const char *const known[] = {"op",         "format", "granularity", "calibrator", "percentile", "scale",
                                        "zero_point", "amax",   "threshold",   "values",     "not_finite", NULL};
    int granularity = 0;
    int64_t values = 0, not_finite = 0;
    OCT_TRY(oct_node_known_keys(document, map, known));
    OCT_TRY(oct_node_string(document, map, "op", true, &scale->op));
    OCT_TRY(read_format(document, map, scale));
    OCT_TRY(read_word(document, map, "granularity", granularities, 2, &granularity));
    scale->granularity = granularity == 0 ? OCT_PER_TENSOR : OCT_PER_CHANNEL;
    OCT_TRY(read_calibrator(document, map, scale));
    OCT_TRY(read_values(document, map, scale));
    OCT_TRY(read_float(document, map, "amax", &scale->amax));
    OCT_TRY(read_float(document, map, "threshold", &scale->threshold));
    OCT_TRY(oct_node_int(document, map, "values", true, 0, INT64_MAX, &values));
    OCT_TRY(oct_node_int(document, map, "not_finite", true, 0, values, &not_finite));
    scale->values = (uint64_t)values;
    scale->not_finite = (uint64_t)not_finite;
    if (scale->threshold <= scale->amax) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "threshold"), "threshold: above amax");
}

static octet_status read_all(oct_scale_file *file) {
    static const char *const known[] = {"octet_scales", "model",    "configuration", "weights", "preprocessing",
                                        "data",         "pictures", "recipe",        "scales",  NULL};
    oct_document *document = &file->document;
    const oct_node *root = document->root;
    int64_t version = 0;
    OCT_TRY(oct_node_int(document, root, "octet_scales", true, VERSION, VERSION, &version));
    OCT_TRY(oct_node_known_keys(document, root, known));
    OCT_TRY(oct_node_string(document, root, "model", true, &file->keys.model));
    OCT_TRY(read_hash(document, "configuration", &file->keys.configuration));
    OCT_TRY(read_hash(document, "weights", &file->keys.weights));
    OCT_TRY(read_hash(document, "preprocessing", &file->keys.preprocessing));
    OCT_TRY(read_hash(document, "data", &file->keys.data));
    OCT_TRY(oct_node_int(document, root, "pictures", true, 0, INT64_MAX, &file->pictures));
    OCT_TRY(oct_node_string(document, root, "recipe", true, &file->recipe));
    const oct_node *list = oct_node_get(root, "scales");
    if (list == NULL || list->kind != OCT_NODE_LIST || list->count > OCT_SCALES_TENSORS)
        return oct_node_fail(document, list != NULL ? list : root, "scales: expected a list, of at most %d",
                             OCT_SCALES_TENSORS);
    oct_scale *scales = oct_arena_alloc(&document->arena, (list->count + 1) * sizeof *scales);
    if (scales == NULL) return oct_fail_memory();
    file->scales = scales;
    for (size_t i = 0; i < list->count; i++) {
        OCT_TRY(read_scale(document, list->items[i], &scales[i]));
        if (oct_scale_file_find(file, scales[i].op) != NULL)
            return oct_node_fail(document, list->items[i], "op: %s is there twice", scales[i].op);
        file->count++;
    }
    return OCTET_OK;
}

static octet_status finish(oct_scale_file *file) {
    octet_status status = read_all(file);
    if (status != OCTET_OK) oct_scale_file_free(file);
    return status;
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
    return finish(file);
}

void oct_scale_file_free(oct_scale_file *file) {
    oct_document_free(&file->document);
    *file = (oct_scale_file){0};
}

/* ---- writing */

static void put_text(oct_text *text, const char *before, const char *value) {
    oct_text_puts(text, before);
    oct_text_json(text, value);
}

static void put_scale(oct_text *text, const oct_scale *scale) {
    char number[32];
    put_text(text, "  {\"op\": ", scale->op);
    oct_text_printf(text, ", \"format\": \"%s\", \"granularity\": \"%s\", \"calibrator\": \"%s\"",
                    oct_format_name(scale->format), granularities[scale->granularity == OCT_PER_CHANNEL],
                    oct_calibrator_name(scale->calibrator));
    if (scale->calibrator == OCT_CALIBRATE_PERCENTILE)
        oct_text_printf(text, ", \"percentile\": %s", oct_format_double(scale->percentile, number));
    oct_text_puts(text, ", \"scale\": [");
    for (size_t i = 0; i < scale->count; i++)
        oct_text_printf(text, "%s%s", i > 0 ? ", " : "", oct_format_double((double)scale->scales[i], number));
    oct_text_puts(text, "]");
    if (scale->format == OCT_FORMAT_UINT8) oct_text_printf(text, ", \"zero_point\": %d", (int)scale->zero_point);
    oct_text_printf(text, ", \"amax\": %s", oct_format_double((double)scale->amax, number));
    oct_text_printf(text, ", \"threshold\": %s", oct_format_double((double)scale->threshold, number));
    oct_text_printf(text, ", \"values\": %llu, \"not_finite\": %llu}", (unsigned long long)scale->values,
                    (unsigned long long)scale->not_finite);
}

octet_status oct_scale_file_write(const oct_scale_file *file, const char *path) {
    oct_text text = {0};
    oct_text_printf(&text, "{\"octet_scales\": %d,\n", VERSION);
    put_text(&text, " \"model\": ", file->keys.model);
    put_text(&text, ",\n \"configuration\": ", file->keys.configuration);
    put_text(&text, ",\n \"weights\": ", file->keys.weights);
    put_text(&text, ",\n \"preprocessing\": ", file->keys.preprocessing);
    put_text(&text, ",\n \"data\": ", file->keys.data);
    oct_text_printf(&text, ",\n \"pictures\": %lld", (long long)file->pictures);
    put_text(&text, ",\n \"recipe\": ", file->recipe);
    oct_text_puts(&text, ",\n \"scales\": [\n");
    for (size_t i = 0; i < file->count; i++) {
        put_scale(&text, &file->scales[i]);
        oct_text_puts(&text, i + 1 < file->count ? ",\n" : "\n");
    }
    oct_text_puts(&text, " ]}\n");
    octet_status status = text.failed ? oct_fail_memory() : OCTET_OK;
    oct_scale_file again = {0};
    if (status == OCTET_OK) status = oct_scale_file_parse(&again, path, text.data, text.length);
    if (status == OCTET_OK) status = oct_file_write(path, text.data, text.length);
    oct_scale_file_free(&again);
    oct_text_free(&text);
    return status;
}

/* ---- use */

octet_status oct_scale_file_check(const oct_scale_file *file, const oct_scale_keys *expected) {
    const oct_scale_keys *found = &file->keys;
    const struct {
        const char *key, *expected, *found, *hint;
    } keys[] = {
        {"model", expected->model, found->model, "the scales are another model's"},
        {"configuration", expected->configuration, found->configuration, "config.json has changed: calibrate again"},
        {"weights", expected->weights, found->weights, "the scales are of other weights: calibrate again"},
        {"preprocessing", expected->preprocessing, found->preprocessing,
         "pictures are prepared in another way than for calibration: calibrate again"},
        {"data", expected->data, found->data, "the scales come from another calibration set"},
    };
    const char *path = file->document.path != NULL ? file->document.path : "scales";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].expected == NULL || strcmp(keys[i].expected, keys[i].found) == 0) continue;
        (void)oct_fail(OCTET_MISMATCH, "%s: %s: expected %s, found %s", path, keys[i].key, keys[i].expected,
                       keys[i].found);
        return oct_hint("%s", keys[i].hint);
    }
    return OCTET_OK;
}

const oct_scale *oct_scale_file_find(const oct_scale_file *file, const char *op) {
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->scales[i].op, op) == 0) return &file->scales[i];
    }
    return NULL;
}
