/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of numbers rounded to a stored form, by the rules of graph/stored.h: r < rows, c < columns, column 0 being the
 * first channel that the form's vectors, as given here, speak of. A scale a row or block asks for whole rows.
 *
 * values   gets the numbers that the codes stand for (held wide); may be x itself
 * codes    else, of int8: the codes; with OCT_PER_ROW row_scales gets each row's scale */
#ifndef OCT_CPU_KERNELS_ROUND_F32_H
#define OCT_CPU_KERNELS_ROUND_F32_H

#include "graph/stored.h"

typedef struct oct_round_f32 {
    oct_rounding rounding;
    const float *x;
    int64_t x_stride;
    float *values; /* NULL: codes are wanted */
    int8_t *codes;
    int64_t out_stride; /* elements of either */
    float *row_scales;
    int64_t rows, columns;
} oct_round_f32;

typedef void oct_round_f32_body(const oct_round_f32 *q);

#endif
