/* SPDX-License-Identifier: Apache-2.0 */
/* octet bench: times of models, taken in turns in one process. The first model is the base of every ratio. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/statistics.h"
#include "octet/lab.h"
#include "options.h"
#include "output.h"

#define BATCHES 16
#define DRAWS 10000
#define SEED 1
#define WARM_UP_RUNS 3
/* Written between cold runs; well above a core's second-level cache. */
#define COLD_BYTES ((size_t)64 << 20)

typedef struct bench_options {
    common_options common;
    const char *batch, *picture, *classes;
    int64_t rounds;
    double seconds;
    int scope; /* index into "graph|task" */
    bool cold;
} bench_options;

static const char *const scopes[] = {"graph", "task"};

/* One model at one batch. */
typedef struct candidate {
    const char *place;
    int64_t batch;
    octet_model *model;
    octet_session *session;
    double *seconds; /* a round each */
    uint64_t checksum;
} candidate;

/* ---- one run */

static octet_status run_task(candidate *c, const char *picture, double *seconds) {
    octet_picture *pictures = calloc((size_t)c->batch, sizeof *pictures);
    octet_result **results = calloc((size_t)c->batch, sizeof *results);
    octet_status status = OCTET_OUT_OF_MEMORY;
    if (pictures != NULL && results != NULL) {
        for (int64_t i = 0; i < c->batch; i++) {
            pictures[i] = (octet_picture)OCTET_PICTURE_DEFAULT;
            pictures[i].path = picture;
        }
        double start = seconds_now();
        status = octet_session_run(c->session, pictures, (size_t)c->batch, results);
        *seconds = seconds_now() - start;
        for (int64_t i = 0; i < c->batch; i++) octet_result_free(&results[i]);
    }
    free(results);
    free(pictures);
    return status;
}

static void flush_caches(void) {
    static char *buffer;
    if (buffer == NULL) buffer = malloc(COLD_BYTES);
    if (buffer == NULL) return;
    static char value;
    memset(buffer, ++value, COLD_BYTES);
}

static octet_status run_once(candidate *c, const bench_options *options, double *seconds) {
    if (options->cold) flush_caches();
    if (options->scope == 1) return run_task(c, options->picture, seconds);
    return octet_lab_time_engine(c->session, 1, seconds);
}

/* ---- rounds */

static bool open_candidate(candidate *c, const bench_options *options) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options session = OCTET_SESSION_OPTIONS_DEFAULT;
    open.batch = c->batch;
    open.threads = session.threads = (uint32_t)options->common.threads;
    open.classes_file = options->classes;
    double unused;
    if (octet_model_open(c->place, &open, &c->model) != OCTET_OK) return false;
    if (octet_session_new(c->model, &session, &c->session) != OCTET_OK) return false;
    for (int i = 0; i < WARM_UP_RUNS; i++) {
        if (run_once(c, options, &unused) != OCTET_OK) return false;
    }
    return octet_lab_output_checksum(c->session, &c->checksum) == OCTET_OK;
}

/* Candidates take turns, in an order that rotates, until both the least number of rounds and the time are reached. */
static bool run_rounds(candidate *candidates, size_t count, const bench_options *options, size_t capacity,
                       size_t *rounds) {
    double start = seconds_now(), spent = 0.0;
    progress_line shown = progress_start("bench", capacity, options->common.quiet);
    size_t done = 0;
    while (done < capacity && (done < (size_t)options->rounds || spent < options->seconds * (double)count)) {
        for (size_t i = 0; i < count; i++) {
            candidate *c = &candidates[(i + done) % count];
            if (run_once(c, options, &c->seconds[done]) != OCTET_OK) return false;
        }
        spent = seconds_now() - start;
        progress_update(&shown, ++done);
    }
    progress_end(&shown);
    *rounds = done;
    return true;
}

/* The last timed run must have given what the untimed warm-up gave. */
static bool outputs_held(candidate *c) {
    uint64_t checksum;
    if (octet_lab_output_checksum(c->session, &checksum) == OCTET_OK && checksum == c->checksum) return true;
    fprintf(stderr, "octet bench: %s: the last timed run gave other outputs than the untimed one\n", c->place);
    return false;
}

/* ---- report */

typedef struct figures {
    double median, p25, p75;
    ratio_interval ratio;
    const char *verdict;
} figures;

static bool compute(const candidate *base, const candidate *c, size_t rounds, figures *out) {
    double *sorted = malloc(rounds * sizeof *sorted);
    if (sorted == NULL || !bootstrap_median_ratio(base->seconds, c->seconds, rounds, DRAWS, SEED, &out->ratio)) {
        free(sorted);
        return false;
    }
    memcpy(sorted, c->seconds, rounds * sizeof *sorted);
    out->median = 1e3 * quantile(sorted, rounds, 0.5);
    out->p25 = 1e3 * quantile(sorted, rounds, 0.25);
    out->p75 = 1e3 * quantile(sorted, rounds, 0.75);
    out->verdict = base == c ? "base" : comparison_word(compare_times(&out->ratio, rounds));
    free(sorted);
    return true;
}

static bool report(const candidate *c, const bench_options *options, size_t rounds, const figures *f) {
    if (options->common.json) {
        return print_json(json_pack("{s:o, s:s, s:s, s:I, s:s, s:b, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:s}",
                                    "model", json_text(c->place), "recipe", "fp32", "device", "cpu", "batch",
                                    (json_int_t)c->batch, "scope", scopes[options->scope], "cold", options->cold,
                                    "threads", (json_int_t)options->common.threads, "median_ms", f->median, "p25_ms",
                                    f->p25, "p75_ms", f->p75, "runs", (json_int_t)rounds, "ratio", f->ratio.ratio,
                                    "ratio_low", f->ratio.low, "ratio_high", f->ratio.high, "verdict", f->verdict));
    }
    printf("%-40s %6lld %-6s %10.3f %10.3f %10.3f %6zu   %.3f [%.3f, %.3f]  %s\n", c->place, (long long)c->batch,
           scopes[options->scope], f->median, f->p25, f->p75, rounds, f->ratio.ratio, f->ratio.low, f->ratio.high,
           f->verdict);
    return true;
}

static void print_heading(const bench_options *options) {
    char *machine;
    if (octet_lab_machine(&machine) == OCTET_OK) printf("%s\n", machine);
    octet_free(machine);
    printf("octet %s, fp32, %s%s; the last timed outputs equal the untimed ones; ratio: first model's median over this "
           "one's, 95%% bootstrap interval\n",
           octet_version(), options->scope == 1 ? "from file bytes to result" : "engine alone",
           options->cold ? ", cold caches" : "");
    printf("%-40s %6s %-6s %10s %10s %10s %6s   %s\n", "model", "batch", "scope", "median ms", "p25", "p75", "runs",
           "ratio");
}

static void close_candidates(candidate *candidates, size_t count) {
    for (size_t i = 0; i < count; i++) {
        octet_session_free(&candidates[i].session);
        octet_model_close(&candidates[i].model);
        free(candidates[i].seconds);
    }
}

/* All models at one batch. */
static int bench_batch(const bench_options *options, int count, char **places, int64_t batch) {
    size_t capacity = (size_t)(options->rounds > 100000 ? options->rounds : 100000), rounds = 0, opened = (size_t)count;
    candidate *candidates = calloc(opened, sizeof *candidates);
    bool good = candidates != NULL;
    int code = EXIT_DONE;
    for (size_t i = 0; good && i < opened; i++) {
        candidates[i].place = places[i];
        candidates[i].batch = batch;
        candidates[i].seconds = malloc(capacity * sizeof(double));
        good = candidates[i].seconds != NULL && open_candidate(&candidates[i], options);
    }
    if (!good || !run_rounds(candidates, opened, options, capacity, &rounds)) code = print_failure("bench");
    for (size_t i = 0; code == EXIT_DONE && i < opened; i++) {
        figures f;
        if (!outputs_held(&candidates[i]))
            code = EXIT_BAD;
        else if (!compute(&candidates[0], &candidates[i], rounds, &f) || !report(&candidates[i], options, rounds, &f))
            code = EXIT_BAD;
    }
    if (candidates != NULL) close_candidates(candidates, opened);
    free(candidates);
    return code;
}

static int run_bench(int count, char **words) {
    bench_options options = {.batch = "1", .rounds = 30, .seconds = 2.0};
    int64_t batches[BATCHES];
    const option_row rows[] = {
        {OPTION_TEXT, "--batch", "N,...", "pictures at once (default 1)", &options.batch, 0, 0},
        {OPTION_CHOICE, "--scope", "graph|task", "engine alone (default), or from file bytes to result", &options.scope,
         0, 0},
        {OPTION_TEXT, "--picture", "FILE", "the picture of --scope task", &options.picture, 0, 0},
        {OPTION_INT, "--runs", "N", "at least so many rounds (default 30)", &options.rounds, 2, 1000000},
        {OPTION_REAL, "--seconds", "S", "and at least so long a model (default 2)", &options.seconds, 0, 0},
        {OPTION_FLAG, "--cold", NULL, "caches overwritten before each run", &options.cold, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_bench, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left < 1) return usage_error(&verb_bench, "expected at least one MODEL");
    if ((options.scope == 1) != (options.picture != NULL))
        return usage_error(&verb_bench, "--scope task and --picture go together");
    int batch_count = parse_batches(options.batch, batches, BATCHES);
    if (batch_count == 0)
        return usage_error(&verb_bench, "--batch: expected up to 16 numbers of 1 to 1024, found \"%s\"", options.batch);
    if (!options.common.json) print_heading(&options);
    int code = EXIT_DONE;
    for (int i = 0; i < batch_count && code == EXIT_DONE; i++) code = bench_batch(&options, left, words, batches[i]);
    return code;
}

const verb_row verb_bench = {"bench", "MODEL...", "times of one or several models, taken in turns", run_bench};
