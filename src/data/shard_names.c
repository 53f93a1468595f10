/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a list of shards names: "a.tar,b.tar", "train-{00..63}.tar", "{train,val}-{0..3}.tar". */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/read.h"

#define SHARDS_LIMIT ((size_t)1 << 20)
#define DIGITS_LIMIT 18
#define BRACES_LIMIT 16 /* in one name */

static const char *const endings[] = {".tar", ".tar.gz", ".tgz"};

static bool ends_as_shard(const char *name) {
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (oct_ends_with(name, endings[i])) return true;
    return false;
}

bool oct_is_shard_name(const char *name) {
    return ends_as_shard(name) || strchr(name, '{') != NULL || strstr(name, ".tar,") != NULL ||
           strstr(name, ".tar.gz,") != NULL || strstr(name, ".tgz,") != NULL;
}

typedef struct name_list {
    oct_set *set;
    const char **names; /* heap; the text in the arena */
    size_t count, capacity;
    const char *whole; /* for errors */
} name_list;

static octet_status add_name(name_list *list, const char *name) {
    if (list->count == SHARDS_LIMIT)
        return oct_fail(OCTET_LIMIT, "%s: more than %zu shards", list->whole, SHARDS_LIMIT);
    if (!oct_grow((void **)&list->names, sizeof *list->names, list->count + 1, &list->capacity))
        return oct_fail_memory();
    const char *kept = oct_arena_strdup(&list->set->arena, name);
    if (kept == NULL) return oct_fail_memory();
    list->names[list->count++] = kept;
    return OCTET_OK;
}

static octet_status expand(name_list *list, const char *name, int depth);

/* head, one alternative, tail: a name with a pair of braces fewer */
static octet_status expand_one(name_list *list, const char *name, size_t head, const char *middle, size_t length,
                               const char *tail, int depth) {
    char *joined = oct_sprintf("%.*s%.*s%s", (int)head, name, (int)length, middle, tail);
    octet_status status = joined != NULL ? expand(list, joined, depth + 1) : oct_fail_memory();
    oct_free(joined);
    return status;
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* "00..63" up to the brace; false: not such a range */
static bool read_range(const char *text, const char *close, uint64_t *low, uint64_t *high, int *width) {
    size_t first = digits(text);
    if (first == 0 || first > DIGITS_LIMIT || strncmp(text + first, "..", 2) != 0) return false;
    const char *second = text + first + 2;
    size_t length = digits(second);
    if (length == 0 || length > DIGITS_LIMIT || second + length != close) return false;
    *low = strtoull(text, NULL, 10);
    *high = strtoull(second, NULL, 10);
    *width = text[0] == '0' || second[0] == '0' ? (int)(first > length ? first : length) : 1;
    return *low <= *high;
}

static octet_status expand(name_list *list, const char *name, int depth) {
    const char *open = strchr(name, '{');
    if (open == NULL) return add_name(list, name);
    const char *close = strchr(open, '}');
    if (close == NULL || depth == BRACES_LIMIT)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected braces as {00..63} or {a,b}, found \"%s\"", list->whole,
                        open);
    size_t head = (size_t)(open - name);
    uint64_t low, high;
    int width;
    if (read_range(open + 1, close, &low, &high, &width)) {
        if (high - low >= SHARDS_LIMIT)
            return oct_fail(OCTET_LIMIT, "%s: more than %zu shards", list->whole, SHARDS_LIMIT);
        for (uint64_t i = low; i <= high; i++) {
            char number[32];
            int length = snprintf(number, sizeof number, "%0*llu", width, (unsigned long long)i);
            OCT_TRY(expand_one(list, name, head, number, (size_t)length, close + 1, depth));
        }
        return OCTET_OK;
    }
    if (memchr(open, ',', (size_t)(close - open)) == NULL || memchr(open + 1, '{', (size_t)(close - open) - 1) != NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected braces as {00..63} or {a,b}, found \"%.*s\"", list->whole,
                        (int)(close - open) + 1, open);
    for (const char *at = open + 1; at <= close;) {
        size_t length = strcspn(at, ",}");
        OCT_TRY(expand_one(list, name, head, at, length, close + 1, depth));
        at += length + 1;
    }
    return OCTET_OK;
}

/* Parts of `place` at commas that stand in no braces. */
static octet_status split(name_list *list, const char *place) {
    const char *start = place;
    bool inside = false;
    for (const char *at = place;; at++) {
        if (*at == '{') inside = true;
        if (*at == '}') inside = false;
        if (*at != '\0' && (*at != ',' || inside)) continue;
        char *part = oct_strndup(start, (size_t)(at - start));
        octet_status status = part != NULL ? OCTET_OK : oct_fail_memory();
        if (status == OCTET_OK && part[0] == '\0')
            status = oct_fail(OCTET_INVALID_ARGUMENT, "%s: an empty name in the list of shards", list->whole);
        /* A file of that very name wins, braces and all. */
        if (status == OCTET_OK) status = oct_file_exists(part) ? add_name(list, part) : expand(list, part, 0);
        oct_free(part);
        if (status != OCTET_OK || *at == '\0') return status;
        start = at + 1;
    }
}

/* The list into the arena. */
static octet_status finish(name_list *list, octet_status status, const char ***names, size_t *count) {
    *names = NULL;
    *count = 0;
    if (status == OCTET_OK && list->count > 0) {
        *names = oct_arena_alloc(&list->set->arena, list->count * sizeof *list->names);
        if (*names == NULL)
            status = oct_fail_memory();
        else
            memcpy(*names, list->names, list->count * sizeof *list->names);
        *count = list->count;
    }
    oct_free(list->names);
    return status;
}

octet_status oct_shard_names(oct_set *set, const char *place, const char ***names, size_t *count) {
    name_list list = {.set = set, .whole = place};
    octet_status status = oct_file_exists(place) ? add_name(&list, place) : split(&list, place);
    for (size_t i = 0; i < list.count && status == OCTET_OK; i++)
        if (!oct_file_exists(list.names[i])) status = oct_fail(OCTET_NOT_FOUND, "%s: no such shard", list.names[i]);
    return finish(&list, status, names, count);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

octet_status oct_shard_directory(oct_set *set, const char *directory, const char ***names, size_t *count) {
    name_list list = {.set = set, .whole = directory};
    octet_status status = OCTET_OK;
    DIR *handle = opendir(directory);
    if (handle == NULL) return oct_fail_errno(directory, "cannot be listed");
    while (status == OCTET_OK) {
        errno = 0;
        const struct dirent *entry = readdir(handle);
        if (entry == NULL) {
            if (errno != 0) status = oct_fail_errno(directory, "cannot be listed");
            break;
        }
        if (entry->d_name[0] == '.' || !ends_as_shard(entry->d_name)) continue;
        char *path = oct_path_join(directory, entry->d_name);
        status = path != NULL ? add_name(&list, path) : oct_fail_memory();
        oct_free(path);
    }
    (void)closedir(handle);
    if (list.count > 0) qsort(list.names, list.count, sizeof *list.names, by_bytes);
    return finish(&list, status, names, count);
}
