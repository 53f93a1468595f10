/* SPDX-License-Identifier: Apache-2.0 */
/* Products by tensor cores (kernels/tensor.cu): LINEAR and 1 x 1 CONV2D, and a 1 x 1 with the GLOBAL_POOL after it. */
#include <string.h>

#include "cuda/tactic.h"

static const char *refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_attributes *a = &step->attributes;
    const oct_cuda_operand x = oct_cuda_input(site, 0), weight = oct_cuda_input(site, 1);
    (void)self;
    if (step->op == OCT_OP_CONV2D &&
        (weight.shape->dims[1] != 1 || weight.shape->dims[2] != 1 || a->stride_h != 1 || a->stride_w != 1 ||
         a->pad_top + a->pad_left + a->pad_bottom + a->pad_right != 0 || a->groups != 1))
        return "a window";
    const oct_format format = x.form->format;
    if (x.tensor == NULL || weight.constant == NULL || (a->has_bias && oct_cuda_input(site, 2).constant == NULL))
        return "constants and activations in other places";
    if (format != OCT_FORMAT_FP16 && format != OCT_FORMAT_INT8) return "neither fp16 nor int8";
    if (weight.form->format != format) return "the weight is in another format";
    if (x.form->granularity != OCT_PER_TENSOR) return "scales by row";
    if (oct_cuda_channels(x.shape) * (format == OCT_FORMAT_INT8 ? 1 : 2) % 16 != 0)
        return "rows of no multiple of 16 bytes";
    if (oct_cuda_channels(&oct_cuda_output(site)->shape) % 4 != 0) return "outputs of no multiple of 4";
    return oct_cuda_forms_refused(site, false);
}

#define POOL_ROWS 64 /* pixels a picture that kernels/tensor.cu takes */

static const char *pool_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    oct_cuda_site next = *site;
    next.step++;
    if (oct_cuda_step(&next)->op != OCT_OP_GLOBAL_POOL) return "no pooling follows";
    if (!oct_cuda_feeds_next(site)) return "others read what is between";
    const oct_plan_tensor *between = oct_cuda_output(site);
    const oct_format format = between->form.format;
    if (between->shape.dims[1] * between->shape.dims[2] > POOL_ROWS) return "too many pixels";
    if (oct_cuda_step(site)->attributes.has_residual) return "a residual";
    if (between->form.granularity != OCT_PER_TENSOR ||
        (format != OCT_FORMAT_FP32 && format != OCT_FORMAT_FP16 && format != OCT_FORMAT_INT8))
        return "the form of what is between";
    const char *why = refuses(self, site);
    return why != NULL ? why : oct_cuda_forms_refused(&next, false);
}

/* Packed: [weight rows][bias][scales]. */
typedef struct packed_tensor {
    uint64_t bias, scales, size;
    int64_t outputs, inputs;
    bool int8;
} packed_tensor;

static packed_tensor packed_of(const oct_cuda_site *site) {
    packed_tensor p = {.outputs = oct_cuda_channels(&oct_cuda_output(site)->shape),
                       .inputs = oct_cuda_channels(oct_cuda_input(site, 0).shape),
                       .int8 = oct_cuda_is_int8_product(site)};
    p.bias = oct_cuda_round_up((uint64_t)(p.outputs * p.inputs) * (p.int8 ? 1 : 2), 64);
    p.scales = p.bias + oct_cuda_round_up((uint64_t)p.outputs * sizeof(float), 64);
    p.size = p.scales + oct_cuda_round_up((uint64_t)p.outputs * sizeof(float), 64);
    return p;
}

static uint64_t packed(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    return packed_of(site).size;
}

static octet_status pack(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *to) {
    (void)self;
    const packed_tensor p = packed_of(site);
    const oct_constant *weight = oct_cuda_input(site, 1).constant;
    if (p.int8) {
        memcpy(to, weight->codes, (size_t)(p.outputs * p.inputs));
        oct_cuda_scales(site, oct_cuda_input(site, 0).form->scale, (float *)(void *)(to + p.scales));
    } else {
        for (int64_t i = 0; i < p.outputs * p.inputs; i++) {
            const uint16_t half = oct_fp16_encode(weight->data[i]);
            memcpy(to + i * 2, &half, sizeof half);
        }
    }
    oct_cuda_bias(site, (float *)(void *)(to + p.bias));
    return OCTET_OK;
}

static size_t lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                    oct_launch *launch) {
    const packed_tensor p = packed_of(site);
    const oct_plan_tensor *out = oct_cuda_output(site);
    oct_tensor_launch *l = &launch->u.tensor;
    launch->kind = OCT_LAUNCH_TENSOR;
    *l = (oct_tensor_launch){.x = oct_cuda_view(site, memory, oct_cuda_input(site, 0).index),
                             .weight = memory->packed,
                             .rows = oct_cuda_rows(oct_cuda_input(site, 0).shape),
                             .inputs = (int32_t)p.inputs,
                             .outputs = (int32_t)p.outputs,
                             .int8 = p.int8,
                             .epilogue = oct_cuda_epilogue(site, memory)};
    if (self->span > 1) {
        oct_cuda_site next = *site;
        next.step++;
        l->height = (int32_t)out->shape.dims[1];
        l->width = (int32_t)out->shape.dims[2];
        l->pictures = (int32_t)out->shape.dims[0];
        l->between = oct_cuda_form_view(&out->form, p.outputs);
        l->epilogue.out_count = oct_cuda_outputs(&next, memory, l->epilogue.out);
    }
    l->epilogue.bias = (const float *)(const void *)(memory->packed + p.bias);
    l->epilogue.scales = (const float *)(const void *)(memory->packed + p.scales);
    return 1;
}

#define TENSOR(name_, op_, span_, refuses_)                                                                            \
    {                                                                                                                  \
        .name = name_, .op = OCT_OP_##op_, .span = span_, .refuses = refuses_, .packed = packed, .pack = pack,         \
        .lower = lower                                                                                                 \
    }

const oct_cuda_tactic oct_cuda_tensor[] = {
    TENSOR("tensor_pool", CONV2D, 2, pool_refuses),
    TENSOR("tensor", CONV2D, 1, refuses),
    TENSOR("tensor", LINEAR, 1, refuses),
    {.name = NULL},
};
