/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/random.h"

#define ROUNDS_WANTED 10
#define WIDTH_WANTED 0.1 /* of the ratio */

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *values, size_t count, double q) {
    qsort(values, count, sizeof *values, rising);
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    double share = place - (double)below;
    if (below + 1 >= count) return values[count - 1];
    return values[below] + share * (values[below + 1] - values[below]);
}

bool bootstrap_median_ratio(const double *base, const double *other, size_t rounds, size_t draws, uint64_t seed,
                            ratio_interval *out) {
    double *a = malloc((2 * rounds + draws) * sizeof *a);
    if (a == NULL) return false;
    double *b = a + rounds, *ratios = b + rounds;
    for (size_t draw = 0; draw <= draws; draw++) {
        for (size_t i = 0; i < rounds; i++) {
            size_t pick = draw < draws ? next_random(&seed) % rounds : i; /* last: the sample itself */
            a[i] = base[pick];
            b[i] = other[pick];
        }
        double ratio = quantile(a, rounds, 0.5) / quantile(b, rounds, 0.5);
        if (draw < draws)
            ratios[draw] = ratio;
        else
            out->ratio = ratio;
    }
    out->low = quantile(ratios, draws, 0.025);
    out->high = quantile(ratios, draws, 0.975);
    free(a);
    return true;
}

comparison compare_times(const ratio_interval *interval, size_t rounds) {
    if (rounds < ROUNDS_WANTED) return COMPARISON_UNCLEAR;
    if (interval->low > 1.0) return COMPARISON_FASTER;
    if (interval->high < 1.0) return COMPARISON_SLOWER;
    return interval->high - interval->low <= WIDTH_WANTED * interval->ratio ? COMPARISON_SAME : COMPARISON_UNCLEAR;
}

const char *comparison_word(comparison verdict) {
    static const char *const words[] = {"faster", "slower", "no measurable difference", "unclear"};
    return words[verdict];
}

/* ---- pictures */

bool bootstrap_ratios(const double *const *over, const double *const *under, size_t columns, size_t pictures,
                      size_t draws, uint64_t seed, figure_interval *out) {
    double *values = malloc((columns * draws + 1) * sizeof *values);
    uint32_t *counts = malloc((pictures + 1) * sizeof *counts);
    bool good = values != NULL && counts != NULL;
    for (size_t draw = 0; good && draw < draws; draw++) {
        draw_pictures(&seed, pictures, counts);
        for (size_t c = 0; c < columns; c++) {
            double a = 0.0, b = 0.0;
            for (size_t i = 0; i < pictures; i++) {
                a += counts[i] * over[c][i];
                b += under[c] != NULL ? counts[i] * under[c][i] : counts[i];
            }
            values[c * draws + draw] = a / b;
        }
    }
    for (size_t c = 0; good && c < columns; c++) out[c] = interval_of(values + c * draws, draws);
    free(counts);
    free(values);
    return good;
}

void draw_pictures(uint64_t *seed, size_t pictures, uint32_t *counts) {
    memset(counts, 0, pictures * sizeof *counts);
    for (size_t i = 0; i < pictures; i++) counts[next_random(seed) % pictures]++;
}

figure_interval interval_of(double *values, size_t draws) {
    size_t finite = 0;
    for (size_t i = 0; i < draws; i++)
        if (isfinite(values[i])) values[finite++] = values[i];
    if (finite == 0) return (figure_interval){NAN, NAN};
    return (figure_interval){quantile(values, finite, 0.025), quantile(values, finite, 0.975)};
}

double standard_error(const double *values, size_t count) {
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) mean += values[i];
    mean /= (double)count;
    for (size_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : NAN;
}

double mcnemar_exact(uint64_t gained, uint64_t lost) {
    double n = (double)(gained + lost), p = 0.0;
    uint64_t least = gained < lost ? gained : lost;
    for (uint64_t i = 0; i <= least; i++)
        p += exp(lgamma(n + 1) - lgamma((double)i + 1) - lgamma(n - (double)i + 1) - n * log(2.0));
    return 2 * p < 1.0 ? 2 * p : 1.0;
}
