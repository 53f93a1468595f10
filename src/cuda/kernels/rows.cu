/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that make each row of one row (or two): a block a row. Each element is computed once more where a form has a
 * scale a row, which needs the row's largest magnitude first. And GLOBAL_POOL and ATTENTION, plainly. */
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/view.cuh"

namespace {

constexpr int THREADS = 128;

template <class Combine> __device__ float reduce(float x, Combine combine) {
    __shared__ float parts[THREADS / 32];
    for (int i = 16; i > 0; i /= 2) x = combine(x, __shfl_xor_sync(~0u, x, i));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < THREADS / 32; i++) x = combine(x, parts[i]);
    return x;
}

__device__ float add(float a, float b) {
    return a + b;
}

__device__ float greater(float a, float b) {
    return fmaxf(a, b);
}

struct row_state {
    int64_t x, out; /* rows */
    float mean, factor;
};

__device__ float element(const oct_rows_launch &l, const row_state &s, int c) {
    switch (l.kind) {
    case OCT_ROW_ACTIVATE:
        return oct_activate(static_cast<oct_activation>(l.activation), oct_load(l.x, s.x, c));
    case OCT_ROW_ADD:
        return oct_activate(static_cast<oct_activation>(l.activation),
                            oct_load(l.x, s.x, c) + oct_load(l.y, s.x % l.y.rows, c));
    case OCT_ROW_NORM:
        return fmaf((oct_load(l.x, s.x, c) - s.mean) * s.factor, l.vectors[0][c], l.vectors[1][c]);
    case OCT_ROW_AFFINE:
        return fmaf((oct_load(l.x, s.x, c) - l.vectors[2][c]) * (1.0f / sqrtf(l.vectors[3][c] + l.epsilon)),
                    l.vectors[0][c], l.vectors[1][c]);
    case OCT_ROW_RESHAPE: {
        const int64_t at = s.out * l.out[0].channels + c;
        return oct_load(l.x, at / l.x.channels, static_cast<int>(at % l.x.channels));
    }
    default:
        return oct_load(l.x, s.x, c);
    }
}

__device__ void statistics(const oct_rows_launch &l, row_state &s) {
    const int channels = l.x.channels;
    float sum = 0, squares = 0;
    for (int c = threadIdx.x; c < channels; c += THREADS) sum += oct_load(l.x, s.x, c);
    s.mean = reduce(sum, add) / static_cast<float>(channels);
    for (int c = threadIdx.x; c < channels; c += THREADS) {
        const float d = oct_load(l.x, s.x, c) - s.mean;
        squares = fmaf(d, d, squares);
    }
    s.factor = 1.0f / sqrtf(reduce(squares, add) / static_cast<float>(channels) + l.epsilon);
}

/* OCT_SCALE_LEAST of graph/stored.h, whose other functions are the host's. */
constexpr float SCALE_LEAST = 0x1p-120f;

__global__ void __launch_bounds__(THREADS) rows(const oct_rows_launch l) {
    const int64_t r = blockIdx.x;
    row_state s;
    s.x = r / l.group * l.x_group + l.x_first + r % l.group;
    s.out = r / l.group * l.out_group + l.out_first + r % l.group;
    s.mean = s.factor = 0;
    if (l.kind == OCT_ROW_NORM) statistics(l, s);
    const int channels = l.out[0].channels;
    float inverses[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        inverses[i] = l.out[i].inverse;
        if (i >= l.out_count || l.out[i].scales == nullptr) continue;
        float amax = 0;
        for (int c = threadIdx.x; c < channels; c += THREADS) {
            const float x = fabsf(element(l, s, c));
            if (x < INFINITY) amax = fmaxf(amax, x);
        }
        amax = reduce(amax, greater);
        float scale = amax > 0 ? amax / (l.out[i].format == OCT_FORMAT_INT8 ? 127.0f : 448.0f) : 1.0f;
        scale = scale < SCALE_LEAST ? SCALE_LEAST : scale;
        inverses[i] = 1.0f / scale;
        if (threadIdx.x == 0) l.out[i].scales[s.out] = scale;
    }
    for (int c = threadIdx.x; c < channels; c += THREADS) {
        const float x = element(l, s, c);
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (i < l.out_count) oct_store(l.out[i], s.out, c, x, inverses[i]);
    }
}

/* The same where no element needs its row: a thread an element. */
__global__ void __launch_bounds__(THREADS) elements(const oct_rows_launch l) {
    const unsigned channels = static_cast<unsigned>(l.out[0].channels);
    const unsigned at = blockIdx.x * THREADS + threadIdx.x, row = at / channels; /* fewer than 2^31 */
    const int c = static_cast<int>(at - row * channels);
    if (row >= l.rows) return;
    row_state s;
    const unsigned group = static_cast<unsigned>(l.group), g = row / group, in_group = row - g * group;
    s.x = g * l.x_group + l.x_first + in_group;
    s.out = g * l.out_group + l.out_first + in_group;
    s.mean = s.factor = 0;
    const float x = element(l, s, c);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < l.out_count) oct_store(l.out[i], s.out, c, x, l.out[i].inverse);
}

__global__ void __launch_bounds__(THREADS) pool(const oct_pool_launch l) {
    const int c = blockIdx.x * THREADS + threadIdx.x;
    const int64_t picture = blockIdx.y;
    if (c >= l.x.channels) return;
    /* a picture row's sum, then the sum of those: the order of the CPU's (cpu/kernels/pool_f32.h) */
    float total = 0;
    for (int64_t y = 0; y < l.height; y++) {
        float sum = 0;
        for (int64_t x = 0; x < l.width; x++) sum += oct_load(l.x, (picture * l.height + y) * l.width + x, c);
        total += sum;
    }
    const float mean = total / static_cast<float>(l.height * l.width);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < l.out_count) oct_store(l.out[i], picture, c, mean, l.out[i].inverse);
}

/* A block a query of a head: all its scores in shared memory, then the mean of the values. */
__global__ void __launch_bounds__(THREADS) attention(const oct_attention_launch l) {
    extern __shared__ float scores[];
    const int size = l.q.channels / l.heads, first = blockIdx.y * size;
    const int64_t picture = blockIdx.z, base = picture * l.tokens, row = base + blockIdx.x;
    const int tokens = static_cast<int>(l.tokens);
    float top = -INFINITY;
    bool nan = false;
    for (int t = threadIdx.x; t < tokens; t += THREADS) {
        float sum = 0;
        for (int d = 0; d < size; d++)
            sum = fmaf(oct_load(l.q, row, first + d), oct_load(l.k, base + t, first + d), sum);
        scores[t] = sum * l.scale;
        nan |= scores[t] != scores[t];
        top = fmaxf(top, scores[t]);
    }
    top = reduce(nan ? INFINITY : top, greater); /* infinity - infinity: NaN for the row */
    float total = 0;
    for (int t = threadIdx.x; t < tokens; t += THREADS) {
        scores[t] = oct_exp(scores[t] - top);
        total += scores[t];
    }
    total = reduce(total, add);
    __syncthreads();
    for (int d = threadIdx.x; d < size; d += THREADS) {
        float sum = 0;
        for (int t = 0; t < tokens; t++) sum = fmaf(scores[t], oct_load(l.v, base + t, first + d), sum);
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (i < l.out_count) oct_store(l.out[i], row, first + d, sum / total, l.out[i].inverse);
    }
}

} // namespace

extern "C" cudaError_t oct_run_rows(const oct_rows_launch *l, cudaStream_t stream) {
    const bool whole = l->kind == OCT_ROW_NORM || l->rows * l->out[0].channels > INT32_MAX - THREADS ||
                       l->out[0].scales != nullptr || l->out[1].scales != nullptr;
    const int64_t threads = l->rows * l->out[0].channels;
    if (whole)
        rows<<<static_cast<unsigned>(l->rows), THREADS, 0, stream>>>(*l);
    else
        elements<<<static_cast<unsigned>((threads + THREADS - 1) / THREADS), THREADS, 0, stream>>>(*l);
    return cudaGetLastError();
}

extern "C" cudaError_t oct_run_pool(const oct_pool_launch *l, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((l->x.channels + THREADS - 1) / THREADS),
                    static_cast<unsigned>(l->out[0].rows));
    pool<<<grid, THREADS, 0, stream>>>(*l);
    return cudaGetLastError();
}

extern "C" cudaError_t oct_run_attention(const oct_attention_launch *l, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(l->tokens), static_cast<unsigned>(l->heads), static_cast<unsigned>(l->batch));
    const size_t shared = static_cast<size_t>(l->tokens) * sizeof(float);
    const cudaError_t error =
        cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (error != cudaSuccess) return error;
    attention<<<grid, THREADS, shared, stream>>>(*l);
    return cudaGetLastError();
}
