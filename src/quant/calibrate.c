/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define LEVELS 256

static const char *const names[OCT_CALIBRATOR_COUNT] = {"max", "percentile", "entropy", "mse"};

const char *oct_calibrator_name(oct_calibrator calibrator) {
    return (unsigned)calibrator < OCT_CALIBRATOR_COUNT ? names[calibrator] : "unknown";
}

/* ---- percentile */

static uint64_t mass(const oct_histogram *histogram, size_t bin) {
    return histogram->cells[bin] + histogram->cells[OCT_HISTOGRAM_BINS + bin];
}

/* The upper end of a bin as a float inside it, never above the largest magnitude. */
static float upper_end(const oct_histogram *histogram, size_t bin) {
    float largest = oct_histogram_amax(histogram);
    double edge = oct_histogram_edge(bin + 1);
    return edge > (double)largest ? largest : nextafterf((float)edge, 0);
}

/* The value of a rank, 1 to the count of what is not zero, among that. */
static float ranked(const oct_histogram *histogram, uint64_t rank) {
    uint64_t seen = 0;
    for (size_t bin = 0; bin < OCT_HISTOGRAM_BINS; bin++) {
        seen += mass(histogram, bin);
        if (seen >= rank) return upper_end(histogram, bin);
    }
    return oct_histogram_amax(histogram);
}

static uint64_t rank_of(uint64_t count, double percentile) {
    double rank = ceil(percentile / 100.0 * (double)count);
    if (!(rank >= 1)) return 1;
    return rank >= (double)count ? count : (uint64_t)rank;
}

float oct_histogram_percentile(const oct_histogram *histogram, double percentile) {
    uint64_t finite = oct_histogram_finite(histogram);
    if (finite == 0) return 0;
    uint64_t rank = rank_of(finite, percentile);
    return rank <= histogram->zeros ? 0 : ranked(histogram, rank - histogram->zeros);
}

double oct_histogram_outlier_ratio(const oct_histogram *histogram) {
    double bulk = oct_histogram_percentile(histogram, 99.99);
    return bulk > 0 ? oct_histogram_amax(histogram) / bulk : 1;
}

/* ---- what entropy and mse work on: the bins that hold something, and the format's values that are not negative */

typedef struct problem {
    size_t count; /* bins */
    double *low, *high, *mass;
    double *mass_before;    /* sum of mass[0 .. i - 1], count + 1 of them */
    double *entropy_before; /* sum of mass log(mass) */
    double *width_before;   /* sum of the widths */
    double *spread_before;  /* sum of mass log(width) */
    int levels;
    double level[LEVELS], middle[LEVELS]; /* middle[i]: between level i and the next; infinite at the last */
    double offset[LEVELS];                /* integral of the squared error up to u: offset[i] + (u - level[i])^3 / 3 */
} problem;

static octet_status set_levels(problem *p, const oct_histogram *histogram, const char *name, oct_format format) {
    const bool asymmetric = format == OCT_FORMAT_UINT8;
    if (!asymmetric && !oct_format_has_scale(format)) {
        return oct_fail(OCTET_UNSUPPORTED, "%s: %s has no static scale to calibrate", name, oct_format_name(format));
    }
    if (asymmetric || format == OCT_FORMAT_INT8) {
        /* with a zero point both signs share the codes: about half are for magnitudes */
        p->levels = asymmetric && histogram->min >= 0 ? 256 : 128;
        for (int i = 0; i < p->levels; i++) p->level[i] = i;
    } else {
        for (int code = 0; code < 0x7f; code++) {
            float value = format == OCT_FORMAT_E4M3 ? oct_e4m3_decode((uint8_t)code) : oct_e5m2_decode((uint8_t)code);
            if (isfinite(value)) p->level[p->levels++] = value;
        }
    }
    double sum = 0;
    for (int i = 0; i < p->levels; i++) {
        const double begin = i > 0 ? p->middle[i - 1] - p->level[i] : 0;
        p->middle[i] = i + 1 < p->levels ? (p->level[i] + p->level[i + 1]) / 2 : INFINITY;
        p->offset[i] = sum - begin * begin * begin / 3;
        const double end = p->middle[i] - p->level[i];
        sum = p->offset[i] + end * end * end / 3;
    }
    return OCTET_OK;
}

static octet_status set_bins(problem *p, const oct_histogram *histogram) {
    for (size_t bin = 0; bin < OCT_HISTOGRAM_BINS; bin++) p->count += mass(histogram, bin) > 0;
    double *memory = oct_calloc(7 * (p->count + 1), sizeof *memory);
    if (memory == NULL) return oct_fail_memory();
    double **const arrays[] = {&p->low,          &p->high,         &p->mass, &p->mass_before, &p->entropy_before,
                               &p->width_before, &p->spread_before};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) *arrays[i] = memory + i * (p->count + 1);
    size_t at = 0;
    for (size_t bin = 0; bin < OCT_HISTOGRAM_BINS; bin++) {
        if (mass(histogram, bin) == 0) continue;
        const double low = oct_histogram_edge(bin), high = oct_histogram_edge(bin + 1),
                     count = (double)mass(histogram, bin);
        p->low[at] = low;
        p->high[at] = fmin(high, (double)oct_histogram_amax(histogram));
        p->mass[at] = count;
        p->mass_before[at + 1] = p->mass_before[at] + count;
        p->entropy_before[at + 1] = p->entropy_before[at] + count * log(count);
        p->width_before[at + 1] = p->width_before[at] + (high - low);
        p->spread_before[at + 1] = p->spread_before[at] + count * log(high - low);
        at++;
    }
    return OCTET_OK;
}

/* ---- mse */

/* Integral of the squared error from 0 to u, in the format's own units; *cell only moves up. */
static double error_integral(const problem *p, double u, int *cell) {
    while (u > p->middle[*cell]) (*cell)++;
    const double off = u - p->level[*cell];
    return p->offset[*cell] + off * off * off / 3;
}

static double squared_error(const problem *p, size_t last) {
    const double scale = p->high[last] / p->level[p->levels - 1];
    double sum = 0;
    int cell = 0;
    for (size_t i = 0; i < p->count; i++) {
        const double low = p->low[i] / scale, high = p->high[i] / scale;
        const double before = error_integral(p, low, &cell);
        if (high > low) {
            int end = cell; /* the next bin begins where this one ends, or later */
            sum += p->mass[i] * (error_integral(p, high, &end) - before) / (high - low);
        } else {
            const double off = low - p->level[cell];
            sum += p->mass[i] * off * off;
        }
    }
    return sum * scale * scale;
}

/* ---- entropy */

static double divergence(const problem *p, size_t last) {
    const double scale = p->high[last] / p->level[p->levels - 1], all = p->mass_before[p->count];
    double sum = p->entropy_before[p->count] - p->spread_before[p->count]; /* p log p - p log width */
    size_t begin = 0;
    for (int code = 0; code < p->levels && begin < p->count; code++) {
        size_t next = begin;
        while (next < p->count && (p->low[next] + p->high[next]) / 2 <= p->middle[code] * scale) next++;
        if (next == begin) continue;
        const double share = p->mass_before[next] - p->mass_before[begin];
        sum -= share * log(share / (p->width_before[next] - p->width_before[begin]));
        begin = next;
    }
    return sum / all;
}

/* ---- all */

static octet_status search(const oct_histogram *histogram, const char *name, oct_calibrator calibrator,
                           oct_format format, float *threshold) {
    problem p = {0};
    OCT_TRY(set_levels(&p, histogram, name, format));
    OCT_TRY(set_bins(&p, histogram));
    double least = INFINITY;
    for (size_t i = p.count; i-- > 0;) {
        const double loss = calibrator == OCT_CALIBRATE_MSE ? squared_error(&p, i) : divergence(&p, i);
        if (!(loss < least)) continue;
        least = loss;
        *threshold = upper_end(histogram, oct_histogram_bin((float)p.low[i]));
    }
    oct_free(p.low);
    return OCTET_OK;
}

octet_status oct_calibrate(const oct_histogram *histogram, const char *name, oct_calibrator calibrator,
                           double percentile, oct_format format, oct_calibration *calibration) {
    *calibration = (oct_calibration){0};
    const uint64_t finite = oct_histogram_finite(histogram);
    if (finite == 0) {
        (void)oct_fail(OCTET_MISMATCH, "%s: no finite value to calibrate with, of %llu seen", name,
                       (unsigned long long)histogram->count);
        return oct_hint("pictures that give NaN in float32 cannot calibrate; octet run --dump shows where it begins");
    }
    if (calibrator == OCT_CALIBRATE_PERCENTILE && !(percentile > 0 && percentile <= 100)) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: percentile: expected above 0, at most 100, found %g", name,
                        percentile);
    }
    const float largest = oct_histogram_amax(histogram);
    float threshold = largest;
    if (finite < histogram->count) calibration->notes |= OCT_CALIBRATION_NOT_FINITE;
    if (largest == 0) {
        calibration->notes |= OCT_CALIBRATION_ALL_ZERO;
    } else if (calibrator == OCT_CALIBRATE_PERCENTILE) {
        threshold = oct_histogram_percentile(histogram, percentile);
        if (threshold == 0) {
            calibration->notes |= OCT_CALIBRATION_ONLY_ZEROS;
            threshold = ranked(histogram, rank_of(finite - histogram->zeros, percentile));
        }
    } else if (calibrator != OCT_CALIBRATE_MAX) {
        OCT_TRY(search(histogram, name, calibrator, format, &threshold));
    }
    calibration->threshold = threshold;
    calibration->low = histogram->min > -threshold ? histogram->min : -threshold;
    calibration->high = histogram->max < threshold ? histogram->max : threshold;
    return OCTET_OK;
}

void oct_calibration_scale(const oct_calibration *calibration, oct_format format, float *scale, uint8_t *zero_point) {
    *zero_point = 0;
    if (format == OCT_FORMAT_UINT8)
        oct_uint8_range(calibration->low, calibration->high, scale, zero_point);
    else
        *scale = oct_format_scale(format, calibration->threshold);
}
