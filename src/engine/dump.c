/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text. */
#include <string.h>

#include "engine/internal.h"
#include "graph/ops.h"

void oct_plan_dump(const oct_plan *plan, oct_text *text) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const oct_plan_step *step = &plan->steps[i];
        const oct_plan_tensor *out = &plan->tensors[step->output];
        oct_text_printf(text, "%zu %s %s", i, oct_op_rows[step->op].name, step->name);
        for (int j = 0; j < step->input_count; j++) {
            if (step->inputs[j].kind != OCT_OPERAND_TENSOR) continue;
            oct_text_puts(text, " ");
            oct_shape_print(&plan->tensors[step->inputs[j].index].shape, text);
        }
        oct_text_puts(text, " -> ");
        oct_shape_print(&out->shape, text);
        oct_text_puts(text, " ");
        oct_form_print(&out->form, text);
        if (step->has_second) {
            oct_text_puts(text, " + ");
            oct_form_print(&plan->tensors[step->second].form, text);
        }
        if (step->attributes.probabilities != OCT_FORMAT_FP32)
            oct_text_printf(text, " probabilities %s", oct_format_name(step->attributes.probabilities));
        if (step->attributes.activation != OCT_ACTIVATION_NONE)
            oct_text_printf(text, " %s", oct_activation_name(step->attributes.activation));
        if (oct_step_residual(step) >= 0) oct_text_puts(text, " +residual");
        oct_text_printf(text, " %s flops=%llu bytes=%llu\n", step->tactic != NULL ? step->tactic : "-",
                        (unsigned long long)step->flops, (unsigned long long)step->bytes);
    }
}

void oct_plan_memory(const oct_plan *plan, oct_text *text) {
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->tensor_count; i++) {
        const oct_plan_tensor *tensor = &plan->tensors[i];
        oct_text_printf(text, "%12llu %12llu %5d %5d %s\n", (unsigned long long)tensor->offset,
                        (unsigned long long)tensor->size, tensor->first, tensor->last, tensor->name);
        sum += tensor->size;
    }
    oct_text_printf(text, "peak %llu bytes, sum of all %llu\n", (unsigned long long)plan->arena_size,
                    (unsigned long long)sum);
}

octet_status oct_plan_tactics(const oct_plan *plan, const oct_weights *weights, const oct_backend *backend,
                              oct_text *text) {
    for (size_t i = 0; i < plan->step_count; i++) {
        oct_tactic_choice choice;
        oct_text_printf(text, "%zu %s\n", i, plan->steps[i].name);
        OCT_TRY(backend->choose(plan, weights, i, NULL, NULL, &choice, text));
        if (strcmp(choice.tactic, plan->steps[i].tactic) != 0)
            oct_text_printf(text, "    the plan says %s, chosen by the clock or for another machine\n",
                            plan->steps[i].tactic);
    }
    return text->failed ? oct_fail_memory() : OCTET_OK;
}
