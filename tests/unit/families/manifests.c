/* SPDX-License-Identifier: Apache-2.0 */
/* Each family's manifest: well formed and its own; what it lists builds (with weights of zeros where the golden files
 * have the architecture's tensors), at each listed batch; what it does not list is refused. */
#include "drawn.h"

#include "base/file.h"
#include "graph/manifest.h"

static void parse(const oct_family_entry *entry, oct_manifest *manifest) {
    ASSERT_OK(oct_manifest_parse(manifest, entry->family->name, entry->manifest, strlen(entry->manifest)));
    ASSERT_OK(oct_manifest_check(manifest, entry->family));
}

/* The parameter list of a listed model: params_ARCHITECTURE.json, else by the last part of its id (them/toy-small:
 * params_toy_small.json). */
static void golden_name(const oct_combination *combination, const oct_manifest *manifest, char name[64]) {
    const char *candidates[2] = {"", oct_path_base(combination->id)};
    for (size_t i = 0; i < manifest->model_count; i++) {
        if (strcmp(manifest->models[i].id, combination->id) == 0) candidates[0] = manifest->models[i].architecture;
    }
    for (int i = 0; i < 2; i++) {
        char path[512];
        (void)snprintf(name, 64, "%s", candidates[i]);
        for (char *at = name; *at != '\0'; at++) {
            if (*at == '-') *at = '_';
        }
        (void)snprintf(path, sizeof path, GOLDEN "params_%s.json", name);
        if (oct_file_exists(path)) return;
    }
    fail_msg("%s: no tests/golden/params_%s.json (tools/reference/families.py makes them)", combination->id,
             candidates[0]);
}

static void test_listed_build(void **state) {
    (void)state;
    size_t combinations = 0;
    for (const oct_family_entry *entry = oct_family_list; entry->family != NULL; entry++) {
        oct_manifest manifest;
        parse(entry, &manifest);
        char last[64] = "";
        char *directory = NULL;
        oct_graph graph = {0};
        oct_combination before = {0};
        for (size_t i = 0; i < oct_manifest_count(&manifest); i++) {
            oct_combination combination = oct_manifest_combination(&manifest, i);
            char name[64];
            golden_name(&combination, &manifest, name);
            if (strcmp(name, last) != 0) { /* a model's combinations follow one another */
                drawn_model drawn;
                if (directory != NULL) support_remove_tree(directory);
                free(directory);
                directory = support_temporary_directory();
                drawn_load(&drawn, name, false);
                drawn_write_zeros(&drawn, directory);
                drawn_free(&drawn);
                (void)snprintf(last, sizeof last, "%s", name);
                before.height = 0;
            }
            if (combination.height != before.height || combination.width != before.width) {
                oct_graph_free(&graph);
                if (build_directory(directory, combination.height, combination.width, &graph) != OCTET_OK) {
                    fail_msg("%s: %s", name, oct_error_text());
                }
            }
            ASSERT_OK(oct_graph_infer(&graph, combination.batch));
            ASSERT_OK(oct_graph_check(&graph));
            before = combination;
            combinations++;
        }
        oct_graph_free(&graph);
        if (directory != NULL) support_remove_tree(directory);
        free(directory);
        oct_manifest_free(&manifest);
    }
    print_message("%zu combinations\n", combinations);
    assert_true(combinations > 0);
    assert_int_equal(oct_alloc_live(), 0);
}

/* Ten a family, each a listed one with one part changed. */
static void test_unlisted_are_refused(void **state) {
    (void)state;
    for (const oct_family_entry *entry = oct_family_list; entry->family != NULL; entry++) {
        oct_manifest manifest;
        parse(entry, &manifest);
        oct_combination first = oct_manifest_combination(&manifest, 0);
        oct_combination wrong[10];
        for (size_t i = 0; i < 10; i++) wrong[i] = first;
        wrong[0].id = "timm/resnet50.a1_in1k";
        wrong[1].id = "";
        wrong[2].height += 1;
        wrong[3].width += 16;
        wrong[4].height = wrong[4].width = 0;
        wrong[5].batch = 3;
        wrong[6].batch = 0;
        wrong[7].precision = "fp4";
        wrong[8].precision = "int8";
        wrong[9].device = "cuda";
        for (size_t i = 0; i < 10; i++) {
            assert_int_equal(oct_manifest_lists(&manifest, &wrong[i]), OCTET_UNSUPPORTED);
            assert_non_null(strstr(oct_error_fact(), "is not listed for"));
            assert_non_null(strstr(oct_error_detail(), "listed: "));
        }
        oct_manifest_free(&manifest);
    }
}

/* What can never be built is refused by the family itself. */
static void test_sizes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int height, width;
        bool builds;
    } rows[] = {
        {"mobilenetv2_035", 1, 1, true},          {"mobilenetv2_035", 33, 65, true},
        {"mobilenetv2_035", 20000, 32, false},    {"mobilenetv2_035", -1, 32, false},
        {"vit_tiny_patch16_224", 224, 224, true}, {"vit_tiny_patch16_224", 224, 240, false},
        {"yolos_tiny_96x128", 16, 16, true},      {"yolos_tiny_96x128", 97, 200, true},
        {"yolos_tiny_96x128", 15, 64, false},     {"yolos_tiny_96x128", 5000, 64, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        drawn_model drawn;
        drawn_load(&drawn, rows[i].name, false);
        char *directory = support_temporary_directory();
        drawn_write_zeros(&drawn, directory);
        drawn_free(&drawn);
        oct_graph graph = {0};
        octet_status status = build_directory(directory, rows[i].height, rows[i].width, &graph);
        if (rows[i].builds && status != OCTET_OK) fail_msg("row %zu: %s", i, oct_error_text());
        if (!rows[i].builds) assert_int_equal(status, OCTET_UNSUPPORTED);
        if (status == OCTET_OK) oct_graph_free(&graph);
        support_remove_tree(directory);
        free(directory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed_build),
        cmocka_unit_test(test_unlisted_are_refused),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
