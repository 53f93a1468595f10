/* SPDX-License-Identifier: Apache-2.0 */
/* octet eval: a model's quality on a data set, alone or beside a reference. All pictures or no figure. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/figures.h"
#include "eval_print.h"
#include "eval_results.h"
#include "octet/lab.h"
#include "options.h"
#include "output.h"

#define DRAWS 10000

typedef struct eval_options {
    common_options common;
    const char *data, *reference, *samples, *classes, *recipe, *scales;
    int64_t limit, batch, draws;
    double threshold;
    int orientation; /* index into "upright|stored" */
} eval_options;

typedef struct eval_side {
    octet_model *model;
    octet_session *session;
    octet_result **results; /* of the batch */
} eval_side;

typedef struct eval_state {
    const eval_options *options;
    eval_side tested, reference;
    octet_lab_set *set;
    octet_lab_sample **samples; /* the batch */
    octet_picture *pictures;
    size_t batch, count;
    eval_figures figures;
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

/* ---- a batch */

static void free_batch(eval_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        octet_lab_sample_free(&state->samples[i]);
        octet_result_free(&state->tested.results[i]);
        if (state->reference.results != NULL) octet_result_free(&state->reference.results[i]);
    }
    state->count = 0;
}

static bool read_batch(eval_state *state) {
    size_t done = state->figures.n, limit = (size_t)state->options->limit;
    while (state->count < state->batch && (limit == 0 || done + state->count < limit)) {
        octet_lab_sample *sample;
        if (octet_lab_set_next(state->set, &sample) != OCTET_OK) return failed();
        if (sample == NULL) break;
        octet_picture *picture = &state->pictures[state->count];
        *picture = (octet_picture)OCTET_PICTURE_DEFAULT;
        picture->kind = OCTET_PICTURE_MEMORY;
        picture->data = sample->data;
        picture->size = sample->size;
        state->samples[state->count++] = sample;
    }
    return true;
}

/* Which picture of a failed batch it was: each is run alone. */
static bool name_failure(eval_state *state, eval_side *side) {
    for (size_t i = 0; i < state->count; i++) {
        octet_result *result;
        octet_status status = octet_session_run(side->session, &state->pictures[i], 1, &result);
        if (status == OCTET_OK)
            octet_result_free(&result);
        else
            fprintf(stderr, "octet eval: %s: %s\n", state->samples[i]->name, octet_error_text());
        if (status != OCTET_OK) return false;
    }
    return failed();
}

static bool run_batch(eval_state *state, eval_side *side) {
    return octet_session_run(side->session, state->pictures, state->count, side->results) == OCTET_OK ||
           name_failure(state, side);
}

static bool add_batch(eval_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        json_t *line = NULL;
        const octet_result *reference = state->reference.model != NULL ? state->reference.results[i] : NULL;
        if (!eval_add(&state->figures, state->samples[i], state->tested.results[i], reference,
                      state->lines != NULL ? &line : NULL)) {
            json_decref(line);
            return no_memory();
        }
        if (line != NULL && !write_line(state, line)) return false;
    }
    return true;
}

static size_t total_of(const eval_state *state) {
    int64_t count = octet_lab_set_count(state->set), limit = state->options->limit;
    if (limit > 0 && (count < 0 || limit < count)) count = limit;
    return count > 0 ? (size_t)count : 0;
}

static bool run_set(eval_state *state) {
    bool good = true, more = true;
    progress_line shown = progress_start("eval", total_of(state), state->options->common.quiet);
    while (good && more) {
        good = read_batch(state);
        more = state->count > 0;
        if (good && more) {
            good = run_batch(state, &state->tested) &&
                   (state->reference.model == NULL || run_batch(state, &state->reference)) && add_batch(state);
        }
        free_batch(state);
        progress_update(&shown, state->figures.n);
        if (good && more && interrupted) {
            progress_end(&shown);
            fprintf(stderr, "octet eval: interrupted; nothing was written\n");
            return false;
        }
    }
    progress_end(&shown);
    return good;
}

/* ---- opening */

static bool open_engine(const eval_options *options, const char *place, bool tested, eval_side *side) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options session = OCTET_SESSION_OPTIONS_DEFAULT;
    open.threads = session.threads = (uint32_t)options->common.threads;
    open.batch = options->batch;
    open.classes_file = options->classes;
    if (tested) {
        open.recipe = options->recipe;
        open.scales = options->scales;
    }
    session.orientation = options->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    return (octet_model_open(place, &open, &side->model) == OCTET_OK &&
            octet_session_new(side->model, &session, &side->session) == OCTET_OK) ||
           failed();
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

static bool open_all(eval_state *state, const char *place) {
    const eval_options *options = state->options;
    octet_lab_set_options set = OCTET_LAB_SET_OPTIONS_DEFAULT;
    if (!open_engine(options, place, true, &state->tested)) return false;
    set.model = state->tested.model;
    set.classes_file = options->classes;
    if (octet_lab_set_open(options->data, &set, &state->set) != OCTET_OK) return failed();
    octet_task task = octet_lab_set_task(state->set);
    if (!fits(place, state->tested.model, task, 0, options->data)) return false;
    state->batch = (size_t)octet_model_batch(state->tested.model);
    if (options->reference != NULL) {
        if (!open_engine(options, options->reference, false, &state->reference) ||
            !fits(options->reference, state->reference.model, task, octet_model_class_count(state->tested.model),
                  place))
            return false;
        size_t other = (size_t)octet_model_batch(state->reference.model);
        if (other > state->batch) state->batch = other;
        state->reference.results = calloc(state->batch, sizeof(octet_result *));
        if (state->reference.results == NULL) return no_memory();
    }
    state->tested.results = calloc(state->batch, sizeof(octet_result *));
    state->samples = calloc(state->batch, sizeof *state->samples);
    state->pictures = calloc(state->batch, sizeof *state->pictures);
    if (state->tested.results == NULL || state->samples == NULL || state->pictures == NULL) return no_memory();
    state->figures = (eval_figures){.task = task,
                                    .with_reference = options->reference != NULL,
                                    .threshold = options->threshold,
                                    .draws = (size_t)options->draws};
    return open_lines(state);
}

static void close_engine(eval_side *side) {
    octet_session_free(&side->session);
    octet_model_close(&side->model);
    free(side->results);
}

/* ---- */

static bool report(eval_state *state, const char *place) {
    const eval_options *options = state->options;
    const char *orientation = options->orientation == 1 ? "stored" : "upright";
    const char *fingerprint = octet_lab_set_fingerprint(state->set), *order = octet_lab_set_order(state->set);
    if (state->figures.n == 0) {
        fprintf(stderr, "octet eval: %s: no pictures in it\n", options->data);
        return false;
    }
    if (!options->common.json) {
        printf("%s%s%s on %s\n", place, options->recipe != NULL ? ", recipe " : "",
               options->recipe != NULL ? options->recipe : "", options->data);
        if (options->reference != NULL) printf("beside %s\n", options->reference);
        printf("  labels: %s; pictures: %s; set: %.16s\n", order, orientation, fingerprint);
    }
    json_t *out = eval_report(&state->figures);
    if (out == NULL) return no_memory();
    if (!options->common.json) {
        print_figures(out);
        json_decref(out);
        return true;
    }
    json_object_set_new(out, "model", json_text(place));
    json_object_set_new(out, "recipe", options->recipe != NULL ? json_text(options->recipe) : json_null());
    json_object_set_new(out, "model_fingerprint", json_string(octet_model_fingerprint(state->tested.model)));
    if (options->reference != NULL) {
        json_object_set_new(out, "reference", json_text(options->reference));
        json_object_set_new(out, "reference_fingerprint", json_string(octet_model_fingerprint(state->reference.model)));
    }
    json_object_set_new(out, "data", json_text(options->data));
    json_object_set_new(out, "data_fingerprint", json_string(fingerprint));
    json_object_set_new(out, "labels", json_string(order));
    json_object_set_new(out, "orientation", json_string(orientation));
    json_object_set_new(out, "draws", json_integer(options->draws));
    json_object_set_new(out, "seed", json_integer(EVAL_SEED));
    return print_json(out);
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
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_eval, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1) return usage_error(&verb_eval, "expected one MODEL, found %d words", left);
    if (options.data == NULL) return usage_error(&verb_eval, "expected --data SET");
    if (is_results_file(words[0])) {
        if (options.reference != NULL || options.samples != NULL || options.limit != 0)
            return usage_error(&verb_eval, "a file of detections goes with --data and --draws only");
        return eval_results(words[0], options.data, (size_t)options.draws, options.common.json);
    }
    eval_state state = {.options = &options};
    catch_signals();
    bool good = open_all(&state, words[0]) && run_set(&state);
    good = close_lines(&state, good && state.figures.n > 0) && good;
    (void)signal(SIGINT, SIG_DFL); /* what is left to do leaves nothing behind */
    (void)signal(SIGTERM, SIG_DFL);
    good = good && report(&state, words[0]);
    eval_figures_free(&state.figures);
    octet_lab_set_close(&state.set);
    close_engine(&state.tested);
    close_engine(&state.reference);
    free(state.samples);
    free(state.pictures);
    return good ? EXIT_DONE : EXIT_BAD;
}

const verb_row verb_eval = {"eval", "MODEL|DETECTIONS.json --data SET",
                            "quality on a data set, alone or beside a reference", run_eval};
