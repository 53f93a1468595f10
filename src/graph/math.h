/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the engines, in float32: exponential, sigmoid, GELU, relu. One header for every backend, also for
 * CUDA: no library call but fmaf, no double, no branch. A vector body mirrors these lines operation by operation, with
 * the same constants, and gives the same bits (contraction off). To mirror:
 *
 *     oct_min(a, b)   a < b ? a : b    _mm256_min_ps(a, b)    a NaN in b comes through
 *     oct_max(a, b)   a > b ? a : b    _mm256_max_ps(a, b)    the same
 *     c ? 0 : y       _mm256_andnot_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ), y)
 *     the bits of a float, shifted left by 23: _mm256_slli_epi32
 *
 * NaN gives NaN; infinities give the limit. Measured over every float against double, and held by
 * tests/unit/graph/math.c:
 *
 *     oct_exp      [-87.3, 88.37626]   at most 1.18 ulp; 0 below, 2^127.5 above
 *     oct_exp2     [-126, 127.5]       at most 0.96 ulp; 0 below
 *     oct_sigmoid  all                 at most 2.82 ulp where the result is above 2^-125
 *     oct_gelu     [-10, 10]           at most 9.4e-8 max(1, |x|), the erf form; below -6 at most 1e-11 */
#ifndef OCT_GRAPH_MATH_H
#define OCT_GRAPH_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#    define OCT_MATH static __host__ __device__ __forceinline__
#else
#    define OCT_MATH static inline
#endif

/* 2^f = 1 + f C1 + .. + f^6 C6 on [-1/2, 1/2], to 2.0e-9 */
#define OCT_EXP2_C1 0x1.62e43p-1f
#define OCT_EXP2_C2 0x1.ebfbdcp-3f
#define OCT_EXP2_C3 0x1.c6aee8p-5f
#define OCT_EXP2_C4 0x1.3b2d4ap-7f
#define OCT_EXP2_C5 0x1.5f3e2ep-10f
#define OCT_EXP2_C6 0x1.41fdp-13f
/* 1.5 * 2^23 + 127: adding it rounds to a whole number n and leaves n + 127, a float's exponent, in the low bits */
#define OCT_EXP2_ROUND 12583039.0f
#define OCT_EXP2_LOW (-126.0f)
#define OCT_EXP_LOG2E_HIGH 0x1.715476p+0f
#define OCT_EXP_LOG2E_LOW 0x1.4ae0bfp-26f
#define OCT_EXP_LOW (-87.3f)
#define OCT_EXP_HIGH 88.37626f

/* log2 of the normal distribution's tail: log2(erfc(a / sqrt 2) / 2) = -1 + a C1 + .. + a^8 C8 on [0, 6]; falls for
 * ever above */
#define OCT_GELU_C1 (-0x1.26af6p+0f)
#define OCT_GELU_C2 (-0x1.d6266p-2f)
#define OCT_GELU_C3 (-0x1.b002acp-5f)
#define OCT_GELU_C4 0x1.e58cb6p-8f
#define OCT_GELU_C5 (-0x1.a1e9dep-12f)
#define OCT_GELU_C6 (-0x1.4dd8ecp-14f)
#define OCT_GELU_C7 0x1.23b214p-16f
#define OCT_GELU_C8 (-0x1.1782a4p-20f)
#define OCT_GELU_LIMIT 32.0f

OCT_MATH float oct_min(float a, float b) {
    return a < b ? a : b;
}

OCT_MATH float oct_max(float a, float b) {
    return a > b ? a : b;
}

/* 2^n (1 + f C1 + ..) for f in [-1/2, 1/2], where t = n + OCT_EXP2_ROUND and n in -126 .. 127 */
OCT_MATH float oct_exp2_scale(float t, float f) {
    float p = OCT_EXP2_C6;
    p = fmaf(p, f, OCT_EXP2_C5);
    p = fmaf(p, f, OCT_EXP2_C4);
    p = fmaf(p, f, OCT_EXP2_C3);
    p = fmaf(p, f, OCT_EXP2_C2);
    p = fmaf(p, f, OCT_EXP2_C1);
    p = fmaf(p, f, 1.0f);
    uint32_t bits;
    float scale;
    memcpy(&bits, &t, sizeof bits);
    bits <<= 23;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* e^x */
OCT_MATH float oct_exp(float x) {
    float y = oct_max(OCT_EXP_LOW, oct_min(OCT_EXP_HIGH, x));
    float t = fmaf(y, OCT_EXP_LOG2E_HIGH, OCT_EXP2_ROUND);
    float n = t - OCT_EXP2_ROUND;
    float f = fmaf(y, OCT_EXP_LOG2E_HIGH, -n);
    f = fmaf(y, OCT_EXP_LOG2E_LOW, f);
    float e = oct_exp2_scale(t, f);
    return x < OCT_EXP_LOW ? 0.0f : e;
}

/* 2^x for x up to 127.5 (not checked); 0 below -126 */
OCT_MATH float oct_exp2(float x) {
    float y = oct_max(OCT_EXP2_LOW, x);
    float t = y + OCT_EXP2_ROUND;
    float e = oct_exp2_scale(t, y - (t - OCT_EXP2_ROUND));
    return x < OCT_EXP2_LOW ? 0.0f : e;
}

/* 1 / (1 + e^-x), from e^-|x| on both sides */
OCT_MATH float oct_sigmoid(float x) {
    float e = oct_exp(-fabsf(x));
    float d = 1.0f / (1.0f + e);
    return x < 0.0f ? e * d : d;
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), and Phi(-|x|) = 2^polynomial: no division, and the left tail keeps its digits
 */
OCT_MATH float oct_gelu(float x) {
    float a = oct_min(OCT_GELU_LIMIT, fabsf(x));
    float p = OCT_GELU_C8;
    p = fmaf(p, a, OCT_GELU_C7);
    p = fmaf(p, a, OCT_GELU_C6);
    p = fmaf(p, a, OCT_GELU_C5);
    p = fmaf(p, a, OCT_GELU_C4);
    p = fmaf(p, a, OCT_GELU_C3);
    p = fmaf(p, a, OCT_GELU_C2);
    p = fmaf(p, a, OCT_GELU_C1);
    p = fmaf(p, a, -1.0f);
    return fmaf(-a, oct_exp2(p), oct_max(0.0f, x));
}

OCT_MATH float oct_relu(float x) {
    return oct_max(0.0f, x);
}

OCT_MATH float oct_relu6(float x) {
    return oct_min(6.0f, oct_max(0.0f, x));
}

#endif
