/* SPDX-License-Identifier: Apache-2.0 */
/* Every architecture that timm or transformers was asked about: it wants exactly their tensors, and with drawn weights
 * gives their logits and boxes, before and after the passes. Architectures above 30 million weights are computed where
 * OCTET_LARGE is set. */
#include "drawn.h"

#include <dirent.h>

/* float32 in another order of sums; the goldens' README allows 1e-4 of the largest logit */
#define BOUND 1e-5
#define LARGE 30000000

static void test_wants_exactly_the_tensors(void **state) {
    (void)state;
    DIR *golden = opendir(GOLDEN);
    assert_non_null(golden);
    size_t seen = 0;
    for (struct dirent *entry; (entry = readdir(golden)) != NULL;) {
        char name[128];
        if (sscanf(entry->d_name, "params_%127[^.].json", name) != 1) continue;
        drawn_model drawn;
        drawn_load(&drawn, name, false);
        char *directory = support_temporary_directory();
        drawn_write_zeros(&drawn, directory);
        oct_graph graph;
        if (build_directory(directory, 0, 0, &graph) != OCTET_OK) fail_msg("%s: %s", name, oct_error_text());
        oct_graph_free(&graph);
        support_remove_tree(directory);
        free(directory);
        drawn_free(&drawn);
        seen++;
    }
    closedir(golden);
    print_message("%zu architectures\n", seen);
    assert_true(seen >= 20);
    assert_int_equal(oct_alloc_live(), 0);
}

/* "logits" or "boxes" of input `index` against row `index` of the golden. */
static void compare(const oct_graph *graph, const oct_array *outputs, const char *output, const support_array *golden,
                    size_t index, double scale, double *worst) {
    size_t at = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        if (!graph->values[i].is_output) continue;
        if (strcmp(graph->values[i].name, output) == 0) break;
        at++;
    }
    size_t count = golden->count / golden->shape[0];
    assert_int_equal(oct_shape_count(&outputs[at].shape), count);
    for (size_t i = 0; i < count; i++) {
        double right = (double)support_floats(golden)[index * count + i];
        double error = fabs((double)outputs[at].data[i] - right) / scale;
        if (!(error <= *worst)) *worst = error;
    }
}

static double run_input(const built_model *built, const oct_node *row, size_t index, bool passes,
                        const support_array *logits, const support_array *boxes) {
    const oct_node *input = oct_node_get(row, "inputs")->items[index];
    int64_t width = input->items[0]->integer, height = input->items[1]->integer;
    oct_graph graph = {0};
    ASSERT_OK(built->family->build(built->checkpoint, &built->model, (int)height, (int)width, &graph));
    if (passes) ASSERT_OK(oct_passes_run(&graph));
    float *pixels = draw_input(width, height, input->items[2]->integer);
    oct_array outputs[2];
    size_t count = boxes != NULL ? 2 : 1;
    ASSERT_OK(oct_graph_evaluate(&graph, pixels, outputs, count, NULL, NULL));
    double worst = 0;
    compare(&graph, outputs, "logits", logits, index, oct_node_get(row, "max_abs")->real, &worst);
    if (boxes != NULL) compare(&graph, outputs, "boxes", boxes, index, 1, &worst);
    for (size_t i = 0; i < count; i++) oct_free(outputs[i].data);
    oct_free(pixels);
    oct_graph_free(&graph);
    return worst;
}

static void check_sha256(const drawn_model *drawn, const char *expected) {
    oct_sha256 hash;
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX];
    ASSERT_OK(oct_sha256_begin(&hash));
    for (size_t i = 0; i < drawn->count; i++) {
        if (drawn->tensors[i].data == NULL) continue;
        ASSERT_OK(oct_sha256_update(&hash, drawn->tensors[i].data,
                                    (size_t)drawn_elements(&drawn->tensors[i]) * sizeof(float)));
    }
    ASSERT_OK(oct_sha256_end(&hash, digest));
    oct_sha256_hex(digest, hex);
    assert_string_equal(hex, expected);
}

static void run_model(const oct_node *row) {
    const char *name = oct_node_get(row, "name")->string;
    const oct_node *boxes_file = oct_node_get(row, "boxes");
    drawn_model drawn;
    drawn_load(&drawn, name, true);
    check_sha256(&drawn, oct_node_get(row, "sha256")->string);
    char *directory = support_temporary_directory();
    drawn_write(&drawn, directory);
    drawn_free(&drawn);
    char path[512];
    support_array logits, boxes;
    (void)snprintf(path, sizeof path, GOLDEN "%s", oct_node_get(row, "logits")->string);
    assert_true(support_npy_read(path, &logits));
    if (boxes_file != NULL) {
        (void)snprintf(path, sizeof path, GOLDEN "%s", boxes_file->string);
        assert_true(support_npy_read(path, &boxes));
    }
    built_model built;
    ASSERT_OK(built_open(&built, directory));
    double worst = 0;
    for (size_t i = 0; i < logits.shape[0]; i++) {
        for (int passes = i == 0 ? 0 : 1; passes < 2; passes++) {
            double error = run_input(&built, row, i, passes == 1, &logits, boxes_file != NULL ? &boxes : NULL);
            if (!(error <= worst)) worst = error;
            if (!(error <= BOUND)) fail_msg("%s: input %zu: off by %g", name, i, error);
        }
    }
    print_message("%s: off by at most %.2g\n", name, worst);
    oct_checkpoint_close(built.checkpoint);
    support_array_free(&logits);
    if (boxes_file != NULL) support_array_free(&boxes);
    support_remove_tree(directory);
    free(directory);
}

static void test_gives_the_outputs(void **state) {
    (void)state;
    oct_document document;
    ASSERT_OK(oct_document_read(&document, GOLDEN "drawn.json", OCT_DOCUMENT_LIMIT));
    const oct_node *models = oct_node_get(document.root, "models");
    size_t seen = 0;
    for (size_t i = 0; i < models->count; i++) {
        const oct_node *row = models->items[i];
        if (oct_node_get(row, "logits") == NULL) continue;
        if (getenv("OCTET_LARGE") == NULL && oct_node_get(row, "elements")->integer > LARGE) {
            print_message("%s: left out (set OCTET_LARGE)\n", oct_node_get(row, "name")->string);
            continue;
        }
        run_model(row);
        seen++;
    }
    assert_true(seen >= 10);
    oct_document_free(&document);
    assert_int_equal(oct_alloc_live(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wants_exactly_the_tensors),
        cmocka_unit_test(test_gives_the_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
