/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

void oct_round_f32_c(const oct_round_f32 *q) {
    for (int64_t r = 0; r < q->rows; r++)
        oct_stored_round(&q->rounding, 1, q->columns, q->x + r * q->x_stride,
                         q->values != NULL ? q->values + r * q->out_stride : NULL,
                         q->codes != NULL ? q->codes + r * q->out_stride : NULL,
                         q->row_scales != NULL ? q->row_scales + r : NULL);
}
