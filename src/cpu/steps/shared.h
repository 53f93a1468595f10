/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers share. */
#ifndef OCT_CPU_STEPS_SHARED_H
#define OCT_CPU_STEPS_SHARED_H

#include "cpu/kernel.h"
#include "cpu/kernels/round_f32.h"

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

/* A weight [o][k], as numbers or as codes with a scale a tensor or channel. */
typedef struct oct_weight {
    const float *data;
    const uint8_t *codes; /* instead: e4m3 or int8 */
    const float *scales;  /* one, or one an output */
    bool is_int8, one_scale;
    int64_t depth; /* K */
} oct_weight;
oct_weight oct_site_weight(const oct_site *site, int input);
static inline float oct_weight_at(const oct_weight *w, int64_t o, int64_t k) {
    const int64_t at = o * w->depth + k;
    if (w->codes == NULL) return w->data[at];
    const float scale = w->scales[w->one_scale ? 0 : o];
    return w->is_int8 ? oct_int8_decode((int8_t)w->codes[at], scale) : oct_e4m3_decode(w->codes[at]) * scale;
}

/* ---- stored forms
 *
 * A body computes float32. It writes to where a form of the output is float32 in memory (fp32, or held wide), else to
 * the worker's scratch; what it wrote is rounded, while it is in the first cache, to each form that is not fp32: last,
 * in place, to the one where it lies. */

/* All that is stored is float32 in memory or int8 codes. */
const char *oct_refuse_outputs(const oct_site *site);
/* All that is read is float32 in memory, but the first `skip` inputs, which the caller looks at. */
const char *oct_refuse_inputs(const oct_site *site, int skip);
/* As oct_driver.forms, for drivers of float32 bodies: what is said above; and so that input 1 may be a constant of
 * codes (oct_site_weight). */
const char *oct_forms_float(const oct_site *site);
const char *oct_forms_product(const oct_site *site);
/* RESHAPE, CONCAT, SLICE: what is read and stored is float32 in memory; nothing is rounded. */
const char *oct_forms_moved(const oct_site *site);

/* A form to be rounded to. */
typedef struct oct_sink {
    oct_form form;
    const float *scales, *factors; /* vectors of the form, or NULL */
    uint64_t at, row_scales;       /* in the arena */
    int64_t stride;                /* elements */
} oct_sink;

typedef struct oct_storing {
    bool wide; /* a form is float32 in memory, at `out` */
    uint64_t out;
    int64_t stride; /* floats */
    oct_round_f32_body *round;
    oct_sink sinks[2]; /* in the order of rounding */
    int count;
    bool whole_rows; /* rows have scales of their own: to be stored whole */
    int64_t rows, channels;
} oct_storing;
oct_storing oct_site_storing(const oct_site *site, oct_isa isa);
/* Takes out the sink that is int8 codes with a scale a tensor, for bodies that store them themselves. */
bool oct_storing_take_codes(oct_storing *s, oct_sink *codes);
/* Bytes of a worker's scratch for `rows` x `columns` numbers, 0 if bodies write to `out`. */
uint64_t oct_storing_scratch(const oct_storing *s, int64_t rows, int64_t columns);
/* Rounds `rows` x `columns` numbers to their place from `row`, `column` on in each sink. */
void oct_store(const oct_storing *s, uint8_t *arena, const float *x, int64_t x_stride, int64_t row, int64_t column,
               int64_t rows, int64_t columns);

#endif
