/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painting with whole numbers: masks filled from outlines, materials laid through masks, a ground, and the camera's
 * faults.
 *
 * A mask is one byte of coverage a pixel over the whole canvas; only its area is defined.
 */
#ifndef SUBJECTS_PAINT_H
#define SUBJECTS_PAINT_H

#include <stdbool.h>
#include <stdint.h>

#include "random.h"
#include "shapes.h"

struct colour {
    int part[3]; /* red, green, blue: 0 to 255 */
};

/* Pixels x0 <= x < x1, y0 <= y < y1. */
struct area {
    int x0, y0, x1, y1;
};

struct canvas {
    int width, height;
    uint8_t *rgb;
    uint8_t *cover;       /* the mask being painted */
    uint8_t *wide;        /* a grown or blurred copy */
    uint8_t *spare;       /* scratch of both */
    int32_t *row;         /* scratch, width + 64 */
    uint8_t lattice[512]; /* random bytes, the first 256 repeated: the source of every noise of this picture */
};

enum texture {
    TEXTURE_PLAIN,
    TEXTURE_RAMP,
    TEXTURE_BALL,
    TEXTURE_STRIPES,
    TEXTURE_CHECKS,
    TEXTURE_DOTS,
    TEXTURE_GRAIN,
    TEXTURE_COUNT
};

struct material {
    struct colour from, to; /* the texture runs between the two */
    enum texture texture;
    int period;           /* of the texture, 1/256 pixel */
    int32_t cx, cy;       /* its origin, 1/256 pixel */
    int32_t radius;       /* what it spans, 1/256 pixel */
    int angle;            /* of TURN */
    int opacity;          /* 0 to 256 */
    int relief;           /* height of the lit edge; 0: flat */
    int light_x, light_y; /* pixels towards the light */
};

struct ground {
    enum ground_kind {
        GROUND_CLOUDS,
        GROUND_BANDS,
        GROUND_TILES,
        GROUND_SLOPE,
        GROUND_MARBLE,
        GROUND_PATCHES,
        GROUND_COUNT
    } kind;
    struct colour stops[3];
    int coarse, fine;   /* depth of the slow and the quick noise, 0 to 256 */
    int step_x, step_y; /* how far a pixel moves the pattern, 1/256 */
};

struct camera {
    int base, across, down, vignette;        /* light: level and slopes, 1/256 */
    int shade, shade_x, shade_y, shade_from; /* a soft shadow's depth (1/256), its edge's slopes and start */
    int contrast, middle;                    /* contrast (1/256) about a grey */
    struct colour tint;                      /* 256 is neutral */
    bool blurred;
    int noise, colour_noise; /* amplitudes */
};

/* Fills the canvas's cover from the outline and returns where it may be other than zero, with a margin of zeros where
 * there is room. */
struct area mask_fill(struct canvas *canvas, const struct outline *outline, int margin);

/* Clears the cover on one side of a line through (x, y), pixels, seen along angle. */
void mask_cut(struct canvas *canvas, struct area area, int x, int y, int angle);

/* Sum of the cover, whole pixels. */
int32_t mask_pixels(const struct canvas *canvas, struct area area);

/* wide = cover grown by `reach` pixels. */
void mask_grow(struct canvas *canvas, struct area area, int reach);

/* wide = cover blurred twice by a box of 2 * reach + 1 pixels. */
void mask_blur(struct canvas *canvas, struct area area, int reach);

/* Lays the material through the cover; relief reads wide as the blurred cover. */
void paint_material(struct canvas *canvas, struct area area, const struct material *material);

/* Mixes `colour` through wide, moved by (dx, dy). */
void paint_flat(struct canvas *canvas, struct area area, int dx, int dy, struct colour colour, int opacity);

void paint_ground(struct canvas *canvas, const struct ground *ground);

/* Light, contrast, blur and noise over the finished picture. */
void paint_camera(struct canvas *canvas, const struct camera *camera, struct random *random);

#endif
