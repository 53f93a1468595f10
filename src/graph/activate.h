/* SPDX-License-Identifier: Apache-2.0 */
/* The activations one by one, for plain bodies and for CUDA (graph/math.h has the functions). */
#ifndef OCT_GRAPH_ACTIVATE_H
#define OCT_GRAPH_ACTIVATE_H

#include "graph/graph.h"
#include "graph/math.h"

OCT_MATH float oct_activate(oct_activation activation, float x) {
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
