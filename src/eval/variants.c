/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/variants.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 17 /* give every double back */

/* ---- a recipe and what it makes of a model */

static json_t *parse(char *text) {
    json_t *value = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    octet_free(text);
    return value;
}

static json_t *describe(octet_model *model, const char *name, const char *text) {
    char *told = NULL;
    if (octet_lab_recipe_describe(model, name, text, 1, &told) != OCTET_OK) return NULL;
    return parse(told);
}

bool variant_open(octet_model *model, const char *recipe, variant_recipe *out) {
    char *text = NULL, *json = NULL;
    *out = (variant_recipe){0};
    if (octet_lab_recipe_text(model, recipe, &text) == OCTET_OK &&
        octet_lab_recipe_json(recipe, text, &json) == OCTET_OK) {
        out->name = strdup(recipe);
        out->recipe = parse(json);
        out->ops = describe(model, recipe, text);
    }
    octet_free(text);
    if (out->name != NULL && out->recipe != NULL && out->ops != NULL) return true;
    variant_close(out);
    return false;
}

void variant_close(variant_recipe *recipe) {
    json_decref(recipe->ops);
    json_decref(recipe->recipe);
    free(recipe->name);
    *recipe = (variant_recipe){0};
}

const char *variant_base(const variant_recipe *recipe) {
    const char *base = json_string_value(json_object_get(recipe->recipe, "base"));
    return base != NULL ? base : "";
}

/* ---- ops */

bool variant_op_narrow(const json_t *op) {
    return json_is_true(json_object_get(op, "narrow"));
}

const char *variant_op_name(const json_t *op) {
    return json_string_value(json_object_get(op, "op"));
}

bool variant_op_weighs(const json_t *op) {
    const char *kind = json_string_value(json_object_get(op, "kind"));
    return kind != NULL && (strcmp(kind, "conv2d") == 0 || strcmp(kind, "linear") == 0) &&
           json_integer_value(json_object_get(op, "weights")) > 0;
}

static bool is_number(const char *part, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)part[i])) return false;
    return length > 0;
}

char *variant_group_of(const char *op, variant_group group) {
    char *out = malloc(strlen(op) + 1), *end = out, *block = NULL;
    if (out == NULL) return NULL;
    for (const char *at = op;; at++) {
        const size_t length = strcspn(at, ".");
        const bool number = is_number(at, length);
        if (number && group == VARIANT_BY_KIND) {
            *end++ = '*';
        } else {
            memcpy(end, at, length);
            end += length;
        }
        if (number) block = end;
        at += length;
        if (*at == '\0') break;
        *end++ = '.';
    }
    *end = '\0';
    if (group == VARIANT_BY_BLOCK && block != NULL) *block = '\0';
    return out;
}

json_t *variant_groups(const json_t *ops, variant_group group, bool (*taken)(const json_t *op)) {
    json_t *groups = json_object(), *op;
    size_t i;
    json_array_foreach(ops, i, op) {
        if (!taken(op)) continue;
        char *key = variant_group_of(variant_op_name(op), group);
        if (key == NULL) break;
        if (json_object_get(groups, key) == NULL) json_object_set_new(groups, key, json_array());
        json_array_append(json_object_get(groups, key), json_object_get(op, "op"));
        free(key);
    }
    return groups;
}

/* ---- rules */

/* Every kind of op that a rule may select: the names do the selecting. */
static json_t *selector(const json_t *names) {
    json_t *kinds = json_pack("[s, s, s, s, s]", "conv2d", "linear", "attention", "add", "global_pool");
    return json_pack("{s:o, s:O}", "kind", kinds, "name", names);
}

char *variant_without(const variant_recipe *recipe, variant_change change, const json_t *names) {
    json_t *made = json_deep_copy(recipe->recipe), *rule = NULL;
    if (json_array_size(names) > 0) {
        if (change == VARIANT_KEEP) rule = json_pack("{s:o, s:b}", "ops", selector(names), "keep", 1);
        if (change == VARIANT_NO_WEIGHTS) rule = json_pack("{s:o, s:s}", "ops", selector(names), "weights", "none");
        if (change == VARIANT_NO_ACTIVATIONS)
            rule = json_pack("{s:o, s:s, s:s}", "ops", selector(names), "activations", "none", "outliers", "none");
        json_array_append_new(json_object_get(made, "rules"), rule);
    }
    char *text = json_dumps(made, JSON_REAL_PRECISION(DIGITS) | JSON_INDENT(1));
    json_decref(made);
    return text;
}

/* ---- mixing */

static bool holds(const json_t *list, const char *name) {
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item) {
        if (strcmp(json_string_value(item), name) == 0) return true;
    }
    return false;
}

/* The names that a rule selects: asked of a recipe with nothing but it, that says no more than `keep`. NULL:
 * octet_error_text. */
static json_t *names_of(const variant_mixer *mixer, const variant_recipe *recipe, const json_t *rule) {
    json_t *bare = json_pack("{s:s, s:s, s:[{s:O, s:b}]}", "recipe", recipe->name, "base", variant_base(recipe),
                             "rules", "ops", json_object_get(rule, "ops"), "keep", 1);
    char *text = json_dumps(bare, JSON_REAL_PRECISION(DIGITS));
    json_t *ops = text != NULL ? describe(mixer->model, recipe->name, text) : NULL, *op;
    json_t *names = ops != NULL ? json_array() : NULL;
    size_t i;
    json_array_foreach(ops, i, op) {
        if (!json_is_null(json_object_get(op, "rule"))) json_array_append(names, json_object_get(op, "op"));
    }
    json_decref(ops);
    free(text);
    json_decref(bare);
    return names;
}

bool variant_mixer_open(octet_model *model, variant_recipe *recipes, size_t count, variant_mixer *out, char *why) {
    *out = (variant_mixer){.model = model, .recipes = recipes, .count = count};
    why[0] = '\0';
    out->selected = calloc(count, sizeof(json_t *));
    for (size_t r = 0; out->selected != NULL && r < count; r++) {
        json_t *rule;
        size_t k;
        if (strcmp(variant_base(&recipes[r]), variant_base(&recipes[0])) != 0) {
            snprintf(why, 256, "recipes %s and %s have other bases: %s and %s", recipes[0].name, recipes[r].name,
                     variant_base(&recipes[0]), variant_base(&recipes[r]));
            return false;
        }
        out->selected[r] = json_array();
        json_array_foreach(json_object_get(recipes[r].recipe, "rules"), k, rule) {
            json_t *names = names_of(out, &recipes[r], rule);
            if (names == NULL) return false;
            json_array_append_new(out->selected[r], names);
        }
    }
    return out->selected != NULL;
}

void variant_mixer_close(variant_mixer *mixer) {
    for (size_t r = 0; mixer->selected != NULL && r < mixer->count; r++) json_decref(mixer->selected[r]);
    free(mixer->selected);
    mixer->selected = NULL;
}

/* Rule k of recipe r for those of `names` that it selects; NULL: for none. */
static json_t *rule_for(const variant_mixer *mixer, size_t r, size_t k, const json_t *names) {
    json_t *both = json_array(), *name;
    size_t i;
    json_array_foreach(json_array_get(mixer->selected[r], k), i, name) {
        if (holds(names, json_string_value(name))) json_array_append(both, name);
    }
    json_t *rule = NULL;
    if (json_array_size(both) > 0) {
        rule = json_copy(json_array_get(json_object_get(mixer->recipes[r].recipe, "rules"), k));
        json_object_set_new(rule, "ops", selector(both));
    }
    json_decref(both);
    return rule;
}

/* Takes over `line`. */
static bool append_line(char **text, const char *before, char *line) {
    const size_t have = strlen(*text), size = have + strlen(before) + (line != NULL ? strlen(line) : 0) + 2;
    char *grown = line != NULL ? realloc(*text, size) : NULL;
    if (grown != NULL) {
        *text = grown;
        snprintf(grown + have, size - have, "%s%s\n", before, line);
    }
    free(line);
    return grown != NULL;
}

char *variant_mix(const variant_mixer *mixer, json_t *const *names, const char *title) {
    json_t *name = json_string(title);
    char *text = calloc(1, 1);
    bool good = text != NULL && append_line(&text, "recipe: ", json_dumps(name, JSON_ENCODE_ANY)) &&
                append_line(&text, "base: ", strdup(variant_base(&mixer->recipes[0])));
    bool any = false;
    for (size_t r = 0; r < mixer->count; r++) {
        for (size_t k = 0; good && k < json_array_size(mixer->selected[r]); k++) {
            json_t *rule = rule_for(mixer, r, k, names[r]);
            if (rule == NULL) continue;
            good = append_line(&text, any ? "  - " : "rules:\n  - ", json_dumps(rule, JSON_REAL_PRECISION(DIGITS)));
            json_decref(rule);
            any = true;
        }
    }
    if (good && !any) good = append_line(&text, "rules: []", strdup(""));
    json_decref(name);
    if (good) return text;
    free(text);
    return NULL;
}

/* ---- scale files */

/* Of OP, or an input of OP: OP.q, OP.k, OP.v, OP.0, OP.1. */
static bool is_of(const char *entry, const json_t *names) {
    const char *dot = strrchr(entry, '.');
    if (holds(names, entry)) return true;
    if (dot == NULL || strlen(dot) != 2 || strchr("qkv01", dot[1]) == NULL) return false;
    char *op = strndup(entry, (size_t)(dot - entry));
    const bool found = op != NULL && holds(names, op);
    free(op);
    return found;
}

json_t *variant_mix_scales(json_t *const *scales, json_t *const *names, size_t count) {
    static const char *const lists[] = {"scales", "smoothing", "bias", "weights_rounded"};
    json_t *out = json_copy(scales[0]);
    for (size_t l = 0; out != NULL && l < sizeof lists / sizeof *lists; l++) {
        json_t *list = json_array(), *entry;
        for (size_t r = 0; r < count; r++) {
            size_t i;
            json_array_foreach(json_object_get(scales[r], lists[l]), i, entry) {
                const char *op = variant_op_name(entry);
                if (op != NULL && is_of(op, names[r])) json_array_append(list, entry);
            }
        }
        if (json_array_size(list) > 0 || l == 0)
            json_object_set(out, lists[l], list);
        else
            json_object_del(out, lists[l]);
        json_decref(list);
    }
    return out;
}
