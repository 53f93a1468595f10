/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles where memory ends or the disk is full, at every place, while they are built, opened and run; bundles whose
 * input follows the picture; and footers that are sealed rightly but say what cannot be. */
#include "models.h"

#include "base/bytes.h"
#include "runtime/bundle_format.h"

static char *fixed_place, *edges_place, *folder;

static octet_status build(const char *place, const int32_t *sizes, size_t size_count, const char *output) {
    static const int64_t batches[] = {1, 2};
    char identity[65];
    octet_lab_build_options options = {.struct_size = sizeof options};
    options.recipe = "fp32";
    options.batches = batches;
    options.batch_count = size_count > 0 ? 1 : 2;
    options.sizes = sizes;
    options.size_count = size_count;
    options.effort = 1;
    options.threads = 1;
    return octet_lab_build(place, &options, output, identity);
}

static const char *path_of(const char *name) {
    return support_join(folder, name);
}

static void assert_file_is(const char *path, const char *bytes, size_t size) {
    size_t found_size = 0;
    char *found = support_read_text(path, &found_size);
    assert_non_null(found);
    assert_int_equal(found_size, size);
    assert_memory_equal(found, bytes, size);
    free(found);
}

/* ---- building */

/* The old file stays until the new one is whole; only a failure to sync the folder comes after that. */
static void test_full_disk(void **state) {
    (void)state;
    char *output = strdup(path_of("full.octet"));
    size_t size = 0;
    RUNS_OK(build(fixed_place, NULL, 0, output));
    char *whole = support_read_text(output, &size);
    for (int forever = 0; forever < 2; forever++) {
        uint64_t n = 1, replaced = 0;
        for (bool met = true; met; n++) {
            support_write_text(output, "the old one");
            int entries = support_count_entries(folder);
            oct_file_fail_at(n, forever != 0);
            octet_status status = build(fixed_place, NULL, 0, output);
            met = oct_file_fault_met();
            oct_file_fail_at(0, false);
            assert_int_equal(support_count_entries(folder), entries);
            if (!met) {
                assert_int_equal(status, OCTET_OK);
                break;
            }
            assert_int_equal(status, OCTET_IO);
            assert_non_null(strstr(octet_error_text(), "full.octet"));
            if (strstr(octet_error_text(), "is written") == NULL) {
                assert_file_is(output, "the old one", strlen("the old one"));
            } else {
                assert_file_is(output, whole, size);
                replaced++;
            }
        }
        assert_true(n > 3 && replaced <= 1);
        assert_file_is(output, whole, size);
    }
    free(whole);
    free(output);
}

static void test_memory_ends_while_building(void **state) {
    (void)state;
    char *output = strdup(path_of("memory.octet"));
    size_t size = 0;
    RUNS_OK(build(fixed_place, NULL, 0, output));
    char *whole = support_read_text(output, &size);
    int64_t live = oct_alloc_live();
    support_write_text(output, "the old one");
    int entries = support_count_entries(folder);
    for (uint64_t n = 1;; n++) {
        oct_alloc_fail_at(n, n % 2 == 0);
        octet_status status = build(fixed_place, NULL, 0, output);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (oct_alloc_live() != live) fail_msg("allocation %llu: blocks are left over", (unsigned long long)n);
        assert_int_equal(support_count_entries(folder), entries);
        if (status == OCTET_OK) {
            assert_file_is(output, whole, size);
            support_write_text(output, "the old one");
        } else {
            assert_int_equal(status, OCTET_OUT_OF_MEMORY);
            assert_file_is(output, "the old one", strlen("the old one"));
        }
        if (!met) break;
    }
    free(whole);
    free(output);
}

/* ---- opening and running */

static octet_status open_and_run(const char *path, octet_result **result) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    octet_session *session = NULL;
    octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
    uint8_t *rgb = models_rgb(48, 32, 1);
    picture.data = rgb;
    picture.width = 48;
    picture.height = 32;
    open.threads = options.threads = 1;
    octet_status status = octet_model_open(path, &open, &model);
    if (status == OCTET_OK) status = octet_session_new(model, &options, &session);
    if (status == OCTET_OK) status = octet_session_run(session, &picture, 1, result);
    octet_session_free(&session);
    octet_model_close(&model);
    free(rgb);
    return status;
}

static void test_memory_ends_while_opening(void **state) {
    (void)state;
    char *path = strdup(path_of("open.octet"));
    octet_result *expected = NULL, *found = NULL;
    uint64_t failures = 0;
    RUNS_OK(build(fixed_place, NULL, 0, path));
    RUNS_OK(open_and_run(path, &expected));
    int64_t live = oct_alloc_live();
    for (uint64_t n = 1;; n++) {
        oct_alloc_fail_at(n, n % 2 == 0);
        octet_status status = open_and_run(path, &found);
        bool met = oct_alloc_fault_met();
        oct_alloc_fail_at(0, false);
        if (status == OCTET_OK)
            models_same(expected, found);
        else if (status != OCTET_OUT_OF_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)n, octet_error_text());
        failures += status != OCTET_OK;
        octet_result_free(&found);
        if (oct_alloc_live() != live) fail_msg("allocation %llu: blocks are left over", (unsigned long long)n);
        if (!met) break;
    }
    assert_true(failures > 50);
    octet_result_free(&expected);
    free(path);
}

/* ---- an input that follows the picture: engines of stated sizes */

static octet_status run_picture(octet_session *session, int width, int height, octet_result **result) {
    octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
    uint8_t *rgb = models_rgb(width, height, 3);
    picture.data = rgb;
    picture.width = width;
    picture.height = height;
    octet_status status = octet_session_run(session, &picture, 1, result);
    free(rgb);
    return status;
}

/* One engine or two: pictures of those sizes are answered as by the checkpoint, also after memory had ended; others are
 * refused by what is missing. */
static void check_sizes(const char *path, size_t count) {
    octet_model *whole = models_open(edges_place, 1);
    octet_session *whole_session = models_session(whole, 1);
    octet_model *model = models_open(path, 1);
    octet_session *session = models_session(model, 1);
    octet_result *expected = NULL, *found = NULL;
    FAILS(run_picture(session, 64, 32, &found), OCTET_UNSUPPORTED, "no engine for an input of 32 x 64");
    assert_non_null(strstr(octet_error_text(), "cpu-fp32-b1-32x48"));
    assert_non_null(strstr(octet_error_text(), "--size 32x64"));
    for (size_t i = 0; i < count; i++) {
        int width = i == 0 ? 48 : 32, height = i == 0 ? 32 : 48;
        RUNS_OK(run_picture(whole_session, width, height, &expected));
        uint64_t n = 1;
        for (bool met = true; met; n++) { /* never poisoned: the next try goes on */
            oct_alloc_fail_at(n, false);
            octet_status status = run_picture(session, width, height, &found);
            met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            if (status != OCTET_OK && status != OCTET_OUT_OF_MEMORY) fail_msg("%s", octet_error_text());
            if (status == OCTET_OK) models_same(expected, found);
            octet_result_free(&found);
        }
        RUNS_OK(run_picture(session, width, height, &found));
        models_same(expected, found);
        octet_result_free(&found);
        octet_result_free(&expected);
    }
    octet_session_free(&session);
    octet_model_close(&model);
    octet_session_free(&whole_session);
    octet_model_close(&whole);
}

static void test_sizes_of_the_picture(void **state) {
    (void)state;
    static const int32_t sizes[] = {32, 48, 48, 32};
    char *path = strdup(path_of("sizes.octet"));
    FAILS(build(edges_place, NULL, 0, path), OCTET_INVALID_ARGUMENT, "its input follows the picture");
    RUNS_OK(build(edges_place, sizes, 2, path));
    check_sizes(path, 2);
    free(path);
}

static void count_line(void *user, const char *line) {
    *(int *)user += strstr(line, "a bundle brings its labels") != NULL;
}

static void count_event(void *user, const octet_lab_event *event) {
    *(int *)user += strcmp(event->what, "sections") == 0 || strcmp(event->what, "steps, weights packed") == 0;
}

static void test_what_opening_says(void **state) {
    (void)state;
    char *path = strdup(path_of("says.octet"));
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    int lines = 0, events = 0;
    RUNS_OK(build(fixed_place, NULL, 0, path));
    options.threads = 1;
    options.classes_file = "/nowhere/names.txt";
    octet_set_log(count_line, &lines);
    octet_lab_set_watch(count_event, &events, 0);
    RUNS_OK(octet_model_open(path, &options, &model));
    octet_lab_set_watch(NULL, NULL, 0);
    octet_set_log(NULL, NULL);
    octet_model_close(&model);
    assert_int_equal(lines, 1);
    assert_int_equal(events, 2);
    free(path);
}

/* ---- footers and entries that are sealed rightly */

typedef struct sealed {
    uint8_t *data;
    size_t size;
    const char *path;
} sealed;

/* `change` at `offset` from the end (the footer is the last 128 bytes), then the hashes made right again. */
static void write_changed(const sealed *file, size_t from_end, const void *change, size_t size, const char *path) {
    uint8_t *copy = malloc(file->size);
    assert_non_null(copy);
    memcpy(copy, file->data, file->size);
    memcpy(copy + file->size - from_end, change, size);
    uint8_t *footer = copy + file->size - OCT_BUNDLE_FOOTER;
    oct_bytes bytes = {.data = file->data + file->size - OCT_BUNDLE_FOOTER, .size = 8};
    uint64_t directory = oct_get_u64(&bytes);
    assert_int_equal(oct_sha256_of(copy + directory, file->size - OCT_BUNDLE_FOOTER - directory, footer + 32),
                     OCTET_OK);
    assert_int_equal(oct_bundle_seal(copy, footer, footer + 96), OCTET_OK);
    support_write_file(path, copy, file->size);
    free(copy);
}

static void test_sealed_nonsense(void **state) {
    (void)state;
    static const uint8_t none[4] = {0}, many[4] = {1, 4, 0, 0},
                         huge[8] = {0xc0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    static const uint8_t near[8] = {64}, odd[8] = {65}, name[4] = {'a', 0, 'b', 0}, blank[1] = {' '};
    static const struct {
        size_t from_end;
        const uint8_t *change;
        size_t size;
        const char *words;
    } cases[] = {
        {OCT_BUNDLE_FOOTER - 8, none, 4, "its number of sections"},
        {OCT_BUNDLE_FOOTER - 8, many, 4, "its number of sections"},
        {OCT_BUNDLE_FOOTER, huge, 8, "its directory's place"},
        {OCT_BUNDLE_FOOTER, near, 8, "its directory's place"},
        {OCT_BUNDLE_FOOTER, odd, 8, "its directory's place"},
        {OCT_BUNDLE_FOOTER - 12, many, 4, "its footer's numbers"},
        {OCT_BUNDLE_FOOTER - 16, many, 4, "its footer's numbers"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY, name, 4, "a section's name"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY, blank, 1, "a section's name"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY - 48, odd, 8, "a section's place"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY - 56, huge, 8, "a section's place"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY - 96, many, 4, "an entry's flags"},
        {OCT_BUNDLE_FOOTER + OCT_BUNDLE_ENTRY - 100, many, 4, "an entry's flags"},
    };
    char *path = strdup(path_of("sealed.octet")), *changed = strdup(path_of("changed.octet"));
    sealed file = {0};
    RUNS_OK(build(fixed_place, NULL, 0, path));
    file.data = (uint8_t *)support_read_text(path, &file.size);
    assert_non_null(file.data);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        octet_model *model = NULL;
        write_changed(&file, cases[i].from_end, cases[i].change, cases[i].size, changed);
        FAILS(octet_model_open(changed, NULL, &model), OCTET_VERIFICATION, cases[i].words);
        assert_null(model);
    }
    free(file.data);
    free(path);
    free(changed);
}

/* A section is read whole or said to be too large; a piece beyond its end is refused. */
static void test_sections(void **state) {
    (void)state;
    char *path = strdup(path_of("sections.octet"));
    oct_bundle bundle;
    oct_section_reader reader;
    uint8_t *data = NULL, byte;
    RUNS_OK(build(fixed_place, NULL, 0, path));
    RUNS_OK(oct_bundle_open(&bundle, path));
    const oct_section *labels = oct_bundle_find(&bundle, "labels", "");
    assert_non_null(labels);
    assert_null(oct_bundle_find(&bundle, "labels", "x"));
    FAILS(oct_bundle_read(&bundle, labels, 3, &data), OCTET_LIMIT, "section labels");
    assert_null(data);
    RUNS_OK(oct_bundle_read(&bundle, labels, (size_t)labels->size, &data));
    RUNS_OK(oct_section_begin(&reader, &bundle, labels));
    RUNS_OK(oct_section_read(&reader, data, (size_t)labels->size));
    FAILS(oct_section_read(&reader, &byte, 1), OCTET_BAD_FORMAT, "section labels ends early");
    RUNS_OK(oct_section_end(&reader));
    RUNS_OK(oct_section_begin(&reader, &bundle, labels));
    FAILS(oct_section_end(&reader), OCTET_VERIFICATION, "section labels");
    oct_free(data);
    oct_bundle_close(&bundle);

    static const char thirty_three[] = "abcdefghijklmnopqrstuvwxyz0123456";
    oct_bundle_writer *writer = NULL;
    RUNS_OK(oct_bundle_writer_open(&writer, path));
    FAILS(oct_bundle_writer_begin(writer, "abcdefghijklmnopq", "", 0), OCTET_LIMIT, "its name is too long");
    FAILS(oct_bundle_writer_begin(writer, "plan", thirty_three, 0), OCTET_LIMIT, "its name is too long");
    for (int i = 0; i < OCT_BUNDLE_SECTIONS; i++) RUNS_OK(oct_bundle_writer_add(writer, "plan", "", 0, "", 0));
    FAILS(oct_bundle_writer_begin(writer, "plan", "", 0), OCTET_LIMIT, "more than 1024 sections");
    oct_bundle_writer_abort(writer);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_memory_ends_while_building),
        cmocka_unit_test(test_memory_ends_while_opening),
        cmocka_unit_test(test_sizes_of_the_picture),
        cmocka_unit_test(test_what_opening_says),
        cmocka_unit_test(test_sealed_nonsense),
        cmocka_unit_test(test_sections),
    };
    folder = support_temporary_directory();
    fixed_place = models_write_yolos(TINY_FIXED);
    edges_place = models_write_yolos(TINY_EDGES);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    models_drop(fixed_place);
    models_drop(edges_place);
    models_drop(folder);
    return failed;
}
