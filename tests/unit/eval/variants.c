/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes made of recipes: what they select is asked of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "eval/modelled.h"
#include "eval/variants.h"

#define CLASSIFIER OCTET_SOURCE_DIR "/subjects/mobilenetv2_035"
#define DETECTOR OCTET_SOURCE_DIR "/subjects/yolos"

static octet_model *open_model(const char *place) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    options.threads = 1;
    assert_int_equal(octet_model_open(place, &options, &model), OCTET_OK);
    return model;
}

/* What the library makes of a text. */
static json_t *ops_of(octet_model *model, const char *text) {
    char *told = NULL;
    assert_non_null(text);
    if (octet_lab_recipe_describe(model, "made", text, 1, &told) != OCTET_OK)
        fail_msg("%s\n%s", octet_error_text(), text);
    json_t *ops = json_loads(told, 0, NULL);
    octet_free(told);
    assert_non_null(ops);
    return ops;
}

static bool same(const json_t *a, const json_t *b, const char *key) {
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

static void check_group(const char *op, variant_group group, const char *expected) {
    char *found = variant_group_of(op, group);
    assert_string_equal(found, expected);
    free(found);
}

static void test_groups(void **state) {
    (void)state;
    check_group("blocks.1.0.conv_pw", VARIANT_BY_OP, "blocks.1.0.conv_pw");
    check_group("blocks.1.0.conv_pw", VARIANT_BY_KIND, "blocks.*.*.conv_pw");
    check_group("blocks.1.0.conv_pw", VARIANT_BY_BLOCK, "blocks.1.0");
    check_group("vit.encoder.layer.11.output.dense", VARIANT_BY_KIND, "vit.encoder.layer.*.output.dense");
    check_group("vit.encoder.layer.11.output.dense", VARIANT_BY_BLOCK, "vit.encoder.layer.11");
    check_group("conv_head", VARIANT_BY_KIND, "conv_head");
    check_group("conv_head", VARIANT_BY_BLOCK, "conv_head");
    check_group("a.1b.c2", VARIANT_BY_KIND, "a.1b.c2"); /* no numbers, names with digits */
    check_group("7", VARIANT_BY_KIND, "*");
    check_group("", VARIANT_BY_BLOCK, "");
    check_group("a..3.", VARIANT_BY_BLOCK, "a..3");
}

/* Each family's recipes, with any op kept, any section dropped: still recipes, and of what was meant. */
static void check_without(const char *place, const char *recipe) {
    octet_model *model = open_model(place);
    variant_recipe r;
    assert_true(variant_open(model, recipe, &r));
    json_t *groups = variant_groups(r.ops, VARIANT_BY_BLOCK, variant_op_narrow), *names, *op;
    const char *key;
    size_t i;
    assert_true(json_object_size(groups) > 1);
    json_object_foreach(groups, key, names) {
        char *text = variant_without(&r, VARIANT_KEEP, names);
        json_t *ops = ops_of(model, text);
        json_array_foreach(ops, i, op) {
            const json_t *before = json_array_get(r.ops, i);
            char *group = variant_group_of(variant_op_name(op), VARIANT_BY_BLOCK);
            if (strcmp(group, key) == 0)
                assert_false(variant_op_narrow(op));
            else
                assert_true(same(op, before, "weight") && same(op, before, "activation"));
            free(group);
        }
        json_decref(ops);
        free(text);
    }
    json_decref(groups);
    json_t *all = json_array(), *weighing = json_array();
    json_array_foreach(r.ops, i, op) {
        if (variant_op_narrow(op)) json_array_append(all, json_object_get(op, "op"));
        if (variant_op_narrow(op) && variant_op_weighs(op)) json_array_append(weighing, json_object_get(op, "op"));
    }
    char *weights = variant_without(&r, VARIANT_NO_ACTIVATIONS, all);
    char *activations = variant_without(&r, VARIANT_NO_WEIGHTS, weighing);
    json_t *only_weights = ops_of(model, weights), *only_activations = ops_of(model, activations);
    json_array_foreach(r.ops, i, op) {
        const json_t *w = json_array_get(only_weights, i), *a = json_array_get(only_activations, i);
        const char *base = variant_base(&r);
        assert_true(same(w, op, "weight") && same(a, op, "activation"));
        assert_string_equal(json_string_value(json_object_get(w, "activation")), base);
        assert_string_equal(json_string_value(json_object_get(a, "weight")), base);
    }
    json_decref(only_activations);
    json_decref(only_weights);
    free(activations);
    free(weights);
    json_decref(weighing);
    json_decref(all);
    variant_close(&r);
    octet_model_close(&model);
}

static void check_all(const char *place) {
    octet_model *model = open_model(place);
    char *names = NULL;
    size_t count = 0;
    assert_int_equal(octet_lab_recipe_names(model, &names), OCTET_OK);
    for (char *at = names, *end; (end = strchr(at, '\n')) != NULL; at = end + 1, count++) {
        *end = '\0';
        check_without(place, at);
    }
    assert_true(count > 10);
    octet_free(names);
    octet_model_close(&model);
}

static void test_without(void **state) {
    (void)state;
    check_all(CLASSIFIER);
    check_all(DETECTOR);
}

/* Three recipes, patterns, ends and all, dealt out op by op: each op is what its recipe says, the others the base. */
static void test_mix(void **state) {
    (void)state;
    octet_model *model = open_model(CLASSIFIER);
    const char *const wanted[] = {"mixed", "published", "outliers"};
    variant_recipe recipes[3];
    variant_mixer mixer;
    char why[256];
    json_t *names[3] = {json_array(), json_array(), json_array()}, *op;
    size_t i, narrow = 0;
    for (size_t r = 0; r < 3; r++) assert_true(variant_open(model, wanted[r], &recipes[r]));
    assert_true(variant_mixer_open(model, recipes, 3, &mixer, why));
    json_array_foreach(recipes[0].ops, i, op) {
        if (i % 4 < 3) json_array_append(names[i % 4], json_object_get(op, "op"));
    }
    char *text = variant_mix(&mixer, names, "a \"mix\": of 3");
    json_t *ops = ops_of(model, text);
    json_array_foreach(ops, i, op) {
        if (i % 4 == 3) {
            assert_false(variant_op_narrow(op));
            continue;
        }
        const json_t *own = json_array_get(recipes[i % 4].ops, i);
        assert_true(same(op, own, "weight") && same(op, own, "activation") && same(op, own, "narrow"));
        narrow += variant_op_narrow(op);
    }
    assert_true(narrow > 15);
    json_decref(ops);
    free(text);
    for (size_t r = 0; r < 3; r++) json_array_clear(names[r]);
    text = variant_mix(&mixer, names, "nothing");
    ops = ops_of(model, text);
    json_array_foreach(ops, i, op) assert_false(variant_op_narrow(op));
    json_decref(ops);
    free(text);
    variant_mixer_close(&mixer);
    for (size_t r = 0; r < 3; r++) {
        variant_close(&recipes[r]);
        json_decref(names[r]);
    }
    octet_model_close(&model);
}

static void test_refused(void **state) {
    (void)state;
    octet_model *model = open_model(CLASSIFIER);
    variant_recipe recipes[2];
    variant_mixer mixer;
    char why[256];
    assert_false(variant_open(model, "publishd", &recipes[0]));
    assert_non_null(strstr(octet_error_text(), "published"));
    assert_true(variant_open(model, "published", &recipes[0]));
    assert_true(variant_open(model, "fp32", &recipes[1]));
    assert_false(variant_mixer_open(model, recipes, 2, &mixer, why));
    assert_string_equal(why, "recipes published and fp32 have other bases: fp16 and fp32");
    variant_mixer_close(&mixer);
    variant_close(&recipes[1]);
    variant_close(&recipes[0]);
    octet_model_close(&model);
}

static void test_scales(void **state) {
    (void)state;
    json_t *files[] = {
        json_loads("{\"model\": \"m\", \"scales\": [{\"op\": \"a\", \"n\": 0}, {\"op\": \"b\", \"n\": 0}, "
                   "{\"op\": \"c.q\", \"n\": 0}], \"smoothing\": [{\"op\": \"b\"}]}",
                   0, NULL),
        json_loads("{\"model\": \"m\", \"scales\": [{\"op\": \"a\", \"n\": 1}, {\"op\": \"b\", \"n\": 1}, "
                   "{\"op\": \"c.q\", \"n\": 1}, {\"op\": \"c.qq\", \"n\": 1}], \"bias\": [{\"op\": \"c\"}]}",
                   0, NULL)};
    json_t *names[] = {json_pack("[s]", "a"), json_pack("[s, s]", "c", "none")};
    json_t *expected =
        json_loads("{\"model\": \"m\", \"scales\": [{\"op\": \"a\", \"n\": 0}, {\"op\": \"c.q\", \"n\": 1}], "
                   "\"bias\": [{\"op\": \"c\"}]}",
                   0, NULL);
    json_t *made = variant_mix_scales(files, names, 2);
    assert_true(json_equal(made, expected));
    json_decref(made);
    json_decref(expected);
    for (int i = 0; i < 2; i++) {
        json_decref(files[i]);
        json_decref(names[i]);
    }
}

/* The model's arithmetic, by hand; half the bytes take half the time where bytes are what counts. */
static void test_modelled(void **state) {
    (void)state;
    json_t *ops = json_loads("[{\"shape\": [1, 10, 10, 8], \"weights\": 48, \"reads\": 600, \"flops\": 9600, "
                             "\"weight\": \"fp16\", \"activation\": \"fp16\"}]",
                             0, NULL);
    json_t *op = json_array_get(ops, 0);
    const double wide = modelled_seconds(ops, "fp16");
    assert_true(wide == (48 + 600 + 800) * 16.0 / 8.0 / 4.8e12);
    json_object_set_new(op, "weight", json_string("e4m3 channel max"));
    json_object_set_new(op, "activation", json_string("e4m3 tensor max"));
    assert_true(modelled_seconds(ops, "fp16") == ((48 + 600) * 8.0 + 800 * 16.0) / 8.0 / 4.8e12);
    json_object_set_new(op, "flops", json_real(1979e12)); /* a second of arithmetic */
    assert_true(modelled_seconds(ops, "fp16") == 1.0);
    json_object_set_new(op, "activation", json_string("fp16"));
    assert_true(modelled_seconds(ops, "fp16") == 1979.0 / 989.0);
    json_decref(ops);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_without), cmocka_unit_test(test_mix),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_scales),  cmocka_unit_test(test_modelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
