/* SPDX-License-Identifier: Apache-2.0 */
/* How numbers are stored and what is read back, for every backend: the rules that make bits equal.
 *
 * Rounding an activation to a form of format F and scale s, with inverse = 1 / s in float32 (not a division each: a
 * multiplication is an eighth of its cost, and another code in a few of a million values):
 *
 *     fp32          as it is
 *     fp16, bf16    rounded to nearest even; beyond the largest: infinity
 *     int8          x * inverse cut to [-127, 127], rounded half to even; NaN gives 0
 *     e4m3          x * inverse rounded half to even, saturating at 448; NaN stays NaN
 *     a scale a row s = amax / (127 or 448), amax the largest finite magnitude of the row, at least OCT_SCALE_LEAST; 1
 *                   for a row without one above 0. Of int8 and e4m3.
 *
 * A row is everything at one place of all axes but the last.
 *
 * A product of int8 with int8 (CONV2D and LINEAR whose input and weight are both int8):
 *
 *     sum = sum over k of a[k] w[o][k]                                exact, in 32 bits
 *     v = fmaf((float)sum, s, bias[o] or 0)                           s = a's scale * w's scale[o], in float32
 *     v = v + residual, if any;  out = activation(v), by graph/math.h;  then stored in each form of the output
 *
 * so that every right backend gives the same bits. Other products take the numbers that the codes stand for, with sums
 * in float32 in the backend's own order: equal to a bound. */
#ifndef OCT_GRAPH_STORED_H
#define OCT_GRAPH_STORED_H

#include "graph/ops.h"

#define OCT_SCALE_LEAST 0x1p-120f         /* the least scale of an activation, so that its inverse is finite */
#define OCT_INT8_DEPTH ((int64_t)1 << 16) /* the most terms of an int8 product */

/* x * inverse as an int8 code. */
int8_t oct_stored_int8(float x, float inverse);
/* The scale of a row of numbers. */
float oct_stored_row_scale(oct_format format, const float *row, int64_t count);

/* A tensor as stored: what the codes stand for, and the codes and scales of int8. */
typedef struct oct_stored {
    oct_array array;
    const oct_form *form;
    int8_t *codes;       /* int8 */
    const float *scales; /* int8: a row's (activations) or channel's, or NULL: form->scale */
} oct_stored;

/* Rounds `x` to `form`; memory is the caller's: values [count], codes [count] for int8, scales [rows] for a scale a row
 * (any may be NULL if not wanted; `values` may be x itself). */
void oct_stored_round(const oct_form *form, const oct_shape *shape, const float *x, float *values, int8_t *codes,
                      float *scales);
/* What one node makes of its inputs as stored, before it is stored itself: the op's reference body, or the rule of int8
 * products. */
bool oct_stored_is_int8_product(oct_op op, const oct_stored *inputs);
void oct_stored_reference(oct_op op, const oct_attributes *attributes, const oct_stored *inputs, int count,
                          oct_array *output);

#endif
