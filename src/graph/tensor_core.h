/* SPDX-License-Identifier: Apache-2.0 */
/* How Hopper's tensor cores sum products of E4M3 (wgmma m64nNk32, float32 accumulator), in integers: the rule that an
 * engine on such a device is held against, bit for bit.
 *
 * 32 products and the sum so far are one step. Each has an exponent: of a product the sum of its factors' (a
 * subnormal's is -6), of the sum that of its leading bit. All are shifted under the largest exponent there and cut,
 * towards zero, behind 13 bits of fraction; then added without loss; the result is cut to 13 bits of fraction again. A
 * depth that is no multiple of 32 is filled with zeros. Source: the models of microsoft/MMA-Sim (arXiv 2511.10909). */
#ifndef OCT_GRAPH_TENSOR_CORE_H
#define OCT_GRAPH_TENSOR_CORE_H

#include <stdint.h>

#define OCT_TENSOR_CORE_DEPTH 32

/* One step: sum + a[0] b[0] + ... over `count` <= 32 codes of E4M3. NaN where a factor or the sum is. */
float oct_tensor_core_step(const uint8_t *a, const uint8_t *b, int count, float sum);
/* All of `depth`: steps in order. `promote` > 0: after so many values (a multiple of 32) the sum so far goes to a
 * float32 register by an ordinary addition and begins anew at 0, as kernels do for precision. */
float oct_tensor_core_dot(const uint8_t *a, const uint8_t *b, int64_t depth, int64_t promote);

#endif
