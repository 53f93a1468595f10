/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/agree.h"

#include <math.h>
#include <stdlib.h>

#include "eval/coco.h"

typedef struct placed {
    const agree_box *box;
    size_t order;
} placed;

static int by_score(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->box->score != y->box->score) return x->box->score > y->box->score ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static bool is_near(const agree_box *box, double threshold) {
    return fabs(box->score - threshold) <= AGREE_NEAR;
}

bool agree_picture(const agree_box *tested, size_t tested_count, const agree_box *reference, size_t reference_count,
                   double threshold, agree_sums *out) {
    placed *sorted = calloc(tested_count + 1, sizeof *sorted);
    bool *taken = calloc(reference_count + 1, sizeof *taken);
    bool good = sorted != NULL && taken != NULL;
    *out = (agree_sums){.tested = (double)tested_count, .reference = (double)reference_count};
    for (size_t i = 0; good && i < tested_count; i++) sorted[i] = (placed){&tested[i], i};
    if (good) qsort(sorted, tested_count, sizeof *sorted, by_score);
    for (size_t i = 0; good && i < tested_count; i++) {
        const agree_box *box = sorted[i].box;
        size_t best = reference_count;
        double highest = 0.0;
        for (size_t r = 0; r < reference_count; r++) {
            if (taken[r] || reference[r].label != box->label) continue;
            double iou = box_iou(box->box, reference[r].box, false);
            if (iou < AGREE_IOU || iou <= highest) continue;
            highest = iou;
            best = r;
        }
        if (best == reference_count) {
            out->near += is_near(box, threshold);
            continue;
        }
        taken[best] = true;
        out->matched++;
        out->iou += highest;
        out->score_change += fabs(box->score - reference[best].score);
    }
    for (size_t r = 0; good && r < reference_count; r++) out->near += !taken[r] && is_near(&reference[r], threshold);
    free(taken);
    free(sorted);
    return good;
}
