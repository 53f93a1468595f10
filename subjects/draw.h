/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawn pictures with known contents: what the small models here were trained on, what the demo and the tests run on.
 *
 * A picture is decided by (kind, seed, index, width, height) and by nothing else: integers only, no libm, no state
 * between pictures, so the same bytes come out on every machine and a set of any length needs no space. Threads: every
 * function may run in any number of threads at once; nothing is kept.
 */
#ifndef SUBJECTS_DRAW_H
#define SUBJECTS_DRAW_H

#include <stdbool.h>
#include <stdint.h>

enum subject_kind {
    SUBJECT_CLASSIFY, /* one main object of subject_classes(SUBJECT_CLASSIFY) classes among clutter */
    SUBJECT_DETECT,   /* 0 to SUBJECT_MOST overlapping objects of the first subject_classes(SUBJECT_DETECT) of the same
                         classes */
    SUBJECT_SMALL, /* as SUBJECT_CLASSIFY, but the object is half as large: harder than what the classifier learnt on */
};

enum {
    SUBJECT_MOST = 8,       /* objects a picture */
    SUBJECT_SMALLEST = 32,  /* pixels a side */
    SUBJECT_LARGEST = 4096, /* pixels a side */
};

struct subject_object {
    int label;
    int32_t x0, y0, x1,
        y1;       /* the whole outline's box, also where something lies on it, cut at the picture's edge; 1/256 pixel */
    int32_t area; /* pixels inside the outline and the picture, covered or not */
};

struct subject_scene {
    int count; /* 1 but for SUBJECT_DETECT */
    struct subject_object objects[SUBJECT_MOST];
};

int subject_classes(enum subject_kind kind);

/* A name for 0 <= label < subject_classes(SUBJECT_CLASSIFY), else NULL. Static. */
const char *subject_class_name(int label);

/* The size picture `index` has when the caller asks for none. */
void subject_size(enum subject_kind kind, uint64_t seed, uint64_t index, int *width, int *height);

/* Draws picture `index` of set (kind, seed) into rgb (width * height * 3 bytes, rows from the top, no padding) and
 * tells what is in it. False, with rgb undefined, when a side is outside SUBJECT_SMALLEST to SUBJECT_LARGEST or memory
 * runs out. */
bool subject_draw(enum subject_kind kind, uint64_t seed, uint64_t index, int width, int height, uint8_t *rgb,
                  struct subject_scene *scene);

#endif
