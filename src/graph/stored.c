/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/stored.h"

#include <math.h>

#include "graph/math.h"
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
    const float scale = amax / (format == OCT_FORMAT_INT8 ? 127.0f : 448.0f);
    return scale < OCT_SCALE_LEAST ? OCT_SCALE_LEAST : scale;
}

static float round_one(oct_format format, float x, float scale, float inverse) {
    switch (format) {
    case OCT_FORMAT_INT8:
        return (float)oct_stored_int8(x, inverse) * scale;
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(oct_e4m3_encode(x * inverse)) * scale;
    case OCT_FORMAT_FP16:
    case OCT_FORMAT_BF16:
        return oct_format_round(format, x);
    default:
        return x;
    }
}

void oct_stored_round(const oct_form *form, const oct_shape *shape, const float *x, float *values, int8_t *codes,
                      float *scales) {
    const int64_t channels = shape->dims[shape->rank - 1], rows = oct_shape_count(shape) / channels;
    float scale = form->scale, inverse = 1.0f / form->scale;
    for (int64_t r = 0; r < rows; r++) {
        if (form->granularity == OCT_PER_ROW) {
            scale = oct_stored_row_scale(form->format, x + r * channels, channels);
            inverse = 1.0f / scale;
            if (scales != NULL) scales[r] = scale;
        }
        for (int64_t c = r * channels; c < (r + 1) * channels; c++) {
            const float number = x[c];
            if (codes != NULL) codes[c] = oct_stored_int8(number, inverse);
            if (values != NULL) values[c] = round_one(form->format, number, scale, inverse);
        }
    }
}

bool oct_stored_is_int8_product(oct_op op, const oct_stored *inputs) {
    return (op == OCT_OP_CONV2D || op == OCT_OP_LINEAR) && inputs[0].form->format == OCT_FORMAT_INT8 &&
           inputs[1].form->format == OCT_FORMAT_INT8;
}

static float activate(oct_activation activation, float x) {
    switch (activation) {
    case OCT_ACTIVATION_RELU:
        return oct_relu(x);
    case OCT_ACTIVATION_RELU6:
        return oct_relu6(x);
    case OCT_ACTIVATION_GELU:
        return oct_gelu(x);
    case OCT_ACTIVATION_SIGMOID:
        return oct_sigmoid(x);
    default:
        return x;
    }
}

static int32_t dot(const int8_t *a, const int8_t *b, int64_t count) {
    int32_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (int32_t)a[i] * (int32_t)b[i];
    return sum;
}

/* The rule of int8 products at one element of the output: `row` of the input's rows gives the scale. */
static float finish(const oct_attributes *a, const oct_stored *inputs, int32_t sum, int64_t row, int64_t at,
                    int64_t o) {
    const oct_stored *x = &inputs[0], *weight = &inputs[1];
    const int bias = oct_bias_index(a), residual = oct_residual_index(a);
    const float scale = (x->scales != NULL ? x->scales[row] : x->form->scale) *
                        (weight->scales != NULL ? weight->scales[o] : weight->form->scale);
    float v = fmaf((float)sum, scale, bias != OCT_NONE ? inputs[bias].array.data[o] : 0.0f);
    if (residual != OCT_NONE) v += inputs[residual].array.data[at];
    return activate(a->activation, v);
}

static void int8_linear(const oct_attributes *a, const oct_stored *inputs, oct_array *output) {
    const oct_shape *weight = &inputs[1].array.shape;
    const int64_t outputs = weight->dims[0], depth = weight->dims[1];
    const int64_t rows = oct_shape_count(&output->shape) / outputs;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t o = 0; o < outputs; o++) {
            const int32_t sum = dot(inputs[0].codes + row * depth, inputs[1].codes + o * depth, depth);
            output->data[row * outputs + o] = finish(a, inputs, sum, row, row * outputs + o, o);
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
            output->data[row * out->dims[3] + o] = finish(a, inputs, sum, row, row * out->dims[3] + o, o);
        }
    }
}

void oct_stored_reference(oct_op op, const oct_attributes *attributes, const oct_stored *inputs, int count,
                          oct_array *output) {
    if (oct_stored_is_int8_product(op, inputs)) {
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
