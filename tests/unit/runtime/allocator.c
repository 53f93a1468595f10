/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's allocator under the whole road: building, opening, running, drawing, describing, failing. Every block is
 * aligned and comes back once, nothing is written behind it, and what it held before does not matter: blocks come full
 * of rubbish. */
#include "models.h"

#include <pthread.h>
#include <stdatomic.h>

#define RUBBISH 0xa5
#define GUARD 64

typedef struct counts {
    _Atomic int64_t live, blocks, bytes, wrong;
    _Atomic uint64_t refuse_after; /* blocks; 0: none is refused */
} counts;

/* Before the block: its size; behind it: guard bytes. */
static void *take(void *user, size_t size, size_t alignment) {
    counts *seen = user;
    uint64_t number = (uint64_t)atomic_fetch_add(&seen->blocks, 1) + 1, most = atomic_load(&seen->refuse_after);
    if (most != 0 && number > most) return NULL;
    if (alignment != 64 || size == 0 || size % 64 != 0) atomic_fetch_add(&seen->wrong, 1);
    uint8_t *block = aligned_alloc(64, 64 + size + GUARD);
    if (block == NULL) return NULL;
    memcpy(block, &size, sizeof size);
    memset(block + 64, RUBBISH, size + GUARD);
    atomic_fetch_add(&seen->live, 1);
    atomic_fetch_add(&seen->bytes, (int64_t)size);
    return block + 64;
}

static void give(void *user, void *memory) {
    counts *seen = user;
    uint8_t *block = (uint8_t *)memory - 64;
    size_t size;
    memcpy(&size, block, sizeof size);
    for (size_t i = 0; i < GUARD; i++) {
        if (((uint8_t *)memory)[size + i] != RUBBISH) atomic_fetch_add(&seen->wrong, 1);
    }
    memset(memory, 0x5a, size);
    atomic_fetch_sub(&seen->live, 1);
    free(block);
}

static char *folder;

typedef struct place {
    const char *checkpoint, *picture;
} place;
static const place places[] = {
    {OCTET_SOURCE_DIR "/subjects/mobilenetv2_035", OCTET_SOURCE_DIR "/subjects/pictures/classify/000000.jpg"},
    {OCTET_SOURCE_DIR "/subjects/yolos", OCTET_SOURCE_DIR "/subjects/pictures/detect/000000.jpg"},
};

/* The logits (256 of them at most); all that was made is freed again, whatever failed. */
static octet_status whole_road(const place *from, uint32_t threads, float *logits) {
    static const int64_t batches[] = {1, 2};
    char bundle[600], drawn[600], identity[65], *text = NULL;
    octet_lab_build_options build = {.struct_size = sizeof build};
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    octet_session *session = NULL;
    octet_result *result = NULL;
    size_t rows = 0, columns = 0;
    (void)snprintf(bundle, sizeof bundle, "%s/model.octet", folder);
    (void)snprintf(drawn, sizeof drawn, "%s/drawn.png", folder);
    build.recipe = "fp32";
    build.batches = batches;
    build.batch_count = 2;
    build.effort = 1;
    build.threads = open.threads = options.threads = threads;
    octet_status status = octet_lab_build(from->checkpoint, &build, bundle, identity);
    if (status == OCTET_OK) status = octet_model_open(bundle, &open, &model);
    if (status == OCTET_OK) status = octet_session_new(model, &options, &session);
    if (status == OCTET_OK) status = octet_session_run_file(session, from->picture, &result);
    if (status == OCTET_OK) status = octet_draw(result, from->picture, OCTET_UPRIGHT, 0.5f, drawn);
    if (status == OCTET_OK) status = octet_lab_describe(model, OCTET_LAB_SUMMARY, &text);
    if (status == OCTET_OK) {
        const float *values = octet_result_logits(result, &rows, &columns);
        memcpy(logits, values, (rows * columns < 256 ? rows * columns : 256) * sizeof *logits);
    }
    octet_free(text);
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    return status;
}

static void test_whole_road(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        counts seen = {0};
        const octet_allocator allocator = {take, give, &seen};
        float expected[256] = {0}, found[256] = {0};
        RUNS_OK(whole_road(&places[i], 1, expected));
        octet_set_allocator(&allocator);
        RUNS_OK(whole_road(&places[i], 2, found));
        octet_model *none = NULL;
        FAILS(octet_model_open("/nowhere/at/all", NULL, &none), OCTET_NOT_FOUND, "/nowhere/at/all");
        FAILS(octet_model_open(places[i].picture, NULL, &none), OCTET_INVALID_ARGUMENT, "");
        octet_set_allocator(NULL);
        assert_memory_equal(expected, found, sizeof expected);
        assert_int_equal(seen.live, 0);
        assert_int_equal(seen.wrong, 0);
        assert_true(seen.blocks > 500 && seen.bytes > 4 << 20); /* weights and activations too */
        print_message("%lld blocks, %lld bytes\n", (long long)seen.blocks, (long long)seen.bytes);
    }
}

/* An allocator that ends: the call fails so, and everything comes back. */
static void test_allocator_ends(void **state) {
    (void)state;
    float found[256];
    for (uint64_t most = 1; most < 1 << 14; most += 1 + most / 3) {
        counts seen = {.refuse_after = most};
        const octet_allocator allocator = {take, give, &seen};
        octet_set_allocator(&allocator);
        octet_status status = whole_road(&places[0], 1, found);
        octet_set_allocator(NULL);
        assert_int_equal(seen.live, 0);
        assert_int_equal(seen.wrong, 0);
        if (status == OCTET_OK) return;
        assert_int_equal(status, OCTET_OUT_OF_MEMORY);
    }
    fail_msg("never enough");
}

/* Half an allocator is none. */
static void test_half_an_allocator(void **state) {
    (void)state;
    counts seen = {0};
    float found[256];
    const octet_allocator half[] = {{take, NULL, &seen}, {NULL, give, &seen}};
    for (int i = 0; i < 2; i++) {
        octet_set_allocator(&half[i]);
        RUNS_OK(whole_road(&places[0], 1, found));
        octet_set_allocator(NULL);
    }
    assert_int_equal(seen.blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_road),
        cmocka_unit_test(test_allocator_ends),
        cmocka_unit_test(test_half_an_allocator),
    };
    folder = support_temporary_directory();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    models_drop(folder);
    return failed;
}
