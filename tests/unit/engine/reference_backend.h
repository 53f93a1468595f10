/* SPDX-License-Identifier: Apache-2.0 */
/* A backend of reference bodies: the engine room without any device. One tactic, "reference"; constants are copied when
 * packed. */
#ifndef OCT_TESTS_REFERENCE_BACKEND_H
#define OCT_TESTS_REFERENCE_BACKEND_H

#include <string.h>

#include "engine/backend.h"
#include "graph/ops.h"

static inline bool reference_knows(oct_op op, const char *tactic) {
    (void)op;
    return strcmp(tactic, "reference") == 0;
}

static inline const char *reference_tactic(oct_op op, size_t index) {
    (void)op;
    return index == 0 ? "reference" : NULL;
}

static inline bool reference_plainer(oct_op op, const char *tactic, const char *other) {
    (void)op, (void)tactic, (void)other;
    return false;
}

static inline size_t reference_packed(const oct_plan *plan, const oct_weights *weights, size_t step) {
    size_t bytes = 64;
    for (int j = 0; j < plan->steps[step].input_count; j++) {
        const oct_operand in = plan->steps[step].inputs[j];
        if (in.kind == OCT_OPERAND_CONSTANT)
            bytes += (size_t)oct_shape_count(&weights->items[in.index].shape) * sizeof(float);
    }
    return bytes;
}

static inline octet_status reference_choose(const oct_plan *plan, const oct_weights *weights, size_t step,
                                            const char *isa, const char *force, oct_tactic_choice *choice,
                                            oct_text *reasons) {
    (void)isa, (void)reasons;
    memset(choice, 0, sizeof *choice);
    if (force != NULL && strcmp(force, "reference") != 0) return oct_fail(OCTET_UNSUPPORTED, "no tactic %s", force);
    choice->tactic = "reference";
    choice->packed = reference_packed(plan, weights, step);
    choice->scratch = 100;
    choice->worker = 10;
    return OCTET_OK;
}

/* Where weights went: the reference body wants shapes too, so the plan's weights are kept aside. */
static const oct_weights *reference_weights;

static inline octet_status reference_pack(const oct_plan *plan, const oct_weights *weights, size_t step, void *packed,
                                          oct_pool *pool) {
    (void)pool;
    reference_weights = weights;
    float *to = packed;
    for (int j = 0; j < plan->steps[step].input_count; j++) {
        const oct_operand in = plan->steps[step].inputs[j];
        if (in.kind != OCT_OPERAND_CONSTANT) continue;
        const size_t count = (size_t)oct_shape_count(&weights->items[in.index].shape);
        memcpy(to, weights->items[in.index].data, count * sizeof *to);
        to += count;
    }
    return OCTET_OK;
}

static inline void reference_run(const oct_plan *plan, size_t index, const void *packed, void *arena, void *scratch,
                                 oct_pool *pool) {
    (void)scratch, (void)pool;
    const oct_plan_step *step = &plan->steps[index];
    oct_array inputs[OCT_PLAN_INPUTS];
    float *constants = (float *)(uintptr_t)packed;
    for (int j = 0; j < step->input_count; j++) {
        const oct_operand in = step->inputs[j];
        if (in.kind == OCT_OPERAND_CONSTANT) {
            inputs[j] = (oct_array){reference_weights->items[in.index].shape, constants};
            constants += oct_shape_count(&inputs[j].shape);
        } else {
            const oct_plan_tensor *t = &plan->tensors[in.index];
            inputs[j] = (oct_array){t->shape, (float *)(void *)((uint8_t *)arena + t->offset)};
        }
    }
    const oct_plan_tensor *out = &plan->tensors[step->output];
    oct_array output = {out->shape, (float *)(void *)((uint8_t *)arena + out->offset)};
    if (step->op == OCT_OP_RESHAPE && inputs[0].data == output.data) return;
    oct_op_rows[step->op].reference(&step->attributes, inputs, step->input_count, &output);
}

static inline const oct_backend *reference_backend(void) {
    static const oct_backend backend = {.name = "reference",
                                        .knows = reference_knows,
                                        .tactic = reference_tactic,
                                        .plainer = reference_plainer,
                                        .choose = reference_choose,
                                        .pack = reference_pack,
                                        .run = reference_run};
    return &backend;
}

#endif
