/* SPDX-License-Identifier: Apache-2.0 */
/* A line a case: the plain kernel and the chosen one timed in this run, one thread, beside the floor. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "opcheck/opcheck.h"

/* Where no model is named: a drawn case an op. */
static size_t standard_cases(uint64_t seed, opcase **cases) {
    uint64_t random = seed;
    size_t count = 0;
    *cases = oct_calloc(OCT_OP_COUNT, sizeof **cases);
    for (int op = 0; *cases != NULL && op < OCT_OP_COUNT; op++) case_draw((oct_op)op, &random, &(*cases)[count++]);
    return count;
}

/* First kernel that takes the case, of those wanted; `plain`: of those in C. */
static const oct_kernel *pick(const options *o, const bed *b, bool plain) {
    const oct_site site = {&b->plan, &b->weights, &b->step};
    for (size_t i = 0; i < oct_kernel_count; i++) {
        const oct_kernel *k = &oct_kernels[i];
        if (k->op != b->step.op || (plain ? k->isa != OCT_ISA_C : !kernel_wanted(o, k))) continue;
        if (oct_kernel_refuses(&site, k) == NULL) return k;
    }
    return NULL;
}

typedef struct total {
    double plain, chosen, floor, flops;
} total;

static void bench_case(const options *o, const opcase *c, total *sum) {
    bed b;
    if (!bed_make(&b, c, false)) return;
    const oct_kernel *chosen = pick(o, &b, false), *plain = pick(o, &b, true);
    if (chosen != NULL && plain != NULL) {
        const double fast = bed_time(&b, chosen, 10);
        const double slow = plain == chosen ? fast : bed_time(&b, plain, 2);
        const double flops = (double)oct_op_rows[c->op].flops(&c->attributes, c->shapes, c->count, &b.reference.shape);
        const double written = 4.0 * (double)oct_shape_count(&b.reference.shape);
        double bytes = c->op == OCT_OP_SLICE ? 2 * written : written;
        for (int i = 0; i < c->count && c->op != OCT_OP_SLICE; i++)
            bytes += 4.0 * (double)oct_shape_count(&c->shapes[i]);
        const double by_flops = flops / floor_flops(chosen->isa), by_bytes = bytes / floor_bytes();
        const double least = by_flops > by_bytes ? by_flops : by_bytes;
        oct_text text = {0};
        case_print(c, &text);
        printf("%-28s %10.1f %10.1f %8.1f %8.1f %9.1f %5.0f%%  %s\n", chosen->name, slow * 1e6, fast * 1e6, slow / fast,
               flops / fast * 1e-9, least * 1e6, 100 * least / fast, text.data);
        oct_text_free(&text);
        sum->plain += slow * c->times;
        sum->chosen += fast * c->times;
        sum->floor += least * c->times;
        sum->flops += flops * c->times;
    }
    bed_free(&b);
}

int bench_all(const options *o) {
    opcase *cases = NULL;
    size_t count = 0;
    if (o->shapes == NULL) {
        count = standard_cases(o->seed, &cases);
    } else if (model_cases(o->shapes, &cases, &count) != OCTET_OK) {
        fprintf(stderr, "opcheck: %s\n", oct_error_text());
        return 1;
    }
    printf("one thread, its own CPU time, the shortest of up to 101 runs; floor: %.1f GFLOP/s (%s), %.1f GB/s\n",
           floor_flops(o->isa) * 1e-9, oct_isa_name(o->isa), floor_bytes() * 1e-9);
    printf("%-28s %10s %10s %8s %8s %9s %6s  %s\n", "kernel", "plain us", "chosen us", "ratio", "GFLOP/s", "floor us",
           "share", "case");
    total sum = {0};
    for (size_t i = 0; i < count; i++) bench_case(o, &cases[i], &sum);
    printf("all, as often as the model has them: plain %.3f ms, chosen %.3f ms, floor %.3f ms, %.1f GFLOP/s\n",
           sum.plain * 1e3, sum.chosen * 1e3, sum.floor * 1e3, sum.flops / sum.chosen * 1e-9);
    oct_free(cases);
    return 0;
}
