/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: any flipped bit is noticed, any cut too; versions; equal bytes, equal outputs. */
#include "bundle_parts.h"

#include <fcntl.h>
#include <unistd.h>

/* All that opening checks but the packing of weights: every section is read. */
static octet_status verify(const char *path) {
    oct_bundle bundle;
    octet_status status = oct_bundle_open(&bundle, path);
    if (status != OCTET_OK) return status;
    for (size_t i = 0; i < bundle.section_count && status == OCTET_OK; i++) {
        uint8_t *data = NULL;
        status = oct_bundle_read(&bundle, &bundle.sections[i], 1 << 20, &data);
        oct_free(data);
    }
    oct_bundle_close(&bundle);
    return status;
}

static void put_byte(const char *path, size_t at, char byte) {
    int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
    close(file);
}

typedef struct copy {
    char *path, *data;
    size_t size;
} copy;

static copy make_copy(const char *directory) {
    copy made = {.path = oct_path_join(directory, "copy.octet")};
    made.data = support_read_text(FIXTURE, &made.size);
    support_write_file(made.path, made.data, made.size);
    return made;
}

static void free_copy(copy *made) {
    oct_free(made->path);
    free(made->data);
}

/* One bit of every byte, another one from byte to byte; all eight with OCTET_LONG in the environment. */
static void notices_any_flipped_bit(void **state) {
    copy c = make_copy(*state);
    int bits = getenv("OCTET_LONG") != NULL ? 8 : 1;
    assert_int_equal(verify(c.path), OCTET_OK);
    for (size_t i = 0; i < c.size; i++) {
        for (int b = 0; b < bits; b++) {
            int bit = (int)((i * 5 + (size_t)b) % 8);
            put_byte(c.path, i, (char)(c.data[i] ^ (1 << bit)));
            if (verify(c.path) == OCTET_OK) fail_msg("bit %d of byte %zu went unnoticed", bit, i);
        }
        put_byte(c.path, i, c.data[i]);
    }
    assert_int_equal(verify(c.path), OCTET_OK);
    free_copy(&c);
}

/* The same through the front door, here and there. */
static void model_open_notices_too(void **state) {
    copy c = make_copy(*state);
    for (size_t i = 0; i < c.size; i += 173) {
        octet_model *model = NULL;
        put_byte(c.path, i, (char)(c.data[i] ^ 1));
        if (octet_model_open(c.path, NULL, &model) == OCTET_OK) fail_msg("byte %zu went unnoticed", i);
        assert_null(model);
        put_byte(c.path, i, c.data[i]);
    }
    free_copy(&c);
}

static void notices_cut_and_added_bytes(void **state) {
    copy c = make_copy(*state);
    for (size_t size = 0; size < c.size; size += size < 600 || size + 600 > c.size ? 1 : 211) {
        support_write_file(c.path, c.data, size);
        if (verify(c.path) == OCTET_OK) fail_msg("a cut at byte %zu went unnoticed", size);
    }
    char *longer = calloc(c.size + 64, 1);
    memcpy(longer, c.data, c.size);
    for (size_t more = 1; more <= 64; more++) {
        support_write_file(c.path, longer, c.size + more);
        if (verify(c.path) == OCTET_OK) fail_msg("%zu bytes more went unnoticed", more);
    }
    free(longer);
    free_copy(&c);
}

/* The first version's file opens, today and with any later version. */
static void reads_version_one(void **state) {
    (void)state;
    octet_model *model;
    if (octet_model_open(FIXTURE, NULL, &model) != OCTET_OK) fail_msg("%s", octet_error_text());
    assert_int_equal(octet_model_task(model), OCTET_DETECTION);
    assert_int_equal(octet_model_class_count(model), 2);
    assert_string_equal(octet_model_label(model, 1), "class 1");
    assert_int_equal(octet_model_batch(model), 1);
    assert_int_equal(strlen(octet_model_fingerprint(model)), 64); /* of the checkpoint it was built from */
    octet_model_close(&model);
}

/* A writer of version 2 that differs in nothing else: the header's number, and the footer's seal over it. */
static void refuses_newer_version_by_name(void **state) {
    copy c = make_copy(*state);
    uint8_t both[64 + 96], seal[OCT_SHA256_SIZE];
    c.data[8] = 2;
    memcpy(both, c.data, 64);
    memcpy(both + 64, c.data + c.size - 128, 96);
    assert_int_equal(oct_sha256_of(both, sizeof both, seal), OCTET_OK);
    memcpy(c.data + c.size - 32, seal, sizeof seal);
    support_write_file(c.path, c.data, c.size);
    octet_model *model;
    assert_int_equal(octet_model_open(c.path, NULL, &model), OCTET_UNSUPPORTED);
    assert_non_null(strstr(octet_error_text(), "bundle version 2, expected at most 1"));
    free_copy(&c);
}

static void asks_for_engines_by_batch(void **state) {
    (void)state;
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_model *model;
    options.batch = 2;
    assert_int_equal(octet_model_open(FIXTURE, &options, &model), OCTET_OK);
    assert_int_equal(octet_model_batch(model), 2);
    octet_model_close(&model);
    options.batch = 3;
    assert_int_equal(octet_model_open(FIXTURE, &options, &model), OCTET_NOT_FOUND);
    assert_non_null(strstr(octet_error_text(), "cpu-fp32-b2-32x48"));
    options.batch = 1;
    options.height = options.width = 64;
    assert_int_equal(octet_model_open(FIXTURE, &options, &model), OCTET_NOT_FOUND);
}

/* The second reader, written from the format's text alone, finds the same identity, and the same damage. */
static void second_reader_agrees(void **state) {
    copy c = make_copy(*state);
    char command[1024], line[256] = "", identity[OCT_SHA256_HEX];
    oct_bundle bundle;
    if (system("python3 -c '' 2>/dev/null") != 0) SUPPORT_SKIP("no python3");
    snprintf(command, sizeof command, "python3 %s/tools/reference/read_bundle.py %s 2>&1", OCTET_SOURCE_DIR, c.path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(line, 1, sizeof line - 1, pipe);
    line[length] = '\0';
    while (fgetc(pipe) != EOF) continue;
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(oct_bundle_open(&bundle, c.path), OCTET_OK);
    oct_sha256_hex(bundle.identity, identity);
    oct_bundle_close(&bundle);
    assert_non_null(strstr(line, identity));
    put_byte(c.path, c.size / 2, (char)(c.data[c.size / 2] ^ 4));
    snprintf(command, sizeof command, "python3 %s/tools/reference/read_bundle.py %s >/dev/null 2>&1", OCTET_SOURCE_DIR,
             c.path);
    assert_int_not_equal(system(command), 0);
    free_copy(&c);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notices_any_flipped_bit),       cmocka_unit_test(model_open_notices_too),
        cmocka_unit_test(notices_cut_and_added_bytes),   cmocka_unit_test(reads_version_one),
        cmocka_unit_test(refuses_newer_version_by_name), cmocka_unit_test(asks_for_engines_by_batch),
        cmocka_unit_test(second_reader_agrees),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
