/* SPDX-License-Identifier: Apache-2.0 */
/* Quality of a classifier, alone and beside a reference (decision 10 of the design). */
#ifndef OCT_EVAL_CLASSIFY_H
#define OCT_EVAL_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/statistics.h"

/* One picture. A picture with a logit that is not finite is wrong, agrees with nothing, and its KL and cross-entropy
 * are NaN. */
typedef struct picture_figures {
    int32_t label, best,
        reference_best; /* best: the class of the largest logit, ties to the lower index; -1: not finite */
    bool top1, top5, reference_top1;
    bool finite, reference_finite;
    double cross_entropy, reference_cross_entropy; /* -log softmax(logits)[label], nats */
    double kl;                                     /* KL(reference || tested), nats */
} picture_figures;
/* `reference` NULL: none. */
void classify_picture(const float *logits, const float *reference, size_t classes, int32_t label, picture_figures *out);

/* -log softmax of a row in double, into `out`; false: a value is not finite. */
bool negative_log_softmax(const float *logits, size_t count, double *out);
/* KL(reference || tested) of two rows of logits in nats, each softmax over all; NaN: not finite. `scratch`: 2 * count.
 */
double kl_divergence(const float *reference, const float *tested, size_t count, double *scratch);

typedef struct classification_figures {
    size_t n, nonfinite, reference_nonfinite;
    double top1, top5, cross_entropy;
    figure_interval top1_interval, top5_interval;
    /* beside a reference */
    double reference_top1, agreement, kl, kl_se, kl_p95, kl_p99, cross_entropy_change, cross_entropy_change_se,
        mcnemar_p;
    size_t gained, lost, changed; /* wrong to right, right to wrong, another best class */
    figure_interval agreement_interval, kl_interval, top1_change_interval, cross_entropy_change_interval;
} classification_figures;
/* n >= 1. draws 0: no intervals. False: no memory. */
bool classification(const picture_figures *pictures, size_t n, bool with_reference, size_t draws, uint64_t seed,
                    classification_figures *out);

#endif
