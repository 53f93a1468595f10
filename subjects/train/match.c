/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cheapest assignment of objects to detection tokens, a picture at a time, for training (the Hungarian method with
 * potentials). Build: cc -O3 -shared -fPIC match.c -o match.so
 */
#include <float.h>
#include <stdint.h>

enum { MOST_TOKENS = 256, MOST_OBJECTS = 64 };

/* cost[tokens][objects]; only the first `count` objects are there. chosen[o] becomes object o's token. */
static void match_picture(const float *cost, int tokens, int objects, int count, int32_t *chosen) {
    float object_price[MOST_OBJECTS + 1] = {0}, token_price[MOST_TOKENS + 1] = {0};
    int owner[MOST_TOKENS + 1] = {0}, before[MOST_TOKENS + 1] = {0}; /* from 1; 0 is nobody */
    for (int o = 1; o <= count; o++) {
        float least[MOST_TOKENS + 1];
        uint8_t used[MOST_TOKENS + 1] = {0};
        for (int t = 0; t <= tokens; t++) least[t] = FLT_MAX;
        int at = 0;
        owner[0] = o;
        do {
            int row = owner[at], next = 0;
            float step = FLT_MAX;
            used[at] = 1;
            for (int t = 1; t <= tokens; t++) {
                if (used[t]) continue;
                float reduced = cost[(t - 1) * objects + row - 1] - object_price[row] - token_price[t];
                if (reduced < least[t]) least[t] = reduced, before[t] = at;
                if (least[t] < step) step = least[t], next = t;
            }
            for (int t = 0; t <= tokens; t++) {
                if (used[t])
                    object_price[owner[t]] += step, token_price[t] -= step;
                else
                    least[t] -= step;
            }
            at = next;
        } while (owner[at] != 0);
        for (; at != 0; at = before[at]) owner[at] = owner[before[at]];
    }
    for (int t = 1; t <= tokens; t++) {
        if (owner[t]) chosen[owner[t] - 1] = t - 1;
    }
}

/* cost[pictures][tokens][objects], counts[pictures] -> chosen[pictures][objects]. Costs must be finite. */
void match(const float *cost, int pictures, int tokens, int objects, const int32_t *counts, int32_t *chosen) {
    for (int p = 0; p < pictures; p++)
        match_picture(cost + (int64_t)p * tokens * objects, tokens, objects, counts[p], chosen + (int64_t)p * objects);
}
