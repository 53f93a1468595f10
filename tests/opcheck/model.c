/* SPDX-License-Identifier: Apache-2.0 */
/* Cases from a model's graph. A name such as mobilenetv2_100 or yolos_tiny is a parameter list in tests/golden: its
 * weights are drawn (tools/reference/drawn_weights.md gives the rule; any numbers would do for shapes, zeros are taken
 * here) into a temporary checkpoint that the family then builds from. A size may follow: yolos_tiny:480x640. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "graph/family.h"
#include "graph/passes.h"
#include "opcheck/opcheck.h"

/* The list's file: the name itself, else a family's usual member. */
static bool find_list(const char *name, char *path, size_t size) {
    static const char *const usual[] = {"", "_100", "_tiny", "_tiny_patch16_224"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        snprintf(path, size, "%s/tests/golden/params_%s%s.json", OCTET_SOURCE_DIR, name, usual[i]);
        if (oct_file_exists(path)) return true;
    }
    return false;
}

static octet_status write_config(const char *list, const char *directory) {
    uint8_t *text;
    size_t size;
    OCT_TRY(oct_file_read(list, OCT_DOCUMENT_LIMIT, &text, &size));
    /* "config" is an object on a line of its own in these files */
    char *begin = strstr((char *)text, "\"config\": "), *end = begin != NULL ? strchr(begin, '\n') : NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/config.json", directory);
    octet_status status;
    if (end == NULL) {
        status = oct_fail(OCTET_BAD_FORMAT, "%s: no config", list);
    } else {
        begin += strlen("\"config\": ");
        while (end > begin && end[-1] != '}') end--;
        status = oct_file_write(path, begin, (size_t)(end - begin));
    }
    oct_free(text);
    return status;
}

static octet_status write_weights(const char *list, const char *directory) {
    oct_document document = {0};
    OCT_TRY(oct_document_read(&document, list, OCT_DOCUMENT_LIMIT));
    const oct_node *tensors = oct_node_get(document.root, "tensors");
    const size_t listed = tensors != NULL ? tensors->count : 0;
    size_t most = 1, count = 0;
    oct_tensor_source *sources = oct_calloc(listed, sizeof *sources);
    for (size_t i = 0; i < listed && sources != NULL; i++) {
        oct_tensor_source *s = &sources[count];
        size_t elements = 1;
        const oct_node *shape = oct_node_get(tensors->items[i], "shape");
        s->name = oct_node_get(tensors->items[i], "name")->string;
        if (oct_ends_with(s->name, "num_batches_tracked")) continue;
        s->dtype = OCT_DTYPE_F32;
        s->rank = (int)shape->count;
        for (int k = 0; k < s->rank; k++) elements *= (size_t)(s->shape[k] = shape->items[k]->integer);
        if (most < elements) most = elements;
        count++;
    }
    float *zeros = oct_calloc(most, sizeof *zeros);
    octet_status status = OCTET_OK;
    if (sources == NULL || zeros == NULL) {
        status = oct_fail_memory();
    } else {
        char path[600];
        for (size_t i = 0; i < count; i++) sources[i].data = zeros;
        snprintf(path, sizeof path, "%s/model.safetensors", directory);
        status = oct_safetensors_write(path, sources, count);
    }
    oct_free(zeros);
    oct_free(sources);
    oct_document_free(&document);
    return status;
}

static octet_status build(const char *directory, int height, int width, oct_graph *graph) {
    oct_checkpoint *checkpoint;
    const oct_family *family;
    oct_model model;
    memset(&model, 0, sizeof model);
    OCT_TRY(oct_checkpoint_open(&checkpoint, directory));
    octet_status status = oct_family_find(oct_family_list, checkpoint, &family);
    if (status == OCTET_OK) status = family->describe(checkpoint, &model);
    if (height == 0) {
        height = model.height;
        width = model.width;
    }
    if (status == OCTET_OK) status = family->build(checkpoint, &model, height, width, graph);
    if (status == OCTET_OK) status = oct_passes_run(graph);
    oct_checkpoint_close(checkpoint);
    return status;
}

static bool same_case(const opcase *a, const opcase *b) {
    if (a->op != b->op || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (!oct_shape_equal(&a->shapes[i], &b->shapes[i]) || a->constant[i] != b->constant[i]) return false;
    const oct_attributes *x = &a->attributes, *y = &b->attributes;
    return x->stride_h == y->stride_h && x->stride_w == y->stride_w && x->pad_top == y->pad_top &&
           x->pad_left == y->pad_left && x->pad_bottom == y->pad_bottom && x->pad_right == y->pad_right &&
           x->groups == y->groups && x->activation == y->activation && x->heads == y->heads && x->start == y->start &&
           x->length == y->length && x->has_bias == y->has_bias && x->has_residual == y->has_residual;
}

static opcase from_node(const oct_graph *graph, const oct_graph_node *node, uint64_t seed) {
    opcase c;
    memset(&c, 0, sizeof c);
    case_fp32(&c);
    c.op = node->op;
    c.attributes = node->attributes;
    c.count = node->input_count;
    c.in_place = -1;
    c.seed = seed;
    c.times = 1;
    for (int i = 0; i < c.count; i++) {
        const oct_value *value = oct_graph_value(graph, node->inputs[i]);
        c.shapes[i] = value->shape;
        c.constant[i] = value->data != NULL;
    }
    snprintf(c.name, sizeof c.name, "%.95s", node->name);
    return c;
}

static octet_status cases_of_graph(const oct_graph *graph, opcase **cases, size_t *count) {
    *count = 0;
    *cases = oct_calloc(graph->node_count, sizeof **cases);
    if (*cases == NULL) return oct_fail_memory();
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].op == OCT_OP_RESHAPE) continue; /* a view in a plan */
        const opcase c = from_node(graph, &graph->nodes[i], i + 1);
        size_t j = 0;
        while (j < *count && !same_case(&(*cases)[j], &c)) j++;
        if (j < *count)
            (*cases)[j].times++;
        else
            (*cases)[(*count)++] = c;
    }
    return OCTET_OK;
}

octet_status model_cases(const char *model, opcase **cases, size_t *count) {
    char name[512], list[700], directory[] = "/tmp/opcheck-XXXXXX";
    int height = 0, width = 0;
    snprintf(name, sizeof name, "%s", model);
    char *colon = strrchr(name, ':');
    if (colon != NULL && sscanf(colon, ":%dx%d", &height, &width) == 2) *colon = 0;
    oct_graph graph;
    memset(&graph, 0, sizeof graph);
    octet_status status;
    if (oct_file_is_directory(name)) {
        status = build(name, height, width, &graph);
    } else if (!find_list(name, list, sizeof list)) {
        return oct_fail(OCTET_NOT_FOUND, "%s: neither a checkpoint directory nor tests/golden/params_%s.json", name,
                        name);
    } else {
        if (mkdtemp(directory) == NULL) return oct_fail_errno(directory, "cannot be made");
        status = write_config(list, directory);
        if (status == OCTET_OK) status = write_weights(list, directory);
        if (status == OCTET_OK) status = build(directory, height, width, &graph);
        char path[600];
        snprintf(path, sizeof path, "%s/config.json", directory);
        unlink(path);
        snprintf(path, sizeof path, "%s/model.safetensors", directory);
        unlink(path);
        rmdir(directory);
    }
    if (status == OCTET_OK) status = cases_of_graph(&graph, cases, count);
    oct_graph_free(&graph);
    return status;
}
