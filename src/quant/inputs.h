/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of an op that a recipe makes narrow, and where the scale file keeps what is known of them. */
#ifndef OCT_QUANT_INPUTS_H
#define OCT_QUANT_INPUTS_H

#include "quant/recipe.h"
#include "quant/scales.h"

/* The scale file's key of one: OP, OP.0, OP.1, OP.q, OP.k, OP.v. NULL: no memory. */
char *oct_quant_key(oct_arena *arena, const oct_graph_node *node, int input);
/* What the file says of it; NULL: nothing. `file` may be NULL. */
const oct_scale *oct_quant_scale_of(const oct_scale_file *file, const oct_graph_node *node, int input);

/* Whether activations are stored narrow, with scales that are known before. */
bool oct_quant_is_static(const oct_recipe_numbers *numbers);
/* The scale of a channel of activations whose largest magnitude is `amax`; uint8: around the zero point 128. */
float oct_quant_channel_scale(oct_format format, float amax);
/* The outlier rule's predicate on what was seen of an input: amax / p9999 above the limit. */
bool oct_quant_is_outlying(const oct_decision *decision, const oct_scale *scale);
/* Whether the outlier rule leaves the op as the base: action keep16, and an input that is outlying. */
bool oct_quant_is_kept(const oct_graph_node *node, const oct_decision *decision, const oct_scale_file *file);

#endif
