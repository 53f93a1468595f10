/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cuda/device.h over the CUDA runtime. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/device.h"
#include "cuda/kernels/kernels.h"

#define SLOTS 4

struct oct_stream {
    int ordinal;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    cudaGraphExec_t graphs[SLOTS];
};

static int fail(cudaError_t code, const char *what, oct_device_error *error) {
    if (code == cudaSuccess) return OCT_DEVICE_OK;
    (void)cudaGetLastError();
    if (error != NULL) snprintf(error->text, sizeof error->text, "%s: %s", what, cudaGetErrorString(code));
    switch (code) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorNoKernelImageForDevice:
        return OCT_DEVICE_NONE;
    case cudaErrorMemoryAllocation:
        return OCT_DEVICE_MEMORY;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorMisalignedAddress:
    case cudaErrorDevicesUnavailable:
        return OCT_DEVICE_LOST;
    default:
        return OCT_DEVICE_OTHER;
    }
}

#define TRY(call, what)                                                                                                \
    do {                                                                                                               \
        const int try_status = fail((call), (what), error);                                                            \
        if (try_status != OCT_DEVICE_OK) return try_status;                                                            \
    } while (0)

static int facts(int ordinal, oct_device_facts *facts, oct_device_error *error) {
    struct cudaDeviceProp properties;
    size_t left, total;
    TRY(cudaDriverGetVersion(&facts->driver), "driver");
    TRY(cudaRuntimeGetVersion(&facts->runtime), "runtime");
    TRY(cudaGetDeviceProperties(&properties, ordinal), "device");
    TRY(cudaSetDevice(ordinal), "device");
    TRY(cudaMemGetInfo(&left, &total), "device memory");
    snprintf(facts->name, sizeof facts->name, "%.*s", (int)sizeof facts->name - 1, properties.name);
    facts->major = properties.major;
    facts->minor = properties.minor;
    facts->multiprocessors = properties.multiProcessorCount;
    facts->memory = total;
    facts->free = left;
    facts->l2 = (uint64_t)properties.l2CacheSize;
    facts->shared = properties.sharedMemPerBlockOptin;
    return OCT_DEVICE_OK;
}

static int allocate(int ordinal, uint64_t size, void **memory, oct_device_error *error) {
    *memory = NULL;
    TRY(cudaSetDevice(ordinal), "device");
    TRY(cudaMalloc(memory, size), "device memory");
    return OCT_DEVICE_OK;
}

static void release(void *memory) {
    if (memory != NULL) (void)cudaFree(memory);
}

static int allocate_host(uint64_t size, void **memory, oct_device_error *error) {
    *memory = NULL;
    TRY(cudaMallocHost(memory, size), "host memory");
    return OCT_DEVICE_OK;
}

static void release_host(void *memory) {
    if (memory != NULL) (void)cudaFreeHost(memory);
}

static void stream_free(oct_stream *stream) {
    if (stream == NULL) return;
    for (int i = 0; i < SLOTS; i++)
        if (stream->graphs[i] != NULL) (void)cudaGraphExecDestroy(stream->graphs[i]);
    if (stream->start != NULL) (void)cudaEventDestroy(stream->start);
    if (stream->stop != NULL) (void)cudaEventDestroy(stream->stop);
    if (stream->stream != NULL) (void)cudaStreamDestroy(stream->stream);
    free(stream);
}

static int make_stream(oct_stream *stream, oct_device_error *error) {
    TRY(cudaSetDevice(stream->ordinal), "device");
    TRY(cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking), "stream");
    TRY(cudaEventCreate(&stream->start), "event");
    TRY(cudaEventCreate(&stream->stop), "event");
    return OCT_DEVICE_OK;
}

static int stream_new(int ordinal, oct_stream **out, oct_device_error *error) {
    *out = calloc(1, sizeof **out);
    if (*out == NULL) return OCT_DEVICE_MEMORY;
    (*out)->ordinal = ordinal;
    const int status = make_stream(*out, error);
    if (status == OCT_DEVICE_OK) return status;
    stream_free(*out);
    *out = NULL;
    return status;
}

static int upload(oct_stream *stream, void *to, const void *from, uint64_t size, oct_device_error *error) {
    return fail(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream->stream), "copy to the device", error);
}

static int download(oct_stream *stream, void *to, const void *from, uint64_t size, oct_device_error *error) {
    return fail(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream->stream), "copy from the device", error);
}

static int fill(oct_stream *stream, void *to, int byte, uint64_t size, oct_device_error *error) {
    return fail(cudaMemsetAsync(to, byte, size, stream->stream), "fill", error);
}

static int wait(oct_stream *stream, oct_device_error *error) {
    return fail(cudaStreamSynchronize(stream->stream), "running", error);
}

static cudaError_t launch_one(const oct_launch *launch, cudaStream_t stream) {
    switch ((oct_kernel_kind)launch->kind) {
    case OCT_LAUNCH_MATRIX:
        return oct_run_matrix(&launch->u.matrix, stream);
    case OCT_LAUNCH_DEPTHWISE:
        return oct_run_depthwise(&launch->u.matrix, stream);
    case OCT_LAUNCH_ROWS:
        return oct_run_rows(&launch->u.rows, stream);
    case OCT_LAUNCH_POOL:
        return oct_run_pool(&launch->u.pool, stream);
    case OCT_LAUNCH_ATTENTION:
        return oct_run_attention(&launch->u.attention, stream);
    case OCT_LAUNCH_TENSOR:
        return oct_run_tensor(&launch->u.tensor, stream);
    case OCT_LAUNCH_BLOCK:
        return oct_run_block(&launch->u.block, stream);
    case OCT_LAUNCH_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

static int launch(oct_stream *stream, const oct_launch *launches, size_t count, oct_device_error *error) {
    TRY(cudaSetDevice(stream->ordinal), "device");
    for (size_t i = 0; i < count; i++) {
        char what[64];
        snprintf(what, sizeof what, "launch %zu, kind %d, step %d", i, launches[i].kind, launches[i].step);
        TRY(launch_one(&launches[i], stream->stream), what);
    }
    return OCT_DEVICE_OK;
}

static int graph_make(oct_stream *stream, int slot, const oct_launch *launches, size_t count, oct_device_error *error) {
    cudaGraph_t graph = NULL;
    if (slot < 0 || slot >= SLOTS) return OCT_DEVICE_OTHER;
    TRY(cudaSetDevice(stream->ordinal), "device");
    if (stream->graphs[slot] != NULL) TRY(cudaGraphExecDestroy(stream->graphs[slot]), "graph");
    stream->graphs[slot] = NULL;
    TRY(cudaStreamBeginCapture(stream->stream, cudaStreamCaptureModeThreadLocal), "capture");
    const int status = launch(stream, launches, count, error);
    const cudaError_t end = cudaStreamEndCapture(stream->stream, &graph);
    if (status == OCT_DEVICE_OK && end == cudaSuccess) {
        const cudaError_t made = cudaGraphInstantiate(&stream->graphs[slot], graph, 0);
        (void)cudaGraphDestroy(graph);
        return fail(made, "graph", error);
    }
    if (graph != NULL) (void)cudaGraphDestroy(graph);
    return status != OCT_DEVICE_OK ? status : fail(end, "capture", error);
}

static int graph_run(oct_stream *stream, int slot, oct_device_error *error) {
    return fail(cudaGraphLaunch(stream->graphs[slot], stream->stream), "graph", error);
}

static int graph_time(oct_stream *stream, int slot, int runs, float *milliseconds, oct_device_error *error) {
    TRY(cudaEventRecord(stream->start, stream->stream), "event");
    for (int i = 0; i < runs; i++) TRY(cudaGraphLaunch(stream->graphs[slot], stream->stream), "graph");
    TRY(cudaEventRecord(stream->stop, stream->stream), "event");
    TRY(cudaEventSynchronize(stream->stop), "running");
    TRY(cudaEventElapsedTime(milliseconds, stream->start, stream->stop), "event");
    *milliseconds /= (float)runs;
    return OCT_DEVICE_OK;
}

static const oct_device_api table = {
    .version = OCT_DEVICE_VERSION,
    .launch_size = sizeof(oct_launch),
    .facts = facts,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .upload = upload,
    .download = download,
    .fill = fill,
    .wait = wait,
    .launch = launch,
    .graph_make = graph_make,
    .graph_run = graph_run,
    .graph_time = graph_time,
};

__attribute__((visibility("default"))) const oct_device_api *oct_cuda_entry(void);
const oct_device_api *oct_cuda_entry(void) {
    return &table;
}
