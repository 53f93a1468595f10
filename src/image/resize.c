/* SPDX-License-Identifier: Apache-2.0 */
/* Image.resize of Pillow 13 to the byte: coefficients in double, as 22-bit fixed point; two passes, rounded to 8 bits
 * between; a pass that changes nothing is skipped. Only the window is computed. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "image/codec.h"

enum { PRECISION = 32 - 8 - 2 };

/* The taps of output pixels first .. first + count - 1 along one axis. */
typedef struct taps {
    int count, length; /* pixels; room for taps a pixel */
    int *start, *used; /* first source pixel, number of taps */
    int32_t *weight;   /* count x length */
} taps;

static double box_weight(double x) {
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear_weight(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming_weight(double x) {
    x = fabs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x = x * M_PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static double bicubic_weight(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x = x * M_PI;
    return sin(x) / x;
}

static double lanczos_weight(double x) {
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static const struct {
    const char *name;
    double (*weight)(double x);
    double support;
} filters[] = {
    [OCT_FILTER_NEAREST] = {"nearest", NULL, 0.0},
    [OCT_FILTER_BOX] = {"box", box_weight, 0.5},
    [OCT_FILTER_BILINEAR] = {"bilinear", bilinear_weight, 1.0},
    [OCT_FILTER_HAMMING] = {"hamming", hamming_weight, 1.0},
    [OCT_FILTER_BICUBIC] = {"bicubic", bicubic_weight, 2.0},
    [OCT_FILTER_LANCZOS] = {"lanczos", lanczos_weight, 3.0},
};

const char *oct_filter_name(oct_filter filter) {
    return filters[filter].name;
}

static void free_taps(taps *t) {
    oct_free(t->start);
    oct_free(t->used);
    oct_free(t->weight);
    *t = (taps){0};
}

/* One pixel's taps: source pixels whose centre lies under the filter, weights that sum to one. */
static void fill_pixel(taps *t, int at, int source, double centre, double support, double scale, oct_filter filter,
                       double *weights) {
    int low = (int)(centre - support + 0.5), high = (int)(centre + support + 0.5);
    if (low < 0) low = 0;
    if (high > source) high = source;
    int used = high - low;
    double sum = 0.0, inverse = 1.0 / scale;
    for (int i = 0; i < used; i++) {
        weights[i] = filters[filter].weight((i + low - centre + 0.5) * inverse);
        sum += weights[i];
    }
    int32_t *fixed = t->weight + (size_t)at * (size_t)t->length;
    for (int i = 0; i < used; i++) {
        double weight = sum != 0.0 ? weights[i] / sum : weights[i];
        double half = weight < 0 ? -0.5 : 0.5;
        fixed[i] = (int32_t)(half + weight * (1 << PRECISION));
    }
    t->start[at] = low;
    t->used[at] = used > 0 ? used : 0;
}

/* Taps of pixels first .. first + count - 1 of `full` that cover [x0, x1) of `source` pixels. */
static octet_status make_taps(taps *t, int source, float x0, float x1, int full, int first, int count,
                              oct_filter filter) {
    double scale = (double)(x1 - x0) / full;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    double support = filters[filter].support * filter_scale;
    int length = (int)ceil(support) * 2 + 1;
    size_t total, room = (size_t)(count > 0 ? count : 1);
    if (count > INT_MAX / 8 / length) /* Pillow's bound, on the window alone */
        return oct_fail(OCTET_LIMIT, "resizing %d pixels to %d needs too many filter taps", source, full);
    t->count = count;
    t->length = length;
    double *weights = oct_alloc((size_t)length * sizeof *weights);
    t->start = oct_calloc(room, sizeof *t->start);
    t->used = oct_calloc(room, sizeof *t->used);
    t->weight = oct_mul_size(room, (size_t)length, &total) ? oct_calloc(total, sizeof *t->weight) : NULL;
    if (weights == NULL || t->start == NULL || t->used == NULL || t->weight == NULL) {
        oct_free(weights);
        free_taps(t);
        return oct_fail_memory();
    }
    for (int i = 0; i < count; i++) {
        double centre = (double)x0 + (first + i + 0.5) * scale;
        fill_pixel(t, i, source, centre, support, filter_scale, filter, weights);
    }
    oct_free(weights);
    return OCTET_OK;
}

static inline uint8_t clip(int32_t sum) {
    sum >>= PRECISION;
    return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

/* One line, `in` at its first pixel. */
static void across(const taps *t, const uint8_t *in, uint8_t *out) {
    for (int x = 0; x < t->count; x++, out += 3) {
        const uint8_t *p = in + (size_t)t->start[x] * 3;
        const int32_t *w = t->weight + (size_t)x * (size_t)t->length;
        int32_t r = 1 << (PRECISION - 1), g = r, b = r;
        for (int i = 0; i < t->used[x]; i++, p += 3) {
            r += p[0] * w[i];
            g += p[1] * w[i];
            b += p[2] * w[i];
        }
        out[0] = clip(r);
        out[1] = clip(g);
        out[2] = clip(b);
    }
}

/* One line of `bytes` samples below each other, `in` at the line of tap 0. */
static void down(const int32_t *weight, int used, const uint8_t *in, size_t stride, size_t bytes, int32_t *sums,
                 uint8_t *out) {
    for (size_t i = 0; i < bytes; i++) sums[i] = 1 << (PRECISION - 1);
    for (int k = 0; k < used; k++) {
        const uint8_t *line = in + (size_t)k * stride;
        int32_t w = weight[k];
        for (size_t i = 0; i < bytes; i++) sums[i] += line[i] * w;
    }
    for (size_t i = 0; i < bytes; i++) out[i] = clip(sums[i]);
}

/* The part of the window that lies on the resized picture. */
typedef struct window {
    int x, y, width, height; /* in the resized picture */
    uint8_t *out;            /* its first pixel in the output */
    size_t stride;           /* of the output */
} window;

/* The source's pixels from `left` on, line by line from `top`. */
static const uint8_t *pixel_at(const oct_image *source, int left, int top) {
    return source->rgb + ((size_t)top * (size_t)source->width + (size_t)left) * 3;
}

/* Pillow's affine transform with a scale alone: positions are sums of steps, taken in order. */
static octet_status nearest(const oct_image *source, const oct_resize *resize, const float box[4], const window *w) {
    double step_x = (double)(box[2] - box[0]) / resize->full_width;
    double step_y = (double)(box[3] - box[1]) / resize->full_height;
    double at_x = (double)box[0] + step_x * 0.5, at_y = (double)box[1] + step_y * 0.5;
    int *columns = oct_alloc((size_t)w->width * sizeof *columns);
    if (columns == NULL) return oct_fail_memory();
    for (int x = 0; x < w->x + w->width; x++, at_x += step_x) {
        if (x >= w->x) columns[x - w->x] = at_x < source->width ? (int)at_x : -1;
    }
    for (int y = 0; y < w->y; y++) at_y += step_y;
    for (int y = 0; y < w->height; y++, at_y += step_y) {
        if (at_y >= source->height) continue;
        const uint8_t *in = pixel_at(source, 0, (int)at_y);
        uint8_t *out = w->out + (size_t)y * w->stride;
        for (int x = 0; x < w->width; x++, out += 3) {
            if (columns[x] >= 0) memcpy(out, in + (size_t)columns[x] * 3, 3);
        }
    }
    oct_free(columns);
    return OCTET_OK;
}

/* Lines of the window from a picture whose lines are ready (`in`: the line of source row `first`). */
static octet_status vertical(const taps *t, const uint8_t *in, size_t stride, int first, const window *w) {
    size_t bytes = (size_t)w->width * 3;
    int32_t *sums = oct_alloc(bytes * sizeof *sums);
    if (sums == NULL) return oct_fail_memory();
    for (int y = 0; y < w->height; y++) {
        const uint8_t *from = in + (size_t)(t->start[y] - first) * stride;
        down(t->weight + (size_t)y * (size_t)t->length, t->used[y], from, stride, bytes, sums,
             w->out + (size_t)y * w->stride);
    }
    oct_free(sums);
    return OCTET_OK;
}

/* The source pixels first .. last - 1 that the taps of `count` output pixels read. */
static void span_of(const taps *t, int *first, int *last) {
    *first = t->count > 0 ? t->start[0] : 0;
    *last = *first;
    for (int i = 0; i < t->count; i++) {
        if (t->start[i] < *first) *first = t->start[i];
        if (t->start[i] + t->used[i] > *last) *last = t->start[i] + t->used[i];
    }
}

/* Both passes, the horizontal one first: a line for each source row that is read. */
static octet_status across_then_down(const taps *wide, const taps *tall, const oct_image *source, const window *w) {
    size_t bytes = (size_t)w->width * 3;
    int first, last;
    span_of(tall, &first, &last);
    uint8_t *lines = oct_alloc((size_t)(last - first) * bytes + 1);
    if (lines == NULL) return oct_fail_memory();
    for (int y = first; y < last; y++) across(wide, pixel_at(source, 0, y), lines + (size_t)(y - first) * bytes);
    octet_status status = vertical(tall, lines, bytes, first, w);
    oct_free(lines);
    return status;
}

/* Both passes, the vertical one first: the source columns that are read, a line at a time. */
static octet_status down_then_across(taps *wide, const taps *tall, const oct_image *source, const window *w) {
    int first, last;
    span_of(wide, &first, &last);
    size_t bytes = (size_t)(last - first) * 3, stride = (size_t)source->width * 3;
    int32_t *sums = oct_alloc(bytes * sizeof *sums + 1);
    uint8_t *line = oct_alloc(bytes + 1);
    octet_status status = sums == NULL || line == NULL ? oct_fail_memory() : OCTET_OK;
    for (int x = 0; x < w->width; x++) wide->start[x] -= first;
    for (int y = 0; status == OCTET_OK && y < w->height; y++) {
        const uint8_t *from = pixel_at(source, first, tall->start[y]);
        down(tall->weight + (size_t)y * (size_t)tall->length, tall->used[y], from, stride, bytes, sums, line);
        across(wide, line, w->out + (size_t)y * w->stride);
    }
    oct_free(sums);
    oct_free(line);
    return status;
}

/* Pillow 13 takes the vertical pass first where it removes more than twice the lines that the other removes columns. */
static bool is_down_first(const oct_image *source, const oct_resize *resize) {
    int64_t lines = (int64_t)source->height - resize->full_height;
    int64_t columns = (int64_t)source->width - resize->full_width;
    return lines > 0 && lines > 2 * columns;
}

static octet_status resample(const oct_image *source, const oct_resize *resize, const float box[4], const window *w) {
    bool wide_changes = resize->full_width != source->width || box[0] != 0 || box[2] != (float)resize->full_width;
    bool tall_changes = resize->full_height != source->height || box[1] != 0 || box[3] != (float)resize->full_height;
    taps wide = {0}, tall = {0};
    octet_status status = OCTET_OK;
    if (wide_changes)
        status = make_taps(&wide, source->width, box[0], box[2], resize->full_width, w->x, w->width, resize->filter);
    if (status == OCTET_OK && tall_changes)
        status = make_taps(&tall, source->height, box[1], box[3], resize->full_height, w->y, w->height, resize->filter);
    if (status == OCTET_OK) {
        if (!wide_changes) {
            status = vertical(&tall, pixel_at(source, w->x, 0), (size_t)source->width * 3, 0, w);
        } else if (!tall_changes) {
            for (int y = 0; y < w->height; y++)
                across(&wide, pixel_at(source, 0, w->y + y), w->out + (size_t)y * w->stride);
        } else if (is_down_first(source, resize)) {
            status = down_then_across(&wide, &tall, source, w);
        } else {
            status = across_then_down(&wide, &tall, source, w);
        }
    }
    free_taps(&wide);
    free_taps(&tall);
    return status;
}

static octet_status check_box(const oct_image *source, float box[4]) {
    if (box[0] == 0 && box[1] == 0 && box[2] == 0 && box[3] == 0) {
        box[2] = (float)source->width;
        box[3] = (float)source->height;
    }
    bool inside = box[0] >= 0 && box[1] >= 0 && box[2] <= (float)source->width && box[3] <= (float)source->height &&
                  box[2] - box[0] >= 0 && box[3] - box[1] >= 0;
    if (!inside)
        return oct_fail(OCTET_INVALID_ARGUMENT, "resize box %g, %g, %g, %g leaves the picture of %d x %d pixels",
                        (double)box[0], (double)box[1], (double)box[2], (double)box[3], source->width, source->height);
    return OCTET_OK;
}

/* Integral box of the requested size: a crop, which no filter touches. */
static bool is_crop(const oct_resize *resize, const float box[4]) {
    return box[0] == truncf(box[0]) && box[1] == truncf(box[1]) && box[2] - box[0] == (float)resize->full_width &&
           box[3] - box[1] == (float)resize->full_height;
}

octet_status oct_image_resize(const oct_image *source, const oct_resize *resize, oct_image *out) {
    int width = out->width, height = out->height;
    *out = (oct_image){0};
    float box[4] = {(float)resize->box[0], (float)resize->box[1], (float)resize->box[2], (float)resize->box[3]};
    if (resize->full_width < 1 || resize->full_height < 1 || width < 1 || height < 1)
        return oct_fail(OCTET_INVALID_ARGUMENT, "cannot resize to %d x %d pixels, window %d x %d", resize->full_width,
                        resize->full_height, width, height);
    OCT_TRY(check_box(source, box));
    OCT_TRY(oct_image_make(out, (uint64_t)width, (uint64_t)height));
    int64_t x0 = resize->left > 0 ? resize->left : 0, y0 = resize->top > 0 ? resize->top : 0;
    int64_t x1 = (int64_t)resize->left + width, y1 = (int64_t)resize->top + height;
    if (x1 > resize->full_width) x1 = resize->full_width;
    if (y1 > resize->full_height) y1 = resize->full_height;
    if (x1 - x0 != width || y1 - y0 != height || resize->filter == OCT_FILTER_NEAREST)
        memset(out->rgb, 0, (size_t)width * (size_t)height * 3);
    if (x1 <= x0 || y1 <= y0) return OCTET_OK;
    size_t stride = (size_t)width * 3;
    window w = {(int)x0,
                (int)y0,
                (int)(x1 - x0),
                (int)(y1 - y0),
                out->rgb + (size_t)(y0 - resize->top) * stride + (size_t)(x0 - resize->left) * 3,
                stride};
    octet_status status = OCTET_OK;
    if (is_crop(resize, box)) {
        for (int y = 0; y < w.height; y++)
            memcpy(w.out + (size_t)y * stride, pixel_at(source, w.x + (int)box[0], w.y + (int)box[1] + y),
                   (size_t)w.width * 3);
    } else if (resize->filter == OCT_FILTER_NEAREST) {
        status = nearest(source, resize, box, &w);
    } else {
        status = resample(source, resize, box, &w);
    }
    if (status != OCTET_OK) oct_image_free(out);
    return status;
}
