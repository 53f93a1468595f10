/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers share. */
#ifndef OCT_CPU_STEPS_SHARED_H
#define OCT_CPU_STEPS_SHARED_H

#include "cpu/kernel.h"
#include "cpu/kernels/dequantize_f32.h"
#include "cpu/kernels/quantize_f32.h"

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

/* ---- stored forms */

/* What is stored is fp32; with OCT_STORES_NARROW in `stores` also, or instead, one narrow form with a scale a tensor or
 * none, with OCT_STORES_ROWS one with a scale a row too. */
#define OCT_STORES_NARROW 1u
#define OCT_STORES_ROWS 2u
const char *oct_refuse_outputs(const oct_site *site, unsigned stores);
/* Everything read is fp32, but the first `skip` inputs, which the caller looks at. */
const char *oct_refuse_inputs(const oct_site *site, int skip);
/* For drivers of fp32 bodies, as oct_driver.forms: fp32 in, and out fp32, narrow too, with a scale a row too. */
const char *oct_forms_f32(const oct_site *site);
const char *oct_forms_narrow(const oct_site *site);
const char *oct_forms_rows(const oct_site *site);

/* How a step stores: the wide form, the narrow one, or both. Drivers of fp32 bodies that only store narrow let the body
 * write to the worker's scratch and round from there, while it is in the first cache. */
typedef struct oct_storing {
    bool wide; /* an fp32 tensor at out */
    uint64_t out;
    int64_t stride;                /* floats */
    oct_quantize_f32_body *narrow; /* NULL: no narrow one; else what rounds */
    oct_format format;
    float inverse; /* of the scale, where there is one for the tensor */
    bool rows;     /* a scale a row, at `scales` */
    uint64_t codes, scales;
    int64_t code_stride; /* elements */
    int64_t row_count, channels;
} oct_storing;
oct_storing oct_site_storing(const oct_site *site, oct_isa isa);
/* The best body for an instruction set that turns codes into numbers. */
oct_dequantize_f32_body *oct_dequantize_body(oct_isa isa);
/* Bytes of a worker's scratch for `rows` x `columns` numbers on their way to a narrow form: 0 if they go somewhere. */
uint64_t oct_storing_scratch(const oct_storing *s, int64_t rows, int64_t columns);
/* Rounds `rows` x `columns` numbers to their place from `row`, `column` on. Nothing without a narrow form. */
void oct_store_narrow(const oct_storing *s, uint8_t *arena, const float *x, int64_t x_stride, int64_t row,
                      int64_t column, int64_t rows, int64_t columns);

#endif
