/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints for tests of families: from tests/golden/params_NAME.json (what timm or transformers want: config and
 * tensors), with weights drawn by the formula of tools/reference/drawn_weights.md, changed as a test likes, in a
 * temporary directory. */
#ifndef OCT_TESTS_FAMILIES_DRAWN_H
#define OCT_TESTS_FAMILIES_DRAWN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "graph/family.h"
#include "graph/ops.h"
#include "graph/passes.h"

#define GOLDEN OCTET_SOURCE_DIR "/tests/golden/"

#define ASSERT_OK(expression)                                                                                          \
    do {                                                                                                               \
        if ((expression) != OCTET_OK) fail_msg("%s", oct_error_text());                                                \
    } while (0)

/* ---- one tensor by the formula */

static inline void draw_tensor(const char *name, int rank, const int64_t *shape, float *values) {
    uint64_t state = oct_fnv1a_text(name), count = 1, fan_in = 1;
    for (int i = 0; i < rank; i++) {
        count *= (uint64_t)shape[i];
        if (i > 0) fan_in *= (uint64_t)shape[i];
    }
    const char *dot = strrchr(name, '.'), *last = dot == NULL ? name : dot + 1;
    bool vector = rank == 1, weight = strcmp(last, "weight") == 0;
    bool variance = vector && strcmp(last, "running_var") == 0;
    bool sixteenth = vector && (strcmp(last, "running_mean") == 0 || strcmp(last, "bias") == 0);
    double scale = weight && !vector ? (double)(float)sqrt(3.0 / (double)fan_in) : 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t k = (int64_t)(oct_random_next(&state) >> 40), n = k - (1 << 23);
        if (variance) {
            values[i] = (float)((double)(k + 8388608) * 0x1p-24);
        } else if (sixteenth) {
            values[i] = (float)((double)n * 0x1p-27);
        } else if (weight && vector) {
            values[i] = (float)((double)(n + 67108864) * 0x1p-26);
        } else if (weight) {
            values[i] = (float)(scale * (double)n * 0x1p-23);
        } else {
            values[i] = (float)((double)n * 0x1p-24);
        }
    }
}

/* The picture that goes with drawn weights, [height, width, 3]. */
static inline float *draw_input(int64_t width, int64_t height, int64_t number) {
    float *input = oct_alloc((size_t)(width * height * 3) * sizeof(float));
    assert_non_null(input);
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            for (int64_t c = 0; c < 3; c++) {
                int64_t p = (7 * x + 13 * y + 101 * c + 29 * number + 3 * ((x * y + 17 * number) % 251)) & 255;
                input[(y * width + x) * 3 + c] = ((float)p - 128.0f) / 64.0f;
            }
        }
    }
    return input;
}

/* ---- a checkpoint in memory */

typedef struct drawn_tensor {
    char name[128];
    oct_dtype dtype;
    int rank;
    int64_t shape[OCT_TENSOR_RANK];
    float *data; /* float32 tensors; NULL for num_batches_tracked */
} drawn_tensor;

typedef struct drawn_model {
    oct_text config;
    drawn_tensor *tensors;
    size_t count;
} drawn_model;

static inline int64_t drawn_elements(const drawn_tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
    return count;
}

/* JSON text of a node, as config.json is written. */
static inline void drawn_print(const oct_node *node, oct_text *text) {
    char number[32];
    switch (node->kind) {
    case OCT_NODE_NULL:
        oct_text_puts(text, "null");
        break;
    case OCT_NODE_BOOL:
        oct_text_puts(text, node->boolean ? "true" : "false");
        break;
    case OCT_NODE_INT:
        oct_text_printf(text, "%lld", (long long)node->integer);
        break;
    case OCT_NODE_REAL:
        oct_text_puts(text, oct_format_double(node->real, number));
        break;
    case OCT_NODE_STRING:
        oct_text_json(text, node->string);
        break;
    case OCT_NODE_LIST:
    case OCT_NODE_MAP:
        oct_text_puts(text, node->kind == OCT_NODE_LIST ? "[" : "{");
        for (size_t i = 0; i < node->count; i++) {
            if (i > 0) oct_text_puts(text, ",\n");
            if (node->kind == OCT_NODE_MAP) {
                oct_text_json(text, node->keys[i]);
                oct_text_puts(text, ": ");
            }
            drawn_print(node->items[i], text);
        }
        oct_text_puts(text, node->kind == OCT_NODE_LIST ? "]" : "}");
    }
}

/* params_NAME.json; with `draw`, the weights too. */
static inline void drawn_load(drawn_model *drawn, const char *name, bool draw) {
    *drawn = (drawn_model){0};
    char path[512];
    (void)snprintf(path, sizeof path, GOLDEN "params_%s.json", name);
    oct_document document;
    ASSERT_OK(oct_document_read(&document, path, OCT_DOCUMENT_LIMIT));
    drawn_print(oct_node_get(document.root, "config"), &drawn->config);
    const oct_node *list = oct_node_get(document.root, "tensors");
    drawn->count = list->count;
    drawn->tensors = oct_calloc(list->count, sizeof *drawn->tensors);
    assert_non_null(drawn->tensors);
    for (size_t i = 0; i < list->count; i++) {
        drawn_tensor *tensor = &drawn->tensors[i];
        const oct_node *shape = oct_node_get(list->items[i], "shape");
        (void)snprintf(tensor->name, sizeof tensor->name, "%s", oct_node_get(list->items[i], "name")->string);
        tensor->dtype =
            strcmp(oct_node_get(list->items[i], "dtype")->string, "I64") == 0 ? OCT_DTYPE_I64 : OCT_DTYPE_F32;
        tensor->rank = (int)shape->count;
        for (size_t d = 0; d < shape->count; d++) tensor->shape[d] = shape->items[d]->integer;
        if (!draw || tensor->dtype == OCT_DTYPE_I64) continue;
        tensor->data = oct_alloc((size_t)drawn_elements(tensor) * sizeof(float));
        assert_non_null(tensor->data);
        draw_tensor(tensor->name, tensor->rank, tensor->shape, tensor->data);
    }
    oct_document_free(&document);
}

static inline void drawn_free(drawn_model *drawn) {
    for (size_t i = 0; i < drawn->count; i++) oct_free(drawn->tensors[i].data);
    oct_free(drawn->tensors);
    oct_text_free(&drawn->config);
}

static inline drawn_tensor *drawn_find(drawn_model *drawn, const char *name) {
    for (size_t i = 0; i < drawn->count; i++) {
        if (strcmp(drawn->tensors[i].name, name) == 0) return &drawn->tensors[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static inline void drawn_drop(drawn_model *drawn, const char *name) {
    drawn_tensor *tensor = drawn_find(drawn, name);
    oct_free(tensor->data);
    *tensor = drawn->tensors[--drawn->count];
}

/* Replaces text in config.json. */
static inline void drawn_config(drawn_model *drawn, const char *from, const char *to) {
    const char *at = strstr(drawn->config.data, from);
    if (at == NULL) fail_msg("config has no %s", from);
    oct_text changed = {0};
    oct_text_append(&changed, drawn->config.data, (size_t)(at - drawn->config.data));
    oct_text_puts(&changed, to);
    oct_text_puts(&changed, at + strlen(from));
    oct_text_free(&drawn->config);
    drawn->config = changed;
}

/* A YOLOS of 6 channels, 12 hidden, 2 layers, shrunk from the tiny one with positions between the layers. */
static inline void drawn_load_small(drawn_model *drawn) {
    drawn_load(drawn, "yolos_tiny_96x128_mid", false);
    drawn_config(drawn, "\"hidden_size\": 192", "\"hidden_size\": 6");
    drawn_config(drawn, "\"intermediate_size\": 768", "\"intermediate_size\": 12");
    drawn_config(drawn, "\"num_hidden_layers\": 12", "\"num_hidden_layers\": 2");
    size_t kept = 0;
    for (size_t i = 0; i < drawn->count; i++) {
        drawn_tensor tensor = drawn->tensors[i];
        int layer = 0;
        if (sscanf(tensor.name, "vit.encoder.layer.%d.", &layer) == 1 && layer > 1) continue;
        for (int d = 0; d < tensor.rank; d++) {
            if (tensor.shape[d] == 192) tensor.shape[d] = 6;
            if (tensor.shape[d] == 768) tensor.shape[d] = 12;
            if (tensor.shape[d] == 11) tensor.shape[d] = 1;
        }
        tensor.data = oct_alloc((size_t)drawn_elements(&tensor) * sizeof(float));
        assert_non_null(tensor.data);
        draw_tensor(tensor.name, tensor.rank, tensor.shape, tensor.data);
        drawn->tensors[kept++] = tensor;
    }
    drawn->count = kept;
}

/* config.json and model.safetensors in `directory`; counters are left out. */
static inline void drawn_write(const drawn_model *drawn, const char *directory) {
    oct_tensor_source *sources = oct_calloc(drawn->count, sizeof *sources);
    assert_non_null(sources);
    size_t count = 0;
    for (size_t i = 0; i < drawn->count; i++) {
        const drawn_tensor *tensor = &drawn->tensors[i];
        if (tensor->data == NULL) continue;
        sources[count] = (oct_tensor_source){
            .name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank, .data = tensor->data};
        memcpy(sources[count].shape, tensor->shape, sizeof tensor->shape);
        count++;
    }
    ASSERT_OK(oct_safetensors_write(support_join(directory, "model.safetensors"), sources, count));
    oct_free(sources);
    support_write_file(support_join(directory, "config.json"), drawn->config.data, drawn->config.length);
}

/* The same with all tensors zero (counters too) in a file with a hole: nothing is drawn, little is written. */
static inline void drawn_write_zeros(const drawn_model *drawn, const char *directory) {
    oct_text header = {0};
    uint64_t offset = 0;
    oct_text_puts(&header, "{");
    for (size_t i = 0; i < drawn->count; i++) {
        const drawn_tensor *tensor = &drawn->tensors[i];
        uint64_t size = (uint64_t)drawn_elements(tensor) * oct_dtype_size(tensor->dtype);
        oct_text_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i > 0 ? "," : "", tensor->name,
                        oct_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->rank; d++) {
            oct_text_printf(&header, "%s%lld", d > 0 ? "," : "", (long long)tensor->shape[d]);
        }
        oct_text_printf(&header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                        (unsigned long long)(offset + size));
        offset += size;
    }
    oct_text_puts(&header, "}");
    while (header.length % 8 != 0) oct_text_puts(&header, " ");
    const char *path = support_join(directory, "model.safetensors");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint64_t length = header.length; /* little-endian machines only, as are the checkpoints */
    assert_int_equal(fwrite(&length, 8, 1, file), 1);
    assert_int_equal(fwrite(header.data, 1, header.length, file), header.length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(path, (off_t)(8 + header.length + offset)), 0);
    oct_text_free(&header);
    support_write_file(support_join(directory, "config.json"), drawn->config.data, drawn->config.length);
}

/* ---- from a directory to a graph */

typedef struct built_model {
    oct_checkpoint *checkpoint;
    const oct_family *family;
    oct_model model;
} built_model;

static inline octet_status built_open(built_model *built, const char *directory) {
    *built = (built_model){0};
    OCT_TRY(oct_checkpoint_open(&built->checkpoint, directory));
    octet_status status = oct_family_find(oct_family_list, built->checkpoint, &built->family);
    if (status == OCTET_OK) status = built->family->describe(built->checkpoint, &built->model);
    if (status == OCTET_OK) return status;
    oct_checkpoint_close(built->checkpoint);
    built->checkpoint = NULL;
    return status;
}

/* Everything from the directory to a checked graph after the passes, for the checkpoint's own size (0) or another. */
static inline octet_status build_directory(const char *directory, int height, int width, oct_graph *graph) {
    built_model built;
    OCT_TRY(built_open(&built, directory));
    *graph = (oct_graph){0};
    if (height == 0) height = built.model.height;
    if (width == 0) width = built.model.width;
    octet_status status = built.family->build(built.checkpoint, &built.model, height, width, graph);
    if (status == OCTET_OK) status = oct_graph_check(graph);
    if (status == OCTET_OK) status = oct_passes_run(graph);
    if (status != OCTET_OK) oct_graph_free(graph);
    oct_checkpoint_close(built.checkpoint);
    return status;
}

#endif
