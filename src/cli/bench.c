/* SPDX-License-Identifier: Apache-2.0 */
/* octet bench: times of models and recipes, taken in turns in one process. The first is the base of every ratio. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/statistics.h"
#include "octet/lab.h"
#include "options.h"
#include "output.h"

#define BATCHES 16
#define RECIPES 64
#define DRAWS 10000
#define SEED 1
#define WARM_UP_RUNS 3
/* Written between cold runs; well above a core's second-level cache. */
#define COLD_BYTES ((size_t)64 << 20)

typedef struct bench_options {
    common_options common;
    const char *batch, *picture, *classes, *recipes, *scales;
    int64_t rounds;
    double seconds;
    int scope; /* index into "graph|task" */
    bool cold;
} bench_options;

static const char *const scopes[] = {"graph", "task"};

/* One model and recipe at one batch. */
typedef struct candidate {
    const char *place, *recipe, *scales; /* recipe and scales NULL: as a bundle has it, or float32 */
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
    open.recipe = c->recipe;
    open.scales = c->scales;
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
        return print_json(json_pack(
            "{s:o, s:s, s:s, s:I, s:s, s:b, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:s}", "model", json_text(c->place),
            "recipe", c->recipe != NULL ? c->recipe : "", "device", "cpu", "batch", (json_int_t)c->batch, "scope",
            scopes[options->scope], "cold", options->cold, "threads", (json_int_t)options->common.threads, "median_ms",
            f->median, "p25_ms", f->p25, "p75_ms", f->p75, "runs", (json_int_t)rounds, "ratio", f->ratio.ratio,
            "ratio_low", f->ratio.low, "ratio_high", f->ratio.high, "verdict", f->verdict));
    }
    printf("%-40s %-20s %6lld %-6s %10.3f %10.3f %10.3f %6zu   %.3f [%.3f, %.3f]  %s\n", c->place,
           c->recipe != NULL ? c->recipe : "", (long long)c->batch, scopes[options->scope], f->median, f->p25, f->p75,
           rounds, f->ratio.ratio, f->ratio.low, f->ratio.high, f->verdict);
    return true;
}

static void print_heading(const bench_options *options) {
    char *machine;
    if (octet_lab_machine(&machine) == OCTET_OK) printf("%s\n", machine);
    octet_free(machine);
    printf("octet %s, %s%s; the last timed outputs equal the untimed ones; ratio: first model's median over this "
           "one's, 95%% bootstrap interval\n",
           octet_version(), options->scope == 1 ? "from file bytes to result" : "engine alone",
           options->cold ? ", cold caches" : "");
    printf("%-40s %-20s %6s %-6s %10s %10s %10s %6s   %s\n", "model", "recipe", "batch", "scope", "median ms", "p25",
           "p75", "runs", "ratio");
}

static void close_candidates(candidate *candidates, size_t count) {
    for (size_t i = 0; i < count; i++) {
        octet_session_free(&candidates[i].session);
        octet_model_close(&candidates[i].model);
        free(candidates[i].seconds);
    }
}

/* Every model with every recipe, in this order, at one batch. */
static int bench_batch(const bench_options *options, const candidate *wanted, size_t count, int64_t batch) {
    size_t capacity = (size_t)(options->rounds > 100000 ? options->rounds : 100000), rounds = 0;
    candidate *candidates = calloc(count, sizeof *candidates);
    bool good = candidates != NULL;
    int code = EXIT_DONE;
    for (size_t i = 0; good && i < count; i++) {
        candidates[i] = wanted[i];
        candidates[i].batch = batch;
        candidates[i].seconds = malloc(capacity * sizeof(double));
        good = candidates[i].seconds != NULL && open_candidate(&candidates[i], options);
    }
    if (!good || !run_rounds(candidates, count, options, capacity, &rounds)) code = print_failure("bench");
    for (size_t i = 0; code == EXIT_DONE && i < count; i++) {
        figures f;
        if (!outputs_held(&candidates[i]))
            code = EXIT_BAD;
        else if (!compute(&candidates[0], &candidates[i], rounds, &f) || !report(&candidates[i], options, rounds, &f))
            code = EXIT_BAD;
    }
    if (candidates != NULL) close_candidates(candidates, count);
    free(candidates);
    return code;
}

/* Cuts "a,b" in place into `words`; returns how many there are, 0 if one is empty or they are too many. */
static size_t split_list(char *list, const char **words) {
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

/* Places times recipes. Each recipe has its scale file, "-" for none, or one file serves all. */
static int make_candidates(const bench_options *options, int count, char **places, char *recipes, char *scales,
                           candidate *wanted, size_t *made) {
    const char *names[RECIPES] = {NULL}, *files[RECIPES] = {NULL};
    size_t name_count = recipes != NULL ? split_list(recipes, names) : 1;
    size_t file_count = scales != NULL ? split_list(scales, files) : 1;
    if (name_count == 0 || file_count == 0)
        return usage_error(&verb_bench, "--recipe, --scales: expected up to %d names parted by commas", RECIPES);
    if (options->scales != NULL && options->recipes == NULL)
        return usage_error(&verb_bench, "--scales goes with --recipe");
    if (file_count != 1 && file_count != name_count)
        return usage_error(&verb_bench, "--scales: expected one file, or one for each of %zu recipes, found %zu",
                           name_count, file_count);
    *made = 0;
    for (int i = 0; i < count; i++) {
        for (size_t r = 0; r < name_count; r++) {
            const char *file = files[file_count == 1 ? 0 : r], *name = names[r];
            const bool none = file == NULL || strcmp(file, "-") == 0 || strcmp(name, "fp32") == 0;
            wanted[(*made)++] = (candidate){.place = places[i], .recipe = name, .scales = none ? NULL : file};
        }
    }
    return EXIT_DONE;
}

static char *copy_of(const char *text) {
    return text != NULL ? strdup(text) : NULL;
}

static int bench_all(const bench_options *options, int count, char **places, const int64_t *batches, int batch_count) {
    char *recipes = copy_of(options->recipes), *scales = copy_of(options->scales);
    candidate *wanted = calloc((size_t)count * RECIPES, sizeof *wanted);
    size_t made = 0;
    int code = EXIT_BAD;
    if (wanted == NULL || (options->recipes != NULL && recipes == NULL) || (options->scales != NULL && scales == NULL))
        fprintf(stderr, "octet bench: out of memory\n");
    else
        code = make_candidates(options, count, places, recipes, scales, wanted, &made);
    if (code == EXIT_DONE && !options->common.json) print_heading(options);
    for (int i = 0; i < batch_count && code == EXIT_DONE; i++) code = bench_batch(options, wanted, made, batches[i]);
    free(wanted);
    free(scales);
    free(recipes);
    return code;
}

static int run_bench(int count, char **words) {
    bench_options options = {.batch = "1", .rounds = 30, .seconds = 2.0};
    int64_t batches[BATCHES];
    const option_row rows[] = {
        {OPTION_TEXT, "--recipe", "R,...", "of each checkpoint: names or files as elsewhere, e.g. fp32,int8",
         &options.recipes, 0, 0},
        {OPTION_TEXT, "--scales", "FILE,...", "one for all recipes, or one for each (- for none)", &options.scales, 0,
         0},
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
    return bench_all(&options, left, words, batches, batch_count);
}

const verb_row verb_bench = {"bench", "MODEL...", "times of one or several models, taken in turns", run_bench};
