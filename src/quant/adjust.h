/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a float32 graph before it is quantized. None changes what the network computes but by rounding:
 *
 *     equalization   between an op and the one that reads it alone (through attention's value and mean pooling too):
 *                    output channel c of the first divided by s[c], input channel c of the second multiplied with it,
 *                    s = sqrt(amax of the first's row / amax of the second's column), repeated until nothing moves.
 *                    Behind no activation or ReLU always; behind ReLU6 only channels that provably never reach 6,
 *                    before and after; never behind GELU or sigmoid, nor where a residual is added
 *     smoothing      the scale file's factors f: column c of the op's weight divided by f[c], its input times f[c],
 *                    folded into what makes the input where all readers agree on f and it can be: layer norm (gamma,
 *                    beta), a convolution or linear without residual and with no activation or ReLU, the value
 *                    projection behind an attention. Else the input's narrow form has the factors
 *
 * and two that do, back towards what the network computed before rounding: the scale file's corrections of biases, and
 * its rounded weights. */
#ifndef OCT_QUANT_ADJUST_H
#define OCT_QUANT_ADJUST_H

#include "quant/recipe.h"
#include "quant/scales.h"

typedef struct oct_adjusted {
    const float **values; /* of each value: NULL, or a factor a channel: its numbers are those of the graph before,
                             times these */
    const float **inputs; /* of each node: NULL, or factors its narrow input is to have */
    size_t value_count, node_count;
    oct_text report; /* a line an op touched, or why not */
    oct_arena arena;
} oct_adjusted;

/* `graph` as after oct_passes_run, `decisions` of it; nodes and their order stay, constants may be added. `scales` may
 * be NULL: equalization alone. Entries of ops that the recipe does not ask them of are left alone. After failure the
 * graph may only be freed, *adjusted is empty. */
octet_status oct_quant_adjust(oct_graph *graph, const oct_decisions *decisions, const oct_scale_file *scales,
                              oct_adjusted *adjusted);
void oct_adjusted_free(oct_adjusted *adjusted);

#endif
