/* SPDX-License-Identifier: Apache-2.0 */
/* Smoothing factors (Xiao et al., "SmoothQuant", 2022) of a value that several ops may read:
 *
 *     s[c] = amax of channel c ^ exponent / amax of the weights' column c, of all readers ^ (1 - exponent)
 *     factor[c] = 1 / s[c]; 1 where either is 0
 *
 * A search takes what has the least squared error of the readers' outputs over sampled rows: no smoothing, or one of
 * the exponents 0, 0.1 .. 1; weights and activations rounded as the recipe says (of static activations the range is
 * that of the channels). */
#ifndef OCT_QUANT_SMOOTH_H
#define OCT_QUANT_SMOOTH_H

#include "quant/product.h"
#include "quant/recipe.h"

#define OCT_SMOOTH_NOT (-1.0) /* as an exponent: all factors are 1 */

typedef struct oct_smooth_reader {
    const char *name;
    oct_product product;
    const float *weight;
    const oct_recipe_choice *choice;
} oct_smooth_reader;

/* `amax` [channels] of the value; every reader has as many inputs. factors[channels]. */
octet_status oct_smooth_factors(const oct_smooth_reader *readers, size_t count, const float *amax, size_t channels,
                                double exponent, float *factors);
/* `rows` [row_count][channels]; products of one tap and one group. 0 rows: MISMATCH. */
octet_status oct_smooth_search(const oct_smooth_reader *readers, size_t count, const float *amax, size_t channels,
                               const float *rows, size_t row_count, double *exponent);

#endif
