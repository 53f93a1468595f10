/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the scale file: the same entries give the same bytes. */
#include "base/file.h"
#include "quant/base64.h"
#include "quant/scales.h"

static void put_text(oct_text *text, const char *before, const char *value) {
    oct_text_puts(text, before);
    oct_text_json(text, value);
}

static void put_float(oct_text *text, const char *before, float value) {
    char number[32];
    oct_text_printf(text, "%s%s", before, oct_format_double((double)value, number));
}

static void put_floats(oct_text *text, const char *key, const float *values, size_t count) {
    oct_text_printf(text, ", \"%s\": [", key);
    for (size_t i = 0; i < count; i++) put_float(text, i > 0 ? ", " : "", values[i]);
    oct_text_puts(text, "]");
}

static void put_format(oct_text *text, oct_format format, oct_granularity granularity) {
    static const char *const granularities[] = {"tensor", "channel", "row", "block"};
    oct_text_printf(text, ", \"format\": \"%s\", \"granularity\": \"%s\"", oct_format_name(format),
                    (unsigned)granularity <= OCT_PER_BLOCK ? granularities[granularity] : "");
}

static void put_scale(oct_text *text, const oct_scale *scale) {
    char number[32];
    put_text(text, "  {\"op\": ", scale->op);
    put_format(text, scale->format, scale->granularity);
    oct_text_printf(text, ", \"calibrator\": \"%s\"", oct_calibrator_name(scale->calibrator));
    if (scale->calibrator == OCT_CALIBRATE_PERCENTILE)
        oct_text_printf(text, ", \"percentile\": %s", oct_format_double(scale->percentile, number));
    put_floats(text, "scale", scale->scales, scale->count);
    if (scale->format == OCT_FORMAT_UINT8) oct_text_printf(text, ", \"zero_point\": %d", (int)scale->zero_point);
    put_float(text, ", \"amax\": ", scale->amax);
    put_float(text, ", \"threshold\": ", scale->threshold);
    if (scale->has_p9999) put_float(text, ", \"p9999\": ", scale->p9999);
    if (scale->channels != NULL) put_floats(text, "channels", scale->channels, scale->channel_count);
    oct_text_printf(text, ", \"values\": %llu, \"not_finite\": %llu}", (unsigned long long)scale->values,
                    (unsigned long long)scale->not_finite);
}

static void put_vectors(oct_text *text, const char *key, const oct_op_vector *vectors, size_t count) {
    if (count == 0) return;
    oct_text_printf(text, ",\n \"%s\": [\n", key);
    for (size_t i = 0; i < count; i++) {
        put_text(text, "  {\"op\": ", vectors[i].op);
        put_floats(text, "values", vectors[i].values, vectors[i].count);
        oct_text_puts(text, i + 1 < count ? "},\n" : "}\n ]");
    }
}

static void put_weights(oct_text *text, const oct_scale_file *file) {
    if (file->rounded_count == 0) return;
    oct_text_puts(text, ",\n \"weights_rounded\": [\n");
    for (size_t i = 0; i < file->rounded_count; i++) {
        const oct_op_weight *weight = &file->rounded[i];
        put_text(text, "  {\"op\": ", weight->op);
        put_format(text, weight->format, weight->granularity);
        put_floats(text, "scale", weight->scales, weight->scale_count);
        oct_text_puts(text, ", \"codes\": \"");
        oct_base64_write(text, weight->codes, weight->count);
        oct_text_puts(text, i + 1 < file->rounded_count ? "\"},\n" : "\"}\n ]");
    }
}

static void put_file(oct_text *text, const oct_scale_file *file) {
    oct_text_printf(text, "{\"octet_scales\": %d,\n", OCT_SCALES_VERSION);
    put_text(text, " \"model\": ", file->keys.model);
    put_text(text, ",\n \"configuration\": ", file->keys.configuration);
    put_text(text, ",\n \"weights\": ", file->keys.weights);
    put_text(text, ",\n \"preprocessing\": ", file->keys.preprocessing);
    put_text(text, ",\n \"data\": ", file->keys.data);
    oct_text_printf(text, ",\n \"pictures\": %lld", (long long)file->pictures);
    put_text(text, ",\n \"recipe\": ", file->recipe);
    oct_text_puts(text, ",\n \"scales\": [\n");
    for (size_t i = 0; i < file->count; i++) {
        put_scale(text, &file->scales[i]);
        oct_text_puts(text, i + 1 < file->count ? ",\n" : "\n");
    }
    oct_text_puts(text, " ]");
    put_vectors(text, "smoothing", file->smoothing, file->smoothing_count);
    put_vectors(text, "bias", file->bias, file->bias_count);
    put_weights(text, file);
    oct_text_puts(text, "}\n");
}

octet_status oct_scale_file_write(const oct_scale_file *file, const char *path) {
    oct_text text = {0};
    put_file(&text, file);
    octet_status status = text.failed ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK && text.length > OCT_DOCUMENT_LIMIT)
        status = oct_fail(OCTET_UNSUPPORTED, "%s: expected at most %zu bytes of scales, found %zu", path,
                          OCT_DOCUMENT_LIMIT, text.length);
    oct_scale_file again = {0};
    if (status == OCTET_OK) status = oct_scale_file_parse(&again, path, text.data, text.length);
    if (status == OCTET_OK) status = oct_file_write(path, text.data, text.length);
    oct_scale_file_free(&again);
    oct_text_free(&text);
    return status;
}
