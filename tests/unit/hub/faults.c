/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out at every place of a pull, and the ref cannot be written: nothing is lost, nothing wrong is left. */
#include "unit/hub/hub.h"

#include "base/alloc.h"

static const oct_hub_options small = {.place = MODEL, .include = "config.json"};

static void test_memory(void **state) {
    (void)state;
    scene *now = scene_open();
    int64_t live = oct_alloc_live();
    uint64_t n = 1;
    for (bool met = true; met; n++) {
        support_remove_tree(scene_path(now, FOLDER));
        oct_alloc_fail_at(n, false);
        octet_status status = scene_pull_with(now, &small);
        met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        assert_int_equal(oct_alloc_live(), live);
        if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY)
            fail_msg("allocation %d: %s", (int)n, oct_error_text());
        /* a link has its blob behind it, a ref has all its links */
        long long blob = scene_size(scene_blob(now, now->config, ""));
        if (blob >= 0) scene_expect_bytes(now, now->config, scene_blob(now, now->config, ""));
        if (status == OCTET_OK || oct_file_exists(scene_path(now, FOLDER "/refs/main")))
            scene_expect_bytes(now, now->config, scene_path(now, SNAPSHOT "/config.json"));
    }
    assert_true(n > 20);
    scene_close(now);
}

static void test_ref(void **state) {
    (void)state;
    scene *now = scene_open();
    bool met = true;
    for (uint64_t n = 1; met; n++) {
        support_remove_tree(scene_path(now, FOLDER));
        oct_file_fail_at(n, false);
        octet_status status = scene_pull_with(now, &small);
        met = oct_file_fault_met();
        oct_file_fail_at(0, false);
        assert_int_equal(status, met ? OCTET_IO : OCTET_OK);
        long long size = scene_size(scene_path(now, FOLDER "/refs/main"));
        assert_true(size == 40 || (met && size == -1));
        if (met) assert_int_equal(scene_pull_with(now, &small), OCTET_OK);
        assert_int_equal(now->cached, met ? 1 : 0);
        assert_int_equal(support_count_entries(scene_path(now, FOLDER "/refs")), 1);
    }
    scene_close(now);
}

int main(int count, char **words) {
    (void)count, (void)words;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_ref)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
