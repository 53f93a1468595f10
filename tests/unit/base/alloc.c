/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"

static bool aligned(const void *pointer, uintptr_t to) {
    return (uintptr_t)pointer % to == 0;
}

static void test_alignment_and_zeroes(void **state) {
    (void)state;
    int64_t live = oct_alloc_live();
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *pointer = oct_alloc(size);
        assert_non_null(pointer);
        assert_true(aligned(pointer, 64));
        memset(pointer, 0xaa, size);
        unsigned char *zeroed = oct_calloc(size, 3);
        assert_true(aligned(zeroed, 64));
        for (size_t i = 0; i < size * 3; i++) assert_int_equal(zeroed[i], 0);
        unsigned char *moved = oct_realloc(pointer, size, size * 2 + 1);
        assert_true(aligned(moved, 64));
        for (size_t i = 0; i < size; i++) assert_int_equal(moved[i], 0xaa);
        assert_int_equal(oct_alloc_live(), live + 2);
        oct_free(moved);
        oct_free(zeroed);
    }
    oct_free(NULL);
    assert_int_equal(oct_alloc_live(), live);
}

static void test_sizes_that_cannot_be(void **state) {
    (void)state;
    size_t product = 0;
    assert_true(oct_mul_size(1u << 20, 1u << 20, &product));
    assert_false(oct_mul_size(SIZE_MAX / 2, 3, &product));
    assert_null(oct_calloc(SIZE_MAX / 2, 3));
    assert_null(oct_alloc(SIZE_MAX));
    assert_null(oct_alloc(SIZE_MAX - 63));
    int *array = NULL;
    void *grown = array;
    size_t capacity = 0;
    assert_false(oct_grow(&grown, sizeof *array, SIZE_MAX / 2, &capacity));
    assert_null(grown);
    assert_int_equal(capacity, 0);
}

static void test_grow_keeps_contents(void **state) {
    (void)state;
    void *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 10000; i++) {
        assert_true(oct_grow(&array, sizeof(size_t), i + 1, &capacity));
        ((size_t *)array)[i] = i;
    }
    for (size_t i = 0; i < 10000; i++) assert_int_equal(((size_t *)array)[i], i);
    assert_true(capacity < 40000);
    oct_free(array);
}

static void test_faults(void **state) {
    (void)state;
    oct_alloc_fail_at(3, false);
    void *a = oct_alloc(1);
    char *b = oct_strdup("b");
    assert_false(oct_alloc_fault_met());
    assert_null(oct_sprintf("%d", 1));
    assert_true(oct_alloc_fault_met());
    char *c = oct_sprintf("%s-%d", "c", 1);
    assert_string_equal(c, "c-1");
    assert_int_equal(oct_alloc_count(), 4);
    oct_alloc_fail_at(1, true);
    assert_null(oct_alloc(1));
    assert_null(oct_realloc(b, 2, 100));
    assert_string_equal(b, "b"); /* the old block stays */
    assert_null(oct_strndup("abc", 2));
    oct_alloc_fail_at(0, false);
    assert_false(oct_alloc_fault_met());
    char *d = oct_strndup("abc", 2);
    assert_string_equal(d, "ab");
    oct_free(a);
    oct_free(b);
    oct_free(c);
    oct_free(d);
}

static void *give(void *user, size_t size, size_t alignment) {
    ((int *)user)[0]++;
    return aligned_alloc(alignment, size);
}

static void take(void *user, void *pointer) {
    ((int *)user)[1]++;
    free(pointer);
}

static void test_custom_allocator(void **state) {
    (void)state;
    int calls[2] = {0, 0};
    oct_allocator allocator = {.allocate = give, .release = take, .user = calls};
    oct_allocator_set(&allocator);
    void *pointer = oct_realloc(oct_calloc(2, 2), 4, 100);
    oct_free(pointer);
    oct_allocator_set(NULL);
    assert_int_equal(calls[0], 2);
    assert_int_equal(calls[1], 2);
}

static void test_arena(void **state) {
    (void)state;
    int64_t live = oct_alloc_live();
    oct_arena arena = {0};
    unsigned char *pieces[500];
    for (size_t i = 0; i < 500; i++) {
        size_t size = i % 50 == 49 ? 100000 : i * 3;
        pieces[i] = oct_arena_alloc(&arena, size);
        assert_non_null(pieces[i]);
        assert_true(aligned(pieces[i], 16));
        for (size_t j = 0; j < size; j++) assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)(i & 255), size);
    }
    for (size_t i = 0; i < 500; i++) {
        size_t size = i % 50 == 49 ? 100000 : i * 3;
        for (size_t j = 0; j < size; j++) assert_int_equal(pieces[i][j], i & 255);
    }
    assert_string_equal(oct_arena_strdup(&arena, "name"), "name");
    assert_string_equal(oct_arena_strndup(&arena, "name", 2), "na");
    assert_string_equal(oct_arena_sprintf(&arena, "%s.%d", "block", 7), "block.7");
    assert_null(oct_arena_alloc(&arena, SIZE_MAX));
    assert_null(oct_arena_alloc(&arena, SIZE_MAX - 20));
    oct_arena_free(&arena);
    assert_null(arena.blocks);
    oct_arena_free(&arena);
    assert_int_equal(oct_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_zeroes), cmocka_unit_test(test_sizes_that_cannot_be),
        cmocka_unit_test(test_grow_keeps_contents),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_custom_allocator),     cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
