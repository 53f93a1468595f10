/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in float32 and the pictures that it was run on, kept: what attribute and search hold engines beside. */
#ifndef OCT_CLI_PICTURES_H
#define OCT_CLI_PICTURES_H

#include "eval/beside.h"
#include "options.h"
#include "output.h"

typedef struct pictures_options {
    const char *verb, *place, *data, *classes;
    int64_t limit;
    int orientation; /* index into "upright|stored" */
    const common_options *common;
} pictures_options;

typedef struct pictures {
    const pictures_options *options;
    octet_open_options open;       /* of more engines of the same checkpoint */
    octet_session_options session; /* and of their sessions */
    octet_model *model;
    octet_session *reference;
    octet_lab_set *set;
    beside kept;
    progress_line shown;
} pictures;

/* Prints on failure; *out is to be closed in any case. From here on the first Ctrl-C is seen by pictures_interrupted, a
 * second one ends at once. */
bool pictures_open(const pictures_options *options, pictures *out);
void pictures_close(pictures *p);
bool pictures_interrupted(void);
/* Prints why an evaluation ended; `what` was being measured, "" if nothing in particular; true: it was done. */
bool pictures_ended(const pictures *p, evaluate_end end, const char *what);

#endif
