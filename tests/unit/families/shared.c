/* SPDX-License-Identifier: Apache-2.0 */
/* The trained checkpoints of the development data, where they are: they build, and the passes keep what they answer.
 * (What they answer to pictures is held by the runtime's tests.) */
#include "drawn.h"

/* Largest difference between the graphs' outputs, over the largest output. */
static double difference(const oct_graph *plain, const oct_graph *after, const float *input) {
    oct_array a[2], b[2];
    size_t count = oct_graph_output_count(plain);
    assert_in_range(count, 1, 2);
    ASSERT_OK(oct_graph_evaluate(plain, input, a, count, NULL, NULL));
    ASSERT_OK(oct_graph_evaluate(after, input, b, count, NULL, NULL));
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double largest = 0, error = 0;
        for (int64_t k = 0; k < oct_shape_count(&a[i].shape); k++) {
            double off = fabs((double)a[i].data[k] - (double)b[i].data[k]);
            if (!(off <= error)) error = off;
            if (fabs((double)a[i].data[k]) > largest) largest = fabs((double)a[i].data[k]);
        }
        if (!(error / largest <= worst)) worst = error / largest;
        oct_free(a[i].data);
        oct_free(b[i].data);
    }
    return worst;
}

static void check(const char *name, int height, int width) {
    char relative[128];
    (void)snprintf(relative, sizeof relative, "data/checkpoints/%s", name);
    const char *directory = support_shared(relative);
    if (directory == NULL) SUPPORT_SKIP("shared %s is not here", relative);
    built_model built;
    ASSERT_OK(built_open(&built, directory));
    oct_graph plain = {0}, after = {0};
    if (height == 0) {
        height = built.model.height;
        width = built.model.width;
    }
    ASSERT_OK(built.family->build(built.checkpoint, &built.model, height, width, &plain));
    ASSERT_OK(oct_graph_check(&plain));
    ASSERT_OK(built.family->build(built.checkpoint, &built.model, height, width, &after));
    ASSERT_OK(oct_passes_run(&after));
    float *input = draw_input(width, height, 1);
    double worst = difference(&plain, &after, input);
    print_message("%s: %zu nodes, after the passes %zu; outputs off by at most %.2g\n", name, plain.node_count,
                  after.node_count, worst);
    assert_true(worst <= 1e-5);
    oct_free(input);
    oct_graph_free(&plain);
    oct_graph_free(&after);
    oct_checkpoint_close(built.checkpoint);
}

static void test_mobilenetv2_100(void **state) {
    (void)state;
    check("mobilenetv2_100", 96, 128);
}

static void test_vit_tiny(void **state) {
    (void)state;
    check("vit_tiny_patch16_224", 0, 0);
}

static void test_yolos_tiny(void **state) {
    (void)state;
    check("yolos_tiny_bccd", 160, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mobilenetv2_100),
        cmocka_unit_test(test_vit_tiny),
        cmocka_unit_test(test_yolos_tiny),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
