/* SPDX-License-Identifier: Apache-2.0 */
/* The rounding of graph/stored.h by format, for a vector of any width: stored_avx2.h or stored_avx512.h comes before.
 */
#ifndef OCT_CPU_KERNELS_STORED_NUMBER_H
#define OCT_CPU_KERNELS_STORED_NUMBER_H

#include "graph/stored.h"

/* What the code of y stands for. */
OCT_INLINE oct_v oct_v_number(const oct_format format, oct_v y, oct_v scale, oct_v inverse, int zero_point) {
    switch (format) {
    case OCT_FORMAT_FP16:
        return oct_v_round_fp16(y);
    case OCT_FORMAT_BF16:
        return oct_v_round_bf16(y);
    case OCT_FORMAT_INT8:
        return oct_v_mul(oct_v_round_int8(y, inverse), scale);
    case OCT_FORMAT_UINT8:
        return oct_v_mul(oct_v_round_uint8(y, inverse, zero_point), scale);
    case OCT_FORMAT_E5M2:
        return oct_v_mul(oct_v_round_minifloat(oct_v_mul(y, inverse), 57344.0f, 0x1p-14f, 0x1.8p21f), scale);
    default: /* e4m3, mxfp8 */
        return oct_v_mul(oct_v_round_minifloat(oct_v_mul(y, inverse), 448.0f, 0x1p-6f, 0x1.8p20f), scale);
    }
}

OCT_INLINE oct_v oct_v_probability(oct_format format, oct_v p) {
    const float scale = format == OCT_FORMAT_E4M3 ? OCT_PROBABILITY_E4M3 : OCT_PROBABILITY_INT8;
    return oct_v_number(format, p, oct_v_set(scale), oct_v_set(1.0f / scale), 0);
}

#endif
