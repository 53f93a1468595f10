/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of itself: its limits, what was not measured, what it costs to run again, and what it is of. */
#include <string.h>

#include "study/report_sections.h"
#include "study/words.h"

void report_limits(report_page *page, const report_source *source) {
    bool any = false;
    page_heading(page, 2, "Limits");
    page_begin(page, PAGE_LIST);
    for (int i = 0; i < WORDS_COUNT; i++) {
        oct_text about = {0};
        if (words_hold(source, (words_situation)i, &about)) {
            page_item(page);
            page_words(page, "%s", words_sentence((words_situation)i));
            if (about.length > 0) page_words(page, ": %s", about.data);
            page_words(page, ".");
            any = true;
        }
        page->html.failed = page->html.failed || about.failed;
        oct_text_free(&about);
    }
    if (!any) {
        page_item(page);
        page_words(page, "None of the known ones.");
    }
    page_end(page);
}

/* ---- not measured */

static void missing_row(report_page *page, const char *what, const char *why) {
    page_row(page);
    page_cell(page);
    page_words(page, "%s", what);
    page_cell(page);
    page_words(page, "%s", why);
    page_row_end(page);
}

/* An entry whose reason is a variant's name is answered by that variant, once it was measured. */
static void answered_row(report_page *page, const report_source *source, const study_missing *missing) {
    const char *variant = missing->why;
    const report_recipe *recipe = report_recipe_of(source, variant);
    if (recipe == NULL) {
        missing_row(page, missing->what, missing->why);
        return;
    }
    page_row(page);
    page_cell(page);
    page_words(page, "%s", missing->what);
    page_cell(page);
    if (report_measured(source, NULL, variant)) {
        page_words(page, "measured: variant ");
        page_code(page, variant);
        for (size_t e = 0; e < source->environments.count; e++) {
            const evidence_row *f = report_figure(source, &source->environments.items[e], variant, "verdict", "kl");
            if (f == NULL) f = report_figure(source, &source->environments.items[e], variant, "select", "kl");
            if (f == NULL) continue;
            page_words(page, ", KL ");
            report_put(page, f);
        }
    } else {
        page_words(page, "not measured yet: variant ");
        page_code(page, variant);
        page_words(page, " of the study was not run");
    }
    page_row_end(page);
}

void report_missing(report_page *page, const report_source *source) {
    static const char *const heads[] = {"what", "why not, or by what"};
    const study_file *study = source->study;
    page_heading(page, 2, "Not measured");
    page_table(page, heads, 2);
    for (size_t i = 0; i < study->missing_count; i++) answered_row(page, source, &study->missing[i]);
    for (size_t v = 0; v < study->variant_count; v++) {
        if (report_measured(source, NULL, study->variants[v].name)) continue;
        page_row(page);
        page_cell(page);
        page_words(page, "variant ");
        page_code(page, study->variants[v].name);
        page_cell(page);
        page_words(page, "its runs are not done");
        page_row_end(page);
    }
    if (!study->timing.is_set) missing_row(page, "times", "the study file asks for none");
    if (!study->stress) missing_row(page, "stress inputs", "the study file asks for none");
    if (study->premerge_count == 0) missing_row(page, "premerge cases", "the study file names none");
    if (study->floor == NULL) missing_row(page, "a 16-bit floor", "the study file names none");
    missing_row(page, "anything else", "only what stands in this report was tested");
    page_end(page);
}

/* ---- running it again */

static void put_counts(report_page *page, const report_source *source) {
    const char *plan = source->plans.rows.count > 0 ? source->plans.rows.items[0].id : source->study_id;
    int64_t pictures = 0;
    double seconds = 0.0;
    for (size_t i = 0; i < source->figures.count; i++)
        if (strcmp(evidence_text(&source->figures.items[i], "name"), "kl") == 0)
            pictures += evidence_integer(&source->figures.items[i], "n");
    for (size_t i = 0; i < source->timings.count; i++) {
        const json_t *list = json_object_get(source->timings.items[i].body, "seconds");
        for (size_t k = 0; k < json_array_size(list); k++) seconds += json_number_value(json_array_get(list, k));
    }
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "It took ");
    page_number(page, plan, "%zu of %zu", source->done, source->tasks);
    page_words(page, " runs: ");
    page_number(page, plan, "%lld", (long long)pictures);
    page_words(page, " pictures through a variant and the reference beside it, and ");
    page_number(page, plan, "%.3g", seconds);
    page_words(page, " seconds of timed runs, without calibration, opening and warming up.");
    page_end(page);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void report_costs(report_page *page, const report_source *source) {
    static const char *const commands[][2] = {
        {"octet study run", "measures what is missing, from start to verdict"},
        {"octet study rerun --sample 3", "measures three runs again and says whether they hold"},
        {"octet study verify", "makes this report again from its evidence and names any digit that differs"},
        {"octet study status", "says which conditions of looking again hold today"}};
    page_heading(page, 2, "To run it again");
    put_counts(page, source);
    page_begin(page, PAGE_LIST);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        oct_text command = {0};
        oct_text_printf(&command, "%s %s", commands[i][0], base_name(source->study->path));
        page_item(page);
        page_code(page, command.data != NULL ? command.data : "");
        page_words(page, " %s", commands[i][1]);
        page->html.failed = page->html.failed || command.failed;
        oct_text_free(&command);
    }
    page_end(page);
}

/* ---- what it is of */

static void put_model(report_page *page, const report_source *source) {
    const evidence_row *model = report_artifact_named(source, "model", NULL);
    const char *revision = source->study->revision;
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "Model ");
    page_code(page, model != NULL ? evidence_text(model, "name") : base_name(source->study->model));
    if (model != NULL) {
        page_words(page, ", weights ");
        page_number(page, model->id, "%.16s", evidence_text(model, "sha256"));
    }
    if (revision != NULL) {
        page_words(page, ", revision ");
        page_number(page, source->study_id, "%s", revision);
    }
    page_words(page, ". Study file ");
    page_code(page, base_name(source->study->path));
    page_words(page, ", ");
    page_number(page, source->study_id, "%.16s", source->study->sha256);
    page_words(page,
               ". A number's own evidence is named beside it: the first digits of the id of a row in the evidence "
               "file.");
    page_end(page);
}

static void environment_table(report_page *page, const report_source *source) {
    static const char *const heads[] = {"machine", "device", "octet", "system"};
    page_table(page, heads, 4);
    for (size_t e = 0; e < source->environments.count; e++) {
        const evidence_row *row = &source->environments.items[e];
        page_row(page);
        page_cell(page);
        page_number(page, row->id, "%.*s", PAGE_ID, row->id);
        page_cell(page);
        report_put_environment(page, row);
        page_cell(page);
        page_number(page, row->id, "%s", evidence_text(row, "octet"));
        page_cell(page);
        page_number(page, row->id, "%s %s", evidence_text(row, "system"), evidence_text(row, "release"));
        page_row_end(page);
    }
    page_end(page);
}

static void variant_table(report_page *page, const report_source *source) {
    static const char *const heads[] = {"variant", "recipe", "its hash", "narrow"};
    page_table(page, heads, 4);
    for (size_t v = 0; v < source->study->variant_count; v++) {
        const study_variant *variant = &source->study->variants[v];
        const report_recipe *recipe = &source->recipes[v];
        const evidence_row *artifact = report_artifact(source, recipe->id);
        page_row(page);
        page_cell(page);
        page_code(page, variant->name);
        page_cell(page);
        page_code(page, variant->recipe);
        page_cell(page);
        if (artifact != NULL)
            page_number(page, artifact->id, "%.16s", evidence_text(artifact, "sha256"));
        else
            page_words(page, "not run");
        page_cell(page);
        page_words(page, "%s",
                   !recipe->known                           ? "not known"
                   : recipe->weights && recipe->activations ? "weights and activations"
                   : recipe->weights                        ? "weights"
                   : recipe->activations                    ? "activations"
                                                            : "nothing");
        page_row_end(page);
    }
    page_end(page);
}

static void opening_list(report_page *page, const report_source *source) {
    if (source->openings.count == 0) return;
    page_begin(page, PAGE_LIST);
    for (size_t i = 0; i < source->openings.count; i++) {
        const evidence_row *row = &source->openings.items[i];
        page_item(page);
        page_words(page, "The verdict set was opened for ");
        page_code(page, evidence_text(row, "variant"));
        page_words(page, " with recipe ");
        page_number(page, row->id, "%.*s at %s", PAGE_ID, evidence_text(row, "recipe"), evidence_text(row, "when"));
        page_words(page, ".");
    }
    page_end(page);
}

void report_origins(report_page *page, const report_source *source) {
    page_heading(page, 2, "What was measured, and on what");
    put_model(page, source);
    environment_table(page, source);
    variant_table(page, source);
    opening_list(page, source);
}
