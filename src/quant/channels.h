/* SPDX-License-Identifier: Apache-2.0 */
/* Exact ranges of each channel of a tensor, beside its histogram: for scales a channel and for smoothing. 8 bytes a
 * channel. Values that are not finite are left out. Any order and any split of the rows give
 * equal values. */
#ifndef OCT_QUANT_CHANNELS_H
#define OCT_QUANT_CHANNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct oct_channels {
    size_t count;
    float *min, *max; /* one allocation; min > max: nothing finite was seen */
} oct_channels;

octet_status oct_channels_new(oct_channels *channels, size_t count);
void oct_channels_free(oct_channels *channels);
/* Rows of `count` values, `stride` floats apart. */
void oct_channels_add(oct_channels *channels, const float *values, size_t rows, size_t stride);
/* Adds `other`, of as many channels, to `channels`. */
void oct_channels_merge(oct_channels *channels, const oct_channels *other);
/* Largest finite magnitude of a channel; 0 if there was none. */
float oct_channels_amax(const oct_channels *channels, size_t channel);

#endif
