/* SPDX-License-Identifier: Apache-2.0 */
/* How numbers are stored and what is read back, for every backend: the rules that make bits equal.
 *
 * Rounding an activation x to a form: y = x * factors[channel] in float32 where the form has factors, else y = x; then,
 * with inverse = 1 / scale in float32 (not a division each: a multiplication is an eighth of its cost, and another code
 * in a few of a million values),
 *
 *     fp32          as it is
 *     fp16, bf16    rounded to nearest even; beyond the largest: infinity
 *     int8          y * inverse cut to [-127, 127], rounded half to even; NaN gives 0
 *     uint8         y * inverse cut to [-255, 255], rounded half to even, plus the zero point, cut to [0, 255]; NaN
 *                   gives the zero point. Stands for (code - zero point) * scale
 *     e4m3, e5m2    y * inverse rounded half to even, saturating at 448 and 57344; NaN stays NaN
 *     mxfp8, nvfp4  as format/format.h encodes and decodes a row in blocks of 32 and 16; nvfp4 under the form's scale
 *
 *     a scale a row or block   s = amax / (127, 448 or 57344), amax the largest finite |y| of it, at least
 *                              OCT_SCALE_LEAST; 1 without one above 0. Of int8, e4m3 and e5m2. The last block of a row
 *                              may be short
 *
 * A row is everything at one place of all axes but the last. What codes stand for is code * scale in float32.
 *
 * A product of int8 with int8 (oct_stored_is_int8_product):
 *
 *     sum = sum over k of a[k] w[o][k]                                exact, in 32 bits
 *     v = fmaf((float)sum, s, bias[o] or 0)                           s = a's scale * w's scale[o], in float32
 *     v = v + residual, if any;  out = activation(v), by graph/math.h;  then stored in each form of the output
 *
 * so that every right backend gives the same bits. Other products take the numbers that the codes stand for, with sums
 * in float32 in the backend's own order: equal to a bound.
 *
 * Attention whose probabilities are rounded: p = exp(score - the row's largest), in (0, 1], is rounded to fp16 or bf16,
 * to e4m3 with the scale 2^-8, or to int8 with the scale 1 / 127; the sum that divides is of p before. */
#ifndef OCT_GRAPH_STORED_H
#define OCT_GRAPH_STORED_H

#include "graph/ops.h"

#define OCT_SCALE_LEAST 0x1p-120f         /* the least scale of an activation, so that its inverse is finite */
#define OCT_SCALE_MOST 0x1p120f           /* and the largest, so that its inverse is no denormal */
#define OCT_INT8_DEPTH ((int64_t)1 << 16) /* the most terms of an int8 product */

/* x * inverse as an int8 code. */
int8_t oct_stored_int8(float x, float inverse);
/* The scale of a row or block of numbers. */
float oct_stored_row_scale(oct_format format, const float *row, int64_t count);
/* A probability of attention, rounded; and the scales of that. */
#define OCT_PROBABILITY_E4M3 0x1p-8f
#define OCT_PROBABILITY_INT8 (1.0f / 127.0f)
bool oct_stored_is_probability(oct_format format);
float oct_stored_probability(oct_format format, float p);

/* A form with the vectors it names. */
typedef struct oct_rounding {
    const oct_form *form;
    const float *scales;  /* OCT_PER_CHANNEL: a scale a channel */
    const float *factors; /* NULL: none */
} oct_rounding;
oct_rounding oct_graph_rounding(const oct_graph *graph, const oct_form *form);

/* Rounds x [rows][channels], where the last axis is the channel; memory is the caller's: values [rows][channels] gets
 * the numbers that the codes stand for, codes [rows][channels] those of int8, scales [rows] those of a scale a row (any
 * may be NULL if not wanted; `values` may be x itself). */
void oct_stored_round(const oct_rounding *rounding, int64_t rows, int64_t channels, const float *x, float *values,
                      int8_t *codes, float *scales);

/* A tensor as stored: what the codes stand for, and the codes and scales of int8. */
typedef struct oct_stored {
    oct_array array;
    const oct_form *form;
    int8_t *codes;       /* int8, not held wide */
    const float *scales; /* int8: a row's (activations) or channel's, or NULL: form->scale */
} oct_stored;

/* Whether a node multiplies codes: CONV2D or LINEAR, input and weight in codes of int8, at most OCT_INT8_DEPTH terms,
 * the input with a scale a tensor, or, without groups, a row where an output's row is an input's. The one predicate:
 * what it refuses is computed from the numbers, in float32. */
bool oct_stored_is_int8_product(oct_op op, const oct_attributes *attributes, const oct_shape *weight_shape,
                                const oct_form *input, const oct_form *weight);
/* The end of a product of codes, at one element of the output: output channel o, `row` of the input's rows, `at` in the
 * output; `inputs` are the node's, `sum` is of codes. As in the rule above. */
float oct_stored_finish(const oct_attributes *attributes, const oct_stored *inputs, float sum, int64_t row, int64_t at,
                        int64_t o);
/* What one node makes of its inputs as stored, before it is stored itself: the op's reference body, or the rule of int8
 * products. */
void oct_stored_reference(oct_op op, const oct_attributes *attributes, const oct_stored *inputs, int count,
                          oct_array *output);

#endif
