/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION: channels are split into heads; in each, out[t] = sum over s of softmax over s(q[t] . k[s] scale) v[s]. */
#include <math.h>

#include "graph/ops/rules.h"
#include "graph/stored.h"

octet_status oct_op_attention_shape(const char *node, const oct_attributes *attributes, const oct_shape *inputs,
                                    int count, oct_shape *output) {
    OCT_TRY(oct_rule_inputs(node, 3, count));
    OCT_TRY(oct_rule_rank(node, "query", &inputs[0], 3, 3));
    OCT_TRY(oct_rule_expect(node, "key", &inputs[0], &inputs[1]));
    OCT_TRY(oct_rule_expect(node, "value", &inputs[0], &inputs[2]));
    if (attributes->heads < 1 || inputs[0].dims[2] % attributes->heads != 0) {
        return oct_fail(OCTET_MISMATCH, "%s: %d heads do not divide %lld channels", node, attributes->heads,
                        (long long)inputs[0].dims[2]);
    }
    *output = inputs[0];
    return OCTET_OK;
}

void oct_op_attention_reference(const oct_attributes *attributes, const oct_array *inputs, int count,
                                oct_array *output) {
    (void)count;
    int64_t batch = output->shape.dims[0], tokens = output->shape.dims[1], channels = output->shape.dims[2];
    int64_t heads = attributes->heads, size = channels / heads;
    for (int64_t n = 0; n < batch; n++) {
        for (int64_t h = 0; h < heads; h++) {
            const float *q = inputs[0].data + n * tokens * channels + h * size;
            const float *k = inputs[1].data + n * tokens * channels + h * size;
            const float *v = inputs[2].data + n * tokens * channels + h * size;
            float *out = output->data + n * tokens * channels + h * size;
            for (int64_t t = 0; t < tokens; t++) {
                /* the largest score first, then one walk with sums kept a block of 64 channels at a time */
                double top = -INFINITY, total = 0;
                for (int64_t s = 0; s < tokens; s++) {
                    double score = oct_dot(q + t * channels, k + s * channels, size) * attributes->scale;
                    if (!(score <= top)) top = score;
                }
                for (int64_t first = 0; first < size; first += 64) {
                    double sums[64] = {0};
                    int64_t width = size - first < 64 ? size - first : 64;
                    total = 0;
                    for (int64_t s = 0; s < tokens; s++) {
                        double score = oct_dot(q + t * channels, k + s * channels, size) * attributes->scale;
                        double weight = exp(score - top);
                        total += weight;
                        if (attributes->probabilities != OCT_FORMAT_FP32)
                            weight = (double)oct_stored_probability(attributes->probabilities, (float)weight);
                        const float *row = v + s * channels + first;
                        for (int64_t c = 0; c < width; c++) sums[c] += weight * (double)row[c];
                    }
                    for (int64_t c = 0; c < width; c++) out[t * channels + first + c] = (float)(sums[c] / total);
                }
            }
        }
    }
}

int64_t oct_op_attention_flops(const oct_attributes *attributes, const oct_shape *inputs, int count,
                               const oct_shape *output) {
    (void)attributes, (void)count;
    return 4 * oct_shape_count(output) * inputs[1].dims[1];
}
