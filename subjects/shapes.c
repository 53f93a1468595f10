/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes.h"

#include <stddef.h>

#include "random.h"

/*
 * A path is commands with whole numbers, y down: M x y (start), L x y (line), Q cx cy x y (quadratic curve), Z (close),
 * O x y r (disc); N in place of M and H in place of O begin a hole. Shapes without a path are made by rule, from a
 * count.
 */
struct shape {
    const char *name;
    const char *layers[SHAPE_LAYERS];
    enum { RULE_NONE, RULE_STAR, RULE_FLOWER, RULE_GEAR, RULE_POLYGON } rule;
    int count;
};

static const struct shape shapes[SHAPE_COUNT] = {
    {.name = "apple",
     .layers = {"M0 -50 Q-30 -75 -65 -55 Q-100 -30 -85 25 Q-65 90 -25 92 Q-10 92 0 85 Q10 92 25 92 Q65 90 85 25 Q100 "
                "-30 65 -55 Q30 -75 0 -50Z",
                "M5 -60 Q15 -100 60 -98 Q55 -65 5 -60Z", "M-6 -50 L-10 -90 L4 -92 L6 -50Z"}},
    {.name = "bell",
     .layers = {"M0 -90 Q-50 -85 -52 -25 Q-55 25 -85 55 L85 55 Q55 25 52 -25 Q50 -85 0 -90Z O0 66 20 O0 -90 12",
                "M-66 30 L66 30 L85 55 L-85 55Z", "O0 70 15"}},
    {.name = "bolt", .layers = {"M20 -100 L-60 10 L-8 10 L-30 100 L60 -20 L8 -20 L45 -100Z"}},
    {.name = "bottle",
     .layers = {"M-18 -100 L18 -100 L18 -55 Q18 -40 38 -25 Q45 -18 45 -5 L45 95 Q45 100 40 100 L-40 100 Q-45 100 -45 "
                "95 L-45 -5 Q-45 -18 -38 -25 "
                "Q-18 -40 -18 -55Z",
                "M-45 15 L45 15 L45 65 L-45 65Z", "M-20 -100 L20 -100 L20 -80 L-20 -80Z"}},
    {.name = "butterfly",
     .layers = {"M0 -20 Q-40 -95 -90 -75 Q-105 -30 -60 0 Q-95 25 -70 75 Q-30 85 0 25 Q30 85 70 75 Q95 25 60 0 Q105 -30 "
                "90 -75 Q40 -95 0 -20Z",
                "O-60 -45 16 O60 -45 16 O-50 45 14 O50 45 14", "M0 -60 Q-14 -20 0 70 Q14 -20 0 -60Z"}},
    {.name = "cat",
     .layers = {"M-70 -95 L-30 -55 Q0 -65 30 -55 L70 -95 Q85 -40 85 5 Q80 80 0 85 Q-80 80 -85 5 Q-85 -40 -70 -95Z",
                "O0 42 26 M-62 -76 L-40 -52 L-66 -42Z M62 -76 L40 -52 L66 -42Z",
                "O-38 0 13 O38 0 13 M-10 28 L10 28 L0 42Z"}},
    {.name = "cup",
     .layers = {"M-75 -60 L50 -60 L40 70 Q38 80 28 80 L-53 80 Q-63 80 -65 70Z M44 -40 Q100 -45 95 10 Q90 50 40 45 L42 "
                "25 Q72 28 75 5 Q76 -22 46 -20Z",
                "M-73 -25 L47 -25 L43 20 L-70 20Z", "M-75 -60 L50 -60 L49 -48 L-74 -48Z"}},
    {.name = "fish",
     .layers = {"M-95 0 Q-50 -62 10 -45 Q45 -32 62 -8 L98 -50 Q84 0 98 50 L62 8 Q45 32 10 45 Q-50 62 -95 0Z M-20 -44 "
                "Q0 -85 35 -70 L20 -38Z",
                "M-10 5 Q20 0 32 26 Q5 34 -10 5Z M68 0 L94 -36 Q84 0 94 36Z",
                "O-62 -8 9 M-38 -34 Q-24 0 -38 34 L-34 36 Q-18 0 -34 -36Z"}},
    {.name = "heart",
     .layers = {"M0 95 Q-100 20 -95 -35 Q-85 -85 -45 -85 Q-10 -85 0 -45 Q10 -85 45 -85 Q85 -85 95 -35 Q100 20 0 95Z"}},
    {.name = "house",
     .layers = {"M0 -95 L95 -10 L70 -10 L70 90 L-70 90 L-70 -10 L-95 -10Z M35 -90 L55 -90 L55 -40 L35 -60Z",
                "M0 -95 L95 -10 L-95 -10Z",
                "M-15 35 L20 35 L20 90 L-15 90Z M34 8 L58 8 L58 35 L34 35Z M-58 8 L-34 8 L-34 35 L-58 35Z"}},
    {.name = "key",
     .layers = {"O-55 0 42 H-60 0 20 M-20 -12 L95 -12 L95 35 L75 35 L75 12 L55 12 L55 30 L38 30 L38 12 L-20 12Z"}},
    {.name = "leaf",
     .layers = {"M0 -100 Q-80 -45 -62 20 Q-50 60 -6 75 L-6 100 L6 100 L6 75 Q50 60 62 20 Q80 -45 0 -100Z", NULL,
                "M-3 -70 L3 -70 L4 75 L-4 75Z M0 -12 L-38 -36 L-36 -27 L0 5Z M0 -12 L38 -36 L36 -27 L0 5Z M0 33 L-40 8 "
                "L-38 18 L0 50Z M0 33 L40 8 "
                "L38 18 L0 50Z"}},
    {.name = "mushroom",
     .layers = {"M-95 5 Q-95 -85 0 -90 Q95 -85 95 5 Q0 25 -95 5Z M-25 0 Q-20 50 -35 88 Q0 100 35 88 Q20 50 25 0Z",
                "M-25 11 Q-20 50 -35 88 Q0 100 35 88 Q20 50 25 11Z O-45 -32 15 O8 -56 17 O52 -26 13"}},
    {.name = "rocket",
     .layers = {"M0 -100 Q45 -50 40 20 L75 65 L75 92 L35 68 L-35 68 L-75 92 L-75 65 L-40 20 Q-45 -50 0 -100Z M-20 67 "
                "L20 67 L0 100Z",
                "O0 -25 18 M-20 68 L20 68 L0 100Z", "M0 -100 Q20 -78 29 -58 L-29 -58 Q-20 -78 0 -100Z"}},
    {.name = "sailboat",
     .layers = {"M-90 40 L90 40 Q70 90 40 90 L-50 90 Q-75 80 -90 40Z M-5 -95 L-5 25 L-75 25Z M8 -70 L8 25 L70 25Z M-4 "
                "-98 L4 -98 L4 42 L-4 42Z",
                "M-5 -95 L-5 25 L-75 25Z M8 -70 L8 25 L70 25Z", "M-83 55 L84 55 L80 64 L-79 64Z"}},
    {.name = "umbrella",
     .layers = {"M0 -85 Q95 -80 98 5 Q80 -12 62 5 Q48 -12 32 5 Q16 -12 0 5 Q-16 -12 -32 5 Q-48 -12 -62 5 Q-80 -12 -98 "
                "5 Q-95 -80 0 -85Z "
                "M-5 -95 L5 -95 L5 75 Q5 98 -18 98 Q-40 98 -40 75 L-30 75 Q-30 88 -18 88 Q-5 88 -5 75Z",
                "M0 -85 Q-30 -50 -32 5 Q-16 -12 0 5 Q16 -12 32 5 Q30 -50 0 -85Z"}},
    {.name = "pear",
     .layers = {"M0 -70 Q-35 -70 -35 -35 Q-35 -10 -60 15 Q-85 50 -60 80 Q-35 98 0 98 Q35 98 60 80 Q85 50 60 15 Q35 -10 "
                "35 -35 Q35 -70 0 -70Z",
                "M5 -70 Q20 -100 60 -90 Q45 -68 5 -70Z", "M-5 -68 L-9 -98 L5 -100 L5 -68Z"}},
    {.name = "crescent", .layers = {"M30 -95 Q-80 -80 -80 0 Q-80 80 30 95 Q-25 60 -25 0 Q-25 -60 30 -95Z"}},
    {.name = "drop", .layers = {"M0 -100 Q60 -20 60 35 Q60 95 0 95 Q-60 95 -60 35 Q-60 -20 0 -100Z", "O-22 42 13"}},
    {.name = "spade",
     .layers = {"M0 -95 Q25 -45 70 -10 Q95 15 80 45 Q50 80 12 45 Q15 80 40 95 L-40 95 Q-15 80 -12 45 Q-50 80 -80 45 "
                "Q-95 15 -70 -10 Q-25 -45 0 -95Z"}},
    {.name = "star 5", .rule = RULE_STAR, .count = 5},
    {.name = "star 6", .rule = RULE_STAR, .count = 6},
    {.name = "star 7", .rule = RULE_STAR, .count = 7},
    {.name = "flower 5", .rule = RULE_FLOWER, .count = 5},
    {.name = "flower 6", .rule = RULE_FLOWER, .count = 6},
    {.name = "flower 7", .rule = RULE_FLOWER, .count = 7},
    {.name = "gear 7", .rule = RULE_GEAR, .count = 7},
    {.name = "gear 9", .rule = RULE_GEAR, .count = 9},
    {.name = "gear 11", .rule = RULE_GEAR, .count = 11},
    {.name = "pentagon", .rule = RULE_POLYGON, .count = 5},
    {.name = "hexagon", .rule = RULE_POLYGON, .count = 6},
    {.name = "octagon", .rule = RULE_POLYGON, .count = 8},
};

/* 16384 * sin of a quarter turn in 64 steps. */
static const int16_t quarter[65] = {0,     402,   804,   1205,  1606,  2006,  2404,  2801,  3196,  3590,  3981,
                                    4370,  4756,  5139,  5520,  5897,  6270,  6639,  7005,  7366,  7723,  8076,
                                    8423,  8765,  9102,  9434,  9760,  10080, 10394, 10702, 11003, 11297, 11585,
                                    11866, 12140, 12406, 12665, 12916, 13160, 13395, 13623, 13842, 14053, 14256,
                                    14449, 14635, 14811, 14978, 15137, 15286, 15426, 15557, 15679, 15791, 15893,
                                    15986, 16069, 16143, 16207, 16261, 16305, 16340, 16364, 16379, 16384};

int fixed_sin(int angle) {
    angle &= TURN - 1;
    int side = angle & (TURN / 2 - 1);
    if (side > TURN / 4) side = TURN / 2 - side;
    int step = side / 16, part = side % 16;
    int value = quarter[step];
    if (part) value += (quarter[step + 1] - value) * part / 16;
    return angle < TURN / 2 ? value : -value;
}

static int fixed_cos(int angle) {
    return fixed_sin(angle + TURN / 4);
}

const char *shape_name(int label) {
    return label >= 0 && label < SHAPE_COUNT ? shapes[label].name : NULL;
}

/* A pen that turns points of the square (1/16 unit) into points of the picture and keeps the contour in progress. */
struct pen {
    const struct pose *pose;
    struct outline *outline;
    int64_t xx, xy, yx, yy; /* 1/256 pixel a 1/16 unit, 1/65536 */
    bool hole;
};

static struct pen pen_for(const struct pose *pose, struct outline *outline) {
    int64_t wide = (int64_t)pose->radius * pose->aspect; /* 1/256 pixel a 100 units, 1/256 */
    int64_t high = (int64_t)pose->radius * 256;
    int64_t cosine = fixed_cos(pose->angle), sine = fixed_sin(pose->angle);
    struct pen pen = {.pose = pose, .outline = outline};
    pen.xx = cosine * wide / 100 / 16 / 64;
    pen.xy = -sine * high / 100 / 16 / 64;
    pen.yx = sine * wide / 100 / 16 / 64;
    pen.yy = cosine * high / 100 / 16 / 64;
    if (pose->mirrored) pen.xx = -pen.xx, pen.yx = -pen.yx;
    outline->contours = 0;
    outline->start[0] = 0;
    return pen;
}

/* Adds the point (x, y), 1/16 unit, to the contour in progress; a point too many is left out. */
static void pen_point(struct pen *pen, int x, int y) {
    struct outline *o = pen->outline;
    if (o->contours >= OUTLINE_CONTOURS) return;
    int at = o->start[o->contours + 1];
    if (at >= OUTLINE_POINTS) return;
    const struct pose *p = pen->pose;
    int bent_x = x + p->bend_x * fixed_sin(y + p->phase_x) / 1024;
    int bent_y = y + p->bend_y * fixed_sin(x + p->phase_y) / 1024;
    o->x[at] = p->cx + (int32_t)((pen->xx * bent_x + pen->xy * bent_y) / 65536);
    o->y[at] = p->cy + (int32_t)((pen->yx * bent_x + pen->yy * bent_y) / 65536);
    o->start[o->contours + 1] = at + 1;
}

static void pen_begin(struct pen *pen, bool hole) {
    struct outline *o = pen->outline;
    if (o->contours < OUTLINE_CONTOURS) o->start[o->contours + 1] = o->start[o->contours];
    pen->hole = hole;
}

/* Ends the contour in progress, turned so that solid contours run one way and holes the other. */
static void pen_end(struct pen *pen) {
    struct outline *o = pen->outline;
    if (o->contours >= OUTLINE_CONTOURS) return;
    int first = o->start[o->contours], end = o->start[o->contours + 1];
    if (end - first < 3) return;
    int64_t doubled = 0;
    for (int i = first, j = end - 1; i < end; j = i++)
        doubled += (int64_t)o->x[j] * o->y[i] - (int64_t)o->x[i] * o->y[j];
    if ((doubled < 0) != pen->hole) {
        for (int i = first, j = end - 1; i < j; i++, j--) {
            int32_t x = o->x[i], y = o->y[i];
            o->x[i] = o->x[j], o->y[i] = o->y[j];
            o->x[j] = x, o->y[j] = y;
        }
    }
    o->contours++;
}

/* A quadratic curve from (x0, y0), not included, in eight lines; 1/16 unit. */
static void pen_curve(struct pen *pen, int x0, int y0, int cx, int cy, int x1, int y1) {
    for (int t = 1; t <= 8; t++) {
        int a = (8 - t) * (8 - t), b = 2 * t * (8 - t), c = t * t;
        pen_point(pen, (a * x0 + b * cx + c * x1) / 64, (a * y0 + b * cy + c * y1) / 64);
    }
}

static void pen_disc(struct pen *pen, int x, int y, int radius, bool hole) {
    pen_begin(pen, hole);
    for (int i = 0; i < 24; i++) {
        int angle = i * TURN / 24;
        pen_point(pen, x + radius * fixed_cos(angle) / 16384, y + radius * fixed_sin(angle) / 16384);
    }
    pen_end(pen);
}

/* Reads a whole number, in 1/16 unit; *path moves behind it. */
static int read_number(const char **path) {
    const char *p = *path;
    while (*p == ' ') p++;
    bool negative = *p == '-';
    if (negative) p++;
    int value = 0;
    for (; *p >= '0' && *p <= '9'; p++) value = value * 10 + (*p - '0');
    *path = p;
    return (negative ? -value : value) * 16;
}

static void trace_path(struct pen *pen, const char *path) {
    int x = 0, y = 0;
    while (*path) {
        char command = *path++;
        if (command == ' ') continue;
        if (command == 'Z') {
            pen_end(pen);
            continue;
        }
        int a = read_number(&path), b = read_number(&path);
        if (command == 'O' || command == 'H') {
            pen_disc(pen, a, b, read_number(&path), command == 'H');
            continue;
        }
        if (command == 'M' || command == 'N') pen_begin(pen, command == 'N');
        if (command == 'Q') {
            int to_x = read_number(&path), to_y = read_number(&path);
            pen_curve(pen, x, y, a, b, to_x, to_y);
            x = to_x, y = to_y;
        } else {
            pen_point(pen, a, b);
            x = a, y = b;
        }
    }
}

/* A point at `distance` (1/16 unit) from the centre. */
static void pen_polar(struct pen *pen, int angle, int distance) {
    pen_point(pen, distance * fixed_sin(angle) / 16384, -distance * fixed_cos(angle) / 16384);
}

static void trace_star(struct pen *pen, int count) {
    int inner = 1600 * (90 + pen->pose->inner / 3) / 256 - 20 * (6 - count);
    pen_begin(pen, false);
    for (int i = 0; i < 2 * count; i++) pen_polar(pen, i * TURN / (2 * count), i % 2 ? inner : 1600);
    pen_end(pen);
}

static void trace_flower(struct pen *pen, int count) {
    int valley = 1600 * (100 + pen->pose->inner / 4) / 256;
    pen_begin(pen, false);
    for (int i = 0; i < count; i++) {
        for (int t = 0; t < 12; t++) { /* a petal: the distance rises and falls as a half wave */
            int lift = (1600 - valley) * fixed_sin(t * TURN / 24) / 16384;
            pen_polar(pen, (i * 12 + t) * TURN / (12 * count), valley + lift);
        }
    }
    pen_end(pen);
}

static void trace_gear(struct pen *pen, int count) {
    int root = 1600 * (185 + pen->pose->inner / 8) / 256;
    pen_begin(pen, false);
    for (int i = 0; i < count; i++) {
        int start = i * TURN / count, tooth = TURN / count;
        pen_polar(pen, start, root);
        pen_polar(pen, start + tooth * 12 / 100, 1600);
        pen_polar(pen, start + tooth * 42 / 100, 1600);
        pen_polar(pen, start + tooth * 54 / 100, root);
    }
    pen_end(pen);
    pen_disc(pen, 0, 0, 350 + pen->pose->inner, true);
}

static void trace_polygon(struct pen *pen, int count, int radius) {
    pen_begin(pen, false);
    for (int i = 0; i < count; i++) pen_polar(pen, i * TURN / count, radius);
    pen_end(pen);
}

static void trace_layer(struct pen *pen, const struct shape *shape, int layer) {
    if (shape->layers[layer]) trace_path(pen, shape->layers[layer]);
    if (layer == 0) {
        if (shape->rule == RULE_STAR) trace_star(pen, shape->count);
        if (shape->rule == RULE_FLOWER) trace_flower(pen, shape->count);
        if (shape->rule == RULE_GEAR) trace_gear(pen, shape->count);
        if (shape->rule == RULE_POLYGON) trace_polygon(pen, shape->count, 1600);
    } else if (layer == 1) {
        if (shape->rule == RULE_FLOWER) pen_disc(pen, 0, 0, 420, false);
        if (shape->rule == RULE_POLYGON && pen->pose->inner > 128) trace_polygon(pen, shape->count, 1100);
    }
}

void shape_trace(int label, int layer, const struct pose *pose, struct outline *outline) {
    struct pen pen = pen_for(pose, outline);
    for (int i = 0; i < SHAPE_LAYERS; i++) {
        if (layer == SHAPE_WHOLE || layer == i) trace_layer(&pen, &shapes[label], i);
    }
}

void shape_trace_blob(struct random *random, int corners, const struct pose *pose, struct outline *outline) {
    struct pen pen = pen_for(pose, outline);
    pen_begin(&pen, false);
    for (int i = 0; i < corners; i++) {
        int angle = i * TURN / corners + random_range(random, 0, 200);
        pen_polar(&pen, angle, random_range(random, 500, 1600));
    }
    pen_end(&pen);
}

void shape_trace_bar(int thickness, const struct pose *pose, struct outline *outline) {
    struct pen pen = pen_for(pose, outline);
    pen_begin(&pen, false);
    for (int i = 0; i <= 8; i++) pen_point(&pen, -1600 + i * 400, -thickness * 8);
    for (int i = 8; i >= 0; i--) pen_point(&pen, -1600 + i * 400, thickness * 8);
    pen_end(&pen);
}

bool outline_box(const struct outline *outline, int32_t box[4]) {
    int end = outline->start[outline->contours];
    if (end == 0) return false;
    box[0] = box[2] = outline->x[0];
    box[1] = box[3] = outline->y[0];
    for (int i = 1; i < end; i++) {
        if (outline->x[i] < box[0]) box[0] = outline->x[i];
        if (outline->y[i] < box[1]) box[1] = outline->y[i];
        if (outline->x[i] > box[2]) box[2] = outline->x[i];
        if (outline->y[i] > box[3]) box[3] = outline->y[i];
    }
    return true;
}
