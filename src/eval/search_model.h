/* SPDX-License-Identifier: Apache-2.0 */
/* What a search expects of an assignment: the sum of single effects, corrected by the points evaluated.
 *
 * The correction is a ridge regression of what points differ from the sum, whose features are the sets of one, two or
 * three ops that are not on choice 0, with their choices. Two assignments that share m such choices have the kernel
 * m + m(m-1)/2 + m(m-1)(m-2)/6: features are never made, and a point costs a row of a Cholesky factor. */
#ifndef OCT_EVAL_SEARCH_MODEL_H
#define OCT_EVAL_SEARCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "eval/pareto.h"

typedef struct search_model search_model;

/* For up to `capacity` points. NULL: no memory. */
search_model *search_model_new(size_t ops, size_t capacity);
void search_model_free(search_model *model);
/* The first with every op on choice 0; the single effects are those of points that differ from it in one op. A point
 * that is not finite is counted and says nothing. False: no memory. */
bool search_model_add(search_model *model, const uint8_t *assignment, trade point);
size_t search_model_count(const search_model *model);
/* After adding and before predicting. */
void search_model_fit(search_model *model);
trade search_model_predict(const search_model *model, const uint8_t *assignment);
/* The same of assignments that differ from one in an op, without looking at all ops: stand at `assignment`, then ask
 * what taking `choice` for `op` gives. Standing holds until points are added. */
void search_model_stand(search_model *model, const uint8_t *assignment);
trade search_model_predict_change(const search_model *model, size_t op, uint8_t choice);

#endif
