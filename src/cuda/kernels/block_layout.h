/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the fused block's kernel, part by part; made on the host, where it is also known whether a device
 * has it. The weights of a chunk lie in device memory as they will in shared memory, so that one bulk copy brings them.
 */
#ifndef OCT_CUDA_BLOCK_LAYOUT_H
#define OCT_CUDA_BLOCK_LAYOUT_H

#include <stdint.h>

/* A row of block_variants.def. */
typedef struct oct_block_shape {
    int stem, stride, tile_h, tile_w, chunk, warps, resident, wn, mt, nt, half;
} oct_block_shape;

#define OCT_BLOCK_STEM_INPUTS 48 /* a row of the window: 4 pixels of 4 channels, the last of each not there */

typedef struct oct_block_layout {
    int32_t row_bytes, row_pitch;   /* the input: whole steps of 32 bytes, and from row to row */
    int32_t table, x, wide, middle; /* offsets */
    int32_t weights, weights_size;  /* two of them, from one to the next; in each from 0 the expansion's, then: */
    int32_t depthwise, vectors, project;
    int32_t image; /* bytes of a chunk's weights in device memory */
    int32_t size;
} oct_block_layout;

/* Bytes of a row of a chunk: whole steps of 32; and from row to row. */
#define OCT_BLOCK_CHUNK_BYTES(chunk, bytes) (((chunk) * (bytes) + 31) / 32 * 32)
#define OCT_BLOCK_CHUNK_PITCH(chunk, bytes) (OCT_BLOCK_CHUNK_BYTES(chunk, bytes) + 16)
/* Pixels of a row of the stem's patch, and rows of it, for a halo of so many. */
#define OCT_BLOCK_PATCH_WIDTH(halo_w) (2 * (halo_w) + 2)
#define OCT_BLOCK_PATCH_HEIGHT(halo_h) (2 * (halo_h) + 1)

#endif
