/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing by the clock: the choice fits the step, is repeatable by the cache, and a cache that is not ours is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cpu/cpu.h"
#include "engine/plan_file.h"
#include "engine/tune.h"
#include "support/support.h"

#include "unit/engine/random_graph.h"

#define DEVICE "a processor, 2 cores"

/* A plan of random graph `seed`, tuned with `cache`; its bytes. */
static oct_text tuned(uint64_t seed, int effort, oct_timing_cache *cache) {
    oct_graph graph;
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    oct_text bytes = {0};
    const oct_plan_options options = {.batch = 2};
    memset(&graph, 0, sizeof graph);
    assert_true(random_graph_make(&graph, seed));
    assert_int_equal(oct_weights_from_graph(&weights, &graph), OCTET_OK);
    assert_int_equal(oct_plan_make(&plan, &graph, weights, oct_cpu_backend(), &options), OCTET_OK);
    assert_int_equal(oct_plan_tune(plan, weights, oct_cpu_backend(), NULL, effort, cache), OCTET_OK);
    assert_int_equal(oct_plan_check(plan, weights, oct_cpu_backend()), OCTET_OK);
    for (size_t i = 0; i < plan->step_count; i++) {
        oct_tactic_choice choice;
        const char *tactic = plan->steps[i].tactic;
        assert_int_equal(oct_cpu_backend()->choose(plan, weights, i, NULL, tactic, &choice, NULL), OCTET_OK);
        assert_string_equal(choice.tactic, tactic);
    }
    oct_plan_write(plan, &bytes);
    oct_plan_free(plan);
    oct_weights_release(weights);
    oct_graph_free(&graph);
    return bytes;
}

static void same_cache_gives_the_same_bytes(void **state) {
    char *path = oct_path_join(*state, "timing.json");
    for (int effort = 2; effort <= 3; effort++) {
        oct_timing_cache cache;
        remove(path);
        assert_int_equal(oct_timing_cache_open(&cache, DEVICE, path), OCTET_OK);
        oct_text first = tuned(5, effort, &cache);
        assert_true(cache.misses > 0);
        assert_int_equal(oct_timing_cache_write(&cache, path), OCTET_OK);
        oct_timing_cache_close(&cache);
        assert_int_equal(oct_timing_cache_open(&cache, DEVICE, path), OCTET_OK);
        oct_text second = tuned(5, effort, &cache);
        assert_int_equal(cache.misses, 0);
        assert_true(cache.hits > 0);
        assert_int_equal(first.length, second.length);
        assert_memory_equal(first.data, second.data, first.length);
        oct_timing_cache_close(&cache);
        oct_text_free(&first);
        oct_text_free(&second);
    }
    oct_free(path);
}

/* The clock is not asked where the cache has an answer, right or wrong: here every linear is told to run in plain C. */
static void the_cache_decides(void **state) {
    char *path = oct_path_join(*state, "told.json");
    size_t size;
    oct_timing_cache cache;
    assert_int_equal(oct_timing_cache_open(&cache, DEVICE, NULL), OCTET_OK);
    oct_text bytes = tuned(5, 2, &cache);
    oct_text_free(&bytes);
    assert_int_equal(oct_timing_cache_write(&cache, path), OCTET_OK);
    oct_timing_cache_close(&cache);
    int changed = 0;
    char *text = support_read_text(path, &size), *told = calloc(size * 2, 1);
    for (char *at = text; *at != '\0';) {
        static const char fast[] = "\"tactic\": \"linear_f32_", plain[] = "\"tactic\": \"linear_f32_4x16_c\"";
        if (strncmp(at, fast, sizeof fast - 1) == 0) {
            changed++;
            strcat(told, plain);
            at = strchr(at + sizeof "\"tactic\": \"", '"') + 1;
        } else {
            strncat(told, at++, 1);
        }
    }
    assert_true(changed > 0);
    support_write_text(path, told);
    assert_int_equal(oct_timing_cache_open(&cache, DEVICE, path), OCTET_OK);
    bytes = tuned(5, 2, &cache);
    assert_int_equal(cache.misses, 0);
    assert_non_null(memmem(bytes.data, bytes.length, "linear_f32_4x16_c", sizeof "linear_f32_4x16_c" - 1));
    oct_text_free(&bytes);
    oct_timing_cache_close(&cache);
    free(told);
    free(text);
    oct_free(path);
}

static void refuses_other_caches(void **state) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"version\": 1, \"device\": \"another\", \"steps\": {}}", "times of another device"},
        {"{\"version\": 2, \"device\": \"" DEVICE "\", \"steps\": {}}", "version"},
        {"{\"version\": 1, \"device\": \"" DEVICE "\"}", "steps"},
        {"{\"version\": 1, \"device\": \"" DEVICE "\", \"steps\": []}", "steps"},
        {"{\"version\": 1, \"device\": \"" DEVICE "\", \"steps\": {\"s\": {\"us\": {}}}}", "tactic"},
        {"{\"version\": 1, \"device\": \"" DEVICE "\", \"steps\": {\"s\": {\"tactic\": 3, \"us\": {}}}}", "tactic"},
        {"{\"version\": 1, \"device\": \"" DEVICE "\", \"steps\": {\"s\": {\"tactic\": \"t\"}}}", "us"},
        {"{\"version\": 1, \"device\": \"" DEVICE
         "\", \"steps\": {\"s\": {\"tactic\": \"t\", \"us\": {\"t\": \"1\"}}}}",
         "expected a number"},
        {"{", "timing.json:1"},
        {"", "timing.json"},
    };
    char *path = oct_path_join(*state, "timing.json");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        oct_timing_cache cache;
        support_write_text(path, bad[i].text);
        assert_int_not_equal(oct_timing_cache_open(&cache, DEVICE, path), OCTET_OK);
        if (strstr(oct_error_text(), bad[i].says) == NULL)
            fail_msg("entry %zu: expected \"%s\", found \"%s\"", i, bad[i].says, oct_error_text());
    }
    oct_free(path);
}

/* A tactic the machine or the step cannot use does not stay in the plan; one nobody knows is measured anew. */
static void unknown_tactics_are_measured_anew(void **state) {
    char *path = oct_path_join(*state, "timing.json");
    size_t size;
    oct_timing_cache cache;
    assert_int_equal(oct_timing_cache_open(&cache, DEVICE, NULL), OCTET_OK);
    oct_text bytes = tuned(9, 2, &cache);
    oct_text_free(&bytes);
    assert_int_equal(oct_timing_cache_write(&cache, path), OCTET_OK);
    oct_timing_cache_close(&cache);
    char *text = support_read_text(path, &size);
    for (char *at = text; (at = strstr(at, "\"tactic\": \"")) != NULL; at += 12) at[11] = 'X';
    support_write_text(path, text);
    assert_int_equal(oct_timing_cache_open(&cache, DEVICE, path), OCTET_OK);
    bytes = tuned(9, 2, &cache);
    assert_true(cache.misses > 0);
    oct_text_free(&bytes);
    oct_timing_cache_close(&cache);
    free(text);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_cache_gives_the_same_bytes),
                                       cmocka_unit_test(the_cache_decides), cmocka_unit_test(refuses_other_caches),
                                       cmocka_unit_test(unknown_tactics_are_measured_anew)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
