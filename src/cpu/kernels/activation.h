/* SPDX-License-Identifier: Apache-2.0 */
/* The activations one by one, for plain bodies (graph/math.h has the functions). */
#ifndef OCT_CPU_KERNELS_ACTIVATION_H
#define OCT_CPU_KERNELS_ACTIVATION_H

#include "graph/graph.h"
#include "graph/math.h"

static inline float oct_activate(oct_activation activation, float x) {
    switch (activation) {
    case OCT_ACTIVATION_RELU:
        return oct_relu(x);
    case OCT_ACTIVATION_RELU6:
        return oct_relu6(x);
    case OCT_ACTIVATION_GELU:
        return oct_gelu(x);
    case OCT_ACTIVATION_SIGMOID:
        return oct_sigmoid(x);
    default:
        return x;
    }
}

#endif
