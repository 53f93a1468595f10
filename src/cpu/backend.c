/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernels, and the choice of one for a step. */
#include <string.h>

#include "cpu/kernel.h"
#include "cpu/kernels/kernels.h"
#include "cpu/steps/shared.h"
#include "graph/ops.h"

const oct_kernel oct_kernels[] = {
#define OCT_KERNEL(op_, name_, isa_, driver_, type_, body_, rows_, columns_)                                           \
    {.name = #name_,                                                                                                   \
     .op = OCT_OP_##op_,                                                                                               \
     .isa = OCT_ISA_##isa_,                                                                                            \
     .driver = &oct_driver_##driver_,                                                                                  \
     .body = (oct_body *)body_,                                                                                        \
     .rows = rows_,                                                                                                    \
     .columns = columns_},
#include "cpu/kernels/kernels.def"
#undef OCT_KERNEL
};
const size_t oct_kernel_count = sizeof oct_kernels / sizeof *oct_kernels;

const oct_kernel *oct_kernel_find(oct_op op, const char *name) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == op && strcmp(oct_kernels[i].name, name) == 0) return &oct_kernels[i];
    return NULL;
}

static oct_strided strided(const oct_shape *shape, int64_t stride) {
    oct_strided a = {.shape = *shape, .rows = 1, .channels = shape->dims[shape->rank - 1], .stride = stride};
    for (int i = 0; i + 1 < shape->rank; i++) a.rows *= shape->dims[i];
    return a;
}

oct_strided oct_site_input(const oct_site *site, int input) {
    const oct_operand operand = site->step->inputs[input];
    if (operand.kind == OCT_OPERAND_CONSTANT) {
        const oct_constant *constant = &site->weights->items[operand.index];
        oct_strided a = strided(&constant->shape, constant->shape.dims[constant->shape.rank - 1]);
        a.constant = constant->data;
        a.codes = constant->codes;
        a.form = &constant->form;
        a.is_constant = true;
        return a;
    }
    return oct_site_tensor(site, operand.index);
}

oct_strided oct_site_tensor(const oct_site *site, int32_t index) {
    const oct_plan_tensor *tensor = &site->plan->tensors[index];
    oct_strided a = strided(&tensor->shape, tensor->form.channel_stride);
    a.offset = tensor->offset;
    a.form = &tensor->form;
    if (oct_form_keeps_row_scales(a.form)) a.scales = tensor->offset + oct_tensor_scales(tensor);
    return a;
}

oct_strided oct_site_output(const oct_site *site) {
    return oct_site_tensor(site, site->step->output);
}

static bool knows(oct_op op, const char *tactic) {
    return oct_kernel_find(op, tactic) != NULL;
}

static const char *tactic_at(oct_op op, size_t index) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == op && index-- == 0) return oct_kernels[i].name;
    return NULL;
}

static bool plainer(oct_op op, const char *tactic, const char *other) {
    const oct_kernel *a = oct_kernel_find(op, tactic), *b = oct_kernel_find(op, other);
    return a != NULL && b != NULL && a->isa < b->isa;
}

const char *oct_kernel_refuses(const oct_site *site, const oct_kernel *kernel) {
    const char *why = kernel->driver->forms(site);
    return why != NULL ? why : kernel->driver->refuses(site, kernel);
}

static const char *refusal(const oct_site *site, const oct_kernel *kernel, oct_isa limit) {
    static const char *const needs[OCT_ISA_COUNT] = {"needs c", "needs avx2", "needs avx512", "needs vnni",
                                                     "needs amx"};
    return kernel->isa > limit ? needs[kernel->isa] : oct_kernel_refuses(site, kernel);
}

static void take(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    *choice = (oct_tactic_choice){.tactic = kernel->name};
    kernel->driver->size(site, kernel, choice);
}

static octet_status choose(const oct_plan *plan, const oct_weights *weights, size_t index, const char *isa,
                           const char *force, oct_tactic_choice *choice, oct_text *reasons) {
    const oct_site site = {plan, weights, &plan->steps[index]};
    oct_isa limit;
    *choice = (oct_tactic_choice){0};
    OCT_TRY(oct_isa_limit(isa, &limit));
    const char *why = "no kernel of this name";
    for (size_t i = 0; i < oct_kernel_count; i++) {
        const oct_kernel *kernel = &oct_kernels[i];
        if (kernel->op != site.step->op || (force != NULL && strcmp(force, kernel->name) != 0)) continue;
        why = refusal(&site, kernel, limit);
        const bool first = why == NULL && choice->tactic == NULL;
        if (first) take(&site, kernel, choice);
        if (reasons != NULL)
            oct_text_printf(reasons, "    %s: %s\n", kernel->name,
                            first ? "chosen" : (why != NULL ? why : "fits, but a better one comes first"));
    }
    if (choice->tactic != NULL) return OCTET_OK;
    if (force != NULL) return oct_fail(OCTET_UNSUPPORTED, "step %s: kernel %s: %s", site.step->name, force, why);
    oct_fail(OCTET_UNSUPPORTED, "step %s: no kernel for this %s", site.step->name, oct_op_rows[site.step->op].name);
    return oct_detail("the plainest one says: %s", why);
}

static octet_status pack(const oct_plan *plan, const oct_weights *weights, size_t index, void *packed, oct_pool *pool) {
    const oct_site site = {plan, weights, &plan->steps[index]};
    const oct_kernel *kernel = oct_kernel_find(site.step->op, site.step->tactic);
    if (kernel == NULL) return oct_fail(OCTET_INTERNAL, "step %s: no kernel %s", site.step->name, site.step->tactic);
    oct_packed *head = packed;
    *head = (oct_packed){.kernel = kernel, .output_count = site.step->has_second ? 2 : 1};
    for (int i = 0; i < head->output_count; i++) {
        const oct_strided out = oct_site_tensor(&site, i == 0 ? site.step->output : site.step->second);
        const int64_t bytes = (int64_t)oct_form_bits(out.form) / 8;
        head->rows = out.rows;
        head->outputs[i].out = out.offset;
        head->outputs[i].channels = out.channels * bytes;
        head->outputs[i].stride = out.stride * bytes;
    }
    kernel->driver->pack(&site, kernel, packed, pool);
    return OCTET_OK;
}

/* Waking threads costs some 5 us, far more where other programs keep the cores: a step this small runs faster alone. A
 * core does about 60 operations and moves about 20 bytes a nanosecond. Results do not depend on it. */
#define ALONE_FLOPS 1000000u
#define ALONE_BYTES 262144u

static void run(const oct_plan *plan, size_t index, const void *packed, void *arena, void *scratch, oct_pool *pool) {
    const oct_packed *head = packed;
    const oct_plan_step *step = &plan->steps[index];
    if (step->flops < ALONE_FLOPS && step->bytes < ALONE_BYTES) pool = NULL;
    head->kernel->driver->run(packed, arena, scratch, pool);
    for (int i = 0; i < head->output_count; i++) {
        const int64_t channels = head->outputs[i].channels, stride = head->outputs[i].stride;
        uint8_t *out = (uint8_t *)arena + head->outputs[i].out;
        for (int64_t row = 0; row < head->rows && stride > channels; row++)
            memset(out + row * stride + channels, 0, (size_t)(stride - channels));
    }
}

/* ---- the picture, rounded in place */

typedef struct input_job {
    oct_storing storing;
    uint8_t *arena;
} input_job;

#define INPUT_ROWS 4096

static void input_item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const input_job *j = argument;
    const oct_storing *s = &j->storing;
    const int64_t row = (int64_t)index * INPUT_ROWS, rows = oct_least(INPUT_ROWS, s->rows - row);
    oct_store(s, j->arena, (float *)(void *)(j->arena + s->out) + row * s->stride, s->stride, row, 0, rows,
              s->channels);
}

static void store_input(const oct_plan *plan, const oct_weights *weights, void *arena, oct_pool *pool) {
    const oct_plan_step picture = {.output = plan->input};
    const oct_site site = {plan, weights, &picture};
    oct_isa isa = OCT_ISA_C;
    if (oct_isa_limit(NULL, &isa) != OCTET_OK) isa = OCT_ISA_C; /* reported when the plan was made */
    const input_job j = {oct_site_storing(&site, isa), arena};
    oct_items_run(pool, (size_t)oct_ceil_div(j.storing.rows, INPUT_ROWS), input_item, &j, NULL, 0);
}

const oct_backend *oct_cpu_backend(void) {
    static const oct_backend backend = {.name = "cpu",
                                        .knows = knows,
                                        .tactic = tactic_at,
                                        .plainer = plainer,
                                        .choose = choose,
                                        .pack = pack,
                                        .store_input = store_input,
                                        .run = run};
    return &backend;
}
