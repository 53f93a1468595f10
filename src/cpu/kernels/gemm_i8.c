/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"
#include "graph/stored.h"

#define WIDTH 16
#define UNIT 4

static void sums(const oct_gemm_i8 *g, int64_t r, int32_t sum[WIDTH]) {
    const int8_t *a = g->a + r * g->row_stride;
    for (int j = 0; j < WIDTH; j++) sum[j] = 0;
    for (int64_t k = 0; k < g->depth; k++) {
        const int8_t *w = (const int8_t *)g->panel + k / UNIT * UNIT * WIDTH + k % UNIT;
        for (int j = 0; j < WIDTH; j++) sum[j] += (int32_t)a[k] * (int32_t)w[j * UNIT];
    }
}

void oct_gemm_i8_4x16_c(const oct_gemm_i8 *g) {
    for (int64_t r = 0; r < g->rows; r++) {
        int32_t sum[WIDTH];
        sums(g, r, sum);
        for (int j = 0; j < g->columns; j++) {
            const float scale = g->row_scales != NULL ? g->row_scales[r] * g->scales[j] : g->scales[j];
            float v = fmaf((float)sum[j], scale, g->bias[j]);
            if (g->residual != NULL) v += g->residual[r * g->residual_stride + j];
            v = oct_activate(g->finish.activation, v);
            if (g->out != NULL) g->out[r * g->out_stride + j] = v;
            if (g->codes != NULL) g->codes[r * g->code_stride + j] = oct_stored_int8(v, g->finish.inverse);
        }
    }
}
