/* SPDX-License-Identifier: Apache-2.0 */
/* round_f32 for a vector of any width: stored_avx2.h or stored_avx512.h comes before and gives the type oct_v and what
 * can be done with it. Rows with one scale, or one a channel, are a loop a format; a scale a row or block is found
 * first and then the same loop runs over that piece. nvfp4 goes the plain way. */
#ifndef OCT_CPU_KERNELS_ROUND_F32_ROWS_H
#define OCT_CPU_KERNELS_ROUND_F32_ROWS_H

#include "cpu/kernels/round_f32.h"
#include "cpu/kernels/stored_number.h"

/* Rows, or a piece of one, that are rounded alike. */
typedef struct span {
    const float *x;
    float *values;
    int8_t *codes;
    int64_t x_stride, out_stride, rows, columns;
    const float *scales, *factors; /* a number a column, or NULL */
    float scale, inverse;
    int zero_point;
} span;

OCT_INLINE void round_span(const span *s, const oct_format format, const bool codes, const bool vectors) {
    oct_v scale = oct_v_set(s->scale), inverse = oct_v_set(s->inverse);
    for (int64_t r = 0; r < s->rows; r++) {
        const float *x = s->x + r * s->x_stride;
        const int64_t out = r * s->out_stride;
        for (int64_t c = 0; c < s->columns; c += OCT_V_WIDTH) {
            const int64_t count = s->columns - c;
            oct_v y = oct_v_load(x + c, count);
            if (vectors && s->factors != NULL) y = oct_v_mul(y, oct_v_load(s->factors + c, count));
            if (vectors && s->scales != NULL) {
                scale = oct_v_load(s->scales + c, count);
                inverse = oct_v_div(oct_v_set(1.0f), scale);
            }
            if (codes)
                oct_v_store_int8(s->codes + out + c, count, y, inverse);
            else
                oct_v_store(s->values + out + c, count, oct_v_number(format, y, scale, inverse, s->zero_point));
        }
    }
}

/* A loop each for numbers of a format, with vectors or without, and for codes. */
typedef void span_function(const span *s);
#define SPAN(name, format, codes)                                                                                      \
    static void name(const span *s) {                                                                                  \
        round_span(s, format, codes, false);                                                                           \
    }                                                                                                                  \
    static void name##_by_vectors(const span *s) {                                                                     \
        round_span(s, format, codes, true);                                                                            \
    }
SPAN(span_codes, OCT_FORMAT_INT8, true)
SPAN(span_fp16, OCT_FORMAT_FP16, false)
SPAN(span_bf16, OCT_FORMAT_BF16, false)
SPAN(span_int8, OCT_FORMAT_INT8, false)
SPAN(span_uint8, OCT_FORMAT_UINT8, false)
SPAN(span_e4m3, OCT_FORMAT_E4M3, false)
SPAN(span_e5m2, OCT_FORMAT_E5M2, false)
#undef SPAN

/* A block under its full scale; one of 0 keeps signs, one that is NaN makes all NaN. */
static void span_nvfp4(const span *s) {
    const oct_v scale = oct_v_set(s->scale);
    for (int64_t c = 0; c < s->columns; c += OCT_V_WIDTH) {
        const int64_t count = s->columns - c;
        oct_v y = oct_v_load(s->x + c, count);
        if (s->factors != NULL) y = oct_v_mul(y, oct_v_load(s->factors + c, count));
        if (s->scale > 0) y = oct_v_round_minifloat(oct_v_div(y, scale), 6.0f, 1.0f, 0x1.8p22f);
        oct_v_store(s->values + c, count, oct_v_mul(y, scale));
    }
}

static span_function *span_function_of(const oct_round_f32 *q) {
    static span_function *const functions[OCT_FORMAT_COUNT][2] = {
        [OCT_FORMAT_FP16] = {span_fp16, span_fp16_by_vectors},
        [OCT_FORMAT_BF16] = {span_bf16, span_bf16_by_vectors},
        [OCT_FORMAT_INT8] = {span_int8, span_int8_by_vectors},
        [OCT_FORMAT_UINT8] = {span_uint8, span_uint8_by_vectors},
        [OCT_FORMAT_E4M3] = {span_e4m3, span_e4m3_by_vectors},
        [OCT_FORMAT_E5M2] = {span_e5m2, span_e5m2_by_vectors},
        [OCT_FORMAT_MXFP8] = {span_e4m3, span_e4m3_by_vectors},
        [OCT_FORMAT_NVFP4] = {span_nvfp4, span_nvfp4}};
    const bool vectors = q->rounding.factors != NULL || q->rounding.form->granularity == OCT_PER_CHANNEL;
    if (q->values == NULL) return vectors ? span_codes_by_vectors : span_codes;
    return functions[q->rounding.form->format][vectors];
}

/* The largest magnitude of a piece, of the finite numbers or of all. */
static float span_amax(const span *s, bool finite) {
    oct_v most = oct_v_set(0);
    for (int64_t c = 0; c < s->columns; c += OCT_V_WIDTH) {
        oct_v y = oct_v_load(s->x + c, s->columns - c);
        if (s->factors != NULL) y = oct_v_mul(y, oct_v_load(s->factors + c, s->columns - c));
        most = oct_v_larger(most, oct_v_magnitude(y, finite));
    }
    return oct_v_largest(most);
}

/* The scale of a row or block, and its inverse. */
static void find_scale(span *s, const oct_form *form) {
    if (form->format == OCT_FORMAT_NVFP4) {
        const uint8_t code = oct_nvfp4_scale(span_amax(s, false), form->scale);
        s->scale = (float)((double)oct_e4m3_decode(code) * (double)form->scale);
        return;
    }
    if (form->format != OCT_FORMAT_MXFP8) {
        const float amax = span_amax(s, true);
        s->scale = oct_stored_row_scale(form->format, &amax, 1);
        s->inverse = 1.0f / s->scale;
        return;
    }
    /* powers of two, exact in float32; a block with a NaN or infinity is NaN as a whole */
    const uint8_t code = oct_mxfp8_scale(span_amax(s, false), form->scale_rule);
    s->scale = oct_e8m0_decode(code);
    s->inverse = code == OCT_E8M0_NAN ? s->scale : oct_e8m0_decode((uint8_t)(254 - code));
}

/* A row in pieces, each with its scale. */
static void round_pieces(const oct_round_f32 *q, span_function *function, span s, float *row_scale) {
    const oct_form *form = q->rounding.form;
    const int64_t block = form->granularity == OCT_PER_ROW ? q->columns : form->block;
    for (int64_t c = 0; c < q->columns; c += block) {
        s.columns = q->columns - c < block ? q->columns - c : block;
        find_scale(&s, form);
        if (row_scale != NULL) *row_scale = s.scale;
        function(&s);
        s.x += block;
        if (s.values != NULL) s.values += block;
        if (s.codes != NULL) s.codes += block;
        if (s.factors != NULL) s.factors += block;
    }
}

static void round_rows(const oct_round_f32 *q) {
    const oct_form *form = q->rounding.form;
    span_function *function = span_function_of(q);
    span s = {.x = q->x,
              .values = q->values,
              .codes = q->codes,
              .x_stride = q->x_stride,
              .out_stride = q->out_stride,
              .rows = q->rows,
              .columns = q->columns,
              .scales = form->granularity == OCT_PER_CHANNEL ? q->rounding.scales : NULL,
              .factors = q->rounding.factors,
              .scale = form->scale,
              .inverse = 1.0f / form->scale,
              .zero_point = form->zero_point};
    if (form->granularity == OCT_PER_TENSOR || form->granularity == OCT_PER_CHANNEL) {
        function(&s);
        return;
    }
    s.rows = 1;
    for (int64_t r = 0; r < q->rows; r++) {
        s.x = q->x + r * q->x_stride;
        s.values = q->values != NULL ? q->values + r * q->out_stride : NULL;
        s.codes = q->codes != NULL ? q->codes + r * q->out_stride : NULL;
        round_pieces(q, function, s, q->row_scales != NULL ? q->row_scales + r : NULL);
    }
}

#endif
