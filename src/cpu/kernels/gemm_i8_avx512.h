/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512: the end of a tile of gemm_i8.h, from its sums [rows][32], which bodies of VNNI and AMX share. */
#ifndef OCT_CPU_KERNELS_GEMM_I8_AVX512_H
#define OCT_CPU_KERNELS_GEMM_I8_AVX512_H

#include "cpu/kernels/finish_i8_avx512.h"
#include "cpu/kernels/gemm_i8.h"

#define OCT_GEMM_I8_WIDTH 32

/* The 16 bytes at vector v of four packed ones lie in lane v after this. */
OCT_INLINE __m512i oct_gemm_i8_order(void) {
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/* Codes alone, of bounded numbers: two rows of 32 columns at once, or four of 16. */
OCT_INLINE void oct_gemm_i8_codes(const oct_gemm_i8 *g, const int32_t *sums, int64_t row, int64_t rows,
                                  const int vectors) {
    const int group = 4 / vectors;
    const __m512i order = oct_gemm_i8_order();
    const __m512i low = _mm512_set1_epi8(g->finish.low), top = _mm512_set1_epi8(g->finish.top);
    const __m512 inverse = _mm512_set1_ps(g->finish.inverse);
    const __m512 scales[2] = {_mm512_loadu_ps(g->scales), _mm512_loadu_ps(g->scales + 16)};
    const __m512 bias[2] = {_mm512_loadu_ps(g->bias), _mm512_loadu_ps(g->bias + 16)};
    const __mmask32 mask = g->columns >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << g->columns) - 1;
    for (int64_t r = 0; r < rows; r += group) {
        __m512i v[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const int64_t own = r + i / vectors < rows ? r + i / vectors : rows - 1;
            const __m512i sum = _mm512_loadu_si512(sums + own * OCT_GEMM_I8_WIDTH + i % vectors * 16);
            v[i] = oct_v_code(sum, scales[i % vectors], bias[i % vectors], inverse);
        }
        const __m512i bytes = _mm512_permutexvar_epi32(order, oct_v_pack_codes(v, low, top));
        int8_t *to = g->codes + (row + r) * g->code_stride;
        if (vectors == 2) {
            _mm256_mask_storeu_epi8(to, mask, _mm512_castsi512_si256(bytes));
            if (r + 1 < rows) _mm256_mask_storeu_epi8(to + g->code_stride, mask, _mm512_extracti64x4_epi64(bytes, 1));
            continue;
        }
        const __mmask16 half = (__mmask16)mask;
        _mm_mask_storeu_epi8(to, half, _mm512_castsi512_si128(bytes));
        if (r + 1 < rows) _mm_mask_storeu_epi8(to + g->code_stride, half, _mm512_extracti32x4_epi32(bytes, 1));
        if (r + 2 < rows) _mm_mask_storeu_epi8(to + 2 * g->code_stride, half, _mm512_extracti32x4_epi32(bytes, 2));
        if (r + 3 < rows) _mm_mask_storeu_epi8(to + 3 * g->code_stride, half, _mm512_extracti32x4_epi32(bytes, 3));
    }
}

/* Everything else, a vector at a time. */
OCT_INLINE void oct_gemm_i8_numbers(const oct_gemm_i8 *g, const int32_t *sums, int64_t row, int64_t rows,
                                    const bool curved) {
    const __m512 inverse = _mm512_set1_ps(g->finish.inverse);
    for (int v = 0; 16 * v < g->columns; v++) {
        const __m512 scales = _mm512_loadu_ps(g->scales + 16 * v), bias = _mm512_loadu_ps(g->bias + 16 * v);
        const __mmask16 mask = oct_mask(g->columns - 16 * v);
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = row + r;
            const __m512 sum = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums + r * OCT_GEMM_I8_WIDTH + 16 * v));
            const __m512 scale =
                g->row_scales != NULL ? _mm512_mul_ps(_mm512_set1_ps(g->row_scales[at]), scales) : scales;
            __m512 x = _mm512_fmadd_ps(sum, scale, bias);
            if (g->residual != NULL)
                x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, g->residual + at * g->residual_stride + 16 * v));
            x = curved ? oct_v_activate(g->finish.activation, x) : oct_v_cut(g->finish.activation, x);
            if (g->out != NULL) _mm512_mask_storeu_ps(g->out + at * g->out_stride + 16 * v, mask, x);
            if (g->codes != NULL)
                _mm_mask_storeu_epi8(g->codes + at * g->code_stride + 16 * v, mask, oct_v_int8(x, inverse));
        }
    }
}

/* Rows row .. row + rows - 1 of the block, rows and columns as in g. */
static __attribute__((noinline)) void oct_gemm_i8_finish(const oct_gemm_i8 *g, const int32_t *sums, int64_t row,
                                                         int64_t rows) {
    const oct_activation activation = g->finish.activation;
    if (g->out == NULL && g->finish.bounded) {
        if (g->columns > 16)
            oct_gemm_i8_codes(g, sums, row, rows, 2);
        else
            oct_gemm_i8_codes(g, sums, row, rows, 1);
    } else if (activation == OCT_ACTIVATION_GELU || activation == OCT_ACTIVATION_SIGMOID) {
        oct_gemm_i8_numbers(g, sums, row, rows, true);
    } else {
        oct_gemm_i8_numbers(g, sums, row, rows, false);
    }
}

#endif
