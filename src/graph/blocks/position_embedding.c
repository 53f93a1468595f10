/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/blocks/position_embedding.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Four neighbours of one place along an axis, and how much of each. */
typedef struct cubic_taps {
    int64_t index[4];
    float weight[4];
} cubic_taps;

#define CUBIC (-0.75f)

static float cubic_near(float x) { /* |x| <= 1 */
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1;
}

static float cubic_far(float x) { /* 1 < |x| < 2 */
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC;
}

static cubic_taps taps_at(int64_t place, int64_t in, int64_t out) {
    float scale = (float)in / (float)out;
    float centre = scale * ((float)place + 0.5f) - 0.5f;
    float whole = floorf(centre), t = centre - whole;
    cubic_taps taps = {.weight = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(1 - t + 1)}};
    for (int i = 0; i < 4; i++) {
        int64_t index = (int64_t)whole - 1 + i;
        taps.index[i] = index < 0 ? 0 : index > in - 1 ? in - 1 : index;
    }
    return taps;
}

octet_status oct_position_resize(const oct_position_grid *grid, const float *from, int64_t rows, int64_t columns,
                                 float **to) {
    int64_t channels = grid->channels;
    size_t token = (size_t)channels * sizeof(float);
    *to = NULL;
    float *result = oct_alloc((size_t)(grid->first + rows * columns + grid->last) * token);
    if (result == NULL) return oct_fail_memory();
    const float *patches = from + grid->first * channels;
    float *out = result + grid->first * channels;
    memcpy(result, from, (size_t)grid->first * token);
    memcpy(out + rows * columns * channels, patches + grid->rows * grid->columns * channels,
           (size_t)grid->last * token);
    for (int64_t y = 0; y < rows; y++) {
        cubic_taps down = taps_at(y, grid->rows, rows);
        for (int64_t x = 0; x < columns; x++) {
            cubic_taps across = taps_at(x, grid->columns, columns);
            for (int64_t c = 0; c < channels; c++) {
                float sum = 0;
                for (int i = 0; i < 4; i++) {
                    const float *row = patches + down.index[i] * grid->columns * channels + c;
                    float part = row[across.index[0] * channels] * across.weight[0];
                    for (int j = 1; j < 4; j++) part += row[across.index[j] * channels] * across.weight[j];
                    sum = i == 0 ? part * down.weight[0] : sum + part * down.weight[i];
                }
                out[(y * columns + x) * channels + c] = sum;
            }
        }
    }
    *to = result;
    return OCTET_OK;
}
