/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/exact.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/tensor_core.h"

bool oct_exact_is_product(oct_op op, const oct_attributes *a, const oct_stored *inputs) {
    if (op != OCT_OP_LINEAR && (op != OCT_OP_CONV2D || a->groups != 1)) return false;
    const oct_form *x = inputs[0].form, *weight = inputs[1].form;
    return x->format == OCT_FORMAT_E4M3 && x->granularity == OCT_PER_TENSOR && weight->format == OCT_FORMAT_E4M3 &&
           (weight->granularity == OCT_PER_TENSOR || weight->granularity == OCT_PER_CHANNEL);
}

/* The codes whose numbers these are: a number is its code's value times the scale, rounded to float32, so the nearest
 * code to the number over the scale is that code again. */
static void encode(const float *numbers, int64_t count, float scale, uint8_t *codes) {
    for (int64_t i = 0; i < count; i++) codes[i] = oct_e4m3_encode(numbers[i] / scale);
}

typedef struct product {
    const oct_attributes *a;
    const oct_stored *inputs;
    int64_t n, h, w, c, out_h, out_w, outputs, kernel_h, kernel_w, depth;
    uint8_t *x, *weight, *window;
} product;

static product describe(oct_op op, const oct_attributes *a, const oct_stored *inputs, const oct_array *output) {
    const oct_shape *x = &inputs[0].array.shape, *weight = &inputs[1].array.shape, *out = &output->shape;
    if (op == OCT_OP_CONV2D)
        return (product){a,
                         inputs,
                         x->dims[0],
                         x->dims[1],
                         x->dims[2],
                         x->dims[3],
                         out->dims[1],
                         out->dims[2],
                         out->dims[3],
                         weight->dims[1],
                         weight->dims[2],
                         weight->dims[1] * weight->dims[2] * x->dims[3],
                         NULL,
                         NULL,
                         NULL};
    const int64_t depth = weight->dims[1], rows = oct_shape_count(x) / depth;
    return (product){a, inputs, 1, 1, rows, depth, 1, rows, weight->dims[0], 1, 1, depth, NULL, NULL, NULL};
}

/* The window of output pixel (y, x) of picture n. A linear layer is a convolution of 1 x 1 over its rows. */
static void gather(const product *p, bool conv, int64_t n, int64_t y, int64_t x) {
    const int64_t top = conv ? y * p->a->stride_h - p->a->pad_top : y,
                  left = conv ? x * p->a->stride_w - p->a->pad_left : x;
    for (int64_t i = 0; i < p->kernel_h; i++) {
        for (int64_t j = 0; j < p->kernel_w; j++) {
            const int64_t row = top + i, column = left + j;
            uint8_t *to = p->window + (i * p->kernel_w + j) * p->c;
            if (row < 0 || row >= p->h || column < 0 || column >= p->w)
                memset(to, 0, (size_t)p->c);
            else
                memcpy(to, p->x + ((n * p->h + row) * p->w + column) * p->c, (size_t)p->c);
        }
    }
}

static void multiply(const product *p, bool conv, int64_t promote, oct_array *output) {
    int64_t row = 0;
    for (int64_t n = 0; n < p->n; n++) {
        for (int64_t y = 0; y < p->out_h; y++) {
            for (int64_t x = 0; x < p->out_w; x++, row++) {
                gather(p, conv, n, y, x);
                for (int64_t o = 0; o < p->outputs; o++) {
                    const float sum = oct_tensor_core_dot(p->window, p->weight + o * p->depth, p->depth, promote);
                    const int64_t at = row * p->outputs + o;
                    output->data[at] = oct_stored_finish(p->a, p->inputs, sum, row, at, o);
                }
            }
        }
    }
}

octet_status oct_exact_product(oct_op op, const oct_attributes *a, const oct_stored *inputs, int64_t promote,
                               oct_array *output) {
    product p = describe(op, a, inputs, output);
    const int64_t x_count = oct_shape_count(&inputs[0].array.shape);
    p.x = oct_alloc((size_t)x_count);
    p.weight = oct_alloc((size_t)(p.outputs * p.depth));
    p.window = oct_alloc((size_t)p.depth);
    const bool good = p.x != NULL && p.weight != NULL && p.window != NULL;
    if (good) {
        encode(inputs[0].array.data, x_count, inputs[0].form->scale, p.x);
        for (int64_t o = 0; o < p.outputs; o++)
            encode(inputs[1].array.data + o * p.depth, p.depth,
                   inputs[1].scales != NULL ? inputs[1].scales[o] : inputs[1].form->scale, p.weight + o * p.depth);
        multiply(&p, op == OCT_OP_CONV2D, promote, output);
    }
    oct_free(p.x);
    oct_free(p.weight);
    oct_free(p.window);
    return good ? OCTET_OK : oct_fail_memory();
}
