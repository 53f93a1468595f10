/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/pareto.h"

#include <math.h>
#include <stdbool.h>

static bool before(const trade *points, size_t a, size_t b) {
    if (points[a].time != points[b].time) return points[a].time < points[b].time;
    if (points[a].loss != points[b].loss) return points[a].loss < points[b].loss;
    return a < b;
}

/* Fronts are short beside the points they are taken from: an insertion into the front so far. */
size_t pareto_front(const trade *points, size_t count, size_t *front) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(points[i].loss) || !isfinite(points[i].time)) continue;
        size_t place = 0, end;
        while (place < kept && before(points, front[place], i)) place++;
        if (place > 0 && points[front[place - 1]].loss <= points[i].loss) continue;
        for (end = place; end < kept && points[front[end]].loss >= points[i].loss;) end++;
        if (end == place) { /* none is beaten: all behind move up */
            for (size_t k = kept++; k > place; k--) front[k] = front[k - 1];
        } else {
            for (size_t k = end; k < kept; k++) front[k - end + place + 1] = front[k];
            kept -= end - place - 1;
        }
        front[place] = i;
    }
    return kept;
}

double pareto_volume(const trade *front, size_t count, trade worst) {
    double volume = 0.0, above = worst.loss;
    for (size_t i = 0; i < count && front[i].time < worst.time; i++) {
        if (front[i].loss >= above) continue;
        volume += (above - front[i].loss) * (worst.time - front[i].time);
        above = front[i].loss;
    }
    return volume;
}

/* The part of the point's rectangle, up to `worst`, that the front leaves free: strips between its points. */
static double free_area(const trade *front, size_t count, trade worst, trade point) {
    double area = 0.0, above = worst.loss;
    size_t i = 0;
    for (; i < count && front[i].time <= point.time; i++) above = fmin(above, front[i].loss);
    for (double from = point.time; above > point.loss && from < worst.time; i++) {
        const double to = i < count ? fmin(front[i].time, worst.time) : worst.time;
        area += (to - from) * (above - point.loss);
        if (i >= count) break;
        above = fmin(above, front[i].loss);
        from = to;
    }
    return area;
}

double pareto_gain(const trade *front, size_t count, trade best, trade worst, trade point) {
    const double wide = worst.time - best.time, high = worst.loss - best.loss;
    if (!(wide > 0.0) || !(high > 0.0)) return 0.0;
    const double area = point.time < worst.time ? free_area(front, count, worst, point) : 0.0;
    if (area > 0.0) return area / (wide * high);
    double least = fmax((point.time - worst.time) / wide, (point.loss - worst.loss) / high);
    bool any = least > 0.0;
    for (size_t i = 0; i < count; i++) {
        const double behind = fmax((point.time - front[i].time) / wide, (point.loss - front[i].loss) / high);
        if (front[i].time > point.time || front[i].loss > point.loss) continue;
        if (!any || behind < least) least = behind;
        any = true;
    }
    return -least;
}
