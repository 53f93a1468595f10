/* SPDX-License-Identifier: Apache-2.0 */
/* What octet_lab_set_watch sees: an event a room that a picture passes. Costs a thread-local test when nobody watches.
 */
#ifndef OCT_RUNTIME_WATCH_H
#define OCT_RUNTIME_WATCH_H

#include <stdbool.h>

#include "graph/graph.h"
#include "octet/lab.h"

bool oct_watch_on(void);
bool oct_watch_steps(void);
double oct_watch_now(void); /* milliseconds, monotonic */
/* `rank` 0: no array. */
void oct_watch_emit(const char *room, const char *source, const char *what, const char *format, int rank,
                    const int64_t *shape, const void *data, double milliseconds);

#endif
