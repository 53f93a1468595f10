/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/manifest.h"

#include <string.h>

#define SIDE_MAX 16384
#define BATCH_MAX 4096
#define REVISION_DIGITS 40

static const char *const precision_names[] = {"fp32", "fp16", "bf16", "int8", "fp8", NULL};
static const char *const device_names[] = {"cpu", "cuda", NULL};

static bool is_one_of(const char *word, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(word, names[i]) == 0) return true;
    }
    return false;
}

/* The list at `key`, not empty; NULL with the error set. */
static const oct_node *list_at(const oct_document *document, const oct_node *map, const char *key) {
    const oct_node *node = oct_node_get(map, key);
    if (node != NULL && node->kind == OCT_NODE_LIST && node->count > 0) return node;
    oct_node_fail(document, node != NULL ? node : map, "%s: expected a list with something in it, found %s", key,
                  node == NULL                  ? "nothing"
                  : node->kind == OCT_NODE_LIST ? "an empty one"
                                                : oct_node_kind_name(node->kind));
    return NULL;
}

/* Names out of `known`, none twice. */
static octet_status read_names(oct_document *document, const char *key, const char *const *known,
                               const char *const **names, size_t *count) {
    const oct_node *list = list_at(document, document->root, key);
    if (list == NULL) return oct_error_status();
    const char **out = oct_arena_alloc(&document->arena, list->count * sizeof *out);
    if (out == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *item = list->items[i];
        const char *word = item->kind == OCT_NODE_STRING ? item->string : "";
        if (!is_one_of(word, known)) {
            return oct_node_fail(document, item, "%s: %s is not known", key,
                                 item->kind == OCT_NODE_STRING ? word : oct_node_kind_name(item->kind));
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(out[j], word) == 0) return oct_node_fail(document, item, "%s: %s is there twice", key, word);
        }
        out[i] = word;
    }
    *names = out;
    *count = list->count;
    return OCTET_OK;
}

static octet_status read_batches(oct_manifest *manifest) {
    oct_document *document = &manifest->document;
    const oct_node *list = list_at(document, document->root, "batches");
    if (list == NULL) return oct_error_status();
    int64_t *batches = oct_arena_alloc(&document->arena, list->count * sizeof *batches);
    if (batches == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *item = list->items[i];
        int64_t least = i == 0 ? 1 : batches[i - 1] + 1;
        if (item->kind != OCT_NODE_INT || item->integer < least || item->integer > BATCH_MAX) {
            return oct_node_fail(document, item, "batches: expected whole numbers, rising, from 1 to %d", BATCH_MAX);
        }
        batches[i] = item->integer;
    }
    manifest->batches = batches;
    manifest->batch_count = list->count;
    return OCTET_OK;
}

static octet_status read_sizes(oct_document *document, const oct_node *map, oct_manifest_model *model) {
    const oct_node *list = list_at(document, map, "sizes");
    if (list == NULL) return oct_error_status();
    oct_manifest_size *sizes = oct_arena_alloc(&document->arena, list->count * sizeof *sizes);
    if (sizes == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *item = list->items[i];
        bool pair = item->kind == OCT_NODE_LIST && item->count == 2;
        for (size_t j = 0; pair && j < 2; j++) {
            const oct_node *side = item->items[j];
            pair = side->kind == OCT_NODE_INT && side->integer >= 1 && side->integer <= SIDE_MAX;
        }
        if (!pair) {
            return oct_node_fail(document, item, "sizes: expected [height, width], each from 1 to %d pixels", SIDE_MAX);
        }
        sizes[i] = (oct_manifest_size){(int)item->items[0]->integer, (int)item->items[1]->integer};
    }
    model->sizes = sizes;
    model->size_count = list->count;
    return OCTET_OK;
}

static octet_status check_revision(const oct_document *document, const oct_node *map, const char *revision) {
    if (strcmp(revision, "unpinned") == 0) return OCTET_OK;
    if (strlen(revision) == REVISION_DIGITS && strspn(revision, "0123456789abcdef") == REVISION_DIGITS) return OCTET_OK;
    return oct_node_fail(document, oct_node_get(map, "revision"),
                         "revision: expected a commit of %d hex digits or unpinned, found %s", REVISION_DIGITS,
                         revision);
}

static octet_status read_models(oct_manifest *manifest) {
    static const char *const known[] = {"architecture", "id", "revision", "sizes", NULL};
    oct_document *document = &manifest->document;
    const oct_node *list = list_at(document, document->root, "models");
    if (list == NULL) return oct_error_status();
    oct_manifest_model *models = oct_arena_alloc(&document->arena, list->count * sizeof *models);
    if (models == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *map = list->items[i];
        if (map->kind != OCT_NODE_MAP) return oct_node_fail(document, map, "models: expected a map for each model");
        oct_manifest_model *model = &models[i];
        model->line = map->line;
        OCT_TRY(oct_node_known_keys(document, map, known));
        OCT_TRY(oct_node_string(document, map, "architecture", true, &model->architecture));
        model->id = model->architecture;
        model->revision = "";
        OCT_TRY(oct_node_string(document, map, "id", false, &model->id));
        OCT_TRY(oct_node_string(document, map, "revision", oct_node_get(map, "id") != NULL, &model->revision));
        if (model->revision[0] != '\0') OCT_TRY(check_revision(document, map, model->revision));
        OCT_TRY(read_sizes(document, map, model));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(models[j].id, model->id) == 0) {
                return oct_node_fail(document, map, "id: %s is also the model of line %d", model->id, models[j].line);
            }
        }
    }
    manifest->models = models;
    manifest->model_count = list->count;
    return OCTET_OK;
}

static octet_status read_all(oct_manifest *manifest) {
    static const char *const known[] = {"family", "models", "batches", "precisions", "devices", NULL};
    oct_document *document = &manifest->document;
    if (document->root->kind != OCT_NODE_MAP) return oct_node_fail(document, document->root, "expected a map");
    OCT_TRY(oct_node_known_keys(document, document->root, known));
    OCT_TRY(oct_node_string(document, document->root, "family", true, &manifest->family));
    OCT_TRY(read_models(manifest));
    OCT_TRY(read_batches(manifest));
    OCT_TRY(read_names(document, "precisions", precision_names, &manifest->precisions, &manifest->precision_count));
    return read_names(document, "devices", device_names, &manifest->devices, &manifest->device_count);
}

octet_status oct_manifest_parse(oct_manifest *manifest, const char *name, const char *text, size_t length) {
    *manifest = (oct_manifest){0};
    OCT_TRY(oct_document_parse_yaml(&manifest->document, name, text, length));
    octet_status status = read_all(manifest);
    if (status != OCTET_OK) oct_manifest_free(manifest);
    return status;
}

void oct_manifest_free(oct_manifest *manifest) {
    oct_document_free(&manifest->document);
    *manifest = (oct_manifest){0};
}

octet_status oct_manifest_check(const oct_manifest *manifest, const oct_family *family) {
    const oct_document *document = &manifest->document;
    if (strcmp(manifest->family, family->name) != 0) {
        return oct_node_fail(document, oct_node_get(document->root, "family"), "family: expected %s, found %s",
                             family->name, manifest->family);
    }
    for (size_t i = 0; i < manifest->model_count; i++) {
        const oct_manifest_model *model = &manifest->models[i];
        if (is_one_of(model->architecture, family->architectures)) continue;
        return oct_fail(OCTET_MISMATCH, "%s:%d: architecture: the family has no %s", document->path, model->line,
                        model->architecture);
    }
    for (size_t i = 0; family->architectures[i] != NULL; i++) {
        size_t m = 0;
        while (m < manifest->model_count && strcmp(manifest->models[m].architecture, family->architectures[i]) != 0) {
            m++;
        }
        if (m < manifest->model_count) continue;
        return oct_node_fail(document, oct_node_get(document->root, "models"), "models: no model of architecture %s",
                             family->architectures[i]);
    }
    return OCTET_OK;
}

/* ---- combinations */

size_t oct_manifest_count(const oct_manifest *manifest) {
    size_t sizes = 0;
    for (size_t i = 0; i < manifest->model_count; i++) sizes += manifest->models[i].size_count;
    return sizes * manifest->batch_count * manifest->precision_count * manifest->device_count;
}

oct_combination oct_manifest_combination(const oct_manifest *manifest, size_t index) {
    oct_combination combination = {0};
    combination.device = manifest->devices[index % manifest->device_count];
    index /= manifest->device_count;
    combination.precision = manifest->precisions[index % manifest->precision_count];
    index /= manifest->precision_count;
    combination.batch = manifest->batches[index % manifest->batch_count];
    index /= manifest->batch_count;
    const oct_manifest_model *model = manifest->models;
    while (index >= model->size_count) index -= model++->size_count;
    combination.id = model->id;
    combination.height = model->sizes[index].height;
    combination.width = model->sizes[index].width;
    return combination;
}

/* "what VALUE is not listed" with what is. Frees the text. */
static octet_status unlisted(const oct_manifest *manifest, const char *what, const char *value, oct_text *listed) {
    octet_status status = OCTET_OUT_OF_MEMORY;
    if (listed->failed) {
        oct_fail_memory();
    } else {
        oct_fail(OCTET_UNSUPPORTED, "%s: %s %s is not listed for %s", manifest->document.path, what, value,
                 manifest->family);
        status = oct_detail("listed: %s", listed->data);
    }
    oct_text_free(listed);
    return status;
}

static octet_status check_name(const oct_manifest *manifest, const char *what, const char *value,
                               const char *const *names, size_t count) {
    oct_text listed = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], value) == 0) {
            oct_text_free(&listed);
            return OCTET_OK;
        }
        oct_text_printf(&listed, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return unlisted(manifest, what, value, &listed);
}

static octet_status check_size(const oct_manifest *manifest, const oct_manifest_model *model, int height, int width) {
    oct_text listed = {0}, wanted = {0};
    octet_status status = OCTET_OK;
    bool found = false;
    for (size_t i = 0; i < model->size_count && !found; i++) {
        const oct_manifest_size *size = &model->sizes[i];
        found = size->height == height && size->width == width;
        oct_text_printf(&listed, "%s%d x %d", i > 0 ? ", " : "", size->height, size->width);
    }
    oct_text_printf(&wanted, "%d x %d", height, width);
    if (!found) status = unlisted(manifest, "size", wanted.failed ? "" : wanted.data, &listed);
    oct_text_free(&listed);
    oct_text_free(&wanted);
    return status;
}

static octet_status check_batch(const oct_manifest *manifest, int64_t batch) {
    oct_text listed = {0}, wanted = {0};
    octet_status status = OCTET_OK;
    bool found = false;
    for (size_t i = 0; i < manifest->batch_count && !found; i++) {
        found = manifest->batches[i] == batch;
        oct_text_printf(&listed, "%s%lld", i > 0 ? ", " : "", (long long)manifest->batches[i]);
    }
    oct_text_printf(&wanted, "%lld", (long long)batch);
    if (!found) status = unlisted(manifest, "batch", wanted.failed ? "" : wanted.data, &listed);
    oct_text_free(&listed);
    oct_text_free(&wanted);
    return status;
}

octet_status oct_manifest_lists(const oct_manifest *manifest, const oct_combination *combination) {
    const oct_manifest_model *model = NULL;
    oct_text ids = {0};
    for (size_t i = 0; i < manifest->model_count && model == NULL; i++) {
        if (strcmp(manifest->models[i].id, combination->id) == 0) model = &manifest->models[i];
        oct_text_printf(&ids, "%s%s", i > 0 ? ", " : "", manifest->models[i].id);
    }
    if (model == NULL) return unlisted(manifest, "model", combination->id, &ids);
    oct_text_free(&ids);
    OCT_TRY(check_size(manifest, model, combination->height, combination->width));
    OCT_TRY(check_batch(manifest, combination->batch));
    OCT_TRY(check_name(manifest, "precision", combination->precision, manifest->precisions, manifest->precision_count));
    return check_name(manifest, "device", combination->device, manifest->devices, manifest->device_count);
}
