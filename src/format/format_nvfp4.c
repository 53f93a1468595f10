/* SPDX-License-Identifier: Apache-2.0 */
/* NVFP4: E2M1 elements, an E4M3 scale a block of 16, a float32 scale a tensor.
 *
 *     value        = E2M1(code) * E4M3(block scale) * tensor scale
 *     tensor scale = amax of the tensor / (6 * 448), so that the largest block scale is E4M3's largest
 *     block scale  = E4M3(min(amax of the block / 6 / tensor scale, 448))
 *
 * Source: NVIDIA, "Introducing NVFP4" and the two-level rule of its Model Optimizer; E2M1 as OCP MX 1.0. Error, in
 * parts of the block's amax: 17/96, half of the step from 4 to 6 under a scale rounded up by 1/16, while the block's
 * scale is a normal E4M3 value (the block's amax at least 2^-6 / 448 of the tensor's). A block smaller than that loses
 * bits and, below 2^-10 / 448, all of them: its scale and codes are 0. */
#include <float.h>
#include <math.h>

#include "format/format.h"
#include "format/minifloat.h"

#define E2M1_LARGEST 6.0f
#define E4M3_LARGEST 448.0f

float oct_nvfp4_tensor_scale(float amax) {
    if (!(amax > 0)) return 0;
    if (amax > FLT_MAX) amax = FLT_MAX;
    float scale = amax / (E2M1_LARGEST * E4M3_LARGEST);
    return scale > 0 ? scale : OCT_FLOAT_SMALLEST;
}

uint8_t oct_nvfp4_scale(float amax, float tensor_scale) {
    if (!(amax <= FLT_MAX)) return OCT_E4M3_NAN;
    if (!(tensor_scale > 0)) return 0;
    return oct_e4m3_encode(amax / E2M1_LARGEST / tensor_scale);
}

void oct_nvfp4_encode(const float *values, size_t count, float tensor_scale, uint8_t *scales, uint8_t *codes) {
    for (size_t begin = 0; begin < count; begin += OCT_NVFP4_BLOCK) {
        size_t end = count - begin < OCT_NVFP4_BLOCK ? count : begin + OCT_NVFP4_BLOCK;
        uint8_t scale = oct_nvfp4_scale(oct_amax(values + begin, end - begin), tensor_scale);
        scales[begin / OCT_NVFP4_BLOCK] = scale;
        float full = (float)((double)oct_e4m3_decode(scale) * (double)tensor_scale);
        for (size_t i = begin; i < end; i++) {
            uint8_t code = full > 0 ? oct_e2m1_encode(values[i] / full) : 0; /* a NaN scale: not above 0 */
            if (!(full > 0) && scale != OCT_E4M3_NAN && signbit(values[i])) code = 8;
            if (i % 2 == 0)
                codes[i / 2] = code;
            else
                codes[i / 2] = (uint8_t)(codes[i / 2] | code << 4);
        }
    }
}

void oct_nvfp4_decode(const uint8_t *scales, const uint8_t *codes, size_t count, float tensor_scale, float *values) {
    for (size_t i = 0; i < count; i++) {
        double full = (double)oct_e4m3_decode(scales[i / OCT_NVFP4_BLOCK]) * (double)tensor_scale;
        float element = oct_e2m1_decode((uint8_t)(codes[i / 2] >> (4 * (i % 2)) & 15));
        values[i] = (float)(element * (double)(float)full);
    }
}
