/* SPDX-License-Identifier: Apache-2.0 */
#include "study/study_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "study/study_read.h"

/* ---- what the parts share */

void *study_array(study_reader *reader, size_t count, size_t size) {
    size_t bytes;
    return oct_mul_size(count + 1, size, &bytes) ? oct_arena_alloc(&reader->document->arena, bytes) : NULL;
}

octet_status study_fail_line(const study_reader *reader, int line, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return oct_fail(OCTET_BAD_FORMAT, "%s:%d: %s", reader->document->path, line, text);
}

octet_status study_unknown(const study_reader *reader, int line, const char *what, const char *found,
                           const char *const *known, size_t count) {
    const char *near = oct_nearest(found, known, count);
    octet_status status = study_fail_line(reader, line, "expected %s, found \"%.64s\"", what, found);
    return near != NULL ? oct_hint("did you mean \"%s\"?", near) : status;
}

octet_status study_items(const study_reader *reader, const oct_node *map, const char *key, oct_node_kind kind,
                         bool required, const oct_node **out) {
    const oct_node *node = oct_node_get(map, key);
    *out = NULL;
    if (node == NULL) return required ? oct_node_fail(reader->document, map, "expected the key \"%s\"", key) : OCTET_OK;
    if (node->kind != kind)
        return oct_node_fail(reader->document, node, "%s: expected a %s, found %s", key,
                             kind == OCT_NODE_LIST ? "list" : "map", oct_node_kind_name(node->kind));
    if (node->count > STUDY_NAMES)
        return oct_node_fail(reader->document, node, "%s: expected at most %d items, found %zu", key, STUDY_NAMES,
                             node->count);
    if (required && node->count == 0) return oct_node_fail(reader->document, node, "%s: is empty", key);
    *out = node;
    return OCTET_OK;
}

octet_status study_texts(study_reader *reader, const oct_node *map, const char *key, bool required, const char ***texts,
                         size_t *count, int *line) {
    const oct_node *list;
    OCT_TRY(study_items(reader, map, key, OCT_NODE_LIST, required, &list));
    *count = list != NULL ? list->count : 0;
    *line = list != NULL ? list->line : 0;
    *texts = study_array(reader, *count, sizeof **texts);
    if (*texts == NULL) return oct_fail_memory();
    for (size_t i = 0; i < *count; i++) {
        if (list->items[i]->string == NULL || list->items[i]->string[0] == '\0')
            return oct_node_fail(reader->document, list->items[i], "%s: expected a name, found %s", key,
                                 oct_node_kind_name(list->items[i]->kind));
        (*texts)[i] = list->items[i]->string;
        for (size_t k = 0; k < i; k++)
            if (strcmp((*texts)[k], (*texts)[i]) == 0)
                return oct_node_fail(reader->document, list->items[i], "%s: \"%.64s\" is there twice", key,
                                     (*texts)[i]);
    }
    return OCTET_OK;
}

octet_status study_check_name(const study_reader *reader, int line, const char *what, const char *name) {
    size_t length = strlen(name);
    if (length > 0 && length <= 64 &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length)
        return OCTET_OK;
    return study_fail_line(reader, line, "%s: expected a name of up to 64 letters, digits, _ - and ., found \"%.70s\"",
                           what, name);
}

/* ---- places: what a study file names lies beside it */

static char *join_folder(study_reader *reader, const char *place, size_t length) {
    const char *path = reader->document->path, *slash = strrchr(path, '/');
    if (slash == NULL || place[0] == '/' || length == 0)
        return oct_arena_strndup(&reader->document->arena, place, length);
    return oct_arena_sprintf(&reader->document->arena, "%.*s/%.*s", (int)(slash - path), path, (int)length, place);
}

/* A hub id (ORG/NAME) stays as it is; what begins with . or / is a path. */
static const char *model_place(study_reader *reader, const char *place) {
    return place[0] == '.' || place[0] == '/' ? join_folder(reader, place, strlen(place)) : place;
}

/* ---- variants */

static octet_status read_variant(study_reader *reader, const char *name, int line, const oct_node *node,
                                 study_variant *out) {
    static const char *const keys[] = {"recipe", "judged", NULL};
    *out = (study_variant){.name = name, .recipe = name, .line = line};
    OCT_TRY(study_check_name(reader, line, "variants", name));
    if (node->kind == OCT_NODE_MAP) {
        OCT_TRY(oct_node_known_keys(reader->document, node, keys));
        OCT_TRY(oct_node_string(reader->document, node, "recipe", false, &out->recipe));
        OCT_TRY(oct_node_bool(reader->document, node, "judged", false, &out->judged));
    } else if (node->string != NULL && node->string[0] != '\0') {
        out->recipe = node->string;
    } else {
        return oct_node_fail(reader->document, node, "%s: expected a recipe or {recipe, judged}, found %s", name,
                             oct_node_kind_name(node->kind));
    }
    if (oct_ends_with(out->recipe, ".yaml") || oct_ends_with(out->recipe, ".yml")) {
        out->recipe_path = join_folder(reader, out->recipe, strlen(out->recipe));
        if (out->recipe_path == NULL) return oct_fail_memory();
    }
    return OCTET_OK;
}

static octet_status read_variants(study_reader *reader, const oct_node *root) {
    const oct_node *map;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "variants", OCT_NODE_MAP, true, &map));
    study->variants = study_array(reader, map->count, sizeof *study->variants);
    if (study->variants == NULL) return oct_fail_memory();
    for (; study->variant_count < map->count; study->variant_count++) {
        size_t i = study->variant_count;
        OCT_TRY(read_variant(reader, map->keys[i], map->key_lines[i], map->items[i], &study->variants[i]));
    }
    return OCTET_OK;
}

const study_variant *study_find_variant(const study_file *study, const char *name) {
    for (size_t i = 0; name != NULL && i < study->variant_count; i++)
        if (strcmp(study->variants[i].name, name) == 0) return &study->variants[i];
    return NULL;
}

static octet_status check_variant(study_reader *reader, int line, const char *key, const char *name) {
    const study_file *study = reader->study;
    if (study_find_variant(study, name) != NULL) return OCTET_OK;
    const char **names = study_array(reader, study->variant_count, sizeof *names);
    if (names == NULL) return oct_fail_memory();
    for (size_t i = 0; i < study->variant_count; i++) names[i] = study->variants[i].name;
    char what[96];
    (void)snprintf(what, sizeof what, "%s: a variant", key);
    return study_unknown(reader, line, what, name, names, study->variant_count);
}

/* `key`: a variant's name in `map`; absent: *name stays. */
static octet_status read_variant_name(study_reader *reader, const oct_node *map, const char *key, bool required,
                                      const char **name) {
    const oct_node *node = oct_node_get(map, key);
    OCT_TRY(oct_node_string(reader->document, map, key, required, name));
    return node != NULL && *name != NULL ? check_variant(reader, node->line, key, *name) : OCTET_OK;
}

/* Who is compared with whom; these are judged whatever `judged` says. */
static octet_status read_roles(study_reader *reader, const oct_node *root) {
    study_file *study = reader->study;
    int line;
    OCT_TRY(read_variant_name(reader, root, "reference", true, &study->reference));
    OCT_TRY(read_variant_name(reader, root, "floor", false, &study->floor));
    OCT_TRY(study_texts(reader, root, "candidates", true, &study->candidates, &study->candidate_count, &line));
    for (size_t i = 0; i < study->candidate_count; i++) {
        OCT_TRY(check_variant(reader, line, "candidates", study->candidates[i]));
        if (strcmp(study->candidates[i], study->reference) == 0)
            return study_fail_line(reader, line, "candidates: \"%.64s\" is the reference", study->reference);
    }
    for (size_t v = 0; v < study->variant_count; v++) {
        study_variant *variant = &study->variants[v];
        bool role = strcmp(variant->name, study->reference) == 0 ||
                    (study->floor != NULL && strcmp(variant->name, study->floor) == 0);
        for (size_t i = 0; i < study->candidate_count; i++) role |= strcmp(variant->name, study->candidates[i]) == 0;
        variant->judged |= role;
    }
    return OCTET_OK;
}

/* ---- measuring */

static octet_status read_batches(study_reader *reader, const oct_node *map, study_timing *timing) {
    const oct_node *list;
    OCT_TRY(study_items(reader, map, "batches", OCT_NODE_LIST, false, &list));
    timing->batch_count = list != NULL ? list->count : 1;
    timing->batches = study_array(reader, timing->batch_count, sizeof *timing->batches);
    if (timing->batches == NULL) return oct_fail_memory();
    timing->batches[0] = 1;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const oct_node *item = list->items[i];
        if (item->kind != OCT_NODE_INT || item->integer < 1 || item->integer > 1024)
            return oct_node_fail(reader->document, item, "batches: expected numbers of 1 to 1024");
        timing->batches[i] = item->integer;
    }
    if (timing->batch_count == 0) return oct_node_fail(reader->document, list, "batches: is empty");
    return OCTET_OK;
}

static octet_status read_timing(study_reader *reader, const oct_node *root) {
    static const char *const keys[] = {"base", "variants", "batches", "rounds", "seconds", "threads", "warm_up", NULL};
    const oct_node *map;
    study_timing *timing = &reader->study->timing;
    const oct_document *document = reader->document;
    int line;
    OCT_TRY(study_items(reader, root, "timing", OCT_NODE_MAP, false, &map));
    if (map == NULL) return OCTET_OK;
    *timing = (study_timing){.is_set = true, .rounds = 30, .threads = 1, .warm_up = 3, .seconds = 2.0};
    OCT_TRY(oct_node_known_keys(document, map, keys));
    timing->base = reader->study->reference;
    OCT_TRY(read_variant_name(reader, map, "base", false, &timing->base));
    OCT_TRY(read_batches(reader, map, timing));
    OCT_TRY(oct_node_int(document, map, "rounds", false, 2, 100000, &timing->rounds));
    OCT_TRY(oct_node_int(document, map, "threads", false, 1, 1024, &timing->threads));
    OCT_TRY(oct_node_int(document, map, "warm_up", false, 1, 1000, &timing->warm_up));
    OCT_TRY(oct_node_real(document, map, "seconds", false, &timing->seconds));
    if (timing->seconds < 0.0 || timing->seconds > 3600.0)
        return oct_node_fail(document, map, "seconds: expected 0 to 3600");
    OCT_TRY(study_texts(reader, map, "variants", false, &timing->variants, &timing->variant_count, &line));
    for (size_t i = 0; i < timing->variant_count; i++)
        OCT_TRY(check_variant(reader, line, "timing's variants", timing->variants[i]));
    if (timing->variant_count == 0) { /* none given: the candidates and the floor */
        const study_file *study = reader->study;
        timing->variants = study_array(reader, study->candidate_count + 1, sizeof *timing->variants);
        if (timing->variants == NULL) return oct_fail_memory();
        for (size_t i = 0; i < study->candidate_count; i++)
            timing->variants[timing->variant_count++] = study->candidates[i];
        if (study->floor != NULL) timing->variants[timing->variant_count++] = study->floor;
    }
    return OCTET_OK;
}

static octet_status read_evaluation(study_reader *reader, const oct_node *root) {
    static const char *const keys[] = {"draws", "batch", "threshold", NULL};
    const oct_node *map;
    study_file *study = reader->study;
    study->draws = 10000;
    study->batch = 1;
    study->threshold = 0.5;
    OCT_TRY(study_items(reader, root, "evaluate", OCT_NODE_MAP, false, &map));
    OCT_TRY(oct_node_known_keys(reader->document, map, keys));
    OCT_TRY(oct_node_int(reader->document, map, "draws", false, 100, 1000000, &study->draws));
    OCT_TRY(oct_node_int(reader->document, map, "batch", false, 1, 1024, &study->batch));
    OCT_TRY(oct_node_real(reader->document, map, "threshold", false, &study->threshold));
    if (study->threshold < 0.0 || study->threshold > 1.0)
        return oct_node_fail(reader->document, map, "threshold: expected 0 to 1");
    return OCTET_OK;
}

static octet_status read_premerge(study_reader *reader, const oct_node *root) {
    static const char *const keys[] = {"name", "picture", "tolerance", NULL};
    const oct_node *list;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "premerge", OCT_NODE_LIST, false, &list));
    if (list == NULL) return OCTET_OK;
    study->premerge = study_array(reader, list->count, sizeof *study->premerge);
    if (study->premerge == NULL) return oct_fail_memory();
    for (; study->premerge_count < list->count; study->premerge_count++) {
        const oct_node *map = list->items[study->premerge_count];
        study_premerge *out = &study->premerge[study->premerge_count];
        if (map->kind != OCT_NODE_MAP)
            return oct_node_fail(reader->document, map, "premerge: expected {name, picture, tolerance}");
        out->line = map->line;
        OCT_TRY(oct_node_known_keys(reader->document, map, keys));
        OCT_TRY(oct_node_string(reader->document, map, "name", true, &out->name));
        OCT_TRY(oct_node_string(reader->document, map, "picture", true, &out->picture));
        OCT_TRY(oct_node_real(reader->document, map, "tolerance", true, &out->tolerance));
        OCT_TRY(study_check_name(reader, map->line, "premerge", out->name));
        out->picture = join_folder(reader, out->picture, strlen(out->picture));
        if (out->picture == NULL) return oct_fail_memory();
        if (!(out->tolerance > 0.0 && out->tolerance <= 1.0))
            return oct_node_fail(reader->document, map, "tolerance: expected above 0, at most 1");
    }
    return OCTET_OK;
}

/* ---- the whole */

static octet_status read_head(study_reader *reader, const oct_node *root) {
    study_file *study = reader->study;
    const oct_document *document = reader->document;
    const oct_node *orientation = oct_node_get(root, "orientation");
    study->orientation = "upright";
    OCT_TRY(oct_node_string(document, root, "study", true, &study->name));
    OCT_TRY(study_check_name(reader, root->line, "study", study->name));
    study->title = study->name;
    OCT_TRY(oct_node_string(document, root, "title", false, &study->title));
    OCT_TRY(oct_node_string(document, root, "model", true, &study->model));
    OCT_TRY(oct_node_string(document, root, "revision", false, &study->revision));
    OCT_TRY(oct_node_string(document, root, "classes", false, &study->classes));
    OCT_TRY(oct_node_string(document, root, "orientation", false, &study->orientation));
    OCT_TRY(oct_node_bool(document, root, "stress", false, &study->stress));
    if (strcmp(study->orientation, "upright") != 0 && strcmp(study->orientation, "stored") != 0)
        return oct_node_fail(document, orientation, "orientation: expected upright or stored, found \"%.64s\"",
                             study->orientation);
    study->model = model_place(reader, study->model);
    if (study->classes != NULL) study->classes = join_folder(reader, study->classes, strlen(study->classes));
    return study->model != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status read_study(study_reader *reader) {
    static const char *const keys[] = {"study",     "title",        "model",  "revision", "classes",  "orientation",
                                       "reference", "floor",        "data",   "sets",     "variants", "candidates",
                                       "evaluate",  "timing",       "stress", "premerge", "rules",    "adopt",
                                       "revisit",   "not_measured", NULL};
    const oct_node *root = reader->document->root;
    if (root->kind != OCT_NODE_MAP)
        return oct_node_fail(reader->document, root, "expected a study (a map), found %s",
                             oct_node_kind_name(root->kind));
    OCT_TRY(oct_node_known_keys(reader->document, root, keys));
    OCT_TRY(read_head(reader, root));
    OCT_TRY(study_read_sets(reader, root));
    OCT_TRY(read_variants(reader, root));
    OCT_TRY(read_roles(reader, root));
    OCT_TRY(read_evaluation(reader, root));
    OCT_TRY(read_timing(reader, root));
    OCT_TRY(read_premerge(reader, root));
    return study_read_rules(reader, root);
}

static octet_status keep_text(study_reader *reader, const char *text, size_t length) {
    uint8_t digest[OCT_SHA256_SIZE];
    study_file *study = reader->study;
    OCT_TRY(oct_sha256_of(text, length, digest));
    oct_sha256_hex(digest, study->sha256);
    study->text = oct_arena_strndup(&reader->document->arena, text, length);
    study->length = length;
    study->path = reader->document->path;
    return study->text != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status study_file_parse(study_file *study, const char *path, const char *text, size_t length) {
    *study = (study_file){0};
    if (length > STUDY_BYTES)
        return oct_fail(OCTET_LIMIT, "%s: expected at most %zu bytes, found %zu", path, STUDY_BYTES, length);
    oct_document *document = oct_calloc(1, sizeof *document);
    if (document == NULL) return oct_fail_memory();
    study_reader reader = {.document = document, .study = study};
    octet_status status = oct_document_parse_yaml(document, path, text, length);
    study->memory = document;
    if (status == OCTET_OK) status = keep_text(&reader, text, length);
    if (status == OCTET_OK) status = read_study(&reader);
    if (status != OCTET_OK) study_file_free(study);
    return status;
}

octet_status study_file_read(study_file *study, const char *path) {
    uint8_t *data = NULL;
    size_t size = 0;
    *study = (study_file){0};
    OCT_TRY(oct_file_read(path, STUDY_BYTES, &data, &size));
    octet_status status = study_file_parse(study, path, (const char *)data, size);
    oct_free(data);
    return status;
}

void study_file_free(study_file *study) {
    if (study->memory != NULL) {
        oct_document_free(study->memory);
        oct_free(study->memory);
    }
    *study = (study_file){0};
}
