/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops, made from ops.def, and the activation functions in double. */
#include "graph/ops.h"

#include <math.h>
#include <string.h>

const oct_op_row oct_op_rows[OCT_OP_COUNT] = {
#define OCT_OP(identifier, name, stem, tolerance)                                                                      \
    [OCT_OP_##identifier] = {name, oct_op_##stem##_shape, oct_op_##stem##_reference, oct_op_##stem##_flops, tolerance},
#include "graph/ops.def"
#undef OCT_OP
};

int oct_op_by_name(const char *name) {
    for (int i = 0; i < OCT_OP_COUNT; i++) {
        if (strcmp(oct_op_rows[i].name, name) == 0) return i;
    }
    return -1;
}

/* Comparisons are written so that NaN comes out as NaN. */
double oct_activation_reference(oct_activation activation, double x) {
    switch (activation) {
    case OCT_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case OCT_ACTIVATION_RELU6:
        return x < 0 ? 0 : x > 6 ? 6 : x;
    case OCT_ACTIVATION_GELU: /* x * Phi(x); erfc keeps the left tail exact; minus infinity gives 0, not NaN */
        return x == -INFINITY ? 0 : x * 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1);
    case OCT_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case OCT_ACTIVATION_NONE:
    case OCT_ACTIVATION_COUNT:
        break;
    }
    return x;
}

bool oct_op_moves(oct_op op) {
    return op == OCT_OP_RESHAPE || op == OCT_OP_CONCAT || op == OCT_OP_SLICE;
}
