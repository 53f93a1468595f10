/* SPDX-License-Identifier: Apache-2.0 */
/* Models from checkpoints: family, graph, passes, engine. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cpu/cpu.h"
#include "graph/passes.h"
#include "quant/import.h"
#include "runtime/log.h"
#include "runtime/recipes.h"
#include "runtime/watch.h"

static octet_status check_size(const octet_model *model, int height, int width) {
    const oct_model *facts = &model->facts;
    if (facts->fixed_size && (height != facts->height || width != facts->width)) {
        return oct_fail(OCTET_UNSUPPORTED, "%s takes pictures of %d x %d only, found %d x %d", facts->architecture,
                        facts->height, facts->width, height, width);
    }
    if (height < facts->min_size || width < facts->min_size || height > facts->max_size || width > facts->max_size) {
        return oct_fail(OCTET_UNSUPPORTED, "%s: expected an input of %d to %d pixels a side, found %d x %d",
                        facts->architecture, facts->min_size, facts->max_size, height, width);
    }
    return OCTET_OK;
}

static octet_status build_graph(octet_model *model, int height, int width, oct_graph *graph) {
    OCT_TRY(check_size(model, height, width));
    double start = oct_watch_now();
    octet_status status = model->family->build(model->checkpoint, &model->facts, height, width, graph);
    if (status == OCTET_OK) status = oct_checkpoint_all_used(model->checkpoint);
    if (status == OCTET_OK && model->import != NULL) status = oct_import_weights(model->import, graph);
    if (status == OCTET_OK) status = oct_passes_run(graph);
    if (status == OCTET_OK) status = oct_model_quantize(model, graph);
    if (status != OCTET_OK) {
        oct_graph_free(graph);
        return status;
    }
    if (oct_watch_on()) {
        int64_t nodes = (int64_t)graph->node_count;
        oct_watch_emit("graph", "src/graph/passes.h", "nodes after the passes", "", 1, &nodes, NULL,
                       oct_watch_now() - start);
    }
    return OCTET_OK;
}

octet_status oct_model_graph(octet_model *model, int height, int width, oct_graph *graph) {
    memset(graph, 0, sizeof *graph);
    if (model->checkpoint == NULL) {
        oct_fail(OCTET_UNSUPPORTED, "a bundle holds steps, not the graph they came from");
        return oct_hint("inspect the checkpoint, or the bundle's steps");
    }
    pthread_mutex_lock(&model->lock);
    octet_status status = build_graph(model, height, width, graph);
    pthread_mutex_unlock(&model->lock);
    return status;
}

/* Moves the graph's weights into an engine; the graph is freed. */
static octet_status compile(octet_model *model, oct_graph *graph, oct_pool *pool, oct_engine **engine,
                            oct_weights **weights) {
    double start = oct_watch_now();
    oct_plan *plan = NULL;
    oct_plan_options options = {.batch = model->batch};
    octet_status status = oct_weights_from_graph(weights, graph);
    if (status == OCTET_OK) status = oct_plan_make(&plan, graph, *weights, oct_cpu_backend(), &options);
    oct_graph_free(graph);
    if (status == OCTET_OK) status = oct_engine_open(engine, plan, *weights, oct_cpu_backend(), pool, true);
    if (status != OCTET_OK) {
        oct_weights_release(*weights);
        *weights = NULL;
        return status;
    }
    if (oct_watch_on()) {
        int64_t steps = (int64_t)oct_engine_plan(*engine)->step_count;
        oct_watch_emit("engine", "src/engine/plan.h", "steps, weights packed", "", 1, &steps, NULL,
                       oct_watch_now() - start);
    }
    return OCTET_OK;
}

octet_status oct_model_compile(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                               oct_weights **weights) {
    oct_graph graph = {0};
    OCT_TRY(build_graph(model, height, width, &graph));
    return compile(model, &graph, pool, engine, weights);
}

/* ---- opening */

static octet_status read_preprocess(octet_model *model) {
    const oct_document *own = oct_checkpoint_preprocessor(model->checkpoint);
    if (strcmp(model->family->layout, "transformers") == 0) {
        if (own == NULL) {
            return oct_fail(OCTET_NOT_FOUND,
                            "%s: no preprocessor_config.json, which says how pictures are resized and scaled",
                            oct_checkpoint_directory(model->checkpoint));
        }
        return oct_preprocess_from_transformers(&model->preprocess, own, model->family->processor);
    }
    return oct_preprocess_from_timm(&model->preprocess, oct_checkpoint_config(model->checkpoint));
}

/* The size to build for: the caller's, else the preprocessing's, else the checkpoint's. */
static octet_status choose_size(octet_model *model, const octet_open_options *options) {
    oct_preprocess *preprocess = &model->preprocess;
    if ((options->height == 0) != (options->width == 0) || options->height < 0 || options->width < 0) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "input size: expected height and width, both positive, found %d x %d",
                        (int)options->height, (int)options->width);
    }
    if (options->height != 0) {
        if (preprocess->fit == OCT_FIT_EDGES || preprocess->fit == OCT_FIT_INSIDE) preprocess->fit = OCT_FIT_FIXED;
        preprocess->height = options->height;
        preprocess->width = options->width;
    }
    model->follows_picture = oct_preprocess_follows(preprocess);
    model->height = model->follows_picture ? model->facts.height : preprocess->height;
    model->width = model->follows_picture ? model->facts.width : preprocess->width;
    return check_size(model, model->height, model->width);
}

/* What another tool quantized says so: its weights become numbers, its scales those of the recipe "checkpoint". */
static octet_status read_import(octet_model *model) {
    oct_import import;
    OCT_TRY(oct_import_read(model->checkpoint, &import));
    if (!import.scheme.found) return OCTET_OK;
    model->import = oct_alloc(sizeof import);
    if (model->import == NULL) {
        oct_import_free(&import);
        return oct_fail_memory();
    }
    *model->import = import;
    oct_log("%s: quantized, %s %s: the recipe \"checkpoint\" is its own", oct_checkpoint_directory(model->checkpoint),
            import.scheme.method, import.scheme.algorithm);
    return OCTET_OK;
}

octet_status oct_model_open_checkpoint(octet_model *model, const char *place, const octet_open_options *options) {
    double start = oct_watch_now();
    model->batch = options->batch > 0 ? options->batch : 1;
    OCT_TRY(oct_checkpoint_open(&model->checkpoint, place));
    for (size_t i = 0; i < oct_checkpoint_warning_count(model->checkpoint); i++) {
        oct_log("%s", oct_checkpoint_warning(model->checkpoint, i));
    }
    OCT_TRY(read_import(model));
    const oct_document *config = oct_checkpoint_config(model->checkpoint);
    OCT_TRY(oct_family_find(oct_family_list, model->checkpoint, &model->family));
    snprintf(model->family_name, sizeof model->family_name, "%s", model->family->name);
    OCT_TRY(model->family->describe(model->checkpoint, &model->facts));
    OCT_TRY(read_preprocess(model));
    model->own_preprocess = model->preprocess;
    OCT_TRY(choose_size(model, options));
    OCT_TRY(oct_labels_read(&model->labels, config, options->classes_file, (size_t)model->facts.classes));
    for (size_t i = 0; i < oct_checkpoint_tensor_count(model->checkpoint); i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(model->checkpoint, i);
        if (!oct_ends_with(tensor->name, ".num_batches_tracked")) model->parameters += tensor->count;
    }
    if (oct_watch_on()) {
        int64_t tensors = (int64_t)oct_checkpoint_tensor_count(model->checkpoint);
        oct_watch_emit("checkpoint", "src/checkpoint/safetensors.c", "tensors", "", 1, &tensors, NULL,
                       oct_watch_now() - start);
    }
    return OCTET_OK;
}
