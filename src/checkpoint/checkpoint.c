/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a checkpoint directory, finding and reading its tensors. */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/dtype.h"
#include "checkpoint/place.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shards.h"

#define SINGLE_FILE "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"
#define PIECE ((size_t)16 << 10) /* bytes a read; a multiple of every dtype's size */

struct oct_checkpoint {
    oct_place place;
    oct_document config, preprocessor;
    bool has_preprocessor;
    oct_arena arena; /* names, paths, warnings */
    oct_file *files; /* open; tensors say which by file_index */
    size_t file_count;
    oct_tensor_list tensors; /* by rising name */
    const char **warnings;
    size_t warning_count, warning_capacity;
};

static octet_status warn(oct_checkpoint *checkpoint, const char *text) {
    if (text == NULL || !oct_grow((void **)&checkpoint->warnings, sizeof *checkpoint->warnings,
                                  checkpoint->warning_count + 1, &checkpoint->warning_capacity))
        return oct_fail_memory();
    checkpoint->warnings[checkpoint->warning_count++] = text;
    return OCTET_OK;
}

/* Whether the directory has an entry of that name, be it a link to nowhere: opening it then tells what is wrong. */
static bool has_entry(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

static const char *path_of(oct_checkpoint *checkpoint, const char *name) {
    return oct_arena_sprintf(&checkpoint->arena, "%s/%s", checkpoint->place.directory, name);
}

/* ---- opening ---- */

static octet_status read_map(oct_document *document, const char *path) {
    OCT_TRY(oct_document_read(document, path, OCT_DOCUMENT_LIMIT));
    if (document->root->kind != OCT_NODE_MAP)
        return oct_node_fail(document, document->root, "expected a map, found %s",
                             oct_node_kind_name(document->root->kind));
    return OCTET_OK;
}

static octet_status open_documents(oct_checkpoint *checkpoint) {
    const char *config = path_of(checkpoint, "config.json");
    const char *preprocessor = path_of(checkpoint, "preprocessor_config.json");
    if (config == NULL || preprocessor == NULL) return oct_fail_memory();
    if (!has_entry(config)) {
        oct_fail(OCTET_NOT_FOUND, "%s: config.json is missing", checkpoint->place.directory);
        return oct_hint("expected a checkpoint in the hub's layout: config.json beside " SINGLE_FILE);
    }
    OCT_TRY(read_map(&checkpoint->config, config));
    if (!has_entry(preprocessor)) return OCTET_OK;
    checkpoint->has_preprocessor = true;
    return read_map(&checkpoint->preprocessor, preprocessor);
}

static octet_status open_files(oct_checkpoint *checkpoint, const char *const *names, size_t count) {
    checkpoint->files = oct_calloc(count, sizeof *checkpoint->files);
    if (checkpoint->files == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count; i++) {
        const char *path = path_of(checkpoint, names[i]);
        if (path == NULL) return oct_fail_memory();
        OCT_TRY(oct_file_open(&checkpoint->files[i], path));
        checkpoint->file_count = i + 1;
        OCT_TRY(oct_safetensors_scan(&checkpoint->files[i], path, (int)i, &checkpoint->arena, &checkpoint->tensors));
    }
    return OCTET_OK;
}

static int by_stored_name(const void *a, const void *b) {
    const oct_tensor *x = a, *y = b;
    int order = strcmp(x->stored_name, y->stored_name);
    return order != 0 ? order : x->file_index - y->file_index;
}

static octet_status warn_total_size(oct_checkpoint *checkpoint, const char *path, const oct_shard_index *index) {
    double total = 0;
    for (size_t i = 0; i < checkpoint->tensors.count; i++) total += (double)checkpoint->tensors.items[i].size;
    if (!index->has_total_size || index->total_size == total) return OCTET_OK;
    return warn(checkpoint, oct_arena_sprintf(&checkpoint->arena, "%s: total_size is %.0f, the tensors hold %.0f bytes",
                                              path, index->total_size, total));
}

static octet_status open_shards(oct_checkpoint *checkpoint, const char *path) {
    oct_document document = {0};
    OCT_TRY(oct_document_read(&document, path, OCT_DOCUMENT_LIMIT));
    oct_shard_index index;
    octet_status status = oct_shard_index_read(&document, &index);
    if (status == OCTET_OK) {
        status = open_files(checkpoint, index.shards, index.shard_count);
        oct_tensor_list *list = &checkpoint->tensors;
        if (status == OCTET_OK && list->count > 1) qsort(list->items, list->count, sizeof *list->items, by_stored_name);
        if (status == OCTET_OK) status = oct_shard_index_check(&document, &index, list->items, list->count);
        if (status == OCTET_OK) status = warn_total_size(checkpoint, path, &index);
        oct_shard_index_free(&index);
    }
    oct_document_free(&document);
    return status;
}

/* The first entry, by name, that ends in one of `suffixes`; *first stays NULL if there is none. */
static octet_status first_entry(oct_checkpoint *checkpoint, const char *const *suffixes, size_t count,
                                const char **first) {
    octet_status status = OCTET_OK;
    DIR *directory = opendir(checkpoint->place.directory);
    for (struct dirent *entry; directory != NULL && status == OCTET_OK && (entry = readdir(directory)) != NULL;) {
        size_t i = 0;
        while (i < count && !oct_ends_with(entry->d_name, suffixes[i])) i++;
        if (i == count || (*first != NULL && strcmp(entry->d_name, *first) > 0)) continue;
        *first = oct_arena_strdup(&checkpoint->arena, entry->d_name);
        if (*first == NULL) status = oct_fail_memory();
    }
    if (directory != NULL) closedir(directory);
    return status;
}

static octet_status fail_no_weights(oct_checkpoint *checkpoint) {
    static const char *const same[] = {".safetensors", ".SAFETENSORS"};
    static const char *const pickled[] = {".bin", ".ckpt", ".pt", ".pth", ".pkl", ".pickle", ".tar"};
    static const char *const foreign[] = {".h5", ".msgpack", ".onnx", ".gguf", ".npz", ".pb", ".tflite", ".keras"};
    const char *directory = checkpoint->place.directory, *found = NULL;
    OCT_TRY(first_entry(checkpoint, same, sizeof same / sizeof *same, &found));
    if (found != NULL) {
        oct_fail(OCTET_NOT_FOUND, "%s: found %s, but neither " SINGLE_FILE " nor " INDEX_FILE, directory, found);
        return oct_hint("if it holds the whole model, name it " SINGLE_FILE);
    }
    OCT_TRY(first_entry(checkpoint, pickled, sizeof pickled / sizeof *pickled, &found));
    if (found != NULL) {
        oct_fail(OCTET_UNSUPPORTED, "%s: found %s, but no " SINGLE_FILE, directory, found);
        oct_detail("octet does not read pickled weights: loading them may run code");
        return oct_hint("convert once in Python: safetensors.torch.save_file(torch.load(\"%s\", weights_only=True), "
                        "\"" SINGLE_FILE "\")",
                        found);
    }
    OCT_TRY(first_entry(checkpoint, foreign, sizeof foreign / sizeof *foreign, &found));
    if (found != NULL) {
        oct_fail(OCTET_UNSUPPORTED, "%s: found %s, but no " SINGLE_FILE, directory, found);
        return oct_hint("save the model from PyTorch as safetensors");
    }
    oct_fail(OCTET_NOT_FOUND, "%s: no weights: neither " SINGLE_FILE " nor " INDEX_FILE, directory);
    if (checkpoint->place.id[0] != '\0')
        return oct_hint("octet pull %s@%s", checkpoint->place.id, checkpoint->place.revision);
    return oct_hint("expected a checkpoint in the hub's layout: config.json beside " SINGLE_FILE);
}

static octet_status open_weights(oct_checkpoint *checkpoint) {
    static const char *const single_name[] = {SINGLE_FILE};
    const char *single = path_of(checkpoint, SINGLE_FILE), *index = path_of(checkpoint, INDEX_FILE);
    if (single == NULL || index == NULL) return oct_fail_memory();
    if (!has_entry(single)) return has_entry(index) ? open_shards(checkpoint, index) : fail_no_weights(checkpoint);
    if (has_entry(index))
        OCT_TRY(
            warn(checkpoint, oct_arena_sprintf(&checkpoint->arena,
                                               "%s: read " SINGLE_FILE "; " INDEX_FILE " and its shards are ignored",
                                               checkpoint->place.directory)));
    return open_files(checkpoint, single_name, 1);
}

/* The first and the last of sorted names share what all share. */
static void strip_prefixes(oct_tensor_list *list) {
    static const char *const prefixes[] = {"module.", "_orig_mod.", "model."};
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes;) {
        const char *prefix = prefixes[p];
        size_t length = strlen(prefix);
        const char *first = list->items[0].name, *last = list->items[list->count - 1].name;
        if (!oct_starts_with(first, prefix) || !oct_starts_with(last, prefix) || first[length] == '\0') {
            p++;
            continue;
        }
        for (size_t i = 0; i < list->count; i++) list->items[i].name += length;
        p = 0;
    }
}

static octet_status open_all(oct_checkpoint *checkpoint, const char *place) {
    OCT_TRY(oct_place_find(&checkpoint->place, place));
    OCT_TRY(open_documents(checkpoint));
    OCT_TRY(open_weights(checkpoint));
    oct_tensor_list *list = &checkpoint->tensors;
    if (list->count == 0)
        return oct_fail(OCTET_BAD_FORMAT, "%s/" SINGLE_FILE ": holds no tensors", checkpoint->place.directory);
    if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, by_stored_name);
    strip_prefixes(list);
    return OCTET_OK;
}

octet_status oct_checkpoint_open(oct_checkpoint **checkpoint, const char *place) {
    *checkpoint = NULL;
    oct_checkpoint *opened = oct_calloc(1, sizeof *opened);
    if (opened == NULL) return oct_fail_memory();
    octet_status status = open_all(opened, place);
    if (status != OCTET_OK) {
        oct_checkpoint_close(opened);
        return status;
    }
    *checkpoint = opened;
    return OCTET_OK;
}

void oct_checkpoint_close(oct_checkpoint *checkpoint) {
    if (checkpoint == NULL) return;
    for (size_t i = 0; i < checkpoint->file_count; i++) oct_file_close(&checkpoint->files[i]);
    oct_free(checkpoint->files);
    oct_free(checkpoint->tensors.items);
    oct_free((void *)checkpoint->warnings);
    oct_document_free(&checkpoint->config);
    oct_document_free(&checkpoint->preprocessor);
    oct_place_free(&checkpoint->place);
    oct_arena_free(&checkpoint->arena);
    oct_free(checkpoint);
}

/* ---- what it knows ---- */

const char *oct_checkpoint_directory(const oct_checkpoint *checkpoint) {
    return checkpoint->place.directory;
}

const char *oct_checkpoint_id(const oct_checkpoint *checkpoint) {
    return checkpoint->place.id;
}

const char *oct_checkpoint_revision(const oct_checkpoint *checkpoint) {
    return checkpoint->place.revision;
}

const oct_document *oct_checkpoint_config(const oct_checkpoint *checkpoint) {
    return &checkpoint->config;
}

const oct_document *oct_checkpoint_preprocessor(const oct_checkpoint *checkpoint) {
    return checkpoint->has_preprocessor ? &checkpoint->preprocessor : NULL;
}

size_t oct_checkpoint_warning_count(const oct_checkpoint *checkpoint) {
    return checkpoint->warning_count;
}

const char *oct_checkpoint_warning(const oct_checkpoint *checkpoint, size_t index) {
    return index < checkpoint->warning_count ? checkpoint->warnings[index] : "";
}

size_t oct_checkpoint_tensor_count(const oct_checkpoint *checkpoint) {
    return checkpoint->tensors.count;
}

oct_tensor *oct_checkpoint_tensor(oct_checkpoint *checkpoint, size_t index) {
    return index < checkpoint->tensors.count ? &checkpoint->tensors.items[index] : NULL;
}

static int name_of(const void *name, const void *tensor) {
    return strcmp(name, ((const oct_tensor *)tensor)->name);
}

oct_tensor *oct_checkpoint_find(oct_checkpoint *checkpoint, const char *name) {
    const oct_tensor_list *list = &checkpoint->tensors;
    return bsearch(name, list->items, list->count, sizeof *list->items, name_of);
}

octet_status oct_checkpoint_all_used(const oct_checkpoint *checkpoint) {
    const oct_tensor *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->tensors.count; i++) {
        const oct_tensor *tensor = &checkpoint->tensors.items[i];
        if (tensor->used || oct_ends_with(tensor->name, "num_batches_tracked")) continue;
        if (count++ == 0) first = tensor;
    }
    if (first == NULL) return OCTET_OK;
    oct_fail(OCTET_MISMATCH, "%s: tensor %s has no place in this architecture", first->file, first->stored_name);
    return count > 1 ? oct_detail("and %zu more", count - 1) : OCTET_MISMATCH;
}

/* ---- reading ---- */

/* "element 5 ([0, 0, 1, 2]) is nan" */
static octet_status fail_not_finite(const oct_tensor *tensor, uint64_t element, float value) {
    char place[OCT_TENSOR_RANK * 24 + 3];
    size_t length = 0;
    uint64_t stride = tensor->count, rest = element;
    place[0] = '\0';
    for (int i = 0; i < tensor->rank; i++) {
        stride /= (uint64_t)tensor->shape[i]; /* not zero: the tensor has elements */
        length +=
            (size_t)snprintf(place + length, sizeof place - length, "%s%" PRIu64, i == 0 ? "[" : ", ", rest / stride);
        rest %= stride;
    }
    if (tensor->rank > 0) snprintf(place + length, sizeof place - length, "]");
    return oct_fail(OCTET_BAD_FORMAT, "%s: tensor %s: element %" PRIu64 "%s%s%s is %s, expected a finite number",
                    tensor->file, tensor->stored_name, element, length > 0 ? " (" : "", place, length > 0 ? ")" : "",
                    isnan(value) ? "nan"
                    : value > 0  ? "infinite"
                                 : "-infinite");
}

octet_status oct_checkpoint_read(const oct_checkpoint *checkpoint, const oct_tensor *tensor, float *values) {
    const oct_file *file = &checkpoint->files[tensor->file_index];
    uint8_t piece[PIECE];
    size_t element = oct_dtype_size(tensor->dtype);
    for (uint64_t done = 0; done < tensor->count;) {
        uint64_t left = tensor->count - done;
        size_t count = left < PIECE / element ? (size_t)left : PIECE / element;
        OCT_TRY(oct_file_read_at(file, tensor->offset + done * element, piece, count * element));
        oct_dtype_to_float(tensor->dtype, piece, count, values + done);
        for (size_t i = 0; i < count; i++)
            if (!isfinite(values[done + i])) return fail_not_finite(tensor, done + i, values[done + i]);
        done += count;
    }
    return OCTET_OK;
}

octet_status oct_checkpoint_read_raw(const oct_checkpoint *checkpoint, const oct_tensor *tensor, void *bytes) {
    return oct_file_read_at(&checkpoint->files[tensor->file_index], tensor->offset, bytes, (size_t)tensor->size);
}

/* ---- fingerprint ---- */

static octet_status hash_number(oct_sha256 *hash, uint64_t value) {
    uint8_t bytes[8];
    oct_store_little(bytes, 8, value);
    return oct_sha256_update(hash, bytes, sizeof bytes);
}

static octet_status hash_text(oct_sha256 *hash, const char *text) {
    size_t length = strlen(text);
    OCT_TRY(hash_number(hash, length));
    return oct_sha256_update(hash, text, length);
}

static octet_status hash_tensor(oct_sha256 *hash, const oct_file *file, const oct_tensor *tensor) {
    uint8_t piece[PIECE];
    OCT_TRY(hash_text(hash, tensor->name));
    OCT_TRY(hash_text(hash, oct_dtype_name(tensor->dtype)));
    OCT_TRY(hash_number(hash, (uint64_t)tensor->rank));
    for (int i = 0; i < tensor->rank; i++) OCT_TRY(hash_number(hash, (uint64_t)tensor->shape[i]));
    OCT_TRY(hash_number(hash, tensor->size));
    for (uint64_t done = 0; done < tensor->size;) {
        size_t size = tensor->size - done < PIECE ? (size_t)(tensor->size - done) : PIECE;
        OCT_TRY(oct_file_read_at(file, tensor->offset + done, piece, size));
        OCT_TRY(oct_sha256_update(hash, piece, size));
        done += size;
    }
    return OCTET_OK;
}

static octet_status hash_all(oct_sha256 *hash, const oct_checkpoint *checkpoint) {
    static const char title[32] = "octet checkpoint fingerprint 1\n";
    OCT_TRY(oct_sha256_update(hash, title, sizeof title));
    OCT_TRY(hash_number(hash, checkpoint->tensors.count));
    for (size_t i = 0; i < checkpoint->tensors.count; i++) {
        const oct_tensor *tensor = &checkpoint->tensors.items[i];
        OCT_TRY(hash_tensor(hash, &checkpoint->files[tensor->file_index], tensor));
    }
    return OCTET_OK;
}

octet_status oct_checkpoint_fingerprint(const oct_checkpoint *checkpoint, char hex[OCT_SHA256_HEX]) {
    oct_sha256 hash;
    uint8_t digest[OCT_SHA256_SIZE];
    OCT_TRY(oct_sha256_begin(&hash));
    octet_status status = hash_all(&hash, checkpoint);
    if (status != OCTET_OK) {
        oct_sha256_drop(&hash);
        return status;
    }
    OCT_TRY(oct_sha256_end(&hash, digest));
    oct_sha256_hex(digest, hex);
    return OCTET_OK;
}
