/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation from opening a checkpoint to the graph after the passes fails once, and once with all after it: each
 * time the answer is "out of memory", and nothing is held. OCTET_FAULT_STEP tries each of that many for the larger
 * model. */
#include "drawn.h"

static void try_faults(const char *directory, uint64_t step, bool forever) {
    int64_t held = oct_alloc_live();
    uint64_t n = 1;
    for (;; n += step) {
        oct_graph graph = {0};
        oct_alloc_fail_at(n, forever);
        octet_status status = build_directory(directory, 64, 48, &graph);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (status == OCTET_OK) oct_graph_free(&graph);
        if (oct_alloc_live() != held) fail_msg("allocation %llu: blocks are held", (unsigned long long)n);
        if (!met) {
            if (status != OCTET_OK) fail_msg("%s", oct_error_text());
            break;
        }
        if (status != OCTET_OUT_OF_MEMORY) {
            fail_msg("allocation %llu: %s: %s", (unsigned long long)n, oct_status_name(status), oct_error_text());
        }
    }
    print_message("%llu allocations, each %llu. failed\n", (unsigned long long)n, (unsigned long long)step);
}

static void test_small_detector(void **state) {
    (void)state;
    drawn_model drawn;
    drawn_load_small(&drawn);
    char *directory = support_temporary_directory();
    drawn_write(&drawn, directory);
    drawn_free(&drawn);
    try_faults(directory, 1, false);
    try_faults(directory, 1, true);
    support_remove_tree(directory);
    free(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

static void test_classifiers(void **state) {
    (void)state;
    const char *text = getenv("OCTET_FAULT_STEP");
    uint64_t step = text != NULL ? strtoull(text, NULL, 10) : 29;
    drawn_model drawn;
    drawn_load(&drawn, "mobilenetv2_035", true);
    char *directory = support_temporary_directory();
    drawn_write(&drawn, directory);
    drawn_free(&drawn);
    try_faults(directory, step > 0 ? step : 1, false);
    support_remove_tree(directory);
    free(directory);
    assert_int_equal(oct_alloc_live(), 0);
}

/* evaluation and dumps, too */
static void test_evaluation(void **state) {
    (void)state;
    drawn_model drawn;
    drawn_load_small(&drawn);
    char *directory = support_temporary_directory();
    drawn_write(&drawn, directory);
    drawn_free(&drawn);
    oct_graph graph;
    ASSERT_OK(build_directory(directory, 64, 48, &graph));
    float *input = draw_input(48, 64, 1);
    int64_t held = oct_alloc_live();
    for (uint64_t n = 1;; n++) {
        oct_array outputs[2];
        oct_alloc_fail_at(n, false);
        octet_status status = oct_graph_evaluate(&graph, input, outputs, 2, NULL, NULL);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        for (int i = 0; i < 2; i++) oct_free(outputs[i].data);
        assert_int_equal(oct_alloc_live(), held);
        if (!met) break;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
    for (uint64_t n = 1;; n++) {
        oct_text text = {0};
        oct_alloc_fail_at(n, false);
        oct_graph_dump(&graph, &text);
        oct_graph_dot(&graph, &text);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(text.failed, met);
        oct_text_free(&text);
        assert_int_equal(oct_alloc_live(), held);
        if (!met) break;
    }
    oct_free(input);
    oct_graph_free(&graph);
    support_remove_tree(directory);
    free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_detector),
        cmocka_unit_test(test_classifiers),
        cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
