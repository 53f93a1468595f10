/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates' answers, picture by picture: whose answer changed, told by content hash, what changed a class, and
 * how far answers moved. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "study/report_plot.h"
#include "study/report_sections.h"

#define SHOWN 40   /* pictures in the table */
#define CLASSES 20 /* bars of classes */

typedef struct answer {
    const json_t *record;
    const char *sample; /* id of the row */
    const char *hash;   /* of the picture; "" if its set is not there */
    double change;      /* KL, or unmatched detections; 0: the same answer */
} answer;
typedef struct answers {
    evidence_rows samples;
    answer *items;
    size_t count;
} answers;

static double number(const json_t *record, const char *key) {
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool is_changed(const json_t *record, octet_task task) {
    if (task == OCTET_CLASSIFICATION) return number(record, "best") != number(record, "rbest");
    return number(record, "matched") < number(record, "tested") || number(record, "matched") < number(record, "wanted");
}

static double change_of(const json_t *record, octet_task task) {
    if (task == OCTET_CLASSIFICATION) return number(record, "kl");
    return number(record, "tested") + number(record, "wanted") - 2.0 * number(record, "matched");
}

static octet_status load(const report_source *source, const evidence_row *run, answers *out) {
    const evidence_row *set = report_artifact(source, evidence_text(run, "pictures"));
    const json_t *pictures = set != NULL ? json_object_get(set->body, "pictures") : NULL;
    size_t count = 0;
    *out = (answers){0};
    OCT_TRY(evidence_list(source->evidence, EVIDENCE_SAMPLE, &(evidence_query){.run = run->id}, &out->samples));
    for (size_t i = 0; i < out->samples.count; i++)
        count += json_array_size(json_object_get(out->samples.items[i].body, "pictures"));
    out->items = calloc(count + 1, sizeof *out->items);
    if (out->items == NULL) return oct_fail_memory();
    for (size_t i = 0; i < out->samples.count; i++) {
        const evidence_row *row = &out->samples.items[i];
        const json_t *records = json_object_get(row->body, "pictures");
        for (size_t k = 0; k < json_array_size(records); k++) {
            const json_t *record = json_array_get(records, k);
            const json_t *picture = json_array_get(pictures, (size_t)evidence_integer(row, "at") + k);
            const char *hash = json_string_value(json_object_get(picture, "sha256"));
            out->items[out->count++] =
                (answer){record, row->id, hash != NULL ? hash : "", change_of(record, source->task)};
        }
    }
    return OCTET_OK;
}

static void release(answers *list) {
    evidence_rows_free(&list->samples);
    free(list->items);
    *list = (answers){0};
}

/* ---- pictures */

/* The most changed first; a change that is not a number before all. */
static int by_change(const void *a, const void *b) {
    const answer *x = *(const answer *const *)a, *y = *(const answer *const *)b;
    double p = isnan(x->change) ? INFINITY : x->change, q = isnan(y->change) ? INFINITY : y->change;
    if (p != q) return p < q ? 1 : -1;
    return strcmp(x->hash, y->hash);
}

static void picture_row(report_page *page, const answer *a, octet_task task) {
    static const char *const keys[2][3] = {{"label", "rbest", "best"}, {"wanted", "tested", "matched"}};
    page_row(page);
    page_cell(page);
    page_number(page, a->sample, "%.*s", PAGE_ID, a->hash);
    for (size_t k = 0; k < 3; k++) {
        page_cell(page);
        page_number(page, a->sample, "%.0f", number(a->record, keys[task == OCTET_DETECTION][k]));
    }
    page_cell(page);
    page_number(page, a->sample, "%.4g", number(a->record, "kl"));
    page_row_end(page);
}

static octet_status picture_table(report_page *page, const answers *list, octet_task task, const char *run) {
    static const char *const heads[2][5] = {
        {"picture (SHA-256)", "label", "reference's class", "this engine's class", "KL"},
        {"picture (SHA-256)", "reference's detections", "this engine's", "matched", "KL"}};
    const answer **changed = calloc(list->count + 1, sizeof(answer *));
    size_t count = 0;
    if (changed == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++)
        if (is_changed(list->items[i].record, task)) changed[count++] = &list->items[i];
    qsort(changed, count, sizeof(answer *), by_change);
    page_begin(page, PAGE_PARAGRAPH);
    page_number(page, run, "%zu of %zu", count, list->count);
    page_words(page, task == OCTET_DETECTION ? " pictures have an unmatched detection on either side"
                                             : " pictures have another best class than the reference's");
    page_words(page, count > SHOWN ? "; the first by size of the change:" : count > 0 ? ":" : ".");
    page_end(page);
    if (count > 0) {
        page_table(page, heads[task == OCTET_DETECTION], 5);
        for (size_t i = 0; i < count && i < SHOWN; i++) picture_row(page, changed[i], task);
        page_end(page);
    }
    free(changed);
    return OCTET_OK;
}

/* ---- classes: right answers gained less lost */

typedef struct class_change {
    int64_t label;
    double change;
} class_change;

static int by_size(const void *a, const void *b) {
    const class_change *x = a, *y = b;
    if (fabs(x->change) != fabs(y->change)) return fabs(x->change) < fabs(y->change) ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

static size_t count_classes(const answers *list, class_change *out) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const json_t *record = list->items[i].record;
        int64_t label = json_integer_value(json_object_get(record, "label"));
        double change = (double)json_is_true(json_object_get(record, "top1")) -
                        (double)json_is_true(json_object_get(record, "rtop1"));
        size_t at = 0;
        while (at < count && out[at].label != label) at++;
        if (at == count) out[count++] = (class_change){label, 0.0};
        out[at].change += change;
    }
    qsort(out, count, sizeof *out, by_size);
    while (count > 0 && out[count - 1].change == 0.0) count--;
    return count;
}

static octet_status draw_classes(report_page *page, const answers *list, const char *run) {
    class_change *classes = calloc(list->count + 1, sizeof *classes);
    plot_point points[CLASSES];
    char names[CLASSES][32];
    oct_text svg = {0};
    if (classes == NULL) return oct_fail_memory();
    size_t count = count_classes(list, classes);
    for (size_t i = 0; i < count && i < CLASSES; i++) {
        (void)snprintf(names[i], sizeof names[i], "class %lld", (long long)classes[i].label);
        points[i] = (plot_point){.y = classes[i].change,
                                 .low = NAN,
                                 .high = NAN,
                                 .label = names[i],
                                 .id = run,
                                 .other = classes[i].change < 0.0};
    }
    plot_bars(&svg, points, count < CLASSES ? count : CLASSES, "right answers gained less lost");
    if (svg.length > 0)
        page_drawing(page, svg.data, "Classes whose count of right answers changed, the most changed first.");
    oct_text_free(&svg);
    free(classes);
    return OCTET_OK;
}

static octet_status draw_moves(report_page *page, const answers *list) {
    double *moves = calloc(list->count + 1, sizeof *moves);
    oct_text svg = {0};
    if (moves == NULL) return oct_fail_memory();
    for (size_t i = 0; i < list->count; i++) moves[i] = number(list->items[i].record, "kl");
    plot_histogram(&svg, moves, list->count, "KL(reference || tested) of a picture, nats");
    if (svg.length > 0) page_drawing(page, svg.data, "How far each picture's answer moved.");
    oct_text_free(&svg);
    free(moves);
    return OCTET_OK;
}

/* ---- the section */

static octet_status candidate_answers(report_page *page, const report_source *source, const report_decision *d) {
    const evidence_row *run = report_run(source, d->environment, "evaluate", d->decided.variant, "verdict");
    answers list;
    if (run == NULL) return OCTET_OK;
    octet_status status = load(source, run, &list);
    if (status == OCTET_OK) {
        page_heading(page, 3, "%s, %s", d->decided.variant, evidence_text(d->environment, "device"));
        status = picture_table(page, &list, source->task, run->id);
    }
    if (status == OCTET_OK && source->task == OCTET_CLASSIFICATION) status = draw_classes(page, &list, run->id);
    if (status == OCTET_OK) status = draw_moves(page, &list);
    release(&list);
    return status;
}

octet_status report_pictures(report_page *page, const report_source *source) {
    page_heading(page, 2, "Pictures whose answer differs");
    page_begin(page, PAGE_PARAGRAPH);
    page_words(page, "Of the verdict set; a picture is told by the hash of its file.");
    page_end(page);
    for (size_t i = 0; i < source->decision_count; i++) OCT_TRY(candidate_answers(page, source, &source->decisions[i]));
    return OCTET_OK;
}
