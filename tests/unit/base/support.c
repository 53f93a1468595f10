/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What the tests themselves stand on: tests/support/support.h. */
#include "support/support.h"

static void write_npy(const char *path, int version, const char *dictionary, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size_t length = strlen(dictionary);
    uint8_t head[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0, (uint8_t)length, (uint8_t)(length >> 8)};
    (void)fwrite(head, 1, version == 1 ? 10 : 12, file);
    (void)fwrite(dictionary, 1, length, file);
    (void)fwrite(data, 1, size, file);
    (void)fclose(file);
}

static void test_npy(void **state) {
    (void)state;
    char *directory = support_temporary_directory();
    const char *path = support_join(directory, "a.npy");
    const float values[6] = {1, 2, 3, 4, 5, 6};
    support_array array;
    write_npy(path, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n", values, sizeof values);
    assert_true(support_npy_read(path, &array));
    assert_int_equal(array.axes, 2);
    assert_int_equal(array.shape[1], 3);
    assert_int_equal(array.count, 6);
    assert_non_null(support_floats(&array));
    assert_null(support_ints(&array));
    assert_memory_equal(array.data, values, sizeof values);
    support_array_free(&array);
    const int32_t number = 7;
    write_npy(path, 2, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }\n", &number, sizeof number);
    assert_true(support_npy_read(path, &array));
    assert_int_equal(array.axes, 0);
    assert_int_equal(support_ints(&array)[0], 7);
    support_array_free(&array);
    write_npy(path, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n", "abcd", 4);
    assert_true(support_npy_read(path, &array));
    assert_string_equal(array.dtype, "u1");
    assert_int_equal(array.count, 4);
    support_array_free(&array);
    static const char *const bad[] = {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }",
                                      "{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }", "{}"};
    for (size_t i = 0; i < 4; i++) {
        write_npy(path, 1, bad[i], values, sizeof values);
        assert_false(support_npy_read(path, &array));
        assert_null(array.data);
    }
    assert_false(support_npy_read(support_join(directory, "none"), &array));
    support_remove_tree(directory);
    assert_int_equal(support_count_entries(directory), -1);
    free(directory);
}

static void test_shared(void **state) {
    (void)state;
    char *directory = support_temporary_directory();
    support_write_text(support_join(directory, "there"), "x");
    const char *before = getenv("OCTET_SHARED");
    char *kept = before != NULL ? strdup(before) : NULL;
    assert_int_equal(setenv("OCTET_SHARED", directory, 1), 0);
    assert_non_null(support_shared("there"));
    assert_null(support_shared("not/there"));
    if (kept != NULL)
        (void)setenv("OCTET_SHARED", kept, 1);
    else
        (void)unsetenv("OCTET_SHARED");
    free(kept);
    support_remove_tree(directory);
    free(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
