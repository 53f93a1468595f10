/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define SHIFT (23 - OCT_HISTOGRAM_MANTISSA)
#define INFINITE 0x7f800000u
#define MAGNITUDE 0x7fffffffu
#define LANES 8
#define CHUNK 2048 /* values between the two loops: they stay in the first cache */

octet_status oct_histogram_new(oct_histogram **histogram) {
    *histogram = oct_calloc(1, sizeof **histogram);
    if (*histogram == NULL) return oct_fail_memory();
    (*histogram)->min = FLT_MAX;
    (*histogram)->max = -FLT_MAX;
    return OCTET_OK;
}

void oct_histogram_free(oct_histogram *histogram) {
    oct_free(histogram);
}

static inline uint32_t bits_of(const float *value) {
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits;
}

/* The same where something is not finite: seldom. */
static void add_not_finite(oct_histogram *histogram, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const float x = values[i];
        if (isnan(x)) {
            histogram->nans++;
        } else if (isinf(x)) {
            histogram->infinities++;
        } else {
            histogram->min = x < histogram->min ? x + 0.0f : histogram->min;
            histogram->max = x > histogram->max ? x + 0.0f : histogram->max;
        }
    }
}

/* Extremes and what is counted apart, in LANES at a time so that compilers use vector registers. */
static void add_summary(oct_histogram *histogram, const float *values, size_t count) {
    float low[LANES], high[LANES];
    uint32_t zeros[LANES] = {0}, beyond[LANES] = {0};
    for (size_t j = 0; j < LANES; j++) {
        low[j] = histogram->min;
        high[j] = histogram->max;
    }
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            const float x = values[i + j];
            low[j] = x < low[j] ? x : low[j]; /* NaN compares false */
            high[j] = x > high[j] ? x : high[j];
            zeros[j] += x == 0;
            beyond[j] += !(fabsf(x) <= FLT_MAX);
        }
    }
    for (; i < count; i++) {
        const float x = values[i];
        low[0] = x < low[0] ? x : low[0];
        high[0] = x > high[0] ? x : high[0];
        zeros[0] += x == 0;
        beyond[0] += !(fabsf(x) <= FLT_MAX);
    }
    uint64_t bad = 0;
    histogram->count += count;
    for (size_t j = 0; j < LANES; j++) {
        histogram->zeros += zeros[j];
        bad += beyond[j];
    }
    if (bad > 0) {
        add_not_finite(histogram, values, count);
        return;
    }
    for (size_t j = 0; j < LANES; j++) {
        histogram->min = low[j] < histogram->min ? low[j] + 0.0f : histogram->min; /* -0 becomes 0 */
        histogram->max = high[j] > histogram->max ? high[j] + 0.0f : histogram->max;
    }
}

/* Without branches: signs and zeros come in no order that a processor could guess. What is in no bin goes aside, to
 * several cells in turn, so that a run of zeros does not wait for itself. */
static void add_bins(oct_histogram *histogram, const float *values, size_t count) {
    uint64_t *cells = histogram->cells;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(&values[i]), magnitude = bits & MAGNITUDE;
        uint32_t bin = (magnitude >> SHIFT) + (bits >> 31) * OCT_HISTOGRAM_BINS;
        uint32_t aside = 2 * OCT_HISTOGRAM_BINS + ((uint32_t)i & (OCT_HISTOGRAM_ASIDE - 1));
        /* 0 - 1 wraps: neither zero nor beyond the largest finite value */
        uint32_t mask = 0u - (uint32_t)(magnitude - 1u >= INFINITE - 1u);
        cells[bin ^ ((bin ^ aside) & mask)]++;
    }
}

void oct_histogram_add(oct_histogram *histogram, const float *values, size_t count) {
    while (count > 0) {
        size_t take = count < CHUNK ? count : CHUNK;
        add_summary(histogram, values, take);
        add_bins(histogram, values, take);
        values += take;
        count -= take;
    }
}

void oct_histogram_add_rows(oct_histogram *histogram, const float *values, size_t rows, size_t columns, size_t stride) {
    if (columns == stride) {
        oct_histogram_add(histogram, values, rows * columns);
        return;
    }
    for (size_t row = 0; row < rows; row++) oct_histogram_add(histogram, values + row * stride, columns);
}

void oct_histogram_merge(oct_histogram *histogram, const oct_histogram *other) {
    histogram->count += other->count;
    histogram->zeros += other->zeros;
    histogram->infinities += other->infinities;
    histogram->nans += other->nans;
    if (other->min < histogram->min) histogram->min = other->min;
    if (other->max > histogram->max) histogram->max = other->max;
    for (size_t bin = 0; bin < 2 * OCT_HISTOGRAM_BINS; bin++) histogram->cells[bin] += other->cells[bin];
}

uint64_t oct_histogram_finite(const oct_histogram *histogram) {
    return histogram->count - histogram->infinities - histogram->nans;
}

float oct_histogram_amax(const oct_histogram *histogram) {
    if (histogram->min > histogram->max) return 0;
    return histogram->max > -histogram->min ? histogram->max : -histogram->min + 0.0f;
}

double oct_histogram_edge(size_t bin) {
    int octave = (int)(bin >> OCT_HISTOGRAM_MANTISSA);
    int part = (int)(bin & ((1u << OCT_HISTOGRAM_MANTISSA) - 1));
    if (octave == 0) return ldexp(part, -126 - OCT_HISTOGRAM_MANTISSA);
    return ldexp((1 << OCT_HISTOGRAM_MANTISSA) + part, octave - 127 - OCT_HISTOGRAM_MANTISSA);
}

size_t oct_histogram_bin(float value) {
    return (bits_of(&value) & MAGNITUDE) >> SHIFT;
}
