/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cpu/kernels/kernels.h"

void oct_copy_f32_c(const oct_copy_f32 *m) {
    if (m->in_stride == m->channels && m->out_stride == m->channels) {
        memcpy(m->out, m->in, (size_t)(m->rows * m->channels) * sizeof *m->out);
        return;
    }
    for (int64_t r = 0; r < m->rows; r++)
        memcpy(m->out + r * m->out_stride, m->in + r * m->in_stride, (size_t)m->channels * sizeof *m->out);
}
