/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: the word, the rules and bounds that decided, what it comes to in a few lines, and when to look again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/report_sections.h"
#include "study/words.h"

/* ---- the word */

static void put_rules(report_page *page, const study_file *study) {
    size_t left = 0;
    for (size_t r = 0; r < study->rule_count; r++) left += study->rules[r].adopted;
    if (left == 0) page_words(page, "no rule");
    page_words(page, left > 0 ? left > 1 ? "the rules " : "the rule " : "");
    for (size_t r = 0; r < study->rule_count; r++) {
        if (!study->rules[r].adopted) continue;
        page_code(page, study->rules[r].name);
        left--;
        if (left > 0) page_words(page, left > 1 ? ", " : " and ");
    }
}

/* The bounds that made it so: of ship all, else those that failed, else those that are open or missing. */
static bool decided(const decision *d, const decided_bound *bound) {
    if (d->word == DECISION_SHIP) return true;
    if (d->word == DECISION_DO_NOT_SHIP) return bound->outcome == BOUND_FAILS;
    return bound->outcome == BOUND_OPEN || bound->outcome == BOUND_NOT_MEASURED;
}

static void put_why(report_page *page, const decision *d) {
    bool first = true;
    for (size_t b = 0; b < d->bound_count; b++) {
        const decided_bound *bound = &d->bounds[b];
        if (!decided(d, bound)) continue;
        page_words(page, first ? " Why: " : "; ");
        first = false;
        if (bound->outcome == BOUND_NOT_MEASURED)
            page_words(page, "%s", bound->text);
        else
            page_number(page, bound->figure, "%s", bound->text);
    }
    page_words(page, first ? " Why: no bound was adopted." : ".");
}

void report_verdict(report_page *page, const report_source *source) {
    static const char *const kinds[] = {"ship", "not", "open"};
    const study_file *study = source->study;
    if (source->decision_count == 0) {
        page_begin_verdict(page, "open");
        page_strong(page, "No verdict");
        page_words(page, ": nothing was measured yet, or the study has no candidate.");
        page_end(page);
    }
    for (size_t i = 0; i < source->decision_count; i++) {
        const report_decision *d = &source->decisions[i];
        page_begin_verdict(page, kinds[d->decided.word]);
        if (d->decided.earlier_openings > 0) page_words(page, "%s. ", words_sentence(WORDS_recipe_changed));
        page_strong(page, "%s: %s", d->decided.variant, decision_word_text(d->decided.word));
        page_words(page, ", by ");
        put_rules(page, study);
        page_words(page, ", on ");
        report_put_environment(page, d->environment);
        page_words(page, ".");
        put_why(page, &d->decided);
        page_end(page);
    }
}

/* ---- a few lines */

static void put_speeds(report_page *page, const report_source *source, const report_decision *d) {
    const study_timing *timing = &source->study->timing;
    bool any = false;
    for (size_t b = 0; b < timing->batch_count; b++) {
        char name[48];
        (void)snprintf(name, sizeof name, "speedup_batch_%lld", (long long)timing->batches[b]);
        const evidence_row *f = report_figure(source, d->environment, d->decided.variant, "", name);
        if (f == NULL) continue;
        page_words(page, any ? "; " : "");
        page_words(page, "at batch ");
        page_number(page, f->id, "%lld", (long long)timing->batches[b]);
        page_words(page, " %s against ",
                   evidence_text(f, "verdict")[0] != '\0' ? evidence_text(f, "verdict") : "ratio");
        page_code(page, timing->base);
        page_words(page, ", ");
        report_put(page, f);
        any = true;
    }
    if (!any) page_words(page, "not measured");
}

static void put_beside_floor(report_page *page, const report_source *source, const report_decision *d,
                             const char *name) {
    const study_figure *known = study_find_figure(name);
    const char *floor = source->study->floor;
    page_words(page, "%s ", known != NULL ? known->words : name);
    report_put(page, report_figure(source, d->environment, d->decided.variant, "verdict", name));
    if (floor == NULL) return;
    page_words(page, " (floor ");
    report_put(page, report_figure(source, d->environment, floor, "verdict", name));
    page_words(page, ")");
}

static void put_pictures(report_page *page, const report_source *source) {
    static const char *const names[] = {"calibrate", "select", "verdict"};
    bool any = false;
    for (size_t i = 0; i < 3; i++) {
        const evidence_row *set = report_artifact_named(source, "set", names[i]);
        if (set == NULL) continue;
        page_words(page, any ? ", " : "");
        page_number(page, set->id, "%zu", json_array_size(json_object_get(set->body, "pictures")));
        page_words(page, " to %s of %s", names[i], evidence_text(set, "data"));
        any = true;
    }
    if (!any) page_words(page, "no pictures are recorded");
}

/* An entry that a variant answers was run. */
static void put_gaps(report_page *page, const report_source *source) {
    const study_file *study = source->study;
    page_item(page);
    page_strong(page, "Not run");
    page_words(page, ": ");
    for (size_t i = 0; i < study->missing_count; i++)
        if (!report_measured(source, NULL, study->missing[i].why)) page_words(page, "%s; ", study->missing[i].what);
    page_words(page, "see \"Not measured\".");
}

static void put_conditions(report_page *page, const report_source *source) {
    const study_file *study = source->study;
    page_item(page);
    page_strong(page, "Look again");
    page_words(page, study->revisit_count > 0 ? " when " : ": the study file names no condition.");
    for (size_t i = 0; i < study->revisit_count; i++) {
        page_number(page, source->study_id, "%s", study->revisits[i].text);
        page_words(page, "%s", i + 1 < study->revisit_count ? "; " : ".");
    }
}

void report_summary(report_page *page, const report_source *source) {
    static const char *const figures[2][3] = {{"top1_change", "agreement", "kl"}, {"ap", "unmatched_tested", "kl"}};
    if (source->decision_count == 0) return;
    page_heading(page, 2, "In short");
    page_begin(page, PAGE_LIST);
    for (size_t i = 0; i < source->decision_count; i++) {
        const report_decision *d = &source->decisions[i];
        page_item(page);
        page_strong(page, "How fast");
        page_words(page, " (%s, %s): ", d->decided.variant, evidence_text(d->environment, "device"));
        put_speeds(page, source, d);
        page_words(page, ".");
        page_item(page);
        page_strong(page, "At what quality");
        page_words(page, " (%s, verdict set): ", d->decided.variant);
        for (size_t f = 0; f < 3; f++) {
            page_words(page, f > 0 ? "; " : "");
            put_beside_floor(page, source, d, figures[source->task == OCTET_DETECTION][f]);
        }
        page_words(page, ".");
    }
    page_item(page);
    page_strong(page, "On what");
    page_words(page, ": ");
    put_pictures(page, source);
    page_words(page, "; devices: ");
    for (size_t e = 0; e < source->environments.count; e++) {
        page_words(page, e > 0 ? ", " : "");
        report_put_environment(page, &source->environments.items[e]);
    }
    page_words(page, ".");
    put_gaps(page, source);
    put_conditions(page, source);
    page_end(page);
}

/* ---- bounds, revisit */

void report_bounds(report_page *page, const report_source *source) {
    static const char *const heads[] = {"candidate", "rule", "figure", "measured", "wanted", "n", "outcome"};
    page_heading(page, 2, "The rules, by intervals");
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page,
               "A bound passes if the whole two-sided 95%% interval lies on its good side, fails if it lies on the "
               "other, and is open between; rules were fixed before measuring.");
    page_end(page);
    page_table(page, heads, 7);
    for (size_t i = 0; i < source->decision_count; i++)
        for (size_t b = 0; b < source->decisions[i].decided.bound_count; b++) {
            const decision *d = &source->decisions[i].decided;
            const decided_bound *bound = &d->bounds[b];
            page_row(page);
            page_cell(page);
            page_words(page, "%s, %s", d->variant, evidence_text(source->decisions[i].environment, "device"));
            page_cell(page);
            page_code(page, bound->rule->name);
            page_cell(page);
            page_code(page, bound->bound->figure);
            page_cell(page);
            if (bound->outcome == BOUND_NOT_MEASURED)
                page_words(page, "not measured");
            else
                page_number(page, bound->figure, "%.5g [%.5g, %.5g]", bound->value, bound->low, bound->high);
            page_cell(page);
            page_words(page, "%s ", bound->bound->at_most ? "at most" : "at least");
            page_number(page, source->study_id, "%g", bound->bound->limit);
            page_cell(page);
            if (bound->n > 0)
                page_number(page, bound->figure, "%lld", (long long)bound->n);
            else
                page_words(page, "exact");
            page_cell(page);
            page_strong(page, "%s", bound_outcome_text(bound->outcome));
            page_row_end(page);
        }
    page_end(page);
}

void report_revisits(report_page *page, const report_source *source) {
    static const char *const heads[] = {"look again when", "because", "today", "value"};
    page_heading(page, 2, "When to revisit");
    if (source->study->revisit_count == 0 || source->decision_count == 0) {
        page_begin(page, PAGE_PARAGRAPH);
        page_words(page, "The study file names no condition.");
        page_end(page);
        return;
    }
    page_table(page, heads, 4);
    for (size_t i = 0; i < source->decision_count; i++)
        for (size_t r = 0; r < source->decisions[i].decided.revisit_count; r++) {
            const decided_revisit *revisit = &source->decisions[i].decided.revisits[r];
            bool said = i >= source->environments.count; /* a condition that names its variant is the same for all */
            if (said && revisit->revisit->variant != NULL) continue;
            page_row(page);
            page_cell(page);
            page_number(page, source->study_id, "%s", revisit->revisit->text);
            if (source->decision_count > 1)
                page_words(page, " (%s, %s)", source->decisions[i].decided.variant,
                           evidence_text(source->decisions[i].environment, "device"));
            page_cell(page);
            page_words(page, "%s", revisit->revisit->because);
            page_cell(page);
            page_words(page, "%s", !revisit->known ? "unknown" : revisit->holds ? "holds" : "does not hold");
            page_cell(page);
            if (revisit->known)
                page_number(page, revisit->figure, "%.5g", revisit->value);
            else
                page_words(page, "not measured");
            page_row_end(page);
        }
    page_end(page);
}
