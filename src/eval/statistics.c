/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/statistics.h"

#include <math.h>
#include <stdlib.h>

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

/* splitmix64, as base/random.h; this room sees the public headers only. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
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
