/* SPDX-License-Identifier: Apache-2.0 */
/* opcheck: any kernel of the CPU's list against its op's reference body, by name; or its speed.
 *
 * A case is one step on its own: op, attributes, shapes, strides. Cases are drawn from a seed or taken from a model's
 * graph. The step is laid out in a memory full of a guard pattern, run by a kernel, and its output compared with the
 * reference (within the tolerance column of ops.def) and with the plain C kernel's (bit for bit). What it stores in
 * other forms than fp32 is compared with graph/stored.h's rounding of what the same kernel makes in fp32 (bit for bit).
 */
#ifndef OCT_TESTS_OPCHECK_H
#define OCT_TESTS_OPCHECK_H

#include "cpu/kernel.h"
#include "graph/stored.h"

typedef struct options {
    const char *kernel, *op, *shapes; /* patterns and names, NULL: all */
    oct_isa isa;                      /* the best to run */
    bool only_isa;                    /* and only that one */
    uint64_t seed;
    int rounds; /* cases an op */
    bool bench, verbose;
} options;

/* What lies in the inputs. */
typedef enum fill {
    FILL_RANDOM,
    FILL_ZERO,
    FILL_SUBNORMAL,
    FILL_LARGE,
    FILL_TIES,
    FILL_NAN,
    FILL_INFINITY,
    FILL_COUNT
} fill;
const char *fill_name(fill f);

typedef struct opcase {
    oct_op op;
    oct_attributes attributes;
    oct_shape shapes[OCT_NODE_INPUTS];
    bool constant[OCT_NODE_INPUTS];
    int padding[OCT_NODE_INPUTS]; /* channel stride less channels */
    int count;
    int out_padding;
    oct_form forms[OCT_NODE_INPUTS]; /* of the inputs; channel strides come from the padding */
    oct_form out_forms[2];
    bool out_factors[2]; /* the form has factors; drawn, as the scales of OCT_PER_CHANNEL are */
    int out_count;
    int in_place; /* the input whose memory the output takes, or -1 */
    fill fill;
    uint64_t seed; /* of the numbers */
    char name[96]; /* of the step it was taken from, "" for drawn ones */
    int times;     /* how often the model has it */
} opcase;

/* cases.c */
void case_fp32(opcase *c);         /* all forms fp32, one output */
opcase case_wide(const opcase *c); /* the same with one output, in fp32 */
void case_draw(oct_op op, uint64_t *random, opcase *c);
bool case_shape(const opcase *c, oct_shape *out); /* false: shapes do not fit */
void case_print(const opcase *c, oct_text *text);
/* model.c: the steps of a model, equal ones once. `model`: a checkpoint directory, or the name of a parameter list in
 * tests/golden. Caller frees. */
octet_status model_cases(const char *model, opcase **cases, size_t *count);

/* bed.c: a case laid out in memory. */
typedef struct bed {
    const opcase *c;
    oct_plan plan;
    oct_plan_step step;
    oct_plan_tensor tensors[OCT_NODE_INPUTS + 2]; /* the last two are the outputs */
    oct_weights weights;
    oct_constant constants[OCT_NODE_INPUTS + 5]; /* the last: scales of a weight's channels, then two a form stored */
    float *vectors[4];                           /* of the forms stored: scales, factors */
    oct_array arrays[OCT_NODE_INPUTS];           /* dense inputs for the reference: what is stored */
    oct_stored stored[OCT_NODE_INPUTS];          /* and as it is stored */
    float *scales[OCT_NODE_INPUTS];
    oct_array reference, terms; /* what is right, and the sum of |terms| its tolerance is measured by */
    bool has_reference;
    size_t arena_size, span;
    uint8_t *arena, *pristine;
    uint64_t random;
} bed;
bool bed_make(bed *b, const opcase *c, bool reference);
void bed_free(bed *b);
/* Runs the step once; `out` (dense) gets the numbers of the first output, then of the second. An error text, or NULL.
 */
const char *bed_run(bed *b, const oct_kernel *kernel, oct_pool *pool, float *out);
/* Seconds of this thread's time, the shortest of `runs` to 101 runs. */
double bed_time(bed *b, const oct_kernel *kernel, int runs);
/* reference.c: reference and terms of the arrays. */
void reference_make(bed *b);
/* An error text, or NULL: the fp32 output `out` against the reference. */
const char *reference_compare(const bed *b, const float *out);
/* The same: what was stored against the rounding of `wide`. */
const char *stored_compare(const bed *b, const float *wide, const float *out);

/* floor.c: what this machine can do at most, measured: multiply-adds a second by the set, bytes a second. */
double floor_flops(oct_isa isa);
double floor_bytes(void);

/* check.c, bench.c and bench_int8.c: what main does. They return the number of failures. */
int check_all(const options *o);
int bench_all(const options *o);
int bench_int8(const options *o); /* of o->shapes */
bool kernel_wanted(const options *o, const oct_kernel *kernel);

#endif
