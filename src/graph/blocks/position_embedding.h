/* SPDX-License-Identifier: Apache-2.0 */
/* Position embeddings of tokens [first, then rows x columns of patches, then last], fitted to another number of
 * patches: bicubic with a = -0.75, corners not aligned, no antialiasing, taps clamped to the border, in float32, rows
 * before columns; the first and last tokens stay. It is what PyTorch's interpolate(mode="bicubic", align_corners=False)
 * does. */
#ifndef OCT_GRAPH_BLOCKS_POSITION_EMBEDDING_H
#define OCT_GRAPH_BLOCKS_POSITION_EMBEDDING_H

#include <stdint.h>

#include "base/error.h"

typedef struct oct_position_grid {
    int64_t first, last; /* tokens before and after the patches */
    int64_t rows, columns;
    int64_t channels;
} oct_position_grid;

/* `from` has grid's layout; *to gets first + rows * columns + last tokens: oct_alloc'd, caller frees, NULL on failure.
 */
octet_status oct_position_resize(const oct_position_grid *grid, const float *from, int64_t rows, int64_t columns,
                                 float **to);

#endif
