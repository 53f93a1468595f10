/* SPDX-License-Identifier: Apache-2.0 */
/* The inverted-residual block in one kernel: the expanded map never leaves the chip.
 *
 * A thread block makes a tile of the output of one picture. It holds the tile's input with its halo in shared memory
 * and walks over chunks of the expanded channels:
 *
 *     expand     input [pixels with halo][inputs] x weight, tensor cores -> `wide` in shared memory, rounded as stored
 *     depthwise  3 x 3 over `wide` -> `middle`, rounded as stored
 *     project    middle [pixels][chunk] x weight, tensor cores, summed in registers over the chunks
 *
 * With split > 1 the blocks of a cluster share a tile, each with some of the chunks, and add up their sums in order of
 * rank through distributed shared memory. Pixels outside the map are zeros of the expanded map: they are never written
 * and were zeroed at the start. fp16: sums in float32. int8: the rule of graph/stored.h, exact.
 *
 * Operands are moved by bytes: a step of mma.sync takes 32 bytes of a row, 16 halves or 32 codes. Rows in shared memory
 * are 16 bytes longer than an odd multiple of 16, so that eight rows lie in different banks. */
#include <cooperative_groups.h>

#include "cuda/kernels/block_layout.h"
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/tensor.cuh"
#include "cuda/kernels/view.cuh"

namespace {

namespace cg = cooperative_groups;

struct half_format {
    using element = __half;
    using sum = float;
    static constexpr int bytes = 2;
};
struct int8_format {
    using element = int8_t;
    using sum = int;
    static constexpr int bytes = 1;
};

template <int STEM, int STRIDE, int TH, int TW, int CHUNK, int WARPS, int WN, int MT, int NT, int SEGMENT>
struct shape {
    static constexpr int stem = STEM, stride = STRIDE, tile_h = TH, tile_w = TW, chunk = CHUNK, warps = WARPS, mt = MT,
                         nt = NT, segment = SEGMENT;
    static constexpr int threads = WARPS * 32, wm = WARPS / WN;
    static constexpr int halo_h = (TH - 1) * STRIDE + 3, halo_w = (TW - 1) * STRIDE + 3;
    static constexpr int tile_rows = (TH * TW + 15) / 16 * 16; /* pixels of the output, whole m-tiles */
    static __host__ __device__ __forceinline__ oct_block_shape shape_row() {
        return {STEM, STRIDE, TH, TW, CHUNK, WARPS, WN, MT, NT, SEGMENT};
    }
    static_assert(wm * MT * 16 >= tile_rows, "m-tiles");
    static_assert(TW % SEGMENT == 0, "segments");
};

using layout = oct_block_layout;
template <class F, class S> __host__ __device__ __forceinline__ layout layout_of(const oct_block_launch &l) {
    return oct_block_layout_of(S::shape_row(), F::bytes, l.inputs, l.outputs, l.in_h, l.in_w);
}

/* Where a tile lies: the part of the map under its halo that is inside the map. */
struct region {
    int picture, tile_y, tile_x; /* first output pixel */
    int halo_y, halo_x;          /* of the map, may be -1 */
    int top, left, height, width;
};

template <class S> __device__ region region_of(const oct_block_launch &l, int tile) {
    region r;
    const int across = (l.out_w + S::tile_w - 1) / S::tile_w;
    r.picture = blockIdx.y;
    r.tile_y = tile / across * S::tile_h;
    r.tile_x = tile % across * S::tile_w;
    r.halo_y = r.tile_y * S::stride - 1;
    r.halo_x = r.tile_x * S::stride - 1;
    r.top = max(r.halo_y, 0);
    r.left = max(r.halo_x, 0);
    r.height = min(r.halo_y + S::halo_h, l.in_h) - r.top;
    r.width = min(r.halo_x + S::halo_w, l.in_w) - r.left;
    return r;
}

/* A chunk's weights to shared memory: the caller commits and waits. */
template <class F, class S>
__device__ void load_weights(const oct_block_launch &l, const layout &y, unsigned char *to, int first) {
    const int pieces = y.row_bytes / 16;
    const char *expand = static_cast<const char *>(l.expand) + static_cast<size_t>(first) * l.input_stride * F::bytes;
    for (int i = threadIdx.x; i < S::chunk * pieces; i += S::threads) {
        const int row = i / pieces, at = i % pieces * 16;
        copy_async16(to + y.expand + row * y.row_pitch + at,
                     expand + static_cast<size_t>(row) * l.input_stride * F::bytes + at);
    }
    constexpr int part = S::chunk * F::bytes / 16;
    const char *project = static_cast<const char *>(l.project) + static_cast<size_t>(first) * F::bytes;
    for (int i = threadIdx.x; i < l.outputs * part; i += S::threads) {
        const int row = i / part, at = i % part * 16;
        copy_async16(to + y.project + row * y.chunk_pitch + at,
                     project + static_cast<size_t>(row) * l.expanded_channels * F::bytes + at);
    }
    /* depthwise: [9] halves or [3] words a channel, tap by tap over the channels */
    constexpr int taps = F::bytes == 2 ? 9 : 3, width = S::chunk * (F::bytes == 2 ? 2 : 4) / 16;
    const char *depthwise = static_cast<const char *>(l.depthwise);
    for (int i = threadIdx.x; i < taps * width; i += S::threads) {
        const int tap = i / width, at = i % width * 16;
        constexpr int word = F::bytes == 2 ? 2 : 4;
        copy_async16(to + y.depthwise + tap * S::chunk * word + at,
                     depthwise + (static_cast<size_t>(tap) * l.expanded_channels + first) * word + at);
    }
    const float *const vectors[4] = {l.expand_bias, l.depthwise_bias, l.expand_scales, l.depthwise_scales};
    constexpr int quarter = S::chunk / 4;
#pragma unroll
    for (int v = 0; v < (F::bytes == 2 ? 2 : 4); v++)
        for (int i = threadIdx.x; i < quarter; i += S::threads)
            copy_async16(to + y.vectors + v * S::chunk * 4 + i * 16, vectors[v] + first + i * 4);
}

/* The tile's input with its halo, and for each of its pixels where its row of `wide` begins. */
template <class F, class S>
__device__ void load_input(const oct_block_launch &l, const layout &y, const region &r, unsigned char *shared) {
    using element = typename F::element;
    const int pixels = r.height * r.width;
    int *table = reinterpret_cast<int *>(shared + y.table);
    for (int i = threadIdx.x; i < (pixels + 15) / 16 * 16; i += S::threads) {
        const int py = i / r.width + r.top - r.halo_y, px = i % r.width + r.left - r.halo_x;
        table[i] = i < pixels ? (py * S::halo_w + px) * y.chunk_pitch : -1;
    }
    if (S::stem) {
        /* the window of 27 numbers of each pixel, zeros up to 32 */
        const element *x = static_cast<const element *>(l.x.data);
        const int h = l.in_h * 2, w = l.in_w * 2;
        for (int i = threadIdx.x; i < pixels * 10; i += S::threads) {
            const int pixel = i / 10, tap = i % 10;
            element *to = reinterpret_cast<element *>(shared + y.x + pixel * y.row_pitch) + tap * 3;
            const int iy = (pixel / r.width + r.top) * 2 - 1 + tap / 3,
                      ix = (pixel % r.width + r.left) * 2 - 1 + tap % 3;
            const bool inside = tap < 9 && iy >= 0 && iy < h && ix >= 0 && ix < w;
            const element *from = x + ((static_cast<int64_t>(r.picture) * h + iy) * w + ix) * l.x.stride;
            for (int c = 0; c < (tap < 9 ? 3 : 5); c++) to[c] = inside ? from[c] : element(0);
        }
        return;
    }
    const int whole = l.inputs * F::bytes, step = whole % 16 == 0 ? 16 : 8; /* rows of 24 codes are 24 bytes */
    const int pieces = y.row_bytes / step;
    const char *x = static_cast<const char *>(l.x.data);
    for (int i = threadIdx.x; i < pixels * pieces; i += S::threads) {
        const int pixel = i / pieces, at = i % pieces * step;
        unsigned char *to = shared + y.x + pixel * y.row_pitch + at;
        const int64_t row =
            (static_cast<int64_t>(r.picture) * l.in_h + pixel / r.width + r.top) * l.in_w + pixel % r.width + r.left;
        const char *from = x + row * l.x.stride * F::bytes + at;
        if (at >= whole) {
            for (int j = 0; j < step; j += 8) *reinterpret_cast<uint2 *>(to + j) = make_uint2(0, 0);
        } else if (step == 16) {
            copy_async16(to, from);
        } else {
            copy_async8(to, from);
        }
    }
}

/* Limits that an activation cuts to. */
struct limits {
    float low, high;
};
__device__ __forceinline__ limits limits_of(int activation) {
    return {activation == OCT_ACTIVATION_NONE ? -INFINITY : 0.0f, activation == OCT_ACTIVATION_RELU6 ? 6.0f : INFINITY};
}

/* Two neighbours as stored: halves, or codes. */
__device__ __forceinline__ uint32_t round_pair(float a, float b, limits cut) {
    return clamp_halves(pack_halves(a, b), cut.low, cut.high);
}
__device__ __forceinline__ uint32_t code_of(int sum, float scale, float bias, limits cut, float inverse) {
    const float v = fminf(fmaxf(fmaf(static_cast<float>(sum), scale, bias), cut.low), cut.high);
    /* adding 1.5 * 2^23 rounds half to even and leaves the code in the low byte */
    return __float_as_uint(fminf(fmaxf(v * inverse, -127.0f), 127.0f) + 12582912.0f) & 0xffu;
}

/* Rounds an accumulator's two rows of two neighbours into `wide`. */
template <class S>
__device__ __forceinline__ void store_wide(unsigned char *wide, const int *table, int row, int column,
                                           const float (&d)[4], const float *vectors, limits cut, float) {
    const float2 bias = *reinterpret_cast<const float2 *>(vectors + column);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int at = table[row + 8 * i];
        if (at >= 0)
            *reinterpret_cast<uint32_t *>(wide + at + column * 2) =
                round_pair(d[2 * i] + bias.x, d[2 * i + 1] + bias.y, cut);
    }
}
template <class S>
__device__ __forceinline__ void store_wide(unsigned char *wide, const int *table, int row, int column,
                                           const int (&d)[4], const float *vectors, limits cut, float inverse) {
    const float2 bias = *reinterpret_cast<const float2 *>(vectors + column);
    const float2 scale = *reinterpret_cast<const float2 *>(vectors + 2 * S::chunk + column);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int at = table[row + 8 * i];
        if (at >= 0)
            *reinterpret_cast<uint16_t *>(wide + at + column) =
                static_cast<uint16_t>(code_of(d[2 * i], scale.x, bias.x, cut, inverse) |
                                      code_of(d[2 * i + 1], scale.y, bias.y, cut, inverse) << 8);
    }
}

template <class F, class S>
__device__ void expand(const oct_block_launch &l, const layout &y, int pixels, unsigned char *shared,
                       const unsigned char *weights) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tiles = (pixels + 15) / 16;
    const int *table = reinterpret_cast<const int *>(shared + y.table);
    const float *vectors = reinterpret_cast<const float *>(weights + y.vectors);
    const limits cut = limits_of(l.expand_activation);
    constexpr int NTILES = S::chunk / 8;
    const uint32_t b_row = shared_address(weights + y.expand) + matrix_b_offset(lane, y.row_pitch);
    for (int tile = warp; tile < tiles; tile += S::warps) {
        typename F::sum d[NTILES][4] = {};
        const uint32_t a_row =
            shared_address(shared + y.x) + tile * 16 * y.row_pitch + matrix_a_offset(lane, y.row_pitch);
        for (int k = 0; k < y.row_bytes; k += 32) {
            uint32_t a[4];
            load_matrix(a, a_row + k);
#pragma unroll
            for (int n = 0; n < NTILES; n += 2) {
                uint32_t b[4];
                load_matrix(b, b_row + n * 8 * y.row_pitch + k);
                multiply(d[n], a, b[0], b[1]);
                multiply(d[n + 1], a, b[2], b[3]);
            }
        }
#pragma unroll
        for (int n = 0; n < NTILES; n++)
            store_wide<S>(shared + y.wide, table, tile * 16 + lane / 4, n * 8 + lane % 4 * 2, d[n], vectors, cut,
                          l.expanded.inverse);
    }
}

/* fp16: a thread takes two channels of SEGMENT neighbouring outputs; sums in float32. */
template <class S>
__device__ void depthwise(half_format, const oct_block_launch &l, const layout &y, unsigned char *shared,
                          const unsigned char *weights) {
    constexpr int pairs = S::chunk / 2, across = S::tile_w / S::segment;
    constexpr int columns = (S::segment - 1) * S::stride + 3;
    const limits cut = limits_of(l.depthwise_activation);
    for (int i = threadIdx.x; i < pairs * across * S::tile_h; i += S::threads) {
        const int pair = i % pairs, x = i / pairs % across * S::segment, row = i / pairs / across;
        float2 w[9];
#pragma unroll
        for (int t = 0; t < 9; t++)
            w[t] =
                __half22float2(*reinterpret_cast<const __half2 *>(weights + y.depthwise + t * S::chunk * 2 + pair * 4));
        const float2 bias = *reinterpret_cast<const float2 *>(weights + y.vectors + S::chunk * 4 + pair * 8);
        const unsigned char *from =
            shared + y.wide + (row * S::stride * S::halo_w + x * S::stride) * y.chunk_pitch + pair * 4;
        unsigned char *to = shared + y.middle + (row * S::tile_w + x) * y.chunk_pitch + pair * 4;
        float2 sums[S::segment];
#pragma unroll
        for (int s = 0; s < S::segment; s++) sums[s] = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int c = 0; c < columns; c++) {
            float2 v[3];
#pragma unroll
            for (int t = 0; t < 3; t++)
                v[t] = __half22float2(*reinterpret_cast<const __half2 *>(from + (t * S::halo_w + c) * y.chunk_pitch));
#pragma unroll
            for (int s = 0; s < S::segment; s++) {
                const int j = c - s * S::stride;
                if (j < 0 || j > 2) continue;
#pragma unroll
                for (int t = 0; t < 3; t++) {
                    sums[s].x = fmaf(v[t].x, w[t * 3 + j].x, sums[s].x);
                    sums[s].y = fmaf(v[t].y, w[t * 3 + j].y, sums[s].y);
                }
            }
        }
#pragma unroll
        for (int s = 0; s < S::segment; s++)
            *reinterpret_cast<uint32_t *>(to + s * y.chunk_pitch) =
                round_pair(sums[s].x + bias.x, sums[s].y + bias.y, cut);
    }
}

/* int8: four channels a thread. The three rows of a column become a word a channel, times three weights by dp4a. */
template <class S>
__device__ void depthwise(int8_format, const oct_block_launch &l, const layout &y, unsigned char *shared,
                          const unsigned char *weights) {
    constexpr int words = S::chunk / 4, across = S::tile_w / S::segment;
    constexpr int columns = (S::segment - 1) * S::stride + 3;
    const limits cut = limits_of(l.depthwise_activation);
    for (int i = threadIdx.x; i < words * across * S::tile_h; i += S::threads) {
        const int word = i % words, x = i / words % across * S::segment, row = i / words / across;
        uint4 w[3];
#pragma unroll
        for (int j = 0; j < 3; j++)
            w[j] = *reinterpret_cast<const uint4 *>(weights + y.depthwise + j * S::chunk * 4 + word * 16);
        const float4 bias = *reinterpret_cast<const float4 *>(weights + y.vectors + S::chunk * 4 + word * 16);
        const float4 scale = *reinterpret_cast<const float4 *>(weights + y.vectors + S::chunk * 12 + word * 16);
        const unsigned char *from =
            shared + y.wide + (row * S::stride * S::halo_w + x * S::stride) * y.chunk_pitch + word * 4;
        unsigned char *to = shared + y.middle + (row * S::tile_w + x) * y.chunk_pitch + word * 4;
        int4 sums[S::segment];
#pragma unroll
        for (int s = 0; s < S::segment; s++) sums[s] = make_int4(0, 0, 0, 0);
#pragma unroll
        for (int c = 0; c < columns; c++) {
            uint32_t v[3];
#pragma unroll
            for (int t = 0; t < 3; t++)
                v[t] = *reinterpret_cast<const uint32_t *>(from + (t * S::halo_w + c) * y.chunk_pitch);
            const uint32_t low = __byte_perm(v[0], v[1], 0x5140), high = __byte_perm(v[0], v[1], 0x7362);
            const uint32_t x0 = __byte_perm(low, v[2], 0x4410), x1 = __byte_perm(low, v[2], 0x5532);
            const uint32_t x2 = __byte_perm(high, v[2], 0x6610), x3 = __byte_perm(high, v[2], 0x7732);
#pragma unroll
            for (int s = 0; s < S::segment; s++) {
                const int j = c - s * S::stride;
                if (j < 0 || j > 2) continue;
                sums[s].x = __dp4a(static_cast<int>(x0), static_cast<int>(w[j].x), sums[s].x);
                sums[s].y = __dp4a(static_cast<int>(x1), static_cast<int>(w[j].y), sums[s].y);
                sums[s].z = __dp4a(static_cast<int>(x2), static_cast<int>(w[j].z), sums[s].z);
                sums[s].w = __dp4a(static_cast<int>(x3), static_cast<int>(w[j].w), sums[s].w);
            }
        }
#pragma unroll
        for (int s = 0; s < S::segment; s++)
            *reinterpret_cast<uint32_t *>(to + s * y.chunk_pitch) =
                code_of(sums[s].x, scale.x, bias.x, cut, l.middle.inverse) |
                code_of(sums[s].y, scale.y, bias.y, cut, l.middle.inverse) << 8 |
                code_of(sums[s].z, scale.z, bias.z, cut, l.middle.inverse) << 16 |
                code_of(sums[s].w, scale.w, bias.w, cut, l.middle.inverse) << 24;
    }
}

template <class F, class S>
__device__ __forceinline__ void project(const layout &y, unsigned char *shared, const unsigned char *weights,
                                        typename F::sum (&d)[S::mt][S::nt][4]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp % S::wm, wn = warp / S::wm;
    const uint32_t a_row = shared_address(shared + y.middle) + matrix_a_offset(lane, y.chunk_pitch);
    const uint32_t b_row =
        shared_address(weights + y.project) + wn * S::nt * 8 * y.chunk_pitch + matrix_b_offset(lane, y.chunk_pitch);
#pragma unroll
    for (int k = 0; k < S::chunk * F::bytes; k += 32) {
        uint32_t a[S::mt][4];
#pragma unroll
        for (int m = 0; m < S::mt; m++) {
            const int tile = wm + m * S::wm;
            if (tile * 16 < S::tile_rows) load_matrix(a[m], a_row + tile * 16 * y.chunk_pitch + k);
        }
#pragma unroll
        for (int n = 0; n < S::nt; n += 2) {
            uint32_t b[4];
            load_matrix(b, b_row + n * 8 * y.chunk_pitch + k);
#pragma unroll
            for (int m = 0; m < S::mt; m++) {
                if ((wm + m * S::wm) * 16 >= S::tile_rows) continue;
                multiply(d[m][n], a[m], b[0], b[1]);
                multiply(d[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* The warps' sums to shared memory, [pixel][output]. */
template <class F, class S>
__device__ void put_sums(const oct_block_launch &l, typename F::sum *sums, int pitch,
                         const typename F::sum (&d)[S::mt][S::nt][4]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp % S::wm, wn = warp / S::wm;
#pragma unroll
    for (int m = 0; m < S::mt; m++) {
        const int row = (wm + m * S::wm) * 16 + lane / 4;
        if (row >= S::tile_rows) continue;
#pragma unroll
        for (int n = 0; n < S::nt; n++) {
            const int column = (wn * S::nt + n) * 8 + lane % 4 * 2;
            if (column >= l.outputs) continue;
            sums[row * pitch + column] = d[m][n][0];
            sums[row * pitch + column + 1] = d[m][n][1];
            sums[(row + 8) * pitch + column] = d[m][n][2];
            sums[(row + 8) * pitch + column + 1] = d[m][n][3];
        }
    }
}

/* Adds up what the blocks of the cluster have, and stores the tile: four outputs of a pixel a thread. */
template <class F, class S>
__device__ void finish(const oct_block_launch &l, const region &r, typename F::sum *sums, int pitch) {
    using sum = typename F::sum;
    const int quads = l.outputs / 4;
    int rank = 0;
#if __CUDA_ARCH__ >= 900
    if (l.split > 1) rank = static_cast<int>(cg::this_cluster().block_rank());
#endif
    for (int i = threadIdx.x + rank * S::threads; i < S::tile_h * S::tile_w * quads; i += S::threads * l.split) {
        const int pixel = i / quads, o = i % quads * 4;
        const int oy = r.tile_y + pixel / S::tile_w, ox = r.tile_x + pixel % S::tile_w;
        if (oy >= l.out_h || ox >= l.out_w) continue;
        sum v[4] = {};
        for (int other = 0; other < l.split; other++) {
            const sum *from = sums;
#if __CUDA_ARCH__ >= 900
            if (l.split > 1) from = cg::this_cluster().map_shared_rank(sums, static_cast<unsigned>(other));
#endif
#pragma unroll
            for (int j = 0; j < 4; j++) v[j] += from[pixel * pitch + o + j];
        }
        const int64_t row = (static_cast<int64_t>(r.picture) * l.out_h + oy) * l.out_w + ox;
        float out[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            out[j] = F::bytes == 1
                         ? oct_int8_sum(static_cast<int>(v[j]), l.epilogue.scales[o + j], l.epilogue.bias[o + j])
                         : static_cast<float>(v[j]) + l.epilogue.bias[o + j];
        finish_quad(l.epilogue, row, o, out);
    }
}

template <class F, class S>
__global__ void __launch_bounds__(S::threads) block_kernel(const __grid_constant__ oct_block_launch l) {
    extern __shared__ __align__(128) unsigned char shared[];
    using sum = typename F::sum;
    const layout y = layout_of<F, S>(l);
    const int chunks = l.expanded_channels / S::chunk;
    const int rank = static_cast<int>(blockIdx.x) % l.split, tile = static_cast<int>(blockIdx.x) / l.split;
    const int first = chunks * rank / l.split, last = chunks * (rank + 1) / l.split;
    const region r = region_of<S>(l, tile);
    load_weights<F, S>(l, y, shared + y.weights, first * S::chunk);
    copy_async_commit();
    for (int i = threadIdx.x; i < (y.middle - y.wide) / 16; i += S::threads)
        reinterpret_cast<uint4 *>(shared + y.wide)[i] = make_uint4(0, 0, 0, 0);
    wait_for_grid();
    load_input<F, S>(l, y, r, shared);
    copy_async_commit();

    sum d[S::mt][S::nt][4] = {};
    for (int c = first; c < last; c++) {
        unsigned char *now = shared + y.weights + (c - first) % 2 * y.weights_size;
        unsigned char *next = shared + y.weights + (c - first + 1) % 2 * y.weights_size;
        copy_async_wait();
        __syncthreads();
        if (c + 1 < last) load_weights<F, S>(l, y, next, (c + 1) * S::chunk);
        copy_async_commit();
        expand<F, S>(l, y, r.height * r.width, shared, now);
        __syncthreads();
        depthwise<S>(F(), l, y, shared, now);
        __syncthreads();
        project<F, S>(y, shared, now, d);
    }
    start_next_grid();
    __syncthreads();
    sum *sums = reinterpret_cast<sum *>(shared + y.x);
    put_sums<F, S>(l, sums, l.outputs + 4, d);
    if (l.split > 1) {
#if __CUDA_ARCH__ >= 900
        cg::this_cluster().sync();
#endif
    } else {
        __syncthreads();
    }
    finish<F, S>(l, r, sums, l.outputs + 4);
#if __CUDA_ARCH__ >= 900
    if (l.split > 1) cg::this_cluster().sync(); /* others still read this block's sums */
#endif
}

template <class F, class S> cudaError_t run(const oct_block_launch &l, cudaStream_t stream) {
    const int tiles = (l.out_h + S::tile_h - 1) / S::tile_h * ((l.out_w + S::tile_w - 1) / S::tile_w);
    const int size = layout_of<F, S>(l).size;
    cudaError_t error = cudaFuncSetAttribute(block_kernel<F, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, size);
    if (error == cudaSuccess && l.split > 8)
        error = cudaFuncSetAttribute(block_kernel<F, S>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
    const dim3 grid(static_cast<unsigned>(tiles * l.split), static_cast<unsigned>(l.batch));
    return launch_chained(block_kernel<F, S>, grid, S::threads, size, l.split, stream, l);
}

} // namespace

extern "C" cudaError_t oct_run_block(const oct_block_launch *l, cudaStream_t stream) {
    int variant = 0;
#define OCT_BLOCK(name, ...)                                                                                           \
    if (l->variant == variant++)                                                                                       \
        return l->int8 ? run<int8_format, shape<__VA_ARGS__>>(*l, stream)                                              \
                       : run<half_format, shape<__VA_ARGS__>>(*l, stream);
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
    return cudaErrorInvalidValue;
}
