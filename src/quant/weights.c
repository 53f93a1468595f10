/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/weights.h"

#include <string.h>

#include "base/alloc.h"

size_t oct_weight_groups(const oct_recipe_numbers *numbers, const oct_product *product) {
    return numbers->granularity == OCT_PER_CHANNEL ? (size_t)product->outputs : 1;
}

static octet_status calibrate_group(const oct_recipe_numbers *numbers, const char *name, const float *values,
                                    size_t count, float *scale) {
    oct_histogram *histogram = NULL;
    oct_calibration calibration;
    uint8_t zero_point;
    OCT_TRY(oct_histogram_new(&histogram));
    oct_histogram_add(histogram, values, count);
    const octet_status status =
        oct_calibrate(histogram, name, numbers->calibrator, numbers->percentile, numbers->format, &calibration);
    oct_histogram_free(histogram);
    OCT_TRY(status);
    oct_calibration_scale(&calibration, numbers->format, scale, &zero_point);
    return OCTET_OK;
}

octet_status oct_weight_scales(const oct_recipe_numbers *numbers, const char *name, const oct_product *product,
                               const float *weight, float *scales) {
    const size_t groups = oct_weight_groups(numbers, product), count = product->count / groups;
    for (size_t g = 0; g < groups; g++) {
        const float *values = weight + g * count;
        if (numbers->calibrator == OCT_CALIBRATE_MAX)
            scales[g] = oct_format_scale(numbers->format, oct_amax_finite(values, count));
        else
            OCT_TRY(calibrate_group(numbers, name, values, count, &scales[g]));
    }
    return OCTET_OK;
}

/* Formats whose blocks bring their scales: an output's weights, a row. */
static void round_blocks(const oct_recipe_numbers *numbers, float tensor_scale, float *row, size_t count) {
    uint8_t scale, codes[OCT_MXFP8_BLOCK];
    const size_t block = numbers->format == OCT_FORMAT_MXFP8 ? OCT_MXFP8_BLOCK : OCT_NVFP4_BLOCK;
    for (size_t i = 0; i < count; i += block) {
        const size_t some = count - i < block ? count - i : block;
        if (numbers->format == OCT_FORMAT_MXFP8) {
            oct_mxfp8_encode(row + i, some, numbers->scale_rule, &scale, codes);
            oct_mxfp8_decode(&scale, codes, some, row + i);
        } else {
            oct_nvfp4_encode(row + i, some, tensor_scale, &scale, codes);
            oct_nvfp4_decode(&scale, codes, some, tensor_scale, row + i);
        }
    }
}

static octet_status round_scaled(const oct_recipe_numbers *numbers, const char *name, const oct_product *product,
                                 const float *weight, float *rounded) {
    const bool blocks = numbers->granularity == OCT_PER_BLOCK;
    const size_t rows = blocks ? (size_t)product->outputs : oct_weight_groups(numbers, product);
    const size_t columns = product->count / rows;
    const size_t block = blocks && (size_t)numbers->block < columns ? (size_t)numbers->block : columns;
    float *scales = oct_calloc(oct_scaled_groups(rows, columns, block) + 1, sizeof *scales);
    uint8_t *codes = oct_alloc(product->count);
    octet_status status = scales == NULL || codes == NULL ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK && blocks) oct_scaled_scales(numbers->format, weight, rows, columns, block, scales);
    if (status == OCTET_OK && !blocks) status = oct_weight_scales(numbers, name, product, weight, scales);
    if (status == OCTET_OK) {
        oct_scaled_encode(numbers->format, weight, rows, columns, block, scales, codes);
        oct_scaled_decode(numbers->format, codes, rows, columns, block, scales, rounded);
    }
    oct_free(codes);
    oct_free(scales);
    return status;
}

octet_status oct_weight_round(const oct_recipe_numbers *numbers, const char *name, const oct_product *product,
                              const float *weight, float *rounded) {
    const size_t row = product->count / (size_t)product->outputs;
    if (numbers->is_set && oct_format_has_scale(numbers->format))
        return round_scaled(numbers, name, product, weight, rounded);
    memcpy(rounded, weight, product->count * sizeof *rounded);
    if (!numbers->is_set) return OCTET_OK;
    if (oct_format_get(numbers->format)->block > 1) {
        const float amax = oct_amax_finite(weight, product->count);
        const float scale = amax > 0 ? oct_nvfp4_tensor_scale(amax) : 1;
        for (int64_t o = 0; o < product->outputs; o++) round_blocks(numbers, scale, rounded + (size_t)o * row, row);
        return OCTET_OK;
    }
    for (size_t i = 0; i < product->count; i++) rounded[i] = oct_format_round(numbers->format, weight[i]);
    return OCTET_OK;
}
