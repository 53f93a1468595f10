/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "graph/activate.h"

void oct_elementwise_f32_c(const oct_elementwise_f32 *e) {
    for (int64_t i = 0; i < e->count; i++)
        e->out[i] = oct_activate(e->activation, e->y != NULL ? e->x[i] + e->y[i] : e->x[i]);
}
