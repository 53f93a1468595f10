/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers share. */
#ifndef OCT_CPU_STEPS_SHARED_H
#define OCT_CPU_STEPS_SHARED_H

#include "cpu/kernel.h"

static inline int oct_bias_input(const oct_plan_step *step) {
    return step->attributes.has_bias ? 2 : -1;
}
static inline int oct_residual_input(const oct_plan_step *step) {
    return step->attributes.has_residual ? 2 + (step->attributes.has_bias ? 1 : 0) : -1;
}
/* Where activation operand a lies in a context's arena. */
static inline float *oct_at(uint8_t *arena, uint64_t offset) {
    return (float *)(void *)(arena + offset);
}
/* Where the floats of packed memory begin, `header` bytes of structure before them. */
static inline float *oct_packed_floats(void *packed, size_t header) {
    return (float *)(void *)((uint8_t *)packed + oct_round_up(header));
}
static inline const float *oct_packed_floats_const(const void *packed, size_t header) {
    return (const float *)(const void *)((const uint8_t *)packed + oct_round_up(header));
}

/* Weights that are constants, data that is not: what convolution, linear and the norms ask for. NULL: so it is. */
const char *oct_refuse_operands(const oct_site *site, int first_weight, int last_weight);

#endif
