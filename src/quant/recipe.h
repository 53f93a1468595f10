/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe: which ops of a graph become narrow, and how. A YAML file (families/NAME/recipes/):
 *
 *     recipe: published                 its name
 *     description: what it is           optional
 *     base: fp16                        fp32, fp16, bf16: all that no rule makes narrow
 *     rules:                            applied in order; of two that say something of one op the later counts,
 *       - ops:                          section by section
 *           kind: conv2d                conv2d, linear, attention, add, global_pool, or a list; absent: conv2d, linear
 *           name: "blocks.*"            shell-like pattern of op names, or a list: any of them
 *           not: "blocks.0.*"           the same: none of them
 *           kernel: [1, 1]              height, width of the kernel
 *           depthwise: false
 *           pixels_from: 2              height * width of the output map, or tokens; also pixels_to
 *           channels_in_from: 32        also channels_in_to, channels_out_from, channels_out_to
 *           first: 2                    the first 2 of what the rest selects, in the graph's order
 *           last: 2                     the last 2; with `first`: both ends
 *         keep: true                    these stay as the base says; stands alone
 *         weights:                      or none
 *           format: e4m3                e4m3, e5m2, int8, mxfp8, nvfp4; fp32, fp16, bf16 (no other key then)
 *           granularity: channel        tensor, channel (of the output), block (along the input; all of mxfp8, nvfp4)
 *           block: 128                  values a block, 8 to 65536; mxfp8 has 32, nvfp4 16
 *           calibrator: max             of tensor and channel: max (default), percentile, entropy, mse
 *           rounding: compensated       of tensor and channel: errors go on to weights not yet rounded; or nearest
 *           scale: floor                mxfp8: floor (default), ceil
 *         activations:                  or none
 *           format: e4m3                the same, and uint8 (tensor, channel)
 *           granularity: tensor         static: tensor, channel; dynamic, from the values themselves: row, block
 *           calibrator: percentile      static only: max (default), percentile, entropy, mse
 *           percentile: 99.99           with that calibrator
 *         smoothing: 0.5                exponent 0 to 1, searched, or none: scales moved from activations to weights
 *         equalization: true            scales moved between the weights of consecutive ops
 *         bias_correction: true         the mean error of the output goes into the bias
 *         outliers:                     static activations whose figure is above the limit, or none
 *           predicate: max/p99.99       the largest magnitude by the 99.99th percentile
 *           above: 20
 *           action: clip                clip (to that percentile), keep16 (the op stays as the base), per_channel
 *
 * Whatever is unknown, of the wrong type or out of range is an error with file and line, and a near name where there is
 * one; so is, given a graph, a pattern that matches nothing and a rule that selects nothing. */
#ifndef OCT_QUANT_RECIPE_H
#define OCT_QUANT_RECIPE_H

#include "base/document.h"
#include "graph/graph.h"
#include "quant/calibrate.h"

#define OCT_RECIPE_BYTES ((size_t)1 << 20) /* of text */
#define OCT_RECIPE_RULES 1000
#define OCT_RECIPE_PATTERNS 1000 /* in one list */

/* How the numbers of a tensor are kept. */
typedef struct oct_recipe_numbers {
    bool is_set; /* false: as the base */
    oct_format format;
    oct_granularity granularity; /* of formats with a scale */
    int block;                   /* OCT_PER_BLOCK: values that share a scale */
    bool dynamic;                /* the scale comes from the values when they are there */
    oct_calibrator calibrator;   /* of static scales */
    double percentile;
    oct_e8m0_rule scale_rule; /* mxfp8 */
    bool compensated;         /* weights: error-compensated rounding */
} oct_recipe_numbers;

typedef enum oct_smoothing { OCT_SMOOTHING_NONE, OCT_SMOOTHING_EXPONENT, OCT_SMOOTHING_SEARCHED } oct_smoothing;
typedef enum oct_outlier_action {
    OCT_OUTLIER_NONE,
    OCT_OUTLIER_CLIP,
    OCT_OUTLIER_KEEP16,
    OCT_OUTLIER_PER_CHANNEL
} oct_outlier_action;

/* What is decided of an op; the parts that rules override one by one are its sections. */
typedef enum oct_recipe_section {
    OCT_SECTION_WEIGHTS,
    OCT_SECTION_ACTIVATIONS,
    OCT_SECTION_SMOOTHING,
    OCT_SECTION_EQUALIZATION,
    OCT_SECTION_BIAS_CORRECTION,
    OCT_SECTION_OUTLIERS,
    OCT_SECTION_COUNT
} oct_recipe_section;

typedef struct oct_recipe_choice {
    oct_recipe_numbers weights, activations;
    oct_smoothing smoothing;
    double exponent; /* OCT_SMOOTHING_EXPONENT */
    bool equalization, bias_correction;
    oct_outlier_action outlier_action;
    double outlier_above;
} oct_recipe_choice;

typedef struct oct_recipe_pattern {
    const char *text;
    int line;
} oct_recipe_pattern;

typedef struct oct_recipe_rule {
    int line;
    /* which ops */
    unsigned kinds; /* 1 << oct_op */
    oct_recipe_pattern *names, *nots;
    size_t name_count, not_count;
    int64_t kernel[2];                                  /* 0: any */
    int depthwise;                                      /* 1, 0, -1: either */
    int64_t pixels[2], channels_in[2], channels_out[2]; /* from, to */
    int64_t first, last;                                /* both 0: all */
    /* what becomes of them */
    bool keep;
    unsigned sections; /* 1 << oct_recipe_section: which of `choice` it says */
    int section_lines[OCT_SECTION_COUNT];
    oct_recipe_choice choice;
} oct_recipe_rule;

typedef struct oct_recipe {
    const char *name, *description;
    oct_format base;
    int base_line;
    oct_recipe_rule *rules;
    size_t rule_count;
    oct_document document; /* owns all of the above */
} oct_recipe;

/* On failure *recipe is empty and nothing is owed. `name` stands in errors. */
octet_status oct_recipe_read(oct_recipe *recipe, const char *path);
octet_status oct_recipe_parse(oct_recipe *recipe, const char *name, const char *text, size_t length);
void oct_recipe_free(oct_recipe *recipe);

/* What one node becomes. */
typedef struct oct_decision {
    oct_recipe_choice choice;
    bool is_narrow;                   /* weights or activations are not the base's */
    int32_t rule;                     /* the last rule that selected it, or OCT_NONE */
    int32_t rules[OCT_SECTION_COUNT]; /* the rule that decided each section, or OCT_NONE */
} oct_decision;

typedef struct oct_decisions {
    oct_decision *nodes; /* one for each node of the graph, in its order */
    size_t count, narrow;
} oct_decisions;

/* `graph` as after oct_passes_run. On failure *decisions is empty and nothing is owed. */
octet_status oct_recipe_apply(const oct_recipe *recipe, const oct_graph *graph, oct_decisions *decisions);
void oct_decisions_free(oct_decisions *decisions);
/* A line an op: name, kind, output shape, what it becomes, the deciding rules with their lines; then the totals. */
void oct_decisions_print(const oct_recipe *recipe, const oct_graph *graph, const oct_decisions *decisions,
                         oct_text *text);
/* "e4m3 channel, max" */
void oct_recipe_numbers_print(const oct_recipe_numbers *numbers, oct_text *text);

#endif
