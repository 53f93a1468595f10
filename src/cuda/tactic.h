/* SPDX-License-Identifier: Apache-2.0 */
/* Tactics of the CUDA engine: one struct each. A tactic runs one step of the plan, or `span` steps in a row as one
 * launch (a fused block); each of those steps then carries its name. */
#ifndef OCT_CUDA_TACTIC_H
#define OCT_CUDA_TACTIC_H

#include "cuda/cuda.h"

/* A step of a plan. */
typedef struct oct_cuda_site {
    const oct_plan *plan;
    const oct_weights *weights;
    size_t step;
} oct_cuda_site;

/* Where a tensor lies in a session's arena. Rows are padded to 16 bytes; lanes of padding hold anything. */
typedef struct oct_cuda_place {
    uint64_t offset, scales; /* bytes; scales: of OCT_PER_ROW */
    uint64_t size;
    int32_t stride; /* elements */
    bool placed;    /* false: it never leaves a launch */
} oct_cuda_place;

/* What a launch is made of: the arena, the step's packed weights, both on the device. */
typedef struct oct_cuda_memory {
    uint8_t *arena, *packed;
    const oct_cuda_place *places; /* by tensor */
} oct_cuda_memory;

typedef struct oct_cuda_tactic oct_cuda_tactic;
struct oct_cuda_tactic {
    const char *name;
    oct_op op;          /* of its first step */
    bool generic;       /* runs on every device; else compute capability 9.0 */
    size_t span;        /* steps */
    int variant, split; /* of block.c */
    /* NULL, or why it cannot run the steps from this one on. */
    const char *(*refuses)(const oct_cuda_tactic *self, const oct_cuda_site *site);
    /* Estimated microseconds: of the tactics that have it and fit, the cheapest is taken. NULL: the first that fits. */
    double (*cost)(const oct_cuda_tactic *self, const oct_cuda_site *site);
    /* Bytes of packed weights; and they, into zeroed host memory. */
    uint64_t (*packed)(const oct_cuda_tactic *self, const oct_cuda_site *site);
    octet_status (*pack)(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *packed);
    /* At most OCT_NODE_INPUTS launches; returns how many. */
    size_t (*lower)(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                    oct_launch *launches);
};

/* In the order of preference; NULL past the last. */
const oct_cuda_tactic *oct_cuda_tactic_at(size_t index);
const oct_cuda_tactic *oct_cuda_tactic_find(const char *name, oct_op op);
/* The tactic of the launch that begins at this step of a plan; NULL with the error set: none of the name, or it does
 * not fit here. */
const oct_cuda_tactic *oct_cuda_tactic_of(const oct_cuda_site *site);

extern const oct_cuda_tactic oct_cuda_generic[]; /* generic.c; ends with a NULL name */
extern const oct_cuda_tactic oct_cuda_tensor[];  /* tensor.c, likewise */
extern const oct_cuda_tactic oct_cuda_block[];   /* block.c, likewise */

/* ---- operands.c */
const oct_plan_step *oct_cuda_step(const oct_cuda_site *site);
const oct_plan_tensor *oct_cuda_output(const oct_cuda_site *site);
/* Input `i`: its shape and form, and its tensor or constant (the other NULL). */
typedef struct oct_cuda_operand {
    const oct_shape *shape;
    const oct_form *form;
    const oct_plan_tensor *tensor;
    const oct_constant *constant;
    int32_t index;
} oct_cuda_operand;
oct_cuda_operand oct_cuda_input(const oct_cuda_site *site, int i);
bool oct_cuda_is_tensor(const oct_cuda_site *site, int i);
int64_t oct_cuda_rows(const oct_shape *shape); /* all axes but the last */
int32_t oct_cuda_channels(const oct_shape *shape);
oct_view oct_cuda_view(const oct_cuda_site *site, const oct_cuda_memory *memory, int32_t tensor);
/* A form as a view without memory: how kernels round what they keep. */
oct_view oct_cuda_form_view(const oct_form *form, int64_t channels);
/* Views of the step's outputs; returns how many. */
int32_t oct_cuda_outputs(const oct_cuda_site *site, const oct_cuda_memory *memory, oct_view out[2]);
oct_epilogue oct_cuda_epilogue(const oct_cuda_site *site, const oct_cuda_memory *memory);
/* Numbers of a constant, decoded. */
void oct_cuda_numbers(const oct_cuda_site *site, const oct_constant *constant, float *numbers);
/* The step's bias (0 without one), [outputs]; and for int8 products the weight's scale of each output times `factor`.
 */
void oct_cuda_bias(const oct_cuda_site *site, float *bias);
void oct_cuda_scales(const oct_cuda_site *site, float factor, float *scales);
bool oct_cuda_is_int8_product(const oct_cuda_site *site);
/* NULL, or why a form cannot be read or stored. */
const char *oct_cuda_form_refused(const oct_form *form);
/* The forms of a step's tensors; `rows`: whether it can store a scale a row. */
const char *oct_cuda_forms_refused(const oct_cuda_site *site, bool rows);
/* Whether the step's output is read by the next step alone (as input 0), in one form. */
bool oct_cuda_feeds_next(const oct_cuda_site *site);
uint64_t oct_cuda_round_up(uint64_t size, uint64_t unit);

#endif
