/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that the tensor-core kernels share: asynchronous copies, matrix fragments, chained launches, and what follows
 * a sum where four neighbours are in hand. */
#ifndef OCT_CUDA_TENSOR_CUH
#define OCT_CUDA_TENSOR_CUH

#include <cuda_runtime.h>

#include "cuda/kernels/view.cuh"

static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
static __device__ __forceinline__ void copy_async16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copy_async8(void *to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- bulk copies to shared memory, and the barrier that tells when one has come: one copy a phase. Compute capability
 * 9.0. */
static __device__ __forceinline__ void barrier_make(uint64_t *barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
static __device__ __forceinline__ void copy_bulk(void *to, const void *from, int size, uint64_t *barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(size)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(size), "r"(shared_address(barrier))
                 : "memory");
#endif
}
static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, int parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra W;\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
#endif
}

/* ---- matrices of 8 rows of 16 bytes. The address a lane gives to load_matrix, for an operand whose rows are `pitch`
 * bytes apart: A is 16 rows of 32 bytes, B is 16 rows of 32 bytes (two n-tiles: b[0], b[1] and b[2], b[3]). */
static __device__ __forceinline__ int matrix_a_offset(int lane, int pitch) {
    return lane % 16 * pitch + lane / 16 * 16;
}
static __device__ __forceinline__ int matrix_b_offset(int lane, int pitch) {
    return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16;
}
static __device__ __forceinline__ void load_matrix(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
static __device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static __device__ __forceinline__ void multiply(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- halves */
static __device__ __forceinline__ uint32_t pack_halves(float low, float high) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
/* Cut to 0 .. high, a half itself, which commutes with rounding; NaN stays. */
static __device__ __forceinline__ uint32_t cut_halves(uint32_t x, uint32_t high) {
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(x) : "r"(0));
    asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(x) : "r"(high));
    return x;
}
static __device__ __forceinline__ uint32_t round_pair(float a, float b, uint32_t high) {
    uint32_t r;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(r) : "r"(high));
    return r;
}

/* ---- the end of a product, four neighbouring outputs of a row in hand: `v` has bias, not yet residual */
static __device__ __forceinline__ void load_quad(const oct_view &x, int64_t row, int o, float (&v)[4]) {
    if (x.format == OCT_FORMAT_FP16) {
        const uint2 codes = *reinterpret_cast<const uint2 *>(static_cast<const __half *>(x.data) + row * x.stride + o);
        const float2 a = __half22float2(*reinterpret_cast<const __half2 *>(&codes.x));
        const float2 b = __half22float2(*reinterpret_cast<const __half2 *>(&codes.y));
        v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
    } else if (x.format == OCT_FORMAT_FP32) {
        const float4 a = *reinterpret_cast<const float4 *>(static_cast<const float *>(x.data) + row * x.stride + o);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = oct_load(x, row, o + j);
    }
}
static __device__ __forceinline__ void store_quad(const oct_view &x, int64_t row, int o, const float (&v)[4]) {
    if (x.format == OCT_FORMAT_FP16) {
        const uint2 codes = make_uint2(pack_halves(v[0], v[1]), pack_halves(v[2], v[3]));
        *reinterpret_cast<uint2 *>(static_cast<__half *>(x.data) + row * x.stride + o) = codes;
    } else if (x.format == OCT_FORMAT_INT8) {
        uint32_t codes = 0;
#pragma unroll
        for (int j = 0; j < 4; j++)
            codes |= static_cast<uint32_t>(static_cast<uint8_t>(oct_int8_code(v[j], x.inverse))) << 8 * j;
        *reinterpret_cast<uint32_t *>(static_cast<int8_t *>(x.data) + row * x.stride + o) = codes;
    } else if (x.format == OCT_FORMAT_FP32) {
        *reinterpret_cast<float4 *>(static_cast<float *>(x.data) + row * x.stride + o) =
            make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) oct_store(x, row, o + j, v[j], x.inverse);
    }
}
static __device__ __forceinline__ void finish_quad(const oct_epilogue &e, int64_t row, int o, float (&v)[4]) {
    if (e.residual.data != nullptr) {
        float r[4];
        load_quad(e.residual, row, o, r);
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] += r[j];
    }
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = oct_activate(static_cast<oct_activation>(e.activation), v[j]);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < e.out_count) store_quad(e.out[i], row, o, v);
}

/* ---- launches that may begin before the one before them has ended: what reads or writes activations comes after
 * wait_for_grid, which returns when that one is complete and seen. */
static __device__ __forceinline__ void wait_for_grid() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void start_next_grid() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <class Launch>
static cudaError_t launch_chained(void (*kernel)(Launch), dim3 grid, int threads, int shared, int cluster,
                                  cudaStream_t stream, const Launch &l) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = static_cast<unsigned>(cluster);
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = grid;
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = static_cast<size_t>(shared);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
    return cudaLaunchKernelEx(&config, kernel, l);
}

#endif
