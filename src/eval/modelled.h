/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a recipe where nothing can be timed: a roofline of one device, and named so wherever it is printed. */
#ifndef OCT_EVAL_MODELLED_H
#define OCT_EVAL_MODELLED_H

#include "eval/json.h"

#define MODELLED_NAME "modelled: roofline of an H200"

/* Seconds of one run of `ops` (octet_lab_recipe_describe's, with shapes of the batch): of each op the longer of its
 * arithmetic and of its reads and writes, added up. No launches, no caches. `base`: the recipe's, what ops write. */
double modelled_seconds(const json_t *ops, const char *base);

#endif
