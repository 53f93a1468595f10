/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/steps/int8.h"

#include <math.h>
#include <string.h>

#include "graph/stored.h"

const char *oct_forms_int8(const oct_site *site) {
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1);
    if (!oct_stored_is_int8_product(site->step->op, &site->step->attributes, &weight.shape, x.form, weight.form))
        return "no product of int8 codes";
    const char *why = oct_refuse_inputs(site, 2);
    return why != NULL ? why : oct_refuse_outputs(site);
}

void oct_int8_vectors(const oct_site *site, int64_t outputs, float *scales, float *bias) {
    const oct_form *input = oct_site_input(site, 0).form, *weight = oct_site_input(site, 1).form;
    const float *own = weight->scales != OCT_NONE ? site->weights->items[weight->scales].data : NULL;
    const float scale = input->granularity == OCT_PER_ROW ? 1.0f : input->scale;
    for (int64_t o = 0; o < outputs; o++) scales[o] = scale * (own != NULL ? own[o] : weight->scale);
    const int at = oct_bias_input(site->step);
    for (int64_t o = 0; o < outputs; o++) bias[o] = at >= 0 ? oct_site_input(site, at).constant[o] : 0.0f;
}

/* |v * inverse| stays below 2^30, a bound that float32's roundings on the way cannot reach past 2^31. */
static bool bounded(float inverse, int64_t depth, const float *scales, const float *bias, int64_t outputs) {
    for (int64_t o = 0; o < outputs; o++) {
        const double most = (double)depth * 127.0 * 127.0 * fabs((double)scales[o]) + fabs((double)bias[o]);
        if (!(most * (double)inverse < 0x1p30) || !(most < 0x1p120)) return false;
    }
    return true;
}

oct_finish_i8 oct_int8_finish(const oct_site *site, float inverse, int64_t depth, const float *scales,
                              const float *bias, int64_t outputs) {
    const oct_activation activation = site->step->attributes.activation;
    const bool straight =
        activation == OCT_ACTIVATION_NONE || activation == OCT_ACTIVATION_RELU || activation == OCT_ACTIVATION_RELU6;
    const bool rows = oct_site_input(site, 0).form->granularity == OCT_PER_ROW;
    return (oct_finish_i8){
        .activation = activation,
        .inverse = inverse,
        .bounded =
            straight && !rows && oct_residual_input(site->step) < 0 && bounded(inverse, depth, scales, bias, outputs),
        .low = activation == OCT_ACTIVATION_NONE ? -127 : 0,
        .top = activation == OCT_ACTIVATION_RELU6 ? oct_stored_int8(6.0f, inverse) : 127,
    };
}
