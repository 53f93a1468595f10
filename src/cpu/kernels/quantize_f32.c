/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/stored.h"

static void one(const oct_quantize_f32 *q, int64_t at, float x, float inverse) {
    switch (q->format) {
    case OCT_FORMAT_INT8:
        ((int8_t *)q->out)[at] = oct_stored_int8(x, inverse);
        break;
    case OCT_FORMAT_E4M3:
        ((uint8_t *)q->out)[at] = oct_e4m3_encode(x * inverse);
        break;
    case OCT_FORMAT_FP16:
        ((uint16_t *)q->out)[at] = oct_fp16_encode(x);
        break;
    default:
        ((uint16_t *)q->out)[at] = oct_bf16_encode(x);
    }
}

void oct_quantize_f32_c(const oct_quantize_f32 *q) {
    for (int64_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        float inverse = q->inverse;
        if (q->scales != NULL) {
            q->scales[r] = oct_stored_row_scale(q->format, x, q->columns);
            inverse = 1.0f / q->scales[r];
        }
        for (int64_t c = 0; c < q->columns; c++) one(q, r * q->out_stride + c, x[c], inverse);
    }
}
