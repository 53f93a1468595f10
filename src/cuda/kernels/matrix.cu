/* SPDX-License-Identifier: Apache-2.0 */
/* Products of any shape and format, on any device: tiles of 64 x 64 outputs, 16 terms at a time through shared memory,
 * 4 x 4 outputs a thread. A convolution's window is gathered while loading. Sums are float32 fused multiply-adds in
 * the order of the terms, or int32 of codes. And depthwise convolutions, a thread an output. */
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/view.cuh"

namespace {

constexpr int TILE = 64, DEPTH = 16, THREADS = 256;

template <bool INT8> struct sum_of { using type = float; };
template <> struct sum_of<true> { using type = int; };

template <bool INT8>
__device__ __forceinline__ typename sum_of<INT8>::type element(const oct_view &v, int64_t row, int c) {
    if (INT8) return static_cast<const int8_t *>(v.data)[row * v.stride + c];
    return oct_load(v, row, c);
}

/* Where an output's window lies. */
struct origin {
    int64_t picture; /* its first row */
    int y, x;
    bool valid;
};

__device__ __forceinline__ origin origin_of(const oct_window &w, int64_t row, int64_t rows) {
    origin o;
    o.valid = row < rows;
    const int64_t at = row / w.out_w;
    o.x = static_cast<int>(row % w.out_w) * w.stride_w - w.pad_left;
    o.y = static_cast<int>(at % w.out_h) * w.stride_h - w.pad_top;
    o.picture = at / w.out_h * w.in_h * w.in_w;
    return o;
}

/* Term k of an output's window: 0 outside the picture. */
template <bool INT8>
__device__ __forceinline__ typename sum_of<INT8>::type gather(const oct_matrix_launch &l, const origin &o, int k,
                                                              int depth, int first) {
    if (!o.valid || k >= depth) return 0;
    const int tap = k / l.group_inputs, c = k - tap * l.group_inputs;
    const int y = o.y + tap / l.window.kernel_w, x = o.x + tap % l.window.kernel_w;
    if (y < 0 || y >= l.window.in_h || x < 0 || x >= l.window.in_w) return 0;
    return element<INT8>(l.x, o.picture + static_cast<int64_t>(y) * l.window.in_w + x, first + c);
}

template <bool INT8> __global__ void __launch_bounds__(THREADS) matrix(const oct_matrix_launch l) {
    using sum_type = typename sum_of<INT8>::type;
    __shared__ sum_type a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
    const int depth = l.group_inputs * l.window.kernel_h * l.window.kernel_w;
    const int group = blockIdx.z, first_output = blockIdx.y * TILE;
    const int64_t first_row = static_cast<int64_t>(blockIdx.x) * TILE;
    /* loading: a thread takes terms k, k + 4, .. of one row and of one output */
    const int lane = threadIdx.x / 4, part = threadIdx.x % 4;
    const origin o = origin_of(l.window, first_row + lane, l.rows);
    const int output = first_output + lane;
    const bool has_output = output < l.group_outputs;
    const int64_t weight_row = static_cast<int64_t>(group) * l.group_outputs + output;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    sum_type sums[4][4] = {};
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        for (int i = 0; i < DEPTH / 4; i++) {
            const int k = k0 + part + 4 * i;
            a[part + 4 * i][lane] = gather<INT8>(l, o, k, depth, group * l.group_inputs);
            b[part + 4 * i][lane] = has_output && k < depth ? element<INT8>(l.weight, weight_row, k) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (INT8)
                        sums[i][j] += a[k][ty * 4 + i] * b[k][tx * 4 + j];
                    else
                        sums[i][j] = fmaf(a[k][ty * 4 + i], b[k][tx * 4 + j], sums[i][j]);
                }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t row = first_row + ty * 4 + i;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int at = first_output + tx * 4 + j;
            if (row >= l.rows || at >= l.group_outputs) continue;
            const int channel = group * l.group_outputs + at;
            const float bias = l.epilogue.bias != nullptr ? l.epilogue.bias[channel] : 0.0f;
            float v;
            if (INT8) {
                const float x_scale = l.x.scales != nullptr ? l.x.scales[row] : l.x.scale;
                v = oct_int8_sum(static_cast<int>(sums[i][j]), x_scale * l.epilogue.scales[channel], bias);
            } else {
                v = static_cast<float>(sums[i][j]) + bias;
            }
            oct_finish(l.epilogue, row, channel, v);
        }
    }
}

template <bool INT8> __global__ void __launch_bounds__(THREADS) depthwise(const oct_matrix_launch l) {
    using sum_type = typename sum_of<INT8>::type;
    const int channels = l.groups;
    const int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= l.rows * channels) return;
    const int c = static_cast<int>(at % channels);
    const int64_t row = at / channels;
    const origin o = origin_of(l.window, row, l.rows);
    sum_type sum = 0;
    for (int i = 0; i < l.window.kernel_h; i++)
        for (int j = 0; j < l.window.kernel_w; j++) {
            const int y = o.y + i, x = o.x + j;
            if (y < 0 || y >= l.window.in_h || x < 0 || x >= l.window.in_w) continue;
            const sum_type number = element<INT8>(l.x, o.picture + static_cast<int64_t>(y) * l.window.in_w + x, c);
            const sum_type weight = element<INT8>(l.weight, c, i * l.window.kernel_w + j);
            if (INT8)
                sum += number * weight;
            else
                sum = fmaf(number, weight, sum);
        }
    const float bias = l.epilogue.bias != nullptr ? l.epilogue.bias[c] : 0.0f;
    const float v = INT8 ? oct_int8_sum(static_cast<int>(sum), l.x.scale * l.epilogue.scales[c], bias)
                         : static_cast<float>(sum) + bias;
    oct_finish(l.epilogue, row, c, v);
}

} // namespace

extern "C" cudaError_t oct_run_matrix(const oct_matrix_launch *l, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((l->rows + TILE - 1) / TILE),
                    static_cast<unsigned>((l->group_outputs + TILE - 1) / TILE), static_cast<unsigned>(l->groups));
    if (l->int8)
        matrix<true><<<grid, THREADS, 0, stream>>>(*l);
    else
        matrix<false><<<grid, THREADS, 0, stream>>>(*l);
    return cudaGetLastError();
}

extern "C" cudaError_t oct_run_depthwise(const oct_matrix_launch *l, cudaStream_t stream) {
    const unsigned grid = static_cast<unsigned>((l->rows * l->groups + THREADS - 1) / THREADS);
    if (l->int8)
        depthwise<true><<<grid, THREADS, 0, stream>>>(*l);
    else
        depthwise<false><<<grid, THREADS, 0, stream>>>(*l);
    return cudaGetLastError();
}
