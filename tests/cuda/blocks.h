/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OCT_TESTS_CUDA_BLOCKS_H
#define OCT_TESTS_CUDA_BLOCKS_H

#include "cuda/cuda.h"

/* Inverted-residual blocks of drawn sizes by every tactic that takes them, against the reference evaluation: int8 to
 * the bit, fp16 to a hundredth of the largest output. Prints failures and returns how many. */
int check_blocks(const oct_device_api *api, uint64_t seed, int rounds);

#endif
