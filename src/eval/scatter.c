/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/scatter.h"

#include <math.h>
#include <stdbool.h>

/* False: not a number in one of them. */
static bool spread(json_t *const *reports, size_t count, const char *key, double out[4]) {
    double sum = 0.0, squares = 0.0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(reports[i], key);
        if (!json_is_number(value)) return false;
        const double x = json_number_value(value);
        sum += x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    const double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        const double x = json_number_value(json_object_get(reports[i], key)) - mean;
        squares += x * x;
    }
    out[0] = mean;
    out[1] = sqrt(squares / (double)(count - 1));
    out[2] = low;
    out[3] = high;
    return true;
}

json_t *scatter_of(json_t *const *reports, size_t count) {
    const char *key;
    json_t *value, *out = json_object();
    json_object_set_new(out, "runs", json_integer((json_int_t)count));
    json_object_foreach(reports[0], key, value) {
        double s[4];
        if (!spread(reports, count, key, s)) continue;
        json_object_set_new(out, key,
                            json_pack("{s:f, s:f, s:f, s:f}", "mean", s[0], "sd", s[1], "min", s[2], "max", s[3]));
    }
    return out;
}
