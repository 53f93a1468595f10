/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/inputs.h"

#include <string.h>

#include "graph/quantize.h"

static const char *suffix_of(oct_op op, int input) {
    static const char *const of_attention[] = {".q", ".k", ".v"}, *const of_add[] = {".0", ".1"};
    return op == OCT_OP_ATTENTION ? of_attention[input] : (op == OCT_OP_ADD ? of_add[input] : "");
}

char *oct_quant_key(oct_arena *arena, const oct_graph_node *node, int input) {
    return oct_arena_sprintf(arena, "%s%s", node->name, suffix_of(node->op, input));
}

const oct_scale *oct_quant_scale_of(const oct_scale_file *file, const oct_graph_node *node, int input) {
    const size_t length = strlen(node->name);
    for (size_t i = 0; file != NULL && i < file->count; i++) {
        const char *op = file->scales[i].op;
        if (strncmp(op, node->name, length) == 0 && strcmp(op + length, suffix_of(node->op, input)) == 0)
            return &file->scales[i];
    }
    return NULL;
}

bool oct_quant_is_static(const oct_recipe_numbers *numbers) {
    if (!numbers->is_set) return false;
    if (numbers->format == OCT_FORMAT_NVFP4) return true; /* the scale of the tensor */
    return !numbers->dynamic && (oct_format_has_scale(numbers->format) || numbers->format == OCT_FORMAT_UINT8);
}

float oct_quant_channel_scale(oct_format format, float amax) {
    return oct_format_scale(format == OCT_FORMAT_UINT8 ? OCT_FORMAT_INT8 : format, amax);
}

bool oct_quant_is_outlying(const oct_decision *decision, const oct_scale *scale) {
    if (scale == NULL || !scale->has_p9999 || !(scale->p9999 > 0)) return false;
    return decision->choice.outlier_action != OCT_OUTLIER_NONE &&
           (double)scale->amax > (double)scale->p9999 * decision->choice.outlier_above;
}

bool oct_quant_is_kept(const oct_graph_node *node, const oct_decision *decision, const oct_scale_file *file) {
    if (decision->choice.outlier_action != OCT_OUTLIER_KEEP16) return false;
    for (int i = 0; i < oct_quantize_inputs(node->op); i++)
        if (oct_quant_is_outlying(decision, oct_quant_scale_of(file, node, i))) return true;
    return false;
}
