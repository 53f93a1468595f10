/* SPDX-License-Identifier: Apache-2.0 */
/* octet_lab_build: from a checkpoint to a bundle. One plan a (batch, size); constants equal in all of them are stored
 * once. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "cpu/cpu.h"
#include "engine/plan_file.h"
#include "engine/tune.h"
#include "octet/lab.h"
#include "runtime/model_file.h"
#include "runtime/options.h"
#include "runtime/recipes.h"

#define PLANS 256

typedef struct built_plan {
    char name[33];
    oct_plan *plan;
} built_plan;

typedef struct building {
    const octet_lab_build_options *options;
    octet_model *model; /* open on the checkpoint */
    oct_weights *weights;
    size_t weights_capacity;
    oct_pool *pool;         /* efforts 2 and 3 */
    oct_timing_cache cache; /* likewise */
    built_plan plans[PLANS];
    size_t plan_count;
} building;

/* ---- weights of several sizes: position embeddings differ, all else is shared */

/* map: where the constants of `b` that moved to `a` already are. */
static bool same_scales(const oct_weights *a, const oct_constant *x, const oct_weights *b, const oct_constant *y,
                        const int32_t *map) {
    if (x->form.format != y->form.format || x->form.granularity != y->form.granularity ||
        x->form.block != y->form.block || x->form.held_wide != y->form.held_wide)
        return false;
    if (x->form.scales == OCT_NONE || y->form.scales == OCT_NONE)
        return x->form.scales == y->form.scales && x->form.scale == y->form.scale;
    const oct_constant *left = &a->items[x->form.scales], *right = &b->items[y->form.scales];
    const float *data = right->data != NULL ? right->data : a->items[map[y->form.scales]].data;
    return oct_shape_equal(&left->shape, &right->shape) &&
           memcmp(left->data, data, (size_t)oct_shape_count(&left->shape) * sizeof(float)) == 0;
}

static size_t find_constant(const oct_weights *weights, size_t count, const oct_weights *other,
                            const oct_constant *wanted, const int32_t *map) {
    size_t bytes = (size_t)oct_shape_count(&wanted->shape) * oct_form_bits(&wanted->form) / 8;
    const void *data = wanted->codes != NULL ? (const void *)wanted->codes : wanted->data;
    for (size_t i = 0; i < count; i++) {
        const oct_constant *item = &weights->items[i];
        if (strcmp(item->name, wanted->name) == 0 && oct_shape_equal(&item->shape, &wanted->shape) &&
            same_scales(weights, item, other, wanted, map) &&
            memcmp(item->codes != NULL ? (const void *)item->codes : item->data, data, bytes) == 0) {
            return i;
        }
    }
    return count;
}

/* Moves the constants of `other` that `all` lacks into it; map[i] is where constant i of `other` is then. */
static octet_status merge_weights(building *b, oct_weights *other, int32_t *map) {
    oct_weights *all = b->weights;
    size_t known = all->count; /* constants of one size are all distinct: look among the earlier sizes' only */
    for (size_t i = 0; i < other->count; i++) {
        size_t at = find_constant(all, known, other, &other->items[i], map);
        if (at == known) {
            if (!oct_grow((void **)&all->items, sizeof *all->items, all->count + 1, &b->weights_capacity))
                return oct_fail_memory();
            char *name = oct_arena_strdup(&all->arena, other->items[i].name);
            if (name == NULL) return oct_fail_memory();
            at = all->count++;
            all->items[at] = other->items[i];
            all->items[at].name = name;
            other->items[i].data = NULL;
            other->items[i].codes = NULL;
        }
        map[i] = (int32_t)at;
    }
    for (size_t i = 0; i < other->count; i++) {
        const int32_t scales = other->items[i].form.scales;
        if (scales != OCT_NONE) all->items[map[i]].form.scales = map[scales];
    }
    return OCTET_OK;
}

static void renumber(oct_plan *plan, const int32_t *map) {
    for (size_t i = 0; i < plan->step_count; i++) {
        for (int j = 0; j < plan->steps[i].input_count; j++) {
            oct_operand *operand = &plan->steps[i].inputs[j];
            if (operand->kind == OCT_OPERAND_CONSTANT) operand->index = map[operand->index];
        }
    }
    for (size_t i = 0; i < plan->tensor_count; i++) {
        oct_form *form = &plan->tensors[i].form;
        if (form->scales != OCT_NONE) form->scales = map[form->scales];
        if (form->factors != OCT_NONE) form->factors = map[form->factors];
    }
}

/* ---- plans */

/* What the engine computes in, for a plan's name: the first narrow format of a weight, else the base. */
static const char *engine_format(const building *b, const oct_graph *graph) {
    for (size_t i = 0; i < graph->value_count; i++) {
        const oct_value *value = &graph->values[i];
        const oct_format format = value->forms[0].format;
        if (value->producer == OCT_NONE && oct_format_has_scale(format)) return oct_format_name(format);
    }
    return b->model->recipe != NULL ? oct_format_name(b->model->recipe->recipe.base) : "fp32";
}

static octet_status make_plans(building *b, oct_graph *graph, const oct_weights *weights, int height, int width) {
    for (size_t i = 0; i < b->options->batch_count; i++) {
        if (b->plan_count == PLANS) return oct_fail(OCTET_LIMIT, "bundle: more than %d engines", PLANS);
        built_plan *made = &b->plans[b->plan_count];
        oct_plan_options options = {.batch = b->options->batches[i]};
        snprintf(made->name, sizeof made->name, "cpu-%s-b%" PRId64 "-%dx%d", engine_format(b, graph), options.batch,
                 height, width);
        for (size_t j = 0; j < b->plan_count; j++) {
            if (strcmp(b->plans[j].name, made->name) == 0)
                return oct_fail(OCTET_INVALID_ARGUMENT, "engine %s is asked for twice", made->name);
        }
        OCT_TRY(oct_plan_make(&made->plan, graph, weights, oct_cpu_backend(), &options));
        b->plan_count++;
        if (b->options->effort > 1)
            OCT_TRY(oct_plan_tune(made->plan, weights, oct_cpu_backend(), b->pool, (int)b->options->effort, &b->cache));
    }
    return OCTET_OK;
}

static octet_status build_size(building *b, int height, int width) {
    oct_graph graph = {0};
    oct_weights *weights = NULL;
    int32_t *map = NULL;
    size_t first = b->plan_count;
    OCT_TRY(oct_model_graph(b->model, height, width, &graph));
    octet_status status = oct_weights_from_graph(&weights, &graph);
    if (status == OCTET_OK) status = make_plans(b, &graph, weights, height, width);
    if (status == OCTET_OK) {
        map = oct_calloc(weights->count, sizeof *map);
        status = map == NULL ? oct_fail_memory() : merge_weights(b, weights, map);
    }
    for (size_t i = first; status == OCTET_OK && i < b->plan_count; i++) renumber(b->plans[i].plan, map);
    oct_free(map);
    oct_weights_release(weights);
    oct_graph_free(&graph);
    return status;
}

/* ---- sections */

static void put_pair(oct_text *out, const char *key, const char *value, const char *end) {
    oct_text_printf(out, "\"%s\": ", key);
    oct_text_json(out, value);
    oct_text_puts(out, end);
}

/* Which recipe, by its text, and the scales with the pictures they come from. */
static void put_recipe(const building *b, oct_text *out) {
    const oct_model_recipe *r = b->model->recipe;
    put_pair(out, "recipe", r != NULL ? r->recipe.name : "fp32", ", \"recipe_sha256\": ");
    if (r == NULL) {
        oct_text_puts(out, "null, \"scales\": null, \"calibration\": null, ");
        return;
    }
    oct_text_printf(out, "\"%s\", \"scales\": ", r->text_hash);
    if (!r->has_scales) {
        oct_text_puts(out, "null, \"calibration\": null, ");
        return;
    }
    oct_text_printf(out, "\"%s\", \"calibration\": {\"data\": \"%s\", \"pictures\": %" PRId64 "}, ", r->scales_hash,
                    r->scales.keys.data, r->scales.pictures);
}

/* No time and no path: two builds with the same tactics on one machine give the same bytes. */
static void put_provenance(const building *b, oct_text *out) {
    const oct_checkpoint *checkpoint = b->model->checkpoint;
    oct_text_puts(out, "{");
    put_pair(out, "octet", octet_version(), ", ");
    put_pair(out, "checkpoint", oct_checkpoint_id(checkpoint), ", ");
    put_pair(out, "revision", oct_checkpoint_revision(checkpoint), ", ");
    put_pair(out, "fingerprint", octet_model_fingerprint(b->model), ",\n ");
    put_recipe(b, out);
    oct_text_printf(out, "\"effort\": %d, \"device\": ", (int)b->options->effort);
    oct_cpu_machine(out);
    oct_text_printf(out, ",\n \"libraries\": {\"jansson\": \"%s\", \"libyaml\": \"%s\"}, ", JANSSON_VERSION,
                    yaml_get_version_string());
    put_pair(out, "command", b->options->command != NULL ? b->options->command : "", "}\n");
}

static octet_status add_text(oct_bundle_writer *writer, const char *kind, const char *name, uint32_t flags,
                             oct_text *text) {
    octet_status status =
        text->failed ? oct_fail_memory() : oct_bundle_writer_add(writer, kind, name, flags, text->data, text->length);
    oct_text_free(text);
    return status;
}

static octet_status add_sections(const building *b, oct_bundle_writer *writer) {
    oct_text text = {0};
    oct_model_section_write(b->model, &text);
    OCT_TRY(add_text(writer, "model", "", OCT_BUNDLE_IDENTITY, &text));
    oct_labels_section_write(b->model, &text);
    OCT_TRY(add_text(writer, "labels", "", OCT_BUNDLE_IDENTITY, &text));
    OCT_TRY(oct_bundle_writer_begin(writer, "weights", "", OCT_BUNDLE_IDENTITY));
    OCT_TRY(oct_weights_write(b->weights, oct_bundle_writer_write, writer));
    OCT_TRY(oct_bundle_writer_end(writer));
    for (size_t i = 0; i < b->plan_count; i++) {
        oct_plan_write(b->plans[i].plan, &text);
        OCT_TRY(add_text(writer, "plan", b->plans[i].name, OCT_BUNDLE_IDENTITY, &text));
    }
    put_provenance(b, &text);
    return add_text(writer, "provenance", "", 0, &text);
}

static octet_status write_bundle(const building *b, const char *path, char identity[OCT_SHA256_HEX]) {
    oct_bundle_writer *writer;
    uint8_t digest[OCT_SHA256_SIZE];
    oct_writer_sweep(path);
    OCT_TRY(oct_bundle_writer_open(&writer, path));
    octet_status status = add_sections(b, writer);
    if (status != OCTET_OK) {
        oct_bundle_writer_abort(writer);
        return status;
    }
    OCT_TRY(oct_bundle_writer_commit(writer, digest));
    oct_sha256_hex(digest, identity);
    return OCTET_OK;
}

/* ---- the whole */

static octet_status check_options(const octet_lab_build_options *options) {
    if (options->effort < 1 || options->effort > 3) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "effort: expected 1 to 3, found %u", options->effort);
    }
    if (options->batch_count == 0 || options->batches == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "batches: expected at least one");
    for (size_t i = 0; i < options->batch_count; i++) {
        if (options->batches[i] < 1 || options->batches[i] > 1024) {
            return oct_fail(OCTET_INVALID_ARGUMENT, "batch: expected 1 to 1024, found %" PRId64, options->batches[i]);
        }
    }
    return OCTET_OK;
}

static octet_status start_tuning(building *b) {
    oct_text device = {0};
    OCT_TRY(oct_pool_new(&b->pool, b->options->threads));
    oct_cpu_timing_key(&device);
    octet_status status =
        device.failed ? oct_fail_memory() : oct_timing_cache_open(&b->cache, device.data, b->options->timing_cache);
    oct_text_free(&device);
    return status;
}

static octet_status build_all(building *b, const char *output, char identity[OCT_SHA256_HEX]) {
    const octet_lab_build_options *options = b->options;
    octet_model *model = b->model;
    b->weights = oct_calloc(1, sizeof *b->weights);
    if (b->weights == NULL) return oct_fail_memory();
    b->weights->references = 1;
    if (options->size_count == 0 && model->follows_picture) {
        oct_fail(OCTET_INVALID_ARGUMENT, "%s: its input follows the picture; a bundle holds engines of stated sizes",
                 model->facts.architecture);
        return oct_hint("--size %dx%d (the checkpoint's own), or several: --size 512x864,512x683", model->height,
                        model->width);
    }
    if (options->effort > 1) OCT_TRY(start_tuning(b));
    if (options->size_count == 0) OCT_TRY(build_size(b, model->height, model->width));
    for (size_t i = 0; i < options->size_count; i++)
        OCT_TRY(build_size(b, options->sizes[2 * i], options->sizes[2 * i + 1]));
    OCT_TRY(write_bundle(b, output, identity));
    return options->timing_cache != NULL && options->effort > 1
               ? oct_timing_cache_write(&b->cache, options->timing_cache)
               : OCTET_OK;
}

/* A single stated size replaces the model's own; several are engines to choose from by the picture. */
static octet_status open_for(const char *place, const octet_lab_build_options *options, octet_model **model) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    open.classes_file = options->classes_file;
    open.device = options->device;
    open.threads = options->threads;
    open.recipe = options->recipe;
    open.scales = options->scales;
    if (options->size_count == 1) {
        open.height = options->sizes[0];
        open.width = options->sizes[1];
    }
    if (oct_bundle_is(place))
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected a checkpoint, found a bundle", place);
    return octet_model_open(place, &open, model);
}

octet_status octet_lab_build(const char *place, const octet_lab_build_options *options, const char *output,
                             char identity[65]) {
    octet_lab_build_options own = {0};
    if (place == NULL || options == NULL || output == NULL || identity == NULL) {
        return oct_fail(OCTET_INVALID_ARGUMENT,
                        "build: expected a place, options, an output and room for the identity, found NULL");
    }
    identity[0] = '\0';
    OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_lab_build_options"));
    OCT_TRY(check_options(&own));
    building *b = oct_calloc(1, sizeof *b);
    if (b == NULL) return oct_fail_memory();
    b->options = &own;
    octet_status status = open_for(place, &own, &b->model);
    if (status == OCTET_OK) status = build_all(b, output, identity);
    for (size_t i = 0; i < b->plan_count; i++) oct_plan_free(b->plans[i].plan);
    oct_weights_release(b->weights);
    oct_timing_cache_close(&b->cache);
    oct_pool_free(b->pool);
    octet_model_close(&b->model);
    oct_free(b);
    return status;
}

/* ---- would it open here? */

octet_status octet_lab_compat(const char *path, int *opens, char **text) {
    oct_text out = {0};
    octet_model *model = NULL;
    if (opens == NULL || text == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "compat: expected two addresses, found NULL");
    *text = NULL;
    octet_status status = octet_model_open(path, NULL, &model);
    *opens = status == OCTET_OK;
    if (status == OCTET_OK)
        oct_text_printf(&out, "opens here: yes\ncpu: ");
    else
        oct_text_printf(&out, "opens here: no\nwhy: %s\ncpu: ", oct_error_text());
    oct_cpu_machine(&out);
    oct_text_puts(&out, "\n");
    octet_model_close(&model);
    if (out.failed) {
        oct_text_free(&out);
        return oct_fail_memory();
    }
    *text = out.data;
    return OCTET_OK;
}
