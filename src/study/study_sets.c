/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets and the parts of them that a study takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"
#include "study/study_read.h"

/* ---- data: NAME: PLACE */

/* A place may be a list parted by commas (shards), and have a folder of pictures behind a colon (COCO): each part lies
 * beside the study file. Commas within braces part nothing. */
static const char *data_place(study_reader *reader, const char *place) {
    const char *path = reader->document->path, *slash = strrchr(path, '/');
    oct_text text = {0};
    bool starts = true;
    int braces = 0;
    for (const char *at = place; *at != '\0'; at++) {
        if (starts && *at != '/' && slash != NULL) {
            oct_text_append(&text, path, (size_t)(slash - path) + 1);
        }
        braces += (*at == '{') - (*at == '}');
        starts = braces == 0 && (*at == ',' || *at == ':');
        oct_text_append(&text, at, 1);
    }
    const char *joined = text.failed ? NULL : oct_arena_strndup(&reader->document->arena, text.data, text.length);
    oct_text_free(&text);
    return joined;
}

static octet_status read_data(study_reader *reader, const oct_node *root) {
    const oct_node *map;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "data", OCT_NODE_MAP, true, &map));
    study->data = study_array(reader, map->count, sizeof *study->data);
    if (study->data == NULL) return oct_fail_memory();
    for (; study->data_count < map->count; study->data_count++) {
        size_t i = study->data_count;
        study_data *out = &study->data[i];
        *out = (study_data){.name = map->keys[i], .line = map->key_lines[i]};
        OCT_TRY(study_check_name(reader, out->line, "data", out->name));
        if (map->items[i]->string == NULL || map->items[i]->string[0] == '\0')
            return oct_node_fail(reader->document, map->items[i], "%s: expected a place, found %s", out->name,
                                 oct_node_kind_name(map->items[i]->kind));
        out->place = data_place(reader, map->items[i]->string);
        if (out->place == NULL) return oct_fail_memory();
    }
    return OCTET_OK;
}

/* ---- sets: NAME: [step...] */

static const char *const step_names[] = {"data",  "from",           "without", "first",  "last",
                                         "every", "every_of_shard", "range",   "parity", "shuffle"};
#define STEP_NAMES (sizeof step_names / sizeof step_names[0])

const study_set *study_find_set(const study_file *study, const char *name) {
    for (size_t i = 0; i < study->set_count; i++)
        if (strcmp(study->sets[i].name, name) == 0) return &study->sets[i];
    return NULL;
}

/* The data set that a set's pictures are of. */
static const char *data_of(const study_file *study, const study_set *set) {
    const study_step *first = &set->steps[0];
    return first->kind == STEP_DATA ? first->name : data_of(study, study_find_set(study, first->name));
}

static octet_status check_data_name(study_reader *reader, const study_step *step) {
    const study_file *study = reader->study;
    const char **names = study_array(reader, study->data_count, sizeof *names);
    if (names == NULL) return oct_fail_memory();
    for (size_t i = 0; i < study->data_count; i++) {
        names[i] = study->data[i].name;
        if (strcmp(names[i], step->name) == 0) return OCTET_OK;
    }
    return study_unknown(reader, step->line, "a data set's name", step->name, names, study->data_count);
}

/* Sets name earlier ones only, so there are no circles. */
static octet_status check_set_name(study_reader *reader, const study_step *step) {
    const study_file *study = reader->study;
    if (study_find_set(study, step->name) != NULL) return OCTET_OK;
    const char **names = study_array(reader, study->set_count, sizeof *names);
    if (names == NULL) return oct_fail_memory();
    for (size_t i = 0; i < study->set_count; i++) names[i] = study->sets[i].name;
    return study_unknown(reader, step->line, "the name of a set above this one", step->name, names, study->set_count);
}

static octet_status read_range(study_reader *reader, const oct_node *value, study_step *step) {
    double ends[2] = {-1.0, -1.0};
    bool pair = value->kind == OCT_NODE_LIST && value->count == 2;
    for (size_t i = 0; pair && i < 2; i++) {
        pair = value->items[i]->kind == OCT_NODE_INT && value->items[i]->integer >= 0;
        if (pair) ends[i] = value->items[i]->real;
    }
    if (!pair || !(ends[0] < ends[1]) || ends[1] > 1e12)
        return oct_node_fail(reader->document, value, "range: expected [first, end], two rising numbers from 0");
    step->number = value->items[0]->integer;
    step->end = value->items[1]->integer;
    return OCTET_OK;
}

static octet_status read_step_value(study_reader *reader, const oct_node *value, study_step *step) {
    const char *key = step_names[step->kind];
    bool even = value->string != NULL && strcmp(value->string, "even") == 0;
    bool odd = value->string != NULL && strcmp(value->string, "odd") == 0;
    int64_t least = step->kind == STEP_SHUFFLE ? 0 : 1;
    switch (step->kind) {
    case STEP_DATA:
    case STEP_FROM:
    case STEP_WITHOUT:
        if (value->string == NULL || value->string[0] == '\0')
            return oct_node_fail(reader->document, value, "%s: expected a name", key);
        step->name = value->string;
        return step->kind == STEP_DATA ? check_data_name(reader, step) : check_set_name(reader, step);
    case STEP_RANGE:
        return read_range(reader, value, step);
    case STEP_PARITY:
        if (!even && !odd) return oct_node_fail(reader->document, value, "parity: expected even or odd");
        step->number = odd;
        return OCTET_OK;
    default:
        if (value->kind != OCT_NODE_INT || value->integer < least || value->integer > INT32_MAX)
            return oct_node_fail(reader->document, value, "%s: expected a number of %d to %d", key, (int)least,
                                 INT32_MAX);
        step->number = value->integer;
        return OCTET_OK;
    }
}

static octet_status read_step(study_reader *reader, const oct_node *node, bool first, study_step *step) {
    if (node->kind != OCT_NODE_MAP || node->count != 1)
        return oct_node_fail(reader->document, node, "expected one step as \"first: 500\", found %s",
                             oct_node_kind_name(node->kind));
    size_t kind = 0;
    while (kind < STEP_NAMES && strcmp(step_names[kind], node->keys[0]) != 0) kind++;
    if (kind == STEP_NAMES) return study_unknown(reader, node->line, "a step", node->keys[0], step_names, STEP_NAMES);
    *step = (study_step){.kind = (study_step_kind)kind, .line = node->line};
    bool begins = step->kind == STEP_DATA || step->kind == STEP_FROM;
    if (begins != first)
        return oct_node_fail(reader->document, node,
                             first ? "expected \"data: NAME\" or \"from: SET\" first, found \"%s\""
                                   : "\"%s\" stands first in a list of steps, or not at all",
                             node->keys[0]);
    return read_step_value(reader, node->items[0], step);
}

static octet_status read_set(study_reader *reader, const char *name, int line, const oct_node *list, study_set *set) {
    *set = (study_set){.name = name, .line = line};
    OCT_TRY(study_check_name(reader, line, "sets", name));
    if (list->kind != OCT_NODE_LIST || list->count == 0 || list->count > STUDY_NAMES)
        return oct_node_fail(reader->document, list, "%s: expected a list of steps, found %s", name,
                             oct_node_kind_name(list->kind));
    set->steps = study_array(reader, list->count, sizeof *set->steps);
    if (set->steps == NULL) return oct_fail_memory();
    for (; set->step_count < list->count; set->step_count++) {
        size_t i = set->step_count;
        study_step *step = &set->steps[i];
        OCT_TRY(read_step(reader, list->items[i], i == 0, step));
        if (step->kind != STEP_WITHOUT) continue;
        const char *own = data_of(reader->study, set),
                   *other = data_of(reader->study, study_find_set(reader->study, step->name));
        if (strcmp(own, other) != 0)
            return oct_node_fail(reader->document, list->items[i], "without: %s is of data set %s, %s of %s",
                                 step->name, other, name, own);
    }
    return OCTET_OK;
}

octet_status study_read_sets(study_reader *reader, const oct_node *root) {
    const oct_node *map;
    study_file *study = reader->study;
    OCT_TRY(read_data(reader, root));
    OCT_TRY(study_items(reader, root, "sets", OCT_NODE_MAP, true, &map));
    study->sets = study_array(reader, map->count, sizeof *study->sets);
    if (study->sets == NULL) return oct_fail_memory();
    for (; study->set_count < map->count; study->set_count++) {
        size_t i = study->set_count;
        OCT_TRY(read_set(reader, map->keys[i], map->key_lines[i], map->items[i], &study->sets[i]));
    }
    if (study_find_set(study, "verdict") == NULL)
        return oct_node_fail(reader->document, map, "sets: expected one of the name verdict");
    return OCTET_OK;
}

/* ---- resolving */

/* The pictures in order, while steps are applied. */
typedef struct picked {
    int64_t *numbers;
    size_t count;
} picked;

static octet_status start_with_all(size_t count, picked *out) {
    out->numbers = oct_calloc(count + 1, sizeof *out->numbers);
    if (out->numbers == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count; i++) out->numbers[i] = (int64_t)i;
    out->count = count;
    return OCTET_OK;
}

static void shuffle(picked *list, uint64_t seed) {
    for (size_t i = list->count; i > 1; i--) {
        size_t other = (size_t)oct_random_below(&seed, i);
        int64_t kept = list->numbers[i - 1];
        list->numbers[i - 1] = list->numbers[other];
        list->numbers[other] = kept;
    }
}

/* What stands before the last slash: a shard's or a directory's name. */
static size_t shard_length(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash != NULL ? (size_t)(slash - name) : 0;
}

static bool same_shard(const char *a, const char *b) {
    size_t length = shard_length(a);
    return length == shard_length(b) && memcmp(a, b, length) == 0;
}

/* Whether position `i` of the list stays; `place` counts within its shard. */
static bool stays(const study_step *step, size_t i, size_t place, size_t count) {
    size_t number = (size_t)step->number;
    switch (step->kind) {
    case STEP_FIRST:
        return i < number;
    case STEP_LAST:
        return i + number >= count;
    case STEP_EVERY:
        return i % number == 0;
    case STEP_OF_SHARD:
        return place % number == 0;
    case STEP_RANGE:
        return i >= number && i < (size_t)step->end;
    case STEP_PARITY:
        return i % 2 == number;
    default:
        return true;
    }
}

static octet_status resolve(const study_file *study, const study_set *set, const char *const *const *names,
                            const size_t *counts, picked *out);

static octet_status remove_set(const study_file *study, const study_step *step, const char *const *const *names,
                               const size_t *counts, size_t all, picked *list) {
    picked other = {0};
    bool *taken = oct_calloc(all + 1, sizeof *taken);
    octet_status status =
        taken != NULL ? resolve(study, study_find_set(study, step->name), names, counts, &other) : oct_fail_memory();
    size_t kept = 0;
    for (size_t i = 0; status == OCTET_OK && i < other.count; i++) taken[other.numbers[i]] = true;
    for (size_t i = 0; status == OCTET_OK && i < list->count; i++)
        if (!taken[list->numbers[i]]) list->numbers[kept++] = list->numbers[i];
    if (status == OCTET_OK) list->count = kept;
    oct_free(other.numbers);
    oct_free(taken);
    return status;
}

static octet_status too_few(const study_file *study, const study_set *set, const study_step *step, size_t found) {
    int64_t wanted = step->kind == STEP_RANGE ? step->end : step->number;
    return oct_fail(OCTET_LIMIT, "%s:%d: set %s: %s: expected at least %lld pictures, found %zu", study->path,
                    step->line, set->name, step_names[step->kind], (long long)wanted, found);
}

static octet_status apply(const study_file *study, const study_set *set, const study_step *step,
                          const char *const *const *names, const size_t *counts, size_t data, picked *list) {
    if (step->kind == STEP_WITHOUT) return remove_set(study, step, names, counts, counts[data], list);
    if (step->kind == STEP_SHUFFLE) {
        shuffle(list, (uint64_t)step->number);
        return OCTET_OK;
    }
    bool counted = step->kind == STEP_FIRST || step->kind == STEP_LAST;
    if ((counted && list->count < (size_t)step->number) ||
        (step->kind == STEP_RANGE && list->count < (size_t)step->end))
        return too_few(study, set, step, list->count);
    size_t kept = 0, place = 0;
    const char *before = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const char *name = names[data][list->numbers[i]];
        place = before != NULL && same_shard(before, name) ? place + 1 : 0;
        before = name;
        if (stays(step, i, place, list->count)) list->numbers[kept++] = list->numbers[i];
    }
    list->count = kept;
    return OCTET_OK;
}

static size_t data_index(const study_file *study, const char *name) {
    size_t i = 0;
    while (strcmp(study->data[i].name, name) != 0) i++;
    return i;
}

static octet_status resolve(const study_file *study, const study_set *set, const char *const *const *names,
                            const size_t *counts, picked *out) {
    size_t data = data_index(study, data_of(study, set));
    *out = (picked){0};
    octet_status status = set->steps[0].kind == STEP_DATA
                              ? start_with_all(counts[data], out)
                              : resolve(study, study_find_set(study, set->steps[0].name), names, counts, out);
    for (size_t i = 1; status == OCTET_OK && i < set->step_count; i++)
        status = apply(study, set, &set->steps[i], names, counts, data, out);
    if (status != OCTET_OK) {
        oct_free(out->numbers);
        *out = (picked){0};
    }
    return status;
}

octet_status study_resolve(const study_file *study, const study_set *set, const char *const *const *names,
                           const size_t *counts, study_pictures *out) {
    picked list;
    *out = (study_pictures){0};
    OCT_TRY(resolve(study, set, names, counts, &list));
    if (list.count == 0) {
        oct_free(list.numbers);
        return oct_fail(OCTET_LIMIT, "%s:%d: set %s: has no pictures", study->path, set->line, set->name);
    }
    *out = (study_pictures){.data = data_of(study, set), .numbers = list.numbers, .count = list.count};
    return OCTET_OK;
}

void study_pictures_free(study_pictures *pictures) {
    oct_free(pictures->numbers);
    *pictures = (study_pictures){0};
}
