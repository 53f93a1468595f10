/* SPDX-License-Identifier: Apache-2.0 */
#include "study/report_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/report_page.h"

#define WIDTH 700.0
#define LEFT 70.0
#define RIGHT 20.0
#define TOP 16.0
#define HEIGHT 360.0
#define BOTTOM 48.0 /* of a plot with an axis below */
#define LABELS 400  /* names that are kept apart */

typedef struct axis {
    double low, high, step;
    double from, to; /* coordinates of low and high */
} axis;

/* Ticks at 1, 2 or 5 times a power of ten, about five of them. */
static axis make_axis(double low, double high, double from, double to) {
    if (!(high > low)) {
        double margin = fabs(low) > 0.0 ? fabs(low) * 0.05 : 1.0;
        low -= margin;
        high += margin;
    }
    double raw = (high - low) / 5.0, power = pow(10.0, floor(log10(raw)));
    double step = raw / power < 1.5   ? power
                  : raw / power < 3.5 ? 2.0 * power
                  : raw / power < 7.5 ? 5.0 * power
                                      : 10.0 * power;
    return (axis){floor(low / step) * step, ceil(high / step) * step, step, from, to};
}

static double place(const axis *a, double value) {
    return a->from + (value - a->low) / (a->high - a->low) * (a->to - a->from);
}

static void start(oct_text *svg, double height, const char *title) {
    oct_text_printf(svg, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", WIDTH, height);
    page_escape_html(svg, title);
    oct_text_puts(svg, "\">");
}

static void label(oct_text *svg, double x, double y, const char *anchor, const char *class, const char *text) {
    oct_text_printf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, class);
    page_escape_html(svg, text);
    oct_text_puts(svg, "</text>");
}

static void line(oct_text *svg, double x0, double y0, double x1, double y1, const char *class) {
    oct_text_printf(svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>", x0, y0, x1, y1, class);
}

static void tick_text(double value, double step, char text[32]) {
    if (fabs(value) < step * 1e-9) value = 0.0;
    int digits = step >= 1.0 ? 0 : (int)ceil(-log10(step) - 1e-9);
    if (digits > 6)
        (void)snprintf(text, 32, "%.1e", value);
    else
        (void)snprintf(text, 32, "%.*f", digits, value);
}

static void x_axis(oct_text *svg, const axis *a, double top, double bottom, const char *title) {
    char text[32];
    for (double v = a->low; v <= a->high + a->step * 0.5; v += a->step) {
        line(svg, place(a, v), top, place(a, v), bottom, "axis");
        tick_text(v, a->step, text);
        label(svg, place(a, v), bottom + 17, "middle", "soft", text);
    }
    label(svg, (a->from + a->to) / 2, bottom + 38, "middle", "", title);
}

static void y_axis(oct_text *svg, const axis *a, double left, double right) {
    char text[32];
    for (double v = a->low; v <= a->high + a->step * 0.5; v += a->step) {
        line(svg, left, place(a, v), right, place(a, v), "axis");
        tick_text(v, a->step, text);
        label(svg, left - 7, place(a, v) + 4, "end", "soft", text);
    }
}

/* ---- points */

static bool is_drawn(const plot_point *p) {
    return isfinite(p->x) && isfinite(p->y);
}

static void bounds(const plot_point *points, size_t count, double x[2], double y[2]) {
    x[0] = y[0] = INFINITY;
    x[1] = y[1] = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        const plot_point *p = &points[i];
        if (!is_drawn(p)) continue;
        x[0] = fmin(x[0], p->x);
        x[1] = fmax(x[1], p->x);
        y[0] = fmin(y[0], fmin(p->y, p->low)); /* fmin passes a NaN over */
        y[1] = fmax(y[1], fmax(p->y, p->high));
    }
}

/* Where a name can stand without lying on an earlier one. */
static double free_line(const double (*taken)[3], size_t count, double from, double to, double y) {
    for (int step = 0; step < 40; step++) {
        double at = y + (step % 2 == 0 ? 1.0 : -1.0) * 8.0 * ((step + 1) / 2);
        bool hit = false;
        for (size_t i = 0; i < count && !hit; i++)
            hit = from < taken[i][1] && to > taken[i][0] && fabs(at - taken[i][2]) < 14.0;
        if (!hit) return at;
    }
    return y;
}

void plot_scatter(oct_text *svg, const plot_point *points, size_t count, const char *x_title, const char *y_title) {
    double x[2], y[2], taken[LABELS][3];
    size_t named = 0;
    bounds(points, count, x, y);
    if (!(x[1] >= x[0])) return;
    double bottom = HEIGHT - BOTTOM, top = TOP + 18;
    axis across = make_axis(x[0], x[1], LEFT, WIDTH - RIGHT), up = make_axis(y[0], y[1], bottom, top);
    start(svg, HEIGHT, y_title);
    label(svg, 4, TOP, "start", "", y_title);
    x_axis(svg, &across, top, bottom, x_title);
    y_axis(svg, &up, LEFT, WIDTH - RIGHT);
    for (size_t i = 0; i < count; i++) {
        const plot_point *p = &points[i];
        if (!is_drawn(p)) continue;
        double px = place(&across, p->x), py = place(&up, p->y);
        if (isfinite(p->low) && isfinite(p->high)) line(svg, px, place(&up, p->low), px, place(&up, p->high), "span");
        oct_text_printf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" class=\"%s\" data-id=\"%.*s\"/>", px, py,
                        p->other ? "other" : "mark", PAGE_ID, p->id);
        double width = 7.5 * (double)strlen(p->label);
        bool left = px + 9 + width > WIDTH;
        double from = left ? px - 9 - width : px + 9;
        double at = free_line((const double(*)[3])taken, named, from, from + width, py + 4);
        label(svg, left ? px - 9 : px + 9, at, left ? "end" : "start", "", p->label);
        if (named < LABELS) {
            taken[named][0] = from;
            taken[named][1] = from + width;
            taken[named++][2] = at;
        }
    }
    oct_text_puts(svg, "</svg>");
}

/* ---- bars */

void plot_bars(oct_text *svg, const plot_point *points, size_t count, const char *title) {
    double x[2], y[2], wide = 0.0;
    size_t drawn = 0;
    bounds(points, count, x, y);
    for (size_t i = 0; i < count; i++) {
        drawn += is_drawn(&points[i]);
        wide = fmax(wide, 7.5 * (double)strlen(points[i].label));
    }
    if (drawn == 0) return;
    double left = fmin(fmax(wide + 12.0, LEFT), 260.0), row = 24.0, bottom = TOP + row * (double)drawn, at = TOP;
    axis across = make_axis(fmin(y[0], 0.0), fmax(y[1], 0.0), left, WIDTH - RIGHT - 20);
    start(svg, bottom + BOTTOM, title);
    x_axis(svg, &across, TOP, bottom, title);
    for (size_t i = 0; i < count; i++) {
        const plot_point *p = &points[i];
        if (!is_drawn(p)) continue;
        double zero = place(&across, 0.0), end = place(&across, p->y), middle = at + row / 2;
        label(svg, left - 8, middle + 4, "end", "", p->label);
        oct_text_printf(
            svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\" data-id=\"%.*s\"/>",
            fmin(zero, end), at + 4, fmax(fabs(end - zero), 1.0), row - 8, p->other ? "other" : "mark", PAGE_ID, p->id);
        if (isfinite(p->low) && isfinite(p->high))
            line(svg, place(&across, p->low), middle, place(&across, p->high), middle, "span");
        at += row;
    }
    oct_text_puts(svg, "</svg>");
}

/* ---- histogram */

#define BINS 32

void plot_histogram(oct_text *svg, const double *values, size_t count, const char *title) {
    double low = INFINITY, high = -INFINITY;
    size_t bins[BINS + 1] = {0}, most = 1;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || values[i] <= 0.0) continue;
        low = fmin(low, log10(values[i]));
        high = fmax(high, log10(values[i]));
    }
    if (!(high >= low)) return;
    low = floor(low);
    high = fmax(ceil(high), low + 1.0);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        double at = values[i] > 0.0 ? (log10(values[i]) - low) / (high - low) * BINS : -1.0;
        size_t bin = values[i] > 0.0 ? 1 + (size_t)fmin(fmax(at, 0.0), BINS - 1) : 0;
        if (++bins[bin] > most) most = bins[bin];
    }
    double bottom = 240.0 - BOTTOM, top = TOP + 4, from = LEFT + 24;
    axis up = make_axis(0.0, (double)most, bottom, top);
    double width = (WIDTH - RIGHT - from) / BINS;
    start(svg, 240.0, title);
    y_axis(svg, &up, LEFT, WIDTH - RIGHT);
    for (int b = 0; b <= BINS; b++) {
        double x = b == 0 ? LEFT : from + width * (b - 1), y = place(&up, (double)bins[b]);
        if (bins[b] > 0)
            oct_text_printf(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>", x + 1, y,
                            width - 2, bottom - y, b == 0 ? "other" : "mark");
    }
    label(svg, LEFT + width / 2, bottom + 17, "middle", "soft", "0");
    for (double power = low; power <= high; power += fmax(1.0, ceil((high - low) / 10.0))) {
        char text[32];
        (void)snprintf(text, sizeof text, "1e%g", power);
        label(svg, from + (power - low) / (high - low) * width * BINS, bottom + 17, "middle", "soft", text);
    }
    label(svg, (LEFT + WIDTH - RIGHT) / 2, bottom + 38, "middle", "", title);
    oct_text_puts(svg, "</svg>");
}
