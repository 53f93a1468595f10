/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrators: from a histogram to the range of a static scale. All look at magnitudes; `low` and `high` are the part
 * of the data's own range inside [-threshold, threshold], for formats with a zero point.
 *
 *     max         the largest finite magnitude, exactly
 *     percentile  nearest rank over all finite values, zeros too: the upper end of its bin, so that at least that share
 *                 is inside, never above the largest; where that share is zeros, the rank among the others
 *     entropy     the bin's end under which the codes tell most of the data: least Kullback-Leibler divergence between
 *                 the bins and what is known of them from codes alone, each code's share spread evenly over what it
 *                 stands for (the last code stands for all that is clipped, too)
 *     mse         the bin's end with the least mean squared error, rounding and clipping, values even inside a bin
 *
 * Entropy and mse try the end of every bin that holds something, so never a threshold below every value; zeros are
 * exact under any and do not count. Of equal thresholds the largest is taken. Each takes (bins that hold something)^2
 * steps: some milliseconds for an activation, at worst (every bin of 2^-149 .. 2^128) a few seconds. */
#ifndef OCT_QUANT_CALIBRATE_H
#define OCT_QUANT_CALIBRATE_H

#include "format/format.h"
#include "quant/histogram.h"

typedef enum oct_calibrator {
    OCT_CALIBRATE_MAX,
    OCT_CALIBRATE_PERCENTILE,
    OCT_CALIBRATE_ENTROPY,
    OCT_CALIBRATE_MSE,
    OCT_CALIBRATOR_COUNT
} oct_calibrator;
const char *oct_calibrator_name(oct_calibrator calibrator);

/* What a reader of the result should know. */
enum {
    OCT_CALIBRATION_ALL_ZERO = 1,   /* threshold 0, scale 1 */
    OCT_CALIBRATION_NOT_FINITE = 2, /* NaN or infinities were seen and left out */
    OCT_CALIBRATION_ONLY_ZEROS = 4, /* the percentile lies among zeros */
};

typedef struct oct_calibration {
    float threshold, low, high;
    unsigned notes;
} oct_calibration;

/* `name` stands in errors: no finite value was seen; entropy or mse for a format without a static scale. `percentile`
 * in (0, 100] is read by OCT_CALIBRATE_PERCENTILE alone. Pure; thread-safe. */
octet_status oct_calibrate(const oct_histogram *histogram, const char *name, oct_calibrator calibrator,
                           double percentile, oct_format format, oct_calibration *calibration);
/* The scale and zero point (0 but for uint8) of a calibration: positive and finite. */
void oct_calibration_scale(const oct_calibration *calibration, oct_format format, float *scale, uint8_t *zero_point);
/* The nearest-rank percentile of magnitudes as above; 0 if it lies among zeros or nothing is finite. */
float oct_histogram_percentile(const oct_histogram *histogram, double percentile);
/* The outlier rule's figure: largest magnitude / 99.99th percentile; 1 where the latter is 0. */
double oct_histogram_outlier_ratio(const oct_histogram *histogram);

#endif
