/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/smooth.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/stored.h"
#include "quant/inputs.h"
#include "quant/rows.h"
#include "quant/weights.h"

#define STEPS 10      /* of the exponent */
#define CLAMP 0x1p20f /* the most that a factor moves anything */

octet_status oct_smooth_factors(const oct_smooth_reader *readers, size_t count, const float *amax, size_t channels,
                                double exponent, float *factors) {
    float *column = oct_calloc(channels + 1, sizeof *column), *largest = oct_calloc(channels + 1, sizeof *largest);
    const octet_status status = column == NULL || largest == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t r = 0; r < count && status == OCTET_OK; r++) {
        oct_product_column_amax(&readers[r].product, readers[r].weight, column);
        for (size_t c = 0; c < channels; c++) largest[c] = fmaxf(largest[c], column[c]);
    }
    for (size_t c = 0; c < channels && status == OCTET_OK; c++) {
        factors[c] = 1;
        if (exponent < 0 || !(amax[c] > 0) || !(largest[c] > 0)) continue;
        const double factor = pow((double)largest[c], 1 - exponent) / pow((double)amax[c], exponent);
        factors[c] = fminf(fmaxf((float)factor, 1 / CLAMP), CLAMP);
    }
    oct_free(largest);
    oct_free(column);
    return status;
}

/* ---- searching */

/* Memory of a search, for the largest reader. */
typedef struct search {
    const float *amax, *rows;
    size_t channels, row_count;
    float *factors, *smoothed, *rounded_rows, *scales; /* [channels], [rows][channels] twice, [channels] */
    float *weight, *rounded_weight;
} search;

/* How a reader rounds its input once that is smoothed. */
static oct_form form_of(const search *s, const oct_recipe_numbers *numbers) {
    float largest = 0;
    for (size_t c = 0; c < s->channels; c++) {
        const float amax = s->amax[c] * s->factors[c];
        largest = fmaxf(largest, amax);
        s->scales[c] = oct_quant_channel_scale(numbers->format, amax);
    }
    oct_quantize_numbers n = {.format = numbers->format,
                              .granularity = numbers->granularity,
                              .block = numbers->block,
                              .scale_rule = numbers->scale_rule,
                              .scale = 1};
    if (numbers->format == OCT_FORMAT_NVFP4)
        n.scale = largest > 0 ? oct_nvfp4_tensor_scale(largest) : 1;
    else if (oct_quant_is_static(numbers))
        n.scale = oct_quant_channel_scale(numbers->format, largest);
    if (numbers->format == OCT_FORMAT_UINT8) n.zero_point = 128;
    return oct_rows_form(&n);
}

static float dot(const float *a, const float *b, size_t count) {
    float sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t l = 0; l < 8; l++) sums[l] += a[i + l] * b[i + l];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

/* Squared error of one reader's outputs, the factors given. */
static octet_status add_error(const search *s, const oct_smooth_reader *reader, double *error) {
    const oct_recipe_numbers *activations = &reader->choice->activations;
    memcpy(s->weight, reader->weight, reader->product.count * sizeof(float));
    oct_product_divide_columns(&reader->product, s->weight, s->factors);
    OCT_TRY(oct_weight_round(&reader->choice->weights, reader->name, &reader->product, s->weight, s->rounded_weight));
    for (size_t i = 0; i < s->row_count * s->channels; i++) s->smoothed[i] = s->rows[i] * s->factors[i % s->channels];
    memcpy(s->rounded_rows, s->smoothed, s->row_count * s->channels * sizeof(float));
    if (activations->is_set) {
        const oct_form form = form_of(s, activations);
        const oct_rounding rounding = {.form = &form, .scales = s->scales};
        oct_stored_round(&rounding, (int64_t)s->row_count, (int64_t)s->channels, s->smoothed, s->rounded_rows, NULL,
                         NULL);
    }
    for (size_t r = 0; r < s->row_count; r++) {
        for (int64_t o = 0; o < reader->product.outputs; o++) {
            const size_t row = r * s->channels, column = (size_t)o * s->channels;
            const float wanted = dot(s->rows + row, reader->weight + column, s->channels);
            const double off = (double)(dot(s->rounded_rows + row, s->rounded_weight + column, s->channels) - wanted);
            *error += off * off;
        }
    }
    return OCTET_OK;
}

static octet_status search_exponents(const search *s, const oct_smooth_reader *readers, size_t count,
                                     double *exponent) {
    double least = INFINITY;
    *exponent = OCT_SMOOTH_NOT;
    for (int step = -1; step <= STEPS; step++) {
        double error = 0;
        const double tried = step < 0 ? OCT_SMOOTH_NOT : (double)step / STEPS;
        OCT_TRY(oct_smooth_factors(readers, count, s->amax, s->channels, tried, s->factors));
        for (size_t r = 0; r < count; r++) OCT_TRY(add_error(s, &readers[r], &error));
        if (!(error < least)) continue;
        least = error;
        *exponent = tried;
    }
    return OCTET_OK;
}

octet_status oct_smooth_search(const oct_smooth_reader *readers, size_t count, const float *amax, size_t channels,
                               const float *rows, size_t row_count, double *exponent) {
    size_t most = 0;
    for (size_t r = 0; r < count; r++) most = readers[r].product.count > most ? readers[r].product.count : most;
    if (row_count == 0) return oct_fail(OCTET_MISMATCH, "%s: smoothing: no picture was seen", readers[0].name);
    const size_t rows_size = row_count * channels;
    float *memory = oct_calloc(2 * channels + 2 * rows_size + 2 * most + 1, sizeof *memory);
    if (memory == NULL) return oct_fail_memory();
    search s = {.amax = amax, .rows = rows, .channels = channels, .row_count = row_count, .factors = memory};
    s.scales = s.factors + channels;
    s.smoothed = s.scales + channels;
    s.rounded_rows = s.smoothed + rows_size;
    s.weight = s.rounded_rows + rows_size;
    s.rounded_weight = s.weight + most;
    const octet_status status = search_exponents(&s, readers, count, exponent);
    oct_free(memory);
    return status;
}
