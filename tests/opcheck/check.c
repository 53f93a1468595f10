/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "opcheck/opcheck.h"

bool kernel_wanted(const options *o, const oct_kernel *kernel) {
    if (kernel->isa > o->isa || (o->only_isa && kernel->isa != o->isa)) return false;
    if (o->kernel != NULL && !oct_glob_match(o->kernel, kernel->name)) return false;
    return o->op == NULL || strcmp(o->op, oct_op_rows[kernel->op].name) == 0;
}

/* The first element where two outputs differ in bits (any NaN equals any other), or -1. */
static int64_t first_difference(const float *a, const float *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) return i;
    return -1;
}

static void report(const options *o, const opcase *c, const oct_kernel *kernel, const char *error) {
    oct_text text = {0};
    case_print(c, &text);
    printf("FAILED %s: %s\n    %s\n    opcheck --kernel %s --seed %llu%s%s\n", kernel->name, error, text.data,
           kernel->name, (unsigned long long)o->seed, o->shapes != NULL ? " --shapes " : "",
           o->shapes != NULL ? o->shapes : "");
    oct_text_free(&text);
}

/* The plain kernel of the same driver: bodies of one type give the same bits. */
static const oct_kernel *plainest(const oct_kernel *kernel) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == kernel->op && oct_kernels[i].driver == kernel->driver &&
            oct_kernels[i].isa == OCT_ISA_C)
            return &oct_kernels[i];
    return NULL;
}

/* Seen so far, a kernel. */
static unsigned cases_of[1024];

/* A case, and the same with fp32 stored alone. */
typedef struct pair {
    bed b, wide;
    float *plain, *out, *again, *numbers;
} pair;

/* What the kernel makes, against the reference; what it stores of that, in each form. QUANTIZE makes its input. */
static const char *check_numbers(pair *p, const oct_kernel *kernel) {
    const char *error = bed_run(&p->b, kernel, NULL, p->out);
    if (error != NULL) return error;
    if (p->b.c->op == OCT_OP_QUANTIZE) return stored_compare(&p->b, p->b.arrays[0].data, p->out);
    error = bed_run(&p->wide, kernel, NULL, p->numbers);
    if (error == NULL) error = reference_compare(&p->wide, p->numbers);
    return error != NULL ? error : stored_compare(&p->b, p->numbers, p->out);
}

static int check_kernel(const options *o, pair *p, const oct_kernel *kernel, const float *plain,
                        oct_pool *const *pools) {
    static char text[200];
    const int64_t count = oct_shape_count(&p->b.reference.shape) * p->b.c->out_count;
    const char *error = check_numbers(p, kernel);
    int64_t at;
    if (error == NULL && plain != NULL && (at = first_difference(plain, p->out, count)) >= 0) {
        snprintf(text, sizeof text, "element %lld: plain C gives %a, this %a", (long long)at, (double)plain[at],
                 (double)p->out[at]);
        error = text;
    }
    for (int i = 0; i < 2 && error == NULL; i++) {
        error = bed_run(&p->b, kernel, pools[i], p->again);
        if (error == NULL && first_difference(p->out, p->again, count) >= 0) {
            snprintf(text, sizeof text, "other bits with %u threads than with one", oct_pool_threads(pools[i]));
            error = text;
        }
    }
    cases_of[kernel - oct_kernels]++;
    if (error == NULL) return 0;
    report(o, p->b.c, kernel, error);
    return 1;
}

static int check_case(const options *o, const opcase *c, oct_pool *const *pools) {
    pair p;
    if (!bed_make(&p.b, c, true)) return 0; /* shapes drawn that do not fit */
    const opcase wide = case_wide(c);
    bed_make(&p.wide, &wide, true);
    const size_t size = (size_t)(oct_shape_count(&p.b.reference.shape) * c->out_count) * sizeof(float);
    p.plain = oct_alloc(size);
    p.out = oct_alloc(size);
    p.again = oct_alloc(size);
    p.numbers = oct_alloc(size);
    const oct_site site = {&p.b.plan, &p.b.weights, &p.b.step};
    int failures = 0;
    const oct_kernel *before = NULL; /* whose output is in `plain` */
    for (size_t i = 0; i < oct_kernel_count; i++) {
        const oct_kernel *kernel = &oct_kernels[i];
        if (kernel->op != c->op || !kernel_wanted(o, kernel) || oct_kernel_refuses(&site, kernel) != NULL) continue;
        const oct_kernel *base = plainest(kernel);
        if (base != NULL && base != before && bed_run(&p.b, base, NULL, p.plain) == NULL) before = base;
        failures += check_kernel(o, &p, kernel, before == base && base != NULL ? p.plain : NULL, pools);
    }
    oct_free(p.plain);
    oct_free(p.out);
    oct_free(p.again);
    oct_free(p.numbers);
    bed_free(&p.b);
    bed_free(&p.wide);
    return failures;
}

static bool op_wanted(const options *o, oct_op op) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == op && kernel_wanted(o, &oct_kernels[i])) return true;
    return false;
}

static int check_drawn(const options *o, oct_op op, oct_pool *const pools[8]) {
    uint64_t random = o->seed ^ oct_fnv1a_text(oct_op_rows[op].name);
    int failures = 0;
    for (int i = 0; i < o->rounds && failures < 5; i++) {
        opcase c;
        case_draw(op, &random, &c);
        /* two of the numbers of threads a case: all of 2 .. 8 in turn */
        failures += check_case(o, &c, (oct_pool *const[]){pools[1 + i % 7], pools[1 + (i + 3) % 7]});
    }
    return failures;
}

static int check_model(const options *o, oct_pool *const pools[8]) {
    opcase *cases = NULL;
    size_t count = 0;
    if (model_cases(o->shapes, &cases, &count) != OCTET_OK) {
        fprintf(stderr, "opcheck: %s\n", oct_error_text());
        return 1;
    }
    int failures = 0;
    for (size_t i = 0; i < count; i++)
        if (op_wanted(o, cases[i].op)) failures += check_case(o, &cases[i], (oct_pool *const[]){pools[1], pools[6]});
    oct_free(cases);
    return failures;
}

/* A thread a task, made for the call: a pool's own threads would spin beside each other on a small machine. */
typedef struct one_task {
    oct_task task;
    void *argument;
    size_t index;
    pthread_t thread;
} one_task;

static void *run_task(void *argument) {
    one_task *t = argument;
    t->task(t->argument, t->index);
    return NULL;
}

static void run_tasks(void *user, size_t count, oct_task task, void *argument) {
    (void)user;
    one_task tasks[16];
    for (size_t first = 0; first < count; first += 16) {
        const size_t some = count - first < 16 ? count - first : 16;
        bool started[16];
        for (size_t i = 0; i < some; i++) {
            tasks[i] = (one_task){.task = task, .argument = argument, .index = first + i};
            started[i] = pthread_create(&tasks[i].thread, NULL, run_task, &tasks[i]) == 0;
            if (!started[i]) run_task(&tasks[i]);
        }
        for (size_t i = 0; i < some; i++)
            if (started[i]) pthread_join(tasks[i].thread, NULL);
    }
}

int check_all(const options *o) {
    oct_pool *pools[8] = {NULL};
    int failures = 0, checked = 0;
    for (unsigned i = 1; i < 8; i++)
        if (oct_pool_new_custom(&pools[i], i + 1, run_tasks, NULL) != OCTET_OK) {
            fprintf(stderr, "opcheck: %s\n", oct_error_text());
            failures++;
        }
    if (failures == 0 && o->shapes != NULL) {
        failures = check_model(o, pools);
    } else if (failures == 0) {
        for (int op = 0; op < OCT_OP_COUNT; op++)
            if (op_wanted(o, (oct_op)op)) failures += check_drawn(o, (oct_op)op, pools);
    }
    for (unsigned i = 1; i < 8; i++) oct_pool_free(pools[i]);
    for (size_t i = 0; i < oct_kernel_count; i++) {
        if (!kernel_wanted(o, &oct_kernels[i])) continue;
        printf("%-12s %-32s %6u cases\n", oct_op_rows[oct_kernels[i].op].name, oct_kernels[i].name, cases_of[i]);
        checked += cases_of[i] > 0;
    }
    if (checked == 0) {
        fprintf(stderr, "opcheck: nothing was checked\n");
        failures++;
    }
    if (failures > 0) printf("%d failures, seed %llu\n", failures, (unsigned long long)o->seed);
    return failures;
}
