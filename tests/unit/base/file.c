/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "support/support.h"

static char *directory; /* of this test program */

static int set_up(void **state) {
    (void)state;
    directory = support_temporary_directory();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    support_remove_tree(directory);
    free(directory);
    return 0;
}

static void assert_ends(const char *text, const char *end) {
    size_t length = strlen(text);
    if (length < strlen(end) || strcmp(text + length - strlen(end), end) != 0)
        fail_msg("'%s' does not end in '%s'", text, end);
}

static void test_whole_files(void **state) {
    (void)state;
    const char *path = support_join(directory, "whole");
    uint8_t *data = NULL;
    size_t size = 9;
    support_write_file(path, "a\0b", 3);
    assert_int_equal(oct_file_read(path, 3, &data, &size), OCTET_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b\0", 4);
    oct_free(data);
    assert_int_equal(oct_file_read(path, 2, &data, &size), OCTET_LIMIT);
    assert_null(data);
    assert_int_equal(size, 0);
    support_write_file(path, "", 0);
    assert_int_equal(oct_file_read(path, 0, &data, &size), OCTET_OK);
    assert_int_equal(size, 0);
    assert_int_equal(data[0], 0);
    oct_free(data);
    assert_int_equal(oct_file_read(support_join(directory, "none"), 10, &data, &size), OCTET_NOT_FOUND);
    assert_ends(oct_error_fact(), "none: could not open: No such file or directory");
}

/* the kernel's files say that they hold nothing */
static void test_files_without_a_size(void **state) {
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0;
    if (access("/proc/self/status", R_OK) != 0) SUPPORT_SKIP("no /proc");
    assert_int_equal(oct_file_read("/proc/self/status", 1 << 20, &data, &size), OCTET_OK);
    assert_true(size > 100);
    assert_int_equal(strlen((char *)data), size);
    oct_free(data);
    assert_int_equal(oct_file_read("/proc/self/status", 50, &data, &size), OCTET_LIMIT);
}

static void test_what_is_no_file(void **state) {
    (void)state;
    const char *fifo = support_join(directory, "fifo");
    uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(oct_file_read(fifo, 10, &data, &size), OCTET_INVALID_ARGUMENT); /* and does not wait */
    assert_ends(oct_error_fact(), "fifo: is a pipe, expected a file");
    assert_int_equal(oct_file_read(directory, 10, &data, &size), OCTET_INVALID_ARGUMENT);
    assert_ends(oct_error_fact(), ": is a directory, expected a file");
    assert_int_equal(oct_file_read("/dev/zero", 10, &data, &size), OCTET_INVALID_ARGUMENT);
    assert_string_equal(oct_error_fact(), "/dev/zero: is a device, expected a file");
    (void)unlink(fifo);
}

static void test_ranges(void **state) {
    (void)state;
    const char *path = support_join(directory, "ranges");
    support_write_text(path, "0123456789");
    oct_file file = {0};
    oct_file_close(&file);
    assert_int_equal(oct_file_open(&file, path), OCTET_OK);
    assert_int_equal(file.size, 10);
    char part[16] = "";
    assert_int_equal(oct_file_read_at(&file, 3, part, 4), OCTET_OK);
    assert_memory_equal(part, "3456", 4);
    assert_int_equal(oct_file_read_at(&file, 10, part, 0), OCTET_OK);
    assert_int_equal(oct_file_read_at(&file, 8, part, 3), OCTET_BAD_FORMAT);
    assert_int_equal(oct_file_read_at(&file, UINT64_MAX, part, 3), OCTET_BAD_FORMAT);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(oct_file_read_at(&file, 3, part, 4), OCTET_IO);
    assert_ends(oct_error_fact(), "ranges: shrank to 5 bytes while it was read");
    oct_file_close(&file);
    oct_file_close(&file);
    assert_int_equal(oct_file_open(&file, support_join(directory, "none")), OCTET_NOT_FOUND);
    oct_file_close(&file);
}

static void test_paths(void **state) {
    (void)state;
    static const char *const joins[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}, {"a/b", "c/d", "a/b/c/d"}};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        char *path = oct_path_join(joins[i][0], joins[i][1]);
        assert_string_equal(path, joins[i][2]);
        oct_free(path);
    }
    assert_string_equal(oct_path_base("a/b.c"), "b.c");
    assert_string_equal(oct_path_base("b"), "b");
    assert_string_equal(oct_path_base("a/"), "");
    const char *deep = support_join(directory, "x//y/z/");
    assert_int_equal(oct_make_directories(deep), OCTET_OK);
    assert_int_equal(oct_make_directories(deep), OCTET_OK);
    assert_true(oct_file_is_directory(support_join(directory, "x/y/z")));
    support_write_text(support_join(directory, "x/file"), "");
    assert_int_equal(oct_make_directories(support_join(directory, "x/file")), OCTET_INVALID_ARGUMENT);
    assert_ends(oct_error_fact(), "x/file: is a file, expected a directory");
    assert_true(oct_make_directories(support_join(directory, "x/file/below")) != OCTET_OK);
    assert_true(oct_file_exists(support_join(directory, "x/file")));
    assert_false(oct_file_exists(support_join(directory, "x/none")));
}

static void test_written_whole(void **state) {
    (void)state;
    char *own = support_temporary_directory();
    const char *path = support_join(own, "out");
    oct_writer *writer = NULL;
    size_t size = 0;
    mode_t mask = umask(027);
    support_write_text(path, "old");
    assert_int_equal(oct_writer_open(&writer, path), OCTET_OK);
    assert_int_equal(support_count_entries(own), 2);
    uint8_t *large = calloc(1, 200000);
    memset(large, 'x', 200000);
    assert_int_equal(oct_writer_printf(writer, "%s %.1f\n", "head", 0.5), OCTET_OK);
    assert_int_equal(oct_writer_write(writer, large, 200000), OCTET_OK);
    for (int i = 0; i < 70000; i++) assert_int_equal(oct_writer_write(writer, "yz", 2), OCTET_OK);
    large[999] = 0;
    assert_int_equal(oct_writer_printf(writer, "%s", (char *)large), OCTET_OK); /* longer than the brief buffer */
    char *before = support_read_text(path, NULL);
    assert_string_equal(before, "old"); /* until the commit */
    free(before);
    assert_int_equal(oct_writer_commit(writer), OCTET_OK);
    char *text = support_read_text(path, &size);
    assert_int_equal(size, 9 + 200000 + 140000 + 999);
    assert_memory_equal(text, "head 0.5\nxxx", 12);
    assert_memory_equal(text + 9 + 200000, "yzyz", 4);
    free(text);
    free(large);
    struct stat made;
    assert_int_equal(stat(path, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0640);
    (void)umask(mask);
    assert_int_equal(support_count_entries(own), 1);

    assert_int_equal(oct_writer_open(&writer, path), OCTET_OK);
    assert_int_equal(oct_writer_printf(writer, "never"), OCTET_OK);
    oct_writer_abort(writer);
    oct_writer_abort(NULL);
    assert_int_equal(support_count_entries(own), 1);
    assert_int_equal(stat(path, &made), 0);
    assert_int_equal(made.st_size, size);
    support_remove_tree(own);
    free(own);
}

static void test_links_and_long_names(void **state) {
    (void)state;
    char *own = support_temporary_directory();
    support_write_text(support_join(own, "real"), "old");
    assert_int_equal(symlink("real", support_join(own, "link")), 0);
    assert_int_equal(oct_file_write(support_join(own, "link"), "new", 3), OCTET_OK);
    char *text = support_read_text(support_join(own, "real"), NULL);
    assert_string_equal(text, "new");
    free(text);
    struct stat made;
    assert_int_equal(lstat(support_join(own, "link"), &made), 0);
    assert_true(S_ISLNK(made.st_mode)); /* the link stays one */
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(oct_file_write(support_join(own, name), "x", 1), OCTET_OK);
    assert_int_equal(support_count_entries(own), 3);
    support_remove_tree(own);
    free(own);
}

static void test_targets_that_are_no_files(void **state) {
    (void)state;
    assert_int_equal(oct_file_write(directory, "x", 1), OCTET_INVALID_ARGUMENT);
    assert_ends(oct_error_fact(), ": is a directory, expected a file");
    assert_int_equal(oct_file_write(support_join(directory, "no/such"), "x", 1), OCTET_NOT_FOUND);
    assert_int_equal(oct_file_write(support_join(directory, "slash/"), "x", 1), OCTET_INVALID_ARGUMENT);
    assert_int_equal(oct_file_write("/dev/null", "x", 1), OCTET_OK);
    if (access("/dev/full", W_OK) != 0) SUPPORT_SKIP("no /dev/full");
    assert_int_equal(oct_file_write("/dev/full", "x", 1), OCTET_IO);
    assert_string_equal(oct_error_fact(), "/dev/full: could not write: No space left on device");
    struct stat made;
    assert_int_equal(stat("/dev/full", &made), 0);
    assert_true(S_ISCHR(made.st_mode));
}

/* Every write, sync and rename fails in turn, once and for good: the old file or the new one, nothing beside it. */
static void test_faults_of_the_disk(void **state) {
    (void)state;
    size_t size = 100000;
    char *content = malloc(size + 1);
    memset(content, 'n', size);
    content[size] = '\0';
    for (int forever = 0; forever < 2; forever++) {
        for (int existing = 0; existing < 2; existing++) {
            for (uint64_t n = 1;; n++) {
                char *own = support_temporary_directory();
                const char *path = support_join(own, "out");
                if (existing == 1) support_write_text(path, "old");
                int64_t live = oct_alloc_live();
                oct_file_fail_at(n, forever == 1);
                oct_writer *writer = NULL;
                assert_int_equal(oct_writer_open(&writer, path), OCTET_OK);
                octet_status status = oct_writer_write(writer, content, 50000);
                octet_status again = oct_writer_write(writer, content + 50000, size - 50000);
                if (status != OCTET_OK) assert_int_equal(again, status);
                status = oct_writer_commit(writer);
                if (again != OCTET_OK) assert_int_equal(status, again); /* what failed is never committed */
                bool met = oct_file_fault_met();
                oct_file_fail_at(0, false);
                assert_int_equal(status, met ? OCTET_IO : OCTET_OK);
                if (met) assert_ends(oct_error_fact(), ": No space left on device");
                assert_int_equal(oct_alloc_live(), live);
                char *text = support_read_text(path, NULL);
                if (!met) assert_string_equal(text, content);
                if (text != NULL && strcmp(text, content) != 0) {
                    assert_int_equal(existing, 1);
                    assert_string_equal(text, "old");
                }
                assert_int_equal(support_count_entries(own), text != NULL ? 1 : 0);
                free(text);
                support_remove_tree(own);
                free(own);
                if (!met) {
                    assert_true(n > 4);
                    break;
                }
            }
        }
    }
    free(content);
}

static void test_no_memory(void **state) {
    (void)state;
    char *own = support_temporary_directory();
    const char *path = support_join(own, "out");
    support_write_text(path, "old");
    int64_t live = oct_alloc_live();
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++) {
            uint8_t *data = NULL;
            size_t size = 0;
            oct_alloc_fail_at(n, forever == 1);
            octet_status status = oct_file_read(path, 100, &data, &size);
            if (status == OCTET_OK) {
                oct_writer *writer = NULL;
                status = oct_writer_open(&writer, path);
                if (status == OCTET_OK) {
                    (void)oct_writer_printf(writer, "%1000d", 1); /* longer than the brief buffer: allocates */
                    status = oct_writer_commit(writer);
                }
            }
            bool met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            oct_free(data);
            assert_int_equal(oct_alloc_live(), live);
            assert_int_equal(support_count_entries(own), 1);
            /* the directory's name is needed after the rename only: all else leaves the old file */
            char *text = support_read_text(path, &size);
            assert_true(size == 1000 || (size == 3 && met));
            free(text);
            support_write_text(path, "old");
            if (!met) {
                assert_int_equal(status, OCTET_OK);
                break;
            }
            assert_int_equal(status, OCTET_OUT_OF_MEMORY);
        }
    }
    support_remove_tree(own);
    free(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_files),
        cmocka_unit_test(test_files_without_a_size),
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_written_whole),
        cmocka_unit_test(test_links_and_long_names),
        cmocka_unit_test(test_targets_that_are_no_files),
        cmocka_unit_test(test_faults_of_the_disk),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
