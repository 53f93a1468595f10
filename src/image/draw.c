/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes with a tag each, and captions, by cairo. A tag's ground is the class's colour and its text black or white,
 * whichever stands out; lines have a thin dark edge, so both can be read on any picture. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cairo.h>

#include "base/alloc.h"
#include "image/codec.h"

enum { SIDE_LIMIT = 32767 }; /* of a cairo surface */

typedef struct colour {
    double r, g, b;
} colour;

/* A palette of well parted hues; classes beyond it turn by the golden angle. */
static colour colour_of(int index) {
    static const uint8_t first[][3] = {{230, 57, 70},  {42, 157, 244}, {46, 196, 100}, {255, 183, 3},  {155, 93, 229},
                                       {251, 120, 35}, {0, 187, 190},  {241, 91, 181}, {138, 201, 38}, {94, 96, 206}};
    int count = (int)(sizeof first / sizeof *first);
    if (index >= 0 && index < count)
        return (colour){first[index][0] / 255.0, first[index][1] / 255.0, first[index][2] / 255.0};
    double hue = fmod((double)(unsigned)index * 0.38196601125, 1.0) * 6.0;
    double value = index % 2 == 0 ? 0.95 : 0.75, least = value * 0.25;
    double rising = least + (value - least) * (hue - floor(hue)), falling = value + least - rising;
    switch ((int)hue) {
    case 0:
        return (colour){value, rising, least};
    case 1:
        return (colour){falling, value, least};
    case 2:
        return (colour){least, value, rising};
    case 3:
        return (colour){least, falling, value};
    case 4:
        return (colour){rising, least, value};
    default:
        return (colour){value, least, falling};
    }
}

static bool is_light(colour c) {
    return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 0.56;
}

static void set_colour(cairo_t *cairo, colour c, double alpha) {
    cairo_set_source_rgba(cairo, c.r, c.g, c.b, alpha);
}

/* Valid UTF-8 of at most `room` bytes: what is not becomes a question mark, and so do control characters. */
static void clean_text(char *out, size_t room, const char *text) {
    size_t n = 0;
    const uint8_t *p = (const uint8_t *)text;
    while (*p != 0 && n + 5 < room) {
        size_t more = *p < 0x80                 ? 0
                      : *p >= 0xc2 && *p < 0xe0 ? 1
                      : *p >= 0xe0 && *p < 0xf0 ? 2
                      : *p >= 0xf0 && *p < 0xf5 ? 3
                                                : 9;
        size_t k = 0;
        while (more < 9 && k < more && (p[k + 1] & 0xc0) == 0x80) k++;
        bool odd = k != more || *p < 0x20 || *p == 0x7f || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
                   (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f);
        if (odd) {
            out[n++] = '?';
            p++;
        } else {
            memcpy(out + n, p, more + 1);
            n += more + 1;
            p += more + 1;
        }
    }
    out[n] = 0;
}

/* A surface with the picture's pixels; NULL with the error set. */
static cairo_surface_t *surface_of(const oct_image *image, int height) {
    if (image->width > SIDE_LIMIT || height > SIDE_LIMIT) {
        oct_fail(OCTET_LIMIT, "cannot draw on a picture of %d x %d pixels", image->width, height);
        return NULL;
    }
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, image->width, height);
    if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        oct_fail_memory();
        cairo_surface_destroy(surface);
        return NULL;
    }
    uint8_t *data = cairo_image_surface_get_data(surface);
    size_t stride = (size_t)cairo_image_surface_get_stride(surface);
    for (int y = 0; y < image->height; y++) {
        const uint8_t *in = image->rgb + (size_t)y * (size_t)image->width * 3;
        for (int x = 0; x < image->width; x++, in += 3) {
            uint32_t pixel = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
            memcpy(data + (size_t)y * stride + (size_t)x * 4, &pixel, 4);
        }
    }
    cairo_surface_mark_dirty(surface);
    return surface;
}

static void pixels_of(cairo_surface_t *surface, oct_image *image) {
    cairo_surface_flush(surface);
    const uint8_t *data = cairo_image_surface_get_data(surface);
    size_t stride = (size_t)cairo_image_surface_get_stride(surface);
    for (int y = 0; y < image->height; y++) {
        uint8_t *out = image->rgb + (size_t)y * (size_t)image->width * 3;
        for (int x = 0; x < image->width; x++, out += 3) {
            uint32_t pixel;
            memcpy(&pixel, data + (size_t)y * stride + (size_t)x * 4, 4);
            out[0] = (uint8_t)(pixel >> 16);
            out[1] = (uint8_t)(pixel >> 8);
            out[2] = (uint8_t)pixel;
        }
    }
}

static octet_status finish(cairo_t *cairo) {
    cairo_status_t code = cairo_status(cairo);
    if (code == CAIRO_STATUS_SUCCESS) return OCTET_OK;
    if (code == CAIRO_STATUS_NO_MEMORY) return oct_fail_memory();
    return oct_fail(OCTET_INTERNAL, "cannot draw: %s", cairo_status_to_string(code));
}

static void set_font(cairo_t *cairo, double size) {
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    cairo_set_font_size(cairo, size);
}

/* Sizes that follow the picture. */
static double line_width_of(const oct_image *image) {
    double side = image->width < image->height ? image->width : image->height;
    return fmin(fmax(round(side / 240.0), 1.5), 8.0);
}

static double font_size_of(const oct_image *image) {
    double side = image->width < image->height ? image->width : image->height;
    return fmin(fmax(side / 30.0, 10.0), 34.0);
}

typedef struct frame {
    double x, y, width, height;
} frame;

/* The box inside the picture, and at least large enough to be seen. */
static bool frame_of(const oct_drawn_box *box, const oct_image *image, double line, frame *f) {
    double x0 = fmin((double)box->x0, (double)box->x1), x1 = fmax((double)box->x0, (double)box->x1);
    double y0 = fmin((double)box->y0, (double)box->y1), y1 = fmax((double)box->y0, (double)box->y1);
    if (!(isfinite(x0) && isfinite(x1) && isfinite(y0) && isfinite(y1))) return false;
    double least = 2.0 * line + 2.0, half = line / 2.0;
    double centre_x = (x0 + x1) / 2.0, centre_y = (y0 + y1) / 2.0;
    if (x1 - x0 < least) x0 = centre_x - least / 2.0, x1 = centre_x + least / 2.0;
    if (y1 - y0 < least) y0 = centre_y - least / 2.0, y1 = centre_y + least / 2.0;
    x0 = fmax(x0, half), x1 = fmin(x1, image->width - half);
    y0 = fmax(y0, half), y1 = fmin(y1, image->height - half);
    *f = (frame){x0, y0, x1 - x0, y1 - y0};
    return f->width >= 0 && f->height >= 0;
}

static void draw_frame(cairo_t *cairo, const frame *f, colour c, double line) {
    cairo_rectangle(cairo, f->x, f->y, f->width, f->height);
    cairo_set_source_rgba(cairo, 0, 0, 0, 0.55); /* the dark edge */
    cairo_set_line_width(cairo, line + 1.5);
    cairo_stroke_preserve(cairo);
    set_colour(cairo, c, 1.0);
    cairo_set_line_width(cairo, line);
    cairo_stroke(cairo);
}

/* A tag: its text and where it lies. */
typedef struct tag {
    char text[192];
    frame place;
    double margin, baseline;
} tag;

static bool overlap(const frame *a, const frame *b) {
    return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height && b->y < a->y + a->height;
}

/* Above the box's left corner; inside it where there is no room; never outside the picture; a little lower where an
 * earlier tag lies. */
static void place_tag(cairo_t *cairo, const oct_drawn_box *box, const oct_image *image, const frame *f, double line,
                      double font, tag *tags, size_t index) {
    enum { LOOKED_AT = 200, STEPS = 6 };
    tag *t = &tags[index];
    char label[160];
    clean_text(label, sizeof label, box->label != NULL ? box->label : "");
    snprintf(t->text, sizeof t->text, "%s%s%.2f", label, label[0] != 0 ? " " : "", (double)box->score);
    cairo_text_extents_t extents;
    cairo_font_extents_t letters;
    cairo_font_extents(cairo, &letters);
    cairo_text_extents(cairo, t->text, &extents);
    t->margin = font * 0.3;
    t->baseline = t->margin / 2.0 + letters.ascent;
    double width = extents.x_advance + 2.0 * t->margin, height = letters.ascent + letters.descent + t->margin;
    double x = f->x - line / 2.0, y = f->y - line / 2.0 - height;
    if (y < 0) y = f->height > 3.0 * height ? f->y + line / 2.0 : f->y + f->height + line / 2.0;
    x = fmax(fmin(x, image->width - width), 0.0);
    y = fmax(fmin(y, image->height - height), 0.0);
    t->place = (frame){x, y, width, height};
    size_t first = index > LOOKED_AT ? index - LOOKED_AT : 0;
    int step = 0;
    for (size_t i = first; i < index && step < STEPS; i++) {
        if (!overlap(&t->place, &tags[i].place)) continue;
        t->place.y = tags[i].place.y + tags[i].place.height + 1.0;
        step++;
        i = first - 1; /* and once more against all */
    }
    if (step == STEPS || t->place.y + height > image->height) t->place.y = y;
}

static void draw_tag(cairo_t *cairo, const tag *t, colour c) {
    cairo_rectangle(cairo, t->place.x, t->place.y, t->place.width, t->place.height);
    set_colour(cairo, c, 0.92);
    cairo_fill_preserve(cairo);
    cairo_set_source_rgba(cairo, 0, 0, 0, 0.45);
    cairo_set_line_width(cairo, 1.0);
    cairo_stroke(cairo);
    double ink = is_light(c) ? 0.0 : 1.0;
    cairo_set_source_rgb(cairo, ink, ink, ink);
    cairo_move_to(cairo, t->place.x + t->margin, t->place.y + t->baseline);
    cairo_show_text(cairo, t->text);
}

/* All frames, then all tags: the first boxes are the surest, so their tags lie on top. */
static void draw_all(cairo_t *cairo, const oct_image *image, const oct_drawn_box *boxes, size_t count, tag *tags) {
    double line = line_width_of(image), font = font_size_of(image);
    set_font(cairo, font);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    frame f;
    for (size_t i = 0; i < count; i++) {
        if (!frame_of(&boxes[i], image, line, &f)) continue;
        draw_frame(cairo, &f, colour_of(boxes[i].index), line);
        place_tag(cairo, &boxes[i], image, &f, line, font, tags, i);
    }
    for (size_t i = count; i-- > 0;) {
        if (tags[i].text[0] != 0) draw_tag(cairo, &tags[i], colour_of(boxes[i].index));
    }
}

octet_status oct_image_draw_boxes(oct_image *image, const oct_drawn_box *boxes, size_t count) {
    if (count == 0) return OCTET_OK;
    tag *tags = oct_calloc(count, sizeof *tags);
    if (tags == NULL) return oct_fail_memory();
    cairo_surface_t *surface = surface_of(image, image->height);
    if (surface == NULL) {
        oct_free(tags);
        return oct_error_status();
    }
    cairo_t *cairo = cairo_create(surface);
    draw_all(cairo, image, boxes, count, tags);
    octet_status status = finish(cairo);
    cairo_destroy(cairo);
    if (status == OCTET_OK) pixels_of(surface, image);
    cairo_surface_destroy(surface);
    oct_free(tags);
    return status;
}

/* The font shrinks until the longest line fits. */
static void draw_lines(cairo_t *cairo, const oct_image *image, const char *const *lines, size_t count, double font,
                       double margin, double advance) {
    char text[256];
    for (size_t i = 0; i < count; i++) {
        clean_text(text, sizeof text, lines[i] != NULL ? lines[i] : "");
        set_font(cairo, font);
        cairo_text_extents_t extents;
        cairo_text_extents(cairo, text, &extents);
        double room = image->width - 2.0 * margin;
        if (extents.x_advance > room && room > 0) set_font(cairo, fmax(font * room / extents.x_advance, 5.0));
        double ink = i == 0 ? 1.0 : 0.78;
        cairo_set_source_rgb(cairo, ink, ink, ink);
        cairo_move_to(cairo, margin, image->height + margin + advance * (double)i + font * 0.95);
        cairo_show_text(cairo, text);
    }
}

octet_status oct_image_draw_caption(oct_image *image, const char *const *lines, size_t count) {
    if (count == 0) return OCTET_OK;
    double font = font_size_of(image), advance = ceil(font * 1.3), margin = ceil(font * 0.5);
    double band = advance * (double)count + 2.0 * margin;
    if (band > SIDE_LIMIT) return oct_fail(OCTET_LIMIT, "cannot draw a caption of %zu lines", count);
    oct_image taller = {0};
    cairo_surface_t *surface = surface_of(image, image->height + (int)band);
    if (surface == NULL) return oct_error_status();
    cairo_t *cairo = cairo_create(surface);
    cairo_rectangle(cairo, 0, image->height, image->width, band);
    cairo_set_source_rgb(cairo, 0.11, 0.12, 0.15);
    cairo_fill(cairo);
    draw_lines(cairo, image, lines, count, font, margin, advance);
    octet_status status = finish(cairo);
    cairo_destroy(cairo);
    if (status == OCTET_OK)
        status = oct_image_make(&taller, (uint64_t)image->width, (uint64_t)image->height + (uint64_t)band);
    if (status == OCTET_OK) {
        pixels_of(surface, &taller);
        oct_image_free(image);
        *image = taller;
    }
    cairo_surface_destroy(surface);
    return status;
}
