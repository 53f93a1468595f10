/* SPDX-License-Identifier: Apache-2.0 */
/* A tactic for every op, for every device and every format that is stored: kernels/matrix.cu, kernels/rows.cu. */
#include <string.h>

#include "cuda/tactic.h"
#include "graph/ops/rules.h"

/* ---- CONV2D and LINEAR. Packed: [weight: codes or float32][bias][scales], each a multiple of 64 bytes. */

typedef struct packed_product {
    uint64_t weight, bias, scales, size; /* offsets */
    int64_t outputs, depth;
} packed_product;

static packed_product product_layout(const oct_cuda_site *site) {
    const oct_shape *weight = oct_cuda_input(site, 1).shape;
    packed_product p = {.outputs = weight->dims[0], .depth = oct_shape_count(weight) / weight->dims[0]};
    const uint64_t element = oct_cuda_is_int8_product(site) ? 1 : sizeof(float);
    p.bias = oct_cuda_round_up((uint64_t)(p.outputs * p.depth) * element, 64);
    p.scales = p.bias + oct_cuda_round_up((uint64_t)p.outputs * sizeof(float), 64);
    p.size = p.scales + oct_cuda_round_up((uint64_t)p.outputs * sizeof(float), 64);
    return p;
}

static uint64_t product_packed(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    return product_layout(site).size;
}

static octet_status product_pack(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *packed) {
    (void)self;
    const packed_product p = product_layout(site);
    const oct_constant *weight = oct_cuda_input(site, 1).constant;
    if (oct_cuda_is_int8_product(site)) {
        memcpy(packed, weight->codes, (size_t)(p.outputs * p.depth));
        oct_cuda_scales(site, 1.0f, (float *)(void *)(packed + p.scales));
    } else {
        oct_cuda_numbers(site, weight, (float *)(void *)packed);
    }
    oct_cuda_bias(site, (float *)(void *)(packed + p.bias));
    return OCTET_OK;
}

static const char *product_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    if (oct_cuda_input(site, 1).constant == NULL) return "the weight is no constant";
    if (step->attributes.has_bias && oct_cuda_input(site, 2).constant == NULL) return "the bias is no constant";
    const oct_form *x = oct_cuda_input(site, 0).form;
    if (step->op == OCT_OP_CONV2D && x->granularity == OCT_PER_ROW) return "a scale a row under a window";
    return oct_cuda_forms_refused(site, false);
}

static const char *depthwise_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    const int32_t channels = oct_cuda_channels(oct_cuda_input(site, 0).shape);
    if (oct_cuda_step(site)->attributes.groups != channels ||
        oct_cuda_channels(&oct_cuda_output(site)->shape) != channels)
        return "not depthwise";
    return product_refuses(self, site);
}

static oct_window window_of(const oct_cuda_site *site, const oct_shape *x) {
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_attributes *a = &step->attributes;
    const oct_shape *out = &oct_cuda_output(site)->shape, *weight = oct_cuda_input(site, 1).shape;
    if (step->op == OCT_OP_LINEAR) {
        const int32_t one = 1;
        return (oct_window){one, one, one, one, one, one, one, one, 0, 0};
    }
    return (oct_window){(int32_t)x->dims[1],
                        (int32_t)x->dims[2],
                        (int32_t)out->dims[1],
                        (int32_t)out->dims[2],
                        (int32_t)weight->dims[1],
                        (int32_t)weight->dims[2],
                        a->stride_h,
                        a->stride_w,
                        a->pad_top,
                        a->pad_left};
}

static size_t product_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                            oct_launch *launch) {
    (void)self;
    const packed_product p = product_layout(site);
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_cuda_operand x = oct_cuda_input(site, 0);
    const int groups = step->op == OCT_OP_CONV2D ? step->attributes.groups : 1;
    const bool int8 = oct_cuda_is_int8_product(site);
    oct_matrix_launch *l = &launch->u.matrix;
    *l = (oct_matrix_launch){.x = oct_cuda_view(site, memory, x.index),
                             .window = window_of(site, x.shape),
                             .groups = groups,
                             .group_inputs = oct_cuda_channels(x.shape) / groups,
                             .group_outputs = (int32_t)(p.outputs / groups),
                             .rows = oct_cuda_rows(&oct_cuda_output(site)->shape),
                             .int8 = int8,
                             .epilogue = oct_cuda_epilogue(site, memory)};
    l->weight = (oct_view){.data = memory->packed,
                           .format = int8 ? OCT_FORMAT_INT8 : OCT_FORMAT_FP32,
                           .channels = (int32_t)p.depth,
                           .stride = (int32_t)p.depth,
                           .scale = 1.0f,
                           .inverse = 1.0f,
                           .rows = p.outputs};
    if (step->attributes.has_bias) l->epilogue.bias = (const float *)(const void *)(memory->packed + p.bias);
    l->epilogue.scales = (const float *)(const void *)(memory->packed + p.scales);
    launch->kind = l->group_inputs == 1 && l->group_outputs == 1 ? OCT_LAUNCH_DEPTHWISE : OCT_LAUNCH_MATRIX;
    return 1;
}

/* ---- ops of rows */

static uint64_t nothing_packed(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self, (void)site;
    return 0;
}

static octet_status pack_nothing(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *packed) {
    (void)self, (void)site, (void)packed;
    return OCTET_OK;
}

/* Constants one after the other as float32, each a multiple of 64 bytes. */
static uint64_t vectors_packed(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    uint64_t size = 0;
    for (int i = 0; i < oct_cuda_step(site)->input_count; i++)
        if (!oct_cuda_is_tensor(site, i))
            size += oct_cuda_round_up((uint64_t)oct_shape_count(oct_cuda_input(site, i).shape) * sizeof(float), 64);
    return size;
}

static octet_status pack_vectors(const oct_cuda_tactic *self, const oct_cuda_site *site, uint8_t *packed) {
    (void)self;
    for (int i = 0; i < oct_cuda_step(site)->input_count; i++) {
        if (oct_cuda_is_tensor(site, i)) continue;
        const oct_cuda_operand operand = oct_cuda_input(site, i);
        oct_cuda_numbers(site, operand.constant, (float *)(void *)packed);
        packed += oct_cuda_round_up((uint64_t)oct_shape_count(operand.shape) * sizeof(float), 64);
    }
    return OCTET_OK;
}

/* Input `i` as a view, wherever it lies. `at` walks over the packed constants. */
static oct_view any_view(const oct_cuda_site *site, const oct_cuda_memory *memory, int i, uint8_t **at) {
    const oct_cuda_operand operand = oct_cuda_input(site, i);
    if (operand.tensor != NULL) return oct_cuda_view(site, memory, operand.index);
    oct_view view = {.data = *at,
                     .format = OCT_FORMAT_FP32,
                     .channels = oct_cuda_channels(operand.shape),
                     .stride = oct_cuda_channels(operand.shape),
                     .scale = 1.0f,
                     .inverse = 1.0f,
                     .rows = oct_cuda_rows(operand.shape)};
    *at += oct_cuda_round_up((uint64_t)oct_shape_count(operand.shape) * sizeof(float), 64);
    return view;
}

static const char *rows_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    if (!oct_cuda_is_tensor(site, 0)) return "its first input is a constant";
    for (int i = 1; i < step->input_count; i++)
        if (step->op != OCT_OP_ADD && oct_cuda_is_tensor(site, i)) return "an input that should be a constant";
    return oct_cuda_forms_refused(site, true);
}

static oct_row_kind row_kind(oct_op op) {
    switch (op) {
    case OCT_OP_ACTIVATION:
        return OCT_ROW_ACTIVATE;
    case OCT_OP_ADD:
        return OCT_ROW_ADD;
    case OCT_OP_LAYER_NORM:
        return OCT_ROW_NORM;
    case OCT_OP_BATCH_NORM:
        return OCT_ROW_AFFINE;
    case OCT_OP_RESHAPE:
        return OCT_ROW_RESHAPE;
    default:
        return OCT_ROW_COPY;
    }
}

static oct_rows_launch rows_of(const oct_cuda_site *site, const oct_cuda_memory *memory) {
    const oct_plan_step *step = oct_cuda_step(site);
    oct_rows_launch l = {.kind = (int32_t)row_kind(step->op),
                         .activation = (int32_t)step->attributes.activation,
                         .epsilon = (float)step->attributes.epsilon,
                         .rows = oct_cuda_rows(&oct_cuda_output(site)->shape)};
    l.group = l.rows;
    l.out_count = oct_cuda_outputs(site, memory, l.out);
    return l;
}

static size_t rows_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                         oct_launch *launch) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    oct_rows_launch *l = &launch->u.rows;
    uint8_t *at = memory->packed;
    launch->kind = OCT_LAUNCH_ROWS;
    *l = rows_of(site, memory);
    l->x = any_view(site, memory, 0, &at);
    if (step->op == OCT_OP_ADD) l->y = any_view(site, memory, 1, &at);
    if (step->op == OCT_OP_LAYER_NORM || step->op == OCT_OP_BATCH_NORM)
        for (int i = 1; i < step->input_count; i++) l->vectors[i - 1] = any_view(site, memory, i, &at).data;
    return 1;
}

/* Codes of a scale a row would be found anew from what they stand for: other codes. */
static const char *move_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    if (step->op != OCT_OP_CONCAT && !oct_cuda_is_tensor(site, 0)) return "its input is a constant";
    return oct_cuda_forms_refused(site, false);
}

static size_t concat_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                           oct_launch *launches) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_shape *out = &oct_cuda_output(site)->shape;
    uint8_t *at = memory->packed;
    int64_t first = 0;
    for (int i = 0; i < step->input_count; i++) {
        const int64_t tokens = oct_cuda_input(site, i).shape->dims[1];
        oct_rows_launch *l = &launches[i].u.rows;
        launches[i].kind = OCT_LAUNCH_ROWS;
        *l = rows_of(site, memory);
        l->x = any_view(site, memory, i, &at);
        l->rows = out->dims[0] * tokens;
        l->group = tokens;
        l->x_group = oct_cuda_input(site, i).shape->dims[0] == 1 ? 0 : tokens; /* one for every picture */
        l->out_group = out->dims[1];
        l->out_first = first;
        first += tokens;
    }
    return (size_t)step->input_count;
}

static size_t slice_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                          oct_launch *launch) {
    (void)self;
    const oct_attributes *a = &oct_cuda_step(site)->attributes;
    oct_rows_launch *l = &launch->u.rows;
    launch->kind = OCT_LAUNCH_ROWS;
    *l = rows_of(site, memory);
    l->x = oct_cuda_view(site, memory, oct_cuda_input(site, 0).index);
    l->group = l->out_group = a->length;
    l->x_group = oct_cuda_input(site, 0).shape->dims[1];
    l->x_first = a->start;
    return 1;
}

static const char *other_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    for (int i = 0; i < oct_cuda_step(site)->input_count; i++)
        if (!oct_cuda_is_tensor(site, i)) return "an input is a constant";
    return oct_cuda_forms_refused(site, false);
}

static size_t pool_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                         oct_launch *launch) {
    (void)self;
    const oct_cuda_operand x = oct_cuda_input(site, 0);
    oct_pool_launch *l = &launch->u.pool;
    launch->kind = OCT_LAUNCH_POOL;
    *l = (oct_pool_launch){
        .x = oct_cuda_view(site, memory, x.index), .height = x.shape->dims[1], .width = x.shape->dims[2]};
    l->out_count = oct_cuda_outputs(site, memory, l->out);
    return 1;
}

/* All scores of a query lie in shared memory, of which every device gives a block this much. */
#define SHARED_LEAST (96u << 10)

static const char *attention_refuses(const oct_cuda_tactic *self, const oct_cuda_site *site) {
    (void)self;
    if (oct_cuda_step(site)->attributes.probabilities != OCT_FORMAT_FP32) return "probabilities that are rounded";
    if (oct_cuda_input(site, 0).shape->dims[1] > (int64_t)(SHARED_LEAST / sizeof(float))) return "too many tokens";
    return other_refuses(self, site);
}

static size_t attention_lower(const oct_cuda_tactic *self, const oct_cuda_site *site, const oct_cuda_memory *memory,
                              oct_launch *launch) {
    (void)self;
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_shape *q = oct_cuda_input(site, 0).shape;
    oct_attention_launch *l = &launch->u.attention;
    launch->kind = OCT_LAUNCH_ATTENTION;
    *l = (oct_attention_launch){.q = oct_cuda_view(site, memory, step->inputs[0].index),
                                .k = oct_cuda_view(site, memory, step->inputs[1].index),
                                .v = oct_cuda_view(site, memory, step->inputs[2].index),
                                .batch = q->dims[0],
                                .tokens = q->dims[1],
                                .heads = step->attributes.heads,
                                .scale = (float)step->attributes.scale};
    l->out_count = oct_cuda_outputs(site, memory, l->out);
    return 1;
}

#define GENERIC(name_, op_, refuses_, packed_, pack_, lower_)                                                          \
    {                                                                                                                  \
        .name = name_, .op = OCT_OP_##op_, .generic = true, .refuses = refuses_, .span = 1, .packed = packed_,         \
        .pack = pack_, .lower = lower_                                                                                 \
    }

const oct_cuda_tactic oct_cuda_generic[] = {
    GENERIC("depthwise_generic", CONV2D, depthwise_refuses, product_packed, product_pack, product_lower),
    GENERIC("matrix_generic", CONV2D, product_refuses, product_packed, product_pack, product_lower),
    GENERIC("matrix_generic", LINEAR, product_refuses, product_packed, product_pack, product_lower),
    GENERIC("rows_generic", BATCH_NORM, rows_refuses, vectors_packed, pack_vectors, rows_lower),
    GENERIC("rows_generic", LAYER_NORM, rows_refuses, vectors_packed, pack_vectors, rows_lower),
    GENERIC("rows_generic", ACTIVATION, rows_refuses, nothing_packed, pack_nothing, rows_lower),
    GENERIC("rows_generic", ADD, rows_refuses, vectors_packed, pack_vectors, rows_lower),
    GENERIC("rows_generic", QUANTIZE, rows_refuses, nothing_packed, pack_nothing, rows_lower),
    GENERIC("rows_generic", RESHAPE, move_refuses, nothing_packed, pack_nothing, rows_lower),
    GENERIC("rows_generic", SLICE, move_refuses, nothing_packed, pack_nothing, slice_lower),
    GENERIC("rows_generic", CONCAT, move_refuses, vectors_packed, pack_vectors, concat_lower),
    GENERIC("pool_generic", GLOBAL_POOL, other_refuses, nothing_packed, pack_nothing, pool_lower),
    GENERIC("attention_generic", ATTENTION, attention_refuses, nothing_packed, pack_nothing, attention_lower),
    {.name = NULL},
};
