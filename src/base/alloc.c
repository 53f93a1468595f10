/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"

#define ALIGNMENT ((size_t)64)

static oct_allocator custom; /* allocate == NULL: the C library's */

static _Atomic uint64_t fault_at;
static atomic_bool fault_forever;
static atomic_bool fault_met;
static _Atomic uint64_t count;
static _Atomic int64_t live;

void oct_allocator_set(const oct_allocator *allocator) {
    custom = allocator != NULL ? *allocator : (oct_allocator){0};
}

void oct_alloc_fail_at(uint64_t n, bool forever) {
    atomic_store(&fault_at, 0);
    atomic_store(&count, 0);
    atomic_store(&fault_met, false);
    atomic_store(&fault_forever, forever);
    atomic_store(&fault_at, n);
}

uint64_t oct_alloc_count(void) {
    return atomic_load(&count);
}

bool oct_alloc_fault_met(void) {
    return atomic_load(&fault_met);
}

int64_t oct_alloc_live(void) {
    return atomic_load(&live);
}

static bool must_fail(void) {
    uint64_t number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fault_at, memory_order_relaxed);
    if (at == 0 || number < at || (number > at && !atomic_load(&fault_forever))) return false;
    atomic_store(&fault_met, true);
    return true;
}

void *oct_alloc(size_t size) {
    if (must_fail() || size > SIZE_MAX - ALIGNMENT) return NULL;
    size_t rounded = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *pointer =
        custom.allocate != NULL ? custom.allocate(custom.user, rounded, ALIGNMENT) : aligned_alloc(ALIGNMENT, rounded);
    if (pointer != NULL) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return pointer;
}

void *oct_calloc(size_t number, size_t size) {
    size_t bytes = 0;
    if (!oct_mul_size(number, size, &bytes)) return NULL;
    void *pointer = oct_alloc(bytes);
    if (pointer != NULL) memset(pointer, 0, bytes);
    return pointer;
}

void *oct_realloc(void *pointer, size_t old_size, size_t size) {
    void *moved = oct_alloc(size);
    if (moved == NULL) return NULL;
    if (pointer != NULL) {
        size_t kept = old_size < size ? old_size : size;
        if (kept > 0) memcpy(moved, pointer, kept);
        oct_free(pointer);
    }
    return moved;
}

void oct_free(void *pointer) {
    if (pointer == NULL) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    if (custom.allocate != NULL) {
        custom.release(custom.user, pointer);
    } else {
        free(pointer);
    }
}

char *oct_strndup(const char *text, size_t length) {
    size_t kept = strnlen(text, length);
    char *copy = oct_alloc(kept + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, kept);
    copy[kept] = '\0';
    return copy;
}

char *oct_strdup(const char *text) {
    return oct_strndup(text, SIZE_MAX);
}

char *oct_sprintf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length = oct_vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = oct_alloc(length + 1);
    if (text == NULL) return NULL;
    va_start(arguments, format);
    (void)oct_vsnprintf(text, length + 1, format, arguments);
    va_end(arguments);
    return text;
}

bool oct_mul_size(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

bool oct_grow(void **array, size_t element, size_t needed, size_t *capacity) {
    if (needed <= *capacity) return true;
    size_t wanted = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
    if (wanted < needed) wanted = needed;
    if (wanted < 8) wanted = 8;
    size_t bytes = 0;
    if (!oct_mul_size(wanted, element, &bytes)) return false;
    void *grown = oct_realloc(*array, *capacity * element, bytes);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}
