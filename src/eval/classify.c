/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/classify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool negative_log_softmax(const float *logits, size_t count, double *out) {
    double largest = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(logits[i])) return false;
        if ((double)logits[i] > largest) largest = (double)logits[i];
    }
    for (size_t i = 0; i < count; i++) sum += exp((double)logits[i] - largest);
    double shift = largest + log(sum);
    for (size_t i = 0; i < count; i++) out[i] = shift - (double)logits[i];
    return true;
}

double kl_divergence(const float *reference, const float *tested, size_t count, double *scratch) {
    double *p = scratch, *q = scratch + count, sum = 0.0;
    if (!negative_log_softmax(reference, count, p) || !negative_log_softmax(tested, count, q)) return NAN;
    for (size_t i = 0; i < count; i++) sum += exp(-p[i]) * (q[i] - p[i]);
    return sum > 0.0 ? sum : 0.0; /* rounding alone goes below */
}

/* Classes before `label` in falling order, ties by rising index. */
static size_t rank_of(const float *logits, size_t classes, size_t label) {
    size_t before = 0;
    for (size_t i = 0; i < classes; i++)
        if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) before++;
    return before;
}

static int32_t best_of(const float *logits, size_t classes) {
    size_t best = 0;
    for (size_t i = 0; i < classes; i++) {
        if (!isfinite(logits[i])) return -1;
        if (logits[i] > logits[best]) best = i;
    }
    return (int32_t)best;
}

static double cross_entropy(const float *logits, size_t classes, size_t label) {
    double largest = (double)logits[best_of(logits, classes)], sum = 0.0;
    for (size_t i = 0; i < classes; i++) sum += exp((double)logits[i] - largest);
    return largest + log(sum) - (double)logits[label];
}

static double kl_large(const float *reference, const float *logits, size_t classes) {
    double *scratch = malloc(2 * classes * sizeof *scratch);
    double kl = scratch != NULL ? kl_divergence(reference, logits, classes, scratch) : NAN;
    free(scratch);
    return kl;
}

#define ON_STACK 1024 /* classes */

void classify_picture(const float *logits, const float *reference, size_t classes, int32_t label,
                      picture_figures *out) {
    double scratch[2 * ON_STACK];
    size_t right = (size_t)label;
    *out = (picture_figures){.label = label, .best = best_of(logits, classes), .reference_best = -1};
    out->finite = out->best >= 0;
    out->cross_entropy = out->reference_cross_entropy = out->kl = NAN;
    if (out->finite) {
        out->top1 = out->best == label;
        out->top5 = rank_of(logits, classes, right) < 5;
        out->cross_entropy = cross_entropy(logits, classes, right);
    }
    if (reference == NULL) return;
    out->reference_best = best_of(reference, classes);
    out->reference_finite = out->reference_best >= 0;
    if (!out->reference_finite) return;
    out->reference_top1 = out->reference_best == label;
    out->reference_cross_entropy = cross_entropy(reference, classes, right);
    if (out->finite)
        out->kl = classes <= ON_STACK ? kl_divergence(reference, logits, classes, scratch)
                                      : kl_large(reference, logits, classes);
}

/* ---- all pictures: a column a figure, so that one bootstrap serves all */

enum { TOP1, TOP5, AGREEMENT, KL, TOP1_CHANGE, ENTROPY_CHANGE, COLUMNS };

static double mean(const double *values, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    return sum / (double)n;
}

static void count(const picture_figures *pictures, size_t n, bool with_reference, double *const *columns,
                  classification_figures *out) {
    double entropy = 0.0, reference_right = 0.0;
    for (size_t i = 0; i < n; i++) {
        const picture_figures *p = &pictures[i];
        columns[TOP1][i] = p->top1;
        columns[TOP5][i] = p->top5;
        entropy += p->cross_entropy;
        out->nonfinite += !p->finite;
        if (!with_reference) continue;
        out->reference_nonfinite += !p->reference_finite;
        bool agrees = p->finite && p->best == p->reference_best;
        columns[AGREEMENT][i] = agrees;
        columns[KL][i] = p->kl;
        columns[TOP1_CHANGE][i] = (double)p->top1 - (double)p->reference_top1;
        columns[ENTROPY_CHANGE][i] = p->cross_entropy - p->reference_cross_entropy;
        out->gained += p->top1 && !p->reference_top1;
        out->lost += !p->top1 && p->reference_top1;
        out->changed += !agrees;
        reference_right += p->reference_top1;
    }
    out->n = n;
    out->top1 = mean(columns[TOP1], n);
    out->top5 = mean(columns[TOP5], n);
    out->cross_entropy = entropy / (double)n;
    if (with_reference) out->reference_top1 = reference_right / (double)n;
}

static void compare(double *const *columns, size_t n, double *sorted, classification_figures *out) {
    out->agreement = mean(columns[AGREEMENT], n);
    out->kl = mean(columns[KL], n);
    out->kl_se = standard_error(columns[KL], n);
    out->cross_entropy_change = mean(columns[ENTROPY_CHANGE], n);
    out->cross_entropy_change_se = standard_error(columns[ENTROPY_CHANGE], n);
    out->mcnemar_p = mcnemar_exact(out->gained, out->lost);
    out->kl_p95 = out->kl_p99 = NAN;
    if (!isfinite(out->kl)) return;
    memcpy(sorted, columns[KL], n * sizeof *sorted);
    out->kl_p95 = quantile(sorted, n, 0.95);
    out->kl_p99 = quantile(sorted, n, 0.99);
}

bool classification(const picture_figures *pictures, size_t n, bool with_reference, size_t draws, uint64_t seed,
                    classification_figures *out) {
    static const double *const no_under[COLUMNS];
    figure_interval intervals[COLUMNS];
    double *columns[COLUMNS], *block = calloc((COLUMNS + 1) * n, sizeof *block);
    if (block == NULL) return false;
    *out = (classification_figures){0};
    for (size_t c = 0; c < COLUMNS; c++) {
        columns[c] = block + c * n;
        intervals[c] = (figure_interval){NAN, NAN};
    }
    count(pictures, n, with_reference, columns, out);
    if (with_reference) compare(columns, n, block + COLUMNS * n, out);
    bool good = draws == 0 || bootstrap_ratios((const double *const *)columns, no_under,
                                               with_reference ? COLUMNS : AGREEMENT, n, draws, seed, intervals);
    out->top1_interval = intervals[TOP1];
    out->top5_interval = intervals[TOP5];
    out->agreement_interval = intervals[AGREEMENT];
    out->kl_interval = intervals[KL];
    out->top1_change_interval = intervals[TOP1_CHANGE];
    out->cross_entropy_change_interval = intervals[ENTROPY_CHANGE];
    free(block);
    return good;
}
