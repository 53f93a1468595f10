/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model.h"

#include <string.h>

#include "base/alloc.h"
#include "cpu/cpu.h"
#include "graph/passes.h"
#include "runtime/log.h"
#include "runtime/watch.h"

/* Pictures an engine takes at once; a bound on memory, not a tuned figure. */
#define BATCH_LIMIT 1024

octet_model *oct_model_retain(octet_model *model) {
    atomic_fetch_add(&model->references, 1);
    return model;
}

static void drop_slot(oct_model_slot *slot) {
    oct_engine_release(slot->engine);
    oct_weights_release(slot->weights);
    memset(slot, 0, sizeof *slot);
}

void oct_model_release(octet_model *model) {
    if (model == NULL || atomic_fetch_sub(&model->references, 1) != 1) return;
    for (int i = 0; i < OCT_MODEL_ENGINES; i++) drop_slot(&model->slots[i]);
    oct_labels_free(&model->labels);
    oct_checkpoint_close(model->checkpoint);
    pthread_mutex_destroy(&model->lock);
    oct_free(model);
}

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
    if (status == OCTET_OK) status = oct_passes_run(graph);
    if (status == OCTET_OK) status = oct_graph_check(graph);
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
    oct_plan_options options = {.batch = model->batch, .effort = 1};
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

static octet_status find_or_build(octet_model *model, int height, int width, oct_pool *pool, oct_model_slot **found) {
    oct_model_slot *oldest = &model->slots[0];
    for (int i = 0; i < OCT_MODEL_ENGINES; i++) {
        oct_model_slot *slot = &model->slots[i];
        if (slot->engine != NULL && slot->height == height && slot->width == width) {
            *found = slot;
            return OCTET_OK;
        }
        if (oldest->engine != NULL && (slot->engine == NULL || slot->used < oldest->used)) oldest = slot;
    }
    oct_graph graph = {0};
    OCT_TRY(build_graph(model, height, width, &graph));
    oct_engine *engine = NULL;
    oct_weights *weights = NULL;
    OCT_TRY(compile(model, &graph, pool, &engine, &weights));
    drop_slot(oldest);
    *oldest = (oct_model_slot){.height = height, .width = width, .engine = engine, .weights = weights};
    *found = oldest;
    return OCTET_OK;
}

octet_status oct_model_engine(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                              oct_weights **weights) {
    *engine = NULL;
    pthread_mutex_lock(&model->lock);
    oct_model_slot *slot = NULL;
    octet_status status = find_or_build(model, height, width, pool, &slot);
    if (status == OCTET_OK) {
        slot->used = ++model->turn;
        *engine = oct_engine_retain(slot->engine);
        if (weights != NULL) *weights = oct_weights_retain(slot->weights);
    }
    pthread_mutex_unlock(&model->lock);
    return status;
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
        return oct_preprocess_from_transformers(&model->preprocess, own);
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
        if (preprocess->fit == OCT_FIT_EDGES) preprocess->fit = OCT_FIT_FIXED;
        preprocess->height = options->height;
        preprocess->width = options->width;
    }
    model->follows_picture = preprocess->fit == OCT_FIT_EDGES || !preprocess->resize;
    if (preprocess->height <= 0 || preprocess->width <= 0) {
        preprocess->height = model->facts.height;
        preprocess->width = model->facts.width;
    }
    model->height = preprocess->height;
    model->width = preprocess->width;
    return check_size(model, model->height, model->width);
}

static octet_status open_checkpoint(octet_model *model, const char *place, const octet_open_options *options) {
    double start = oct_watch_now();
    OCT_TRY(oct_checkpoint_open(&model->checkpoint, place));
    for (size_t i = 0; i < oct_checkpoint_warning_count(model->checkpoint); i++) {
        oct_log("%s", oct_checkpoint_warning(model->checkpoint, i));
    }
    const oct_document *config = oct_checkpoint_config(model->checkpoint);
    OCT_TRY(oct_family_find(oct_family_list, model->checkpoint, &model->family));
    OCT_TRY(model->family->describe(model->checkpoint, &model->facts));
    OCT_TRY(read_preprocess(model));
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

static octet_status check_options(const octet_open_options *options) {
    if (options->struct_size != sizeof *options) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "octet_open_options.struct_size: expected %zu, found %zu",
                        sizeof *options, options->struct_size);
    }
    if (options->device != NULL && strcmp(options->device, "cpu") != 0) {
        return oct_fail(OCTET_NO_DEVICE, "device: expected cpu, found \"%s\"", options->device);
    }
    if (options->batch < 1 || options->batch > BATCH_LIMIT) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "batch: expected 1 to %d, found %lld", BATCH_LIMIT,
                        (long long)options->batch);
    }
    return OCTET_OK;
}

/* Builds the engine now, so that a model that opened can run; a size that follows the picture is built at the first
 * one. */
static octet_status prepare(octet_model *model, unsigned threads) {
    if (model->follows_picture) return OCTET_OK;
    oct_pool *pool = NULL;
    oct_engine *engine = NULL;
    OCT_TRY(oct_pool_new(&pool, threads));
    octet_status status = oct_model_engine(model, model->height, model->width, pool, &engine, NULL);
    oct_engine_release(engine);
    oct_pool_free(pool);
    return status;
}

octet_status octet_model_open(const char *place, const octet_open_options *options, octet_model **model) {
    if (model == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "model: expected an address, found NULL");
    *model = NULL;
    if (place == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "place: expected a path or hub id, found NULL");
    octet_open_options defaults = OCTET_OPEN_OPTIONS_DEFAULT;
    if (options == NULL) options = &defaults;
    OCT_TRY(check_options(options));
    octet_model *opened = oct_calloc(1, sizeof *opened);
    if (opened == NULL) return oct_fail_memory();
    atomic_init(&opened->references, 1);
    opened->batch = options->batch;
    pthread_mutex_init(&opened->lock, NULL);
    octet_status status = open_checkpoint(opened, place, options);
    if (status == OCTET_OK) status = prepare(opened, options->threads);
    if (status != OCTET_OK) {
        oct_model_release(opened);
        return status;
    }
    *model = opened;
    return OCTET_OK;
}

void octet_model_close(octet_model **model) {
    if (model == NULL) return;
    oct_model_release(*model);
    *model = NULL;
}

/* ---- facts */

octet_task octet_model_task(const octet_model *model) {
    return model->facts.task == OCT_TASK_CLASSIFICATION ? OCTET_CLASSIFICATION : OCTET_DETECTION;
}

const char *octet_model_name(const octet_model *model) {
    return model->facts.architecture;
}

const char *octet_model_fingerprint(const octet_model *model) {
    octet_model *changed = (octet_model *)(uintptr_t)model; /* filled at the first question, under the lock */
    pthread_mutex_lock(&changed->lock);
    if (changed->fingerprint[0] == '\0' &&
        oct_checkpoint_fingerprint(changed->checkpoint, changed->fingerprint) != OCTET_OK) {
        changed->fingerprint[0] = '\0';
    }
    pthread_mutex_unlock(&changed->lock);
    return changed->fingerprint;
}

int64_t octet_model_batch(const octet_model *model) {
    return model->batch;
}

void octet_model_input_size(const octet_model *model, int32_t *height, int32_t *width) {
    *height = model->height;
    *width = model->width;
}

size_t octet_model_class_count(const octet_model *model) {
    return model->labels.count;
}

const char *octet_model_label(const octet_model *model, size_t index) {
    return index < model->labels.count ? model->labels.names[index] : NULL;
}
