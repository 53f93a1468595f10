/* SPDX-License-Identifier: Apache-2.0 */
/* A plan and its weights from any bytes (u32 length of the weights, the weights, the plan). What the checks let through
 * must open and run without touching memory that is not its own. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cpu/cpu.h"
#include "engine/plan_file.h"

#define ARENA_LIMIT ((uint64_t)16 << 20)
#define FLOPS_LIMIT 10000000.0 /* so that a run takes milliseconds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct source {
    const uint8_t *data;
    size_t left;
} source;

static octet_status take(void *user, void *out, size_t size) {
    source *in = user;
    if (size > in->left) return oct_fail(OCTET_BAD_FORMAT, "ends early");
    memcpy(out, in->data, size);
    in->data += size;
    in->left -= size;
    return OCTET_OK;
}

/* Operations by shapes that were checked, not by what the plan claims. */
static bool small(const oct_plan *plan) {
    double flops = 0.0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const oct_plan_tensor *out = &plan->tensors[plan->steps[i].output];
        double each = (double)oct_shape_count(&out->shape);
        for (int j = 0; j < plan->steps[i].input_count; j++) {
            const oct_operand *operand = &plan->steps[i].inputs[j];
            if (operand->kind == OCT_OPERAND_TENSOR) each *= (double)plan->tensors[operand->index].shape.dims[1];
        }
        flops += each;
    }
    return flops < FLOPS_LIMIT && plan->arena_size < ARENA_LIMIT;
}

static void run(oct_plan *plan, oct_weights *weights) {
    oct_engine *engine = NULL;
    oct_context *context = NULL;
    if (oct_engine_open(&engine, plan, weights, oct_cpu_backend(), NULL, false) != OCTET_OK) return;
    if (oct_context_new(&context, engine, NULL) == OCTET_OK) {
        if (oct_context_run(context) != OCTET_OK) abort();
        oct_context_free(context);
    }
    oct_engine_release(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t length;
    oct_weights *weights = NULL;
    oct_plan *plan = NULL;
    if (size < sizeof length) return 0;
    memcpy(&length, data, sizeof length);
    data += sizeof length;
    size -= sizeof length;
    if (length > size) return 0;
    source in = {data, length};
    if (oct_weights_read(&weights, "weights", length, take, &in) == OCTET_OK &&
        oct_plan_read(&plan, "plan", data + length, size - length) == OCTET_OK) {
        if (oct_plan_check(plan, weights, oct_cpu_backend()) == OCTET_OK && small(plan))
            run(plan, weights);
        else
            oct_plan_free(plan);
    }
    oct_weights_release(weights);
    return 0;
}
