/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles of recipes whose scales come from the numbers themselves: what they hold runs to the bits that the checkpoint
 * gives with the recipe, nothing is left to quantize in a step of its own, and the second reader of bundles finds the
 * forms. */
#include "bundle_parts.h"
#include "models.h"

#define CHECKPOINT OCTET_SOURCE_DIR "/subjects/mobilenetv2_035"
#define PICTURE OCTET_SOURCE_DIR "/subjects/pictures/classify/000001.jpg"

static float *run(octet_model *model, size_t *count) {
    octet_result *result = NULL;
    size_t rows, columns;
    octet_session *session = models_session(model, 1);
    RUNS_OK(octet_session_run_file(session, PICTURE, &result));
    const float *logits = octet_result_logits(result, &rows, &columns);
    *count = rows * columns;
    float *kept = malloc(*count * sizeof *kept);
    assert_non_null(kept);
    memcpy(kept, logits, *count * sizeof *kept);
    octet_result_free(&result);
    octet_session_free(&session);
    return kept;
}

static void expect_equal(const char *recipe, octet_model *a, octet_model *b) {
    size_t count, other;
    float *left = run(a, &count), *right = run(b, &other);
    assert_int_equal(count, other);
    if (memcmp(left, right, count * sizeof *left) != 0) fail_msg("%s: the bundle gives other bits", recipe);
    free(left);
    free(right);
}

/* `word` stands in what the second reader prints. */
static void expect_read(const char *path, const char *word) {
    char command[1024];
    if (system("python3 -c '' 2>/dev/null") != 0) SUPPORT_SKIP("no python3");
    snprintf(command, sizeof command, "python3 %s/tools/reference/read_bundle.py %s | grep -q '%s'", OCTET_SOURCE_DIR,
             path, word);
    if (system(command) != 0) fail_msg("the second reader does not find %s", word);
}

static void bundles_run_as_checkpoints(void **state) {
    static const struct {
        const char *recipe, *word;
    } cases[] = {{"fp16", "\"format\": \"fp16\", \"granularity\": 0, \"held_wide\": true"},
                 {"bf16", "\"format\": \"bf16\", \"granularity\": 0, \"held_wide\": true"},
                 {"mxfp8", "\"format\": \"mxfp8\", \"granularity\": 3, \"held_wide\": true, .* \"block\": 32"},
                 {"rows", "\"format\": \"e4m3\", \"granularity\": 2, \"held_wide\": true"},
                 {"row_blocks", "\"format\": \"e4m3\", \"granularity\": 3, \"held_wide\": true"}};
    char *path = oct_path_join(*state, "narrow.octet");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t batch = 1;
        octet_lab_build_options build = {.struct_size = sizeof build, .effort = 1};
        octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
        octet_lab_figures figures = {.struct_size = sizeof figures};
        octet_model *checkpoint = NULL, *bundle = NULL;
        char identity[65];
        build.recipe = open.recipe = cases[i].recipe;
        build.batches = &batch;
        build.batch_count = 1;
        RUNS_OK(octet_lab_build(CHECKPOINT, &build, path, identity));
        RUNS_OK(octet_model_open(CHECKPOINT, &open, &checkpoint));
        RUNS_OK(octet_model_open(path, NULL, &bundle));
        RUNS_OK(octet_lab_get_figures(bundle, &figures));
        assert_int_equal(figures.unfused_quantize, 0);
        expect_equal(cases[i].recipe, checkpoint, bundle);
        octet_model_close(&checkpoint);
        octet_model_close(&bundle);
        expect_read(path, cases[i].word);
    }
    oct_free(path);
}

static int set_up(void **state) {
    *state = support_temporary_directory();
    return 0;
}

static int tear_down(void **state) {
    support_remove_tree(*state);
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bundles_run_as_checkpoints)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
