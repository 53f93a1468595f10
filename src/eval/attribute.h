/* SPDX-License-Identifier: Apache-2.0 */
/* Where a recipe's loss comes from. Every figure is of an engine as it would run, fusion and all: the recipe with its
 * weights or activations alone, each op (or group) alone narrow, each alone left as the base; and, through taps, what
 * each step stored beside what it stores in float32. */
#ifndef OCT_EVAL_ATTRIBUTE_H
#define OCT_EVAL_ATTRIBUTE_H

#include "eval/beside.h"
#include "eval/variants.h"

typedef struct attribute_step {
    char *name;
    double *noise, *signal; /* a picture: sums of (tested - reference)^2 and reference^2 */
} attribute_step;

typedef struct attribution {
    /* in */
    const char *place;              /* the checkpoint */
    const octet_open_options *open; /* without a recipe; with scales, if there are any */
    const octet_session_options *session;
    const variant_recipe *recipe;
    beside *pictures;
    octet_session *reference; /* float32 */
    variant_group group;
    size_t draws; /* 0: no intervals */
    /* After each picture of each engine; false: stop. May be NULL. */
    bool (*tick)(void *user, size_t engines_done, size_t engines, size_t picture);
    void *user;
    /* out, freed by attribute_free */
    json_t *groups; /* {GROUP: [OP...]} of the narrow ops */
    size_t engines; /* evaluated: whole, weights, activations, then each group alone and each left out */
    double *kl;     /* engines * pictures */
    attribute_step *steps;
    size_t step_count, unmatched; /* steps of the tested engine that the reference has not */
    char failed[512];             /* what failed, beside octet_error_text */
} attribution;

/* Makes `groups` and measures; on failure what was measured is there to free. */
evaluate_end attribute(attribution *a);
void attribute_free(attribution *a);
/* {"whole": F, "weights": F, "activations": F, "groups": [{"group", "ops", "alone": F, "kept": F, "recovered": F,
 * "share"},
 * ...], "steps": [{"step", "sqnr_db", "sqnr_interval", "relative_error"}, ...], "unmatched_steps"}, where F is {"kl",
 * "low", "high"} in nats. Groups by falling loss alone, the worst first; `recovered`: whole less kept, picture by
 * picture, and `share` of the whole. NULL: no memory. */
json_t *attribute_report(const attribution *a);

#endif
