/* SPDX-License-Identifier: Apache-2.0 */
/* The state file of a search (eval/mixing.h has its lines). */
#ifndef OCT_EVAL_MIXING_STATE_H
#define OCT_EVAL_MIXING_STATE_H

#include "eval/mixing.h"

/* Reads what is there into m->points_made, held to the header that this search would write, and leaves the file open to
 * append to. False: m->end and m->failed say why; the file is as it was. */
bool mixing_state_open(mixing *m);
/* The lines of a state file's text up to the last that has its end, which is *used bytes on: `header` is what the first
 * must say. `text` ends with a zero and is changed. Of m, only groups, choices, state (in errors) and what is out are
 * used. False: m->end, m->failed. */
bool mixing_state_take(mixing *m, char *text, size_t length, const json_t *header, size_t *used);
/* Takes a point (and its assignment) over, and writes it down. False: m->end, m->failed. */
bool mixing_state_add(mixing *m, mixing_point point);

#endif
