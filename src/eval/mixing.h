/* SPDX-License-Identifier: Apache-2.0 */
/* A search over recipes of one checkpoint: each op (or group) stays as the base or becomes what one of the recipes
 * makes of it. An assignment's loss is its KL to float32 on kept pictures, its time that of its engine, timed in turns
 * with the base's, or a model's. Evaluations go into a state file as they are made; read again, they are not made
 * twice.
 *
 * The state file is JSON Lines: a header that says of what the evaluations are, then a line each,
 * {"assignment": "0120", "kl", "low", "high", "seconds", "points", "points_high"}: a digit (to 'f') a group. A last
 * line without its end, as a kill leaves it, is dropped. */
#ifndef OCT_EVAL_MIXING_H
#define OCT_EVAL_MIXING_H

#include <stdio.h>

#include "eval/beside.h"
#include "eval/search.h"
#include "eval/variants.h"

typedef struct mixing_point {
    char *assignment;           /* digits */
    double kl, low, high;       /* nats, 95% over pictures; INFINITY: not finite */
    double points, points_high; /* top-1 or AP lost against float32, in points (1/100), and the interval's end; NaN:
                                   not asked for, or no interval */
    double seconds;
} mixing_point;

typedef struct mixing {
    /* in */
    const char *place;
    octet_model *model; /* float32 */
    const octet_open_options *open;
    const octet_session_options *session;
    beside *pictures;
    variant_recipe *recipes; /* count, of one base */
    const char **scales;     /* count paths, NULL: none */
    size_t count;
    variant_group group;
    bool modelled;     /* else measured */
    bool points;       /* wanted too */
    size_t runs;       /* of each engine's timing */
    const char *state; /* path; NULL: none */
    /* After each picture, with how many evaluations were made; false: stop. May be NULL. */
    bool (*tick)(void *user, size_t evaluations, size_t picture);
    void *user;
    /* out, freed by mixing_close */
    json_t *groups;                      /* {GROUP: [OP...]} of what is narrow in any recipe */
    uint8_t *choices;                    /* a group */
    size_t (*recipe_of)[SEARCH_CHOICES]; /* a group, a choice from 1: which recipe */
    variant_mixer mixer;
    json_t **scale_files; /* count */
    octet_model *base_model;
    octet_session *base;
    double base_seconds, reference_quality;
    mixing_point *points_made;
    size_t made, resumed, capacity;
    FILE *file;
    char scales_path[64]; /* of the assignment that is evaluated, "" if none was written */
    evaluate_end end;     /* why mixing_evaluate said false */
    char failed[512];     /* what failed: all there is to say if `told`, else beside octet_error_text */
    bool told;
} mixing;

/* False: `end` and `failed` say why. *m is to be closed in any case. */
bool mixing_open(mixing *m);
void mixing_close(mixing *m);
size_t mixing_ops(const mixing *m); /* groups */
/* search_evaluate; `user`: the mixing. */
bool mixing_evaluate(void *user, const uint8_t *assignment, trade *out);
const mixing_point *mixing_find(const mixing *m, const uint8_t *assignment); /* NULL: not evaluated */
/* The recipe of an assignment, as YAML, and its scales (NULL, and *scales too, if there are none); the caller's to free
 * and json_decref. NULL: no memory. */
char *mixing_recipe(const mixing *m, const uint8_t *assignment, const char *title, json_t **scales);

#endif
