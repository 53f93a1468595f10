/* SPDX-License-Identifier: Apache-2.0 */
/* Position embeddings against what transformers gives (tests/golden/position). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/document.h"
#include "graph/blocks/position_embedding.h"

#define GOLDEN OCTET_SOURCE_DIR "/tests/golden/position/"

static int64_t whole(const oct_node *node) {
    assert_non_null(node);
    assert_int_equal(node->kind, OCT_NODE_INT);
    return node->integer;
}

/* Resizes `layers` embeddings of in.npy and compares with out.npy; the largest difference. */
static double compare(int64_t n, const char *what, const oct_position_grid *grid, int64_t rows, int64_t columns,
                      int64_t layers) {
    char path[512];
    support_array in, out;
    (void)snprintf(path, sizeof path, GOLDEN "%02d.%sin.npy", (int)n, what);
    assert_true(support_npy_read(path, &in));
    (void)snprintf(path, sizeof path, GOLDEN "%02d.%sout.npy", (int)n, what);
    assert_true(support_npy_read(path, &out));
    int64_t from = (grid->first + grid->rows * grid->columns + grid->last) * grid->channels;
    int64_t to = (grid->first + rows * columns + grid->last) * grid->channels;
    assert_int_equal(in.count, layers * from);
    assert_int_equal(out.count, layers * to);
    double worst = 0;
    for (int64_t layer = 0; layer < layers; layer++) {
        float *resized;
        assert_int_equal(oct_position_resize(grid, support_floats(&in) + layer * from, rows, columns, &resized),
                         OCTET_OK);
        for (int64_t i = 0; i < to; i++) {
            double error = fabs((double)resized[i] - (double)support_floats(&out)[layer * to + i]);
            if (!(error <= worst)) worst = error;
        }
        oct_free(resized);
    }
    support_array_free(&in);
    support_array_free(&out);
    return worst;
}

static void test_golden(void **state) {
    (void)state;
    oct_document index;
    if (oct_document_read(&index, GOLDEN "index.json", OCT_DOCUMENT_LIMIT) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    double worst = 0;
    for (size_t i = 0; i < index.root->count; i++) {
        const oct_node *row = index.root->items[i];
        const oct_node *from = oct_node_get(row, "grid"), *to = oct_node_get(row, "to");
        const oct_position_grid grid = {1, whole(oct_node_get(row, "detection_tokens")), whole(from->items[0]),
                                        whole(from->items[1]), whole(oct_node_get(row, "hidden"))};
        int64_t n = whole(oct_node_get(row, "n")), rows = whole(to->items[0]), columns = whole(to->items[1]);
        double error = compare(n, "", &grid, rows, columns, 1);
        if (!(error <= worst)) worst = error;
        if (oct_node_get(row, "mid") != NULL) {
            error = compare(n, "mid_", &grid, rows, columns, whole(oct_node_get(row, "mid")));
            if (!(error <= worst)) worst = error;
        }
        if (!(error <= 4e-6)) fail_msg("case %d: off by %g", (int)n, error);
    }
    print_message("%zu cases, off by at most %.2g\n", index.root->count, worst);
    assert_true(index.root->count >= 10 && worst <= 4e-6);
    oct_document_free(&index);
}

static void test_same_size_is_a_copy(void **state) {
    (void)state;
    const oct_position_grid grid = {1, 1, 2, 3, 1};
    const float from[] = {9, 0.1f, -2, 3e9f, 4e-30f, 5, 6, 7};
    float *to;
    assert_int_equal(oct_position_resize(&grid, from, 2, 3, &to), OCTET_OK);
    assert_memory_equal(to, from, sizeof from);
    oct_free(to);
    oct_alloc_fail_at(1, false);
    assert_int_equal(oct_position_resize(&grid, from, 2, 3, &to), OCTET_OUT_OF_MEMORY);
    oct_alloc_fail_at(0, false);
    assert_null(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_same_size_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
