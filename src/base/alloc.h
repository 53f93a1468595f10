/* SPDX-License-Identifier: Apache-2.0 */
/* All memory of the library passes here, so that the N-th allocation can be made to fail in tests/fault.
 * Every function returns NULL on failure (zero-size requests get a valid pointer); none sets the error text: write
 * `if (p == NULL) return oct_fail_memory();`. Thread-safe. */
#ifndef OCT_BASE_ALLOC_H
#define OCT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *oct_alloc(size_t size);                /* 64-byte aligned, contents undefined */
void *oct_calloc(size_t count, size_t size); /* 64-byte aligned, zeroed; NULL on overflow of count * size */
void *oct_realloc(void *pointer, size_t old_size, size_t size);
void oct_free(void *pointer); /* NULL is fine */
char *oct_strdup(const char *text);
char *oct_strndup(const char *text, size_t length);
char *oct_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* a * b, or false on overflow */
bool oct_mul_size(size_t a, size_t b, size_t *product);
/* Grows *array (elements of `element` bytes) so that it holds `needed`; *capacity in elements. False: no memory. */
bool oct_grow(void **array, size_t element, size_t needed, size_t *capacity);

/* A caller's allocator; alignment is 64. Set before any other call of the library, never while memory is held. */
typedef struct oct_allocator {
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *pointer);
    void *user;
} oct_allocator;
void oct_allocator_set(const oct_allocator *allocator); /* NULL: the C library's */

/* Faults (tests): allocation number `n` from now (1 = the next) fails; with `forever` all after it too. n = 0: off. */
void oct_alloc_fail_at(uint64_t n, bool forever);
uint64_t oct_alloc_count(void); /* allocations since the last oct_alloc_fail_at */
bool oct_alloc_fault_met(void); /* whether an armed fault was reached */
int64_t oct_alloc_live(void);   /* blocks held now */

#endif
