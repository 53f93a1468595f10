/* SPDX-License-Identifier: Apache-2.0 */
/* octet calibrate: from pictures to a scale file. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

typedef struct calibrate_options {
    common_options common;
    const char *data, *recipe, *output, *classes;
    int64_t limit;
    int orientation; /* index into "upright|stored" */
} calibrate_options;

typedef struct calibrate_state {
    bool quiet;
    progress_line shown;
    octet_lab_calibrate_event last;
} calibrate_state;

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

/* The first Ctrl-C ends after the picture that runs, with what was seen kept; a second one ends at once. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int on_picture(void *user, const octet_lab_calibrate_event *event) {
    static const char *const names[] = {"ranges", "statistics"};
    calibrate_state *state = user;
    if (event->pass != state->last.pass) {
        if (state->last.pass > 0) progress_end(&state->shown);
        state->shown = progress_start(names[event->pass > 1], (size_t)event->pictures, state->quiet);
    }
    state->last = *event;
    progress_update(&state->shown, (size_t)event->done);
    return interrupted != 0;
}

static int report(const calibrate_options *options, const octet_lab_calibrate_event *e, double seconds) {
    if (options->common.json) {
        return print_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "scales", json_text(options->output), "pictures",
                                    (json_int_t)e->done, "resumed", (json_int_t)e->resumed, "tensors",
                                    (json_int_t)e->tensors, "memory_bytes", (json_int_t)e->memory, "values",
                                    (json_int_t)e->values))
                   ? EXIT_DONE
                   : EXIT_BAD;
    }
    printf("%s  %llu tensors over %llu pictures", options->output, (unsigned long long)e->tensors,
           (unsigned long long)e->done);
    if (e->resumed > 0) printf(" (%llu from an earlier run)", (unsigned long long)e->resumed);
    printf(", %.1f MB held whatever their number  %.1f s\n", (double)e->memory * 1e-6, seconds);
    printf("next: octet eval CHECKPOINT --recipe %s --scales %s --data SET --reference CHECKPOINT\n", options->recipe,
           options->output);
    return EXIT_DONE;
}

static int calibrate(const char *place, const calibrate_options *options) {
    octet_lab_calibrate_options lab = OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT;
    lab.recipe = options->recipe;
    lab.data = options->data;
    lab.limit = options->limit;
    lab.threads = (uint32_t)options->common.threads;
    lab.orientation = options->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    lab.classes_file = options->classes;
    calibrate_state state = {.quiet = options->common.quiet};
    double start = seconds_now();
    catch_signals();
    octet_status status = octet_lab_calibrate(place, &lab, on_picture, &state, options->output);
    if (state.last.pass > 0) progress_end(&state.shown);
    if (status != OCTET_OK) return print_failure("calibrate");
    return report(options, &state.last, seconds_now() - start);
}

static int run_calibrate(int count, char **words) {
    calibrate_options options = {0};
    const option_row rows[] = {
        {OPTION_TEXT, "--data", "SET",
         "directory with labels.txt, image folder, .tar shards, or COCO instances.json[:PICTURES]", &options.data, 0,
         0},
        {OPTION_TEXT, "--recipe", "R", "int8, fp8, a recipe of the family, or a .yaml file", &options.recipe, 0, 0},
        {OPTION_TEXT, "-o", "SCALES", "where to write the scale file (.json)", &options.output, 0, 0},
        {OPTION_INT, "--limit", "N", "the first N pictures; 0: all (default)", &options.limit, 0, INT32_MAX},
        {OPTION_CHOICE, "--orientation", "upright|stored", "apply EXIF orientation (default) or not",
         &options.orientation, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_calibrate, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1 || options.data == NULL || options.recipe == NULL || options.output == NULL)
        return usage_error(&verb_calibrate, "expected one CHECKPOINT, --data SET, --recipe R and -o SCALES");
    return calibrate(words[0], &options);
}

const verb_row verb_calibrate = {"calibrate", "CHECKPOINT --data SET --recipe R -o SCALES",
                                 "the scales a recipe needs, from pictures; stopped, it goes on where it was",
                                 run_calibrate};
