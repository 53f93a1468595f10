/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of a time: operations at the rate of independent fused multiply-adds in registers, or bytes at the rate of
 * a copy that stays in the last cache, whichever takes longer. Both are measured here, in the run that prints them. */
#include <math.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#include "base/alloc.h"
#include "opcheck/opcheck.h"

#define STEPS 100000 /* short: one of many runs is not interrupted */
#define RUNS 200

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double chains_avx512(void) {
    __m512 a[12];
    const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
    for (int i = 0; i < 12; i++) a[i] = _mm512_set1_ps((float)i);
    const double start = now();
    for (long s = 0; s < STEPS; s++) {
#    pragma GCC unroll 12
        for (int i = 0; i < 12; i++) a[i] = _mm512_fmadd_ps(a[i], x, y);
    }
    const double seconds = now() - start;
    for (int i = 0; i < 12; i++) sink = _mm512_cvtss_f32(a[i]);
    return 2.0 * 16 * 12 * STEPS / seconds;
}

__attribute__((target("avx2,fma"))) static double chains_avx2(void) {
    __m256 a[12];
    const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
    for (int i = 0; i < 12; i++) a[i] = _mm256_set1_ps((float)i);
    const double start = now();
    for (long s = 0; s < STEPS; s++) {
#    pragma GCC unroll 12
        for (int i = 0; i < 12; i++) a[i] = _mm256_fmadd_ps(a[i], x, y);
    }
    const double seconds = now() - start;
    for (int i = 0; i < 12; i++) sink = _mm256_cvtss_f32(a[i]);
    return 2.0 * 8 * 12 * STEPS / seconds;
}
#endif

static double chains_plain(void) {
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const double start = now();
    for (long s = 0; s < STEPS; s++)
        for (int i = 0; i < 8; i++) a[i] = fmaf(a[i], 0.999f, 0.001f);
    const double seconds = now() - start;
    for (int i = 0; i < 8; i++) sink = a[i];
    return 2.0 * 8 * STEPS / seconds;
}

double floor_flops(oct_isa isa) {
    static double rate[OCT_ISA_COUNT];
    if (rate[isa] > 0) return rate[isa];
    for (int i = 0; i < RUNS; i++) {
        double r = 0;
#if defined(__x86_64__)
        if (isa >= OCT_ISA_AVX512) r = chains_avx512();
        if (isa == OCT_ISA_AVX2) r = chains_avx2();
#endif
        if (isa == OCT_ISA_C) r = chains_plain();
        if (rate[isa] < r) rate[isa] = r;
    }
    return rate[isa];
}

double floor_bytes(void) {
    static double rate;
    if (rate > 0) return rate;
    const size_t size = (size_t)1 << 20;
    uint8_t *a = oct_calloc(1, size), *b = oct_calloc(1, size);
    for (int i = 0; a != NULL && b != NULL && i < 200; i++) {
        const double start = now();
        memcpy(i % 2 ? a : b, i % 2 ? b : a, size);
        const double seconds = now() - start;
        if (rate < 2.0 * (double)size / seconds) rate = 2.0 * (double)size / seconds;
    }
    oct_free(a);
    oct_free(b);
    return rate;
}
