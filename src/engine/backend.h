/* SPDX-License-Identifier: Apache-2.0 */
/* What a device must bring. The CPU's is oct_cpu_backend() (src/cpu/cpu.h). */
#ifndef OCT_ENGINE_BACKEND_H
#define OCT_ENGINE_BACKEND_H

#include "engine/engine.h"

/* A tactic: one way to run a step. The same predicate chooses it and sizes its memory. */
typedef struct oct_tactic_choice {
    const char *tactic; /* NULL: none supports it */
    uint64_t scratch;   /* bytes the whole step shares while it runs */
    uint64_t worker;    /* bytes more for each thread of the pool */
    uint64_t packed;    /* bytes of packed weights */
} oct_tactic_choice;

/* In place: the memory planner may give these steps an output that is the very memory of an input (same offset, shape
 * and form): ADD and ACTIVATION any input, CONV2D and LINEAR the residual. A tactic reads such an element before it
 * writes it. */
struct oct_backend {
    const char *name;
    /* Whether a tactic of this name exists for `op` (on some machine, not perhaps on this one). */
    bool (*knows)(oct_op op, const char *tactic);
    /* The tactics for `op`, in the order of preference; NULL past the last. Static names. */
    const char *(*tactic)(oct_op op, size_t index);
    /* Whether `tactic` is of a plainer instruction set (or unit) than `other`; both known for `op`. */
    bool (*plainer)(oct_op op, const char *tactic, const char *other);
    /* Fills *choice for a step of `plan` (index). `isa`: as oct_plan_options.force_isa. `force`: take this tactic or
     * say why it cannot (UNSUPPORTED). `reasons` (may be NULL) gets a line a candidate. No tactic at all is UNSUPPORTED
     * with the step's name. Looks at shapes and forms only, so released weights do not matter. */
    octet_status (*choose)(const oct_plan *plan, const oct_weights *weights, size_t step, const char *isa,
                           const char *force, oct_tactic_choice *choice, oct_text *reasons);
    /* Packs what the step needs into `packed` (choice.packed bytes, 64-byte aligned, zeroed): after it, constants are
     * not looked at any more. The step's tactic was chosen on this machine. */
    octet_status (*pack)(const oct_plan *plan, const oct_weights *weights, size_t step, void *packed, oct_pool *pool);
    /* Rounds the input where it lies to the form it is stored in: before the first step, where that is not fp32. */
    void (*store_input)(const oct_plan *plan, const oct_weights *weights, void *arena, oct_pool *pool);
    /* Runs one step. `arena` holds the activations; `scratch`: choice.scratch bytes, then choice.worker for each
     * thread, all rounded up to 64. Never fails: everything was checked at open. NULL: plans of this backend are run by
     * an engine of its own (cuda/cuda.h), which takes the picture as float32 and stores it as the plan says. */
    void (*run)(const oct_plan *plan, size_t step, const void *packed, void *arena, void *scratch, oct_pool *pool);
};

#endif
