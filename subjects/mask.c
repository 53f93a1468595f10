/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "paint.h"

enum { SUBROWS = 4, CROSSINGS = 128 };

static int limit(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

struct crossing {
    int32_t x; /* 1/256 pixel */
    int turn;  /* +1 or -1 */
};

/* Where the outline crosses height y (1/256 pixel), from left to right. */
static int find_crossings(const struct outline *outline, int32_t y, struct crossing found[CROSSINGS]) {
    int count = 0;
    for (int c = 0; c < outline->contours; c++) {
        int first = outline->start[c], end = outline->start[c + 1];
        for (int i = first, j = end - 1; i < end; j = i++) {
            int32_t y0 = outline->y[j], y1 = outline->y[i];
            if ((y0 <= y) == (y1 <= y) || count == CROSSINGS) continue;
            int64_t run = outline->x[i] - outline->x[j];
            struct crossing at = {outline->x[j] + (int32_t)(run * (y - y0) / (y1 - y0)), y1 > y0 ? 1 : -1};
            int k = count++;
            for (; k > 0 && found[k - 1].x > at.x; k--) found[k] = found[k - 1];
            found[k] = at;
        }
    }
    return count;
}

/* Adds the span from x0 to x1 (1/256 pixel) of one subrow to the row's sums. */
static void add_span(int32_t *row, int width, int32_t x0, int32_t x1) {
    if (x0 < 0) x0 = 0;
    if (x1 > width * 256) x1 = width * 256;
    if (x0 >= x1) return;
    int first = x0 >> 8, last = x1 >> 8;
    if (first == last) {
        row[first] += x1 - x0;
        return;
    }
    row[first] += 256 - (x0 & 255);
    for (int x = first + 1; x < last; x++) row[x] += 256;
    row[last] += x1 & 255; /* row has one entry more than the width */
}

static void fill_row(struct canvas *canvas, const struct outline *outline, struct area area, int y) {
    int32_t *row = canvas->row;
    memset(row + area.x0, 0, (size_t)(area.x1 - area.x0 + 1) * sizeof *row);
    for (int sub = 0; sub < SUBROWS; sub++) {
        struct crossing found[CROSSINGS];
        int count = find_crossings(outline, y * 256 + (2 * sub + 1) * 256 / (2 * SUBROWS), found);
        int winding = 0;
        for (int i = 0; i + 1 < count; i++) {
            winding += found[i].turn;
            if (winding) add_span(row, canvas->width, found[i].x, found[i + 1].x);
        }
    }
    uint8_t *cover = canvas->cover + (size_t)y * (size_t)canvas->width;
    for (int x = area.x0; x < area.x1; x++) {
        int sum = row[x] / SUBROWS;
        cover[x] = (uint8_t)(sum > 255 ? 255 : sum);
    }
}

struct area mask_fill(struct canvas *canvas, const struct outline *outline, int margin) {
    int32_t box[4];
    if (!outline_box(outline, box)) return (struct area){0, 0, 0, 0};
    struct area area = {
        limit((box[0] >> 8) - margin, 0, canvas->width), limit((box[1] >> 8) - margin, 0, canvas->height),
        limit((box[2] >> 8) + 1 + margin, 0, canvas->width), limit((box[3] >> 8) + 1 + margin, 0, canvas->height)};
    if (area.x0 >= area.x1 || area.y0 >= area.y1) return (struct area){0, 0, 0, 0};
    for (int y = area.y0; y < area.y1; y++) fill_row(canvas, outline, area, y);
    return area;
}

void mask_cut(struct canvas *canvas, struct area area, int x, int y, int angle) {
    int across = fixed_sin(angle + TURN / 4), down = fixed_sin(angle);
    for (int j = area.y0; j < area.y1; j++) {
        uint8_t *cover = canvas->cover + (size_t)j * (size_t)canvas->width;
        for (int i = area.x0; i < area.x1; i++) {
            if ((int64_t)(i - x) * across + (int64_t)(j - y) * down > 0) cover[i] = 0;
        }
    }
}

int32_t mask_pixels(const struct canvas *canvas, struct area area) {
    int64_t sum = 0;
    for (int y = area.y0; y < area.y1; y++) {
        const uint8_t *cover = canvas->cover + (size_t)y * (size_t)canvas->width;
        for (int x = area.x0; x < area.x1; x++) sum += cover[x];
    }
    return (int32_t)((sum + 127) / 255);
}

void mask_grow(struct canvas *canvas, struct area area, int reach) {
    size_t stride = (size_t)canvas->width;
    for (int y = area.y0; y < area.y1; y++) {
        const uint8_t *from = canvas->cover + (size_t)y * stride;
        uint8_t *to = canvas->spare + (size_t)y * stride;
        memcpy(to + area.x0, from + area.x0, (size_t)(area.x1 - area.x0));
        for (int d = 1; d <= reach; d++) {
            for (int x = area.x0; x < area.x1 - d; x++) to[x] = from[x + d] > to[x] ? from[x + d] : to[x];
            for (int x = area.x0 + d; x < area.x1; x++) to[x] = from[x - d] > to[x] ? from[x - d] : to[x];
        }
    }
    for (int y = area.y0; y < area.y1; y++) {
        uint8_t *to = canvas->wide + (size_t)y * stride;
        int low = limit(y - reach, area.y0, area.y1 - 1), high = limit(y + reach, area.y0, area.y1 - 1);
        memcpy(to + area.x0, canvas->spare + (size_t)low * stride + area.x0, (size_t)(area.x1 - area.x0));
        for (int j = low + 1; j <= high; j++) {
            const uint8_t *from = canvas->spare + (size_t)j * stride;
            for (int x = area.x0; x < area.x1; x++) to[x] = from[x] > to[x] ? from[x] : to[x];
        }
    }
}

/* One box blur over `count` bytes `step` apart; the ends are taken as repeated. */
static void blur_line(const uint8_t *from, uint8_t *to, int count, size_t step, int reach) {
    int span = 2 * reach + 1, scale = 65536 / span, sum = 0;
    for (int i = -reach; i <= reach; i++) sum += from[(size_t)limit(i, 0, count - 1) * step];
    for (int i = 0; i < count; i++) {
        to[(size_t)i * step] = (uint8_t)((sum * scale + 32768) >> 16);
        sum += from[(size_t)limit(i + reach + 1, 0, count - 1) * step] -
               from[(size_t)limit(i - reach, 0, count - 1) * step];
    }
}

void mask_blur(struct canvas *canvas, struct area area, int reach) {
    size_t stride = (size_t)canvas->width;
    const uint8_t *source = canvas->cover;
    for (int pass = 0; pass < 2; pass++) {
        for (int y = area.y0; y < area.y1; y++) {
            size_t at = (size_t)y * stride + (size_t)area.x0;
            blur_line(source + at, canvas->spare + at, area.x1 - area.x0, 1, reach);
        }
        for (int x = area.x0; x < area.x1; x++) {
            size_t at = (size_t)area.y0 * stride + (size_t)x;
            blur_line(canvas->spare + at, canvas->wide + at, area.y1 - area.y0, stride, reach);
        }
        source = canvas->wide;
    }
}
