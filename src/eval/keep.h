/* SPDX-License-Identifier: Apache-2.0 */
/* What eval_figures has of one picture, as JSON and back: an evaluation that was stopped goes on from there, with the
 * same figures to the last bit.
 *
 * Classification: {label, best, top1, top5, finite, ce} and beside a reference {rbest, rtop1, rfinite, rce, kl}.
 * Detection: {image_id, finite, truths: [[label, crowd, id is zero, x, y, width, height, area]...],
 * tokens: [[label, score, x, y, width, height]...]} and beside a reference {rfinite, tested, wanted, matched, iou,
 * drift, near, kl}. Numbers that are not finite are null. */
#ifndef OCT_EVAL_KEEP_H
#define OCT_EVAL_KEEP_H

#include "eval/figures.h"

/* Of the picture that was added last, before eval_report. NULL: no memory. */
json_t *eval_keep(const eval_figures *figures);
/* As if that picture were added now. False: no memory, or not such a record. */
bool eval_restore(eval_figures *figures, const json_t *record);

#endif
