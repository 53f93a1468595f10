/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a report: quality beside the floor, times, sizes, where the time goes, and what loses what. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/report_plot.h"
#include "study/report_sections.h"
#include "study/words.h"

/* ---- one figure */

static void put_scaled(report_page *page, const evidence_row *f, double scale, int digits, const char *unit) {
    double value = scale * evidence_number(f, "value");
    double low = scale * evidence_number(f, "low"), high = scale * evidence_number(f, "high");
    if (isnan(low) || isnan(high))
        page_number(page, f->id, "%.*f%s", digits, value, unit);
    else
        page_number(page, f->id, "%.*f%s [%.*f, %.*f]", digits, value, unit, digits, low, digits, high);
}

void report_put(report_page *page, const evidence_row *f) {
    const study_figure *known = f != NULL ? study_find_figure(evidence_text(f, "name")) : NULL;
    if (f == NULL) {
        page_words(page, "not measured");
        return;
    }
    study_figure_kind kind = known != NULL ? known->kind : FIGURE_SIZE;
    if (kind == FIGURE_PROPORTION || kind == FIGURE_RATE)
        put_scaled(page, f, 100.0, 2, "%");
    else if (kind == FIGURE_CHANGE)
        put_scaled(page, f, 100.0, 2, " points");
    else if (kind == FIGURE_RATIO)
        put_scaled(page, f, 1.0, 3, "");
    else if (kind == FIGURE_MEAN && isfinite(evidence_number(f, "low")))
        page_number(page, f->id, "%.4g [%.4g, %.4g]", evidence_number(f, "value"), evidence_number(f, "low"),
                    evidence_number(f, "high"));
    else
        page_number(page, f->id, "%.5g", evidence_number(f, "value"));
}

void report_put_environment(report_page *page, const evidence_row *environment) {
    const char *cpu = json_string_value(json_object_get(json_object_get(environment->body, "machine"), "cpu"));
    page_words(page, "%s", evidence_text(environment, "device"));
    if (cpu == NULL) return;
    page_words(page, " (");
    page_number(page, environment->id, "%s", cpu);
    page_words(page, ")");
}

const char *report_accuracy(const report_source *source) {
    return source->task == OCTET_DETECTION ? "ap" : "top1";
}

/* Tables of one machine are headed by it where there are several. */
static void head_environment(report_page *page, const report_source *source, const evidence_row *environment,
                             const char *what) {
    if (source->environments.count > 1)
        page_heading(page, 3, "%s, %s %.*s", what, evidence_text(environment, "device"), PAGE_ID, environment->id);
    else if (what[0] != '\0')
        page_heading(page, 3, "%s", what);
}

/* ---- quality */

#define QUALITY 6
static const char *const quality[2][QUALITY] = {
    {"top1", "top1_change", "agreement", "kl", "cross_entropy_change", "nonfinite"},
    {"ap", "unmatched_tested", "unmatched_reference", "matched_iou", "score_drift", "kl"}};

static void quality_row(report_page *page, const report_source *source, const evidence_row *environment,
                        const char *variant, const char *set) {
    const study_file *study = source->study;
    page_row(page);
    page_cell(page);
    page_code(page, variant);
    if (strcmp(variant, study->reference) == 0) page_words(page, " (reference)");
    if (study->floor != NULL && strcmp(variant, study->floor) == 0) page_words(page, " (16-bit floor)");
    for (size_t c = 0; c < study->candidate_count; c++)
        if (strcmp(study->candidates[c], variant) == 0) page_words(page, " (candidate)");
    for (size_t f = 0; f < QUALITY; f++) {
        page_cell(page);
        report_put(page, report_figure(source, environment, variant, set, quality[source->task == OCTET_DETECTION][f]));
    }
    page_row_end(page);
}

static void quality_table(report_page *page, const report_source *source, const evidence_row *environment,
                          const char *set) {
    const char *heads[QUALITY + 1] = {"variant"};
    bool any = false;
    for (size_t v = 0; v < source->study->variant_count && !any; v++)
        any = report_run(source, environment, "evaluate", source->study->variants[v].name, set) != NULL;
    if (!any) return;
    for (size_t f = 0; f < QUALITY; f++) heads[f + 1] = quality[source->task == OCTET_DETECTION][f];
    head_environment(page, source, environment, strcmp(set, "verdict") == 0 ? "Verdict set" : "Select set");
    page_table(page, heads, QUALITY + 1);
    for (size_t v = 0; v < source->study->variant_count; v++)
        if (report_run(source, environment, "evaluate", source->study->variants[v].name, set) != NULL)
            quality_row(page, source, environment, source->study->variants[v].name, set);
    page_end(page);
}

void report_quality(report_page *page, const report_source *source) {
    page_heading(page, 2, "Quality");
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "Beside each variant stands the same figure of the 16-bit floor, where it was measured; brackets "
                     "hold two-sided 95%% intervals over pictures. Against the reference ");
    page_code(page, source->study->reference);
    page_words(page, ":");
    for (size_t f = 0; f < QUALITY; f++) {
        const study_figure *known = study_find_figure(quality[source->task == OCTET_DETECTION][f]);
        page_words(page, f > 0 ? "; " : " ");
        page_code(page, known->name);
        page_words(page, " %s", known->words);
    }
    page_words(page, ".");
    page_end(page);
    for (size_t e = 0; e < source->environments.count; e++) {
        quality_table(page, source, &source->environments.items[e], "verdict");
        quality_table(page, source, &source->environments.items[e], "select");
    }
}

/* ---- speed */

static void speed_row(report_page *page, const report_source *source, const evidence_row *environment,
                      const char *variant, int64_t batch) {
    char name[48];
    (void)snprintf(name, sizeof name, "median_ms_batch_%lld", (long long)batch);
    const evidence_row *median = report_figure(source, environment, variant, "", name);
    if (median == NULL) return;
    (void)snprintf(name, sizeof name, "speedup_batch_%lld", (long long)batch);
    const evidence_row *ratio = report_figure(source, environment, variant, "", name);
    page_row(page);
    page_cell(page);
    page_code(page, variant);
    page_cell(page);
    page_number(page, median->id, "%lld", (long long)batch);
    page_cell(page);
    page_number(page, median->id, "%.4g (%.4g to %.4g)", evidence_number(median, "value"),
                evidence_number(median, "p25"), evidence_number(median, "p75"));
    page_cell(page);
    if (ratio != NULL)
        report_put(page, ratio);
    else
        page_words(page, "the base");
    page_cell(page);
    page_words(page, "%s", ratio != NULL ? evidence_text(ratio, "verdict") : "");
    page_cell(page);
    page_number(page, median->id, "%lld", (long long)evidence_integer(median, "n"));
    page_row_end(page);
}

static void put_scope(report_page *page, const evidence_row *timing) {
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "Scope ");
    page_code(page, evidence_text(timing, "scope"));
    page_words(page, ", ");
    page_number(page, timing->id, "threads %lld, warm-up runs %lld", (long long)evidence_integer(timing, "threads"),
                (long long)evidence_integer(timing, "warm_up"));
    page_words(page,
               ": from the %s to the %s; synchronizing call: %s; inside: %s. All sides of a ratio share these, took "
               "turns in one process, and their last timed output was held against an untimed one.",
               evidence_text(timing, "start"), evidence_text(timing, "end"), evidence_text(timing, "synchronize"),
               evidence_text(timing, "inside"));
    page_end(page);
}

static void speed_table(report_page *page, const report_source *source, const evidence_row *environment) {
    static const char *const heads[] = {"variant",         "batch", "median ms (quartiles)", "base by variant [95%]",
                                        "the word for it", "rounds"};
    const study_timing *timing = &source->study->timing;
    const evidence_row *first = NULL;
    for (size_t i = 0; i < source->timings.count && first == NULL; i++)
        if (strcmp(report_environment_of(source, evidence_text(&source->timings.items[i], "run")), environment->id) ==
            0)
            first = &source->timings.items[i];
    if (first == NULL) return;
    head_environment(page, source, environment, source->environments.count > 1 ? "Times" : "");
    put_scope(page, first);
    page_table(page, heads, 6);
    for (size_t b = 0; b < timing->batch_count; b++)
        for (size_t v = 0; v < source->study->variant_count; v++)
            speed_row(page, source, environment, source->study->variants[v].name, timing->batches[b]);
    page_end(page);
}

void report_speed(report_page *page, const report_source *source) {
    page_heading(page, 2, "Speed");
    if (source->timings.count == 0) {
        page_begin(page, PAGE_PARAGRAPH);
        page_words(page, "%s.", words_sentence(WORDS_no_times));
        page_end(page);
    }
    for (size_t e = 0; e < source->environments.count; e++) speed_table(page, source, &source->environments.items[e]);
}

/* ---- size */

static const char *const sizes[] = {"packed_bytes", "weight_ratio", "arena_bytes",
                                    "scales_bytes", "steps",        "unfused_quantize"};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void put_size(report_page *page, const evidence_row *f) {
    if (f == NULL)
        page_words(page, "none");
    else
        page_number(page, f->id, strcmp(evidence_text(f, "name"), "weight_ratio") == 0 ? "%.3f" : "%.10g",
                    evidence_number(f, "value"));
}

void report_size(report_page *page, const report_source *source) {
    static const char *const heads[] = {
        "variant", "packed weights, bytes", "base by variant", "arena, bytes", "scales, bytes",
        "steps",   "unfused quantize steps"};
    page_heading(page, 2, "Size");
    for (size_t e = 0; e < source->environments.count; e++) {
        const evidence_row *environment = &source->environments.items[e];
        head_environment(page, source, environment, source->environments.count > 1 ? "Sizes" : "");
        page_table(page, heads, (int)SIZES + 1);
        for (size_t v = 0; v < source->study->variant_count; v++) {
            const char *variant = source->study->variants[v].name;
            if (report_figure(source, environment, variant, "", "packed_bytes") == NULL) continue;
            page_row(page);
            page_cell(page);
            page_code(page, variant);
            for (size_t f = 0; f < SIZES; f++) {
                page_cell(page);
                const evidence_row *figure = report_figure(source, environment, variant, "", sizes[f]);
                if (figure == NULL) figure = report_figure(source, environment, variant, "calibrate", sizes[f]);
                put_size(page, figure);
            }
            page_row_end(page);
        }
        page_end(page);
    }
}

/* ---- why: where the time goes */

static bool is_group(const report_source *source, const evidence_row *f, const evidence_row *environment,
                     const char *variant) {
    return strcmp(evidence_text(f, "name"), "group_ms") == 0 && strcmp(evidence_text(f, "variant"), variant) == 0 &&
           strcmp(report_environment_of(source, evidence_text(f, "run")), environment->id) == 0;
}

static const evidence_row *find_group(const report_source *source, const evidence_row *environment, const char *variant,
                                      const char *group) {
    for (size_t i = 0; i < source->figures.count; i++)
        if (is_group(source, &source->figures.items[i], environment, variant) &&
            strcmp(evidence_text(&source->figures.items[i], "group"), group) == 0)
            return &source->figures.items[i];
    return NULL;
}

/* The base's time that eight bits can touch, and what follows if it took none: 1 / (1 - share). */
static void put_share(report_page *page, double touched, double all, const char *id) {
    double share = touched / all;
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "Eight bits can touch ");
    page_number(page, id, "%.1f%%", 100.0 * share);
    page_words(page, " of the base's time. If all of that took no time at all, the whole would be ");
    page_number(page, id, "%.2f", 1.0 / (1.0 - share));
    page_words(page, " times as fast; at half its time, ");
    page_number(page, id, "%.2f", 1.0 / (1.0 - share / 2.0));
    page_words(page, ". These are bounds from measured shares, not speeds.");
    page_end(page);
}

static void group_table(report_page *page, const report_source *source, const report_decision *d) {
    const char *base = source->study->timing.base, *id = "";
    const char *const heads[] = {"ops", base, d->decided.variant, "touched by eight bits"};
    double touched = 0.0, all = 0.0;
    page_table(page, heads, 4);
    for (size_t i = 0; i < source->figures.count; i++) {
        const evidence_row *f = &source->figures.items[i];
        if (!is_group(source, f, d->environment, base)) continue;
        bool touches = json_is_true(json_object_get(f->body, "touched"));
        const evidence_row *own = find_group(source, d->environment, d->decided.variant, evidence_text(f, "group"));
        all += evidence_number(f, "value");
        touched += touches ? evidence_number(f, "value") : 0.0;
        id = evidence_text(f, "run");
        page_row(page);
        page_cell(page);
        page_words(page, "%s", evidence_text(f, "group"));
        page_cell(page);
        page_number(page, f->id, "%.4g ms", evidence_number(f, "value"));
        page_cell(page);
        if (own != NULL)
            page_number(page, own->id, "%.4g ms", evidence_number(own, "value"));
        else
            page_words(page, "not measured");
        page_cell(page);
        page_words(page, "%s", touches ? "yes" : "no");
        page_row_end(page);
    }
    page_end(page);
    if (all > 0.0) put_share(page, touched, all, id);
}

void report_reasons(report_page *page, const report_source *source) {
    oct_text about = {0};
    page_heading(page, 2, "Why");
    for (size_t i = 0; i < source->decision_count; i++) {
        const report_decision *d = &source->decisions[i];
        const evidence_row *unfused = report_figure(source, d->environment, d->decided.variant, "", "unfused_quantize");
        const evidence_row *flops = report_figure(source, d->environment, d->decided.variant, "", "flops");
        page_begin(page, PAGE_PARAGRAPH);
        page_code(page, d->decided.variant);
        page_words(page, ": ");
        report_put(page, unfused);
        page_words(page, " quantize steps left alone, neither in a producer nor in a consumer; ");
        if (flops != NULL)
            page_number(page, flops->id, "%.4g operations", evidence_number(flops, "value"));
        else
            page_words(page, "operations not measured");
        page_words(page, " a picture.");
        page_end(page);
        if (source->study->timing.is_set && !words_hold(source, WORDS_no_groups, &about) && source->timings.count > 0)
            group_table(page, source, d);
    }
    if (words_hold(source, WORDS_no_groups, &about)) {
        page_begin(page, PAGE_PARAGRAPH);
        page_words(page, "%s.", words_sentence(WORDS_no_groups));
        page_end(page);
    }
    oct_text_free(&about);
}

/* ---- attribution */

/* The set in which most variants stand beside each other. */
static const char *attribution_set(const report_source *source) {
    size_t counts[2] = {0};
    static const char *const sets[] = {"select", "verdict"};
    for (size_t i = 0; i < source->runs.count; i++)
        for (size_t s = 0; s < 2; s++) counts[s] += strcmp(evidence_text(&source->runs.items[i], "set"), sets[s]) == 0;
    return sets[counts[1] >= counts[0]];
}

static void put_apart(report_page *page, const report_source *source, const evidence_row *environment,
                      const char *candidate, const char *set) {
    const report_recipe *recipe = report_recipe_of(source, candidate);
    const char *weights = report_variant_apart(source, candidate, true);
    const char *activations = report_variant_apart(source, candidate, false);
    const evidence_row *w = weights != NULL ? report_figure(source, environment, weights, set, "kl") : NULL;
    const evidence_row *a = activations != NULL ? report_figure(source, environment, activations, set, "kl") : NULL;
    page_begin(page, PAGE_PARAGRAPH);
    page_code(page, candidate);
    if (recipe != NULL && recipe->known && !(recipe->weights && recipe->activations)) {
        page_words(page, " narrows one side alone.");
    } else if (w == NULL || a == NULL) {
        page_words(page, ": its weights and activations were not narrowed apart in its formats on this set, so the "
                         "loss is not divided between them.");
    } else {
        page_words(page, ": on the %s set KL is ", set);
        report_put(page, w);
        page_words(page, " with its weights alone (");
        page_code(page, weights);
        page_words(page, "), ");
        report_put(page, a);
        page_words(page, " with its activations alone (");
        page_code(page, activations);
        page_words(page, "), ");
        report_put(page, report_figure(source, environment, candidate, set, "kl"));
        page_words(page, " with both.");
    }
    page_end(page);
}

static size_t collect(const report_source *source, const evidence_row *environment, const char *set, const char *name,
                      const char *x_name, plot_point *points) {
    const study_file *study = source->study;
    size_t count = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const char *variant = study->variants[v].name;
        const evidence_row *y = report_figure(source, environment, variant, set, name);
        const evidence_row *x = x_name != NULL ? report_figure(source, environment, variant, "", x_name) : NULL;
        if (y == NULL || (x_name != NULL && x == NULL)) continue;
        points[count] = (plot_point){.x = x != NULL ? evidence_number(x, "value") : 0.0,
                                     .y = evidence_number(y, "value"),
                                     .low = evidence_number(y, "low"),
                                     .high = evidence_number(y, "high"),
                                     .label = variant,
                                     .id = y->id,
                                     .other = true};
        for (size_t c = 0; c < study->candidate_count; c++)
            if (strcmp(study->candidates[c], variant) == 0) points[count].other = false;
        count++;
    }
    return count;
}

static void draw(report_page *page, const report_source *source, const evidence_row *environment, const char *set,
                 plot_point *points) {
    oct_text svg = {0};
    char x_name[48], x_title[80];
    int64_t batch = source->study->timing.batch_count > 0 ? source->study->timing.batches[0] : 1;
    (void)snprintf(x_name, sizeof x_name, "median_ms_batch_%lld", (long long)batch);
    (void)snprintf(x_title, sizeof x_title, "median ms, batch %lld", (long long)batch);
    size_t count = collect(source, environment, set, report_accuracy(source), x_name, points);
    plot_scatter(&svg, points, count, x_title, report_accuracy(source));
    if (svg.length > 0)
        page_drawing(page, svg.data,
                     "Accuracy against time, with 95% intervals; up and left is better. Candidates in "
                     "the first colour.");
    oct_text_free(&svg);
    count = collect(source, environment, set, "kl", NULL, points);
    plot_bars(&svg, points, count, "KL(reference || tested), nats");
    if (svg.length > 0) page_drawing(page, svg.data, "How far each variant moves the answers, with 95% intervals.");
    oct_text_free(&svg);
}

void report_attribution(report_page *page, const report_source *source) {
    const char *set = attribution_set(source);
    plot_point *points = calloc(source->study->variant_count + 1, sizeof *points);
    if (points == NULL) {
        page->html.failed = true;
        return;
    }
    page_heading(page, 2, "What loses what");
    for (size_t e = 0; e < source->environments.count; e++) {
        head_environment(page, source, &source->environments.items[e],
                         source->environments.count > 1 ? "Variants" : "");
        for (size_t c = 0; c < source->study->candidate_count; c++)
            put_apart(page, source, &source->environments.items[e], source->study->candidates[c], set);
        draw(page, source, &source->environments.items[e], set, points);
    }
    free(points);
}
