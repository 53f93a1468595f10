/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"

#define WIDTH 16

void oct_gemm_f32_4x16_c(const oct_gemm_f32 *g) {
    for (int64_t r = 0; r < g->rows; r++) {
        float sum[WIDTH];
        for (int j = 0; j < WIDTH; j++) sum[j] = g->bias[j];
        const float *weights = g->panel;
        for (int64_t s = 0; s < g->segments; s++) {
            const float *a = g->a + r * g->row_stride + s * g->segment_stride;
            for (int64_t k = 0; k < g->length; k++, weights += WIDTH)
                for (int j = 0; j < WIDTH; j++) sum[j] = fmaf(a[k], weights[j], sum[j]);
        }
        for (int j = 0; j < g->columns; j++) {
            if (g->residual != NULL) sum[j] += g->residual[r * g->residual_stride + j];
            g->out[r * g->out_stride + j] = oct_activate(g->activation, sum[j]);
        }
    }
}
