/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"

#include <string.h>

static int limit(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

static int mix(int from, int to, int share) {
    return from + (to - from) * share / 256;
}

/* 0 to 255 up and down again as phase runs through 512, with steep flanks. */
static int wave(int phase) {
    int saw = phase & 511;
    if (saw > 255) saw = 511 - saw;
    return limit((saw - 128) * 6 + 128, 0, 255);
}

static int lattice_at(const struct canvas *canvas, int x, int y) {
    return canvas->lattice[canvas->lattice[x & 255] + (y & 255)];
}

/* 0 to 255 as part runs through 0 to 255, level at both ends. */
static int smooth(int part) {
    return part * part * (768 - 2 * part) / 65536;
}

static int noise_at(const struct canvas *canvas, int32_t u, int32_t v) {
    int x = u >> 8, y = v >> 8, fx = smooth(u & 255), fy = smooth(v & 255);
    int top = mix(lattice_at(canvas, x, y), lattice_at(canvas, x + 1, y), fx);
    int bottom = mix(lattice_at(canvas, x, y + 1), lattice_at(canvas, x + 1, y + 1), fx);
    return mix(top, bottom, fy);
}

/* How far the material is on its way between its colours, 0 to 255; u and v in 1/256 pixel. */
static int texture_at(const struct canvas *canvas, const struct material *m, int32_t u, int32_t v) {
    switch (m->texture) {
    case TEXTURE_RAMP:
        return limit((int)(128 + (int64_t)u * 128 / m->radius), 0, 255);
    case TEXTURE_BALL: {
        int64_t square = (int64_t)u * u + (int64_t)v * v;
        int64_t whole = (int64_t)m->radius * m->radius;
        return square >= whole ? 255 : (int)(square * 255 / whole);
    }
    case TEXTURE_STRIPES:
        return wave(u * 512 / m->period);
    case TEXTURE_CHECKS: {
        int a = wave(u * 512 / m->period), b = wave(v * 512 / m->period);
        return (a * (255 - b) + b * (255 - a)) / 255;
    }
    case TEXTURE_DOTS: {
        int half = m->period / 2;
        int du = (u % m->period + m->period) % m->period - half, dv = (v % m->period + m->period) % m->period - half;
        int64_t inside = (int64_t)half * half * 10 / 20 - ((int64_t)du * du + (int64_t)dv * dv);
        int64_t level = inside * 512 / ((int64_t)half * half) + 128;
        return level < 0 ? 0 : level > 255 ? 255 : (int)level;
    }
    case TEXTURE_GRAIN:
        return noise_at(canvas, u * 512 / m->period, v * 512 / m->period);
    default:
        return 0;
    }
}

static int relief_at(const struct canvas *canvas, struct area area, const struct material *m, int x, int y) {
    int ax = limit(x + m->light_x, area.x0, area.x1 - 1), ay = limit(y + m->light_y, area.y0, area.y1 - 1);
    int bx = limit(x - m->light_x, area.x0, area.x1 - 1), by = limit(y - m->light_y, area.y0, area.y1 - 1);
    int towards = canvas->wide[ay * canvas->width + ax], away = canvas->wide[by * canvas->width + bx];
    return (away - towards) * m->relief / 256;
}

void paint_material(struct canvas *canvas, struct area area, const struct material *m) {
    int cosine = fixed_sin(m->angle + TURN / 4), sine = fixed_sin(m->angle);
    for (int y = area.y0; y < area.y1; y++) {
        const uint8_t *cover = canvas->cover + (size_t)y * (size_t)canvas->width;
        uint8_t *pixel = canvas->rgb + ((size_t)y * (size_t)canvas->width + (size_t)area.x0) * 3;
        int64_t dy = y * 256 + 128 - m->cy;
        for (int x = area.x0; x < area.x1; x++, pixel += 3) {
            if (!cover[x]) continue;
            int64_t dx = x * 256 + 128 - m->cx;
            int32_t u = (int32_t)((dx * cosine + dy * sine) / 16384), v = (int32_t)((dy * cosine - dx * sine) / 16384);
            int share = texture_at(canvas, m, u, v);
            int lift = m->relief ? relief_at(canvas, area, m, x, y) : 0;
            int opacity = cover[x] * m->opacity / 255;
            for (int c = 0; c < 3; c++) {
                int level = limit(mix(m->from.part[c], m->to.part[c], share) + lift, 0, 255);
                pixel[c] = (uint8_t)mix(pixel[c], level, opacity);
            }
        }
    }
}

void paint_flat(struct canvas *canvas, struct area area, int dx, int dy, struct colour colour, int opacity) {
    for (int y = area.y0; y < area.y1; y++) {
        if (y + dy < 0 || y + dy >= canvas->height) continue;
        const uint8_t *wide = canvas->wide + (size_t)y * (size_t)canvas->width;
        for (int x = area.x0; x < area.x1; x++) {
            if (!wide[x] || x + dx < 0 || x + dx >= canvas->width) continue;
            uint8_t *pixel = canvas->rgb + ((size_t)(y + dy) * (size_t)canvas->width + (size_t)(x + dx)) * 3;
            int share = wide[x] * opacity / 255;
            for (int c = 0; c < 3; c++) pixel[c] = (uint8_t)mix(pixel[c], colour.part[c], share);
        }
    }
}

/* Adds depth * noise to a row's sums; a cell is 2^shift pixels. */
static void add_noise_row(const struct canvas *canvas, int32_t *sums, int y, int shift, int depth) {
    int cell = 1 << shift, scale = 8 - shift;
    int row = y >> shift, fy = smooth((y & (cell - 1)) << scale);
    int left = mix(lattice_at(canvas, 0, row), lattice_at(canvas, 0, row + 1), fy);
    for (int x = 0, i = 1; x < canvas->width; x += cell, i++) {
        int right = mix(lattice_at(canvas, i, row), lattice_at(canvas, i, row + 1), fy);
        int end = canvas->width - x < cell ? canvas->width - x : cell;
        for (int k = 0; k < end; k++) sums[x + k] += mix(left, right, smooth(k << scale)) * depth / 256;
        left = right;
    }
}

static int ground_level(const struct ground *g, int noise, int phase, int slope) {
    switch (g->kind) {
    case GROUND_BANDS:
        return (wave(phase + noise * g->coarse / 128) * 3 + noise) / 4;
    case GROUND_MARBLE: {
        int saw = (phase / 2 + noise * 4) & 511;
        return saw > 255 ? 511 - saw : saw;
    }
    case GROUND_SLOPE:
        return (slope * 2 + noise) / 3;
    case GROUND_PATCHES:
        return (limit(((noise * 5) & 255) * 3 - 256, 0, 255) / 8 + (noise * 5 / 256) * 50);
    default:
        return noise;
    }
}

/* A tile's own level, with a dark joint round it. */
static int tile_level(const struct canvas *canvas, const struct ground *g, int x, int y, int noise) {
    int u = x * g->step_x + y * g->step_y, v = y * g->step_x - x * g->step_y;
    if ((u & 2047) < 160 || (v & 2047) < 160) return noise / 4;
    return (lattice_at(canvas, (u >> 11) + 64, (v >> 11) + 64) + noise) / 2;
}

void paint_ground(struct canvas *canvas, const struct ground *g) {
    uint8_t table[256][3];
    for (int i = 0; i < 256; i++) {
        int upper = i >= 128;
        for (int c = 0; c < 3; c++)
            table[i][c] = (uint8_t)mix(g->stops[upper].part[c], g->stops[upper + 1].part[c], (i & 127) * 2);
    }
    int32_t *noise = canvas->row;
    uint8_t *pixel = canvas->rgb;
    for (int y = 0; y < canvas->height; y++) {
        memset(noise, 0, (size_t)canvas->width * sizeof *noise);
        add_noise_row(canvas, noise, y, 6, 110);
        add_noise_row(canvas, noise, y + 4096, 5, g->coarse * 70 / 256);
        add_noise_row(canvas, noise, y + 8192, 4, g->coarse * 50 / 256);
        add_noise_row(canvas, noise, y + 16384, 2, g->fine * 50 / 256);
        for (int x = 0; x < canvas->width; x++, pixel += 3) {
            int level = g->kind == GROUND_TILES
                            ? tile_level(canvas, g, x, y, noise[x])
                            : ground_level(g, noise[x], x * g->step_x + y * g->step_y,
                                           (x * 3 + y * 5) * 255 / (canvas->width * 3 + canvas->height * 5));
            memcpy(pixel, table[limit(level, 0, 255)], 3);
        }
    }
}

static void blur_rows(uint8_t *rgb, int width, int height, uint8_t *above) {
    size_t stride = (size_t)width * 3;
    for (int y = 0; y < height; y++) { /* across */
        uint8_t *row = rgb + (size_t)y * stride;
        memcpy(above, row, stride);
        for (size_t i = 3; i + 3 < stride; i++)
            row[i] = (uint8_t)((above[i - 3] + 2 * above[i] + above[i + 3] + 2) / 4);
    }
    memcpy(above, rgb, stride);
    for (int y = 1; y + 1 < height; y++) { /* down */
        uint8_t *row = rgb + (size_t)y * stride, *below = row + stride;
        for (size_t i = 0; i < stride; i++) {
            int here = row[i];
            row[i] = (uint8_t)((above[i] + 2 * here + below[i] + 2) / 4);
            above[i] = (uint8_t)here;
        }
    }
}

/* The light at every column and row: level = across[x] + down[y], 1/256. */
static void light_tables(const struct canvas *canvas, const struct camera *camera, int32_t *across, int32_t *down_at,
                         int y) {
    if (y == 0) {
        for (int x = 0; x < canvas->width; x++) {
            int side = (2 * x - canvas->width) * 256 / canvas->width;
            across[x] = camera->across * side / 256 - camera->vignette * side / 256 * side / 256;
        }
    }
    int side = (2 * y - canvas->height) * 256 / canvas->height;
    *down_at = camera->base + camera->down * side / 256 - camera->vignette * side / 256 * side / 256;
}

void paint_camera(struct canvas *canvas, const struct camera *camera, struct random *random) {
    if (camera->blurred) blur_rows(canvas->rgb, canvas->width, canvas->height, canvas->spare);
    uint8_t *pixel = canvas->rgb;
    int32_t *across = canvas->row;
    uint64_t bits = 0;
    for (int y = 0; y < canvas->height; y++) {
        int32_t down;
        light_tables(canvas, camera, across, &down, y);
        for (int x = 0; x < canvas->width; x++, pixel += 3) {
            int shade = limit((x * camera->shade_x + y * camera->shade_y - camera->shade_from) / 8, 0, 256);
            int light = (across[x] + down) * (256 - camera->shade * shade / 256) / 256;
            bits = x & 1 ? bits >> 32 : random_next(random);
            int grey = ((int)(bits & 255) + (int)(bits >> 8 & 255) - 255) * camera->noise / 256;
            int warm = ((int)(bits >> 16 & 255) - 128) * camera->colour_noise / 128,
                cold = ((int)(bits >> 24 & 255) - 128) * camera->colour_noise / 128;
            int extra[3] = {grey + warm, grey - (warm + cold) / 2, grey + cold};
            for (int c = 0; c < 3; c++) {
                int lit = pixel[c] * light / 256 * camera->tint.part[c] / 256;
                int level = camera->middle + (lit - camera->middle) * camera->contrast / 256;
                pixel[c] = (uint8_t)limit(level + extra[c], 0, 255);
            }
        }
    }
}
