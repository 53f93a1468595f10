/* SPDX-License-Identifier: Apache-2.0 */
/* What the card can do, by our own measure: the figures that kernels are designed by.
 *
 *     lab_primitives [HEADER...]        the arguments (date, commit) are printed as the first line
 *
 * Rates are of one multiprocessor, all of them running: 1024 threads (wgmma: 4 warpgroups), 8 independent chains a
 * thread, clocks of the multiprocessor from the first thread's start to the last's end, median over multiprocessors,
 * then median and spread over 9 runs. Times of launches and copies are by events. */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

static void check(cudaError_t code, int line) {
    if (code == cudaSuccess) return;
    fprintf(stderr, "primitives: line %d: %s\n", line, cudaGetErrorString(code));
    exit(1);
}
#define CHECK(call) check((call), __LINE__)

static int multiprocessors;
constexpr int RUNS = 9, CHAINS = 8, ROUNDS = 256;

struct figure {
    double median, low, high;
};

static figure figure_of(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return {x[x.size() / 2], x.front(), x.back()};
}

static void print(const char *name, figure f, const char *unit) {
    printf("%-52s %10.2f  (%.2f .. %.2f) %s\n", name, f.median, f.low, f.high, unit);
}

/* ---- rates of single instructions: `per` results of an instruction and thread */

#define INSTRUCTION(name_, type_, per_, body_)                                                                         \
    struct name_ {                                                                                                     \
        using type = type_;                                                                                            \
        static constexpr double per = per_;                                                                            \
        static __device__ __forceinline__ void step(type &x, type c) {                                                 \
            body_;                                                                                                     \
        }                                                                                                              \
    };
INSTRUCTION(fma_f32, float, 1, asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(c)))
INSTRUCTION(fma_f16x2, uint32_t, 2, asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(x) : "r"(c)))
INSTRUCTION(add_f32, float, 1, asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(c)))
INSTRUCTION(dp4a, uint32_t, 4, asm volatile("dp4a.s32.s32 %0, %1, %1, %0;" : "+r"(x) : "r"(c)))
INSTRUCTION(prmt, uint32_t, 1, asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(x) : "r"(c)))
INSTRUCTION(shfl, uint32_t, 1, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x) : "r"(c)))
INSTRUCTION(ex2_f32, float, 1, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x) : "f"(c)))
INSTRUCTION(ex2_f16x2, uint32_t, 2, asm volatile("ex2.approx.f16x2 %0, %0;" : "+r"(x) : "r"(c)))
INSTRUCTION(cvt_f16x2_f32, float, 2,
            asm volatile("{.reg .b32 t; cvt.rn.f16x2.f32 t, %0, %1; mov.b32 %0, t;}"
                         : "+f"(x)
                         : "f"(c)))
INSTRUCTION(cvt_f32_f16, uint32_t, 1,
            asm volatile("{.reg .b16 l, h; .reg .f32 t; mov.b32 {l, h}, %0; cvt.f32.f16 t, l; mov.b32 %0, t;}"
                         : "+r"(x)
                         : "r"(c)))
INSTRUCTION(
    cvt_e4m3x2_f32, float, 2,
    asm volatile("{.reg .b16 t; .reg .b32 w; cvt.rn.satfinite.e4m3x2.f32 t, %0, %1; mov.b32 w, {t, t}; mov.b32 %0, w;}"
                 : "+f"(x)
                 : "f"(c)))
INSTRUCTION(cvt_e4m3x2_f16x2, uint32_t, 2,
            asm volatile("{.reg .b16 t; cvt.rn.satfinite.e4m3x2.f16x2 t, %0; mov.b32 %0, {t, t};}"
                         : "+r"(x)
                         : "r"(c)))
INSTRUCTION(cvt_f16x2_e4m3x2, uint32_t, 2,
            asm volatile("{.reg .b16 l, h; mov.b32 {l, h}, %0; cvt.rn.f16x2.e4m3x2 %0, l;}"
                         : "+r"(x)
                         : "r"(c)))
INSTRUCTION(cvt_s32_f32, float, 1,
            asm volatile("{.reg .s32 t; cvt.rni.s32.f32 t, %0; mov.b32 %0, t;}"
                         : "+f"(x)
                         : "f"(c)))
INSTRUCTION(cvt_f32_s32, uint32_t, 1,
            asm volatile("{.reg .f32 t; cvt.rn.f32.s32 t, %0; mov.b32 %0, t;}"
                         : "+r"(x)
                         : "r"(c)))
INSTRUCTION(pack_s8, uint32_t, 2, asm volatile("cvt.pack.sat.s8.s32.b32 %0, %0, %1, %0;" : "+r"(x) : "r"(c)))

template <class I>
__global__ void __launch_bounds__(1024) instruction(typename I::type *sink, typename I::type c, long long *clocks) {
    typename I::type x[CHAINS];
    for (int i = 0; i < CHAINS; i++) x[i] = c + static_cast<typename I::type>(threadIdx.x + i);
    __syncthreads();
    const long long start = clock64();
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int u = 0; u < 4; u++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++) I::step(x[i], c);
    }
    __syncthreads();
    const long long stop = clock64();
    typename I::type all = x[0];
    for (int i = 1; i < CHAINS; i++) all += x[i];
    if (all == static_cast<typename I::type>(12345.678)) sink[threadIdx.x] = all;
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}

static double median_clocks(long long *device) {
    std::vector<long long> clocks(static_cast<size_t>(multiprocessors));
    CHECK(cudaMemcpy(clocks.data(), device, clocks.size() * sizeof(long long), cudaMemcpyDeviceToHost));
    std::sort(clocks.begin(), clocks.end());
    return static_cast<double>(clocks[clocks.size() / 2]);
}

static void *sink;
static long long *clocks;

template <class I> static void measure(const char *name) {
    std::vector<double> rates;
    for (int i = 0; i < RUNS; i++) {
        instruction<I><<<multiprocessors, 1024>>>(static_cast<typename I::type *>(sink),
                                                  static_cast<typename I::type>(1), clocks);
        CHECK(cudaGetLastError());
        rates.push_back(1024.0 * ROUNDS * 4 * CHAINS * I::per / median_clocks(clocks));
    }
    print(name, figure_of(rates), "a clock and SM");
}

/* ---- mma.sync: multiply-adds */

template <int KIND>
__device__ __forceinline__ void mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if (KIND == 0)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else if (KIND == 1)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                     : "+r"(d[0]), "+r"(d[1])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else if (KIND == 2)
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int KIND> __global__ void __launch_bounds__(512) mma_rate(uint32_t *out, uint32_t seed, long long *clocks) {
    uint32_t a[4], b[2], d[CHAINS][4] = {};
    for (int i = 0; i < 4; i++) a[i] = seed * (threadIdx.x + i) & 0x3bff3bffu; /* halves below 1: nothing overflows */
    for (int i = 0; i < 2; i++) b[i] = seed * (threadIdx.x * 3 + i) & 0x3bff3bffu;
    __syncthreads();
    const long long start = clock64();
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++) mma<KIND>(d[i], a, b);
    __syncthreads();
    const long long stop = clock64();
    uint32_t all = 0;
    for (int i = 0; i < CHAINS; i++) all ^= d[i][0] ^ d[i][1] ^ d[i][2] ^ d[i][3];
    if (all == 0x12345u) out[threadIdx.x] = all;
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}

template <int KIND> static void measure_mma(const char *name, double depth) {
    std::vector<double> rates;
    for (int i = 0; i < RUNS; i++) {
        mma_rate<KIND><<<multiprocessors, 512>>>(static_cast<uint32_t *>(sink), 2654435761u, clocks);
        CHECK(cudaGetLastError());
        rates.push_back(16.0 * ROUNDS * CHAINS * 16 * 8 * depth / median_clocks(clocks));
    }
    print(name, figure_of(rates), "multiply-adds a clock and SM");
}

/* ---- wgmma, both operands in shared memory, 128-byte swizzle: the layout does not matter to the rate */

__device__ __forceinline__ uint64_t descriptor(const void *shared) {
    const uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(shared));
    return ((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

template <int KIND, int N> struct wgmma_op;
/* N / 2 accumulators a thread, as a list the assembler wants spelt out: made by these macros */
#define R8(x, o)                                                                                                       \
    "+r"(x[o]), "+r"(x[o + 1]), "+r"(x[o + 2]), "+r"(x[o + 3]), "+r"(x[o + 4]), "+r"(x[o + 5]), "+r"(x[o + 6]),        \
        "+r"(x[o + 7])
#define R16(x, o) R8(x, o), R8(x, o + 8)
#define R32(x, o) R16(x, o), R16(x, o + 16)
#define R64(x, o) R32(x, o), R32(x, o + 32)
#define R128(x, o) R64(x, o), R64(x, o + 64)
#define L16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define L32 L16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define L64                                                                                                            \
    L32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%"   \
        "58,%59,"                                                                                                      \
        "%60,%61,%62,%63"
#define L128                                                                                                           \
    L64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%"   \
        "90,%91,"                                                                                                      \
        "%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%" \
        "115,"                                                                                                         \
        "%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define WGMMA(kind_, n_, count_, shape_, types_, scales_, a_, b_)                                                      \
    template <> struct wgmma_op<kind_, n_> {                                                                           \
        static constexpr int count = count_;                                                                           \
        static __device__ __forceinline__ void step(uint32_t (&d)[count_], uint64_t a, uint64_t b) {                   \
            asm volatile("wgmma.mma_async.sync.aligned." shape_ "." types_ " {" L##count_ "}, %" #a_ ", %" #b_         \
                                                                                          ", " scales_ ";"             \
                         : R##count_(d, 0)                                                                             \
                         : "l"(a), "l"(b));                                                                            \
        }                                                                                                              \
    };
#define F16 "f32.f16.f16"
#define E4M3 "f32.e4m3.e4m3"
#define S8 "s32.s8.s8"
WGMMA(0, 32, 16, "m64n32k16", F16, "1, 1, 1, 0, 0", 16, 17)
WGMMA(0, 64, 32, "m64n64k16", F16, "1, 1, 1, 0, 0", 32, 33)
WGMMA(0, 128, 64, "m64n128k16", F16, "1, 1, 1, 0, 0", 64, 65)
WGMMA(0, 256, 128, "m64n256k16", F16, "1, 1, 1, 0, 0", 128, 129)
WGMMA(1, 32, 16, "m64n32k32", E4M3, "1, 1, 1", 16, 17)
WGMMA(1, 64, 32, "m64n64k32", E4M3, "1, 1, 1", 32, 33)
WGMMA(1, 128, 64, "m64n128k32", E4M3, "1, 1, 1", 64, 65)
WGMMA(1, 256, 128, "m64n256k32", E4M3, "1, 1, 1", 128, 129)
WGMMA(2, 32, 16, "m64n32k32", S8, "1", 16, 17)
WGMMA(2, 64, 32, "m64n64k32", S8, "1", 32, 33)
WGMMA(2, 128, 64, "m64n128k32", S8, "1", 64, 65)
WGMMA(2, 256, 128, "m64n256k32", S8, "1", 128, 129)

constexpr int WGMMA_SHARED = 96 * 1024;
template <int KIND, int N, int GROUPS>
__global__ void __launch_bounds__(128 * GROUPS) wgmma_rate(uint32_t *out, uint32_t seed, long long *clocks) {
    extern __shared__ __align__(1024) uint8_t memory_of_block[];
    uint8_t *const shared = memory_of_block;
    constexpr int COUNT = wgmma_op<KIND, N>::count;
    uint32_t d[COUNT] = {};
    uint32_t *words = reinterpret_cast<uint32_t *>(shared);
    for (int i = threadIdx.x; i < WGMMA_SHARED / 4; i += blockDim.x)
        words[i] = seed * static_cast<uint32_t>(i + 1) & 0x33333333u;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    const uint64_t a = descriptor(shared + group * 8192), b = descriptor(shared + 40960);
    const long long start = clock64();
    for (int r = 0; r < ROUNDS; r++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 4; k++) wgmma_op<KIND, N>::step(d, a + k * 2, b + k * 2);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    __syncthreads();
    const long long stop = clock64();
    uint32_t all = 0;
    for (int i = 0; i < COUNT; i++) all ^= d[i];
    if (all == 0x12345u) out[threadIdx.x] = all;
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}

template <int KIND, int N, int GROUPS> static void measure_wgmma(const char *format) {
    std::vector<double> rates;
    char name[80];
    const double depth = KIND == 0 ? 16 : 32;
    CHECK(cudaFuncSetAttribute(wgmma_rate<KIND, N, GROUPS>, cudaFuncAttributeMaxDynamicSharedMemorySize, WGMMA_SHARED));
    for (int i = 0; i < RUNS; i++) {
        wgmma_rate<KIND, N, GROUPS>
            <<<multiprocessors, 128 * GROUPS, WGMMA_SHARED>>>(static_cast<uint32_t *>(sink), 2654435761u, clocks);
        CHECK(cudaGetLastError());
        rates.push_back(GROUPS * ROUNDS * 4.0 * 64 * N * depth / median_clocks(clocks));
    }
    snprintf(name, sizeof name, "wgmma %s m64n%dk%d, %d warpgroups", format, N, static_cast<int>(depth), GROUPS);
    print(name, figure_of(rates), "multiply-adds a clock and SM");
}

template <int KIND> static void measure_wgmmas(const char *format) {
    measure_wgmma<KIND, 32, 4>(format);
    measure_wgmma<KIND, 64, 4>(format);
    measure_wgmma<KIND, 128, 4>(format);
    measure_wgmma<KIND, 256, 2>(format);
    measure_wgmma<KIND, 256, 1>(format);
}

/* ---- shared memory and bulk copies into it: bytes a clock and SM */

template <int KIND> __global__ void __launch_bounds__(512) shared_rate(uint32_t *out, long long *clocks) {
    __shared__ __align__(128) uint32_t shared[8192];
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) shared[i] = i;
    __syncthreads();
    const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + threadIdx.x * 16;
    uint32_t x[4] = {}, all = 0;
    const long long start = clock64();
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (KIND == 0)
                asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                             : "r"(base + i * 8192));
            else if (KIND == 1)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                             : "r"(base + i * 8192));
            else
                asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(base + i * 8192), "r"(x[0]) : "memory");
            all ^= x[0] ^ x[1] ^ x[2] ^ x[3];
            __syncwarp(); /* so that a load is not taken for the one before */
        }
    __syncthreads();
    const long long stop = clock64();
    if (all == 0x12345u) out[threadIdx.x] = all;
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}

template <int KIND> static void measure_shared(const char *name) {
    std::vector<double> rates;
    for (int i = 0; i < RUNS; i++) {
        shared_rate<KIND><<<multiprocessors, 512>>>(static_cast<uint32_t *>(sink), clocks);
        CHECK(cudaGetLastError());
        rates.push_back(512.0 * 16 * 4 * ROUNDS / median_clocks(clocks));
    }
    print(name, figure_of(rates), "bytes a clock and SM");
}

/* One thread a block keeps STAGES bulk copies of `size` bytes under way. */
constexpr int STAGES = 4, COPIES = 512;
__global__ void bulk_rate(const uint8_t *source, size_t span, int size, long long *clocks) {
    extern __shared__ __align__(1024) uint8_t memory_of_block[];
    uint8_t *const shared = memory_of_block;
    __shared__ __align__(8) uint64_t bars[STAGES];
    uint32_t bar[STAGES];
    for (int i = 0; i < STAGES; i++) bar[i] = static_cast<uint32_t>(__cvta_generic_to_shared(&bars[i]));
    if (threadIdx.x != 0) return;
    for (int i = 0; i < STAGES; i++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar[i]));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    const long long start = clock64();
    for (int n = 0; n < COPIES + STAGES; n++) {
        const int s = n % STAGES;
        if (n >= STAGES) {
            const uint32_t parity = (n / STAGES - 1) & 1;
            asm volatile(
                "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W;}" ::"r"(bar[s]),
                "r"(parity)
                : "memory");
        }
        if (n >= COPIES) continue;
        const size_t at =
            (static_cast<size_t>(blockIdx.x) * COPIES + static_cast<size_t>(n)) * static_cast<size_t>(size) % span;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar[s]), "r"(size) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         to + s * size),
                     "l"(source + at), "r"(size), "r"(bar[s])
                     : "memory");
    }
    clocks[blockIdx.x] = clock64() - start;
}

static void measure_bulk(const uint8_t *source, size_t span, int size, const char *from) {
    std::vector<double> rates;
    char name[80];
    CHECK(cudaFuncSetAttribute(bulk_rate, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * 32768));
    for (int i = 0; i < RUNS; i++) {
        bulk_rate<<<multiprocessors, 32, STAGES * size>>>(source, span, size, clocks);
        CHECK(cudaGetLastError());
        rates.push_back(static_cast<double>(COPIES) * size / median_clocks(clocks));
    }
    snprintf(name, sizeof name, "bulk copies of %d bytes from %s, 4 under way", size, from);
    print(name, figure_of(rates), "bytes a clock and SM");
}

/* ---- barriers and launches */

__device__ unsigned arrivals;
__global__ void grid_barrier(int rounds) {
    for (int r = 1; r <= rounds; r++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrivals) : "memory");
            unsigned seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&arrivals) : "memory");
            } while (seen < static_cast<unsigned>(r) * gridDim.x);
        }
        __syncthreads();
    }
}
__global__ void nothing() {
}

static cudaStream_t stream;
static cudaEvent_t begin, end;

template <class Work> static figure milliseconds(Work work) {
    std::vector<double> times;
    for (int i = 0; i < RUNS + 2; i++) {
        float ms;
        CHECK(cudaEventRecord(begin, stream));
        work();
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (i >= 2) times.push_back(ms);
    }
    return figure_of(times);
}

static figure times(figure f, double factor) {
    return {f.median * factor, f.low * factor, f.high * factor};
}

static void measure_launches(int blocks, bool programmatic) {
    constexpr int NODES = 200;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    char name[80];
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < NODES; i++) {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(static_cast<unsigned>(blocks));
        config.blockDim = dim3(256);
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = programmatic ? 1 : 0;
        CHECK(cudaLaunchKernelEx(&config, nothing));
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    const figure f = milliseconds([&] { CHECK(cudaGraphLaunch(exec, stream)); });
    snprintf(name, sizeof name, "empty kernel in a graph of 200, %d blocks%s", blocks,
             programmatic ? ", programmatic" : "");
    print(name, times(f, 1e3 / NODES), "us");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

static void measure_barrier(int blocks) {
    constexpr int ROUNDS_OF_BARRIER = 200;
    char name[80];
    const unsigned zero = 0;
    std::vector<double> found;
    for (int i = 0; i < RUNS; i++) {
        float ms;
        CHECK(cudaMemcpyToSymbol(arrivals, &zero, sizeof zero));
        int rounds = ROUNDS_OF_BARRIER;
        void *arguments[] = {&rounds};
        CHECK(cudaEventRecord(begin, stream));
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid_barrier), dim3(static_cast<unsigned>(blocks)),
                                          dim3(256), arguments, 0, stream));
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        found.push_back(ms * 1e3 / ROUNDS_OF_BARRIER);
    }
    snprintf(name, sizeof name, "grid barrier, %d blocks", blocks);
    print(name, figure_of(found), "us");
}

/* ---- bandwidth */

__global__ void __launch_bounds__(512) read_all(const uint4 *source, size_t count, uint4 *out) {
    uint4 all = make_uint4(0, 0, 0, 0);
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i + 3 * step < count; i += 4 * step)
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const uint4 x = source[i + u * step];
            all.x ^= x.x ^ x.y ^ x.z ^ x.w;
        }
    if (all.x == 0x12345u) out[threadIdx.x] = all;
}
__global__ void __launch_bounds__(512) write_all(uint4 *to, size_t count) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = make_uint4(1, 2, 3, static_cast<unsigned>(i));
}
__global__ void __launch_bounds__(512) copy_all(const uint4 *source, uint4 *to, size_t count) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i + 3 * step < count; i += 4 * step) {
        uint4 x[4];
#pragma unroll
        for (int u = 0; u < 4; u++) x[u] = source[i + u * step];
#pragma unroll
        for (int u = 0; u < 4; u++) to[i + u * step] = x[u];
    }
}

static figure rate(figure ms, double bytes) {
    return {bytes / ms.median * 1e-9, bytes / ms.high * 1e-9, bytes / ms.low * 1e-9};
}

static void measure_memory(uint8_t *memory, size_t bytes, const char *where, int repeats) {
    const size_t half = bytes / 2, count = half / 16;
    uint4 *a = reinterpret_cast<uint4 *>(memory), *b = reinterpret_cast<uint4 *>(memory + half);
    const unsigned grid = static_cast<unsigned>(multiprocessors) * 4;
    char name[80];
    figure f = milliseconds([&] {
        for (int i = 0; i < repeats; i++) read_all<<<grid, 512, 0, stream>>>(a, count, b);
    });
    snprintf(name, sizeof name, "read %zu MB, %s", half >> 20, where);
    print(name, rate(times(f, 1.0 / repeats), static_cast<double>(half)), "TB/s");
    f = milliseconds([&] {
        for (int i = 0; i < repeats; i++) write_all<<<grid, 512, 0, stream>>>(a, count);
    });
    snprintf(name, sizeof name, "write %zu MB, %s", half >> 20, where);
    print(name, rate(times(f, 1.0 / repeats), static_cast<double>(half)), "TB/s");
    f = milliseconds([&] {
        for (int i = 0; i < repeats; i++) copy_all<<<grid, 512, 0, stream>>>(a, b, count);
    });
    snprintf(name, sizeof name, "copy %zu MB, read + write, %s", half >> 20, where);
    print(name, rate(times(f, 1.0 / repeats), 2.0 * static_cast<double>(half)), "TB/s");
    CHECK(cudaGetLastError());
}

int main(int argc, char **argv) {
    cudaDeviceProp p;
    int driver, runtime;
    for (int i = 1; i < argc; i++) printf("%s%s", argv[i], i + 1 < argc ? " " : "\n");
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    multiprocessors = p.multiProcessorCount;
    printf("%s, %d multiprocessors, capability %d.%d, L2 %d MB, driver %d, runtime %d\n", p.name, multiprocessors,
           p.major, p.minor, p.l2CacheSize >> 20, driver, runtime);
    const size_t bytes = static_cast<size_t>(8) << 30;
    uint8_t *memory;
    CHECK(cudaMalloc(&sink, 1 << 20));
    CHECK(cudaMalloc(&clocks, sizeof(long long) * 1024));
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0x5a, bytes));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));

    measure<fma_f32>("fma f32 (multiply-adds)");
    measure<fma_f16x2>("fma f16x2 (multiply-adds)");
    measure<add_f32>("add f32");
    measure<dp4a>("dp4a (multiply-adds)");
    measure<prmt>("prmt");
    measure<shfl>("shfl");
    measure<ex2_f32>("ex2 f32");
    measure<ex2_f16x2>("ex2 f16x2 (values)");
    measure<cvt_f16x2_f32>("cvt f16x2 from f32 (values)");
    measure<cvt_f32_f16>("cvt f32 from f16");
    measure<cvt_e4m3x2_f32>("cvt e4m3x2 from f32 (values)");
    measure<cvt_e4m3x2_f16x2>("cvt e4m3x2 from f16x2 (values)");
    measure<cvt_f16x2_e4m3x2>("cvt f16x2 from e4m3x2 (values)");
    measure<cvt_s32_f32>("cvt.rni s32 from f32");
    measure<cvt_f32_s32>("cvt f32 from s32");
    measure<pack_s8>("cvt.pack.sat.s8 (values)");
    measure_mma<0>("mma.sync f16, f32 sums, m16n8k16", 16);
    measure_mma<1>("mma.sync f16, f16 sums, m16n8k16", 16);
    measure_mma<2>("mma.sync s8 m16n8k32", 32);
    measure_mma<3>("mma.sync e4m3 m16n8k32", 32);
    measure_wgmmas<0>("f16");
    measure_wgmmas<1>("e4m3");
    measure_wgmmas<2>("s8");
    measure_shared<0>("ld.shared.v4");
    measure_shared<1>("ldmatrix.x4");
    measure_shared<2>("st.shared.v4");
    measure_bulk(memory, static_cast<size_t>(24) << 20, 4096, "L2");
    measure_bulk(memory, static_cast<size_t>(24) << 20, 16384, "L2");
    measure_bulk(memory, bytes, 16384, "HBM");
    measure_barrier(multiprocessors);
    measure_barrier(2 * multiprocessors);
    measure_launches(1, false);
    measure_launches(multiprocessors, false);
    measure_launches(1, true);
    measure_launches(multiprocessors, true);
    measure_memory(memory, static_cast<size_t>(40) << 20, "L2", 20);
    measure_memory(memory, bytes, "HBM", 1);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
