/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass found, as entries of the scale file. */
#include <string.h>

#include "base/alloc.h"
#include "quant/inputs.h"
#include "quant/learn.h"
#include "quant/rows.h"
#include "quant/smooth.h"
#include "quant/weights.h"

/* ---- smoothing */

static const oct_recipe_choice *choice_of(const oct_quant_watch_list *list, const oct_quant_need *need) {
    return &list->decisions->nodes[need->node].choice;
}

/* Ops that read the same value and are smoothed in the same way have common factors: they can be folded. */
static bool is_together(const oct_quant_watch_list *list, const oct_quant_need *a, const oct_quant_need *b) {
    const oct_recipe_choice *x = choice_of(list, a), *y = choice_of(list, b);
    return a->watch == b->watch && x->smoothing == y->smoothing && x->exponent == y->exponent;
}

/* Readers of the first need's value, itself first; those after it in the list. */
static size_t find_readers(const oct_quant_watch_list *list, size_t first, oct_smooth_reader *readers) {
    size_t count = 0;
    for (size_t i = first; i < list->need_count; i++) {
        const oct_quant_need *need = &list->needs[i];
        if (!is_together(list, &list->needs[first], need)) continue;
        const oct_graph_node *node = &list->graph->nodes[need->node];
        oct_smooth_reader *reader = &readers[count++];
        *reader = (oct_smooth_reader){
            .name = node->name, .weight = list->graph->values[node->inputs[1]].data, .choice = choice_of(list, need)};
        (void)oct_product_of(list->graph, node, &reader->product);
    }
    return count;
}

static octet_status smooth_together(oct_quant_watch_list *list, const oct_quant_seen *seen, size_t first,
                                    oct_smooth_reader *readers, float *memory, oct_scale_draft *draft) {
    const oct_quant_watch *watch = &list->watches[list->needs[first].watch];
    const size_t channels = watch->channels, count = find_readers(list, first, readers);
    float *amax = memory, *factors = memory + channels;
    double exponent = readers[0].choice->exponent;
    for (size_t c = 0; c < channels; c++) amax[c] = oct_channels_amax(seen->channels, c);
    if (readers[0].choice->smoothing == OCT_SMOOTHING_SEARCHED)
        OCT_TRY(
            oct_smooth_search(readers, count, amax, channels, watch->kept->sample, watch->kept->sampled, &exponent));
    OCT_TRY(oct_smooth_factors(readers, count, amax, channels, exponent, factors));
    for (size_t r = 0; r < count; r++) {
        const oct_op_vector vector = {readers[r].name, factors, channels};
        OCT_TRY(oct_scale_draft_smoothing(draft, &vector));
    }
    return OCTET_OK;
}

static octet_status learn_smoothing(oct_quant_watch_list *list, const oct_quant_seen *seen, oct_scale_draft *draft) {
    size_t most = 0;
    for (size_t i = 0; i < list->watch_count; i++)
        most = list->watches[i].channels > most ? list->watches[i].channels : most;
    oct_smooth_reader *readers = oct_calloc(list->need_count + 1, sizeof *readers);
    float *memory = oct_calloc(2 * most + 1, sizeof *memory);
    octet_status status = readers == NULL || memory == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t i = 0; i < list->need_count && status == OCTET_OK; i++) {
        size_t before = 0;
        while (before < i && !is_together(list, &list->needs[before], &list->needs[i])) before++;
        if (before == i) status = smooth_together(list, &seen[list->needs[i].watch], i, readers, memory, draft);
    }
    oct_free(memory);
    oct_free(readers);
    return status;
}

/* ---- ranges */

/* The scale a tensor or channel; *values is memory for them, [channels]. */
static void find_scales(const oct_recipe_numbers *numbers, const oct_calibration *calibration,
                        const oct_channels *channels, float *values, oct_scale *scale) {
    scale->scales = values;
    scale->count = 1;
    if (numbers->format == OCT_FORMAT_NVFP4) {
        values[0] = calibration->threshold > 0 ? oct_nvfp4_tensor_scale(calibration->threshold) : 1;
        return;
    }
    oct_calibration_scale(calibration, numbers->format, values, &scale->zero_point);
    if (numbers->granularity != OCT_PER_CHANNEL) return;
    scale->count = channels->count;
    if (numbers->format == OCT_FORMAT_UINT8) scale->zero_point = 128;
    for (size_t c = 0; c < channels->count; c++) {
        const float amax = oct_channels_amax(channels, c), threshold = calibration->threshold;
        values[c] = oct_quant_channel_scale(numbers->format, amax < threshold ? amax : threshold);
    }
}

static octet_status learn_range(const oct_quant_watch_list *list, const oct_quant_need *need,
                                const oct_quant_seen *seen, float *memory, oct_scale_draft *draft) {
    const oct_recipe_numbers *numbers = &choice_of(list, need)->activations;
    const oct_histogram *histogram = seen->histogram;
    const oct_format format = numbers->format == OCT_FORMAT_NVFP4 ? OCT_FORMAT_E4M3 : numbers->format;
    oct_calibration calibration;
    OCT_TRY(oct_calibrate(histogram, need->key, numbers->calibrator, numbers->percentile, format, &calibration));
    oct_scale scale = {.op = need->key,
                       .format = numbers->format,
                       .granularity = numbers->granularity,
                       .calibrator = numbers->calibrator,
                       .percentile = numbers->percentile,
                       .amax = oct_histogram_amax(histogram),
                       .threshold = calibration.threshold,
                       .has_p9999 = true,
                       .p9999 = oct_histogram_percentile(histogram, 99.99),
                       .values = histogram->count,
                       .not_finite = histogram->infinities + histogram->nans};
    find_scales(numbers, &calibration, seen->channels, memory, &scale);
    if (list->watches[need->watch].channel_ranges) {
        float *channels = memory + list->watches[need->watch].channels;
        scale.channel_count = seen->channels->count;
        for (size_t c = 0; c < scale.channel_count; c++) channels[c] = oct_channels_amax(seen->channels, c);
        scale.channels = channels;
    }
    return oct_scale_draft_add(draft, &scale);
}

static octet_status learn_ranges(const oct_quant_watch_list *list, const oct_quant_seen *seen, oct_scale_draft *draft) {
    for (size_t i = 0; i < list->need_count; i++) {
        const oct_quant_need *need = &list->needs[i];
        float *memory = oct_calloc(2 * list->watches[need->watch].channels + 1, sizeof *memory);
        const octet_status status =
            memory == NULL ? oct_fail_memory() : learn_range(list, need, &seen[need->watch], memory, draft);
        oct_free(memory);
        OCT_TRY(status);
    }
    return OCTET_OK;
}

/* ---- rounding */

static const oct_rows_op *find_op(const oct_quant_rows *rows, const oct_graph_node *node) {
    for (size_t i = 0; i < rows->op_count; i++)
        if (rows->ops[i].node == node) return &rows->ops[i];
    return NULL;
}

/* Compensated codes of all groups, and the numbers they stand for. */
static octet_status compensate(const oct_rows_op *op, const oct_recipe_numbers *numbers, const float *weight,
                               float *rounded, oct_scale_draft *draft) {
    const oct_product *p = &op->product;
    const size_t outputs = (size_t)(p->outputs / p->groups), each = p->count / (size_t)p->groups;
    const size_t groups = oct_weight_groups(numbers, p), row = p->count / (size_t)p->outputs;
    float *scales = oct_calloc((size_t)p->outputs + 1, sizeof *scales);
    uint8_t *codes = oct_alloc(p->count);
    octet_status status = scales == NULL || codes == NULL ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK) status = oct_weight_scales(numbers, op->node->name, p, weight, scales);
    for (int64_t o = (int64_t)groups; o < p->outputs && status == OCTET_OK; o++) scales[o] = scales[0];
    for (size_t g = 0; g < (size_t)p->groups && status == OCTET_OK; g++)
        status = oct_compensate(numbers->format, op->node->name, &op->grams[g], weight + g * each, outputs,
                                scales + g * outputs, codes + g * each);
    if (status == OCTET_OK) {
        oct_scaled_decode(numbers->format, codes, (size_t)p->outputs, row, row, scales, rounded);
        const oct_op_weight entry = {op->node->name, numbers->format, numbers->granularity, scales, groups,
                                     codes,          p->count};
        status = oct_scale_draft_weight(draft, &entry);
    }
    oct_free(codes);
    oct_free(scales);
    return status;
}

/* The mean of what each output lost: W mean(x) - rounded W mean(rounded x). */
static octet_status correct_bias(const oct_rows_op *op, const float *weight, const float *rounded,
                                 oct_scale_draft *draft) {
    const oct_product *p = &op->product;
    const size_t row = p->count / (size_t)p->outputs;
    float *bias = oct_calloc((size_t)p->outputs + 1, sizeof *bias);
    if (bias == NULL) return oct_fail_memory();
    for (int64_t o = 0; o < p->outputs; o++) {
        const size_t at = (size_t)o * row, group = (size_t)(o / (p->outputs / p->groups)) * row;
        double lost = 0;
        for (size_t k = 0; k < row; k++)
            lost +=
                (double)weight[at + k] * op->sums[group + k] - (double)rounded[at + k] * op->rounded_sums[group + k];
        bias[o] = (float)(lost / (double)op->count);
    }
    const oct_op_vector vector = {op->node->name, bias, (size_t)p->outputs};
    const octet_status status = oct_scale_draft_bias(draft, &vector);
    oct_free(bias);
    return status;
}

static octet_status learn_op(const oct_quant_watch_list *list, const oct_quant_need *need, oct_scale_draft *draft) {
    const oct_recipe_choice *choice = choice_of(list, need);
    const oct_graph_node *node = &list->graph->nodes[need->node];
    const oct_rows_op *op = find_op(list->watches[need->watch].kept, node);
    const float *weight = list->graph->values[node->inputs[1]].data;
    if (op->count == 0) return oct_fail(OCTET_MISMATCH, "%s: no picture was seen", node->name);
    float *rounded = oct_alloc(op->product.count * sizeof *rounded);
    if (rounded == NULL) return oct_fail_memory();
    octet_status status = choice->weights.compensated
                              ? compensate(op, &choice->weights, weight, rounded, draft)
                              : oct_weight_round(&choice->weights, node->name, &op->product, weight, rounded);
    if (status == OCTET_OK && choice->bias_correction) status = correct_bias(op, weight, rounded, draft);
    oct_free(rounded);
    return status;
}

octet_status oct_quant_learn(oct_quant_watch_list *list, const oct_quant_seen *seen, oct_scale_draft *draft) {
    switch (list->pass) {
    case OCT_PASS_SMOOTHING:
        return learn_smoothing(list, seen, draft);
    case OCT_PASS_RANGES:
        return learn_ranges(list, seen, draft);
    case OCT_PASS_ROUNDING:
        for (size_t i = 0; i < list->need_count; i++) OCT_TRY(learn_op(list, &list->needs[i], draft));
        return OCTET_OK;
    default:
        return OCTET_OK;
    }
}
