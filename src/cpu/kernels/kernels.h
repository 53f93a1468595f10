/* SPDX-License-Identifier: Apache-2.0 */
/* Declares every body and driver named in kernels.def. */
#ifndef OCT_CPU_KERNELS_KERNELS_H
#define OCT_CPU_KERNELS_KERNELS_H

#include "cpu/kernel.h"
#include "cpu/kernels/attention_f32.h"
#include "cpu/kernels/batch_norm_f32.h"
#include "cpu/kernels/copy_f32.h"
#include "cpu/kernels/depthwise_f32.h"
#include "cpu/kernels/depthwise_i8.h"
#include "cpu/kernels/elementwise_f32.h"
#include "cpu/kernels/gemm_f32.h"
#include "cpu/kernels/gemm_i8.h"
#include "cpu/kernels/grouped_f32.h"
#include "cpu/kernels/layer_norm_f32.h"
#include "cpu/kernels/pool_f32.h"
#include "cpu/kernels/round_f32.h"

#define OCT_KERNEL(op, name, isa, driver, type, body, rows, columns)                                                   \
    extern const oct_driver oct_driver_##driver;                                                                       \
    oct_##type##_body body;
#include "cpu/kernels/kernels.def"
#undef OCT_KERNEL

#endif
