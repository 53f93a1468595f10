/* SPDX-License-Identifier: Apache-2.0 */
/* octet study: a comparison that anyone can run again, from its file to a decision. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"
#include "study/compare.h"
#include "study/decision.h"
#include "study/report.h"
#include "study/run.h"
#include "study/verify.h"

typedef struct study_options {
    common_options common;
    const char *evidence, *scales, *output, *readme, *html;
    int64_t sample, seed;
} study_options;

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

/* The first Ctrl-C ends after the picture that runs, with everything kept; a second one ends at once, and loses no more
 * than a second's work. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int failed(void) {
    fprintf(stderr, "octet study: %s\n", study_error_text());
    return EXIT_BAD;
}

/* ---- the study and what lies beside it */

/* STUDY.yaml -> STUDY.sqlite; heap. */
static char *beside(const char *study, const char *suffix) {
    size_t length = strlen(study), size = length + strlen(suffix) + 1;
    const char *dot = strrchr(study, '.');
    if (dot != NULL && strchr(dot, '/') == NULL) length = (size_t)(dot - study);
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%.*s%s", (int)length, study, suffix);
    return path;
}

/* The README.md in its folder; heap. */
static char *readme_beside(const char *study) {
    const char *slash = strrchr(study, '/');
    size_t folder = slash != NULL ? (size_t)(slash - study) + 1 : 0, size = folder + sizeof "README.md";
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%.*sREADME.md", (int)folder, study);
    return path;
}

typedef struct opened_study {
    study_file file;
    char *evidence, *scales, *readme, *html;
} opened_study;

static bool open_study(const char *path, const study_options *options, opened_study *out) {
    *out = (opened_study){0};
    if (study_file_read(&out->file, path) != OCTET_OK) {
        failed();
        return false;
    }
    out->evidence = options->evidence != NULL ? strdup(options->evidence) : beside(path, ".sqlite");
    out->scales = options->scales != NULL ? strdup(options->scales) : beside(path, ".scales");
    out->readme = options->readme != NULL ? strdup(options->readme) : readme_beside(path);
    out->html = options->html != NULL ? strdup(options->html) : beside(path, ".html");
    return out->evidence != NULL && out->scales != NULL && out->readme != NULL && out->html != NULL;
}

static void close_study(opened_study *study) {
    study_file_free(&study->file);
    free(study->evidence);
    free(study->scales);
    free(study->readme);
    free(study->html);
}

/* ---- run */

typedef struct shown_task {
    progress_line line;
    char what[160];
    size_t number;
    bool quiet;
} shown_task;

static void on_progress(void *user, const study_progress *progress) {
    shown_task *shown = user;
    if (progress->task_number != shown->number) {
        progress_end(&shown->line);
        shown->number = progress->task_number;
        snprintf(shown->what, sizeof shown->what, "task %zu of %zu: %s %s", progress->task_number, progress->task_count,
                 progress->task, progress->set[0] != '\0' ? progress->set : progress->variant);
        shown->line = progress_start(shown->what, progress->total, shown->quiet);
        if (progress->total == 0 && !shown->quiet && isatty(STDERR_FILENO)) fprintf(stderr, "\r%s\033[K", shown->what);
        shown->line.shown = progress->total == 0 && !shown->quiet && isatty(STDERR_FILENO);
    }
    progress_update(&shown->line, progress->done);
}

static bool on_stop(void *user) {
    (void)user;
    return interrupted != 0;
}

static study_run_options run_options(const opened_study *study, shown_task *shown) {
    return (study_run_options){.evidence = study->evidence,
                               .scales = study->scales,
                               .commit_seconds = 1.0,
                               .progress = on_progress,
                               .stop = on_stop,
                               .user = shown};
}

static int print_status(const opened_study *study, const study_options *options);

static int run_study(const opened_study *study, const study_options *options) {
    study_octet octet = {.study = &study->file, .threads = (uint32_t)options->common.threads};
    shown_task shown = {.quiet = options->common.quiet};
    const study_engine engine = study_engine_octet(&octet);
    const study_run_options run = run_options(study, &shown);
    catch_signals();
    octet_status status = study_run(&study->file, &engine, &run);
    progress_end(&shown.line);
    study_octet_close(&octet);
    return status == OCTET_OK ? print_status(study, options) : failed();
}

/* ---- status */

static json_t *bound_json(const decided_bound *b) {
    return json_pack("{s:s, s:s, s:s, s:f, s:s, s:o, s:o, s:o, s:s, s:s}", "rule", b->rule->name, "figure",
                     b->bound->figure, "side", b->bound->at_most ? "at most" : "at least", "limit", b->bound->limit,
                     "outcome", bound_outcome_text(b->outcome), "value", json_float(b->value), "low",
                     json_float(b->low), "high", json_float(b->high), "id", b->figure, "text", b->text);
}

static bool print_decision_json(const opened_study *study, const decision *d, const study_state_of *count) {
    json_t *bounds = json_array(), *revisits = json_array();
    for (size_t i = 0; i < d->bound_count; i++) json_array_append_new(bounds, bound_json(&d->bounds[i]));
    for (size_t i = 0; i < d->revisit_count; i++) {
        const decided_revisit *r = &d->revisits[i];
        json_array_append_new(revisits, json_pack("{s:s, s:s, s:s, s:o, s:s}", "when", r->revisit->text, "because",
                                                  r->revisit->because, "holds",
                                                  !r->known  ? "unknown"
                                                  : r->holds ? "yes"
                                                             : "no",
                                                  "value", json_float(r->value), "id", r->figure));
    }
    return print_json(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "study", study->file.name, "candidate",
                                d->variant, "verdict", decision_word_text(d->word), "tasks", (json_int_t)count->tasks,
                                "done", (json_int_t)count->done, "earlier_openings", (json_int_t)d->earlier_openings,
                                "bounds", bounds, "revisit", revisits));
}

static void print_decision(const decision *d) {
    printf("\n%s: %s\n", d->variant, decision_word_text(d->word));
    if (d->earlier_openings > 0)
        printf("  its recipe was changed after the verdict set had been opened for it (%zu earlier)\n",
               d->earlier_openings);
    for (size_t i = 0; i < d->bound_count; i++)
        printf("  %-12s %s  %.12s\n", d->bounds[i].rule->name, d->bounds[i].text, d->bounds[i].figure);
    for (size_t i = 0; i < d->revisit_count; i++) {
        const decided_revisit *r = &d->revisits[i];
        printf("  revisit when %s: %s", r->revisit->text, !r->known ? "not measured" : r->holds ? "holds today" : "no");
        if (r->known) printf(", %.6g", r->value);
        printf(" (%s)\n", r->revisit->because);
    }
}

/* One decision an environment and candidate. */
static bool print_decisions(const opened_study *study, evidence_file *evidence, const study_state_of *count,
                            bool json) {
    evidence_rows environments;
    bool good = evidence_list(evidence, EVIDENCE_ENVIRONMENT, NULL, &environments) == OCTET_OK;
    for (size_t e = 0; good && e < environments.count; e++) {
        if (!json && environments.count > 1)
            printf("\non %s, %.12s\n", evidence_text(&environments.items[e], "device"), environments.items[e].id);
        for (size_t i = 0; good && i < study->file.candidate_count; i++) {
            decision made;
            good = decision_make(&study->file, evidence, study->file.candidates[i], environments.items[e].id, &made) ==
                   OCTET_OK;
            if (good && json) good = print_decision_json(study, &made, count);
            if (good && !json) print_decision(&made);
            if (good) decision_free(&made);
        }
    }
    if (good) evidence_rows_free(&environments);
    if (!good) failed();
    return good;
}

static int print_status(const opened_study *study, const study_options *options) {
    evidence_file *evidence;
    study_state_of count;
    if (access(study->evidence, F_OK) != 0) {
        if (!options->common.json) printf("%s  was not run yet: there is no %s\n", study->file.name, study->evidence);
        return EXIT_DONE;
    }
    if (evidence_open(study->evidence, EVIDENCE_READ, &evidence) != OCTET_OK) return failed();
    bool good =
        evidence_verify(evidence, NULL, NULL) == OCTET_OK && study_count(&study->file, evidence, &count) == OCTET_OK;
    if (!good) failed();
    if (good && !options->common.json) {
        if (count.tasks == 0)
            printf("%s  was not run yet, as its file stands now", study->file.name);
        else
            printf("%s  %zu of %zu tasks done", study->file.name, count.done, count.tasks);
        if (count.environments > 1) printf(", on %zu environments", count.environments);
        printf("%s\n", count.done < count.tasks ? ": figures are missing; octet study run goes on" : "");
    }
    good = good && print_decisions(study, evidence, &count, options->common.json);
    evidence_close(&evidence);
    return good ? EXIT_DONE : EXIT_BAD;
}

/* ---- verify */

static void on_problem(void *user, const char *text) {
    const study_options *options = user;
    if (options->common.json)
        (void)print_json(json_pack("{s:s}", "problem", text));
    else
        printf("  %s\n", text);
}

static int verify_evidence(const char *path, study_options *options) {
    evidence_file *evidence;
    if (evidence_open(path, EVIDENCE_READ, &evidence) != OCTET_OK) return failed();
    octet_status status = evidence_verify(evidence, on_problem, options);
    evidence_close(&evidence);
    if (status == OCTET_OK && !options->common.json) printf("%s  is as it was written\n", path);
    if (status == OCTET_OK) return EXIT_DONE;
    failed();
    return status == OCTET_VERIFICATION ? EXIT_WRONG : EXIT_BAD;
}

/* ---- rerun, compare */

static void print_side(const evidence_row *row) {
    if (row == NULL)
        printf(" %12s", "-");
    else
        printf(" %12.6g", evidence_number(row, "value"));
}

typedef struct compared_counts {
    size_t words[COMPARED_NEW_ONLY + 1];
    bool json, all; /* all: those that are the same, too */
} compared_counts;

static void on_compared(void *user, const compared_figure *f) {
    compared_counts *counts = user;
    counts->words[f->word]++;
    if (counts->json) {
        (void)print_json(json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:s}", "variant", f->variant, "set", f->set,
                                   "figure", f->name, "old",
                                   json_float(f->old != NULL ? evidence_number(f->old, "value") : (double)NAN), "new",
                                   json_float(f->fresh != NULL ? evidence_number(f->fresh, "value") : (double)NAN),
                                   "word", compared_word_text(f->word), "old_id", f->old != NULL ? f->old->id : "",
                                   "new_id", f->fresh != NULL ? f->fresh->id : ""));
        return;
    }
    if (f->word == COMPARED_SAME && !counts->all) return;
    printf("  %-16s %-9s %-24s", f->variant, f->set, f->name);
    print_side(f->old);
    print_side(f->fresh);
    printf("  %s\n", compared_word_text(f->word));
}

static void print_counts(const compared_counts *counts) {
    if (counts->json) return;
    for (int word = 0; word <= COMPARED_NEW_ONLY; word++)
        if (counts->words[word] > 0)
            printf("%zu figures: %s\n", counts->words[word], compared_word_text((compared_word)word));
}

static int rerun(const opened_study *study, const study_options *options) {
    study_octet octet = {.study = &study->file, .threads = (uint32_t)options->common.threads};
    shown_task shown = {.quiet = options->common.quiet};
    const study_engine engine = study_engine_octet(&octet);
    const study_run_options run = run_options(study, &shown);
    compared_counts counts = {.json = options->common.json, .all = true};
    bool held;
    catch_signals();
    octet_status status = study_rerun(&study->file, &engine, &run, (size_t)options->sample, (uint64_t)options->seed,
                                      on_compared, &counts, &held);
    progress_end(&shown.line);
    study_octet_close(&octet);
    if (status != OCTET_OK) return failed();
    print_counts(&counts);
    if (!options->common.json) printf("%s\n", held ? "they hold" : "they do not hold");
    return held ? EXIT_DONE : EXIT_WRONG;
}

static int compare(const char *old_path, const char *new_path, const study_options *options) {
    evidence_file *old = NULL, *fresh = NULL;
    compared_counts counts = {.json = options->common.json};
    octet_status status = evidence_open(old_path, EVIDENCE_READ, &old);
    if (status == OCTET_OK) status = evidence_open(new_path, EVIDENCE_READ, &fresh);
    if (status == OCTET_OK) status = study_compare(NULL, old, fresh, on_compared, &counts);
    evidence_close(&old);
    evidence_close(&fresh);
    if (status != OCTET_OK) return failed();
    print_counts(&counts);
    return EXIT_DONE;
}

/* ---- verbs of the verb */

static bool is_study_file(const char *path) {
    size_t length = strlen(path);
    return (length > 5 && strcmp(path + length - 5, ".yaml") == 0) ||
           (length > 4 && strcmp(path + length - 4, ".yml") == 0);
}

static int with_study(const char *path, const study_options *options,
                      int (*does)(const opened_study *, const study_options *)) {
    opened_study study;
    int code = open_study(path, options, &study) ? does(&study, options) : EXIT_BAD;
    close_study(&study);
    return code;
}

/* What is there of a study: its report may not be written yet, its scales may not have come along. */
static int verify_whole(const opened_study *study, const study_options *options) {
    const verify_files files = {.evidence = study->evidence,
                                .readme = access(study->readme, F_OK) == 0 ? study->readme : NULL,
                                .html = access(study->html, F_OK) == 0 ? study->html : NULL,
                                .scales = study->scales};
    octet_status status = verify_study(&study->file, &files, on_problem, (void *)(uintptr_t)options);
    if (status == OCTET_OK && !options->common.json)
        printf("%s  is as it was written%s\n", study->evidence, files.html != NULL ? ", and its report follows" : "");
    if (status == OCTET_OK) return EXIT_DONE;
    failed();
    return status == OCTET_VERIFICATION ? EXIT_WRONG : EXIT_BAD;
}

static int verify(const char *path, study_options *options) {
    return is_study_file(path) ? with_study(path, options, verify_whole) : verify_evidence(path, options);
}

/* ---- report */

/* The page, and the README's part if it has the marks for it. */
static int write_report(const opened_study *study, const study_options *options) {
    evidence_file *evidence;
    report_text text = {0};
    if (evidence_open(study->evidence, EVIDENCE_READ, &evidence) != OCTET_OK) return failed();
    octet_status status = evidence_verify(evidence, NULL, NULL);
    if (status == OCTET_OK) status = report_make(&study->file, evidence, &text);
    evidence_close(&evidence);
    if (status == OCTET_OK) {
        bool there = options->readme != NULL || access(study->readme, F_OK) == 0;
        status = report_write(&text, there ? study->readme : NULL, study->html);
        if (status == OCTET_NOT_FOUND && there && options->readme == NULL) /* a README without the marks */
            status = report_write(&text, NULL, study->html);
    }
    report_text_free(&text);
    if (status == OCTET_OK && !options->common.json) printf("%s  is written\n", study->html);
    if (status == OCTET_OK) return EXIT_DONE;
    failed();
    return status == OCTET_VERIFICATION ? EXIT_WRONG : EXIT_BAD;
}

static int merge(int count, char **words, const study_options *options) {
    if (evidence_merge((const char *const *)words, (size_t)count, options->output) != OCTET_OK) return failed();
    if (!options->common.json) printf("%s  holds the rows of %d files\n", options->output, count);
    return EXIT_DONE;
}

static int run_verb(int count, char **words) {
    study_options options = {.sample = 1, .seed = 1};
    const option_row rows[] = {
        {OPTION_TEXT, "--evidence", "FILE", "the evidence (default: STUDY.sqlite)", &options.evidence, 0, 0},
        {OPTION_TEXT, "--scales", "DIR", "folder of scale files (default: STUDY.scales)", &options.scales, 0, 0},
        {OPTION_INT, "--sample", "N", "rerun: so many runs, drawn (default 1)", &options.sample, 1, 100000},
        {OPTION_INT, "--seed", "N", "rerun: draws by it (default 1)", &options.seed, 0, INT32_MAX},
        {OPTION_TEXT, "-o", "FILE", "merge: the file to write", &options.output, 0, 0},
        {OPTION_TEXT, "--readme", "FILE", "report, verify: between its marks (default: README.md)", &options.readme, 0,
         0},
        {OPTION_TEXT, "--html", "FILE", "report, verify: the page (default: STUDY.html)", &options.html, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_study, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    const char *what = left > 0 ? words[0] : "";
    bool one = left == 2;
    if (strcmp(what, "merge") == 0) {
        if (left < 2 || options.output == NULL) return usage_error(&verb_study, "merge: expected EVIDENCE... -o FILE");
        return merge(left - 1, words + 1, &options);
    }
    if (strcmp(what, "compare") == 0) {
        if (left != 3) return usage_error(&verb_study, "compare: expected OLD and NEW, found %d words", left - 1);
        return compare(words[1], words[2], &options);
    }
    if (strcmp(what, "run") == 0 && one) return with_study(words[1], &options, run_study);
    if (strcmp(what, "status") == 0 && one) return with_study(words[1], &options, print_status);
    if (strcmp(what, "report") == 0 && one) return with_study(words[1], &options, write_report);
    if (strcmp(what, "rerun") == 0 && one) return with_study(words[1], &options, rerun);
    if (strcmp(what, "verify") == 0 && one) return verify(words[1], &options);
    return usage_error(&verb_study,
                       "expected run, status, report, verify or rerun and one STUDY, merge EVIDENCE..., or compare "
                       "OLD NEW");
}

const verb_row verb_study = {"study", "run|status|report|verify|rerun|merge|compare STUDY...",
                             "a comparison from its file to a decision, that anyone can run again", run_verb};
