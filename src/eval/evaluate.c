/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct batch {
    evaluation *e;
    octet_lab_sample **samples;
    octet_picture *pictures;
    octet_result **reference;
    json_t **lines; /* of one picture */
    size_t count;
} batch;

static void free_pictures(batch *b) {
    for (size_t i = 0; i < b->count; i++) {
        octet_lab_sample_free(&b->samples[i]);
        octet_result_free(&b->reference[i]);
        for (size_t s = 0; s < b->e->side_count; s++) octet_result_free(&b->e->sides[s].results[i]);
    }
    b->count = 0;
}

static evaluate_end read_pictures(batch *b) {
    const evaluation *e = b->e;
    const size_t done = e->sides[0].figures.n;
    while (b->count < e->batch && (e->limit == 0 || done + b->count < e->limit)) {
        octet_lab_sample *sample;
        if (octet_lab_set_next(e->set, &sample) != OCTET_OK) return EVALUATE_FAILED;
        if (sample == NULL) break;
        octet_picture *picture = &b->pictures[b->count];
        *picture = (octet_picture)OCTET_PICTURE_DEFAULT;
        picture->kind = OCTET_PICTURE_MEMORY;
        picture->data = sample->data;
        picture->size = sample->size;
        b->samples[b->count++] = sample;
    }
    return EVALUATE_DONE;
}

/* Which picture of a failed batch it was: each is run alone. */
static evaluate_end name_failure(batch *b, octet_session *session) {
    for (size_t i = 0; i < b->count; i++) {
        octet_result *result;
        if (octet_session_run(session, &b->pictures[i], 1, &result) == OCTET_OK) {
            octet_result_free(&result);
            continue;
        }
        snprintf(b->e->failed, sizeof b->e->failed, "%s", b->samples[i]->name);
        break;
    }
    return EVALUATE_FAILED;
}

static evaluate_end run_pictures(batch *b) {
    evaluation *e = b->e;
    for (size_t s = 0; s < e->side_count; s++) {
        evaluate_side *side = &e->sides[s];
        if (octet_session_run(side->session, b->pictures, b->count, side->results) != OCTET_OK)
            return name_failure(b, side->session);
    }
    if (e->reference != NULL && octet_session_run(e->reference, b->pictures, b->count, b->reference) != OCTET_OK)
        return name_failure(b, e->reference);
    return EVALUATE_DONE;
}

static evaluate_end add_picture(batch *b, size_t i) {
    evaluation *e = b->e;
    bool good = true;
    for (size_t s = 0; s < e->side_count; s++) b->lines[s] = NULL;
    for (size_t s = 0; good && s < e->side_count; s++)
        good = eval_add(&e->sides[s].figures, b->samples[i], e->sides[s].results[i], b->reference[i],
                        e->lines ? &b->lines[s] : NULL);
    if (!good) {
        for (size_t s = 0; s < e->side_count; s++) json_decref(b->lines[s]);
        return EVALUATE_NO_MEMORY;
    }
    return e->after == NULL || e->after(e->user, b->samples[i], b->lines) ? EVALUATE_DONE : EVALUATE_STOPPED;
}

static evaluate_end run_all(batch *b) {
    for (;;) {
        evaluate_end end = read_pictures(b);
        if (end == EVALUATE_DONE && b->count == 0) return EVALUATE_DONE;
        if (end == EVALUATE_DONE) end = run_pictures(b);
        for (size_t i = 0; end == EVALUATE_DONE && i < b->count; i++) end = add_picture(b, i);
        free_pictures(b);
        if (end != EVALUATE_DONE) return end;
    }
}

evaluate_end evaluate(evaluation *e) {
    batch b = {.e = e};
    e->failed[0] = '\0';
    b.samples = calloc(e->batch, sizeof *b.samples);
    b.pictures = calloc(e->batch, sizeof *b.pictures);
    b.reference = calloc(e->batch, sizeof(octet_result *));
    b.lines = calloc(e->side_count, sizeof(json_t *));
    bool good = b.samples != NULL && b.pictures != NULL && b.reference != NULL && b.lines != NULL;
    for (size_t s = 0; s < e->side_count; s++) {
        e->sides[s].results = calloc(e->batch, sizeof(octet_result *));
        good = good && e->sides[s].results != NULL;
    }
    const evaluate_end end = good ? run_all(&b) : EVALUATE_NO_MEMORY;
    for (size_t s = 0; s < e->side_count; s++) {
        free(e->sides[s].results);
        e->sides[s].results = NULL;
    }
    free(b.lines);
    free(b.reference);
    free(b.pictures);
    free(b.samples);
    return end;
}
