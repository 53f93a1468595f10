/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an int8 product, from its exact sum, by the rule of graph/stored.h:
 *
 *     v = activation(fmaf((float)sum, scale, bias) + residual),  code = v as int8 of `inverse`
 *
 * Where no residual is added, the activation is none, ReLU or ReLU6, and |v * inverse| stays below 2^30 whatever the
 * input (`bounded`, found when weights are packed), the code may be had without clamping numbers: rounding and
 * multiplying by a positive number keep order, so
 *
 *     code = fmaf((float)sum, scale, bias) * inverse rounded half to even, as an integer, cut to [low, top] */
#ifndef OCT_CPU_KERNELS_FINISH_I8_H
#define OCT_CPU_KERNELS_FINISH_I8_H

#include "graph/graph.h"

typedef struct oct_finish_i8 {
    oct_activation activation;
    float inverse;
    bool bounded;
    int8_t low, top; /* where bounded */
} oct_finish_i8;

#endif
