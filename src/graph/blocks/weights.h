/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a checkpoint for builders, beyond oct_weight and oct_weight_conv of family.h. All mark the tensor used and
 * want its shape to the letter: "FILE: NAME: expected [10, 1280], found [1000, 1280]". */
#ifndef OCT_GRAPH_BLOCKS_WEIGHTS_H
#define OCT_GRAPH_BLOCKS_WEIGHTS_H

#include "graph/family.h"

/* The elements as float32 in *data: oct_alloc'd, caller frees; NULL on failure. */
octet_status oct_weight_read(oct_checkpoint *checkpoint, const char *name, int rank, const int64_t *dims, float **data);
/* A tensor cut along its first axis into `parts` equal constants named names[i] (a fused query, key, value). ids[i] is
 * OCT_NONE on failure, for all. */
octet_status oct_weight_split(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int rank,
                              const int64_t *dims, int parts, const char *const *names, int32_t *ids);

#endif
