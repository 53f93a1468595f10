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

/* A probability next to the middle of two codes may go either way, by a step of e4m3 at most, which is an eighth of it,
 * or of int8: so where they are rounded the bound is wide, and the sets are held to each other and to the plain body,
 * whose rounding tests/unit/cpu/probabilities.c holds to the bit. */
static void rounded_terms(bed *b) {
    double most = 0;
    for (int64_t i = 0; i < oct_shape_count(&b->arrays[2].shape); i++)
        if (isfinite(b->arrays[2].data[i])) most = fmax(most, fabs((double)b->arrays[2].data[i]));
    for (int64_t i = 0; i < oct_shape_count(&b->terms.shape); i++)
        b->terms.data[i] = (float)(((double)b->terms.data[i] * 0.125 + most / 127.0) * 0x1p24 /
                                   oct_op_rows[OCT_OP_ATTENTION].tolerance);
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
        if (c->attributes.probabilities != OCT_FORMAT_FP32) rounded_terms(b);
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

const char *reference_compare(const bed *b, const float *out) {
    const oct_stored *x = b->stored;
    const bool exact = b->c->count > 1 &&
                       oct_stored_is_int8_product(b->c->op, &b->c->attributes, &b->c->shapes[1], x[0].form, x[1].form);
    return compare_wide(b, out, exact ? 0 : oct_op_rows[b->c->op].tolerance * 0x1p-24);
}

const char *stored_compare(const bed *b, const float *wide, const float *out) {
    static char text[160];
    const oct_shape *shape = &b->reference.shape;
    const int64_t count = oct_shape_count(shape), channels = shape->dims[shape->rank - 1];
    const char *error = NULL;
    float *right = oct_alloc((size_t)count * sizeof *right);
    if (right == NULL) abort();
    for (int f = 0; f < b->c->out_count && error == NULL; f++) {
        const oct_form *form = &b->tensors[OCT_NODE_INPUTS + f].form;
        const oct_rounding rounding = {.form = form,
                                       .scales = form->scales != OCT_NONE ? b->vectors[2 * f] : NULL,
                                       .factors = form->factors != OCT_NONE ? b->vectors[2 * f + 1] : NULL};
        memcpy(right, wide, (size_t)count * sizeof *right);
        if (form->format != OCT_FORMAT_FP32)
            oct_stored_round(&rounding, count / channels, channels, wide, right, NULL, NULL);
        for (int64_t i = 0; i < count && error == NULL; i++) {
            const float found = out[f * count + i];
            if (memcmp(&found, &right[i], sizeof found) == 0 || (isnan(found) && isnan(right[i]))) continue;
            snprintf(text, sizeof text, "element %lld of form %d: from %a expected %a, found %a", (long long)i, f,
                     (double)wide[i], (double)right[i], (double)found);
            error = text;
        }
    }
    oct_free(right);
    return error;
}
