/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the shape rules: each failure names the node, what does not fit, expected and found. And the sum that the
 * reference bodies share. */
#ifndef OCT_GRAPH_OPS_RULES_H
#define OCT_GRAPH_OPS_RULES_H

#include "graph/ops.h"

/* A shape as text, by value: `oct_shape_text(&shape).bytes` in an argument list. */
typedef struct oct_shape_bytes {
    char bytes[96];
} oct_shape_bytes;
oct_shape_bytes oct_shape_text(const oct_shape *shape);

/* "NODE: WHAT: expected [..], found [..]" */
octet_status oct_rule_expect(const char *node, const char *what, const oct_shape *expected, const oct_shape *found);
/* The same for a vector of `length`. */
octet_status oct_rule_vector(const char *node, const char *what, int64_t length, const oct_shape *found);
/* "NODE: WHAT: expected LOW to HIGH dimensions, found [..]" */
octet_status oct_rule_rank(const char *node, const char *what, const oct_shape *found, int low, int high);
/* "NODE: expected N inputs, found M" */
octet_status oct_rule_inputs(const char *node, int expected, int found);

/* Position among a CONV2D's or LINEAR's inputs, OCT_NONE if it has none. */
static inline int oct_bias_index(const oct_attributes *attributes) {
    return attributes->has_bias ? 2 : OCT_NONE;
}
static inline int oct_residual_index(const oct_attributes *attributes) {
    return attributes->has_residual ? (attributes->has_bias ? 3 : 2) : OCT_NONE;
}

/* Sum of a[i] * b[i] in double: eight partial sums, added in order. Products of floats are exact in double. */
static inline double oct_dot(const float *a, const float *b, int64_t n) {
    double sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++) sums[j] += (double)a[i + j] * (double)b[i + j];
    }
    for (int j = 0; i < n; i++, j++) sums[j] += (double)a[i] * (double)b[i];
    double sum = 0;
    for (int j = 0; j < 8; j++) sum += sums[j];
    return sum;
}

#endif
