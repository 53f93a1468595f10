/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/steps/shared.h"

const char *oct_refuse_operands(const oct_site *site, int first_weight, int last_weight) {
    for (int j = 0; j < site->step->input_count; j++) {
        const bool weight = j >= first_weight && j <= last_weight;
        const bool constant = site->step->inputs[j].kind == OCT_OPERAND_CONSTANT;
        if (weight && !constant) return "weights that are not constants";
        if (!weight && constant) return "constants where activations are expected";
    }
    return NULL;
}
