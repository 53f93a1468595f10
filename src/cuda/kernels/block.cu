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

template <int STEM, int STRIDE, int TH, int TW, int CHUNK, int WARPS, int RESIDENT, int WN, int MT, int NT, int HALF>
struct shape {
    static constexpr int stem = STEM, stride = STRIDE, tile_h = TH, tile_w = TW, chunk = CHUNK, warps = WARPS;
    static constexpr int resident = RESIDENT, mt = MT, nt = NT, half = HALF;
    static constexpr int threads = WARPS * 32, wm = WARPS / WN;
    static constexpr int halo_h = (TH - 1) * STRIDE + 3, halo_w = (TW - 1) * STRIDE + 3;
    static constexpr int tile_rows = (TH * TW + 15) / 16 * 16; /* pixels of the output, whole m-tiles */
    static constexpr int segment = 7;                          /* neighbouring outputs of a thread in the depthwise */
    static_assert(wm * MT * 16 >= tile_rows, "m-tiles");
    static_assert(TW % segment == 0, "segments");
};

/* n / d for n and d below 2^16, where `inverse` is divisor(d); 0 stands for d = 1. */
__device__ __forceinline__ unsigned divisor(unsigned d) {
    return 0xffffffffu / d + 1;
}
__device__ __forceinline__ int divide(int n, unsigned inverse) {
    return inverse == 0 ? n : static_cast<int>(__umulhi(static_cast<unsigned>(n), inverse));
}

template <class F, class S> constexpr int pitch_of = OCT_BLOCK_CHUNK_PITCH(S::chunk, F::bytes);

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

/* The tile's input with its halo, [pixel][inputs]. */
template <class F, class S> __device__ void load_rows(const oct_block_launch &l, const region &r, unsigned char *x) {
    const int whole = l.x.channels * F::bytes, step = whole % 16 == 0 ? 16 : 8; /* rows of 24 codes are 24 bytes */
    const int pieces = l.layout.row_bytes / step, pixels = r.height * r.width, stride = l.x.stride * F::bytes;
    const unsigned by_pieces = divisor(pieces), by_width = divisor(r.width);
    const char *from = static_cast<const char *>(l.x.data) +
                       ((static_cast<int64_t>(r.picture) * l.in_h + r.top) * l.in_w + r.left) * stride;
    for (int i = threadIdx.x; i < pixels * pieces; i += S::threads) {
        const int pixel = divide(i, by_pieces), at = (i - pixel * pieces) * step, y = divide(pixel, by_width);
        const char *source = from + (y * l.in_w + pixel - y * r.width) * stride + at;
        unsigned char *to = x + pixel * l.layout.row_pitch + at;
        if (at >= whole) {
            for (int j = 0; j < step; j += 8) *reinterpret_cast<uint2 *>(to + j) = make_uint2(0, 0);
        } else if (step == 16) {
            copy_async16(to, source);
        } else {
            copy_async8(to, source);
        }
    }
}

/* The stem's input. A pixel is four numbers, the last of no meaning. */
template <class S>
__device__ void load_stem(half_format, const oct_block_launch &l, const region &r, unsigned char *x) {
    /* the patch of the picture under the tile; rows of the matrix are read from it in place */
    constexpr int width = OCT_BLOCK_PATCH_WIDTH(S::halo_w);
    const int h = l.in_h * 2, w = l.in_w * 2, top = r.top * 2 - 1, left = r.left * 2 - 1;
    const uint2 *from = static_cast<const uint2 *>(l.x.data) + static_cast<int64_t>(r.picture) * h * w;
    for (int i = threadIdx.x; i < OCT_BLOCK_PATCH_HEIGHT(S::halo_h) * width; i += S::threads) {
        const int y = top + i / width, x_of = left + i % width;
        uint2 v = make_uint2(0, 0);
        if (y >= 0 && y < h && x_of >= 0 && x_of < w) v = from[y * w + x_of];
        v.y &= 0xffffu;
        reinterpret_cast<uint2 *>(x)[i] = v;
    }
}
template <class S>
__device__ void load_stem(int8_format, const oct_block_launch &l, const region &r, unsigned char *x) {
    /* the window of each pixel: three rows of four pixels; the fourth piece has no weights */
    const int h = l.in_h * 2, w = l.in_w * 2, pixels = r.height * r.width;
    const unsigned by_width = divisor(r.width);
    const uint32_t *from = static_cast<const uint32_t *>(l.x.data) + static_cast<int64_t>(r.picture) * h * w;
    for (int i = threadIdx.x; i < pixels * 4; i += S::threads) {
        const int pixel = i / 4, row = i % 4, py = divide(pixel, by_width);
        const int y = (r.top + py) * 2 - 1 + row, left = (r.left + pixel - py * r.width) * 2 - 1;
        uint32_t v[4] = {};
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (row < 3 && y >= 0 && y < h && left + j >= 0 && left + j < w) v[j] = from[y * w + left + j];
        *reinterpret_cast<uint4 *>(x + pixel * l.layout.row_pitch + row * 16) = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

/* For each pixel under the tile, where its row of the expanded map begins. */
template <class F, class S> __device__ void make_table(const region &r, int *table) {
    const unsigned by_width = divisor(r.width);
    const int pixels = r.height * r.width;
    for (int i = threadIdx.x; i < (pixels + 15) / 16 * 16; i += S::threads) {
        const int y = divide(i, by_width), x = i - y * r.width;
        const int at = (y + r.top - r.halo_y) * S::halo_w + x + r.left - r.halo_x;
        table[i] = i < pixels ? at * pitch_of<F, S> : -1;
    }
}

/* Where the activation, RELU or RELU6, cuts above: two halves; or, multiplying by the inverse scale keeping order, a
 * number before rounding to a code. */
__device__ __forceinline__ uint32_t half_top(int activation) {
    return activation == OCT_ACTIVATION_RELU6 ? 0x46004600u : 0x7c007c00u; /* 6, infinity */
}
__device__ __forceinline__ float code_top(int activation, float inverse) {
    return activation == OCT_ACTIVATION_RELU6 ? fminf(6.0f * inverse, 127.0f) : 127.0f;
}
__device__ __forceinline__ uint32_t code_of(int sum, float scale, float bias, float top, float inverse) {
    const float v = fmaf(static_cast<float>(sum), scale, bias) * inverse;
    /* adding 1.5 * 2^23 rounds half to even and leaves the code in the low byte */
    return __float_as_uint(fminf(fmaxf(v, 0.0f), top) + 12582912.0f) & 0xffu;
}

__device__ __forceinline__ uint32_t top_of(half_format, int activation, float) {
    return half_top(activation);
}
__device__ __forceinline__ float top_of(int8_format, int activation, float inverse) {
    return code_top(activation, inverse);
}

/* What an accumulator begins with: of fp16 the bias. */
template <class S> __device__ __forceinline__ void begin(float (&d)[4], const float *vectors, int column) {
    const float2 bias = *reinterpret_cast<const float2 *>(vectors + column);
    d[0] = d[2] = bias.x;
    d[1] = d[3] = bias.y;
}
template <class S> __device__ __forceinline__ void begin(int (&d)[4], const float *, int) {
    d[0] = d[1] = d[2] = d[3] = 0;
}

/* Rounds two neighbours of two rows into the expanded map. */
template <class S>
__device__ __forceinline__ void store_wide(unsigned char *const (&rows)[2], int column, const float (&d)[4],
                                           const float *, uint32_t top, float) {
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (rows[i] != nullptr)
            *reinterpret_cast<uint32_t *>(rows[i] + column * 2) = round_pair(d[2 * i], d[2 * i + 1], top);
}
template <class S>
__device__ __forceinline__ void store_wide(unsigned char *const (&rows)[2], int column, const int (&d)[4],
                                           const float *vectors, float top, float inverse) {
    const float2 bias = *reinterpret_cast<const float2 *>(vectors + column);
    const float2 scale = *reinterpret_cast<const float2 *>(vectors + 2 * S::chunk + column);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (rows[i] != nullptr)
            *reinterpret_cast<uint16_t *>(rows[i] + column) =
                static_cast<uint16_t>(code_of(d[2 * i], scale.x, bias.x, top, inverse) |
                                      code_of(d[2 * i + 1], scale.y, bias.y, top, inverse) << 8);
}

template <class F, class S>
__device__ void expand(const oct_block_launch &l, const region &r, unsigned char *shared,
                       const unsigned char *weights) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pixels = r.height * r.width, tiles = (pixels + 15) / 16;
    const int *table = reinterpret_cast<const int *>(shared + l.layout.table);
    const float *vectors = reinterpret_cast<const float *>(weights + l.layout.vectors);
    const auto top = top_of(F(), l.expand_activation, l.expanded.inverse);
    constexpr int NTILES = S::chunk / 8;
    constexpr bool patch = S::stem && F::bytes == 2; /* a step is a row of the window, a row of the patch further on */
    constexpr int a_step = patch ? OCT_BLOCK_PATCH_WIDTH(S::halo_w) * 8 : 32;
    const int pitch = l.layout.row_pitch, steps = l.layout.row_bytes / 32;
    const unsigned by_width = divisor(r.width);
    const uint32_t b_first = shared_address(weights) + matrix_b_offset(lane, pitch);
    for (int tile = warp; tile < tiles; tile += S::warps) {
        typename F::sum d[NTILES][4];
#pragma unroll
        for (int n = 0; n < NTILES; n++) begin<S>(d[n], vectors, n * 8 + lane % 4 * 2);
        uint32_t a_row = shared_address(shared + l.layout.x), b_row = b_first;
        if (patch) {
            const int pixel = min(tile * 16 + lane % 16, pixels - 1), y = divide(pixel, by_width);
            a_row += 2 * y * a_step + (pixel - y * r.width) * 16 + lane / 16 * 16;
        } else {
            a_row += tile * 16 * pitch + matrix_a_offset(lane, pitch);
        }
        for (int k = 0; k < steps; k++) {
            uint32_t a[4];
            load_matrix(a, a_row);
#pragma unroll
            for (int n = 0; n < NTILES; n += 2) {
                uint32_t b[4];
                load_matrix(b, b_row + n * 8 * pitch);
                multiply(d[n], a, b[0], b[1]);
                multiply(d[n + 1], a, b[2], b[3]);
            }
            a_row += a_step;
            b_row += 32;
        }
        unsigned char *rows[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = table[tile * 16 + lane / 4 + 8 * i];
            rows[i] = at >= 0 ? shared + l.layout.wide + at : nullptr;
        }
#pragma unroll
        for (int n = 0; n < NTILES; n++)
            store_wide<S>(rows, n * 8 + lane % 4 * 2, d[n], vectors, top, l.expanded.inverse);
    }
}

/* fp16 with sums in fp16: a thread takes 2 * V channels of seven neighbouring outputs. */
template <class S, int V>
__device__ void depthwise_half(const oct_block_launch &l, unsigned char *shared, const unsigned char *weights) {
    struct __align__(4 * V) vector {
        __half2 v[V];
    };
    constexpr int parts = S::chunk / (2 * V), across = S::tile_w / S::segment, pitch = pitch_of<half_format, S>;
    constexpr int columns = (S::segment - 1) * S::stride + 3;
    const uint32_t top = half_top(l.depthwise_activation);
    for (int i = threadIdx.x; i < parts * across * S::tile_h; i += S::threads) {
        const int part = i % parts, x = i / parts % across * S::segment, row = i / parts / across;
        const unsigned char *const taps = weights + l.layout.depthwise + part * 4 * V;
        const float *const bias = reinterpret_cast<const float *>(weights + l.layout.vectors) + S::chunk + part * 2 * V;
        const unsigned char *from =
            shared + l.layout.wide + (row * S::stride * S::halo_w + x * S::stride) * pitch + part * 4 * V;
        unsigned char *to = shared + l.layout.middle + (row * S::tile_w + x) * pitch + part * 4 * V;
        vector w[9], sums[S::segment];
#pragma unroll
        for (int t = 0; t < 9; t++) w[t] = *reinterpret_cast<const vector *>(taps + t * S::chunk * 2);
#pragma unroll
        for (int h = 0; h < V; h++) {
            const float2 b = *reinterpret_cast<const float2 *>(bias + 2 * h);
#pragma unroll
            for (int s = 0; s < S::segment; s++) sums[s].v[h] = __floats2half2_rn(b.x, b.y);
        }
#pragma unroll
        for (int c = 0; c < columns; c++) {
            vector x_of[3];
#pragma unroll
            for (int t = 0; t < 3; t++) x_of[t] = *reinterpret_cast<const vector *>(from + (t * S::halo_w + c) * pitch);
#pragma unroll
            for (int s = 0; s < S::segment; s++) {
                const int j = c - s * S::stride;
                if (j < 0 || j > 2) continue;
#pragma unroll
                for (int t = 0; t < 3; t++)
#pragma unroll
                    for (int h = 0; h < V; h++) sums[s].v[h] = __hfma2(x_of[t].v[h], w[t * 3 + j].v[h], sums[s].v[h]);
            }
        }
#pragma unroll
        for (int s = 0; s < S::segment; s++) {
            vector out;
#pragma unroll
            for (int h = 0; h < V; h++)
                reinterpret_cast<uint32_t &>(out.v[h]) =
                    cut_halves(reinterpret_cast<const uint32_t &>(sums[s].v[h]), top);
            *reinterpret_cast<vector *>(to + s * pitch) = out;
        }
    }
}

/* fp16: a thread takes two channels of SEGMENT neighbouring outputs; sums in float32. */
template <class S>
__device__ void depthwise(half_format, const oct_block_launch &l, unsigned char *shared, const unsigned char *weights) {
    if (S::half) {
        constexpr int pieces = S::chunk / 4 * (S::tile_w / S::segment) * S::tile_h; /* of four channels */
        depthwise_half<S, (2 * pieces <= S::threads ? 1 : 2)>(l, shared, weights);
        return;
    }
    constexpr int pitch = pitch_of<half_format, S>;
    constexpr int pairs = S::chunk / 2, across = S::tile_w / S::segment;
    constexpr int columns = (S::segment - 1) * S::stride + 3;
    const uint32_t top = half_top(l.depthwise_activation);
    for (int i = threadIdx.x; i < pairs * across * S::tile_h; i += S::threads) {
        const int pair = i % pairs, x = i / pairs % across * S::segment, row = i / pairs / across;
        float2 w[9];
#pragma unroll
        for (int t = 0; t < 9; t++)
            w[t] = __half22float2(
                *reinterpret_cast<const __half2 *>(weights + l.layout.depthwise + t * S::chunk * 2 + pair * 4));
        const float2 bias = *reinterpret_cast<const float2 *>(weights + l.layout.vectors + S::chunk * 4 + pair * 8);
        const unsigned char *from =
            shared + l.layout.wide + (row * S::stride * S::halo_w + x * S::stride) * pitch + pair * 4;
        unsigned char *to = shared + l.layout.middle + (row * S::tile_w + x) * pitch + pair * 4;
        float2 sums[S::segment];
#pragma unroll
        for (int s = 0; s < S::segment; s++) sums[s] = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int c = 0; c < columns; c++) {
            float2 v[3];
#pragma unroll
            for (int t = 0; t < 3; t++)
                v[t] = __half22float2(*reinterpret_cast<const __half2 *>(from + (t * S::halo_w + c) * pitch));
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
            *reinterpret_cast<uint32_t *>(to + s * pitch) = round_pair(sums[s].x + bias.x, sums[s].y + bias.y, top);
    }
}

/* int8: four channels a thread. The three rows of a column become a word a channel, times three weights by dp4a. */
template <class S>
__device__ void depthwise(int8_format, const oct_block_launch &l, unsigned char *shared, const unsigned char *weights) {
    constexpr int pitch = pitch_of<int8_format, S>;
    constexpr int words = S::chunk / 4, across = S::tile_w / S::segment;
    constexpr int columns = (S::segment - 1) * S::stride + 3;
    const float top = code_top(l.depthwise_activation, l.middle.inverse);
    for (int i = threadIdx.x; i < words * across * S::tile_h; i += S::threads) {
        const int word = i % words, x = i / words % across * S::segment, row = i / words / across;
        uint4 w[3];
#pragma unroll
        for (int j = 0; j < 3; j++)
            w[j] = *reinterpret_cast<const uint4 *>(weights + l.layout.depthwise + j * S::chunk * 4 + word * 16);
        const float4 bias = *reinterpret_cast<const float4 *>(weights + l.layout.vectors + S::chunk * 4 + word * 16);
        const float4 scale = *reinterpret_cast<const float4 *>(weights + l.layout.vectors + S::chunk * 12 + word * 16);
        const unsigned char *from =
            shared + l.layout.wide + (row * S::stride * S::halo_w + x * S::stride) * pitch + word * 4;
        unsigned char *to = shared + l.layout.middle + (row * S::tile_w + x) * pitch + word * 4;
        int4 sums[S::segment];
#pragma unroll
        for (int s = 0; s < S::segment; s++) sums[s] = make_int4(0, 0, 0, 0);
#pragma unroll
        for (int c = 0; c < columns; c++) {
            uint32_t v[3];
#pragma unroll
            for (int t = 0; t < 3; t++) v[t] = *reinterpret_cast<const uint32_t *>(from + (t * S::halo_w + c) * pitch);
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
            *reinterpret_cast<uint32_t *>(to + s * pitch) =
                code_of(sums[s].x, scale.x, bias.x, top, l.middle.inverse) |
                code_of(sums[s].y, scale.y, bias.y, top, l.middle.inverse) << 8 |
                code_of(sums[s].z, scale.z, bias.z, top, l.middle.inverse) << 16 |
                code_of(sums[s].w, scale.w, bias.w, top, l.middle.inverse) << 24;
    }
}

template <class F, class S>
__device__ __forceinline__ void project(const oct_block_launch &l, unsigned char *shared, const unsigned char *weights,
                                        typename F::sum (&d)[S::mt][S::nt][4]) {
    constexpr int pitch = pitch_of<F, S>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp % S::wm, wn = warp / S::wm;
    const uint32_t a_row = shared_address(shared + l.layout.middle) + matrix_a_offset(lane, pitch);
    const uint32_t b_row =
        shared_address(weights + l.layout.project) + wn * S::nt * 8 * pitch + matrix_b_offset(lane, pitch);
#pragma unroll
    for (int k = 0; k < OCT_BLOCK_CHUNK_BYTES(S::chunk, F::bytes); k += 32) {
        uint32_t a[S::mt][4];
#pragma unroll
        for (int m = 0; m < S::mt; m++) {
            const int tile = wm + m * S::wm;
            if (tile * 16 < S::tile_rows) load_matrix(a[m], a_row + tile * 16 * pitch + k);
        }
#pragma unroll
        for (int n = 0; n < S::nt; n += 2) {
            uint32_t b[4];
            load_matrix(b, b_row + n * 8 * pitch + k);
#pragma unroll
            for (int m = 0; m < S::mt; m++) {
                if ((wm + m * S::wm) * 16 >= S::tile_rows) continue;
                multiply(d[m][n], a[m], b[0], b[1]);
                multiply(d[m][n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

__device__ __forceinline__ void put_pair(float *to, float a, float b) {
    *reinterpret_cast<float2 *>(to) = make_float2(a, b);
}
__device__ __forceinline__ void put_pair(int *to, int a, int b) {
    *reinterpret_cast<int2 *>(to) = make_int2(a, b);
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
            put_pair(sums + row * pitch + column, d[m][n][0], d[m][n][1]);
            put_pair(sums + (row + 8) * pitch + column, d[m][n][2], d[m][n][3]);
        }
    }
}

template <class Sum> struct quad_of;
template <> struct quad_of<float> { using type = float4; };
template <> struct quad_of<int> { using type = int4; };
template <class Sum, class Quad> __device__ __forceinline__ void add_quad(Sum (&v)[4], const Quad &a) {
    v[0] += a.x, v[1] += a.y, v[2] += a.z, v[3] += a.w;
}

/* The sums of all ranks at one place, in order; four reads under way at a time. */
template <class Sum> __device__ __forceinline__ void add_ranks(Sum (&v)[4], Sum *mine, int split) {
    using quad = typename quad_of<Sum>::type;
#if __CUDA_ARCH__ >= 900
    constexpr int AT_ONCE = 4;
    for (int first = 0; first < split; first += AT_ONCE) {
        quad a[AT_ONCE];
#    pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i < split)
                a[i] = *reinterpret_cast<const quad *>(
                    cg::this_cluster().map_shared_rank(mine, static_cast<unsigned>(first + i)));
#    pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i < split) add_quad(v, a[i]);
    }
#endif
}

/* Adds up what the blocks of the cluster have, and stores the tile: four outputs of a pixel a thread. */
template <class F, class S>
__device__ void finish(const oct_block_launch &l, const region &r, typename F::sum *sums, int pitch, int rank) {
    using sum = typename F::sum;
    const int quads = l.outputs / 4;
    const unsigned by_quads = divisor(quads);
    for (int i = threadIdx.x + rank * S::threads; i < S::tile_h * S::tile_w * quads; i += S::threads * l.split) {
        const int pixel = divide(i, by_quads), o = (i - pixel * quads) * 4;
        const int oy = r.tile_y + pixel / S::tile_w, ox = r.tile_x + pixel % S::tile_w;
        if (oy >= l.out_h || ox >= l.out_w) continue;
        sum *const mine = sums + pixel * pitch + o;
        sum v[4] = {};
        if (l.split == 1)
            add_quad(v, *reinterpret_cast<const typename quad_of<sum>::type *>(mine));
        else
            add_ranks(v, mine, l.split);
        const int64_t row = (static_cast<int64_t>(r.picture) * l.out_h + oy) * l.out_w + ox;
        const float4 bias = *reinterpret_cast<const float4 *>(l.epilogue.bias + o);
        float out[4] = {bias.x, bias.y, bias.z, bias.w};
#pragma unroll
        for (int j = 0; j < 4; j++)
            out[j] = F::bytes == 1 ? oct_int8_sum(static_cast<int>(v[j]), l.epilogue.scales[o + j], out[j])
                                   : static_cast<float>(v[j]) + out[j];
        finish_quad(l.epilogue, row, o, out);
    }
}

template <class F, class S>
__global__ void __launch_bounds__(S::threads, S::resident) block_kernel(const __grid_constant__ oct_block_launch l) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ __align__(8) uint64_t arrived[2]; /* a chunk's weights */
    using sum = typename F::sum;
    const int chunks = l.expanded_channels / S::chunk;
    const int tile = l.split == 1 ? static_cast<int>(blockIdx.x) : static_cast<int>(blockIdx.x) / l.split;
    const int rank = static_cast<int>(blockIdx.x) - tile * l.split;
    const int first = l.split == 1 ? 0 : chunks * rank / l.split;
    const int last = l.split == 1 ? chunks : chunks * (rank + 1) / l.split;
    const region r = region_of<S>(l, tile);
    const unsigned char *const images = static_cast<const unsigned char *>(l.weights);
    unsigned char *const weights = shared + l.layout.weights;

    if (threadIdx.x == 0) {
        barrier_make(&arrived[0]);
        barrier_make(&arrived[1]);
        copy_bulk(weights, images + static_cast<size_t>(first) * l.layout.image, l.layout.image, &arrived[0]);
    }
    make_table<F, S>(r, reinterpret_cast<int *>(shared + l.layout.table));
    if (r.height < S::halo_h || r.width < S::halo_w)
        for (int i = threadIdx.x; i < S::halo_h * S::halo_w * pitch_of<F, S> / 16; i += S::threads)
            reinterpret_cast<uint4 *>(shared + l.layout.wide)[i] = make_uint4(0, 0, 0, 0);
    wait_for_grid();
    if (S::stem)
        load_stem<S>(F(), l, r, shared + l.layout.x);
    else
        load_rows<F, S>(l, r, shared + l.layout.x);
    copy_async_commit();
    copy_async_wait();
    __syncthreads();

    sum d[S::mt][S::nt][4] = {};
    for (int c = first; c < last; c++) {
        const int turn = c - first;
        unsigned char *const now = weights + turn % 2 * l.layout.weights_size;
        barrier_wait(&arrived[turn % 2], turn / 2 % 2);
        expand<F, S>(l, r, shared, now);
        __syncthreads(); /* and nobody reads the other weights any more */
        if (threadIdx.x == 0 && c + 1 < last)
            copy_bulk(weights + (turn + 1) % 2 * l.layout.weights_size,
                      images + static_cast<size_t>(c + 1) * l.layout.image, l.layout.image, &arrived[(turn + 1) % 2]);
        depthwise<S>(F(), l, shared, now);
        __syncthreads();
        project<F, S>(l, shared, now, d);
    }
    start_next_grid(); /* its weights may come while this one ends; sooner, it takes the room of others */
    __syncthreads();
    sum *sums = reinterpret_cast<sum *>(shared + l.layout.x);
    put_sums<F, S>(l, sums, l.outputs + 4, d);
#if __CUDA_ARCH__ >= 900
    if (l.split > 1)
        cg::this_cluster().sync();
    else
#endif
        __syncthreads();
    finish<F, S>(l, r, sums, l.outputs + 4, rank);
#if __CUDA_ARCH__ >= 900
    if (l.split > 1) cg::this_cluster().sync(); /* others still read this block's sums */
#endif
}

template <class F, class S> cudaError_t run(const oct_block_launch &l, cudaStream_t stream) {
    const int tiles = (l.out_h + S::tile_h - 1) / S::tile_h * ((l.out_w + S::tile_w - 1) / S::tile_w);
    const int size = l.layout.size;
    cudaError_t error = cudaFuncSetAttribute(block_kernel<F, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, size);
    if (error == cudaSuccess && l.split > 8)
        error = cudaFuncSetAttribute(block_kernel<F, S>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
    const dim3 grid(static_cast<unsigned>(tiles * l.split), static_cast<unsigned>(l.batch));
    return launch_chained(block_kernel<F, S>, grid, S::threads, size, l.split, stream, l);
}

template <class S> cudaError_t run_format(const oct_block_launch &l, cudaStream_t stream) {
    return l.int8 ? run<int8_format, S>(l, stream) : run<half_format, S>(l, stream);
}

} // namespace

extern "C" cudaError_t oct_run_block(const oct_block_launch *l, cudaStream_t stream) {
    int variant = 0;
#define OCT_BLOCK(name, ...)                                                                                           \
    if (l->variant == variant++) return run_format<shape<__VA_ARGS__>>(*l, stream);
#include "cuda/kernels/block_variants.def"
#undef OCT_BLOCK
    return cudaErrorInvalidValue;
}
