/* SPDX-License-Identifier: Apache-2.0 */
/* Scale files from any bytes: what is read has scales that are positive and finite, and is found by its names. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/scales.h"

static void require(int condition) {
    if (!condition) abort();
}

static int is_number(oct_format format, uint8_t code) {
    if (format == OCT_FORMAT_INT8) return (int8_t)code != -128;
    return isfinite(format == OCT_FORMAT_E4M3 ? oct_e4m3_decode(code) : oct_e5m2_decode(code)) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t live = oct_alloc_live();
    oct_scale_file file;
    if (oct_scale_file_parse(&file, "fuzz", (const char *)data, size) == OCTET_OK) {
        for (size_t i = 0; i < file.count; i++) {
            const oct_scale *scale = &file.scales[i];
            require(scale->threshold >= 0 && scale->threshold <= scale->amax && scale->p9999 <= scale->amax);
            require(scale->count > 0 || scale->granularity == OCT_PER_ROW || scale->granularity == OCT_PER_BLOCK);
            require(scale->channels == NULL || scale->channel_count > 0);
            for (size_t s = 0; s < scale->count; s++) require(scale->scales[s] > 0 && scale->scales[s] <= FLT_MAX);
            require(oct_scale_file_find(&file, scale->op) == scale);
        }
        for (size_t i = 0; i < file.smoothing_count; i++) {
            const oct_op_vector *factors = &file.smoothing[i];
            require(oct_scale_file_smoothing(&file, factors->op) == factors && factors->count > 0);
            for (size_t c = 0; c < factors->count; c++) require(factors->values[c] > 0);
        }
        for (size_t i = 0; i < file.bias_count; i++)
            require(oct_scale_file_bias(&file, file.bias[i].op) == &file.bias[i] && file.bias[i].count > 0);
        for (size_t i = 0; i < file.rounded_count; i++) {
            const oct_op_weight *weight = &file.rounded[i];
            require(oct_scale_file_weight(&file, weight->op) == weight && weight->count % weight->scale_count == 0);
            for (size_t c = 0; c < weight->count; c++) require(is_number(weight->format, weight->codes[c]));
        }
        require(oct_scale_file_check(&file, &file.keys) == OCTET_OK);
    } else {
        require(file.scales == NULL && strncmp(oct_error_fact(), "fuzz:", 5) == 0);
    }
    oct_scale_file_free(&file);
    require(oct_alloc_live() == live);
    return 0;
}
