/* SPDX-License-Identifier: Apache-2.0 */
/* The generator behind every drawn picture: splitmix64, one keyed stream for each purpose, so that one never shifts
 * another. */
#ifndef SUBJECTS_RANDOM_H
#define SUBJECTS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t random_next(struct random *r) {
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return random_mix(r->state);
}

/* The stream `purpose` of picture (kind, seed, index). */
static inline struct random random_keyed(uint64_t kind, uint64_t seed, uint64_t index, uint64_t purpose) {
    uint64_t key = random_mix(seed + UINT64_C(0x632be59bd9b4e019));
    key = random_mix(key ^ random_mix(index + UINT64_C(0xd1342543de82ef95)));
    return (struct random){random_mix(key ^ (kind * 64 + purpose + 1))};
}

/* low <= result <= high. */
static inline int random_range(struct random *r, int low, int high) {
    uint64_t span = (uint64_t)(high - low + 1);
    return low + (int)(((random_next(r) >> 32) * span) >> 32);
}

/* True in `percent` of 100 draws. */
static inline int random_chance(struct random *r, int percent) {
    return random_range(r, 0, 99) < percent;
}

#endif
