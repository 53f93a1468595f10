/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/beside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static evaluate_end run_sample(beside *b, octet_session *session, const octet_lab_sample *sample,
                               octet_result **result) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    picture.kind = OCTET_PICTURE_MEMORY;
    picture.data = sample->data;
    picture.size = sample->size;
    if (octet_session_run(session, &picture, 1, result) == OCTET_OK) return EVALUATE_DONE;
    snprintf(b->failed, sizeof b->failed, "%s", sample->name);
    return EVALUATE_FAILED;
}

static bool grow(beside *b, size_t *capacity) {
    if (b->count < *capacity) return true;
    const size_t wanted = *capacity < 64 ? 64 : *capacity * 2;
    octet_lab_sample **samples = realloc(b->samples, wanted * sizeof(octet_lab_sample *));
    if (samples != NULL) b->samples = samples;
    octet_result **reference = realloc(b->reference, wanted * sizeof(octet_result *));
    if (reference != NULL) b->reference = reference;
    if (samples == NULL || reference == NULL) return false;
    *capacity = wanted;
    return true;
}

/* What a picture and its result hold, beside the structs themselves. */
static size_t bytes_of(const octet_lab_sample *sample, const octet_result *result) {
    size_t rows, columns, boxes;
    octet_result_logits(result, &rows, &columns);
    octet_result_boxes(result, &boxes);
    return sample->size + sample->truth_count * sizeof(octet_lab_truth) + (rows * columns + 4 * boxes) * sizeof(float);
}

evaluate_end beside_open(octet_lab_set *set, octet_session *reference, size_t limit, beside_tick tick, void *user,
                         beside *out) {
    size_t capacity = 0;
    *out = (beside){.task = octet_lab_set_task(set)};
    while (limit == 0 || out->count < limit) {
        octet_lab_sample *sample;
        if (octet_lab_set_next(set, &sample) != OCTET_OK) return EVALUATE_FAILED;
        if (sample == NULL) break;
        octet_result *result = NULL;
        const evaluate_end end =
            grow(out, &capacity) ? run_sample(out, reference, sample, &result) : EVALUATE_NO_MEMORY;
        if (end != EVALUATE_DONE) {
            octet_lab_sample_free(&sample);
            return end;
        }
        out->samples[out->count] = sample;
        out->reference[out->count++] = result;
        out->bytes += bytes_of(sample, result);
        if (out->bytes > BESIDE_BYTES) return EVALUATE_NO_MEMORY;
        if (tick != NULL && !tick(user, out->count)) return EVALUATE_STOPPED;
    }
    snprintf(out->data, sizeof out->data, "%s", octet_lab_set_fingerprint(set));
    return EVALUATE_DONE;
}

void beside_close(beside *b) {
    for (size_t i = 0; i < b->count; i++) {
        octet_lab_sample_free(&b->samples[i]);
        octet_result_free(&b->reference[i]);
    }
    free(b->samples);
    free(b->reference);
    *b = (beside){0};
}

evaluate_end beside_measure(beside *b, octet_session *session, beside_tick tick, void *user, eval_figures *figures) {
    b->failed[0] = '\0';
    for (size_t i = 0; i < b->count; i++) {
        octet_result *result = NULL;
        const evaluate_end end = run_sample(b, session, b->samples[i], &result);
        if (end != EVALUATE_DONE) return end;
        const bool added = eval_add(figures, b->samples[i], result, b->reference[i], NULL);
        octet_result_free(&result);
        if (!added) return EVALUATE_NO_MEMORY;
        if (tick != NULL && !tick(user, i + 1)) return EVALUATE_STOPPED;
    }
    return EVALUATE_DONE;
}

double beside_kl(const eval_figures *figures, size_t i) {
    const double kl = figures->task == OCTET_CLASSIFICATION ? figures->classified[i].kl : figures->pictures[i].kl;
    return isfinite(kl) ? kl : INFINITY;
}
