/* SPDX-License-Identifier: Apache-2.0 */
/* Products by tensor cores, for few rows (a classifier) or few pixels a picture (a head with its pooling). Weights go
 * straight from memory to registers.
 *
 * Which terms of a row a lane of mma.sync multiplies is free, as long as both operands agree: a lane takes 16
 * neighbouring bytes of its rows, which serve two steps. A warp makes MT m-tiles of 16 rows by 8 outputs. With SPLIT
 * the eight warps of a block share the same outputs and each take every eighth piece of the terms (sums added in order
 * of warp); else each has outputs of its own. */
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/tensor.cuh"

namespace {

constexpr int WARPS = 8, THREADS = WARPS * 32, PIECE = 64; /* bytes of a row that a warp takes at once */

/* A number as its form keeps it. */
__device__ __forceinline__ float as_stored(const oct_view &form, float x) {
    if (form.format == OCT_FORMAT_FP16) return __half2float(__float2half_rn(x));
    if (form.format == OCT_FORMAT_INT8) return static_cast<float>(oct_int8_code(x, form.inverse)) * form.scale;
    return x;
}

__device__ __forceinline__ float with_bias(float sum, float, float bias) {
    return sum + bias;
}
__device__ __forceinline__ float with_bias(int sum, float scale, float bias) {
    return oct_int8_sum(sum, scale, bias);
}

template <class Sum>
__device__ void store_sums(const oct_tensor_launch &l, const Sum *sums, int pitch, int parts, int part_size, int rows,
                           int columns, int64_t first_row, int first) {
    for (int i = threadIdx.x; i < rows * columns / 4; i += THREADS) {
        const int row = i / (columns / 4), c = i % (columns / 4) * 4;
        if (first_row + row >= l.rows || first + c >= l.outputs) continue;
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            Sum sum = 0;
            for (int p = 0; p < parts; p++) sum += sums[p * part_size + row * pitch + c + j];
            v[j] = with_bias(sum, l.int8 ? l.epilogue.scales[first + c + j] : 1.0f, l.epilogue.bias[first + c + j]);
        }
        finish_quad(l.epilogue, first_row + row, first + c, v);
    }
}

template <class Sum, int MT, bool SPLIT>
__global__ void __launch_bounds__(THREADS) tensor(const __grid_constant__ oct_tensor_launch l) {
    constexpr int COLUMNS = SPLIT ? 8 : 8 * WARPS, PITCH = COLUMNS + 4, ROWS = MT * 16;
    extern __shared__ __align__(16) unsigned char shared[];
    Sum *const sums = reinterpret_cast<Sum *>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int bytes = l.inputs * (l.int8 ? 1 : 2);
    const int first = static_cast<int>(blockIdx.x) * COLUMNS, o = first + (SPLIT ? 0 : warp * 8) + g;
    const int64_t top = static_cast<int64_t>(blockIdx.y) * ROWS;
    const char *const x = static_cast<const char *>(l.x.data), *const w = static_cast<const char *>(l.weight);
    const int64_t x_stride = static_cast<int64_t>(l.x.stride) * (l.int8 ? 1 : 2);
    Sum d[MT][4] = {};
    wait_for_grid();
#pragma unroll 2
    for (int k = SPLIT ? warp * PIECE : 0; k < bytes; k += SPLIT ? WARPS * PIECE : PIECE) {
        const int at = k + t * 16;
        const uint4 zero = make_uint4(0, 0, 0, 0);
        const bool inside = at < bytes;
        const uint4 b = inside && o < l.outputs
                            ? __ldg(reinterpret_cast<const uint4 *>(w + static_cast<int64_t>(o) * bytes + at))
                            : zero;
        uint4 a[MT][2];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int64_t row = top + m * 16 + h * 8 + g;
                a[m][h] = inside && row < l.rows ? *reinterpret_cast<const uint4 *>(x + row * x_stride + at) : zero;
            }
#pragma unroll
        for (int m = 0; m < MT; m++) {
            const uint32_t low[4] = {a[m][0].x, a[m][1].x, a[m][0].y, a[m][1].y};
            const uint32_t high[4] = {a[m][0].z, a[m][1].z, a[m][0].w, a[m][1].w};
            multiply(d[m], low, b.x, b.y);
            multiply(d[m], high, b.z, b.w);
        }
    }
    start_next_grid();
    Sum *const mine = sums + (SPLIT ? warp * ROWS * PITCH : warp * 8) + t * 2;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            mine[(m * 16 + h * 8 + g) * PITCH] = d[m][2 * h];
            mine[(m * 16 + h * 8 + g) * PITCH + 1] = d[m][2 * h + 1];
        }
    __syncthreads();
    store_sums(l, sums, PITCH, SPLIT ? WARPS : 1, ROWS * PITCH, ROWS, COLUMNS, top, first);
}

template <class Sum, int MT, bool SPLIT> cudaError_t run(const oct_tensor_launch &l, cudaStream_t stream) {
    constexpr int COLUMNS = SPLIT ? 8 : 8 * WARPS;
    const int size = (SPLIT ? WARPS : 1) * MT * 16 * (COLUMNS + 4) * 4;
    const dim3 grid(static_cast<unsigned>((l.outputs + COLUMNS - 1) / COLUMNS),
                    static_cast<unsigned>((l.rows + MT * 16 - 1) / (MT * 16)));
    return launch_chained(tensor<Sum, MT, SPLIT>, grid, THREADS, size, 1, stream, l);
}

/* ---- a head: 1 x 1 over all pixels of a picture, at most 64, and their mean. The pixels lie in shared memory, which
 * all warps read; a warp has NT n-tiles of its own. */

constexpr int HEAD_ROWS = 64, HEAD_TILES = HEAD_ROWS / 16;

/* From row to row in shared memory: 64 bytes beyond a multiple of 128, so that two rows lie in different banks. */
__host__ __device__ __forceinline__ int head_pitch(int bytes) {
    return (bytes + 127) / 128 * 128 + 64;
}

/* Means of sums in shared memory, in the order of the CPU's (cpu/kernels/pool_f32.h): along a picture's row, then the
 * rows. `rows_of_sums`: [height][columns]. */
template <class Sum>
__device__ void pool_sums(const oct_tensor_launch &l, const Sum *sums, int pitch, float *rows_of_sums, int columns,
                          int first) {
    const int c = static_cast<int>(threadIdx.x) % columns,
              o = min(first + c, l.outputs - 1); /* columns divide THREADS */
    const float bias = l.epilogue.bias[o], scale = l.int8 ? l.epilogue.scales[o] : 1.0f;
    for (int y = static_cast<int>(threadIdx.x) / columns; y < l.height; y += THREADS / columns) {
        float sum = 0;
        for (int x = 0; x < l.width; x++) {
            const float v = with_bias(sums[(y * l.width + x) * pitch + c], scale, bias);
            sum += as_stored(l.between, oct_activate(static_cast<oct_activation>(l.epilogue.activation), v));
        }
        rows_of_sums[y * columns + c] = sum;
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < columns && first + c < l.outputs) {
        float total = 0;
        for (int y = 0; y < l.height; y++) total += rows_of_sums[y * columns + c];
        const float mean = total / static_cast<float>(l.height * l.width);
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (i < l.epilogue.out_count)
                oct_store(l.epilogue.out[i], blockIdx.y, first + c, mean, l.epilogue.out[i].inverse);
    }
}

template <class Sum, int NT>
__global__ void __launch_bounds__(THREADS) head(const __grid_constant__ oct_tensor_launch l) {
    constexpr int COLUMNS = 8 * WARPS * NT, PITCH = COLUMNS + 4;
    extern __shared__ __align__(16) unsigned char shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int bytes = l.inputs * (l.int8 ? 1 : 2), pitch = head_pitch(bytes), pieces = bytes / 16;
    const int pixels = l.height * l.width, first = static_cast<int>(blockIdx.x) * COLUMNS;
    const int x_stride = l.x.stride * (l.int8 ? 1 : 2);
    const char *const x = static_cast<const char *>(l.x.data) + static_cast<int64_t>(blockIdx.y) * pixels * x_stride;
    const char *w[NT];
#pragma unroll
    for (int n = 0; n < NT; n++)
        w[n] = static_cast<const char *>(l.weight) +
               static_cast<int64_t>(min(first + (warp * NT + n) * 8 + g, l.outputs - 1)) * bytes + t * 16;
    wait_for_grid();
    for (int i = threadIdx.x; i < pixels * pieces; i += THREADS) {
        const int pixel = i / pieces, at = (i - pixel * pieces) * 16;
        copy_async16(shared + pixel * pitch + at, x + pixel * x_stride + at);
    }
    copy_async_commit();
    copy_async_wait();
    __syncthreads();
    Sum d[HEAD_TILES][NT][4] = {};
    const unsigned char *a_row = shared + g * pitch + t * 16;
#pragma unroll 2
    for (int k = 0; k < bytes; k += PIECE) {
        const bool inside = k + t * 16 < bytes;
        const uint4 zero = make_uint4(0, 0, 0, 0);
        uint4 b[NT];
#pragma unroll
        for (int n = 0; n < NT; n++) b[n] = inside ? __ldg(reinterpret_cast<const uint4 *>(w[n] + k)) : zero;
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++) {
            const uint4 a0 = inside ? *reinterpret_cast<const uint4 *>(a_row + m * 16 * pitch + k) : zero;
            const uint4 a1 = inside ? *reinterpret_cast<const uint4 *>(a_row + (m * 16 + 8) * pitch + k) : zero;
            const uint32_t low[4] = {a0.x, a1.x, a0.y, a1.y}, high[4] = {a0.z, a1.z, a0.w, a1.w};
#pragma unroll
            for (int n = 0; n < NT; n++) {
                multiply(d[m][n], low, b[n].x, b[n].y);
                multiply(d[m][n], high, b[n].z, b[n].w);
            }
        }
    }
    start_next_grid();
    __syncthreads();
    Sum *const sums = reinterpret_cast<Sum *>(shared);
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                Sum *const to = sums + (m * 16 + h * 8 + g) * PITCH + (warp * NT + n) * 8 + t * 2;
                to[0] = d[m][n][2 * h];
                to[1] = d[m][n][2 * h + 1];
            }
    __syncthreads();
    pool_sums(l, sums, PITCH, reinterpret_cast<float *>(sums + HEAD_ROWS * PITCH), COLUMNS, first);
}

template <class Sum, int NT> cudaError_t run_head(const oct_tensor_launch &l, cudaStream_t stream) {
    constexpr int COLUMNS = 8 * WARPS * NT;
    const int operand = HEAD_ROWS * head_pitch(l.inputs * (l.int8 ? 1 : 2));
    const int sums = HEAD_ROWS * (COLUMNS + 4) * 4 + l.height * COLUMNS * 4, size = operand > sums ? operand : sums;
    const dim3 grid(static_cast<unsigned>((l.outputs + COLUMNS - 1) / COLUMNS), static_cast<unsigned>(l.pictures));
    const cudaError_t error = cudaFuncSetAttribute(head<Sum, NT>, cudaFuncAttributeMaxDynamicSharedMemorySize, size);
    if (error != cudaSuccess) return error;
    return launch_chained(head<Sum, NT>, grid, THREADS, size, 1, stream, l);
}

template <class Sum> cudaError_t choose(const oct_tensor_launch &l, cudaStream_t stream) {
    if (l.height > 0) return l.pictures < 64 ? run_head<Sum, 1>(l, stream) : run_head<Sum, 2>(l, stream);
    if (l.rows <= 16) return run<Sum, 1, true>(l, stream);
    return l.rows <= 512 ? run<Sum, 4, true>(l, stream) : run<Sum, 4, false>(l, stream);
}

} // namespace

extern "C" cudaError_t oct_run_tensor(const oct_tensor_launch *l, cudaStream_t stream) {
    return l->int8 ? choose<int>(*l, stream) : choose<float>(*l, stream);
}
