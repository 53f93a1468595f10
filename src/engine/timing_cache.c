/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/document.h"
#include "base/file.h"
#include "engine/tune.h"
#include "engine/tune_internal.h"

#define CACHE_VERSION 1

/* Where `signature` stands, or should. */
static size_t place_of(const oct_timing_cache *cache, const char *signature) {
    size_t low = 0, high = cache->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(cache->entries[middle].signature, signature) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const oct_timing_entry *oct_timing_cache_find(const oct_timing_cache *cache, const char *signature) {
    size_t at = place_of(cache, signature);
    return at < cache->count && strcmp(cache->entries[at].signature, signature) == 0 ? &cache->entries[at] : NULL;
}

octet_status oct_timing_cache_put(oct_timing_cache *cache, const char *signature, const char *tactic,
                                  const char *times) {
    size_t at = place_of(cache, signature);
    bool known = at < cache->count && strcmp(cache->entries[at].signature, signature) == 0;
    oct_timing_entry entry = {oct_arena_strdup(&cache->arena, signature), oct_arena_strdup(&cache->arena, tactic),
                              oct_arena_strdup(&cache->arena, times)};
    if (entry.signature == NULL || entry.tactic == NULL || entry.times == NULL) return oct_fail_memory();
    if (!known) {
        if (!oct_grow((void **)&cache->entries, sizeof *cache->entries, cache->count + 1, &cache->capacity))
            return oct_fail_memory();
        memmove(&cache->entries[at + 1], &cache->entries[at], (cache->count - at) * sizeof entry);
        cache->count++;
    }
    cache->entries[at] = entry;
    return OCTET_OK;
}

/* {"a": 1.5, "b": 2}: the measured times as text again. */
static octet_status put_times(const oct_document *document, const oct_node *map, oct_text *text) {
    char number[32];
    if (map == NULL || map->kind != OCT_NODE_MAP) return oct_node_fail(document, document->root, "us: expected a map");
    oct_text_puts(text, "{");
    for (size_t i = 0; i < map->count; i++) {
        if (map->items[i]->kind != OCT_NODE_REAL && map->items[i]->kind != OCT_NODE_INT) {
            return oct_node_fail(document, map->items[i], "%s: expected a number, found %s", map->keys[i],
                                 oct_node_kind_name(map->items[i]->kind));
        }
        if (i > 0) oct_text_puts(text, ", ");
        oct_text_json(text, map->keys[i]);
        oct_text_printf(text, ": %s", oct_format_double(map->items[i]->real, number));
    }
    oct_text_puts(text, "}");
    return text->failed ? oct_fail_memory() : OCTET_OK;
}

static octet_status read_steps(oct_timing_cache *cache, const oct_document *document) {
    const oct_node *steps = oct_node_get(document->root, "steps");
    if (steps == NULL || steps->kind != OCT_NODE_MAP)
        return oct_node_fail(document, document->root, "steps: expected a map");
    for (size_t i = 0; i < steps->count; i++) {
        const char *tactic = NULL;
        oct_text times = {0};
        octet_status status = oct_node_string(document, steps->items[i], "tactic", true, &tactic);
        if (status == OCTET_OK) status = put_times(document, oct_node_get(steps->items[i], "us"), &times);
        if (status == OCTET_OK) status = oct_timing_cache_put(cache, steps->keys[i], tactic, times.data);
        oct_text_free(&times);
        OCT_TRY(status);
    }
    return OCTET_OK;
}

static octet_status read_cache(oct_timing_cache *cache, const oct_document *document) {
    int64_t version = 0;
    const char *device = NULL;
    OCT_TRY(oct_node_int(document, document->root, "version", true, 1, CACHE_VERSION, &version));
    OCT_TRY(oct_node_string(document, document->root, "device", true, &device));
    if (strcmp(device, cache->device) != 0) {
        oct_node_fail(document, oct_node_get(document->root, "device"), "times of another device or of other kernels");
        oct_detail("expected %s, found %s", cache->device, device);
        return oct_hint("give this machine a timing cache of its own");
    }
    return read_steps(cache, document);
}

octet_status oct_timing_cache_open(oct_timing_cache *cache, const char *device, const char *path) {
    memset(cache, 0, sizeof *cache);
    cache->device = oct_arena_strdup(&cache->arena, device);
    if (cache->device == NULL) return oct_fail_memory();
    if (path == NULL || !oct_file_exists(path)) return OCTET_OK;
    oct_document document = {0};
    octet_status status = oct_document_read(&document, path, OCT_DOCUMENT_LIMIT);
    if (status == OCTET_OK) status = read_cache(cache, &document);
    oct_document_free(&document);
    if (status != OCTET_OK) oct_timing_cache_close(cache);
    return status;
}

octet_status oct_timing_cache_write(const oct_timing_cache *cache, const char *path) {
    oct_text text = {0};
    oct_text_printf(&text, "{\"version\": %d, \"device\": ", CACHE_VERSION);
    oct_text_json(&text, cache->device);
    oct_text_puts(&text, ",\n \"steps\": {");
    for (size_t i = 0; i < cache->count; i++) {
        oct_text_puts(&text, i > 0 ? ",\n  " : "\n  ");
        oct_text_json(&text, cache->entries[i].signature);
        oct_text_puts(&text, ": {\"tactic\": ");
        oct_text_json(&text, cache->entries[i].tactic);
        oct_text_printf(&text, ", \"us\": %s}", cache->entries[i].times);
    }
    oct_text_puts(&text, "}}\n");
    octet_status status = text.failed ? oct_fail_memory() : oct_file_write(path, text.data, text.length);
    oct_text_free(&text);
    return status;
}

void oct_timing_cache_close(oct_timing_cache *cache) {
    oct_free(cache->entries);
    oct_arena_free(&cache->arena);
    memset(cache, 0, sizeof *cache);
}
