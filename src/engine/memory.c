/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "engine/internal.h"

/* A block by its place in the caller's array. */
typedef struct entry {
    const oct_memory_block *block;
    size_t index;
} entry;

static int larger_first(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->block->size != b->block->size) return a->block->size < b->block->size ? 1 : -1;
    return a->index < b->index ? -1 : 1;
}

static int lower_first(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->block->offset != b->block->offset) return a->block->offset < b->block->offset ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static bool alive_together(const oct_memory_block *a, const oct_memory_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

octet_status oct_memory_place(oct_memory_block *blocks, size_t count, uint64_t *total) {
    *total = 0;
    entry *order = oct_calloc(count, sizeof *order);
    entry *near = oct_calloc(count, sizeof *near);
    if (order == NULL || near == NULL) {
        oct_free(order);
        oct_free(near);
        return oct_fail_memory();
    }
    for (size_t i = 0; i < count; i++) order[i] = (entry){&blocks[i], i};
    qsort(order, count, sizeof *order, larger_first);
    for (size_t i = 0; i < count; i++) {
        oct_memory_block *block = &blocks[order[i].index];
        size_t found = 0;
        for (size_t j = 0; j < i; j++)
            if (alive_together(block, order[j].block)) near[found++] = order[j];
        qsort(near, found, sizeof *near, lower_first);
        uint64_t offset = 0;
        for (size_t j = 0; j < found; j++) {
            const oct_memory_block *other = near[j].block;
            if (offset + block->size <= other->offset) break;
            if (offset < other->offset + other->size) offset = other->offset + other->size;
        }
        block->offset = offset;
        if (*total < offset + block->size) *total = offset + block->size;
    }
    oct_free(order);
    oct_free(near);
    return OCTET_OK;
}
