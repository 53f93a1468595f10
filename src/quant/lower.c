/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/lower.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/stored.h"
#include "quant/inputs.h"
#include "quant/product.h"
#include "quant/weights.h"

static float in_range(float scale) {
    if (scale < OCT_SCALE_LEAST) return OCT_SCALE_LEAST;
    return scale > OCT_SCALE_MOST ? OCT_SCALE_MOST : scale;
}

static octet_status missing(const oct_lowering *l, const char *what, const char *key) {
    const char *path = l->scales == NULL ? NULL : l->scales->document.path;
    (void)oct_fail(OCTET_NOT_FOUND, "%s: the recipe %s needs %s for %s, found none", path != NULL ? path : "scales",
                   l->recipe->name, what, key);
    return oct_hint("octet calibrate CHECKPOINT --data SET --recipe %s -o SCALES makes the file for --scales",
                    l->recipe->name);
}

static octet_status no_scale(const oct_lowering *l, const oct_graph_node *node, int input) {
    oct_arena arena = {0};
    const char *key = oct_quant_key(&arena, node, input);
    const octet_status status = missing(l, "a scale", key != NULL ? key : node->name);
    oct_arena_free(&arena);
    return status;
}

/* What the recipe asks of pictures besides scales must be there: without it the op would be another one. */
static octet_status check_learnt(const oct_lowering *l, const oct_graph_node *node, const oct_decision *decision) {
    const oct_recipe_choice *choice = &decision->choice;
    if (choice->smoothing != OCT_SMOOTHING_NONE && oct_scale_file_smoothing(l->scales, node->name) == NULL)
        return missing(l, "smoothing factors", node->name);
    if (choice->weights.compensated && oct_scale_file_weight(l->scales, node->name) == NULL)
        return missing(l, "weights rounded with compensation", node->name);
    if (choice->bias_correction && oct_scale_file_bias(l->scales, node->name) == NULL)
        return missing(l, "a corrected bias", node->name);
    return OCTET_OK;
}

/* ---- weights */

static octet_status lower_weight(oct_lowering *l, const oct_graph_node *node, const oct_decision *decision,
                                 oct_quantize_numbers *to) {
    const oct_recipe_numbers *from = &decision->choice.weights;
    oct_product product;
    if (!from->is_set || from->format == l->recipe->base) return OCTET_OK;
    (void)oct_product_of(l->graph, node, &product);
    *to = (oct_quantize_numbers){
        .format = from->format, .granularity = from->granularity, .block = from->block, .scale_rule = from->scale_rule};
    if (!oct_format_has_scale(from->format) || from->granularity == OCT_PER_BLOCK) return OCTET_OK;
    const size_t groups = oct_weight_groups(from, &product);
    const oct_op_weight *rounded = from->compensated ? oct_scale_file_weight(l->scales, node->name) : NULL;
    float *scales = oct_arena_alloc(l->arena, groups * sizeof *scales);
    if (scales == NULL) return oct_fail_memory();
    if (rounded != NULL)
        memcpy(scales, rounded->scales, groups * sizeof *scales);
    else
        OCT_TRY(oct_weight_scales(from, node->name, &product, l->graph->values[node->inputs[1]].data, scales));
    to->scale = scales[0];
    to->scales = from->granularity == OCT_PER_CHANNEL ? scales : NULL;
    return OCTET_OK;
}

/* ---- activations */

static octet_status wrong_entry(const oct_lowering *l, const oct_graph_node *node, const oct_recipe_numbers *numbers,
                                const oct_scale *scale) {
    oct_text wanted = {0};
    oct_recipe_numbers_print(numbers, &wanted);
    (void)oct_fail(OCTET_MISMATCH, "%s: scale of %s: expected one for %s, found one for %s with %zu scales",
                   l->scales->document.path != NULL ? l->scales->document.path : "scales", node->name,
                   wanted.data != NULL ? wanted.data : "", oct_format_name(scale->format), scale->count);
    oct_text_free(&wanted);
    return oct_hint("calibrate again with this recipe");
}

/* A scale a channel from the channels' own ranges, none beyond `threshold`. */
static octet_status channel_scales(oct_lowering *l, const oct_scale *scale, float threshold, oct_quantize_numbers *to) {
    float *scales = oct_arena_alloc(l->arena, scale->channel_count * sizeof *scales);
    if (scales == NULL) return oct_fail_memory();
    for (size_t c = 0; c < scale->channel_count; c++) {
        const float amax = scale->channels[c] < threshold ? scale->channels[c] : threshold;
        scales[c] = in_range(oct_quant_channel_scale(to->format, amax));
    }
    to->granularity = OCT_PER_CHANNEL;
    to->scales = scales;
    if (to->format == OCT_FORMAT_UINT8) to->zero_point = 128;
    return OCTET_OK;
}

/* The scale once the threshold is moved down to `threshold`. */
static void clip(const oct_scale *scale, float threshold, oct_quantize_numbers *to) {
    if (to->format == OCT_FORMAT_UINT8) {
        const float low = (0 - (float)scale->zero_point) * scale->scales[0];
        const float high = (255 - (float)scale->zero_point) * scale->scales[0];
        oct_uint8_range(low > -threshold ? low : -threshold, high < threshold ? high : threshold, &to->scale,
                        &to->zero_point);
    } else if (to->format == OCT_FORMAT_NVFP4) {
        to->scale = oct_nvfp4_tensor_scale(threshold);
    } else {
        to->scale = oct_format_scale(to->format, threshold);
    }
}

/* What the outlier rule says of an input whose static scale is known; *to has the scale. */
static octet_status apply_outliers(oct_lowering *l, const oct_graph_node *node, const oct_decision *decision,
                                   const oct_scale *scale, oct_quantize_numbers *to) {
    if (!oct_quant_is_outlying(decision, scale)) return OCTET_OK;
    oct_text *report = &l->adjusted->report;
    const bool clips = decision->choice.outlier_action == OCT_OUTLIER_CLIP;
    oct_text_printf(report, "%s: outliers: max %g, p99.99 %g: %s\n", scale->op, (double)scale->amax,
                    (double)scale->p9999, clips ? "clipped there" : "a scale a channel");
    if (!clips) {
        if (scale->channels == NULL) return wrong_entry(l, node, &decision->choice.activations, scale);
        return channel_scales(l, scale, scale->threshold, to);
    }
    if (scale->p9999 >= scale->threshold) return OCTET_OK;
    if (to->granularity == OCT_PER_CHANNEL) return channel_scales(l, scale, scale->p9999, to);
    clip(scale, scale->p9999, to);
    return OCTET_OK;
}

/* A constant summand: nothing to calibrate, its numbers are there. */
static octet_status lower_constant(const oct_recipe_numbers *from, const oct_value *value, oct_quantize_numbers *to) {
    const size_t count = (size_t)oct_shape_count(&value->shape);
    oct_histogram *histogram = NULL;
    OCT_TRY(oct_histogram_new(&histogram));
    oct_histogram_add(histogram, value->data, count);
    oct_calibration calibration = {.threshold = oct_amax_finite(value->data, count)};
    octet_status status = OCTET_OK;
    if (from->format == OCT_FORMAT_NVFP4) {
        to->scale = oct_nvfp4_tensor_scale(calibration.threshold);
    } else {
        status = oct_calibrate(histogram, value->name, from->calibrator, from->percentile, from->format, &calibration);
        if (status == OCTET_OK) oct_calibration_scale(&calibration, from->format, &to->scale, &to->zero_point);
    }
    oct_histogram_free(histogram);
    to->granularity = from->granularity == OCT_PER_CHANNEL ? OCT_PER_TENSOR : to->granularity;
    return status;
}

static octet_status lower_static(oct_lowering *l, const oct_graph_node *node, int input, const oct_decision *decision,
                                 oct_quantize_numbers *to) {
    const oct_recipe_numbers *from = &decision->choice.activations;
    const oct_value *value = &l->graph->values[node->inputs[input]];
    const int64_t channels = value->shape.dims[value->shape.rank - 1];
    if (value->data != NULL) return lower_constant(from, value, to);
    const oct_scale *scale = oct_quant_scale_of(l->scales, node, input);
    if (scale == NULL) return no_scale(l, node, input);
    const size_t wanted = from->granularity == OCT_PER_CHANNEL ? (size_t)channels : 1;
    if (scale->format != from->format || scale->granularity != from->granularity || scale->count != wanted ||
        (scale->channels != NULL && scale->channel_count != (size_t)channels))
        return wrong_entry(l, node, from, scale);
    to->scale = scale->scales[0];
    if (from->granularity == OCT_PER_CHANNEL) {
        float *scales = oct_arena_alloc(l->arena, wanted * sizeof *scales);
        if (scales == NULL) return oct_fail_memory();
        for (size_t c = 0; c < wanted; c++) scales[c] = in_range(scale->scales[c]);
        to->scales = scales;
    }
    to->zero_point = scale->zero_point;
    return apply_outliers(l, node, decision, scale, to);
}

octet_status oct_quant_lower_input(oct_lowering *l, size_t index, int input, oct_quantize_numbers *to) {
    const oct_graph_node *node = &l->graph->nodes[index];
    const oct_decision *decision = &l->decisions->nodes[index];
    const oct_recipe_numbers *from = &decision->choice.activations;
    if (!from->is_set || from->format == l->recipe->base) return OCTET_OK;
    *to = (oct_quantize_numbers){.format = from->format,
                                 .granularity = from->granularity,
                                 .block = from->block,
                                 .scale_rule = from->scale_rule,
                                 .scale = 1};
    if (oct_quant_is_static(from)) OCT_TRY(lower_static(l, node, input, decision, to));
    to->scale = in_range(to->scale);
    if (input == 0) to->factors = l->adjusted->inputs[index];
    return OCTET_OK;
}

/* ---- nodes */

static octet_status lower_node(oct_lowering *l, size_t index, oct_lowered *out) {
    const oct_graph_node *node = &l->graph->nodes[index];
    const oct_decision *decision = &l->decisions->nodes[index];
    oct_quantize_decision *to = &out->decisions[out->count];
    *to = (oct_quantize_decision){.node = oct_arena_strdup(l->arena, node->name)};
    if (to->node == NULL) return oct_fail_memory();
    if (oct_quant_is_kept(node, decision, l->scales)) {
        oct_text_printf(&l->adjusted->report, "%s: outliers: kept in %s\n", node->name,
                        oct_format_name(l->recipe->base));
        return OCTET_OK;
    }
    OCT_TRY(check_learnt(l, node, decision));
    OCT_TRY(lower_weight(l, node, decision, &to->weight));
    for (int i = 0; i < oct_quantize_inputs(node->op); i++) OCT_TRY(oct_quant_lower_input(l, index, i, &to->inputs[i]));
    if (node->op == OCT_OP_ATTENTION && to->inputs[0].format != OCT_FORMAT_FP32) {
        if (oct_stored_is_probability(to->inputs[0].format))
            to->probabilities = to->inputs[0].format;
        else
            oct_text_printf(&l->adjusted->report, "%s: probabilities are not kept in %s: left as they are\n",
                            node->name, oct_format_name(to->inputs[0].format));
    }
    out->count++;
    return OCTET_OK;
}

static octet_status lower_all(oct_lowering *l, oct_lowered *out) {
    out->decisions = oct_arena_alloc(l->arena, (l->decisions->narrow + 1) * sizeof *out->decisions);
    if (out->decisions == NULL) return oct_fail_memory();
    for (size_t i = 0; i < l->decisions->count; i++)
        if (l->decisions->nodes[i].is_narrow) OCT_TRY(lower_node(l, i, out));
    return l->adjusted->report.failed ? oct_fail_memory() : OCTET_OK;
}

octet_status oct_quant_lower(const oct_recipe *recipe, oct_graph *graph, const oct_decisions *decisions,
                             const oct_scale_file *scales, oct_lowered *out) {
    *out = (oct_lowered){0};
    OCT_TRY(oct_quant_adjust(graph, decisions, scales, &out->adjusted));
    oct_lowering l = {.recipe = recipe,
                      .graph = graph,
                      .decisions = decisions,
                      .scales = scales,
                      .adjusted = &out->adjusted,
                      .arena = &out->arena};
    const octet_status status = lower_all(&l, out);
    if (status != OCTET_OK) oct_lowered_free(out);
    return status;
}

void oct_lowered_free(oct_lowered *out) {
    oct_adjusted_free(&out->adjusted);
    oct_arena_free(&out->arena);
    *out = (oct_lowered){0};
}
