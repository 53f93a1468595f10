/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the fused block's kernel, part by part: the same in C, which must know whether a device has it, and
 * in the kernel. */
#ifndef OCT_CUDA_BLOCK_LAYOUT_H
#define OCT_CUDA_BLOCK_LAYOUT_H

#ifdef __CUDACC__
#    define OCT_BLOCK_FUNCTION static __host__ __device__ __forceinline__
#else
#    define OCT_BLOCK_FUNCTION static inline
#endif

/* A row of block_variants.def. */
typedef struct oct_block_shape {
    int stem, stride, tile_h, tile_w, chunk, warps, wn, mt, nt, segment;
} oct_block_shape;

typedef struct oct_block_layout {
    int row_bytes, row_pitch;   /* the input: whole steps of 32 bytes, and from row to row */
    int chunk_pitch;            /* of the expanded and the middle map */
    int table, x, wide, middle; /* offsets */
    int weights, weights_size;  /* two of them; in each: */
    int expand, project, depthwise, vectors;
    int size;
} oct_block_layout;

/* `bytes` of an element; inputs, outputs; the map that the depthwise reads. */
OCT_BLOCK_FUNCTION oct_block_layout oct_block_layout_of(oct_block_shape s, int bytes, int inputs, int outputs, int in_h,
                                                        int in_w) {
    oct_block_layout y;
    const int halo_h = (s.tile_h - 1) * s.stride + 3, halo_w = (s.tile_w - 1) * s.stride + 3;
    const int rows = ((halo_h < in_h ? halo_h : in_h) * (halo_w < in_w ? halo_w : in_w) + 15) / 16 * 16;
    const int tile_rows = (s.tile_h * s.tile_w + 15) / 16 * 16;
    y.row_bytes = (inputs * bytes + 31) / 32 * 32;
    y.row_pitch = y.row_bytes + 16;
    y.chunk_pitch = s.chunk * bytes + 16;
    y.table = 0;
    y.x = y.table + rows * 4;
    y.wide = y.x + rows * y.row_pitch;
    y.middle = y.wide + halo_h * halo_w * y.chunk_pitch;
    y.weights = y.middle + tile_rows * y.chunk_pitch;
    y.expand = 0;
    y.project = y.expand + s.chunk * y.row_pitch;
    y.depthwise = y.project + s.wn * s.nt * 8 * y.chunk_pitch; /* rows for whole n-tiles of all warps */
    y.vectors = y.depthwise + s.chunk * (bytes == 2 ? 18 : 12);
    y.weights_size = y.vectors + 4 * s.chunk * 4;
    y.size = y.weights + 2 * y.weights_size;
    const int sums = y.x + tile_rows * (outputs + 4) * 4; /* at the end, over everything but the table */
    y.size = y.size > sums ? y.size : sums;
    return y;
}

#endif
