/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/stored.h"

#include <math.h>

#include "graph/activate.h"
#include "graph/ops/rules.h"

int8_t oct_stored_int8(float x, float inverse) {
    float y = x * inverse;
    if (!(y == y)) return 0;
    y = y < -127.0f ? -127.0f : y;
    y = y > 127.0f ? 127.0f : y;
    return (int8_t)lrintf(y);
}

float oct_stored_row_scale(oct_format format, const float *row, int64_t count) {
    const float amax = oct_amax_finite(row, (size_t)count);
    if (!(amax > 0)) return 1;
    const float scale = amax / (float)oct_format_get(format)->element_max;
    return scale < OCT_SCALE_LEAST ? OCT_SCALE_LEAST : scale;
}

/* The number that the code of y stands for; of formats without blocks of their own. */
static float round_one(const oct_form *form, float y, float scale, float inverse) {
    switch (form->format) {
    case OCT_FORMAT_INT8:
        return (float)oct_stored_int8(y, inverse) * scale;
    case OCT_FORMAT_UINT8:
        return oct_uint8_decode(oct_uint8_encode(y * inverse, 1.0f, form->zero_point), scale, form->zero_point);
    case OCT_FORMAT_E4M3:
    case OCT_FORMAT_E5M2:
        return oct_format_round(form->format, y * inverse) * scale;
    case OCT_FORMAT_FP16:
    case OCT_FORMAT_BF16:
        return oct_format_round(form->format, y);
    default:
        return y;
    }
}

bool oct_stored_is_probability(oct_format format) {
    return format == OCT_FORMAT_FP32 || format == OCT_FORMAT_FP16 || format == OCT_FORMAT_BF16 ||
           format == OCT_FORMAT_E4M3 || format == OCT_FORMAT_INT8;
}

float oct_stored_probability(oct_format format, float p) {
    const oct_form form = {.format = format};
    const float scale = format == OCT_FORMAT_E4M3 ? OCT_PROBABILITY_E4M3 : OCT_PROBABILITY_INT8;
    return round_one(&form, p, scale, 1.0f / scale);
}

oct_rounding oct_graph_rounding(const oct_graph *graph, const oct_form *form) {
    return (oct_rounding){.form = form,
                          .scales = form->scales != OCT_NONE ? graph->values[form->scales].data : NULL,
                          .factors = form->factors != OCT_NONE ? graph->values[form->factors].data : NULL};
}

/* Numbers first .. first + count - 1 of a row, which share a scale unless they have one a channel. */
static void round_run(const oct_rounding *r, const float *x, int64_t first, int64_t count, float scale, float *values,
                      int8_t *codes) {
    float inverse = 1.0f / scale;
    for (int64_t c = first; c < first + count; c++) {
        if (r->form->granularity == OCT_PER_CHANNEL) {
            scale = r->scales[c];
            inverse = 1.0f / scale;
        }
        const float y = r->factors != NULL ? x[c] * r->factors[c] : x[c];
        if (codes != NULL) codes[c] = oct_stored_int8(y, inverse);
        if (values != NULL) values[c] = round_one(r->form, y, scale, inverse);
    }
}

/* A block of mxfp8 or nvfp4. */
static void round_own_block(const oct_rounding *r, const float *x, int64_t first, int64_t count, float *values) {
    float y[OCT_MXFP8_BLOCK] = {0};
    uint8_t scale, codes[OCT_MXFP8_BLOCK];
    for (int64_t i = 0; i < count; i++) y[i] = r->factors != NULL ? x[first + i] * r->factors[first + i] : x[first + i];
    if (r->form->format == OCT_FORMAT_MXFP8) {
        oct_mxfp8_encode(y, (size_t)count, r->form->scale_rule, &scale, codes);
        oct_mxfp8_decode(&scale, codes, (size_t)count, values + first);
    } else {
        oct_nvfp4_encode(y, (size_t)count, r->form->scale, &scale, codes);
        oct_nvfp4_decode(&scale, codes, (size_t)count, r->form->scale, values + first);
    }
}

/* The scale of a row or block. */
static float found_scale(const oct_rounding *r, const float *x, int64_t first, int64_t count) {
    if (r->factors == NULL) return oct_stored_row_scale(r->form->format, x + first, count);
    float most = 0;
    for (int64_t c = first; c < first + count; c++) {
        const float y = x[c] * r->factors[c], amax = oct_amax_finite(&y, 1);
        most = amax > most ? amax : most;
    }
    return oct_stored_row_scale(r->form->format, &most, 1);
}

static void round_row(const oct_rounding *r, const float *x, int64_t channels, float *values, int8_t *codes,
                      float *scale) {
    const oct_form *form = r->form;
    if (form->granularity == OCT_PER_TENSOR || form->granularity == OCT_PER_CHANNEL) {
        round_run(r, x, 0, channels, form->scale, values, codes);
        return;
    }
    const bool own = form->format == OCT_FORMAT_MXFP8 || form->format == OCT_FORMAT_NVFP4;
    const int64_t block = form->granularity == OCT_PER_ROW ? channels : form->block;
    for (int64_t first = 0; first < channels; first += block) {
        const int64_t count = channels - first < block ? channels - first : block;
        if (own) {
            if (values != NULL) round_own_block(r, x, first, count, values);
            continue;
        }
        const float found = found_scale(r, x, first, count);
        if (scale != NULL && form->granularity == OCT_PER_ROW) *scale = found;
        round_run(r, x, first, count, found, values, codes);
    }
}

void oct_stored_round(const oct_rounding *rounding, int64_t rows, int64_t channels, const float *x, float *values,
                      int8_t *codes, float *scales) {
    for (int64_t r = 0; r < rows; r++)
        round_row(rounding, x + r * channels, channels, values != NULL ? values + r * channels : NULL,
                  codes != NULL ? codes + r * channels : NULL, scales != NULL ? scales + r : NULL);
}

/* An output's row is made of the input's row of the same number. */
static bool keeps_rows(oct_op op, const oct_attributes *a, const oct_shape *weight) {
    return op == OCT_OP_LINEAR ||
           (weight->dims[1] == 1 && weight->dims[2] == 1 && a->stride_h == 1 && a->stride_w == 1 && a->pad_top == 0 &&
            a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0);
}

bool oct_stored_is_int8_product(oct_op op, const oct_attributes *attributes, const oct_shape *weight_shape,
                                const oct_form *input, const oct_form *weight) {
    if (op != OCT_OP_LINEAR && op != OCT_OP_CONV2D) return false;
    if (input->format != OCT_FORMAT_INT8 || weight->format != OCT_FORMAT_INT8 || input->held_wide ||
        weight->held_wide || oct_shape_count(weight_shape) / weight_shape->dims[0] > OCT_INT8_DEPTH)
        return false;
    if (input->granularity == OCT_PER_ROW)
        return keeps_rows(op, attributes, weight_shape) && (op == OCT_OP_LINEAR || attributes->groups == 1);
    return input->granularity == OCT_PER_TENSOR;
}

static int32_t dot(const int8_t *a, const int8_t *b, int64_t count) {
    int32_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (int32_t)a[i] * (int32_t)b[i];
    return sum;
}

/* The rule of int8 products at one element of the output: `row` of the input's rows gives the scale. */
float oct_stored_finish(const oct_attributes *a, const oct_stored *inputs, float sum, int64_t row, int64_t at,
                        int64_t o) {
    const oct_stored *x = &inputs[0], *weight = &inputs[1];
    const int bias = oct_bias_index(a), residual = oct_residual_index(a);
    const float scale = (x->scales != NULL ? x->scales[row] : x->form->scale) *
                        (weight->scales != NULL ? weight->scales[o] : weight->form->scale);
    float v = fmaf(sum, scale, bias != OCT_NONE ? inputs[bias].array.data[o] : 0.0f);
    if (residual != OCT_NONE) v += inputs[residual].array.data[at];
    return oct_activate(a->activation, v);
}

static void int8_linear(const oct_attributes *a, const oct_stored *inputs, oct_array *output) {
    const oct_shape *weight = &inputs[1].array.shape;
    const int64_t outputs = weight->dims[0], depth = weight->dims[1];
    const int64_t rows = oct_shape_count(&output->shape) / outputs;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t o = 0; o < outputs; o++) {
            const int32_t sum = dot(inputs[0].codes + row * depth, inputs[1].codes + o * depth, depth);
            output->data[row * outputs + o] = oct_stored_finish(a, inputs, (float)sum, row, row * outputs + o, o);
        }
    }
}

static int32_t window(const oct_stored *inputs, int64_t n, int64_t top, int64_t left, int64_t o, int64_t first) {
    const oct_shape *x = &inputs[0].array.shape, *weight = &inputs[1].array.shape;
    const int64_t depth = weight->dims[3];
    int32_t sum = 0;
    for (int64_t i = 0; i < weight->dims[1]; i++) {
        for (int64_t j = 0; j < weight->dims[2]; j++) {
            const int64_t row = top + i, column = left + j;
            if (row < 0 || row >= x->dims[1] || column < 0 || column >= x->dims[2]) continue;
            sum += dot(inputs[0].codes + ((n * x->dims[1] + row) * x->dims[2] + column) * x->dims[3] + first,
                       inputs[1].codes + ((o * weight->dims[1] + i) * weight->dims[2] + j) * depth, depth);
        }
    }
    return sum;
}

static void int8_conv2d(const oct_attributes *a, const oct_stored *inputs, oct_array *output) {
    const oct_shape *out = &output->shape, *weight = &inputs[1].array.shape;
    const int64_t group = out->dims[3] / a->groups, rows = out->dims[0] * out->dims[1] * out->dims[2];
    for (int64_t row = 0; row < rows; row++) {
        const int64_t x = row % out->dims[2], y = row / out->dims[2] % out->dims[1];
        const int64_t n = row / out->dims[2] / out->dims[1];
        for (int64_t o = 0; o < out->dims[3]; o++) {
            const int32_t sum = window(inputs, n, y * a->stride_h - a->pad_top, x * a->stride_w - a->pad_left, o,
                                       o / group * weight->dims[3]);
            output->data[row * out->dims[3] + o] =
                oct_stored_finish(a, inputs, (float)sum, row, row * out->dims[3] + o, o);
        }
    }
}

void oct_stored_reference(oct_op op, const oct_attributes *attributes, const oct_stored *inputs, int count,
                          oct_array *output) {
    if (count > 1 &&
        oct_stored_is_int8_product(op, attributes, &inputs[1].array.shape, inputs[0].form, inputs[1].form)) {
        if (op == OCT_OP_CONV2D)
            int8_conv2d(attributes, inputs, output);
        else
            int8_linear(attributes, inputs, output);
        return;
    }
    oct_array arrays[OCT_NODE_INPUTS];
    for (int i = 0; i < count; i++) arrays[i] = inputs[i].array;
    oct_op_rows[op].reference(attributes, arrays, count, output);
}
