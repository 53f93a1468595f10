/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between the library and the device: liboctet_cuda.so exports one function, oct_cuda_entry, that gives this
 * table. Nothing behind it calls the library; everything before it is plain C, so tests put a device of their own in
 * its place. Functions return 0 or one of oct_device_status, with a text of what the driver said in `error`. */
#ifndef OCT_CUDA_DEVICE_H
#define OCT_CUDA_DEVICE_H

#include <stddef.h>

#include "cuda/launch.h"

#define OCT_DEVICE_VERSION 1u

typedef enum oct_device_status {
    OCT_DEVICE_OK,
    OCT_DEVICE_NONE,   /* no driver, no device, a driver too old */
    OCT_DEVICE_MEMORY, /* no memory left */
    OCT_DEVICE_LOST,   /* an error that the context does not survive */
    OCT_DEVICE_OTHER
} oct_device_status;

typedef struct oct_device_error {
    char text[240];
} oct_device_error;

typedef struct oct_device_facts {
    char name[128];
    int32_t major, minor, multiprocessors, driver, runtime; /* versions as CUDA counts them: 13000 */
    uint64_t memory, free, l2, shared;                      /* bytes; shared: the most a block may have */
} oct_device_facts;

typedef struct oct_stream oct_stream; /* a stream and the graphs made in it; one thread at a time */

typedef struct oct_device_api {
    uint32_t version;
    uint64_t launch_size; /* sizeof(oct_launch), of whoever was compiled */
    int (*facts)(int ordinal, oct_device_facts *facts, oct_device_error *error);
    int (*allocate)(int ordinal, uint64_t size, void **memory, oct_device_error *error);
    void (*release)(void *memory);
    int (*allocate_host)(uint64_t size, void **memory,
                         oct_device_error *error); /* that the device copies from and to */
    void (*release_host)(void *memory);
    int (*stream_new)(int ordinal, oct_stream **stream, oct_device_error *error);
    void (*stream_free)(oct_stream *stream);
    /* In order with what the stream does; the host's memory is used until the next `wait`. */
    int (*upload)(oct_stream *stream, void *to, const void *from, uint64_t size, oct_device_error *error);
    int (*download)(oct_stream *stream, void *to, const void *from, uint64_t size, oct_device_error *error);
    int (*fill)(oct_stream *stream, void *to, int byte, uint64_t size, oct_device_error *error);
    int (*wait)(oct_stream *stream, oct_device_error *error);
    /* Launches one by one; or made into a graph once, then replayed. `slot` 0 .. 3: a graph each. */
    int (*launch)(oct_stream *stream, const oct_launch *launches, size_t count, oct_device_error *error);
    int (*graph_make)(oct_stream *stream, int slot, const oct_launch *launches, size_t count, oct_device_error *error);
    int (*graph_run)(oct_stream *stream, int slot, oct_device_error *error);
    /* Milliseconds of `runs` replays in a row, by events of the device, the whole divided by `runs`. */
    int (*graph_time)(oct_stream *stream, int slot, int runs, float *milliseconds, oct_device_error *error);
} oct_device_api;

typedef const oct_device_api *(*oct_cuda_entry_function)(void);

#endif
