/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes made of other recipes: with some ops kept, with weights or activations alone, and mixed of several, an op
 * from each. A recipe is held as JSON, which is a recipe's text too; ops are named one by one, so what a variant
 * selects does not hang on patterns. */
#ifndef OCT_EVAL_VARIANTS_H
#define OCT_EVAL_VARIANTS_H

#include <stdbool.h>

#include "eval/json.h"
#include "octet/lab.h"

/* A recipe, and what it makes of one model's ops. */
typedef struct variant_recipe {
    char *name;
    json_t *recipe; /* {"recipe", "base", "rules", ...} */
    json_t *ops;    /* as octet_lab_recipe_describe, an object an op in the graph's order */
} variant_recipe;

/* `recipe`: as octet_open_options.recipe; `model` was opened without one. On failure *out is empty and octet_error_text
 * says why ("": no memory). */
bool variant_open(octet_model *model, const char *recipe, variant_recipe *out);
void variant_close(variant_recipe *recipe);
const char *variant_base(const variant_recipe *recipe); /* "fp16" */

/* ---- ops and groups of them */

bool variant_op_narrow(const json_t *op);
const char *variant_op_name(const json_t *op);
bool variant_op_weighs(const json_t *op); /* a product with weights */

typedef enum variant_group { VARIANT_BY_OP, VARIANT_BY_KIND, VARIANT_BY_BLOCK } variant_group;
/* The group an op is in: its name; its name with all numbers as "*" (what repeats in each block); its name up to the
 * last number (the block). The caller's to free; NULL: no memory. */
char *variant_group_of(const char *op, variant_group group);
/* Ops for which `taken` is true, by group in order of their first: {GROUP: [OP, ...], ...}. NULL: no memory. */
json_t *variant_groups(const json_t *ops, variant_group group, bool (*taken)(const json_t *op));

/* ---- variants: the text of a recipe, the caller's to free; NULL: no memory */

typedef enum variant_change { VARIANT_KEEP, VARIANT_NO_WEIGHTS, VARIANT_NO_ACTIVATIONS } variant_change;
/* `names`: a list of op names, may be empty: the recipe as it is. */
char *variant_without(const variant_recipe *recipe, variant_change change, const json_t *names);

/* Of several recipes of one base, for one model: rules with their ops named. */
typedef struct variant_mixer {
    octet_model *model;
    variant_recipe *recipes; /* the caller's */
    size_t count;
    json_t **selected; /* a recipe: a list a rule of the names it selects */
} variant_mixer;
/* False: octet_error_text, or "" and `why` (of 256 bytes). */
bool variant_mixer_open(octet_model *model, variant_recipe *recipes, size_t count, variant_mixer *out, char *why);
void variant_mixer_close(variant_mixer *mixer);
/* names[r]: the ops that are as recipe r says, a list; the others stay as the base. One recipe's rules are in its
 * order. `title` becomes the recipe's name. A text of YAML, a rule a line. */
char *variant_mix(const variant_mixer *mixer, json_t *const *names, const char *title);
/* The scale files of the recipes (JSON) as one: what each says of the names that are its own. NULL: no memory. */
json_t *variant_mix_scales(json_t *const *scales, json_t *const *names, size_t count);

#endif
