/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small objects that die together (a graph's nodes and names, a document's tree). */
#ifndef OCT_BASE_ARENA_H
#define OCT_BASE_ARENA_H

#include <stddef.h>

typedef struct oct_arena_block oct_arena_block;
typedef struct oct_arena {
    oct_arena_block *blocks; /* newest first */
} oct_arena;                 /* all zero: an empty arena */

void *oct_arena_alloc(oct_arena *arena, size_t size); /* zeroed, 16-byte aligned; NULL: no memory */
char *oct_arena_strdup(oct_arena *arena, const char *text);
char *oct_arena_strndup(oct_arena *arena, const char *text, size_t length);
char *oct_arena_sprintf(oct_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void oct_arena_free(oct_arena *arena); /* frees all, leaves an empty arena */

#endif
