/* SPDX-License-Identifier: Apache-2.0 */
/* What is right, and how far a float32 body may be off: the tolerance column of ops.def, in units of 2^-24, times the
 * sum of the absolute terms of the output element. That sum comes from the same reference body on absolute values;
 * where a function follows (GELU, sigmoid), 1 is added, as their own error is absolute near 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "opcheck/opcheck.h"

static float *absolute(const oct_array *array) {
    const int64_t count = oct_shape_count(&array->shape);
    float *data = oct_alloc((size_t)count * sizeof *data);
    for (int64_t i = 0; data != NULL && i < count; i++) data[i] = fabsf(array->data[i]);
    return data;
}

/* (|x| + |mean|) |gamma| / sqrt(variance + epsilon) + |beta|, mean and variance as the op has them. */
static void norm_terms(bed *b) {
    const oct_array *a = b->arrays;
    const bool batch = b->c->op == OCT_OP_BATCH_NORM;
    const int64_t channels = a[1].shape.dims[0], rows = oct_shape_count(&a[0].shape) / channels;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = a[0].data + r * channels;
        double mean = 0, variance = 0, size = 0;
        for (int64_t c = 0; c < channels; c++) mean += (double)x[c] / (double)channels;
        for (int64_t c = 0; c < channels; c++) size += fabs((double)x[c]) / (double)channels;
        for (int64_t c = 0; c < channels; c++)
            variance += ((double)x[c] - mean) * ((double)x[c] - mean) / (double)channels;
        for (int64_t c = 0; c < channels; c++) {
            const double v = batch ? (double)a[4].data[c] : variance;
            const double centre = batch ? fabs((double)a[3].data[c]) : size;
            b->terms.data[r * channels + c] = (float)((fabs((double)x[c]) + centre) * fabs((double)a[1].data[c]) /
                                                          sqrt(v + b->c->attributes.epsilon) +
                                                      fabs((double)a[2].data[c]));
        }
    }
}

/* sum p |v|, times 1 + the largest sum |q k| scale of the row: what an error of a score does to its weight. */
static void attention_terms(bed *b) {
    const oct_array *a = b->arrays;
    const int64_t batch = a[0].shape.dims[0], tokens = a[0].shape.dims[1], channels = a[0].shape.dims[2];
    const int64_t heads = b->c->attributes.heads, depth = channels / heads;
    oct_array inputs[3] = {a[0], a[1], {a[2].shape, absolute(&a[2])}};
    oct_op_rows[OCT_OP_ATTENTION].reference(&b->c->attributes, inputs, 3, &b->terms);
    oct_free(inputs[2].data);
    for (int64_t i = 0; i < batch * tokens * heads; i++) {
        const int64_t row = i / heads, n = row / tokens, h = i % heads * depth;
        double most = 0;
        for (int64_t s = 0; s < tokens; s++) {
            double sum = 0;
            for (int64_t d = 0; d < depth; d++)
                sum += fabs((double)a[0].data[row * channels + h + d] *
                            (double)a[1].data[(n * tokens + s) * channels + h + d]);
            most = fmax(most, sum * fabs(b->c->attributes.scale));
        }
        for (int64_t d = 0; d < depth; d++)
            b->terms.data[row * channels + h + d] =
                (float)((double)b->terms.data[row * channels + h + d] * (1.0 + most));
    }
}

void reference_make(bed *b) {
    const opcase *c = b->c;
    oct_stored_reference(c->op, &c->attributes, b->stored, c->count, &b->reference);
    if (c->op == OCT_OP_BATCH_NORM || c->op == OCT_OP_LAYER_NORM) {
        norm_terms(b);
        return;
    }
    if (c->op == OCT_OP_ATTENTION) {
        attention_terms(b);
        return;
    }
    oct_array inputs[OCT_NODE_INPUTS];
    for (int i = 0; i < c->count; i++) inputs[i] = (oct_array){b->arrays[i].shape, absolute(&b->arrays[i])};
    oct_attributes plain = c->attributes;
    plain.activation = OCT_ACTIVATION_NONE;
    oct_op_rows[c->op].reference(&plain, inputs, c->count, &b->terms);
    for (int i = 0; i < c->count; i++) oct_free(inputs[i].data);
    const oct_activation activation = c->attributes.activation;
    if (activation != OCT_ACTIVATION_GELU && activation != OCT_ACTIVATION_SIGMOID) return;
    for (int64_t i = 0; i < oct_shape_count(&b->terms.shape); i++) b->terms.data[i] += 1.0f;
}

/* One fp32 number; int8 products have no tolerance. */
static bool is_near(double found, double right, double terms, double tolerance) {
    if (isnan(right) || isinf(right)) return isnan(right) ? isnan(found) : found == right;
    if (isinf(terms) || isnan(terms)) /* the function took an infinity to a number */
        return fabs(found - right) <= 1e-6 * (1.0 + fabs(right));
    return fabs(found - right) <= tolerance * terms + (tolerance > 0 ? 0x1p-126 : 0);
}

static const char *compare_wide(const bed *b, const float *out, double tolerance) {
    static char text[160];
    for (int64_t i = 0; i < oct_shape_count(&b->reference.shape); i++) {
        const double right = (double)b->reference.data[i], found = (double)out[i], terms = (double)b->terms.data[i];
        if (is_near(found, right, terms, tolerance)) continue;
        snprintf(text, sizeof text, "element %lld: expected %.9g within %.3g, found %.9g", (long long)i, right,
                 tolerance * terms, found);
        return text;
    }
    return NULL;
}

/* The distance of neighbours of a narrow form about x. */
static double step_at(oct_format format, double x, double scale) {
    switch (format) {
    case OCT_FORMAT_INT8:
        return scale;
    case OCT_FORMAT_E4M3:
        return fmax(fabs(x) * 0x1p-3, scale * 0x1p-9);
    case OCT_FORMAT_FP16:
        return fmax(fabs(x) * 0x1p-10, 0x1p-24);
    default:
        return fmax(fabs(x) * 0x1p-7, 0x1p-126);
    }
}

/* A narrow output is its numbers rounded: the wide output's, to the bit, or those of an exact reference; else it is
 * within a step of the reference's. */
static const char *compare_narrow(const bed *b, const oct_plan_tensor *t, const float *wide, const float *out,
                                  double tolerance) {
    static char text[160];
    const int64_t count = oct_shape_count(&t->shape), rows = count / t->shape.dims[t->shape.rank - 1];
    const bool exact = wide != NULL || tolerance == 0;
    float *right = oct_alloc((size_t)count * sizeof *right), *scales = oct_alloc((size_t)rows * sizeof *right);
    if (right == NULL || scales == NULL) abort();
    oct_stored_round(&t->form, &t->shape, wide != NULL ? wide : b->reference.data, right, NULL, scales);
    const char *error = NULL;
    for (int64_t i = 0; i < count && error == NULL; i++) {
        const double x = (double)right[i], found = (double)out[i], terms = (double)b->terms.data[i];
        if (isnan(x) ? isnan(found) : found == x) continue;
        const int64_t row = i / (count / rows);
        const double scale = (double)(t->form.granularity == OCT_PER_ROW ? scales[row] : t->form.scale);
        const double bound = 1.01 * step_at(t->form.format, fmax(fabs(x), fabs(found)), scale) + tolerance * terms;
        if (!exact && (!isfinite(terms) || !isfinite(bound) || fabs(found - x) <= bound)) continue;
        snprintf(text, sizeof text, "element %lld as %s: expected %.9g%s, found %.9g", (long long)i,
                 oct_format_name(t->form.format), x, exact ? "" : " or next to it", found);
        error = text;
    }
    oct_free(right);
    oct_free(scales);
    return error;
}

const char *reference_compare(const bed *b, const float *out) {
    const bool exact = oct_stored_is_int8_product(b->c->op, b->stored);
    const double tolerance = exact ? 0 : oct_op_rows[b->c->op].tolerance * 0x1p-24;
    const int64_t count = oct_shape_count(&b->reference.shape);
    const float *wide = NULL;
    for (int f = 0; f < b->c->out_count; f++) {
        const oct_plan_tensor *t = &b->tensors[OCT_NODE_INPUTS + f];
        const char *error = NULL;
        if (t->form.format == OCT_FORMAT_FP32) {
            wide = out;
            error = compare_wide(b, out, tolerance);
        } else {
            error = compare_narrow(b, t, wide, out + f * count, tolerance);
        }
        if (error != NULL) return error;
    }
    return NULL;
}
