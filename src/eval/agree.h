/* SPDX-License-Identifier: Apache-2.0 */
/* A detector beside a reference: detections of one picture matched one to one (decision 10 of the design). */
#ifndef OCT_EVAL_AGREE_H
#define OCT_EVAL_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGREE_IOU 0.5
#define AGREE_NEAR 0.05 /* of the threshold: what such scores lose says little */

typedef struct agree_box {
    int32_t label;
    double box[4]; /* x, y, width, height */
    double score;
} agree_box;

/* Sums of one picture; those of several add up. */
typedef struct agree_sums {
    double tested, reference, matched; /* detections */
    double iou, score_change;          /* of the matched, summed; |tested - reference| */
    double near;                       /* unmatched, of either side, with a score within AGREE_NEAR of the threshold */
} agree_sums;

/* Tested detections by falling score (ties in the order given), each takes the free reference box of its class with the
 * highest IoU >= 0.5 (ties: the first). All given are above the threshold. False: no memory. */
bool agree_picture(const agree_box *tested, size_t tested_count, const agree_box *reference, size_t reference_count,
                   double threshold, agree_sums *out);

#endif
