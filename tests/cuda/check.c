/* SPDX-License-Identifier: Apache-2.0 */
/* cudacheck: the CUDA kernels against the ops' reference bodies, on cases drawn as opcheck draws them. The arena holds
 * NaN before a step runs, so that an element nobody wrote shows. And fused blocks of drawn sizes (blocks.c): a tenth as
 * many, each by every tactic. Exit 0 all right, 1 failures, 77 no GPU.
 *
 *     cudacheck [--seed N] [--rounds N] [--tactic PATTERN] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cuda/blocks.h"
#include "cuda/tactic.h"
#include "opcheck/opcheck.h"

typedef struct arguments {
    uint64_t seed;
    int rounds;
    const char *tactic;
} arguments;

static const oct_device_api *api;
static unsigned cases_of[512];

/* Runs the bed's step by `tactic`; `out` gets the numbers of its outputs. An error text, or NULL. */
static const char *run(bed *b, const oct_cuda_tactic *tactic, float *out) {
    oct_cuda_engine *engine = NULL;
    oct_cuda_session *session = NULL;
    b->step.tactic = tactic->name;
    octet_status status = oct_cuda_engine_open(&engine, &b->plan, &b->weights, api, 0);
    if (status == OCTET_OK) status = oct_cuda_session_new(&session, engine);
    if (status == OCTET_OK) status = oct_cuda_session_poison(session);
    for (int i = 0; i < b->c->count && status == OCTET_OK; i++)
        if (!b->c->constant[i]) status = oct_cuda_session_write(session, (size_t)i, b->arrays[i].data);
    if (status == OCTET_OK) status = oct_cuda_session_step(session, 0);
    const int64_t count = oct_shape_count(&b->reference.shape);
    for (int f = 0; f < b->c->out_count && status == OCTET_OK; f++)
        status = oct_cuda_session_read(session, (size_t)(OCT_NODE_INPUTS + f), out + f * count);
    oct_cuda_session_free(session);
    oct_cuda_engine_free(engine);
    return status == OCTET_OK ? NULL : oct_error_text();
}

/* A case, and the same with fp32 stored alone. */
typedef struct pair {
    bed b, wide;
    float *out, *numbers;
} pair;

static void make_bed(bed *b, const opcase *c) {
    bed_make(b, c, true);
    for (int i = c->count; i < OCT_NODE_INPUTS; i++) /* tensors that the case has not */
        b->tensors[i].shape = oct_shape_of(1, (const int64_t[]){1});
    for (int i = 0; i < OCT_NODE_INPUTS + c->out_count; i++) b->tensors[i].form.held_wide = false; /* codes, always */
}

/* What the kernel makes, against the reference; what it stores of that, in each form. QUANTIZE makes its input. */
static const char *check_numbers(pair *p, const oct_cuda_tactic *tactic) {
    const char *error = run(&p->b, tactic, p->out);
    if (error != NULL) return error;
    if (p->b.c->op == OCT_OP_QUANTIZE) return stored_compare(&p->b, p->b.arrays[0].data, p->out);
    error = run(&p->wide, tactic, p->numbers);
    if (error == NULL) error = reference_compare(&p->wide, p->numbers);
    return error != NULL ? error : stored_compare(&p->b, p->numbers, p->out);
}

static int check_case(const arguments *a, opcase *c) {
    oct_shape shape;
    c->in_place = -1; /* the device's arena is laid out anew */
    if (!case_shape(c, &shape)) return 0;
    const size_t size = (size_t)(oct_shape_count(&shape) * c->out_count) * sizeof(float);
    const opcase wide = case_wide(c);
    pair p = {.out = oct_alloc(size), .numbers = oct_alloc(size)};
    if (p.out == NULL || p.numbers == NULL) abort();
    make_bed(&p.b, c);
    make_bed(&p.wide, &wide);
    int failures = 0;
    const oct_cuda_site site = {&p.b.plan, &p.b.weights, 0};
    const oct_cuda_tactic *tactic;
    for (size_t i = 0; (tactic = oct_cuda_tactic_at(i)) != NULL; i++) {
        if (tactic->op != c->op || tactic->span != 1 || !oct_glob_match(a->tactic, tactic->name)) continue;
        if (tactic->refuses(tactic, &site) != NULL) continue;
        cases_of[i]++;
        const char *error = check_numbers(&p, tactic);
        if (error == NULL) continue;
        oct_text text = {0};
        case_print(c, &text);
        printf("FAILED %s: %s\n    %s\n", tactic->name, error, text.data);
        oct_text_free(&text);
        failures++;
    }
    oct_free(p.out);
    oct_free(p.numbers);
    bed_free(&p.b);
    bed_free(&p.wide);
    return failures;
}

static int check_ops(const arguments *a) {
    int failures = 0, checked = 0;
    for (int op = 0; op < OCT_OP_COUNT; op++) {
        uint64_t random = a->seed ^ oct_fnv1a_text(oct_op_rows[op].name);
        for (int i = 0, failed = 0; i < a->rounds && failed < 5; i++) {
            opcase c;
            case_draw((oct_op)op, &random, &c);
            failed += check_case(a, &c);
            failures += failed > 0 && failed <= 5;
        }
    }
    const oct_cuda_tactic *tactic;
    for (size_t i = 0; (tactic = oct_cuda_tactic_at(i)) != NULL; i++) {
        if (tactic->span != 1 || !oct_glob_match(a->tactic, tactic->name)) continue;
        printf("%-12s %-24s %6u cases\n", oct_op_rows[tactic->op].name, tactic->name, cases_of[i]);
        checked += cases_of[i] > 0;
    }
    if (checked == 0) failures++;
    printf("%d failures, seed %llu\n", failures, (unsigned long long)a->seed);
    return failures;
}

int main(int argc, char **argv) {
    arguments a = {.seed = 1, .rounds = 100, .tactic = "*"};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) a.seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rounds") == 0) a.rounds = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--tactic") == 0) a.tactic = argv[i + 1];
    }
    oct_device_facts facts;
    if (oct_cuda_find(0, &api, &facts) != OCTET_OK) {
        fprintf(stderr, "cudacheck: %s\n", oct_error_text());
        return oct_error_status() == OCTET_NO_DEVICE ? 77 : 1;
    }
    printf("%s, driver %d, runtime %d\n", facts.name, facts.driver, facts.runtime);
    int failures = check_ops(&a);
    if (oct_glob_match(a.tactic, "block")) failures += check_blocks(api, a.seed, (a.rounds + 9) / 10);
    return failures == 0 ? 0 : 1;
}
