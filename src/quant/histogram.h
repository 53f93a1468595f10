/* SPDX-License-Identifier: Apache-2.0 */
/* What calibration keeps of a tensor: one pass over its values, in any order, in any number of calls, into bins as wide
 * as the values are large. Counts are whole numbers, so the same values give the same histogram whatever the batches,
 * their order, or the threads whose histograms are merged.
 *
 * A bin is a sign, an exponent and the upper OCT_HISTOGRAM_MANTISSA bits of the mantissa: 64 bins an octave, 1/64 to
 * 1/128 of the value wide, and 64 of 2^-132 each below 2^-126. Bin 0 of either sign begins at 0 without holding 0
 * itself. Zeros, infinities and NaN are counted apart; the largest and smallest finite values are kept exactly.
 *
 * Memory: sizeof(oct_histogram), 261,224 bytes a tensor (39 MB for 150 tensors), whatever is added; a thread that adds
 * beside others needs one more of its own. */
#ifndef OCT_QUANT_HISTOGRAM_H
#define OCT_QUANT_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OCT_HISTOGRAM_MANTISSA 6
#define OCT_HISTOGRAM_BINS (255 << OCT_HISTOGRAM_MANTISSA) /* of one sign */
#define OCT_HISTOGRAM_ASIDE 8

typedef struct oct_histogram {
    uint64_t count; /* values added, whatever they were */
    uint64_t zeros, infinities, nans;
    float min, max; /* of the finite values, zeros too; min > max: there was none */
    /* positive bins, negative bins, and where adding throws what is in no bin (zeros, infinities, NaN) */
    uint64_t cells[2 * OCT_HISTOGRAM_BINS + OCT_HISTOGRAM_ASIDE];
} oct_histogram;

/* Caller frees with oct_histogram_free; NULL after failure. */
octet_status oct_histogram_new(oct_histogram **histogram);
void oct_histogram_free(oct_histogram *histogram); /* NULL is fine */

void oct_histogram_add(oct_histogram *histogram, const float *values, size_t count);
/* Rows of `columns` values, `stride` floats apart: padding lanes are not counted. */
void oct_histogram_add_rows(oct_histogram *histogram, const float *values, size_t rows, size_t columns, size_t stride);
/* Adds `other` to `histogram`. */
void oct_histogram_merge(oct_histogram *histogram, const oct_histogram *other);

/* ---- questions */
uint64_t oct_histogram_finite(const oct_histogram *histogram);
float oct_histogram_amax(const oct_histogram *histogram); /* largest finite magnitude; 0 if there is none */
/* The lower edge of a bin of magnitudes; that of OCT_HISTOGRAM_BINS is 2^128. */
double oct_histogram_edge(size_t bin);
/* The bin of a finite value's magnitude. */
size_t oct_histogram_bin(float value);

#endif
