/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/steps/shared.h"

const char *oct_refuse_operands(const oct_site *site, int first_weight, int last_weight) {
    for (int j = 0; j < site->step->input_count; j++) {
        const bool weight = j >= first_weight && j <= last_weight;
        const bool constant = site->step->inputs[j].kind == OCT_OPERAND_CONSTANT;
        if (weight && !constant) return "weights that are not constants";
        if (!weight && constant) return "constants where activations are expected";
    }
    return NULL;
}

const char *oct_refuse_inputs(const oct_site *site, int skip) {
    const oct_plan_step *step = site->step;
    for (int j = skip; j < step->input_count; j++)
        if (!oct_form_is_float(oct_site_input(site, j).form)) return "codes where numbers are read";
    return NULL;
}

static bool finds_rows(const oct_form *form) {
    return form->granularity == OCT_PER_ROW || form->granularity == OCT_PER_BLOCK;
}

const char *oct_refuse_outputs(const oct_site *site) {
    const oct_plan_step *step = site->step;
    for (int i = 0; i < (step->has_second ? 2 : 1); i++) {
        const oct_form *form = oct_site_tensor(site, i == 0 ? step->output : step->second).form;
        if (!oct_form_is_float(form) && form->format != OCT_FORMAT_INT8) return "codes other than int8";
    }
    return NULL;
}

const char *oct_forms_float(const oct_site *site) {
    const char *why = oct_refuse_inputs(site, 0);
    return why != NULL ? why : oct_refuse_outputs(site);
}

const char *oct_forms_product(const oct_site *site) {
    if (!oct_form_is_float(oct_site_input(site, 0).form)) return "codes where numbers are read";
    const char *why = oct_refuse_inputs(site, 2);
    return why != NULL ? why : oct_refuse_outputs(site);
}

const char *oct_forms_moved(const oct_site *site) {
    if (!oct_form_is_float(oct_site_output(site).form) || site->step->has_second) return "codes";
    return oct_refuse_inputs(site, 0);
}

oct_weight oct_site_weight(const oct_site *site, int input) {
    const oct_strided w = oct_site_input(site, input);
    const bool one = w.form->scales == OCT_NONE;
    return (oct_weight){.data = w.constant,
                        .codes = w.codes,
                        .scales = one ? &w.form->scale : site->weights->items[w.form->scales].data,
                        .is_int8 = w.form->format == OCT_FORMAT_INT8,
                        .one_scale = one,
                        .depth = oct_shape_count(&w.shape) / w.shape.dims[0]};
}

static const oct_kernel *best(oct_op op, oct_isa isa) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == op && oct_kernels[i].isa <= isa) return &oct_kernels[i];
    return NULL;
}

static const float *vector(const oct_site *site, int32_t constant) {
    return constant != OCT_NONE ? site->weights->items[constant].data : NULL;
}

oct_storing oct_site_storing(const oct_site *site, oct_isa isa) {
    const oct_plan_step *step = site->step;
    oct_storing s = {.round = (oct_round_f32_body *)best(OCT_OP_QUANTIZE, isa)->body};
    oct_sink own = {0}; /* of the form that lies at `out` */
    bool has_own = false;
    for (int i = 0; i < (step->has_second ? 2 : 1); i++) {
        const oct_strided out = oct_site_tensor(site, i == 0 ? step->output : step->second);
        const oct_sink sink = {.form = *out.form,
                               .scales = vector(site, out.form->scales),
                               .factors = vector(site, out.form->factors),
                               .at = out.offset,
                               .row_scales = out.scales,
                               .stride = out.stride};
        s.rows = out.rows;
        s.channels = out.channels;
        s.whole_rows = s.whole_rows || finds_rows(out.form);
        if (s.wide || !oct_form_is_float(out.form)) {
            s.sinks[s.count++] = sink;
            continue;
        }
        s.wide = true;
        s.out = out.offset;
        s.stride = out.stride;
        has_own = out.form->format != OCT_FORMAT_FP32;
        own = sink;
    }
    if (has_own) s.sinks[s.count++] = own;
    return s;
}

bool oct_storing_take_codes(oct_storing *s, oct_sink *codes) {
    for (int i = 0; i < s->count; i++) {
        const oct_form *form = &s->sinks[i].form;
        if (oct_form_is_float(form) || form->granularity != OCT_PER_TENSOR || s->sinks[i].factors != NULL) continue;
        *codes = s->sinks[i];
        s->count--;
        if (i == 0) s->sinks[0] = s->sinks[1];
        return true;
    }
    return false;
}

uint64_t oct_storing_scratch(const oct_storing *s, int64_t rows, int64_t columns) {
    return s->wide ? 0 : oct_round_up((uint64_t)(rows * columns) * sizeof(float));
}

void oct_store(const oct_storing *s, uint8_t *arena, const float *x, int64_t x_stride, int64_t row, int64_t column,
               int64_t rows, int64_t columns) {
    for (int i = 0; i < s->count; i++) {
        const oct_sink *sink = &s->sinks[i];
        const bool is_float = oct_form_is_float(&sink->form);
        const int64_t at = row * sink->stride + column;
        /* one long row: the three channels of a picture are too few to be one */
        const bool dense = sink->form.granularity == OCT_PER_TENSOR && sink->factors == NULL && x_stride == columns &&
                           sink->stride == columns;
        const oct_round_f32 q = {.rounding = {.form = &sink->form,
                                              .scales = sink->scales != NULL ? sink->scales + column : NULL,
                                              .factors = sink->factors != NULL ? sink->factors + column : NULL},
                                 .x = x,
                                 .x_stride = x_stride,
                                 .values = is_float ? oct_at(arena, sink->at) + at : NULL,
                                 .codes = is_float ? NULL : (int8_t *)arena + sink->at + at,
                                 .out_stride = sink->stride,
                                 .row_scales = sink->row_scales != 0 ? oct_at(arena, sink->row_scales) + row : NULL,
                                 .rows = dense ? 1 : rows,
                                 .columns = dense ? rows * columns : columns};
        s->round(&q);
    }
}
