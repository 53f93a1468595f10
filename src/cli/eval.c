/* SPDX-License-Identifier: Apache-2.0 */
/* octet eval: a model's quality on a data set, alone or beside a reference. All pictures or no figure. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/evaluate.h"
#include "eval/scatter.h"
#include "eval_print.h"
#include "eval_results.h"
#include "octet/lab.h"
#include "options.h"
#include "output.h"
#include "stress.h"

#define DRAWS 10000

typedef struct eval_options {
    common_options common;
    const char *data, *reference, *samples, *classes, *recipe, *scales, *floor;
    int64_t limit, batch, draws, scatter;
    double threshold;
    int orientation; /* index into "upright|stored" */
    bool stress;
} eval_options;

typedef struct eval_state {
    const eval_options *options;
    octet_model *tested, *floor, *reference;
    octet_session *reference_session;
    evaluate_side *sides; /* the model as it is, --floor's, then --scatter's */
    size_t side_count;
    octet_lab_set *set;
    size_t batch;
    progress_line shown;
    FILE *lines; /* --samples, under another name until the end */
    char *lines_path;
} eval_state;

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

/* The first Ctrl-C ends after the batch that runs; a second one ends at once. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static bool no_memory(void) {
    fprintf(stderr, "octet eval: out of memory\n");
    return false;
}

static bool failed(void) {
    print_failure("eval");
    return false;
}

/* ---- --samples */

static bool cannot_write(const eval_state *state) {
    fprintf(stderr, "octet eval: %s: %s\n", state->options->samples, strerror(errno));
    return false;
}

static bool open_lines(eval_state *state) {
    const char *path = state->options->samples;
    if (path == NULL) return true;
    size_t size = strlen(path) + sizeof ".tmp";
    state->lines_path = malloc(size);
    if (state->lines_path == NULL) return no_memory();
    snprintf(state->lines_path, size, "%s.tmp", path);
    state->lines = fopen(state->lines_path, "w");
    return state->lines != NULL || cannot_write(state);
}

static bool write_line(eval_state *state, json_t *line) {
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(line);
    if (text == NULL) return no_memory();
    bool written = fprintf(state->lines, "%s\n", text) > 0;
    free(text);
    return written || cannot_write(state);
}

/* Gives the file its name if all went well, else removes it. */
static bool close_lines(eval_state *state, bool keep) {
    if (state->lines == NULL) {
        free(state->lines_path);
        return keep;
    }
    bool written = fflush(state->lines) == 0 && fsync(fileno(state->lines)) == 0;
    written = fclose(state->lines) == 0 && written;
    bool kept = keep && written && rename(state->lines_path, state->options->samples) == 0;
    if (keep && !kept) cannot_write(state);
    if (!kept) (void)remove(state->lines_path);
    free(state->lines_path);
    return kept;
}

/* ---- running */

static size_t total_of(const eval_state *state) {
    int64_t count = octet_lab_set_count(state->set), limit = state->options->limit;
    if (limit > 0 && (count < 0 || limit < count)) count = limit;
    return count > 0 ? (size_t)count : 0;
}

static bool after_picture(void *user, const octet_lab_sample *sample, json_t **lines) {
    eval_state *state = user;
    (void)sample;
    bool good = lines[0] == NULL || write_line(state, lines[0]);
    for (size_t i = 1; i < state->side_count; i++) json_decref(lines[i]);
    progress_update(&state->shown, state->sides[0].figures.n);
    return good && interrupted == 0;
}

static bool run_set(eval_state *state) {
    evaluation e = {.set = state->set,
                    .sides = state->sides,
                    .side_count = state->side_count,
                    .reference = state->reference_session,
                    .batch = state->batch,
                    .limit = (size_t)state->options->limit,
                    .after = after_picture,
                    .user = state,
                    .lines = state->lines != NULL};
    state->shown = progress_start("eval", total_of(state), state->options->common.quiet);
    const evaluate_end end = evaluate(&e);
    progress_end(&state->shown);
    if (end == EVALUATE_FAILED && e.failed[0] != '\0')
        fprintf(stderr, "octet eval: %s: %s\n", e.failed, octet_error_text());
    else if (end == EVALUATE_FAILED)
        print_failure("eval");
    if (end == EVALUATE_NO_MEMORY) no_memory();
    if (end == EVALUATE_STOPPED && interrupted != 0) fprintf(stderr, "octet eval: interrupted; nothing was written\n");
    return end == EVALUATE_DONE;
}

/* ---- opening */

/* `recipe` may be NULL. */
static bool open_model(const eval_options *options, const char *place, const char *recipe, const char *scales,
                       octet_model **model) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    open.threads = (uint32_t)options->common.threads;
    open.batch = options->batch;
    open.classes_file = options->classes;
    open.recipe = recipe;
    open.scales = scales;
    return octet_model_open(place, &open, model) == OCTET_OK || failed();
}

static bool open_session(const eval_options *options, octet_model *model, octet_session **session) {
    octet_session_options own = OCTET_SESSION_OPTIONS_DEFAULT;
    own.threads = (uint32_t)options->common.threads;
    own.orientation = options->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    return octet_session_new(model, &own, session) == OCTET_OK || failed();
}

static const char *task_name(octet_task task) {
    return task == OCTET_DETECTION ? "detection" : "classification";
}

static bool fits(const char *what, const octet_model *model, octet_task task, size_t classes, const char *other) {
    if (octet_model_task(model) == task && (classes == 0 || octet_model_class_count(model) == classes)) return true;
    if (octet_model_task(model) != task)
        fprintf(stderr, "octet eval: %s is for %s, %s for %s\n", what, task_name(octet_model_task(model)), other,
                task_name(task));
    else
        fprintf(stderr, "octet eval: %s has %zu classes, %s %zu\n", what, octet_model_class_count(model), other,
                classes);
    return false;
}

static bool open_reference(eval_state *state, const char *place, octet_task task) {
    const char *other = state->options->reference;
    if (other == NULL) return true;
    if (!open_model(state->options, other, NULL, NULL, &state->reference) ||
        !fits(other, state->reference, task, octet_model_class_count(state->tested), place) ||
        !open_session(state->options, state->reference, &state->reference_session))
        return false;
    const size_t batch = (size_t)octet_model_batch(state->reference);
    if (batch > state->batch) state->batch = batch;
    return true;
}

static bool add_side(eval_state *state, octet_model *model, octet_task task, size_t draws, double jitter) {
    const size_t i = state->side_count++;
    evaluate_side *side = &state->sides[i];
    side->figures = (eval_figures){.task = task,
                                   .with_reference = state->options->reference != NULL,
                                   .threshold = state->options->threshold,
                                   .draws = draws};
    return open_session(state->options, model, &side->session) &&
           (octet_lab_set_jitter(side->session, jitter, EVAL_SEED + i) == OCTET_OK || failed());
}

/* The model as it is; the 16-bit engine that its figures stand beside; and runs with inputs moved in their last bit,
 * each by other chance. */
static bool open_sides(eval_state *state, const char *place, octet_task task) {
    const eval_options *options = state->options;
    const size_t draws = (size_t)options->draws;
    state->sides = calloc(2 + (size_t)options->scatter, sizeof *state->sides);
    if (state->sides == NULL) return no_memory();
    if (!add_side(state, state->tested, task, draws, 0.0)) return false;
    if (options->floor != NULL && (!open_model(options, place, options->floor, NULL, &state->floor) ||
                                   !add_side(state, state->floor, task, draws, 0.0)))
        return false;
    for (int64_t i = 0; i < options->scatter; i++)
        if (!add_side(state, state->tested, task, 0, SCATTER_JITTER)) return false;
    return true;
}

static bool open_all(eval_state *state, const char *place) {
    const eval_options *options = state->options;
    octet_lab_set_options set = OCTET_LAB_SET_OPTIONS_DEFAULT;
    if (!open_model(options, place, options->recipe, options->scales, &state->tested)) return false;
    set.model = state->tested;
    set.classes_file = options->classes;
    if (octet_lab_set_open(options->data, &set, &state->set) != OCTET_OK) return failed();
    const octet_task task = octet_lab_set_task(state->set);
    state->batch = (size_t)octet_model_batch(state->tested);
    return fits(place, state->tested, task, 0, options->data) && open_reference(state, place, task) &&
           open_sides(state, place, task) && open_lines(state);
}

static void close_all(eval_state *state) {
    for (size_t i = 0; i < state->side_count; i++) {
        eval_figures_free(&state->sides[i].figures);
        octet_session_free(&state->sides[i].session);
    }
    free(state->sides);
    octet_session_free(&state->reference_session);
    octet_lab_set_close(&state->set);
    octet_model_close(&state->tested);
    octet_model_close(&state->floor);
    octet_model_close(&state->reference);
}

/* ---- */

static bool add_floor(eval_state *state, json_t *out) {
    if (state->floor == NULL) return true;
    json_t *floor = eval_report(&state->sides[1].figures);
    if (floor == NULL) return false;
    json_object_set_new(floor, "recipe", json_text(state->options->floor));
    return json_object_set_new(out, "floor", floor) == 0;
}

static bool add_scatter(eval_state *state, json_t *out) {
    const size_t first = state->floor != NULL ? 2 : 1, count = state->side_count - first;
    if (count == 0) return true;
    json_t **reports = calloc(count, sizeof(json_t *));
    bool good = reports != NULL;
    for (size_t i = 0; good && i < count; i++) {
        reports[i] = eval_report(&state->sides[first + i].figures);
        good = reports[i] != NULL;
    }
    if (good) json_object_set_new(out, "scatter", scatter_of(reports, count));
    for (size_t i = 0; reports != NULL && i < count; i++) json_decref(reports[i]);
    free(reports);
    return good;
}

/* The figures, and what stands beside them if it was asked for. */
static json_t *full_report(eval_state *state) {
    json_t *out = eval_report(&state->sides[0].figures);
    if (out != NULL && add_floor(state, out) && add_scatter(state, out)) return out;
    json_decref(out);
    return NULL;
}

static bool report(eval_state *state, const char *place) {
    const eval_options *options = state->options;
    const char *orientation = options->orientation == 1 ? "stored" : "upright";
    const char *fingerprint = octet_lab_set_fingerprint(state->set), *order = octet_lab_set_order(state->set);
    if (state->sides[0].figures.n == 0) {
        fprintf(stderr, "octet eval: %s: no pictures in it\n", options->data);
        return false;
    }
    if (!options->common.json) {
        printf("%s%s%s on %s\n", place, options->recipe != NULL ? ", recipe " : "",
               options->recipe != NULL ? options->recipe : "", options->data);
        if (options->reference != NULL) printf("beside %s\n", options->reference);
        printf("  labels: %s; pictures: %s; set: %.16s\n", order, orientation, fingerprint);
    }
    json_t *out = full_report(state);
    if (out == NULL) return no_memory();
    if (!options->common.json) {
        print_figures(out);
        json_decref(out);
        return true;
    }
    json_object_set_new(out, "model", json_text(place));
    json_object_set_new(out, "recipe", options->recipe != NULL ? json_text(options->recipe) : json_null());
    json_object_set_new(out, "model_fingerprint", json_string(octet_model_fingerprint(state->tested)));
    if (options->reference != NULL) {
        json_object_set_new(out, "reference", json_text(options->reference));
        json_object_set_new(out, "reference_fingerprint", json_string(octet_model_fingerprint(state->reference)));
    }
    json_object_set_new(out, "data", json_text(options->data));
    json_object_set_new(out, "data_fingerprint", json_string(fingerprint));
    json_object_set_new(out, "labels", json_string(order));
    json_object_set_new(out, "orientation", json_string(orientation));
    json_object_set_new(out, "draws", json_integer(options->draws));
    json_object_set_new(out, "seed", json_integer(EVAL_SEED));
    return print_json(out);
}

static int run_stress(const eval_options *options, const char *place) {
    eval_state state = {.options = options};
    bool good = open_model(options, place, options->recipe, options->scales, &state.tested) &&
                (options->reference == NULL || open_model(options, options->reference, NULL, NULL, &state.reference));
    const int code =
        good ? eval_stress(state.tested, state.reference, (uint32_t)options->common.threads, options->common.json)
             : EXIT_BAD;
    close_all(&state);
    return code;
}

static int run_eval(int count, char **words) {
    eval_options options = {.threshold = 0.5, .draws = DRAWS};
    const option_row rows[] = {
        {OPTION_TEXT, "--data", "SET",
         "directory with labels.txt, image folder, .tar shards, or COCO instances.json[:PICTURES]", &options.data, 0,
         0},
        OPTION_RECIPE(options.recipe, options.scales),
        {OPTION_TEXT, "--reference", "MODEL", "compare with it, picture by picture", &options.reference, 0, 0},
        {OPTION_REAL, "--threshold", "SCORE", "compare detections above it (default 0.5); AP takes all",
         &options.threshold, 0, 0},
        {OPTION_INT, "--limit", "N", "the first N pictures; 0: all (default)", &options.limit, 0, INT32_MAX},
        {OPTION_TEXT, "--samples", "FILE", "write a JSON line a picture, whole or not at all", &options.samples, 0, 0},
        {OPTION_INT, "--batch", "N", "pictures at once; 0: a bundle's smallest, else 1 (default)", &options.batch, 0,
         1024},
        {OPTION_CHOICE, "--orientation", "upright|stored",
         "apply EXIF orientation (default) or not, as timm and COCO's tools", &options.orientation, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line: of the model, and of class directories",
         &options.classes, 0, 0},
        {OPTION_INT, "--draws", "N", "bootstrap draws of the intervals (default 10000); 0: no intervals",
         &options.draws, 0, 1000000},
        {OPTION_TEXT, "--floor", "R", "the same figures of another recipe of the model beside, as fp16", &options.floor,
         0, 0},
        {OPTION_FLAG, "--stress", NULL,
         "instead of --data: named inputs that no set holds; what is not finite, counted", &options.stress, 0, 0},
        {OPTION_INT, "--scatter", "K", "evaluate K more times with inputs moved in their last bit: the figures' spread",
         &options.scatter, 2, 1000},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_eval, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1) return usage_error(&verb_eval, "expected one MODEL, found %d words", left);
    if ((options.data == NULL) != options.stress) return usage_error(&verb_eval, "expected --data SET, or --stress");
    if (options.stress) return run_stress(&options, words[0]);
    if (is_results_file(words[0])) {
        if (options.reference != NULL || options.samples != NULL || options.limit != 0 || options.scatter != 0 ||
            options.floor != NULL)
            return usage_error(&verb_eval, "a file of detections goes with --data and --draws only");
        return eval_results(words[0], options.data, (size_t)options.draws, options.common.json);
    }
    eval_state state = {.options = &options};
    catch_signals();
    bool good = open_all(&state, words[0]) && run_set(&state);
    good = close_lines(&state, good && state.sides[0].figures.n > 0) && good;
    (void)signal(SIGINT, SIG_DFL); /* what is left to do leaves nothing behind */
    (void)signal(SIGTERM, SIG_DFL);
    good = good && report(&state, words[0]);
    close_all(&state);
    return good ? EXIT_DONE : EXIT_BAD;
}

const verb_row verb_eval = {"eval", "MODEL|DETECTIONS.json --data SET",
                            "quality on a data set, alone or beside a reference", run_eval};
