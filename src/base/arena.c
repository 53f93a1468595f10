/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/c_locale.h"

#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)
#define ALIGNMENT ((size_t)16)

struct oct_arena_block {
    oct_arena_block *next; /* older */
    size_t size, used;     /* bytes after the header */
};

/* the header's size keeps what follows aligned */
#define HEADER ((sizeof(oct_arena_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

static oct_arena_block *new_block(size_t size) {
    if (size > SIZE_MAX - HEADER) return NULL;
    oct_arena_block *block = oct_alloc(HEADER + size);
    if (block != NULL) *block = (oct_arena_block){.size = size};
    return block;
}

void *oct_arena_alloc(oct_arena *arena, size_t size) {
    if (size > SIZE_MAX - ALIGNMENT) return NULL;
    size_t rounded = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    oct_arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < rounded) {
        size_t next = block == NULL ? FIRST_BLOCK : block->size * 2;
        if (next > LARGEST_BLOCK) next = LARGEST_BLOCK;
        if (next < FIRST_BLOCK) next = FIRST_BLOCK;
        if (rounded > next / 4 && block != NULL) {
            /* a large piece gets a block of its own behind the newest, whose room stays in use */
            oct_arena_block *own = new_block(rounded);
            if (own == NULL) return NULL;
            own->next = block->next;
            block->next = own;
            block = own;
        } else {
            oct_arena_block *fresh = new_block(rounded > next ? rounded : next);
            if (fresh == NULL) return NULL;
            fresh->next = block;
            arena->blocks = fresh;
            block = fresh;
        }
    }
    unsigned char *pointer = (unsigned char *)block + HEADER + block->used;
    block->used += rounded;
    memset(pointer, 0, rounded);
    return pointer;
}

char *oct_arena_strndup(oct_arena *arena, const char *text, size_t length) {
    size_t kept = strnlen(text, length);
    char *copy = oct_arena_alloc(arena, kept + 1);
    if (copy != NULL) memcpy(copy, text, kept);
    return copy;
}

char *oct_arena_strdup(oct_arena *arena, const char *text) {
    return oct_arena_strndup(arena, text, SIZE_MAX);
}

char *oct_arena_sprintf(oct_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length = oct_vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = oct_arena_alloc(arena, length + 1);
    if (text == NULL) return NULL;
    va_start(arguments, format);
    (void)oct_vsnprintf(text, length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void oct_arena_free(oct_arena *arena) {
    for (oct_arena_block *block = arena->blocks; block != NULL;) {
        oct_arena_block *next = block->next;
        oct_free(block);
        block = next;
    }
    arena->blocks = NULL;
}
