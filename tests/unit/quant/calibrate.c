/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms and calibrators: against sorting and brute force over the values themselves, on data whose best threshold
 * is known, on streams that break histograms (case 36's kinds, and its files where they are), in any order and split.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/document.h"
#include "base/random.h"
#include "base/threads.h"
#include "quant/calibrate.h"
#include "quant/channels.h"
#include "support/support.h"

#define MANY 20000
#define BIN (1.0 / 64) /* widest, of its value */

static oct_histogram *histogram_new(void) {
    oct_histogram *histogram = NULL;
    assert_int_equal(oct_histogram_new(&histogram), OCTET_OK);
    return histogram;
}

static oct_histogram *histogram_of(const float *values, size_t count) {
    oct_histogram *histogram = histogram_new();
    oct_histogram_add(histogram, values, count);
    return histogram;
}

static float calibrated(const oct_histogram *histogram, oct_calibrator calibrator, double percentile,
                        oct_format format) {
    oct_calibration calibration;
    if (oct_calibrate(histogram, "x", calibrator, percentile, format, &calibration) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    return calibration.threshold;
}

static float normal(uint64_t *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += oct_random_unit(random);
    return (float)sum;
}

static int by_magnitude(const void *a, const void *b) {
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x > y) - (x < y);
}

/* ---- the histogram itself */

static void test_bins(void **state) {
    (void)state;
    for (size_t bin = 0; bin < OCT_HISTOGRAM_BINS; bin++) {
        double low = oct_histogram_edge(bin), high = oct_histogram_edge(bin + 1);
        assert_true(high > low);
        if (low >= FLT_MIN) assert_true((high - low) / low <= BIN && (high - low) / low > BIN / 2 * 0.99);
        assert_int_equal(oct_histogram_bin((float)low), bin);
        if (high <= FLT_MAX) assert_int_equal(oct_histogram_bin(nextafterf((float)high, 0)), bin);
    }
    assert_true(sizeof(oct_histogram) == 261224); /* as histogram.h says */
}

static void test_counted_apart(void **state) {
    (void)state;
    const float values[] = {0, -0.0f, NAN, -NAN, INFINITY, -INFINITY, 0x1p-149f, -1, 2.5f, -FLT_MAX, -INFINITY};
    for (size_t repeat = 1; repeat < 40; repeat++) { /* long enough for the lanes, and a rest */
        oct_histogram *histogram = histogram_new();
        for (size_t i = 0; i < repeat; i++) oct_histogram_add(histogram, values, 11);
        float *all = malloc(repeat * sizeof values);
        for (size_t i = 0; i < repeat; i++) memcpy(all + i * 11, values, sizeof values);
        oct_histogram *at_once = histogram_of(all, repeat * 11);
        assert_int_equal(histogram->count, 11 * repeat);
        assert_int_equal(histogram->zeros, 2 * repeat);
        assert_int_equal(histogram->nans, 2 * repeat);
        assert_int_equal(histogram->infinities, 3 * repeat);
        assert_true(histogram->min == -FLT_MAX && histogram->max == 2.5f);
        assert_int_equal(histogram->cells[0], repeat); /* the subnormal: zeros are not in there */
        assert_int_equal(histogram->cells[OCT_HISTOGRAM_BINS], 0);
        assert_memory_equal(histogram, at_once, offsetof(oct_histogram, cells));
        assert_memory_equal(histogram->cells, at_once->cells, 2 * OCT_HISTOGRAM_BINS * sizeof(uint64_t));
        free(all);
        oct_histogram_free(at_once);
        oct_histogram_free(histogram);
    }
}

static void test_rows(void **state) {
    (void)state;
    const float values[] = {1, 2, 9, 3, 4, 9};
    oct_histogram *histogram = histogram_new();
    oct_histogram_add_rows(histogram, values, 2, 2, 3);
    assert_int_equal(histogram->count, 4);
    assert_true(histogram->max == 4);
    oct_histogram_add_rows(histogram, values, 2, 3, 3);
    assert_int_equal(histogram->count, 10);
    oct_histogram_free(histogram);
}

static void test_channels(void **state) {
    (void)state;
    enum { ROWS = 200, COLUMNS = 13, STRIDE = 16 };
    static float values[ROWS * STRIDE];
    uint64_t random = 9;
    for (size_t i = 0; i < ROWS * STRIDE; i++) values[i] = i % STRIDE < COLUMNS ? normal(&random) : 1e9f;
    for (size_t row = 0; row < ROWS; row++) {
        values[row * STRIDE] = 0;
        values[row * STRIDE + 1] = NAN;
        values[row * STRIDE + 2] = row % 3 == 0 ? INFINITY : row % 3 == 1 ? -INFINITY : -0.25f;
    }
    oct_channels whole, parts[2];
    assert_int_equal(oct_channels_new(&whole, COLUMNS), OCTET_OK);
    oct_channels_add(&whole, values, ROWS, STRIDE);
    for (int p = 0; p < 2; p++) assert_int_equal(oct_channels_new(&parts[p], COLUMNS), OCTET_OK);
    oct_channels_add(&parts[1], values, 77, STRIDE);
    oct_channels_add(&parts[0], values + 77 * STRIDE, ROWS - 77, STRIDE);
    oct_channels_merge(&parts[0], &parts[1]);
    for (size_t c = 0; c < COLUMNS; c++) {
        oct_histogram *histogram = histogram_new();
        for (size_t row = 0; row < ROWS; row++) oct_histogram_add(histogram, &values[row * STRIDE + c], 1);
        assert_true(oct_channels_amax(&whole, c) == oct_histogram_amax(histogram));
        assert_true(whole.min[c] == histogram->min && whole.max[c] == histogram->max);
        assert_true(whole.min[c] == parts[0].min[c] && whole.max[c] == parts[0].max[c]);
        oct_histogram_free(histogram);
    }
    assert_true(oct_channels_amax(&whole, 0) == 0 && oct_channels_amax(&whole, 1) == 0);
    assert_true(oct_channels_amax(&whole, 2) == 0.25f);
    oct_channels_free(&whole);
    for (int p = 0; p < 2; p++) oct_channels_free(&parts[p]);
    assert_int_equal(oct_channels_new(&whole, SIZE_MAX / 4), OCTET_OUT_OF_MEMORY);
}

typedef struct split {
    const float *values;
    size_t count, parts;
    oct_histogram **histograms;
} split;

static void add_part(void *argument, size_t index) {
    const split *work = argument;
    size_t begin = work->count * index / work->parts, end = work->count * (index + 1) / work->parts;
    oct_histogram_add(work->histograms[index], work->values + begin, end - begin);
}

static void test_threads_and_order(void **state) {
    (void)state;
    float *values = malloc(MANY * sizeof *values);
    uint64_t random = 3;
    for (size_t i = 0; i < MANY; i++) values[i] = i % 7 == 0 ? 0 : normal(&random) * expf(4 * normal(&random));
    oct_histogram *whole = histogram_of(values, MANY);
    for (unsigned threads = 1; threads <= 5; threads++) {
        oct_pool *pool = NULL;
        oct_histogram *histograms[5];
        assert_int_equal(oct_pool_new(&pool, threads), OCTET_OK);
        for (unsigned i = 0; i < threads; i++) histograms[i] = histogram_new();
        split work = {values, MANY, threads, histograms};
        oct_pool_run(pool, threads, add_part, &work);
        for (unsigned i = threads; i-- > 1;) oct_histogram_merge(histograms[0], histograms[i]);
        assert_memory_equal(whole, histograms[0], offsetof(oct_histogram, cells));
        assert_memory_equal(whole->cells, histograms[0]->cells, 2 * OCT_HISTOGRAM_BINS * sizeof(uint64_t));
        for (unsigned i = 0; i < threads; i++) oct_histogram_free(histograms[i]);
        oct_pool_free(pool);
    }
    float *backwards = malloc(MANY * sizeof *backwards);
    for (size_t i = 0; i < MANY; i++) backwards[i] = values[MANY - 1 - i];
    oct_histogram *turned = histogram_of(backwards, MANY);
    for (int c = 0; c < OCT_CALIBRATOR_COUNT; c++)
        assert_true(calibrated(whole, (oct_calibrator)c, 99.9, OCT_FORMAT_INT8) ==
                    calibrated(turned, (oct_calibrator)c, 99.9, OCT_FORMAT_INT8));
    oct_histogram_free(turned);
    oct_histogram_free(whole);
    free(backwards);
    free(values);
}

/* ---- two passes over the values */

static double true_squared_error(const float *values, size_t count, oct_format format, float threshold) {
    double sum = 0;
    float scale = oct_format_scale(format, threshold);
    for (size_t i = 0; i < count; i++) {
        double error = (double)oct_format_round(format, values[i] / scale) * scale - (double)values[i];
        sum += error * error;
    }
    return sum;
}

static void test_two_passes(void **state) {
    (void)state;
    static const oct_format formats[] = {OCT_FORMAT_INT8, OCT_FORMAT_E4M3, OCT_FORMAT_E5M2};
    static const double percentiles[] = {50, 90, 99, 99.9, 99.99, 100};
    float *values = malloc(MANY * sizeof *values);
    for (int kind = 0; kind < 4; kind++) {
        uint64_t random = 40 + (uint64_t)kind;
        for (size_t i = 0; i < MANY; i++) {
            float x = normal(&random);
            values[i] = kind == 0 ? x : kind == 1 ? x * x * x : kind == 2 ? x * expf(x) : x + (i % 1000 == 0 ? 30 : 0);
        }
        oct_histogram *histogram = histogram_of(values, MANY);
        qsort(values, MANY, sizeof *values, by_magnitude);
        for (size_t p = 0; p < sizeof percentiles / sizeof *percentiles; p++) {
            double exact = fabsf(values[(size_t)ceil(percentiles[p] / 100 * MANY) - 1]);
            double found = calibrated(histogram, OCT_CALIBRATE_PERCENTILE, percentiles[p], OCT_FORMAT_INT8);
            assert_true(found >= exact && found <= exact * (1 + BIN));
        }
        assert_true(calibrated(histogram, OCT_CALIBRATE_MAX, 0, OCT_FORMAT_INT8) == fabsf(values[MANY - 1]));
        for (size_t f = 0; f < 3; f++) {
            double least = INFINITY;
            for (float t = fabsf(values[MANY - 1]); t > fabsf(values[MANY / 2]); t *= 0.98f)
                least = fmin(least, true_squared_error(values, MANY, formats[f], t));
            float found = calibrated(histogram, OCT_CALIBRATE_MSE, 0, formats[f]);
            double error = true_squared_error(values, MANY, formats[f], found);
            if (error > 1.05 * least) /* in a sparse tail values are not even inside a bin */
                fail_msg("kind %d, %s: %g where %g is possible", kind, oct_format_name(formats[f]), error, least);
        }
        oct_histogram_free(histogram);
    }
    free(values);
}

/* ---- known best thresholds */

/* Uniform on [-1, 1]: step^2 / 12 against (1 - T)^3 / 3: T^2 / (12 * 127^2) + ..., best where 1 - T = sqrt(T / 6) /
 * 127. */
static void test_uniform(void **state) {
    (void)state;
    oct_histogram *histogram = histogram_new();
    for (int i = 0; i < 1 << 18; i++) {
        float x = (float)((i + 0.5) * 0x1p-18);
        oct_histogram_add(histogram, (float[]){x, -x}, 2);
    }
    double found = calibrated(histogram, OCT_CALIBRATE_MSE, 0, OCT_FORMAT_INT8);
    assert_true(fabs(found - 0.9968) <= BIN);
    assert_true(fabs(calibrated(histogram, OCT_CALIBRATE_PERCENTILE, 75, OCT_FORMAT_INT8) - 0.75) <= 0.75 * BIN);
    oct_histogram_free(histogram);
}

/* Laplace: 2 exp(-T) of clipping, (T / 127)^2 / 12 of rounding; the best T solves T / (6 * 127^2) = 2 exp(-T). */
static void test_laplace(void **state) {
    (void)state;
    double low = 1, high = 30;
    for (int i = 0; i < 100; i++) {
        double t = (low + high) / 2;
        if (t / (6 * 127.0 * 127.0) < 2 * exp(-t))
            low = t;
        else
            high = t;
    }
    oct_histogram *histogram = histogram_new();
    const int count = 1 << 20;
    for (int i = 0; i < count; i++) {
        float x = (float)-log((i + 0.5) / count);
        oct_histogram_add(histogram, &x, 1);
    }
    double found = calibrated(histogram, OCT_CALIBRATE_MSE, 0, OCT_FORMAT_INT8);
    print_message("Laplace, int8: best threshold %.4f, found %.4f\n", low, found);
    assert_true(fabs(found - low) <= 2 * low * BIN); /* the curve is flat: the sample's own best may be the next bin */
    oct_histogram_free(histogram);
}

/* Values on the codes of threshold 3 alone, neighbours of very different weight: codes tell everything under it, while
 * a larger threshold joins neighbours and a smaller one joins what it clips. */
static void test_lattice(void **state) {
    (void)state;
    static const oct_format formats[] = {OCT_FORMAT_INT8, OCT_FORMAT_E4M3};
    for (size_t f = 0; f < 2; f++) {
        oct_histogram *histogram = histogram_new();
        const float scale = 3.0f / (float)oct_format_get(formats[f])->element_max;
        for (int code = 1; code <= (formats[f] == OCT_FORMAT_INT8 ? 127 : 0x7e); code++) {
            float x = scale * (formats[f] == OCT_FORMAT_INT8 ? (float)code : oct_e4m3_decode((uint8_t)code));
            for (int n = 0; n < (code % 2 == 0 ? 20 : 300); n++) oct_histogram_add(histogram, &x, 1);
        }
        double found = calibrated(histogram, OCT_CALIBRATE_ENTROPY, 0, formats[f]);
        if (fabs(found - 3) > 3 * BIN) fail_msg("%s: %g", oct_format_name(formats[f]), found);
        oct_histogram_free(histogram);
    }
}

/* The divergence again, from its definition, bin by bin. */
static double naive_divergence(const oct_histogram *histogram, oct_format format, double threshold) {
    double total = 0, sum = 0, largest = oct_histogram_amax(histogram);
    float scale = (float)(threshold / oct_format_get(format)->element_max);
    static double share[512], width[512];
    memset(share, 0, sizeof share);
    memset(width, 0, sizeof width);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t bin = 0; bin < OCT_HISTOGRAM_BINS; bin++) {
            double count = (double)(histogram->cells[bin] + histogram->cells[OCT_HISTOGRAM_BINS + bin]);
            if (count == 0) continue;
            double low = oct_histogram_edge(bin), high = oct_histogram_edge(bin + 1);
            float middle = (float)((low + fmin(high, largest)) / 2);
            float level = oct_format_round(format, middle / scale);
            int code = format == OCT_FORMAT_INT8 ? (int)level : oct_e4m3_encode(level);
            if (pass == 0) {
                total += count;
                share[code] += count;
                width[code] += high - low;
            } else {
                sum += count / total * log(count / (share[code] * (high - low) / width[code]));
            }
        }
    }
    return sum;
}

static void test_entropy_two_passes(void **state) {
    (void)state;
    static const oct_format formats[] = {OCT_FORMAT_INT8, OCT_FORMAT_E4M3};
    for (int kind = 0; kind < 3; kind++) {
        oct_histogram *histogram = histogram_new();
        uint64_t random = 70 + (uint64_t)kind;
        for (int i = 0; i < MANY; i++) {
            float x = normal(&random);
            if (kind == 1) x = fmaxf(x, 0) * x;
            if (kind == 2 && i % 2000 == 0) x *= 100;
            oct_histogram_add(histogram, &x, 1);
        }
        for (size_t f = 0; f < 2; f++) {
            double least = INFINITY, best = 0, largest = oct_histogram_amax(histogram);
            for (size_t bin = OCT_HISTOGRAM_BINS; bin-- > 0;) {
                if (histogram->cells[bin] + histogram->cells[OCT_HISTOGRAM_BINS + bin] == 0) continue;
                double end = fmin(oct_histogram_edge(bin + 1), largest);
                double loss = naive_divergence(histogram, formats[f], end);
                if (loss >= least) continue;
                least = loss;
                best = end;
            }
            double found = calibrated(histogram, OCT_CALIBRATE_ENTROPY, 0, formats[f]);
            if (fabs(found - best) > best * BIN * 1.01 &&
                naive_divergence(histogram, formats[f], found * (1 + 0x1p-23)) > least * 1.01)
                fail_msg("kind %d, %s: expected %g, found %g", kind, oct_format_name(formats[f]), best, found);
        }
        oct_histogram_free(histogram);
    }
}

/* ---- streams that break histograms */

static void check_rules(const char *name, const oct_histogram *histogram) {
    static const oct_format formats[] = {OCT_FORMAT_INT8, OCT_FORMAT_E4M3, OCT_FORMAT_E5M2, OCT_FORMAT_UINT8};
    float amax = oct_histogram_amax(histogram);
    for (int c = 0; c < OCT_CALIBRATOR_COUNT; c++) {
        for (size_t f = 0; f < 4; f++) {
            oct_calibration calibration;
            float scale;
            uint8_t zero;
            if (oct_calibrate(histogram, name, (oct_calibrator)c, 99.99, formats[f], &calibration) != OCTET_OK)
                fail_msg("%s: %s", name, oct_error_text());
            oct_calibration_scale(&calibration, formats[f], &scale, &zero);
            assert_true(isfinite(scale) && scale > 0);
            assert_true(calibration.threshold <= amax);
            assert_true(calibration.low >= histogram->min && calibration.high <= histogram->max);
            assert_int_equal((calibration.notes & OCT_CALIBRATION_ALL_ZERO) != 0, amax == 0);
            assert_int_equal((calibration.notes & OCT_CALIBRATION_NOT_FINITE) != 0,
                             histogram->nans + histogram->infinities > 0);
            if (amax == 0) {
                assert_true(calibration.threshold == 0 && scale == 1);
                continue;
            }
            assert_true(calibration.threshold > 0);
            float least = FLT_MAX; /* the smallest magnitude that is not 0, to its bin */
            for (size_t bin = OCT_HISTOGRAM_BINS; bin-- > 0;)
                if (histogram->cells[bin] + histogram->cells[OCT_HISTOGRAM_BINS + bin] > 0)
                    least = (float)oct_histogram_edge(bin);
            assert_true(calibration.threshold >= least);
        }
    }
}

static void test_streams(void **state) {
    (void)state;
    enum { COUNT = 14 };
    for (int stream = 0; stream < COUNT; stream++) {
        oct_histogram *histogram = histogram_new(), *reversed = histogram_new();
        uint64_t random = 12;
        float *values = malloc(MANY * sizeof *values);
        size_t count = 4000, half = count / 2;
        for (size_t i = 0; i < count; i++) values[i] = normal(&random);
        for (size_t i = 0; i < count; i++) {
            float x = values[i];
            bool early = i < half;
            switch (stream) {
            case 0:
                values[i] = early ? 0 : x;
                break;
            case 1:
                values[i] = x * (early ? 1e-3f : 1e3f);
                break;
            case 2:
                values[i] = x * (early ? 1e3f : 1e-3f);
                break;
            case 3:
                values[i] = 2.5f;
                break;
            case 4:
                values[i] = i == 0 ? 100 : 1;
                break;
            case 5:
                values[i] = x > 0 ? x : 0;
                break;
            case 6:
                values[i] = i == count - 1 ? 1e6f : x;
                break;
            case 7:
                values[i] = i % 2 == 0 ? 0 : -0.0f;
                break;
            case 8:
                values[i] = -fabsf(x);
                break;
            case 9:
                values[i] = x * 1e-42f;
                break;
            case 10:
                values[i] = i == 17 ? NAN : x;
                break;
            case 11:
                values[i] = i == 17 ? INFINITY : i == 18 ? -INFINITY : x;
                break;
            case 12:
                values[i] = i == 0 ? FLT_MAX : -1;
                break;
            default:
                values[i] = i < count - 3 ? 0 : x; /* 99.9% zeros */
            }
        }
        char name[32];
        (void)snprintf(name, sizeof name, "stream %d", stream);
        oct_histogram_add(histogram, values, half);
        oct_histogram_add(histogram, values, 0);
        oct_histogram_add(histogram, values + half, count - half);
        oct_histogram_add(reversed, values + half, count - half);
        oct_histogram_add(reversed, values, half);
        assert_memory_equal(histogram, reversed, offsetof(oct_histogram, cells));
        assert_memory_equal(histogram->cells, reversed->cells, 2 * OCT_HISTOGRAM_BINS * sizeof(uint64_t));
        check_rules(name, histogram);
        if (stream == 3) {
            for (int c = 0; c < OCT_CALIBRATOR_COUNT; c++)
                assert_true(calibrated(histogram, (oct_calibrator)c, 99, OCT_FORMAT_INT8) == 2.5f);
        }
        if (stream == 6) {
            assert_true(oct_histogram_outlier_ratio(histogram) == 1); /* of 4,000 values 99.99% are all: it is inside */
            float one = 1;
            for (int i = 0; i < 6000; i++) oct_histogram_add(histogram, &one, 1);
            assert_true(oct_histogram_outlier_ratio(histogram) > 1e5);
            assert_true(calibrated(histogram, OCT_CALIBRATE_PERCENTILE, 99.9, OCT_FORMAT_INT8) < 5);
            assert_true(calibrated(histogram, OCT_CALIBRATE_ENTROPY, 0, OCT_FORMAT_INT8) < 10);
        }
        free(values);
        oct_histogram_free(reversed);
        oct_histogram_free(histogram);
    }
}

static void test_nothing_finite(void **state) {
    (void)state;
    oct_calibration calibration;
    oct_histogram *histogram = histogram_new();
    assert_int_equal(oct_calibrate(histogram, "conv.out", OCT_CALIBRATE_MAX, 0, OCT_FORMAT_INT8, &calibration),
                     OCTET_MISMATCH);
    assert_non_null(strstr(oct_error_fact(), "conv.out"));
    oct_histogram_add(histogram, (float[]){NAN, INFINITY}, 2);
    assert_int_equal(oct_calibrate(histogram, "conv.out", OCT_CALIBRATE_MSE, 0, OCT_FORMAT_INT8, &calibration),
                     OCTET_MISMATCH);
    oct_histogram_add(histogram, (float[]){1}, 1);
    assert_int_equal(oct_calibrate(histogram, "x", OCT_CALIBRATE_MSE, 0, OCT_FORMAT_MXFP8, &calibration),
                     OCTET_UNSUPPORTED);
    assert_int_equal(oct_calibrate(histogram, "x", OCT_CALIBRATE_PERCENTILE, 0, OCT_FORMAT_INT8, &calibration),
                     OCTET_INVALID_ARGUMENT);
    assert_int_equal(oct_calibrate(histogram, "x", OCT_CALIBRATE_PERCENTILE, NAN, OCT_FORMAT_INT8, &calibration),
                     OCTET_INVALID_ARGUMENT);
    oct_histogram_free(histogram);
}

static void check_case(const char *name, const oct_node *stream, const oct_histogram *histogram) {
    static const char *const keys[] = {"percentile_99.0", "percentile_99.9", "percentile_99.99", "percentile_99.999",
                                       "percentile_100.0"};
    assert_int_equal(histogram->count, oct_node_get(stream, "n")->integer);
    assert_int_equal(oct_histogram_finite(histogram), oct_node_get(stream, "finite")->integer);
    assert_true(oct_histogram_amax(histogram) == (float)oct_node_get(stream, "max_abs")->real);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double expected = oct_node_get(stream, keys[k])->real;
        double found = oct_histogram_percentile(histogram, strtod(keys[k] + strlen("percentile_"), NULL));
        if (found < expected || found > expected * (1 + BIN))
            fail_msg("%s: %s: %g, found %g", name, keys[k], expected, found);
    }
    check_rules(name, histogram);
}

static void test_shared_case(void **state) {
    (void)state;
    const char *path = support_shared("cases/36-calibration-degenerate/expected.json");
    if (path == NULL) SUPPORT_SKIP("shared cases/36-calibration-degenerate is not here");
    oct_document document;
    if (oct_document_read(&document, path, OCT_DOCUMENT_LIMIT) != OCTET_OK) fail_msg("%s", oct_error_text());
    const oct_node *streams = oct_node_get(document.root, "expect");
    int checked = 0;
    for (size_t i = 0; i < streams->count; i++) {
        oct_histogram *histogram = histogram_new();
        const oct_node *make = oct_node_get(streams->items[i], "make");
        char file[128];
        (void)snprintf(file, sizeof file, "cases/36-calibration-degenerate/%s.f32", streams->keys[i]);
        if (make == NULL) {
            size_t size = 0, at = 0;
            const oct_node *batches = oct_node_get(streams->items[i], "batches");
            char *data = support_read_text(support_shared(file), &size);
            assert_non_null(data);
            float *values = malloc(size);
            memcpy(values, data, size);
            for (size_t b = 0; b < batches->count; b++) {
                oct_histogram_add(histogram, values + at, (size_t)batches->items[b]->integer);
                at += (size_t)batches->items[b]->integer;
            }
            assert_int_equal(at * sizeof(float), size);
            free(values);
            free(data);
        } else if (make->kind == OCT_NODE_LIST) {
            for (size_t v = 0; v < make->count; v++) {
                float value = (float)make->items[v]->real;
                oct_histogram_add(histogram, &value, 1);
            }
        } else if (strcmp(streams->keys[i], "constant") == 0 || strcmp(streams->keys[i], "two_values") == 0 ||
                   strcmp(streams->keys[i], "all_zero") == 0) {
            bool two = streams->keys[i][0] == 't';
            int64_t n = oct_node_get(streams->items[i], "n")->integer;
            float largest = (float)oct_node_get(streams->items[i], "max_abs")->real;
            for (int64_t v = 0; v < n; v++) oct_histogram_add(histogram, (float[]){two && v < n - 1 ? 1 : largest}, 1);
        }
        if (histogram->count > 0) {
            check_case(streams->keys[i], streams->items[i], histogram);
            checked++;
        }
        oct_histogram_free(histogram);
    }
    assert_true(checked >= 7);
    oct_document_free(&document);
}

static void test_no_memory(void **state) {
    (void)state;
    oct_histogram *histogram = histogram_of((float[]){1, 2, 3}, 3);
    oct_calibration calibration;
    int64_t live = oct_alloc_live();
    oct_alloc_fail_at(1, true);
    assert_int_equal(oct_calibrate(histogram, "x", OCT_CALIBRATE_MSE, 0, OCT_FORMAT_INT8, &calibration),
                     OCTET_OUT_OF_MEMORY);
    oct_histogram *other = NULL;
    assert_int_equal(oct_histogram_new(&other), OCTET_OUT_OF_MEMORY);
    assert_null(other);
    oct_alloc_fail_at(0, false);
    assert_int_equal(oct_alloc_live(), live);
    oct_histogram_free(histogram);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_counted_apart),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_threads_and_order),
        cmocka_unit_test(test_two_passes),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_laplace),
        cmocka_unit_test(test_lattice),
        cmocka_unit_test(test_entropy_two_passes),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_nothing_finite),
        cmocka_unit_test(test_shared_case),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
