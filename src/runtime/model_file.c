/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SIDE_LIMIT 65536
#define CLASSES_LIMIT 1000000

static const char *const task_names[] = {
    [OCT_TASK_CLASSIFICATION] = "classification", [OCT_TASK_DETECTION] = "detection"};
static const char *const fit_names[] = {
    [OCT_FIT_CROP] = "crop",   [OCT_FIT_SQUASH] = "squash", [OCT_FIT_BORDER] = "border",
    [OCT_FIT_FIXED] = "fixed", [OCT_FIT_EDGES] = "edges",   [OCT_FIT_INSIDE] = "inside"};
#define FILTER_COUNT (OCT_FILTER_LANCZOS + 1)

/* ---- writing */

static void put_double(oct_text *out, const char *key, double value) {
    char buffer[32];
    oct_text_printf(out, ", \"%s\": %s", key, oct_format_double(value, buffer));
}

static void put_three(oct_text *out, const char *key, const double values[3]) {
    char buffer[3][32];
    oct_text_printf(out, ", \"%s\": [%s, %s, %s]", key, oct_format_double(values[0], buffer[0]),
                    oct_format_double(values[1], buffer[1]), oct_format_double(values[2], buffer[2]));
}

static void put_bool(oct_text *out, const char *key, bool value) {
    oct_text_printf(out, ", \"%s\": %s", key, value ? "true" : "false");
}

void oct_preprocess_write(const oct_preprocess *p, oct_text *out) {
    oct_text_printf(out, "{\"fit\": \"%s\", \"height\": %d, \"width\": %d", fit_names[p->fit], p->height, p->width);
    put_double(out, "crop_pct", p->crop_pct);
    oct_text_printf(out, ", \"shortest_edge\": %d, \"longest_edge\": %d, \"size_multiple\": %d, \"filter\": \"%s\"",
                    p->shortest_edge, p->longest_edge, p->size_multiple, oct_filter_name(p->filter));
    put_bool(out, "resize", p->resize);
    put_bool(out, "rescale", p->rescale);
    put_bool(out, "normalize", p->normalize);
    put_bool(out, "pad", p->pad);
    put_bool(out, "divide", p->divide);
    oct_text_printf(out, ", \"pad_height\": %d, \"pad_width\": %d", p->pad_height, p->pad_width);
    put_double(out, "rescale_factor", p->rescale_factor);
    put_three(out, "mean", p->mean);
    put_three(out, "std", p->std);
    oct_text_puts(out, "}");
}

void oct_model_section_write(const octet_model *model, oct_text *out) {
    const oct_model *facts = &model->facts;
    oct_text_printf(out, "{\"family\": \"%s\", \"architecture\": ", model->family_name);
    oct_text_json(out, facts->architecture);
    oct_text_printf(
        out, ", \"task\": \"%s\", \"classes\": %d, \"tokens\": %d, \"height\": %d, \"width\": %d, \"preprocess\": ",
        task_names[facts->task], facts->classes, facts->tokens, model->height, model->width);
    oct_preprocess_write(&model->preprocess, out);
    oct_text_puts(out, "}\n");
}

void oct_labels_section_write(const octet_model *model, oct_text *out) {
    for (size_t i = 0; i < model->labels.count; i++) {
        oct_text_puts(out, i == 0 ? "[" : ",\n ");
        oct_text_json(out, model->labels.names[i]);
    }
    oct_text_puts(out, "]\n");
}

/* ---- reading */

static octet_status get_int(const oct_document *doc, const oct_node *map, const char *key, int64_t low, int64_t high,
                            int *value) {
    int64_t wide = 0;
    OCT_TRY(oct_node_int(doc, map, key, true, low, high, &wide));
    *value = (int)wide;
    return OCTET_OK;
}

static octet_status get_name(const oct_document *doc, const oct_node *map, const char *key, const char *const *names,
                             size_t count, int *value) {
    const char *text = NULL;
    OCT_TRY(oct_node_string(doc, map, key, true, &text));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            *value = (int)i;
            return OCTET_OK;
        }
    }
    return oct_node_fail(doc, oct_node_get(map, key), "%s: unknown \"%s\"", key, text);
}

static octet_status get_filter(const oct_document *doc, const oct_node *map, oct_filter *filter) {
    const char *names[FILTER_COUNT];
    int index = 0;
    for (int i = 0; i < FILTER_COUNT; i++) names[i] = oct_filter_name((oct_filter)i);
    OCT_TRY(get_name(doc, map, "filter", names, FILTER_COUNT, &index));
    *filter = (oct_filter)index;
    return OCTET_OK;
}

static octet_status check_numbers(const oct_document *doc, const oct_node *map, const oct_preprocess *p) {
    bool good = p->crop_pct > 0.0 && isfinite(p->rescale_factor);
    for (int i = 0; i < 3; i++) good = good && isfinite(p->mean[i]) && p->std[i] > 0.0 && isfinite(p->std[i]);
    if (!good) return oct_node_fail(doc, map, "preprocess: expected finite numbers, crop_pct and std above 0");
    bool sized = p->fit == OCT_FIT_EDGES ? p->shortest_edge > 0 : p->height > 0 && p->width > 0;
    return sized || !p->resize ? OCTET_OK : oct_node_fail(doc, map, "preprocess: expected a size above 0");
}

static octet_status read_preprocess(const oct_document *doc, oct_preprocess *p) {
    const oct_node *map = oct_node_get(doc->root, "preprocess");
    int fit = 0;
    if (map == NULL) return oct_node_fail(doc, doc->root, "preprocess: expected a map, found nothing");
    OCT_TRY(get_name(doc, map, "fit", fit_names, sizeof fit_names / sizeof fit_names[0], &fit));
    p->fit = (oct_fit)fit;
    OCT_TRY(get_int(doc, map, "height", 0, SIDE_LIMIT, &p->height));
    OCT_TRY(get_int(doc, map, "width", 0, SIDE_LIMIT, &p->width));
    OCT_TRY(oct_node_real(doc, map, "crop_pct", true, &p->crop_pct));
    OCT_TRY(get_int(doc, map, "shortest_edge", 0, SIDE_LIMIT, &p->shortest_edge));
    OCT_TRY(get_int(doc, map, "longest_edge", 0, SIDE_LIMIT, &p->longest_edge));
    OCT_TRY(get_int(doc, map, "size_multiple", 0, SIDE_LIMIT, &p->size_multiple));
    OCT_TRY(get_filter(doc, map, &p->filter));
    OCT_TRY(oct_node_bool(doc, map, "resize", true, &p->resize));
    OCT_TRY(oct_node_bool(doc, map, "rescale", true, &p->rescale));
    OCT_TRY(oct_node_bool(doc, map, "normalize", true, &p->normalize));
    OCT_TRY(oct_node_bool(doc, map, "pad", true, &p->pad));
    OCT_TRY(oct_node_bool(doc, map, "divide", true, &p->divide));
    OCT_TRY(get_int(doc, map, "pad_height", 0, SIDE_LIMIT, &p->pad_height));
    OCT_TRY(get_int(doc, map, "pad_width", 0, SIDE_LIMIT, &p->pad_width));
    OCT_TRY(oct_node_real(doc, map, "rescale_factor", true, &p->rescale_factor));
    OCT_TRY(oct_node_reals(doc, map, "mean", true, p->mean, 3));
    OCT_TRY(oct_node_reals(doc, map, "std", true, p->std, 3));
    return check_numbers(doc, map, p);
}

static octet_status read_facts(octet_model *model, const oct_document *doc) {
    const oct_node *root = doc->root;
    oct_model *facts = &model->facts;
    const char *family = NULL, *architecture = NULL;
    int task = 0;
    OCT_TRY(oct_node_string(doc, root, "family", true, &family));
    OCT_TRY(oct_node_string(doc, root, "architecture", true, &architecture));
    if (strlen(family) >= sizeof model->family_name) return oct_node_fail(doc, root, "family: name too long");
    if (strlen(architecture) >= sizeof facts->architecture)
        return oct_node_fail(doc, root, "architecture: name too long");
    strcpy(model->family_name, family);
    strcpy(facts->architecture, architecture);
    OCT_TRY(get_name(doc, root, "task", task_names, sizeof task_names / sizeof task_names[0], &task));
    facts->task = (oct_model_task)task;
    OCT_TRY(get_int(doc, root, "classes", 1, CLASSES_LIMIT, &facts->classes));
    OCT_TRY(get_int(doc, root, "tokens", 0, SIDE_LIMIT, &facts->tokens));
    OCT_TRY(get_int(doc, root, "height", 1, SIDE_LIMIT, &model->height));
    OCT_TRY(get_int(doc, root, "width", 1, SIDE_LIMIT, &model->width));
    facts->height = model->height;
    facts->width = model->width;
    if ((facts->task == OCT_TASK_DETECTION) != (facts->tokens > 0)) {
        return oct_node_fail(doc, root, "tokens: a detector has some, a classifier none; found %d", facts->tokens);
    }
    OCT_TRY(read_preprocess(doc, &model->preprocess));
    model->follows_picture = oct_preprocess_follows(&model->preprocess);
    return OCTET_OK;
}

octet_status oct_model_section_read(octet_model *model, const char *name, const char *text, size_t length) {
    oct_document doc = {0};
    OCT_TRY(oct_document_parse_json(&doc, name, text, length));
    octet_status status = read_facts(model, &doc);
    oct_document_free(&doc);
    return status;
}

octet_status oct_labels_section_read(octet_model *model, const char *name, const char *text, size_t length) {
    oct_document doc = {0};
    OCT_TRY(oct_document_parse_json(&doc, name, text, length));
    octet_status status = oct_labels_from_list(&model->labels, &doc, doc.root, "labels", (size_t)model->facts.classes);
    oct_document_free(&doc);
    return status;
}

static octet_status read_fingerprint(octet_model *model, const oct_document *doc) {
    const char *fingerprint = NULL;
    OCT_TRY(oct_node_string(doc, doc->root, "fingerprint", false, &fingerprint));
    if (fingerprint == NULL) return OCTET_OK;
    if (strlen(fingerprint) != OCT_SHA256_HEX - 1 || strspn(fingerprint, "0123456789abcdef") != OCT_SHA256_HEX - 1) {
        return oct_node_fail(doc, oct_node_get(doc->root, "fingerprint"),
                             "fingerprint: expected 64 hexadecimal digits");
    }
    strcpy(model->fingerprint, fingerprint);
    return OCTET_OK;
}

octet_status oct_provenance_section_read(octet_model *model, const char *name, const char *text, size_t length) {
    oct_document doc = {0};
    OCT_TRY(oct_document_parse_json(&doc, name, text, length));
    octet_status status = read_fingerprint(model, &doc);
    oct_document_free(&doc);
    return status;
}
