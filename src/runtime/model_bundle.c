/* SPDX-License-Identifier: Apache-2.0 */
/* Models from bundles: plans and weights are read and checked, nothing is built. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cpu/cpu.h"
#include "engine/plan_file.h"
#include "runtime/log.h"
#include "runtime/model_file.h"
#include "runtime/watch.h"

#define PLAN_SECTION_LIMIT ((size_t)64 << 20)

/* What a plan's section is called; the format is what the engine computes in. */
static bool parse_plan_name(const char *name, int64_t *batch, int *height, int *width) {
    char device[16], format[16];
    int end = 0;
    return sscanf(name, "%15[a-z]-%15[a-z0-9]-b%" SCNd64 "-%dx%d%n", device, format, batch, height, width, &end) == 5 &&
           name[end] == '\0' && strcmp(device, "cpu") == 0 && *batch > 0 && *height > 0 && *width > 0;
}

static bool is_plan(const oct_section *section, int64_t *batch, int *height, int *width) {
    return strcmp(section->kind, "plan") == 0 && parse_plan_name(section->name, batch, height, width);
}

/* "cpu-fp32-b1-224x224, cpu-fp32-b8-224x224" into the failure's detail. */
static octet_status list_plans(const oct_bundle *bundle) {
    oct_text text = {0};
    for (size_t i = 0; i < bundle->section_count; i++) {
        if (strcmp(bundle->sections[i].kind, "plan") != 0) continue;
        oct_text_printf(&text, "%s%s", text.length > 0 ? ", " : "", bundle->sections[i].name);
    }
    octet_status status = oct_detail("the bundle holds %s", text.failed || text.data == NULL ? "no plan" : text.data);
    oct_text_free(&text);
    return status;
}

/* The smallest batch, or the wanted one; and the wanted size, or the first plan's. */
static octet_status choose_plan(octet_model *model, const octet_open_options *options) {
    const oct_bundle *bundle = model->bundle;
    int64_t batch, best = 0;
    int height, width;
    for (size_t i = 0; i < bundle->section_count; i++) {
        if (!is_plan(&bundle->sections[i], &batch, &height, &width)) continue;
        if (options->batch != 0 && batch != options->batch) continue;
        if (options->height != 0 && (height != options->height || width != options->width)) continue;
        if (best != 0 && batch >= best) continue;
        best = batch;
        model->height = height;
        model->width = width;
    }
    if (best == 0) {
        oct_fail(OCTET_NOT_FOUND, "%s: no engine for device cpu, batch %" PRId64 ", input %d x %d (0: any)",
                 bundle->file.path, options->batch, (int)options->height, (int)options->width);
        return list_plans(bundle);
    }
    model->batch = best;
    return OCTET_OK;
}

typedef octet_status (*section_reader)(octet_model *model, const char *name, const char *text, size_t length);

static octet_status read_json(octet_model *model, const char *kind, size_t limit, section_reader reader) {
    const oct_section *section = oct_bundle_find(model->bundle, kind, "");
    if (section == NULL) return oct_fail(OCTET_BAD_FORMAT, "%s: no section \"%s\"", model->bundle->file.path, kind);
    uint8_t *data;
    OCT_TRY(oct_bundle_read(model->bundle, section, limit, &data));
    octet_status status = reader(model, kind, (const char *)data, (size_t)section->size);
    oct_free(data);
    return status == OCTET_OK ? status : oct_error_prefix("%s", model->bundle->file.path);
}

static octet_status read_weights(octet_model *model) {
    const oct_section *section = oct_bundle_find(model->bundle, "weights", "");
    if (section == NULL) return oct_fail(OCTET_BAD_FORMAT, "%s: no section \"weights\"", model->bundle->file.path);
    oct_section_reader reader;
    OCT_TRY(oct_section_begin(&reader, model->bundle, section));
    octet_status status = oct_weights_read(&model->bundle_weights, "weights", section->size, oct_section_read, &reader);
    if (status == OCTET_OK)
        status = oct_section_end(&reader);
    else
        oct_section_drop(&reader);
    if (status != OCTET_OK) return oct_error_prefix("%s", model->bundle->file.path);
    for (size_t i = 0; i < model->bundle_weights->count; i++) {
        model->parameters += (uint64_t)oct_shape_count(&model->bundle_weights->items[i].shape);
    }
    return OCTET_OK;
}

/* What is not needed to run is checked too: any flipped bit is noticed. */
static octet_status check_others(const oct_bundle *bundle) {
    static const char *const read_elsewhere[] = {"model", "labels", "weights", "provenance"};
    for (size_t i = 0; i < bundle->section_count; i++) {
        const oct_section *section = &bundle->sections[i];
        bool elsewhere = false;
        for (size_t j = 0; j < sizeof read_elsewhere / sizeof read_elsewhere[0]; j++) {
            elsewhere = elsewhere || (strcmp(section->kind, read_elsewhere[j]) == 0 && section->name[0] == '\0');
        }
        uint8_t *data;
        if (elsewhere) continue;
        OCT_TRY(oct_bundle_read(bundle, section, PLAN_SECTION_LIMIT, &data));
        oct_free(data);
    }
    return OCTET_OK;
}

octet_status oct_model_open_bundle(octet_model *model, const char *path, const octet_open_options *options) {
    double start = oct_watch_now();
    oct_bundle *bundle = oct_calloc(1, sizeof *bundle);
    if (bundle == NULL) return oct_fail_memory();
    octet_status status = oct_bundle_open(bundle, path);
    if (status != OCTET_OK) {
        oct_free(bundle);
        return status;
    }
    model->bundle = bundle;
    if (options->classes_file != NULL)
        oct_log("%s: a bundle brings its labels; %s is not read", path, options->classes_file);
    OCT_TRY(read_json(model, "model", OCT_MODEL_SECTION_LIMIT, oct_model_section_read));
    OCT_TRY(read_json(model, "labels", OCT_LABELS_SECTION_LIMIT, oct_labels_section_read));
    if (oct_bundle_find(bundle, "provenance", "") != NULL)
        OCT_TRY(read_json(model, "provenance", OCT_MODEL_SECTION_LIMIT, oct_provenance_section_read));
    OCT_TRY(choose_plan(model, options));
    OCT_TRY(check_others(bundle));
    OCT_TRY(read_weights(model));
    if (!model->follows_picture) {
        model->preprocess.height = model->height;
        model->preprocess.width = model->width;
    }
    if (oct_watch_on()) {
        int64_t sections = (int64_t)bundle->section_count;
        oct_watch_emit("runtime", "src/runtime/bundle.c", "sections", "", 1, &sections, NULL, oct_watch_now() - start);
    }
    return OCTET_OK;
}

/* Plans of this model's batch: with a single one, its engine may take the weights. */
static size_t count_plans(const octet_model *model) {
    int64_t batch;
    int height, width;
    size_t count = 0;
    for (size_t i = 0; i < model->bundle->section_count; i++) {
        count += is_plan(&model->bundle->sections[i], &batch, &height, &width) && batch == model->batch;
    }
    return count;
}

bool oct_model_one_engine(const octet_model *model) {
    return model->bundle != NULL && count_plans(model) == 1;
}

static octet_status read_plan(const oct_bundle *bundle, const oct_section *section, oct_plan **plan) {
    uint8_t *data;
    OCT_TRY(oct_bundle_read(bundle, section, PLAN_SECTION_LIMIT, &data));
    octet_status status = oct_plan_read(plan, section->name, data, (size_t)section->size);
    oct_free(data);
    return status;
}

octet_status oct_model_load(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                            oct_weights **weights) {
    int64_t batch;
    int plan_height, plan_width;
    const oct_section *found = NULL;
    for (size_t i = 0; i < model->bundle->section_count; i++) {
        const oct_section *section = &model->bundle->sections[i];
        if (is_plan(section, &batch, &plan_height, &plan_width) && batch == model->batch && plan_height == height &&
            plan_width == width) {
            found = section;
        }
    }
    if (found == NULL) {
        oct_fail(OCTET_UNSUPPORTED, "%s: no engine for an input of %d x %d", model->bundle->file.path, height, width);
        list_plans(model->bundle);
        return oct_hint("build with --size %dx%d as well", height, width);
    }
    if (model->bundle_weights == NULL)
        return oct_fail(OCTET_INTERNAL, "%s: its weights were released", model->bundle->file.path);
    oct_plan *plan;
    double start = oct_watch_now();
    octet_status status = read_plan(model->bundle, found, &plan);
    if (status == OCTET_OK && plan->batch != model->batch) {
        status = oct_fail(OCTET_MISMATCH, "plan %s: holds batch %" PRId64, found->name, plan->batch);
        oct_plan_free(plan);
    }
    bool only = oct_model_one_engine(model);
    if (status == OCTET_OK)
        status = oct_engine_open(engine, plan, model->bundle_weights, oct_cpu_backend(), pool, only);
    if (status != OCTET_OK) return oct_error_prefix("%s: plan %s", model->bundle->file.path, found->name);
    if (oct_watch_on()) {
        int64_t steps = (int64_t)oct_engine_plan(*engine)->step_count;
        oct_watch_emit("engine", "src/engine/engine.c", "steps, weights packed", "", 1, &steps, NULL,
                       oct_watch_now() - start);
    }
    *weights = model->bundle_weights;
    if (only)
        model->bundle_weights = NULL;
    else
        oct_weights_retain(*weights);
    return OCTET_OK;
}
