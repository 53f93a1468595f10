/* SPDX-License-Identifier: Apache-2.0 */
/* octet attribute: where a recipe's loss comes from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/attribute.h"
#include "pictures.h"

#define DRAWS 10000
#define STEPS_SHOWN 12 /* the worst; all with --json */

typedef struct attribute_options {
    common_options common;
    const char *data, *recipe, *scales, *classes;
    int64_t limit, draws;
    int by, orientation; /* indices into "op|kind|block", "upright|stored" */
} attribute_options;

/* ---- printing */

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_figure(const char *name, const json_t *figure) {
    printf("%s%10.6f [%.6f, %.6f]", name, number_of(figure, "kl"), number_of(figure, "low"), number_of(figure, "high"));
}

static void print_groups(const json_t *groups) {
    json_t *group;
    size_t i;
    printf("\n  alone narrow: KL [95%%]           left as the base: KL [95%%]       of the whole  group (ops)\n");
    json_array_foreach(groups, i, group) {
        print_figure("", json_object_get(group, "alone"));
        print_figure(" ", json_object_get(group, "kept"));
        printf("  %+8.1f%%     %s (%zu)\n", 100.0 * number_of(group, "share"),
               json_string_value(json_object_get(group, "group")), json_array_size(json_object_get(group, "ops")));
    }
}

/* The lowest first, by selection: few are shown. */
static void print_steps(const json_t *steps) {
    double above = -INFINITY;
    printf("\n  what each step stored beside float32, the worst %d of %zu\n", STEPS_SHOWN, json_array_size(steps));
    for (int shown = 0; shown < STEPS_SHOWN; shown++) {
        const json_t *lowest = NULL;
        json_t *step;
        size_t i;
        json_array_foreach(steps, i, step) {
            const double sqnr = number_of(step, "sqnr_db");
            if (sqnr > above && (lowest == NULL || sqnr < number_of(lowest, "sqnr_db"))) lowest = step;
        }
        if (lowest == NULL) return;
        above = number_of(lowest, "sqnr_db");
        const json_t *interval = json_object_get(lowest, "sqnr_interval");
        printf("  %7.2f dB [%.2f, %.2f]  relative error %.5f  %s\n", above,
               json_number_value(json_array_get(interval, 0)), json_number_value(json_array_get(interval, 1)),
               number_of(lowest, "relative_error"), json_string_value(json_object_get(lowest, "step")));
    }
}

static void print_text(const pictures *p, const attribute_options *options, const json_t *report) {
    printf("%s, recipe %s on %s: %zu pictures; KL(float32 || tested) in nats\n", p->options->place, options->recipe,
           options->data, p->kept.count);
    printf("float32's outputs and the pictures were kept: %.1f of at most %zu MB\n", (double)p->kept.bytes * 1e-6,
           BESIDE_BYTES / 1000000);
    print_figure("  whole             ", json_object_get(report, "whole"));
    print_figure("\n  weights only      ", json_object_get(report, "weights"));
    print_figure("\n  activations only  ", json_object_get(report, "activations"));
    printf("\n");
    print_groups(json_object_get(report, "groups"));
    print_steps(json_object_get(report, "steps"));
}

/* A line a figure. */
static bool print_lines(const pictures *p, const attribute_options *options, const json_t *report) {
    static const char *const variants[] = {"whole", "weights", "activations"};
    json_t *line;
    size_t i;
    bool good =
        print_json(json_pack("{s:o, s:o, s:o, s:s, s:I, s:I, s:i, s:O}", "model", json_text(p->options->place),
                             "recipe", json_text(options->recipe), "data", json_text(options->data), "data_fingerprint",
                             p->kept.data, "n", (json_int_t)p->kept.count, "draws", (json_int_t)options->draws, "seed",
                             EVAL_SEED, "unmatched_steps", json_object_get(report, "unmatched_steps")));
    for (i = 0; good && i < 3; i++) {
        line = json_pack("{s:s}", "variant", variants[i]);
        json_object_update(line, json_object_get(report, variants[i]));
        good = print_json(line);
    }
    json_array_foreach(json_object_get(report, "groups"), i, line) good = good && print_json(json_incref(line));
    json_array_foreach(json_object_get(report, "steps"), i, line) good = good && print_json(json_incref(line));
    return good;
}

/* ---- */

static bool on_picture(void *user, size_t engines_done, size_t engines, size_t picture) {
    pictures *p = user;
    if (p->shown.what == NULL)
        p->shown = progress_start("attribute", engines * p->kept.count, p->options->common->quiet);
    progress_update(&p->shown, engines_done * p->kept.count + picture);
    return !pictures_interrupted();
}

static bool measure(pictures *p, const attribute_options *options, const variant_recipe *recipe) {
    attribution a = {.place = p->options->place,
                     .open = &p->open,
                     .session = &p->session,
                     .recipe = recipe,
                     .pictures = &p->kept,
                     .reference = p->reference,
                     .group = (variant_group)options->by,
                     .draws = (size_t)options->draws,
                     .tick = on_picture,
                     .user = p};
    p->shown = (progress_line){0};
    const evaluate_end end = attribute(&a);
    progress_end(&p->shown);
    if (end == EVALUATE_STOPPED) fprintf(stderr, "octet attribute: interrupted; nothing was printed\n");
    bool good = pictures_ended(p, end, a.failed);
    json_t *report = good ? attribute_report(&a) : NULL;
    if (good && report == NULL) good = pictures_ended(p, EVALUATE_NO_MEMORY, "");
    if (good && options->common.json) good = print_lines(p, options, report);
    if (good && !options->common.json) print_text(p, options, report);
    json_decref(report);
    attribute_free(&a);
    return good;
}

static bool any_narrow(const variant_recipe *recipe) {
    json_t *op;
    size_t i;
    json_array_foreach(recipe->ops, i, op) {
        if (variant_op_narrow(op)) return true;
    }
    fprintf(stderr, "octet attribute: %s: no op is narrower than the base %s: there is nothing to attribute\n",
            recipe->name, variant_base(recipe));
    return false;
}

static int run_attribute(int count, char **words) {
    attribute_options options = {.draws = DRAWS};
    const option_row rows[] = {
        {OPTION_TEXT, "--data", "SET",
         "directory with labels.txt, image folder, .tar shards, or COCO instances.json[:PICTURES]", &options.data, 0,
         0},
        OPTION_RECIPE(options.recipe, options.scales),
        {OPTION_CHOICE, "--by", "op|kind|block", "what is narrowed alone and left out alone (default op)", &options.by,
         0, 0},
        {OPTION_INT, "--limit", "N", "the first N pictures; 0: all (default)", &options.limit, 0, INT32_MAX},
        {OPTION_INT, "--draws", "N", "bootstrap draws of the intervals (default 10000); 0: no intervals",
         &options.draws, 0, 1000000},
        {OPTION_CHOICE, "--orientation", "upright|stored", "apply EXIF orientation (default) or not",
         &options.orientation, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_attribute, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1 || options.data == NULL || options.recipe == NULL)
        return usage_error(&verb_attribute, "expected one CHECKPOINT, --data SET and --recipe R");
    const pictures_options wanted = {.verb = "attribute",
                                     .place = words[0],
                                     .data = options.data,
                                     .classes = options.classes,
                                     .limit = options.limit,
                                     .orientation = options.orientation,
                                     .common = &options.common};
    pictures p;
    variant_recipe recipe = {0};
    bool good = pictures_open(&wanted, &p);
    if (good && !variant_open(p.model, options.recipe, &recipe)) good = print_failure("attribute") == EXIT_DONE;
    p.open.scales = options.scales;
    good = good && any_narrow(&recipe) && measure(&p, &options, &recipe);
    variant_close(&recipe);
    pictures_close(&p);
    return good ? EXIT_DONE : EXIT_BAD;
}

const verb_row verb_attribute = {"attribute", "CHECKPOINT --data SET --recipe R",
                                 "where a recipe's loss comes from: each op alone, each left out, each step",
                                 run_attribute};
