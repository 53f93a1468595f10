/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model.h"

#include <string.h>

#include "base/alloc.h"
#include "quant/import.h"
#include "runtime/options.h"
#include "runtime/recipes.h"

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
    oct_model_recipe_free(model->recipe);
    oct_weights_release(model->bundle_weights);
    if (model->bundle != NULL) oct_bundle_close(model->bundle);
    oct_free(model->bundle);
    if (model->import != NULL) oct_import_free(model->import);
    oct_free(model->import);
    oct_checkpoint_close(model->checkpoint);
    pthread_mutex_destroy(&model->lock);
    oct_free(model);
}

static int32_t find_output(const oct_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->output_count; i++) {
        if (strcmp(plan->tensors[plan->outputs[i]].name, name) == 0) return plan->outputs[i];
    }
    return OCT_NONE;
}

static octet_status check_tensor(const oct_plan *plan, int32_t index, const char *what, int rank, const int64_t *dims) {
    if (index == OCT_NONE) return oct_fail(OCTET_MISMATCH, "engine: no output \"%s\"", what);
    const oct_plan_tensor *tensor = &plan->tensors[index];
    oct_shape expected = oct_shape_of(rank, dims);
    const bool input = index == plan->input;
    bool dense = tensor->form.channel_stride == dims[rank - 1] || input;
    bool floats = input ? oct_form_is_float(&tensor->form) : tensor->form.format == OCT_FORMAT_FP32;
    if (oct_shape_equal(&tensor->shape, &expected) && floats && dense) return OCTET_OK;
    oct_text text = {0};
    oct_shape_print(&expected, &text);
    oct_text_puts(&text, " fp32, found ");
    oct_shape_print(&tensor->shape, &text);
    oct_text_printf(&text, " %s", oct_format_name(tensor->form.format));
    octet_status status =
        text.failed ? oct_fail_memory() : oct_fail(OCTET_MISMATCH, "engine: %s: expected %s", what, text.data);
    oct_text_free(&text);
    return status;
}

/* The input, and the outputs that results are read from, are as the model's facts say. */
static octet_status check_engine(const octet_model *model, const oct_plan *plan, int height, int width) {
    const oct_model *facts = &model->facts;
    bool detection = facts->task == OCT_TASK_DETECTION;
    int64_t logits[OCT_RANK] = {plan->batch, detection ? facts->tokens : facts->classes, facts->classes + 1};
    int64_t boxes[OCT_RANK] = {plan->batch, facts->tokens, 4};
    int64_t input[OCT_RANK] = {plan->batch, height, width, 3};
    OCT_TRY(check_tensor(plan, plan->input, "input", 4, input));
    OCT_TRY(check_tensor(plan, find_output(plan, "logits"), "logits", detection ? 3 : 2, logits));
    return detection ? check_tensor(plan, find_output(plan, "boxes"), "boxes", 3, boxes) : OCTET_OK;
}

static octet_status make_engine(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                                oct_weights **weights) {
    if (model->checkpoint != NULL)
        OCT_TRY(oct_model_compile(model, height, width, pool, engine, weights));
    else
        OCT_TRY(oct_model_load(model, height, width, pool, engine, weights));
    octet_status status = check_engine(model, oct_engine_plan(*engine), height, width);
    if (status != OCTET_OK) {
        oct_engine_release(*engine);
        oct_weights_release(*weights);
    }
    return status;
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
    oct_engine *engine = NULL;
    oct_weights *weights = NULL;
    OCT_TRY(make_engine(model, height, width, pool, &engine, &weights));
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

static octet_status check_options(const octet_open_options *options) {
    if (options->device != NULL && strcmp(options->device, "cpu") != 0) {
        return oct_fail(OCTET_NO_DEVICE, "device: expected cpu, found \"%s\"", options->device);
    }
    if (options->batch < 0 || options->batch > BATCH_LIMIT) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "batch: expected 0 to %d, found %lld", BATCH_LIMIT,
                        (long long)options->batch);
    }
    return OCTET_OK;
}

/* Builds the engine now, so that a model that opened can run; a size that follows the picture is built at the first
 * one. */
static octet_status prepare(octet_model *model, unsigned threads) {
    if (model->follows_picture && !oct_model_one_engine(model)) return OCTET_OK;
    oct_pool *pool = NULL;
    oct_engine *engine = NULL;
    OCT_TRY(oct_pool_new(&pool, threads));
    octet_status status = oct_model_engine(model, model->height, model->width, pool, &engine, NULL);
    oct_engine_release(engine);
    oct_pool_free(pool);
    return status;
}

static octet_status open_bundle(octet_model *model, const char *place, const octet_open_options *options) {
    const char *given = options->recipe != NULL ? options->recipe : options->scales;
    if (given == NULL) return oct_model_open_bundle(model, place, options);
    oct_fail(OCTET_INVALID_ARGUMENT, "%s: a bundle was built with its recipe; expected none, found %s", place, given);
    return oct_hint("octet inspect %s says which; octet build makes another", place);
}

octet_status oct_model_open(const char *place, const octet_open_options *options, const char *recipe_text,
                            octet_model **model) {
    if (model == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "model: expected an address, found NULL");
    *model = NULL;
    if (place == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "place: expected a path or hub id, found NULL");
    OCT_TRY(check_options(options));
    if (options->scales != NULL && options->recipe == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "scales: expected a recipe that uses them, found none");
    octet_model *opened = oct_calloc(1, sizeof *opened);
    if (opened == NULL) return oct_fail_memory();
    atomic_init(&opened->references, 1);
    pthread_mutex_init(&opened->lock, NULL);
    octet_status status =
        oct_bundle_is(place) ? open_bundle(opened, place, options) : oct_model_open_checkpoint(opened, place, options);
    if (status == OCTET_OK && opened->checkpoint != NULL && options->recipe != NULL)
        status = oct_model_recipe_open(opened, options->recipe, recipe_text, options->scales, &opened->recipe);
    if (status == OCTET_OK) status = prepare(opened, options->threads);
    if (status != OCTET_OK) {
        oct_model_release(opened);
        return status;
    }
    *model = opened;
    return OCTET_OK;
}

octet_status octet_model_open(const char *place, const octet_open_options *options, octet_model **model) {
    octet_open_options own = OCTET_OPEN_OPTIONS_DEFAULT;
    if (model != NULL) *model = NULL;
    if (options != NULL) OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_open_options"));
    return oct_model_open(place, &own, NULL, model);
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
    if (changed->checkpoint != NULL && changed->fingerprint[0] == '\0' &&
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
    if (height != NULL) *height = model->height;
    if (width != NULL) *width = model->width;
}

size_t octet_model_class_count(const octet_model *model) {
    return model->labels.count;
}

const char *octet_model_label(const octet_model *model, size_t index) {
    return index < model->labels.count ? model->labels.names[index] : NULL;
}
