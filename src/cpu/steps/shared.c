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
        if (oct_site_input(site, j).form->format != OCT_FORMAT_FP32) return "formats other than fp32";
    return NULL;
}

const char *oct_refuse_outputs(const oct_site *site, unsigned stores) {
    const oct_plan_step *step = site->step;
    for (int i = 0; i < (step->has_second ? 2 : 1); i++) {
        const oct_form *form = oct_site_tensor(site, i == 0 ? step->output : step->second).form;
        if (form->format == OCT_FORMAT_FP32) continue;
        if ((stores & OCT_STORES_NARROW) == 0) return "formats other than fp32";
        if (form->granularity == OCT_PER_ROW && (stores & OCT_STORES_ROWS) == 0) return "an output with a scale a row";
    }
    return NULL;
}

static const char *refuse(const oct_site *site, unsigned stores) {
    const char *why = oct_refuse_inputs(site, 0);
    return why != NULL ? why : oct_refuse_outputs(site, stores);
}

const char *oct_forms_f32(const oct_site *site) {
    return refuse(site, 0);
}

const char *oct_forms_narrow(const oct_site *site) {
    return refuse(site, OCT_STORES_NARROW);
}

const char *oct_forms_rows(const oct_site *site) {
    return refuse(site, OCT_STORES_NARROW | OCT_STORES_ROWS);
}

static const oct_kernel *best(oct_op op, oct_isa isa) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (oct_kernels[i].op == op && oct_kernels[i].isa <= isa) return &oct_kernels[i];
    return NULL;
}

oct_dequantize_f32_body *oct_dequantize_body(oct_isa isa) {
    return (oct_dequantize_f32_body *)best(OCT_OP_DEQUANTIZE, isa)->body;
}

oct_storing oct_site_storing(const oct_site *site, oct_isa isa) {
    const oct_plan_step *step = site->step;
    oct_storing s = {0};
    for (int i = 0; i < (step->has_second ? 2 : 1); i++) {
        const oct_strided out = oct_site_tensor(site, i == 0 ? step->output : step->second);
        s.row_count = out.rows;
        s.channels = out.channels;
        if (out.form->format == OCT_FORMAT_FP32) {
            s.wide = true;
            s.out = out.offset;
            s.stride = out.stride;
            continue;
        }
        s.narrow = (oct_quantize_f32_body *)best(OCT_OP_QUANTIZE, isa)->body;
        s.format = out.form->format;
        s.inverse = 1.0f / out.form->scale;
        s.rows = out.form->granularity == OCT_PER_ROW;
        s.codes = out.offset;
        s.scales = out.scales;
        s.code_stride = out.stride;
    }
    return s;
}

uint64_t oct_storing_scratch(const oct_storing *s, int64_t rows, int64_t columns) {
    return s->wide ? 0 : oct_round_up((uint64_t)(rows * columns) * sizeof(float));
}

void oct_store_narrow(const oct_storing *s, uint8_t *arena, const float *x, int64_t x_stride, int64_t row,
                      int64_t column, int64_t rows, int64_t columns) {
    if (s->narrow == NULL) return;
    const int64_t bytes = (int64_t)oct_format_bits(s->format) / 8;
    const oct_quantize_f32 q = {.x = x,
                                .x_stride = x_stride,
                                .out = arena + s->codes + (row * s->code_stride + column) * bytes,
                                .out_stride = s->code_stride,
                                .rows = rows,
                                .columns = columns,
                                .format = s->format,
                                .inverse = s->inverse,
                                .scales = s->rows ? oct_at(arena, s->scales) + row : NULL};
    s->narrow(&q);
}
