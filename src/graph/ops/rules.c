/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/rules.h"

#include <stdio.h>

oct_shape_bytes oct_shape_text(const oct_shape *shape) {
    oct_shape_bytes text = {"["};
    size_t length = 1;
    for (int i = 0; i < shape->rank && i < OCT_RANK; i++) {
        length += (size_t)snprintf(text.bytes + length, sizeof text.bytes - length, "%s%lld", i > 0 ? ", " : "",
                                   (long long)shape->dims[i]);
    }
    snprintf(text.bytes + length, sizeof text.bytes - length, "]");
    return text;
}

octet_status oct_rule_expect(const char *node, const char *what, const oct_shape *expected, const oct_shape *found) {
    if (oct_shape_equal(expected, found)) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "%s: %s: expected %s, found %s", node, what, oct_shape_text(expected).bytes,
                    oct_shape_text(found).bytes);
}

octet_status oct_rule_vector(const char *node, const char *what, int64_t length, const oct_shape *found) {
    oct_shape expected = {.rank = 1, .dims = {length}};
    return oct_rule_expect(node, what, &expected, found);
}

octet_status oct_rule_rank(const char *node, const char *what, const oct_shape *found, int low, int high) {
    if (found->rank >= low && found->rank <= high) return OCTET_OK;
    if (low == high) {
        return oct_fail(OCTET_MISMATCH, "%s: %s: expected %d dimensions, found %s", node, what, low,
                        oct_shape_text(found).bytes);
    }
    return oct_fail(OCTET_MISMATCH, "%s: %s: expected %d to %d dimensions, found %s", node, what, low, high,
                    oct_shape_text(found).bytes);
}

octet_status oct_rule_inputs(const char *node, int expected, int found) {
    if (expected == found) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "%s: expected %d inputs, found %d", node, expected, found);
}
