/* SPDX-License-Identifier: Apache-2.0 */
/* The products of a model in int8 beside themselves in float32: the chosen kernel of each, timed in turns in this run,
 * one thread. Codes go in (of linears a scale a row) and, where nothing is added, codes come out. */
#include <stdio.h>

#include "base/alloc.h"
#include "opcheck/opcheck.h"

#define TURNS 4

static opcase case_int8(const opcase *c) {
    opcase narrow = *c;
    narrow.forms[0] = narrow.forms[1] = oct_form_of(OCT_FORMAT_INT8);
    narrow.forms[0].scale = 0.01f;
    if (c->op == OCT_OP_LINEAR) narrow.forms[0].granularity = OCT_PER_ROW;
    narrow.forms[1].granularity = OCT_PER_CHANNEL;
    if (c->op == OCT_OP_LINEAR || c->attributes.has_residual) return narrow;
    narrow.out_forms[0] = oct_form_of(OCT_FORMAT_INT8);
    narrow.out_forms[0].scale = 0.04f;
    return narrow;
}

static const oct_kernel *pick(const options *o, const bed *b) {
    const oct_site site = {&b->plan, &b->weights, &b->step};
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == b->step.op && oct_kernels[i].isa <= o->isa &&
            oct_kernel_refuses(&site, &oct_kernels[i]) == NULL)
            return &oct_kernels[i];
    return NULL;
}

static void shorten(double *least, double seconds) {
    if (*least == 0 || seconds < *least) *least = seconds;
}

static void bench_case(const options *o, const opcase *c, double sums[2]) {
    const opcase narrow = case_int8(c);
    bed beds[2];
    if (!bed_make(&beds[0], c, false)) return;
    if (!bed_make(&beds[1], &narrow, false)) {
        bed_free(&beds[0]);
        return;
    }
    const oct_kernel *kernels[2] = {pick(o, &beds[0]), pick(o, &beds[1])};
    double times[2] = {0, 0};
    for (int turn = 0; kernels[0] != NULL && kernels[1] != NULL && turn < 2 * TURNS; turn++)
        shorten(&times[turn % 2], bed_time(&beds[turn % 2], kernels[turn % 2], 10));
    oct_text text = {0};
    case_print(&narrow, &text);
    if (times[1] > 0)
        printf("%-24s %9.1f %9.1f %6.2f  %s\n", kernels[1]->name, times[0] * 1e6, times[1] * 1e6, times[0] / times[1],
               text.data);
    oct_text_free(&text);
    for (int i = 0; i < 2; i++) {
        sums[i] += times[i] * c->times;
        bed_free(&beds[i]);
    }
}

int bench_int8(const options *o) {
    opcase *cases = NULL;
    size_t count = 0;
    double sums[2] = {0, 0};
    if (model_cases(o->shapes, &cases, &count) != OCTET_OK) {
        fprintf(stderr, "opcheck: %s\n", oct_error_text());
        return 1;
    }
    printf("%-24s %9s %9s %6s  %s\n", "kernel", "fp32 us", "int8 us", "ratio", "case");
    for (size_t i = 0; i < count; i++)
        if (cases[i].op == OCT_OP_CONV2D || cases[i].op == OCT_OP_LINEAR) bench_case(o, &cases[i], sums);
    printf("all products, as often as the model has them: fp32 %.3f ms, int8 %.3f ms, %.2f times as fast (%s)\n",
           sums[0] * 1e3, sums[1] * 1e3, sums[0] / sums[1], oct_isa_name(o->isa));
    oct_free(cases);
    return 0;
}
