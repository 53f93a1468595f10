/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings as SVG text that stands inside a page and takes its colours from the page's style sheet. All coordinates are
 * of a view 700 wide. Values that are not finite are left out. */
#ifndef OCT_STUDY_REPORT_PLOT_H
#define OCT_STUDY_REPORT_PLOT_H

#include "base/text.h"

typedef struct plot_point {
    double x, y;
    double low, high; /* of y; NaN: no interval */
    const char *label;
    const char *id; /* of the evidence; may be "" */
    bool other;     /* in the second colour */
} plot_point;

/* Points with their names. */
void plot_scatter(oct_text *svg, const plot_point *points, size_t count, const char *x_title, const char *y_title);
/* A bar a point, from zero to y, one below the other, its interval on it. */
void plot_bars(oct_text *svg, const plot_point *points, size_t count, const char *title);
/* Bins of equal width on a logarithmic axis; values of zero or less are counted in a bin of their own at the left. */
void plot_histogram(oct_text *svg, const double *values, size_t count, const char *title);

#endif
