/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenes: what a picture holds and in which order it is painted.
 *
 * No expression here draws two random numbers: C leaves their order open, and the picture would depend on the compiler.
 */
#include "draw.h"

#include <stdlib.h>

#include "paint.h"

enum purpose { PURPOSE_SIZE, PURPOSE_SCENE, PURPOSE_LATTICE, PURPOSE_NOISE };

/* One picture in the making. */
struct easel {
    enum subject_kind kind;
    struct canvas canvas;
    struct random random; /* decides the scene; noise has its own, so that a size changes nothing else */
    int unit;             /* the shorter side, 1/256 pixel */
    struct colour mood;   /* what colours are drawn towards */
    int vivid;            /* how far they may go from it, 1/256 */
    int light_x, light_y; /* pixels towards the light */
    struct outline outline;
};

static int mix(int from, int to, int share) {
    return from + (to - from) * share / 256;
}

/* hue: 0 to 1535 round the circle; saturation, value: 0 to 255. */
static struct colour colour_of(int hue, int saturation, int value) {
    static const int8_t ramp[6][3] = {{2, 1, 0},  {-1, 2, 0}, {0, 2, 1},
                                      {0, -1, 2}, {1, 0, 2},  {2, 0, -1}}; /* 2 full, 1 rising, -1 falling */
    struct colour colour;
    for (int c = 0; c < 3; c++) {
        int kind = ramp[hue / 256][c], part = hue & 255;
        int level = kind == 2 ? 255 : kind == 1 ? part : kind == -1 ? 255 - part : 0;
        colour.part[c] = mix(255, level, saturation) * value / 255;
    }
    return colour;
}

static struct colour any_colour(struct easel *e) {
    int saturation = random_range(&e->random, 20, 230), value = random_range(&e->random, 50, 250);
    struct colour colour = colour_of(random_range(&e->random, 0, 1535), saturation, value);
    for (int c = 0; c < 3; c++) colour.part[c] = mix(e->mood.part[c], colour.part[c], e->vivid);
    return colour;
}

/* A colour not far from another. */
static struct colour near_colour(struct easel *e, struct colour from, int share) {
    struct colour other = any_colour(e);
    for (int c = 0; c < 3; c++) other.part[c] = mix(from.part[c], other.part[c], share);
    return other;
}

static struct material any_material(struct easel *e, const struct pose *pose, struct colour from) {
    struct random *r = &e->random;
    struct material m = {.from = from, .opacity = 256, .cx = pose->cx, .cy = pose->cy, .radius = pose->radius};
    m.texture = (enum texture)random_range(r, 0, TEXTURE_COUNT - 1);
    m.to = near_colour(e, from, random_range(r, 60, 220));
    m.period = pose->radius * random_range(r, 24, 90) / 100;
    if (m.period < 3 * 256) m.period = 3 * 256;
    m.angle = random_range(r, 0, TURN - 1);
    m.light_x = e->light_x, m.light_y = e->light_y;
    return m;
}

static struct pose any_pose(struct easel *e, int32_t radius, int tilt) {
    struct random *r = &e->random;
    struct pose pose = {.radius = radius};
    pose.angle = random_range(r, -tilt, tilt);
    pose.aspect = random_range(r, 205, 310);
    pose.mirrored = random_chance(r, 50);
    pose.bend_x = random_range(r, -9, 9), pose.bend_y = random_range(r, -9, 9);
    pose.phase_x = random_range(r, 0, TURN - 1), pose.phase_y = random_range(r, 0, TURN - 1);
    pose.inner = random_range(r, 0, 255);
    return pose;
}

/* Paints whatever mask the cover holds: shadow, edge, then the material. */
static void paint_body(struct easel *e, struct area area, struct material *material, int shadow, int edge) {
    struct random *r = &e->random;
    int reach = material->radius / 256 / 12 + 1;
    if (reach > 6) reach = 6;
    static const struct colour night = {{8, 8, 14}};
    if (shadow) {
        mask_blur(&e->canvas, area, reach);
        paint_flat(&e->canvas, area, -e->light_x * (1 + reach / 2), -e->light_y * (1 + reach / 2), night, shadow);
    }
    if (edge) {
        struct colour colour = near_colour(e, material->from, 90);
        int share = random_range(r, 60, 200);
        for (int c = 0; c < 3; c++) colour.part[c] = colour.part[c] * share / 256;
        mask_grow(&e->canvas, area, edge);
        paint_flat(&e->canvas, area, 0, 0, colour, random_range(r, 90, 256));
    }
    if (material->relief) mask_blur(&e->canvas, area, reach);
    paint_material(&e->canvas, area, material);
}

/* Paints shape `label` and tells its box and area. */
static void paint_shape(struct easel *e, int label, const struct pose *pose, struct subject_object *object) {
    struct random *r = &e->random;
    struct colour body = any_colour(e), accent = near_colour(e, body, random_range(r, 70, 256)),
                  dark = near_colour(e, body, 100);
    for (int c = 0; c < 3; c++) dark.part[c] = dark.part[c] * 90 / 256;
    struct material material = any_material(e, pose, body);
    material.relief = random_chance(r, 60) ? random_range(r, 30, 200) : 0;
    int shadow = random_chance(r, 55) ? random_range(r, 40, 160) : 0;
    int edge = random_chance(r, 40) ? 1 + (pose->radius > 40 * 256) : 0;
    shape_trace(label, SHAPE_WHOLE, pose, &e->outline);
    struct area area = mask_fill(&e->canvas, &e->outline, 8);
    if (object) {
        int32_t box[4] = {0};
        outline_box(&e->outline, box);
        int32_t right = e->canvas.width * 256, bottom = e->canvas.height * 256;
        object->label = label;
        object->x0 = box[0] < 0 ? 0 : box[0], object->y0 = box[1] < 0 ? 0 : box[1];
        object->x1 = box[2] > right ? right : box[2], object->y1 = box[3] > bottom ? bottom : box[3];
        object->area = mask_pixels(&e->canvas, area);
    }
    paint_body(e, area, &material, shadow, edge);
    struct material over[2];
    over[0] = any_material(e, pose, accent);
    over[1] = any_material(e, pose, dark);
    over[1].texture = TEXTURE_PLAIN;
    for (int layer = 1; layer < SHAPE_LAYERS; layer++) {
        shape_trace(label, layer, pose, &e->outline);
        paint_material(&e->canvas, mask_fill(&e->canvas, &e->outline, 0), &over[layer - 1]);
    }
}

static struct pose loose_pose(struct easel *e, int low, int high) {
    struct random *r = &e->random;
    struct pose pose = any_pose(e, e->unit / 100 * random_range(r, low, high), TURN / 2);
    pose.cx = random_range(r, 0, e->canvas.width * 256), pose.cy = random_range(r, 0, e->canvas.height * 256);
    return pose;
}

/* Something that is nothing: a blob, a bar, or a shape cut so that no more than a part is left. */
static void paint_clutter(struct easel *e, int low, int high, bool fragments) {
    struct random *r = &e->random;
    struct pose pose = loose_pose(e, low, high);
    int sort = random_range(r, 0, fragments ? 3 : 1);
    if (sort == 0) shape_trace_blob(r, random_range(r, 3, 9), &pose, &e->outline);
    if (sort == 1) {
        pose.aspect = random_range(r, 200, 700);
        pose.bend_x /= 2, pose.bend_y *= 3;
        shape_trace_bar(random_range(r, 8, 40), &pose, &e->outline);
    }
    if (sort >= 2) shape_trace(random_range(r, 0, SHAPE_COUNT - 1), SHAPE_WHOLE, &pose, &e->outline);
    struct area area = mask_fill(&e->canvas, &e->outline, 8);
    if (sort >= 2) {
        int angle = random_range(r, 0, TURN - 1), away = pose.radius / 256 * random_range(r, 5, 35) / 100;
        int x = pose.cx / 256 - away * fixed_sin(angle + TURN / 4) / 16384,
            y = pose.cy / 256 - away * fixed_sin(angle) / 16384;
        mask_cut(&e->canvas, area, x, y, angle);
    }
    struct material material = any_material(e, &pose, any_colour(e));
    material.opacity = random_range(r, 120, 256);
    material.relief = random_chance(r, 40) ? random_range(r, 30, 150) : 0;
    int shadow = random_chance(r, 40) ? random_range(r, 30, 140) : 0;
    paint_body(e, area, &material, shadow, random_chance(r, 25) ? 1 : 0);
}

/* A ground, colours and a direction of light for the whole picture. */
static void set_scene(struct easel *e) {
    struct random *r = &e->random;
    static const int8_t lights[8][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};
    int light = random_range(r, 0, 7);
    e->light_x = lights[light][0], e->light_y = lights[light][1];
    e->vivid = 256;
    e->mood = any_colour(e);
    e->vivid = random_range(r, 85, 256);
    struct ground ground;
    ground.coarse = random_range(r, 20, 256);
    ground.fine = random_range(r, 0, 220);
    ground.kind = (enum ground_kind)random_range(r, 0, GROUND_COUNT - 1);
    int angle = random_range(r, 0, TURN - 1), pace = random_range(r, 8, 40);
    ground.step_x = fixed_sin(angle + TURN / 4) * pace * 2 / 16384 * (ground.kind == GROUND_TILES ? 2 : 1);
    ground.step_y = fixed_sin(angle) * pace * 2 / 16384 * (ground.kind == GROUND_TILES ? 2 : 1);
    ground.stops[1] = any_colour(e);
    ground.stops[0] = near_colour(e, ground.stops[1], random_range(r, 60, 256));
    ground.stops[2] = near_colour(e, ground.stops[1], random_range(r, 60, 256));
    paint_ground(&e->canvas, &ground);
}

static void take_picture(struct easel *e, struct random *noise) {
    struct random *r = &e->random;
    struct camera camera = {.base = random_range(r, 205, 320)};
    camera.across = random_range(r, -70, 70);
    camera.down = random_range(r, -70, 70);
    camera.vignette = random_chance(r, 40) ? random_range(r, 0, 70) : 0;
    if (random_chance(r, 35)) {
        int angle = random_range(r, 0, TURN - 1);
        camera.shade = random_range(r, 40, 150);
        camera.shade_x = fixed_sin(angle + TURN / 4) / 32, camera.shade_y = fixed_sin(angle) / 32;
        int at = random_range(r, 20, 80);
        camera.shade_from = (camera.shade_x * e->canvas.width + camera.shade_y * e->canvas.height) * at / 100;
    }
    camera.contrast = random_range(r, 110, 256);
    camera.middle = random_range(r, 70, 180);
    for (int c = 0; c < 3; c++) camera.tint.part[c] = random_range(r, 215, 290);
    camera.blurred = random_chance(r, 30);
    camera.noise = random_chance(r, 65) ? random_range(r, 3, 34) : 0;
    camera.colour_noise = camera.noise * random_range(r, 0, 60) / 100;
    paint_camera(&e->canvas, &camera, noise);
}

/* How far a shape may be turned: those made by rule anyway, the others so that they stay themselves. */
static int tilt_of(int label) {
    return label < SHAPE_DETECTED + 4 ? TURN / 8 : TURN / 2;
}

static void draw_classify(struct easel *e, struct subject_scene *scene) {
    struct random *r = &e->random;
    int label = random_range(r, 0, SHAPE_COUNT - 1);
    for (int i = random_range(r, 0, 6); i > 0; i--) paint_clutter(e, 6, 34, true);
    const bool small = e->kind == SUBJECT_SMALL;
    struct pose pose = any_pose(e, e->unit / 100 * random_range(r, small ? 9 : 16, small ? 24 : 40), tilt_of(label));
    int spread = 36 - pose.radius * 50 / e->unit; /* the larger, the nearer to the middle */
    pose.cx = e->canvas.width * 128 + e->unit / 100 * random_range(r, -spread, spread);
    pose.cy = e->canvas.height * 128 + e->unit / 100 * random_range(r, -spread, spread);
    paint_shape(e, label, &pose, &scene->objects[0]);
    scene->count = 1;
    for (int i = random_range(r, 0, 3); i > 0; i--) paint_clutter(e, 3, 14, true);
}

/* Pixels (1/256) that two spans share. */
static int64_t shared(int32_t a0, int32_t a1, int32_t b0, int32_t b1) {
    int32_t low = a0 > b0 ? a0 : b0, high = a1 < b1 ? a1 : b1;
    return high > low ? high - low : 0;
}

/* Whether a box round (cx, cy) would lie over more than 45% of an object already there. */
static bool hides_another(const struct subject_scene *scene, const struct pose *pose) {
    int32_t half = pose->radius * 9 / 10;
    for (int i = 0; i < scene->count; i++) {
        const struct subject_object *o = &scene->objects[i];
        int64_t common = shared(o->x0, o->x1, pose->cx - half, pose->cx + half) *
                         shared(o->y0, o->y1, pose->cy - half, pose->cy + half);
        if (common * 100 > (int64_t)(o->x1 - o->x0) * (o->y1 - o->y0) * 45) return true;
    }
    return false;
}

static void draw_detect(struct easel *e, struct subject_scene *scene) {
    struct random *r = &e->random;
    int wanted = random_chance(r, 4) ? 0 : random_range(r, 1, SUBJECT_MOST);
    for (int i = random_range(r, 0, 5); i > 0; i--) paint_clutter(e, 5, 30, true);
    for (int i = 0; i < wanted; i++) {
        int label = random_range(r, 0, SHAPE_DETECTED - 1);
        int percent = random_range(r, 8, 22);
        if (random_chance(r, 30)) percent += random_range(r, 0, 18);
        struct pose pose = any_pose(e, e->unit / 100 * percent, tilt_of(label));
        bool placed = false;
        for (int attempt = 0; attempt < 12 && !placed; attempt++) {
            pose.cx = random_range(r, pose.radius / 2, e->canvas.width * 256 - pose.radius / 2);
            pose.cy = random_range(r, pose.radius / 2, e->canvas.height * 256 - pose.radius / 2);
            placed = !hides_another(scene, &pose);
        }
        if (placed) paint_shape(e, label, &pose, &scene->objects[scene->count++]);
    }
    for (int i = random_range(r, 0, 3); i > 0; i--) paint_clutter(e, 2, 9, false);
}

int subject_classes(enum subject_kind kind) {
    return kind == SUBJECT_DETECT ? SHAPE_DETECTED : SHAPE_COUNT;
}

const char *subject_class_name(int label) {
    return shape_name(label);
}

void subject_size(enum subject_kind kind, uint64_t seed, uint64_t index, int *width, int *height) {
    struct random r = random_keyed((uint64_t)kind, seed, index, PURPOSE_SIZE);
    if (kind == SUBJECT_DETECT) {
        *height = random_range(&r, 192, 288);
        *width = *height * random_range(&r, 120, 146) / 100;
    } else {
        *height = random_range(&r, 128, 192);
        *width = random_range(&r, 128, 192);
    }
}

static bool easel_open(struct easel *e, enum subject_kind kind, int width, int height, uint8_t *rgb) {
    size_t pixels = (size_t)width * (size_t)height;
    uint8_t *masks = malloc(3 * pixels);
    int32_t *row = malloc(((size_t)width + 64) * sizeof *row);
    if (!masks || !row) {
        free(masks);
        free(row);
        return false;
    }
    e->kind = kind;
    e->unit = (width < height ? width : height) * 256;
    e->canvas = (struct canvas){.width = width, .height = height, .rgb = rgb, .row = row};
    e->canvas.cover = masks, e->canvas.wide = masks + pixels, e->canvas.spare = masks + 2 * pixels;
    return true;
}

bool subject_draw(enum subject_kind kind, uint64_t seed, uint64_t index, int width, int height, uint8_t *rgb,
                  struct subject_scene *scene) {
    if (width < SUBJECT_SMALLEST || width > SUBJECT_LARGEST || height < SUBJECT_SMALLEST || height > SUBJECT_LARGEST)
        return false;
    struct easel easel = {0};
    if (!easel_open(&easel, kind, width, height, rgb)) return false;
    easel.random = random_keyed((uint64_t)kind, seed, index, PURPOSE_SCENE);
    struct random lattice = random_keyed((uint64_t)kind, seed, index, PURPOSE_LATTICE);
    struct random noise = random_keyed((uint64_t)kind, seed, index, PURPOSE_NOISE);
    for (int i = 0; i < 256; i++)
        easel.canvas.lattice[i] = easel.canvas.lattice[i + 256] = (uint8_t)random_range(&lattice, 0, 255);
    scene->count = 0;
    set_scene(&easel);
    if (kind == SUBJECT_DETECT)
        draw_detect(&easel, scene);
    else
        draw_classify(&easel, scene);
    take_picture(&easel, &noise);
    free(easel.canvas.cover);
    free(easel.canvas.row);
    return true;
}
