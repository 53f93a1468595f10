/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as they will be stored: their scales, and the numbers that their codes stand for. */
#ifndef OCT_QUANT_WEIGHTS_H
#define OCT_QUANT_WEIGHTS_H

#include "quant/product.h"
#include "quant/recipe.h"

/* How many scales there are: 1, or one an output. Only of formats with a scale a tensor or channel. */
size_t oct_weight_groups(const oct_recipe_numbers *numbers, const oct_product *product);
/* Those scales by the recipe's calibrator; `name` stands in errors. */
octet_status oct_weight_scales(const oct_recipe_numbers *numbers, const char *name, const oct_product *product,
                               const float *weight, float *scales);
/* Each weight rounded to nearest in the recipe's format, equal to the bit to what oct_graph_quantize makes of it. Not
 * set: copied. `rounded` holds product->count. */
octet_status oct_weight_round(const oct_recipe_numbers *numbers, const char *name, const oct_product *product,
                              const float *weight, float *rounded);

#endif
