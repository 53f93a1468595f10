/* SPDX-License-Identifier: Apache-2.0 */
/* What calibration looks at in the float32 network, and what it learns. Up to three passes over the pictures, each
 * given what those before it learnt:
 *
 *     smoothing   ranges of the channels of inputs to be smoothed, rows of them where the exponent is searched
 *     ranges      histograms of inputs with static scales or an outlier rule, smoothed if they are
 *     rounding    second moments and means of inputs, for compensated weights and corrected biases
 *
 *     oct_scale_draft draft = {0};
 *     for (;;) {
 *         graph as after oct_passes_run; decisions of it
 *         oct_quant_needs(&recipe, &graph, &decisions, &draft.file, &list);    adjusts the graph
 *         if (list.pass == OCT_PASS_NONE) break;                               all is learnt: write draft.file
 *         for each picture, for each watch: the value watch.of of the float32 network as it was before adjusting
 *             watch.histogram, watch.channel_ranges:    into seen[i], each number times watch.factors[channel]
 *             watch.rows:                               oct_quant_see(&list, i, numbers, &shape)
 *         oct_quant_learn(&list, seen, &draft);
 *     }
 *
 * All inputs are of the float32 network, never of the half-quantized one: one run a picture serves all ops. Memory is
 * bounded by the list, whatever the number of pictures: list.memory bytes for rows, and the caller's histograms. */
#ifndef OCT_QUANT_LEARN_H
#define OCT_QUANT_LEARN_H

#include "quant/adjust.h"
#include "quant/channels.h"

/* Positions of one picture that oct_quant_see takes of a map, evenly spread; rows kept for a search, and of how many
 * pictures, in the order in which they come. */
#define OCT_SEEN_POSITIONS 128
#define OCT_SEARCH_ROWS 128
#define OCT_SEARCH_PICTURES 32

typedef enum oct_quant_pass { OCT_PASS_NONE, OCT_PASS_SMOOTHING, OCT_PASS_RANGES, OCT_PASS_ROUNDING } oct_quant_pass;
const char *oct_quant_pass_name(oct_quant_pass pass);

typedef struct oct_quant_rows oct_quant_rows;
typedef struct oct_quant_watch {
    const char *name;     /* unique in the list */
    int32_t value;        /* id in the graph */
    const char *of;       /* its name */
    size_t channels;      /* of its last axis */
    const float *factors; /* NULL, or one a channel */
    bool histogram, channel_ranges, rows;
    oct_quant_rows *kept; /* what oct_quant_see keeps */
} oct_quant_watch;

/* An input of an op, and what is watched for it. */
typedef struct oct_quant_need {
    const char *key; /* of the scale file */
    int32_t node;
    int input;
    size_t watch;
} oct_quant_need;

typedef struct oct_quant_watch_list {
    oct_quant_pass pass;
    int passes; /* this one and those that follow */
    oct_quant_watch *watches;
    size_t watch_count;
    oct_quant_need *needs;
    size_t need_count;
    uint64_t memory; /* bytes for rows */
    const oct_recipe *recipe;
    const oct_graph *graph;
    const oct_decisions *decisions;
    oct_adjusted adjusted;
    oct_arena arena;
} oct_quant_watch_list;

/* What the caller gathered for a watch; NULL what was not wanted. */
typedef struct oct_quant_seen {
    const oct_histogram *histogram;
    const oct_channels *channels;
} oct_quant_seen;

/* `known` may be NULL: nothing yet. Recipe, graph and decisions must outlive the list; the graph is adjusted. On
 * failure the list is empty. */
octet_status oct_quant_needs(const oct_recipe *recipe, oct_graph *graph, const oct_decisions *decisions,
                             const oct_scale_file *known, oct_quant_watch_list *list);
void oct_quant_watch_list_free(oct_quant_watch_list *list);

/* The value of one picture: [1, height, width, channels], [1, tokens, channels] or [1, channels], dense, before
 * factors. Different watches may be given at once by different threads; one watch gets its pictures one at a time, in
 * their order. */
octet_status oct_quant_see(oct_quant_watch_list *list, size_t watch, const float *values, const oct_shape *shape);

/* Adds to the draft what the pass found. `seen` has one for each watch. Errors name the op: nothing finite was seen, no
 * picture was. */
octet_status oct_quant_learn(oct_quant_watch_list *list, const oct_quant_seen *seen, oct_scale_draft *draft);

#endif
