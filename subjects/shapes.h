/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary: outlines of every class, as paths in a square of 200 units, traced into polygons in pixels.
 *
 * A shape has up to SHAPE_LAYERS layers, drawn one over the other: the body, an accent, a dark detail.
 */
#ifndef SUBJECTS_SHAPES_H
#define SUBJECTS_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "random.h"

enum {
    SHAPE_LAYERS = 3,
    SHAPE_WHOLE = -1, /* all layers as one outline */
    SHAPE_COUNT = 32,
    SHAPE_DETECTED = 16, /* the first so many are the detector's classes */
    TURN = 4096,         /* angles: a full turn */
    OUTLINE_POINTS = 1024,
    OUTLINE_CONTOURS = 40,
};

/* Closed polygons to be filled by nonzero winding: solid contours turn one way, holes the other. 1/256 pixel. */
struct outline {
    int contours;
    int start[OUTLINE_CONTOURS + 1]; /* contour c holds points start[c] to start[c + 1] - 1 */
    int32_t x[OUTLINE_POINTS], y[OUTLINE_POINTS];
};

/* Where a shape goes, and how this one differs from others of its class. */
struct pose {
    int32_t cx, cy; /* centre, 1/256 pixel */
    int32_t radius; /* 100 units, 1/256 pixel */
    int angle;      /* of TURN */
    int aspect;     /* width over height, 1/256 */
    bool mirrored;
    int bend_x, bend_y;   /* depth of a slow wave through the shape, units */
    int phase_x, phase_y; /* of TURN */
    int inner;            /* 0 to 255: star depth, petal length, tooth height */
};

/* 16384 * sin(angle). */
int fixed_sin(int angle);

const char *shape_name(int label);

/* Traces layer `layer` (or SHAPE_WHOLE) of shape `label`; an absent layer gives no contour. */
void shape_trace(int label, int layer, const struct pose *pose, struct outline *outline);

/* The smallest box round every point, 1/256 pixel; false if there is none. */
bool outline_box(const struct outline *outline, int32_t box[4]);

/* A closed polygon from `count` corners at random angles and distances round the pose's centre, for clutter. */
void shape_trace_blob(struct random *random, int corners, const struct pose *pose, struct outline *outline);

/* A straight bar through the pose's centre, `thickness` units wide, 200 long. */
void shape_trace_bar(int thickness, const struct pose *pose, struct outline *outline);

#endif
