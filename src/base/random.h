/* SPDX-License-Identifier: Apache-2.0 */
/* splitmix64: the project's one generator of reproducible numbers. */
#ifndef OCT_BASE_RANDOM_H
#define OCT_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t oct_random_next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
/* uniform in 0 .. n - 1 (n > 0); the bias of at most n / 2^64 is accepted */
static inline uint64_t oct_random_below(uint64_t *state, uint64_t n) {
    return oct_random_next(state) % n;
}
/* uniform in [0, 1), 53 bits */
static inline double oct_random_unit(uint64_t *state) {
    return (double)(oct_random_next(state) >> 11) * 0x1p-53;
}
/* uniform in [-1, 1), rounded to float */
static inline float oct_random_signed(uint64_t *state) {
    return (float)(oct_random_unit(state) * 2.0 - 1.0);
}

#endif
