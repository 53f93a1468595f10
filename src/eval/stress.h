/* SPDX-License-Identifier: Apache-2.0 */
/* Stress inputs: named arrays, as the network takes them, that no data set holds: constants, patterns, noise, single
 * pixels, numbers at the ends of float32 and of fp16. What comes out is counted, not judged: an input beyond fp16 may
 * give infinities in a 16-bit engine; a NaN is another matter, so the two are told apart. */
#ifndef OCT_EVAL_STRESS_H
#define OCT_EVAL_STRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "octet/octet.h"

size_t stress_count(void);
const char *stress_name(size_t index);
const char *stress_words(size_t index); /* what it is: "65504, the largest fp16" */
/* Whether it holds what fp16 cannot: an engine that keeps its input in fp16 sees infinity there, and inf - inf is NaN.
 */
bool stress_is_beyond_fp16(size_t index);
/* Fills height x width x 3 numbers; the same for the same size, always. */
void stress_fill(size_t index, float *input, int height, int width);

/* Of all numbers a result has: logits and boxes. */
typedef struct stress_outcome {
    size_t nans, infinities;
    float largest; /* magnitude, of the finite ones */
} stress_outcome;
/* Runs one input. `buffer` holds height * width * 3 floats. OCTET's status; its text says why. */
octet_status stress_run(octet_session *session, size_t index, float *buffer, int height, int width,
                        stress_outcome *outcome);

#endif
