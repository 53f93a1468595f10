/* SPDX-License-Identifier: Apache-2.0 */
/* How far the figures of equally right evaluations lie apart. */
#ifndef OCT_EVAL_SCATTER_H
#define OCT_EVAL_SCATTER_H

#include <stddef.h>

#include "eval/json.h"

#define SCATTER_JITTER 1e-7 /* of octet_lab_set_jitter: about the last bit of each input */

/* Reports of eval_report of the same pictures, at least 2: {"runs": k, FIGURE: {"mean", "sd", "min", "max"}, ...} of
 * every figure that is a number in all (sd with k - 1). NULL: no memory. */
json_t *scatter_of(json_t *const *reports, size_t count);

#endif
