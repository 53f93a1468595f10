/* SPDX-License-Identifier: Apache-2.0 */
/* Error-compensated rounding of weights (Frantar et al., "GPTQ", 2022). An op's outputs are X W' over the rows X of its
 * inputs; the error that rounding w[j] makes there is taken over, as well as it can be, by the weights of the same
 * output that are not yet rounded:
 *
 *     H = X' X + 1% of its mean diagonal      H^-1 = U' U, U upper triangular
 *     for each column j, by falling H[j][j]:  q = round(w[j]);  w[k] -= (w[j] - q) / U[j][j] * U[j][k] for all k after
 * j
 *
 * All in double; scales are found before and stay. */
#ifndef OCT_QUANT_COMPENSATE_H
#define OCT_QUANT_COMPENSATE_H

#include "base/error.h"
#include "format/format.h"

#define OCT_COMPENSATED_DEPTH 8192 /* the most columns */

/* X' X of rows as they come, its upper triangle: row i has columns i to count - 1, rows one after another. */
typedef struct oct_gram {
    size_t columns;
    uint64_t rows; /* seen */
    double *sums;
} oct_gram;

octet_status oct_gram_new(oct_gram *gram, size_t columns);
void oct_gram_free(oct_gram *gram);
size_t oct_gram_bytes(size_t columns);
/* Rows of `gram->columns` floats, `stride` apart. Sums over some 128 rows are float32, those of the sums double. */
void oct_gram_add(oct_gram *gram, const float *rows, size_t count, size_t stride);

/* Codes of weights [outputs][gram columns] in e4m3, e5m2 or int8, scales[outputs]. A column whose inputs were all zero
 * is rounded to nearest. `name` stands in errors: sums that are not finite. */
octet_status oct_compensate(oct_format format, const char *name, const oct_gram *gram, const float *weight,
                            size_t outputs, const float *scales, uint8_t *codes);

#endif
