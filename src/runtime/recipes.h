/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe a model was opened with, and its scales; which text a recipe's name stands for:
 *
 *     fp32                no recipe
 *     fp16, bf16          that base, no rules
 *     fp8                 the family's "fp8", else its "published"
 *     a word              families/NAME/recipes/WORD.yaml, carried in the library
 *     checkpoint          what a checkpoint that another tool quantized says (quant/import.h), its scales with it
 *     FILE.yaml, or with a slash    that file */
#ifndef OCT_RUNTIME_RECIPES_H
#define OCT_RUNTIME_RECIPES_H

#include "quant/recipe.h"
#include "quant/scales.h"
#include "runtime/model.h"

typedef struct oct_model_recipe {
    char *name; /* as given */
    char *text;
    oct_recipe recipe;
    char text_hash[OCT_SHA256_HEX];
    bool has_scales;
    oct_scale_file scales;
    char scales_hash[OCT_SHA256_HEX]; /* of the file */
} oct_model_recipe;

/* A family's recipes, ended by a NULL name. */
const oct_family_recipe *oct_recipes_of(const oct_family *family);
/* *text is NULL for fp32, else the caller's (oct_free). Errors name the nearest recipe of the family. */
octet_status oct_recipe_text_of(const octet_model *model, const char *recipe, char **text);
/* Reads a recipe (a name, or `text` if not NULL) and its scales for a model whose checkpoint is open; the scales are
 * held against the model. *made is NULL for fp32. */
octet_status oct_model_recipe_open(octet_model *model, const char *name, const char *text, const char *scales,
                                   oct_model_recipe **made);
void oct_model_recipe_free(oct_model_recipe *recipe); /* NULL is fine */

/* What scales of a model are keyed by. Hashes are written to the struct; `keys.data` stays NULL. */
typedef struct oct_model_keys {
    char configuration[OCT_SHA256_HEX], weights[OCT_SHA256_HEX], preprocessing[OCT_SHA256_HEX];
    oct_scale_keys keys;
} oct_model_keys;
octet_status oct_model_keys_of(octet_model *model, oct_model_keys *keys);

/* Makes the recipe true of a graph after the passes: adjusted, quantized, fused, and as the CPU holds it. */
octet_status oct_model_quantize(const octet_model *model, oct_graph *graph);

#endif
