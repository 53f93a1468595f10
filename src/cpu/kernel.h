/* SPDX-License-Identifier: Apache-2.0 */
/* Between the backend and the kernels. A kernel is a row of kernels/kernels.def: a body (the arithmetic, for one
 * instruction set) and the driver that feeds it. A driver knows a kind of step: which steps it can run, how much memory
 * that takes, how weights are packed, how the work is cut into items for the threads. Drivers are in steps/, bodies in
 * kernels/.
 *
 * A body works on the pieces it is given, never allocates and knows no plan. */
#ifndef OCT_CPU_KERNEL_H
#define OCT_CPU_KERNEL_H

#include "cpu/cpu.h"

#define OCT_CPU_ALIGNMENT 64u

typedef struct oct_driver oct_driver;
typedef void oct_body(void); /* any body; its driver knows the type */

typedef struct oct_kernel {
    const char *name; /* op, formats, tile, instruction set */
    oct_op op;
    oct_isa isa;
    const oct_driver *driver;
    oct_body *body;
    int rows, columns; /* the body's tile, where its driver asks for one */
} oct_kernel;

extern const oct_kernel oct_kernels[]; /* in the order of kernels.def */
extern const size_t oct_kernel_count;
const oct_kernel *oct_kernel_find(oct_op op, const char *name); /* NULL: none */

/* One step as drivers see it. */
typedef struct oct_site {
    const oct_plan *plan;
    const oct_weights *weights;
    const oct_plan_step *step;
} oct_site;

/* An operand or the output. Rows are pixels, tokens or vectors: everything before the last axis. */
typedef struct oct_strided {
    oct_shape shape;
    int64_t rows, channels, stride; /* stride: elements from a row to the next */
    uint64_t offset;                /* in the activations' arena */
    const float *constant;          /* a constant's neutral data (NULL once released); else NULL */
    const uint8_t *codes;           /* instead, of a constant kept as codes (likewise) */
    const oct_form *form;
    uint64_t scales; /* in the arena: of a form with a scale a row */
    bool is_constant;
} oct_strided;
oct_strided oct_site_input(const oct_site *site, int input);
oct_strided oct_site_output(const oct_site *site); /* the first */
oct_strided oct_site_tensor(const oct_site *site, int32_t tensor);

/* Packed memory of every step begins with this; what the driver needs at run follows, then the weights. */
typedef struct oct_packed {
    const oct_kernel *kernel;
    struct {
        uint64_t out;             /* offset in the arena */
        int64_t channels, stride; /* bytes: the backend zeroes the padding lanes */
    } outputs[2];
    int output_count;
    int64_t rows;
} oct_packed;

struct oct_driver {
    /* NULL: it can; else why not. */
    const char *(*refuses)(const oct_site *site, const oct_kernel *kernel);
    void (*size)(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice);
    /* `packed` is zeroed but for its head. */
    void (*pack)(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool);
    void (*run)(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool);
    /* NULL: it takes the step's stored forms; else why not. Asked before `refuses`. */
    const char *(*forms)(const oct_site *site);
};

/* Why the kernel cannot run the step, its instruction set apart; NULL: it can. */
const char *oct_kernel_refuses(const oct_site *site, const oct_kernel *kernel);

/* Items for the threads: item i is run once, with `worker_bytes` of scratch of its own. What an item is depends on
 * shapes only, so results do not depend on the number of threads. */
typedef void (*oct_item)(const void *job, size_t item, void *worker);
void oct_items_run(oct_pool *pool, size_t count, oct_item item, const void *job, void *scratch, size_t worker_bytes);

static inline int64_t oct_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
static inline uint64_t oct_round_up(uint64_t size) {
    return (size + OCT_CPU_ALIGNMENT - 1) / OCT_CPU_ALIGNMENT * OCT_CPU_ALIGNMENT;
}
static inline int64_t oct_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t oct_most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
