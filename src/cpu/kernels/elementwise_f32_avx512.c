/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/vector_avx512.h"

OCT_INLINE void run(const oct_elementwise_f32 *e, const oct_activation activation, const bool add) {
    for (int64_t i = 0; i < e->count; i += 16) {
        const __mmask16 mask = oct_mask(e->count - i);
        __m512 x = _mm512_maskz_loadu_ps(mask, e->x + i);
        if (add) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, e->y + i));
        _mm512_mask_storeu_ps(e->out + i, mask, oct_v_activate(activation, x));
    }
}

void oct_elementwise_f32_avx512(const oct_elementwise_f32 *e) {
    const bool add = e->y != NULL;
    switch (e->activation) {
    case OCT_ACTIVATION_NONE:
        add ? run(e, OCT_ACTIVATION_NONE, true) : run(e, OCT_ACTIVATION_NONE, false);
        break;
    case OCT_ACTIVATION_GELU:
        add ? run(e, OCT_ACTIVATION_GELU, true) : run(e, OCT_ACTIVATION_GELU, false);
        break;
    default:
        add ? run(e, e->activation, true) : run(e, e->activation, false);
        break;
    }
}
