/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/channels.h"

#include <float.h>

#include "base/alloc.h"

octet_status oct_channels_new(oct_channels *channels, size_t count) {
    *channels = (oct_channels){0};
    size_t size = 0;
    if (!oct_mul_size(count, 2 * sizeof *channels->min, &size)) return oct_fail_memory();
    channels->min = oct_alloc(size);
    if (channels->min == NULL) return oct_fail_memory();
    channels->max = channels->min + count;
    channels->count = count;
    for (size_t i = 0; i < count; i++) {
        channels->min[i] = FLT_MAX;
        channels->max[i] = -FLT_MAX;
    }
    return OCTET_OK;
}

void oct_channels_free(oct_channels *channels) {
    oct_free(channels->min);
    *channels = (oct_channels){0};
}

void oct_channels_add(oct_channels *channels, const float *values, size_t rows, size_t stride) {
    float *restrict min = channels->min, *restrict max = channels->max;
    for (size_t row = 0; row < rows; row++) {
        const float *restrict x = values + row * stride;
        for (size_t i = 0; i < channels->count; i++) {
            /* NaN and infinity fail the first comparison of one side or the other */
            const float low = x[i] >= -FLT_MAX ? x[i] : FLT_MAX, high = x[i] <= FLT_MAX ? x[i] : -FLT_MAX;
            min[i] = low < min[i] ? low : min[i];
            max[i] = high > max[i] ? high : max[i];
        }
    }
}

void oct_channels_merge(oct_channels *channels, const oct_channels *other) {
    for (size_t i = 0; i < channels->count; i++) {
        if (other->min[i] < channels->min[i]) channels->min[i] = other->min[i];
        if (other->max[i] > channels->max[i]) channels->max[i] = other->max[i];
    }
}

float oct_channels_amax(const oct_channels *channels, size_t channel) {
    const float min = channels->min[channel], max = channels->max[channel];
    if (min > max) return 0;
    return (max > -min ? max : -min) + 0.0f;
}
