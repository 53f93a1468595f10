/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef OCT_ENGINE_INTERNAL_H
#define OCT_ENGINE_INTERNAL_H

#include "engine/backend.h"

#define OCT_MEMORY_ALIGNMENT 64u

/* A value that is neither the input nor made by a node. Holds after the data has moved to the weights too. */
bool oct_value_is_constant(const oct_graph *graph, int32_t id);

/* Bytes of a tensor of this shape and form, rounded up to the alignment; false: over the limits. */
bool oct_tensor_bytes(const oct_shape *shape, const oct_form *form, uint64_t *bytes);

/* A row of a constant of mxfp8 or nvfp4 as bytes: its length, writing (false: not numbers of the format), reading. */
size_t oct_blocks_row_bytes(oct_format format, size_t columns);
bool oct_blocks_row_write(const oct_form *form, const float *row, size_t columns, uint8_t *bytes);
void oct_blocks_row_read(const oct_form *form, const uint8_t *bytes, size_t columns, float *row);

/* Whether input `input` of this step may be the very memory of its output, by the op alone (backend.h, "in place"). */
bool oct_step_in_place(const oct_plan_step *step, int input);
/* Which input is the residual, or -1. */
int oct_step_residual(const oct_plan_step *step);
/* Whether the step moves nothing: a RESHAPE whose output lies where its input does. */
bool oct_step_is_view(const oct_plan *plan, const oct_plan_step *step);

/* Blocks to be laid in one arena: those whose lifetimes [first, last] meet must not overlap. Largest first, each at the
 * lowest place that fits, ties by index: the same blocks give the same offsets. *total is the arena's size. */
typedef struct oct_memory_block {
    uint64_t size;
    int32_t first, last;
    uint64_t offset;
} oct_memory_block;
octet_status oct_memory_place(oct_memory_block *blocks, size_t count, uint64_t *total);

#endif
