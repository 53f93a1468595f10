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
/* `other` against `base` by the interval of base / other: above 1 faster, below 1 slower, spanning 1 no measurable
 * difference; unclear with fewer than 10 rounds, or where it spans 1 and is wider than 10% of the ratio. */
comparison compare_times(const ratio_interval *interval, size_t rounds);
const char *comparison_word(comparison verdict);

#endif
