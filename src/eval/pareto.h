/* SPDX-License-Identifier: Apache-2.0 */
/* Points of two figures that are both better when smaller: what a choice costs in quality, and how long it runs. */
#ifndef OCT_EVAL_PARETO_H
#define OCT_EVAL_PARETO_H

#include <stddef.h>

typedef struct trade {
    double loss, time;
} trade;

/* Indices of the points that no other beats in one figure and equals or beats in the other, by rising time (so falling
 * loss), into `front`, which has room for `count`; of equal points the first. What is not finite is left out. Returns
 * how many. */
size_t pareto_front(const trade *points, size_t count, size_t *front);
/* Area between the front, given by rising time, and `worst`: of all (loss, time) up to `worst` that a point of it is at
 * least as good as. Points beyond `worst` add nothing. */
double pareto_volume(const trade *front, size_t count, trade worst);
/* How much `point` would add to that; if it adds nothing, minus how far it is from adding: the least, over the points
 * at least as good, of the greater of the two differences, in units of `worst` minus `best`. */
double pareto_gain(const trade *front, size_t count, trade best, trade worst, trade point);

#endif
