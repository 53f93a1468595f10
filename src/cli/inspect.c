/* SPDX-License-Identifier: Apache-2.0 */
/* octet inspect: what a model is made of. */
#include <stdio.h>
#include <string.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

typedef struct inspect_options {
    common_options common;
    bool dot, tactics, memory, shapes, support, compat;
    int64_t batch, height, width;
    const char *classes, *recipe, *scales;
} inspect_options;

static const octet_lab_view default_views[] = {OCTET_LAB_SUMMARY, OCTET_LAB_GRAPH, OCTET_LAB_STEPS};
static const char *const view_titles[] = {
    [OCTET_LAB_SUMMARY] = "model", [OCTET_LAB_GRAPH] = "graph",     [OCTET_LAB_DOT] = "dot",
    [OCTET_LAB_STEPS] = "steps",   [OCTET_LAB_TACTICS] = "tactics", [OCTET_LAB_MEMORY] = "memory",
    [OCTET_LAB_SHAPES] = "shapes",
};

/* With --json a text for people is one object: {"view", "text"}. */
static bool print_text_json(const char *view, const char *text) {
    return print_json(json_pack("{s:s, s:s}", "view", view, "text", text));
}

static bool print_view(octet_model *model, octet_lab_view view, bool title, bool json) {
    char *text;
    if (octet_lab_describe(model, view, &text) != OCTET_OK) return false;
    if (json) {
        bool printed = print_text_json(view_titles[view], text);
        octet_free(text);
        return printed;
    }
    if (title && view != OCTET_LAB_SUMMARY) printf("\n%s\n", view_titles[view]);
    fputs(text, stdout);
    octet_free(text);
    return true;
}

static json_t *figures_json(octet_model *model, const octet_lab_figures *figures) {
    int32_t height, width;
    octet_model_input_size(model, &height, &width);
    json_t *labels = json_array();
    for (size_t i = 0; i < octet_model_class_count(model); i++) {
        json_array_append_new(labels, json_text(octet_model_label(model, i)));
    }
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "model", octet_model_name(model),
        "task", octet_model_task(model) == OCTET_CLASSIFICATION ? "classification" : "detection", "fingerprint",
        octet_model_fingerprint(model), "batch", (json_int_t)octet_model_batch(model), "height", height, "width", width,
        "parameters", (json_int_t)figures->parameters, "weight_bytes", (json_int_t)figures->weight_bytes,
        "packed_bytes", (json_int_t)figures->packed_bytes, "arena_bytes", (json_int_t)figures->arena_bytes, "flops",
        (json_int_t)figures->flops, "steps", (json_int_t)figures->steps, "unfused_quantize",
        (json_int_t)figures->unfused_quantize, "labels", labels);
}

static void print_figures(const octet_lab_figures *figures) {
    printf("engine         %llu steps, %.2f GFLOP, weights %.2f MB packed, activations %.2f MB, unfused quantize steps "
           "%llu\n",
           (unsigned long long)figures->steps, (double)figures->flops * 1e-9, (double)figures->packed_bytes * 1e-6,
           (double)figures->arena_bytes * 1e-6, (unsigned long long)figures->unfused_quantize);
}

static bool inspect_model(octet_model *model, const inspect_options *options) {
    octet_lab_figures figures = {.struct_size = sizeof figures};
    const struct {
        bool wanted;
        octet_lab_view view;
    } chosen[] = {{options->dot, OCTET_LAB_DOT},
                  {options->tactics, OCTET_LAB_TACTICS},
                  {options->memory, OCTET_LAB_MEMORY},
                  {options->shapes, OCTET_LAB_SHAPES}};
    bool any = false;
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++) {
        if (!chosen[i].wanted) continue;
        if (!print_view(model, chosen[i].view, any, options->common.json)) return false;
        any = true;
    }
    if (any) return true;
    if (octet_lab_get_figures(model, &figures) != OCTET_OK) return false;
    if (options->common.json) return print_json(figures_json(model, &figures));
    for (size_t i = 0; i < sizeof default_views / sizeof default_views[0]; i++) {
        if (default_views[i] == OCTET_LAB_GRAPH && octet_lab_is_bundle(model)) continue;
        if (!print_view(model, default_views[i], true, false)) return false;
        if (default_views[i] == OCTET_LAB_SUMMARY) print_figures(&figures);
    }
    return true;
}

static int print_support(bool json) {
    char *text;
    if (octet_lab_support(&text) != OCTET_OK) return print_failure("inspect");
    bool printed = json ? print_text_json("support", text) : fputs(text, stdout) >= 0;
    octet_free(text);
    return printed ? EXIT_DONE : EXIT_BAD;
}

static int print_compat(const char *place) {
    char *text;
    int opens;
    if (octet_lab_compat(place, &opens, &text) != OCTET_OK) return print_failure("inspect");
    fputs(text, stdout);
    octet_free(text);
    return opens ? EXIT_DONE : EXIT_WRONG;
}

/* What a recipe makes of each op, and why. */
static bool print_recipe(octet_model *model, const char *recipe, bool json) {
    char *text = NULL, *told = NULL;
    bool good = octet_lab_recipe_text(model, recipe, &text) == OCTET_OK &&
                octet_lab_recipe_describe(model, recipe, text, json, &told) == OCTET_OK;
    if (good) fputs(told, stdout);
    octet_free(told);
    octet_free(text);
    return good;
}

static int inspect(const char *place, const octet_open_options *open, const inspect_options *options) {
    octet_model *model;
    octet_open_options plain = *open;
    plain.recipe = plain.scales = NULL;
    bool good = true;
    if (options->recipe != NULL) {
        if (octet_model_open(place, &plain, &model) != OCTET_OK) return print_failure("inspect");
        good = print_recipe(model, options->recipe, options->common.json);
        octet_model_close(&model);
        /* static scales are not known without their file: the engine is shown with it */
        if (!good) return print_failure("inspect");
        if (options->scales == NULL) return EXIT_DONE;
    }
    if (octet_model_open(place, open, &model) != OCTET_OK) return print_failure("inspect");
    good = inspect_model(model, options);
    octet_model_close(&model);
    return good ? EXIT_DONE : print_failure("inspect");
}

static int run_inspect(int count, char **words) {
    inspect_options options = {0};
    const option_row rows[] = {
        OPTION_RECIPE(options.recipe, options.scales),
        {OPTION_FLAG, "--dot", NULL, "the graph for Graphviz", &options.dot, 0, 0},
        {OPTION_FLAG, "--tactics", NULL, "each step's candidate kernels: chosen, or why not", &options.tactics, 0, 0},
        {OPTION_FLAG, "--memory", NULL, "the activations' arena: offset, size, lifetime", &options.memory, 0, 0},
        {OPTION_FLAG, "--shapes", NULL, "the checkpoint's tensors", &options.shapes, 0, 0},
        {OPTION_FLAG, "--compat", NULL, "would it open here, and why not (exit 3)", &options.compat, 0, 0},
        {OPTION_FLAG, "--support", NULL, "what octet supports (no MODEL), as Markdown", &options.support, 0, 0},
        {OPTION_INT, "--batch", "N", "pictures at once (default: a bundle's smallest, else 1)", &options.batch, 0,
         1024},
        {OPTION_INT, "--height", "PIXELS", "build for this input height (with --width)", &options.height, 0, 1 << 16},
        {OPTION_INT, "--width", "PIXELS", "build for this input width (with --height)", &options.width, 0, 1 << 16},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_inspect, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (options.support)
        return left == 0 ? print_support(options.common.json) : usage_error(&verb_inspect, "--support takes no MODEL");
    if (left != 1) return usage_error(&verb_inspect, "expected one MODEL, found %d", left);
    if (options.compat) return print_compat(words[0]);
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    open.batch = options.batch;
    open.height = (int32_t)options.height;
    open.width = (int32_t)options.width;
    open.classes_file = options.classes;
    open.recipe = options.recipe;
    open.scales = options.scales;
    open.threads = (uint32_t)options.common.threads;
    return inspect(words[0], &open, &options);
}

const verb_row verb_inspect = {"inspect", "MODEL", "graph, weights, steps, kernels, formats, provenance", run_inspect};
