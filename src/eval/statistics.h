/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of measurements: quantiles, bootstrap intervals, and the four words a comparison of times may end in. */
#ifndef OCT_EVAL_STATISTICS_H
#define OCT_EVAL_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Quantile q in 0 .. 1 by linear interpolation between order statistics (type 7 of Hyndman and Fan, NumPy's default);
 * sorts `values`. count >= 1. */
double quantile(double *values, size_t count, double q);

/* Ratio of medians base / other with a two-sided 95% percentile bootstrap interval: `draws` resamples of rounds, taken
 * in pairs (round i of both), from `seed`. False: no memory. */
typedef struct ratio_interval {
    double ratio, low, high;
} ratio_interval;
bool bootstrap_median_ratio(const double *base, const double *other, size_t rounds, size_t draws, uint64_t seed,
                            ratio_interval *out);

typedef enum comparison { COMPARISON_FASTER, COMPARISON_SLOWER, COMPARISON_SAME, COMPARISON_UNCLEAR } comparison;
/* `other` against `base` by the interval of base / other: above 1 faster, below 1 slower, spanning 1 no
 * measurable difference; unclear with fewer than 10 rounds, or where it spans 1 and is wider than 10% of the ratio. */
comparison compare_times(const ratio_interval *interval, size_t rounds);
const char *comparison_word(comparison verdict);

/* ---- figures over pictures: sums that are drawn again with the pictures */

typedef struct figure_interval {
    double low, high; /* two-sided 95%, percentiles; NaN where no draw gave a figure */
} figure_interval;
/* For each column c: sum(over[c]) / sum(under[c]) over pictures drawn with replacement, `draws` times; under[c] NULL: a
 * mean. All columns see the same draws. False: no memory. */
bool bootstrap_ratios(const double *const *over, const double *const *under, size_t columns, size_t pictures,
                      size_t draws, uint64_t seed, figure_interval *out);
/* One draw: how often each of `pictures` >= 1 comes. */
void draw_pictures(uint64_t *seed, size_t pictures, uint32_t *counts);
/* Of figures of draws; those that are not finite are left out. Reorders `values`. */
figure_interval interval_of(double *values, size_t draws);
double standard_error(const double *values, size_t count); /* of the mean; NaN for one value */

/* McNemar's exact two-sided test of pictures that changed from wrong to right and from right to wrong. */
double mcnemar_exact(uint64_t gained, uint64_t lost);

#endif
