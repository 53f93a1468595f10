/* SPDX-License-Identifier: Apache-2.0 */
/* What engine.c, place.c and session.c share. */
#ifndef OCT_CUDA_ENGINE_H
#define OCT_CUDA_ENGINE_H

#include "cuda/tactic.h"

/* One launch of the plan: a tactic at its first step. */
typedef struct oct_cuda_part {
    size_t step;
    const oct_cuda_tactic *tactic; /* NULL: a RESHAPE that moves nothing */
    uint64_t packed;               /* offset of its weights */
} oct_cuda_part;

struct oct_cuda_engine {
    const oct_plan *plan;
    const oct_weights *weights;
    const oct_device_api *api;
    int ordinal;
    oct_cuda_part *parts;
    size_t part_count;
    oct_cuda_place *places;
    uint64_t arena_size, input_staging; /* input_staging: offset in the arena of the input as float32 */
    uint64_t packed_size;
    uint8_t *packed; /* on the device */
};

/* Places every tensor that leaves a launch: lives from the launch that makes it to the last that reads it. */
octet_status oct_cuda_place_tensors(oct_cuda_engine *engine);

#endif
