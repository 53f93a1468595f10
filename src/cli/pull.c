/* SPDX-License-Identifier: Apache-2.0 */
/* octet pull: from the hub into the local Hugging Face cache. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

#define SHOW_SECONDS 0.1 /* between two progress lines */
#define RATE_SECONDS 1.0 /* before a rate is said */
#define KILO 1000.0

typedef struct pull_options {
    common_options common;
    bool dataset;
    const char *include;
    int64_t timeout;
} pull_options;

typedef struct pull_state {
    const pull_options *options;
    bool terminal;       /* progress is shown */
    double start, shown; /* seconds_now */
    uint64_t before;     /* bytes that were there when the first byte came */
    bool started, line;  /* bytes come; a progress line stands */
    size_t fetched, files;
    uint64_t bytes; /* of the files told of */
    bool failed;    /* something could not be written */
} pull_state;

static volatile sig_atomic_t interrupted; /* the signal */

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

/* The first Ctrl-C stops in order; a second one ends the process as ever, which loses nothing either. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* "12.3 MB"; of two numbers in one text each has its own buffer */
static const char *size_text(double bytes, char text[32]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= KILO && unit + 1 < sizeof units / sizeof *units) bytes /= KILO, unit++;
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

/* Names come from the hub, which let no control character pass. */
static void clear_line(pull_state *state) {
    if (state->line) fprintf(stderr, "\r\033[K");
    state->line = false;
}

static void show_progress(pull_state *state, const octet_lab_pull_event *event) {
    double now = seconds_now();
    if (!state->terminal || now - state->shown < SHOW_SECONDS) return;
    char done[32], size[32], rate_text[32];
    bool whole = event->all_size > 0;
    uint64_t have = whole ? event->all_done : event->done, of = whole ? event->all_size : event->size;
    clear_line(state);
    state->shown = now;
    state->line = true;
    if (event->state == OCTET_LAB_PULL_WAITING) {
        fprintf(stderr, "pull  %s  %s", event->file, event->note);
        return;
    }
    if (event->state == OCTET_LAB_PULL_ASKING) {
        fprintf(stderr, "pull  asks the hub");
        return;
    }
    fprintf(stderr, "pull  %zu/%zu  %s  %s of %s", event->index + 1, event->count, event->file,
            size_text((double)have, done), size_text((double)of, size));
    double seconds = now - state->start, rate = (double)(event->all_done - state->before) / seconds;
    if (state->started && seconds >= RATE_SECONDS && event->all_done > state->before) {
        fprintf(stderr, "  %s/s  %.0f s left", size_text(rate, rate_text),
                of > have ? (double)(of - have) / rate : 0.0);
    }
}

static void print_file(pull_state *state, const octet_lab_pull_event *event) {
    bool cached = event->state == OCTET_LAB_PULL_CACHED;
    char size[32];
    state->files++;
    state->fetched += cached ? 0 : 1;
    state->bytes += event->size;
    clear_line(state);
    if (!state->options->common.json) {
        if (!cached) printf("%s  %s\n", event->file, size_text((double)event->size, size));
        fflush(stdout);
        return;
    }
    json_t *object = json_object();
    json_object_set_new(object, "file", json_string(event->file));
    json_object_set_new(object, "size", json_integer((json_int_t)event->size));
    json_object_set_new(object, "sha256", json_string(event->sha256));
    json_object_set_new(object, "cached", json_boolean(cached));
    if (!print_json(object)) state->failed = true;
    fflush(stdout);
}

static int watch(void *user, const octet_lab_pull_event *event) {
    pull_state *state = user;
    switch (event->state) {
    case OCTET_LAB_PULL_FETCHED:
    case OCTET_LAB_PULL_CACHED:
        print_file(state, event);
        break;
    case OCTET_LAB_PULL_RETRYING:
        clear_line(state);
        if (!state->options->common.quiet) fprintf(stderr, "octet pull: %s; trying again\n", event->note);
        break;
    case OCTET_LAB_PULL_FETCHING:
        if (!state->started) {
            state->started = true;
            state->start = seconds_now();
            state->before = event->all_done;
        }
        show_progress(state, event);
        break;
    case OCTET_LAB_PULL_ASKING:
    case OCTET_LAB_PULL_WAITING:
        show_progress(state, event);
        break;
    }
    return interrupted != 0 || state->failed;
}

static int finish(const pull_state *state, octet_status status, const char *id, const char *directory) {
    if (status == OCTET_CANCELLED && interrupted != 0) {
        fprintf(stderr, "octet pull: stopped; the same command goes on from here\n");
        fflush(stdout);
        raise(interrupted); /* as whoever started us expects; its handler was reset */
        return EXIT_BAD;
    }
    if (status == OCTET_VERIFICATION) {
        print_failure("pull");
        return EXIT_WRONG;
    }
    if (status != OCTET_OK) return print_failure("pull");
    if (!state->options->common.json) {
        char size[32];
        printf("%s: %s%zu file%s, %s, in %s\n", id, state->fetched == 0 ? "already complete: " : "", state->files,
               state->files == 1 ? "" : "s", size_text((double)state->bytes, size), directory);
    }
    return EXIT_DONE;
}

static int run_pull(int count, char **words) {
    pull_options options = {.timeout = 30};
    const option_row rows[] = {
        {OPTION_FLAG, "--dataset", NULL, "a data set's repository: all its files", &options.dataset, 0, 0},
        {OPTION_TEXT, "--include", "GLOB", "the files whose names match, instead", &options.include, 0, 0},
        {OPTION_INT, "--timeout", "SECONDS", "to wait for a byte (default 30)", &options.timeout, 1, 3600},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    count = options_read(&verb_pull, rows, &options.common, count, words);
    if (count < 0) return count == -2 ? EXIT_DONE : EXIT_USAGE;
    if (count != 1) return usage_error(&verb_pull, "expected one ID, found %d", count);
    octet_lab_pull_options asked = OCTET_LAB_PULL_OPTIONS_DEFAULT;
    asked.id = words[0];
    asked.dataset = options.dataset;
    asked.include = options.include;
    asked.timeout = (uint32_t)options.timeout;
    pull_state state = {.options = &options, .terminal = !options.common.quiet && isatty(STDERR_FILENO)};
    char *directory = NULL;
    catch_signals();
    octet_status status = octet_lab_pull(&asked, watch, &state, &directory);
    clear_line(&state);
    int code = finish(&state, status, words[0], directory);
    octet_free(directory);
    return code;
}

const verb_row verb_pull = {"pull", "ID[@REVISION]", "files from the hub into the local Hugging Face cache", run_pull};
