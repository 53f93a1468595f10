/* SPDX-License-Identifier: Apache-2.0 */
/* octet search: which ops take which recipe's format, by measured quality and time. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/mixing.h"
#include "eval/modelled.h"
#include "pictures.h"

#define RECIPES (SEARCH_CHOICES - 1)
#define ROUNDS 80 /* evaluations after the first ones, unless --budget says */

typedef struct search_options {
    common_options common;
    const char *data, *recipe, *scales, *within, *state, *output, *classes;
    int64_t limit, budget, runs;
    int by, time, orientation; /* indices into "op|kind|block", "measured|modelled", "upright|stored" */
    double limit_value;        /* of `within`: nats, or points */
    bool points;
} search_options;

typedef struct search_state {
    const search_options *options;
    pictures pictures;
    variant_recipe recipes[RECIPES];
    const char *scales[RECIPES];
    size_t count;
    mixing mixing;
    size_t budget;
    search_result found;
} search_state;

/* ---- reading the options */

/* "0.025": nats; "0.5points": of top-1, or of AP */
static bool read_within(search_options *options) {
    char *end;
    options->limit_value = strtod(options->within, &end);
    options->points = strcmp(end, "points") == 0;
    return end != options->within && (*end == '\0' || options->points) && isfinite(options->limit_value) &&
           options->limit_value >= 0.0;
}

/* Cuts "a,b" in place; 0: one is empty, or they are too many. */
static size_t split(char *list, const char **words) {
    size_t count = 0;
    for (char *at = list; at != NULL; count++) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma = '\0';
        if (*at == '\0' || count == RECIPES) return 0;
        words[count] = at;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return count;
}

static bool read_lists(search_state *s, char *recipes, char *scales, const char **names) {
    size_t files = 0;
    s->count = split(recipes, names);
    if (scales != NULL) files = split(scales, s->scales);
    if (s->count == 0 || (scales != NULL && files != s->count && files != 1)) return false;
    for (size_t r = 0; r < s->count && files > 0; r++) {
        if (r >= files) s->scales[r] = s->scales[0];
        if (strcmp(s->scales[r], "-") == 0) s->scales[r] = NULL;
    }
    return true;
}

/* ---- searching */

static bool on_picture(void *user, size_t evaluations, size_t picture) {
    search_state *s = user;
    pictures *p = &s->pictures;
    if (p->shown.what == NULL)
        p->shown = progress_start("search", s->budget * p->kept.count, p->options->common->quiet);
    progress_update(&p->shown, evaluations * p->kept.count + picture);
    return !pictures_interrupted();
}

static bool print_end(const search_state *s) {
    const mixing *m = &s->mixing;
    if (m->end == EVALUATE_STOPPED) {
        fprintf(stderr, "octet search: interrupted after %zu evaluations; %s\n", m->made,
                m->state != NULL ? "the same command goes on from there" : "nothing was kept: --state FILE keeps them");
        return false;
    }
    if (m->end == EVALUATE_FAILED && m->told)
        fprintf(stderr, "octet search: %s\n", m->failed);
    else
        pictures_ended(&s->pictures, m->end, m->failed);
    return false;
}

static bool find_budget(search_state *s) {
    const size_t least = search_least(mixing_ops(&s->mixing), s->mixing.choices);
    s->budget = s->options->budget > 0 ? (size_t)s->options->budget : least + ROUNDS;
    if (s->budget > SEARCH_BUDGET && s->options->budget == 0) s->budget = SEARCH_BUDGET;
    if (s->budget >= least && s->budget <= SEARCH_BUDGET) return true;
    fprintf(stderr,
            "octet search: --budget: expected %zu to %d evaluations: each of %zu ops alone, and the ends; found %zu\n"
            "  hint: --by kind or --by block makes fewer of them\n",
            least, SEARCH_BUDGET, mixing_ops(&s->mixing), s->budget);
    return false;
}

static bool run_search(search_state *s) {
    const search_options *o = s->options;
    mixing *m = &s->mixing;
    *m = (mixing){.place = s->pictures.options->place,
                  .model = s->pictures.model,
                  .open = &s->pictures.open,
                  .session = &s->pictures.session,
                  .pictures = &s->pictures.kept,
                  .recipes = s->recipes,
                  .scales = s->scales,
                  .count = s->count,
                  .group = (variant_group)o->by,
                  .modelled = o->time == 1,
                  .points = o->points,
                  .runs = (size_t)o->runs,
                  .state = o->state,
                  .tick = on_picture,
                  .user = s};
    if (!mixing_open(m)) return print_end(s);
    if (!find_budget(s)) return false;
    const search_problem problem = {.ops = mixing_ops(m),
                                    .choices = m->choices,
                                    .loss_limit = o->points ? INFINITY : 2.0 * o->limit_value,
                                    .budget = s->budget,
                                    .evaluate = mixing_evaluate,
                                    .user = m};
    s->pictures.shown = (progress_line){0};
    const bool good = search(&problem, &s->found);
    progress_end(&s->pictures.shown);
    if (!good) return pictures_ended(&s->pictures, EVALUATE_NO_MEMORY, "");
    return !s->found.stopped || print_end(s);
}

/* ---- reporting */

static const uint8_t *assignment_of(const search_state *s, size_t index) {
    return s->found.assignments + index * mixing_ops(&s->mixing);
}

/* By the end of the interval, as every gate. */
static bool is_within(const search_state *s, const mixing_point *point) {
    return (s->options->points ? point->points_high : point->high) <= s->options->limit_value;
}

/* The fastest of all evaluated within the limit; found.count: none. */
static size_t recommended(const search_state *s) {
    size_t best = s->found.count;
    double least = INFINITY;
    for (size_t i = 0; i < s->found.count; i++) {
        const mixing_point *point = mixing_find(&s->mixing, assignment_of(s, i));
        if (point == NULL || !is_within(s, point) || !(point->seconds < least)) continue;
        least = point->seconds;
        best = i;
    }
    return best;
}

static size_t narrow_groups(const mixing_point *point) {
    size_t count = 0;
    for (const char *at = point->assignment; *at != '\0'; at++) count += *at != '0';
    return count;
}

static json_t *point_json(const search_state *s, const mixing_point *p) {
    json_t *line = json_pack("{s:s, s:I, s:o, s:o, s:o, s:f, s:b}", "assignment", p->assignment, "narrow",
                             (json_int_t)narrow_groups(p), "kl", json_float(p->kl), "low", json_float(p->low), "high",
                             json_float(p->high), "ms", 1e3 * p->seconds, "within", is_within(s, p));
    if (s->options->points) {
        json_object_set_new(line, "points", json_float(p->points));
        json_object_set_new(line, "points_high", json_float(p->points_high));
    }
    return line;
}

static void print_point(const search_state *s, const mixing_point *p) {
    printf("  %12.6f  %10.6f [%.6f, %.6f]", 1e3 * p->seconds, p->kl, p->low, p->high);
    if (s->options->points) printf("  %+6.2f, at most %+.2f points", p->points, p->points_high);
    printf("  %s  %zu of %zu narrow  %s\n", is_within(s, p) ? "within" : "      ", narrow_groups(p),
           strlen(p->assignment), p->assignment);
}

static const char *time_name(const search_state *s) {
    return s->mixing.modelled ? MODELLED_NAME : "measured, in turns with the base";
}

static bool print_front(const search_state *s) {
    const mixing *m = &s->mixing;
    bool good = true;
    if (s->options->common.json) {
        json_t *names = json_array();
        for (size_t r = 0; r < s->count; r++) json_array_append_new(names, json_text(s->recipes[r].name));
        good = print_json(json_pack("{s:o, s:o, s:s, s:I, s:s, s:I, s:I, s:O, s:s, s:i}", "model", json_text(m->place),
                                    "recipes", names, "data_fingerprint", m->pictures->data, "n",
                                    (json_int_t)m->pictures->count, "time", time_name(s), "evaluations",
                                    (json_int_t)s->found.count, "resumed", (json_int_t)m->resumed, "groups", m->groups,
                                    "within", s->options->within, "seed", EVAL_SEED));
    } else {
        printf(
            "%s on %s: %zu pictures, %zu evaluations (%zu from the state)\ntime: %s; KL(float32 || tested) in nats\n",
            m->place, s->options->data, m->pictures->count, s->found.count, m->resumed, time_name(s));
        printf("  a digit of an assignment is an op (or group): 0 as the base %s", variant_base(&s->recipes[0]));
        for (size_t r = 0; r < s->count; r++)
            printf("%s %s", r == 0 ? "; else, of those that narrow it, the first, second ... of" : ",",
                   s->recipes[r].name);
        printf("\n\n            ms  KL [95%%]\n");
    }
    for (size_t i = 0; good && i < s->found.front_count; i++) {
        const mixing_point *p = mixing_find(m, assignment_of(s, s->found.front[i]));
        if (!s->options->common.json)
            print_point(s, p);
        else
            good = print_json(json_pack("{s:o}", "front", point_json(s, p)));
    }
    return good;
}

/* Whole or not at all. */
static bool write_file(const char *path, const char *text) {
    const size_t size = strlen(path) + sizeof ".tmp";
    char *temporary = malloc(size);
    if (temporary == NULL) return false;
    snprintf(temporary, size, "%s.tmp", path);
    FILE *file = fopen(temporary, "w");
    bool good = file != NULL && fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    good = (file == NULL || fclose(file) == 0) && good;
    good = good && rename(temporary, path) == 0;
    if (!good) fprintf(stderr, "octet search: %s: %s\n", path, strerror(errno));
    if (!good) (void)remove(temporary);
    free(temporary);
    return good;
}

/* RECIPE.yaml and, if there are static scales, RECIPE.yaml.scales.json. */
static bool write_recipe(const search_options *options, const char *text, const json_t *scales) {
    if (options->output == NULL) return true;
    bool good = true;
    if (scales != NULL) {
        const size_t size = strlen(options->output) + sizeof ".scales.json";
        char *path = malloc(size), *json = json_dumps(scales, JSON_COMPACT | JSON_REAL_PRECISION(17));
        good = path != NULL && json != NULL;
        if (good) snprintf(path, size, "%s.scales.json", options->output);
        good = good && write_file(path, json);
        free(json);
        free(path);
    }
    return good && write_file(options->output, text);
}

static bool recommend(const search_state *s) {
    const size_t index = recommended(s);
    const search_options *o = s->options;
    json_t *scales = NULL;
    if (index == s->found.count) {
        fprintf(stderr, "octet search: none of %zu evaluated is within %s, not the base alone\n", s->found.count,
                o->within);
        return false;
    }
    const mixing_point *point = mixing_find(&s->mixing, assignment_of(s, index));
    char *text = mixing_recipe(&s->mixing, assignment_of(s, index), "searched", &scales);
    bool good = text != NULL && write_recipe(o, text, scales);
    if (good && o->common.json) {
        json_t *line = point_json(s, point);
        json_object_set_new(line, "recipe", json_text(text));
        good = print_json(json_pack("{s:o}", "recommended", line));
    } else if (good) {
        printf("\nrecommended: the fastest whose interval ends within %s\n", o->within);
        print_point(s, point);
        printf("\n%s", text);
        if (o->output != NULL) printf("\nwritten to %s%s\n", o->output, scales != NULL ? ", scales beside it" : "");
        printf("judge it on pictures that no choice was made by: octet eval --recipe %s --reference CHECKPOINT\n",
               o->output != NULL ? o->output : "FILE");
    }
    json_decref(scales);
    free(text);
    return good;
}

/* ---- */

static bool open_recipes(search_state *s, const char **names) {
    for (size_t r = 0; r < s->count; r++)
        if (!variant_open(s->pictures.model, names[r], &s->recipes[r])) return print_failure("search") == EXIT_DONE;
    return true;
}

static int search_all(const search_options *options, const char *place, char *recipes, char *scales) {
    search_state s = {.options = options};
    const char *names[RECIPES] = {NULL};
    const pictures_options wanted = {.verb = "search",
                                     .place = place,
                                     .data = options->data,
                                     .classes = options->classes,
                                     .limit = options->limit,
                                     .orientation = options->orientation,
                                     .common = &options->common};
    if (!read_lists(&s, recipes, scales, names))
        return usage_error(&verb_search,
                           "--recipe, --scales: expected up to %d names parted by commas, one file for "
                           "all or one for each (- for none)",
                           RECIPES);
    const bool good = pictures_open(&wanted, &s.pictures) && open_recipes(&s, names) && run_search(&s) &&
                      print_front(&s) && recommend(&s);
    search_result_free(&s.found);
    mixing_close(&s.mixing);
    for (size_t r = 0; r < s.count; r++) variant_close(&s.recipes[r]);
    pictures_close(&s.pictures);
    return good ? EXIT_DONE : EXIT_BAD;
}

static int run_search_verb(int count, char **words) {
    search_options options = {.runs = 10};
    const option_row rows[] = {
        {OPTION_TEXT, "--data", "SET", "the pictures that choices are made by: not those of the verdict", &options.data,
         0, 0},
        {OPTION_TEXT, "--recipe", "R,...", "what an op may become: names or files as elsewhere, of one base",
         &options.recipe, 0, 0},
        {OPTION_TEXT, "--scales", "FILE,...", "one for all recipes, or one for each (- for none)", &options.scales, 0,
         0},
        {OPTION_TEXT, "--within", "LIMIT", "upper end of the loss: KL in nats (0.025), or of top-1 or AP (0.5points)",
         &options.within, 0, 0},
        {OPTION_CHOICE, "--by", "op|kind|block", "what takes one format together (default op)", &options.by, 0, 0},
        {OPTION_INT, "--budget", "N", "evaluations at most (default: each op alone, and 80)", &options.budget, 1,
         SEARCH_BUDGET},
        {OPTION_CHOICE, "--time", "measured|modelled", "of the engine here (default), or a roofline of an H200",
         &options.time, 0, 0},
        {OPTION_INT, "--runs", "N", "of an engine's timing, in turns with the base's (default 10)", &options.runs, 1,
         100000},
        {OPTION_TEXT, "--state", "FILE", "evaluations are kept in it, and taken from it: a search that goes on",
         &options.state, 0, 0},
        {OPTION_TEXT, "-o", "RECIPE", "where to write the recommended recipe; its scales beside it (.scales.json)",
         &options.output, 0, 0},
        {OPTION_INT, "--limit", "N", "the first N pictures; 0: all (default)", &options.limit, 0, INT32_MAX},
        {OPTION_CHOICE, "--orientation", "upright|stored", "apply EXIF orientation (default) or not",
         &options.orientation, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_search, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1 || options.data == NULL || options.recipe == NULL || options.within == NULL)
        return usage_error(&verb_search, "expected one CHECKPOINT, --data SET, --recipe R,... and --within LIMIT");
    if (!read_within(&options))
        return usage_error(&verb_search, "--within: expected a KL in nats (0.025) or points (0.5points), found \"%s\"",
                           options.within);
    char *recipes = strdup(options.recipe), *scales = options.scales != NULL ? strdup(options.scales) : NULL;
    int code = EXIT_BAD;
    if (recipes == NULL || (options.scales != NULL && scales == NULL))
        fprintf(stderr, "octet search: out of memory\n");
    else
        code = search_all(&options, words[0], recipes, scales);
    free(scales);
    free(recipes);
    return code;
}

const verb_row verb_search = {"search", "CHECKPOINT --data SET --within LIMIT",
                              "mixes recipes op by op: the front of quality and time, and a recipe", run_search_verb};
