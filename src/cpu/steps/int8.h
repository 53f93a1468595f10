/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers of int8 products share. */
#ifndef OCT_CPU_STEPS_INT8_H
#define OCT_CPU_STEPS_INT8_H

#include "cpu/kernels/finish_i8.h"
#include "cpu/steps/shared.h"

/* As oct_driver.forms: a product of codes by graph/stored.h, whose other inputs are numbers; any output. */
const char *oct_forms_int8(const oct_site *site);
/* Of each output: its scale (input's, unless rows have their own, times weight's) and its bias, or 0. */
void oct_int8_vectors(const oct_site *site, int64_t outputs, float *scales, float *bias);
/* The end of the step's products, whose sums have `depth` terms; codes of `inverse`. */
oct_finish_i8 oct_int8_finish(const oct_site *site, float inverse, int64_t depth, const float *scales,
                              const float *bias, int64_t outputs);

#endif
