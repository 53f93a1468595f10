/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

static float number(const oct_dequantize_f32 *q, int64_t at, float scale) {
    switch (q->format) {
    case OCT_FORMAT_INT8:
        return oct_int8_decode(((const int8_t *)q->x)[at], scale);
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(((const uint8_t *)q->x)[at]) * scale;
    case OCT_FORMAT_FP16:
        return oct_fp16_decode(((const uint16_t *)q->x)[at]);
    default:
        return oct_bf16_decode(((const uint16_t *)q->x)[at]);
    }
}

void oct_dequantize_f32_c(const oct_dequantize_f32 *q) {
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t c = 0; c < q->columns; c++)
            q->out[r * q->out_stride + c] = number(q, r * q->x_stride + c, q->scales != NULL ? q->scales[r] : q->scale);
}
