/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' launchers, by launch kind. The stream is a cudaStream_t. */
#ifndef OCT_CUDA_KERNELS_H
#define OCT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t oct_run_matrix(const oct_matrix_launch *launch, cudaStream_t stream);
cudaError_t oct_run_depthwise(const oct_matrix_launch *launch, cudaStream_t stream);
cudaError_t oct_run_rows(const oct_rows_launch *launch, cudaStream_t stream);
cudaError_t oct_run_pool(const oct_pool_launch *launch, cudaStream_t stream);
cudaError_t oct_run_attention(const oct_attention_launch *launch, cudaStream_t stream);
cudaError_t oct_run_tensor(const oct_tensor_launch *launch, cudaStream_t stream);
cudaError_t oct_run_block(const oct_block_launch *launch, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
