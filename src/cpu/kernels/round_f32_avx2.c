/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernels/kernels.h"

#include "cpu/kernels/stored_avx2.h"

#include "cpu/kernels/round_f32_rows.inc"

void oct_round_f32_avx2(const oct_round_f32 *q) {
    round_rows(q);
}
