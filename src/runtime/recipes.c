/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/recipes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "graph/quantize.h"
#include "quant/import.h"
#include "quant/lower.h"
#include "runtime/log.h"
#include "runtime/model_file.h"

/* ---- names */

static bool is_file(const char *recipe) {
    return strchr(recipe, '/') != NULL || oct_ends_with(recipe, ".yaml") || oct_ends_with(recipe, ".yml");
}

const oct_family_recipe *oct_recipes_of(const oct_family *family) {
    for (const oct_family_entry *entry = oct_family_list; entry->family != NULL; entry++)
        if (entry->family == family) return entry->recipes;
    return NULL;
}

static const char *find_text(const oct_family *family, const char *name) {
    for (const oct_family_recipe *r = oct_recipes_of(family); r != NULL && r->name != NULL; r++)
        if (strcmp(r->name, name) == 0) return r->text;
    return NULL;
}

static octet_status refuse_name(const oct_family *family, const char *recipe) {
    const char *names[OCT_RECIPE_PATTERNS] = {"fp32", "fp16", "bf16", "fp8"};
    size_t count = 4;
    oct_text list = {0};
    for (const oct_family_recipe *r = oct_recipes_of(family); r != NULL && r->name != NULL; r++) {
        if (count < sizeof names / sizeof *names) names[count++] = r->name;
        oct_text_printf(&list, " %s", r->name);
    }
    const char *near = oct_nearest(recipe, names, count);
    oct_fail(OCTET_NOT_FOUND, "recipe: family %s has no recipe \"%s\"", family->name, recipe);
    oct_detail("fp32, fp16, bf16, fp8, checkpoint, a file (.yaml), or one of:%s", list.data != NULL ? list.data : "");
    oct_text_free(&list);
    return near != NULL ? oct_hint("did you mean \"%s\"?", near) : oct_error_status();
}

static octet_status text_of_checkpoint(const octet_model *model, char **text) {
    if (model->import == NULL) {
        (void)oct_fail(OCTET_NOT_FOUND, "recipe: \"checkpoint\": the checkpoint does not say how it is quantized");
        return oct_hint("hf_quant_config.json, or quantization_config in config.json, would");
    }
    *text = oct_strdup(model->import->recipe.data);
    return *text != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status oct_recipe_text_of(const octet_model *model, const char *recipe, char **text) {
    const oct_family *family = model->family;
    *text = NULL;
    if (strcmp(recipe, "checkpoint") == 0) return text_of_checkpoint(model, text);
    if (strcmp(recipe, "fp32") == 0) return OCTET_OK;
    if (is_file(recipe)) {
        uint8_t *data;
        size_t size;
        OCT_TRY(oct_file_read(recipe, OCT_RECIPE_BYTES, &data, &size));
        if (memchr(data, '\0', size) != NULL) {
            oct_free(data);
            return oct_fail(OCTET_BAD_FORMAT, "%s: expected a recipe's text, found a zero byte", recipe);
        }
        *text = (char *)data;
        return OCTET_OK;
    }
    const char *known = find_text(family, recipe);
    if (known == NULL && strcmp(recipe, "fp8") == 0) known = find_text(family, "published");
    if (known != NULL)
        *text = oct_strdup(known);
    else if (strcmp(recipe, "fp16") == 0 || strcmp(recipe, "bf16") == 0)
        *text = oct_sprintf("recipe: %s\nbase: %s\nrules: []\n", recipe, recipe);
    else
        return refuse_name(family, recipe);
    return *text != NULL ? OCTET_OK : oct_fail_memory();
}

/* ---- keys */

static octet_status hash_of(const void *data, size_t size, char hex[OCT_SHA256_HEX]) {
    uint8_t digest[OCT_SHA256_SIZE];
    OCT_TRY(oct_sha256_of(data, size, digest));
    oct_sha256_hex(digest, hex);
    return OCTET_OK;
}

static octet_status hash_configuration(const octet_model *model, char hex[OCT_SHA256_HEX]) {
    char *path = oct_path_join(oct_checkpoint_directory(model->checkpoint), "config.json");
    uint8_t *data = NULL;
    size_t size;
    if (path == NULL) return oct_fail_memory();
    octet_status status = oct_file_read(path, OCT_DOCUMENT_LIMIT, &data, &size);
    oct_free(path);
    if (status == OCTET_OK) status = hash_of(data, size, hex);
    oct_free(data);
    return status;
}

octet_status oct_model_keys_of(octet_model *model, oct_model_keys *keys) {
    oct_text text = {0};
    uint8_t digest[OCT_SHA256_SIZE];
    OCT_TRY(hash_configuration(model, keys->configuration));
    OCT_TRY(oct_checkpoint_fingerprint(model->checkpoint, keys->weights));
    oct_preprocess_write(&model->own_preprocess, &text);
    octet_status status = text.failed ? oct_fail_memory() : oct_sha256_of(text.data, text.length, digest);
    oct_text_free(&text);
    OCT_TRY(status);
    oct_sha256_hex(digest, keys->preprocessing);
    keys->keys = (oct_scale_keys){.model = model->facts.architecture,
                                  .configuration = keys->configuration,
                                  .weights = keys->weights,
                                  .preprocessing = keys->preprocessing};
    return OCTET_OK;
}

/* ---- a model's recipe */

void oct_model_recipe_free(oct_model_recipe *recipe) {
    if (recipe == NULL) return;
    oct_scale_file_free(&recipe->scales);
    oct_recipe_free(&recipe->recipe);
    oct_free(recipe->text);
    oct_free(recipe->name);
    oct_free(recipe);
}

static octet_status read_scales(octet_model *model, const char *path, oct_model_recipe *made) {
    oct_model_keys keys;
    uint8_t *data;
    size_t size;
    OCT_TRY(oct_file_read(path, OCT_DOCUMENT_LIMIT, &data, &size));
    octet_status parsed = oct_scale_file_parse(&made->scales, path, (const char *)data, size);
    made->has_scales = parsed == OCTET_OK;
    if (parsed == OCTET_OK) parsed = hash_of(data, size, made->scales_hash);
    oct_free(data);
    OCT_TRY(parsed);
    OCT_TRY(oct_model_keys_of(model, &keys));
    octet_status status = oct_scale_file_check(&made->scales, &keys.keys);
    return status == OCTET_OK ? OCTET_OK : oct_error_prefix("%s", path);
}

static octet_status read_recipe(octet_model *model, const char *text, const char *scales, oct_model_recipe *made) {
    if (text == NULL)
        OCT_TRY(oct_recipe_text_of(model, made->name, &made->text));
    else if ((made->text = oct_strdup(text)) == NULL)
        return oct_fail_memory();
    if (made->text == NULL) {
        if (scales != NULL) oct_log("fp32 uses no scales: %s is not read", scales);
        return OCTET_OK;
    }
    OCT_TRY(oct_recipe_parse(&made->recipe, made->name, made->text, strlen(made->text)));
    OCT_TRY(hash_of(made->text, strlen(made->text), made->text_hash));
    return scales != NULL ? read_scales(model, scales, made) : OCTET_OK;
}

octet_status oct_model_recipe_open(octet_model *model, const char *name, const char *text, const char *scales,
                                   oct_model_recipe **made) {
    *made = NULL;
    oct_model_recipe *own = oct_calloc(1, sizeof *own);
    if (own == NULL) return oct_fail_memory();
    own->name = oct_strdup(name);
    octet_status status = own->name == NULL ? oct_fail_memory() : read_recipe(model, text, scales, own);
    if (status != OCTET_OK || own->text == NULL) {
        oct_model_recipe_free(own);
        return status;
    }
    *made = own;
    return OCTET_OK;
}

/* ---- the graph */

/* A scale file's, else those that the checkpoint brings. */
static const oct_scale_file *scales_of(const octet_model *model) {
    if (model->recipe->has_scales) return &model->recipe->scales;
    return model->import != NULL ? &model->import->draft.file : NULL;
}

static octet_status quantize(const octet_model *model, const oct_decisions *decisions, oct_graph *graph) {
    const oct_model_recipe *r = model->recipe;
    oct_lowered lowered = {0};
    octet_status status = oct_quant_lower(&r->recipe, graph, decisions, scales_of(model), &lowered);
    if (status == OCTET_OK) status = oct_graph_quantize(graph, lowered.decisions, lowered.count);
    oct_lowered_free(&lowered);
    OCT_TRY(status);
    OCT_TRY(oct_graph_store_base(graph, r->recipe.base));
    OCT_TRY(oct_pass_fuse_quantize(graph));
    return oct_graph_hold_wide(graph);
}

octet_status oct_model_quantize(const octet_model *model, oct_graph *graph) {
    const oct_model_recipe *r = model->recipe;
    oct_decisions decisions;
    if (r == NULL) return OCTET_OK;
    OCT_TRY(oct_recipe_apply(&r->recipe, graph, &decisions));
    octet_status status = quantize(model, &decisions, graph);
    oct_decisions_free(&decisions);
    return status;
}
