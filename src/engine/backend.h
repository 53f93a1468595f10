/* SPDX-License-Identifier: Apache-2.0 */
/* What a device must bring. The CPU's is oct_cpu_backend() (src/cpu/cpu.h). */
#ifndef OCT_ENGINE_BACKEND_H
#define OCT_ENGINE_BACKEND_H

#include "engine/engine.h"

/* A tactic: one way to run a step. The same predicate chooses it and sizes its memory. */
typedef struct oct_tactic_choice {
    const char *tactic;    /* NULL: none supports it */
    uint64_t scratch;      /* bytes for the whole step, at `threads` threads */
    uint64_t packed;       /* bytes of packed weights */
} oct_tactic_choice;

struct oct_backend {
    const char *name;
    /* Fills *choice for a step of `plan` (index). `force`: take this tactic or say why it cannot. `reasons` (may be NULL) gets
     * a line a candidate. Absence of any tactic is UNSUPPORTED with the step's name. */
    octet_status (*choose)(const oct_plan *plan, const oct_weights *weights, size_t step, const char *isa, const char *force, oct_tactic_choice *choice, oct_text *reasons);
    /* Packs what the step needs into `packed` (choice.packed bytes, 64-byte aligned). */
    octet_status (*pack)(const oct_plan *plan, const oct_weights *weights, size_t step, void *packed, oct_pool *pool);
    /* Runs one step. `arena` holds the activations. Never fails: everything was checked at open. */
    void (*run)(const oct_plan *plan, size_t step, const void *packed, void *arena, void *scratch, oct_pool *pool);
};

#endif
