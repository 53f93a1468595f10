/* SPDX-License-Identifier: Apache-2.0 */
/* A run of numbers: out[i] = activation(x[i] + y[i]), or activation(x[i]) where y is NULL. out may be x or y. */
#ifndef OCT_CPU_KERNELS_ELEMENTWISE_F32_H
#define OCT_CPU_KERNELS_ELEMENTWISE_F32_H

#include "graph/graph.h"

typedef struct oct_elementwise_f32 {
    const float *x, *y;
    float *out;
    int64_t count;
    oct_activation activation;
} oct_elementwise_f32;

typedef void oct_elementwise_f32_body(const oct_elementwise_f32 *e);

#endif
