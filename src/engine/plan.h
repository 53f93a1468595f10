/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: what an engine does, as plain data. Steps in order, each with the tactic that runs it; every activation
 * with its place in one arena; the constants it needs, by id into a weights list shared by plans of several batches and
 * devices.
 *
 * A value with two stored forms is two tensors, made by one step: its output and its second.
 *
 * graph --oct_plan_make--> plan + weights --oct_engine_open--> engine (packed for this CPU) --oct_context--> outputs
 *
 * A plan names its backend's tactics by name and is portable: tactics whose instruction set is missing at open are
 * replaced by the next that supports the step ("the same predicate chooses it and sizes its memory"). Same graph,
 * backend table and effort: the same plan. */
#ifndef OCT_ENGINE_PLAN_H
#define OCT_ENGINE_PLAN_H

#include "graph/graph.h"

/* Neutral weights: the constants after the passes, float32 or codes of eight bits, shared by reference count. */
typedef struct oct_constant {
    const char *name;
    oct_shape shape;
    float *data;    /* NULL once released (packed, not wanted any more) */
    uint8_t *codes; /* instead of data where the form says int8 or e4m3 and not held wide; likewise */
    oct_form form;  /* OCT_PER_CHANNEL: `scales` is the weights item with them */
    bool kept;      /* an open engine's forms name it: it is never released */
} oct_constant;
typedef struct oct_weights {
    oct_constant *items;
    size_t count;
    int references; /* atomic */
    oct_arena arena;
} oct_weights;
/* Moves the constants out of `graph` (their data pointers there become NULL): no second copy is ever held. */
octet_status oct_weights_from_graph(oct_weights **weights, oct_graph *graph);
oct_weights *oct_weights_retain(oct_weights *weights);
void oct_weights_release(oct_weights *weights);

#define OCT_PLAN_INPUTS OCT_NODE_INPUTS

/* An operand of a step: an activation (index into plan->tensors) or a constant (index into weights->items). */
typedef enum oct_operand_kind { OCT_OPERAND_NONE, OCT_OPERAND_TENSOR, OCT_OPERAND_CONSTANT } oct_operand_kind;
typedef struct oct_operand {
    oct_operand_kind kind;
    int32_t index;
} oct_operand;

/* An activation in the arena. Views (the output of a RESHAPE) share an offset with what they show, and so does the
 * output of a step that works in place (backend.h). */
typedef struct oct_plan_tensor {
    const char *name;
    oct_shape shape;     /* with the batch */
    oct_form form;       /* `scales` and `factors` are weights items */
    uint64_t offset;     /* bytes from the arena's start; a multiple of 64 */
    uint64_t size;       /* bytes; codes with a scale a row have them (float32) behind, at oct_tensor_scales */
    int32_t first, last; /* the steps between which it lives: made, last read. The input's first is -1; the input's and
                            the outputs' last is the number of steps, so they stay until the next run */
    bool is_output;
} oct_plan_tensor;

typedef struct oct_plan_step {
    oct_op op;
    const char *name;
    oct_attributes attributes;
    oct_operand inputs[OCT_PLAN_INPUTS];
    int input_count;
    int32_t output; /* tensor */
    int32_t second; /* tensor: the same numbers in another, narrow form; valid with has_second */
    bool has_second;
    const char *tactic; /* kernel name in the backend's list */
    uint64_t flops, bytes;
} oct_plan_step;

typedef struct oct_plan {
    const char *backend; /* "cpu" */
    int64_t batch;
    int32_t input;    /* tensor */
    int32_t *outputs; /* tensors, in the graph's order of outputs */
    size_t output_count;
    oct_plan_tensor *tensors;
    size_t tensor_count;
    oct_plan_step *steps;
    size_t step_count;
    uint64_t arena_size; /* bytes, activations */
    oct_arena arena;     /* names; scratch is asked of the backend at open, not stored */
} oct_plan;

/* Codes with a scale a row: the scales lie behind them. Held wide, numbers need none. */
static inline bool oct_form_keeps_row_scales(const oct_form *form) {
    return form->granularity == OCT_PER_ROW && !oct_form_is_float(form);
}
/* Bytes from a tensor's offset to its rows' scales: its codes, rounded up to 64. */
uint64_t oct_tensor_scales(const oct_plan_tensor *tensor);

#endif
