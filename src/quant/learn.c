/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass looks at. */
#include "quant/learn.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/quantize.h"
#include "quant/inputs.h"
#include "quant/lower.h"
#include "quant/rows.h"

const char *oct_quant_pass_name(oct_quant_pass pass) {
    static const char *const names[] = {"none", "smoothing", "ranges", "rounding"};
    return (unsigned)pass < sizeof names / sizeof *names ? names[pass] : "unknown";
}

/* ---- what each pass needs of an op */

static bool is_narrow(const oct_quant_watch_list *list, const oct_recipe_numbers *numbers) {
    return numbers->is_set && numbers->format != list->recipe->base;
}

static bool needs_smoothing(const oct_decision *decision, const oct_scale_file *known, const oct_graph_node *node) {
    return decision->choice.smoothing != OCT_SMOOTHING_NONE && oct_scale_file_smoothing(known, node->name) == NULL;
}

static bool needs_range(const oct_quant_watch_list *list, const oct_decision *decision, const oct_scale_file *known,
                        const oct_graph_node *node, int input) {
    const oct_recipe_numbers *numbers = &decision->choice.activations;
    return is_narrow(list, numbers) && oct_quant_is_static(numbers) &&
           list->graph->values[node->inputs[input]].data == NULL && oct_quant_scale_of(known, node, input) == NULL;
}

static bool needs_rounding(const oct_decision *decision, const oct_scale_file *known, const oct_graph_node *node) {
    return (decision->choice.weights.compensated && oct_scale_file_weight(known, node->name) == NULL) ||
           (decision->choice.bias_correction && oct_scale_file_bias(known, node->name) == NULL);
}

static bool needs(const oct_quant_watch_list *list, oct_quant_pass pass, const oct_scale_file *known, size_t index,
                  int input) {
    const oct_graph_node *node = &list->graph->nodes[index];
    const oct_decision *decision = &list->decisions->nodes[index];
    oct_product product;
    if (!decision->is_narrow || oct_quant_is_kept(node, decision, known)) return false;
    if (pass == OCT_PASS_RANGES) return needs_range(list, decision, known, node, input);
    if (input > 0 || !oct_product_of(list->graph, node, &product)) return false;
    return pass == OCT_PASS_SMOOTHING ? needs_smoothing(decision, known, node) : needs_rounding(decision, known, node);
}

/* Counts a pass's needs; the list's are those of the first pass that has any. */
static size_t count_needs(const oct_quant_watch_list *list, oct_quant_pass pass, const oct_scale_file *known) {
    size_t count = 0;
    for (size_t i = 0; i < list->decisions->count; i++)
        for (int input = 0; input < oct_quantize_inputs(list->graph->nodes[i].op); input++)
            count += needs(list, pass, known, i, input);
    return count;
}

/* ---- watches */

/* What the numbers of an op's input are multiplied with: the value's own factors, and those its narrow form has. */
static octet_status factors_of(oct_quant_watch_list *list, const oct_quant_need *need, const float **factors) {
    const int32_t value = list->graph->nodes[need->node].inputs[need->input];
    const oct_shape *shape = &list->graph->values[value].shape;
    const size_t channels = (size_t)shape->dims[shape->rank - 1];
    const float *own = need->input == 0 ? list->adjusted.inputs[need->node] : NULL;
    *factors = list->adjusted.values[value];
    if (own == NULL) return OCTET_OK;
    float *product = oct_arena_alloc(&list->arena, channels * sizeof *product);
    if (product == NULL) return oct_fail_memory();
    for (size_t c = 0; c < channels; c++) product[c] = own[c] * (*factors != NULL ? (*factors)[c] : 1.0f);
    *factors = product;
    return OCTET_OK;
}

/* The watch of the need's value, one for all ops that see the same numbers. */
static octet_status find_watch(oct_quant_watch_list *list, oct_quant_need *need) {
    const oct_graph_node *node = &list->graph->nodes[need->node];
    const int32_t value = node->inputs[need->input];
    const oct_value *v = &list->graph->values[value];
    const bool alone = need->input == 0 && list->adjusted.inputs[need->node] != NULL;
    for (need->watch = 0; !alone && need->watch < list->watch_count; need->watch++)
        if (list->watches[need->watch].value == value &&
            list->watches[need->watch].of == list->watches[need->watch].name)
            return OCTET_OK;
    need->watch = list->watch_count;
    oct_quant_watch *watch = &list->watches[list->watch_count++];
    *watch = (oct_quant_watch){
        .value = value, .of = v->name, .name = v->name, .channels = (size_t)v->shape.dims[v->shape.rank - 1]};
    if (alone) watch->name = oct_arena_sprintf(&list->arena, "%s for %s", v->name, need->key);
    if (watch->name == NULL) return oct_fail_memory();
    return factors_of(list, need, &watch->factors);
}

static octet_status want_rows(oct_quant_watch_list *list, const oct_scale_file *known, const oct_quant_need *need) {
    oct_quant_watch *watch = &list->watches[need->watch];
    const oct_graph_node *node = &list->graph->nodes[need->node];
    const oct_recipe_choice *choice = &list->decisions->nodes[need->node].choice;
    const bool searched = list->pass == OCT_PASS_SMOOTHING;
    if (watch->kept == NULL) OCT_TRY(oct_rows_new(&watch->kept, watch->channels, list->need_count, searched));
    watch->rows = true;
    if (searched) return OCTET_OK;
    oct_lowering lowering = {list->recipe, list->graph, list->decisions, known, &list->adjusted, &list->arena};
    oct_quantize_numbers numbers = {0};
    OCT_TRY(oct_quant_lower_input(&lowering, (size_t)need->node, 0, &numbers));
    return oct_rows_add_op(watch->kept, list->graph, node, choice->weights.compensated, choice->bias_correction,
                           &numbers);
}

static octet_status want(oct_quant_watch_list *list, const oct_scale_file *known, const oct_quant_need *need) {
    oct_quant_watch *watch = &list->watches[need->watch];
    const oct_recipe_choice *choice = &list->decisions->nodes[need->node].choice;
    switch (list->pass) {
    case OCT_PASS_SMOOTHING:
        watch->channel_ranges = true;
        return choice->smoothing == OCT_SMOOTHING_SEARCHED ? want_rows(list, known, need) : OCTET_OK;
    case OCT_PASS_RANGES:
        watch->histogram = true;
        if (choice->activations.granularity == OCT_PER_CHANNEL || choice->outlier_action == OCT_OUTLIER_PER_CHANNEL)
            watch->channel_ranges = true;
        return OCTET_OK;
    default:
        return want_rows(list, known, need);
    }
}

static octet_status fill(oct_quant_watch_list *list, const oct_scale_file *known) {
    list->needs = oct_arena_alloc(&list->arena, (list->need_count + 1) * sizeof *list->needs);
    list->watches = oct_arena_alloc(&list->arena, (list->need_count + 1) * sizeof *list->watches);
    if (list->needs == NULL || list->watches == NULL) return oct_fail_memory();
    size_t count = 0;
    for (size_t i = 0; i < list->decisions->count; i++) {
        const oct_graph_node *node = &list->graph->nodes[i];
        for (int input = 0; input < oct_quantize_inputs(node->op); input++) {
            if (!needs(list, list->pass, known, i, input)) continue;
            oct_quant_need *need = &list->needs[count++];
            *need = (oct_quant_need){.key = oct_quant_key(&list->arena, node, input), (int32_t)i, input, 0};
            if (need->key == NULL) return oct_fail_memory();
            OCT_TRY(find_watch(list, need));
            OCT_TRY(want(list, known, need));
        }
    }
    for (size_t i = 0; i < list->watch_count; i++)
        if (list->watches[i].kept != NULL) list->memory += oct_rows_bytes(list->watches[i].kept);
    return OCTET_OK;
}

octet_status oct_quant_needs(const oct_recipe *recipe, oct_graph *graph, const oct_decisions *decisions,
                             const oct_scale_file *known, oct_quant_watch_list *list) {
    *list = (oct_quant_watch_list){.recipe = recipe, .graph = graph, .decisions = decisions};
    OCT_TRY(oct_quant_adjust(graph, decisions, known, &list->adjusted));
    for (oct_quant_pass pass = OCT_PASS_SMOOTHING; pass <= OCT_PASS_ROUNDING; pass++) {
        const size_t count = count_needs(list, pass, known);
        if (count == 0) continue;
        list->passes++;
        if (list->pass != OCT_PASS_NONE) continue;
        list->pass = pass;
        list->need_count = count;
    }
    const octet_status status = fill(list, known);
    if (status != OCTET_OK) oct_quant_watch_list_free(list);
    return status;
}

void oct_quant_watch_list_free(oct_quant_watch_list *list) {
    for (size_t i = 0; i < list->watch_count; i++) oct_rows_free(list->watches[i].kept);
    oct_adjusted_free(&list->adjusted);
    oct_arena_free(&list->arena);
    *list = (oct_quant_watch_list){0};
}

octet_status oct_quant_see(oct_quant_watch_list *list, size_t watch, const float *values, const oct_shape *shape) {
    const oct_quant_watch *w = &list->watches[watch];
    const octet_status status = oct_rows_see(w->kept, values, w->factors, shape);
    return status == OCTET_OK ? OCTET_OK : oct_error_prefix("%s", w->name);
}
