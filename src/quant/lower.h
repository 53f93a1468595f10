/* SPDX-License-Identifier: Apache-2.0 */
/* From what a recipe decides and a calibration found to what oct_graph_quantize takes: formats with their scales.
 *
 *     weights        by the recipe's calibrator over the weights themselves, a tensor or output channel; blocks by
 *                    their largest. Rounded weights of the scale file bring their scales
 *     activations    static ones from the scale file. nvfp4: threshold / (448 * 6). A constant summand's are its own
 *     attention      q, k and v, and the probabilities where they can be kept in the format
 *     outliers       judged by amax / p9999 of the scale file: clip puts the threshold at p9999, keep16 leaves the op
 *                    as the base, per_channel takes a scale a channel */
#ifndef OCT_QUANT_LOWER_H
#define OCT_QUANT_LOWER_H

#include "graph/quantize.h"
#include "quant/adjust.h"

typedef struct oct_lowered {
    oct_quantize_decision *decisions; /* of the narrow nodes, in the graph's order */
    size_t count;
    oct_adjusted adjusted; /* its report has a line an op touched by the outlier rule, too */
    oct_arena arena;       /* owns, with `adjusted`, what the decisions point to */
} oct_lowered;

/* Adjusts `graph` (quant/adjust.h) and decides; then oct_graph_quantize(graph, out->decisions, out->count) is right.
 * `scales` may be NULL where nothing static is needed; a missing entry is NOT_FOUND and names the op and how to get it.
 * After failure the graph may only be freed, *out is empty. The caller frees *out. */
octet_status oct_quant_lower(const oct_recipe *recipe, oct_graph *graph, const oct_decisions *decisions,
                             const oct_scale_file *scales, oct_lowered *out);
void oct_lowered_free(oct_lowered *out);

/* One input alone, of a graph that is adjusted already; what *to points to is in `arena` and in `adjusted`. */
typedef struct oct_lowering {
    const oct_recipe *recipe;
    const oct_graph *graph;
    const oct_decisions *decisions;
    const oct_scale_file *scales;
    oct_adjusted *adjusted;
    oct_arena *arena;
} oct_lowering;
octet_status oct_quant_lower_input(oct_lowering *lowering, size_t node, int input, oct_quantize_numbers *to);

#endif
