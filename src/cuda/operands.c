/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cuda/tactic.h"
#include "graph/ops/rules.h"
#include "graph/stored.h"

uint64_t oct_cuda_round_up(uint64_t size, uint64_t unit) {
    return (size + unit - 1) / unit * unit;
}

const oct_plan_step *oct_cuda_step(const oct_cuda_site *site) {
    return &site->plan->steps[site->step];
}

const oct_plan_tensor *oct_cuda_output(const oct_cuda_site *site) {
    return &site->plan->tensors[oct_cuda_step(site)->output];
}

oct_cuda_operand oct_cuda_input(const oct_cuda_site *site, int i) {
    const oct_operand operand = oct_cuda_step(site)->inputs[i];
    oct_cuda_operand found = {.index = operand.index};
    if (operand.kind == OCT_OPERAND_CONSTANT) {
        found.constant = &site->weights->items[operand.index];
        found.shape = &found.constant->shape;
        found.form = &found.constant->form;
    } else {
        found.tensor = &site->plan->tensors[operand.index];
        found.shape = &found.tensor->shape;
        found.form = &found.tensor->form;
    }
    return found;
}

bool oct_cuda_is_tensor(const oct_cuda_site *site, int i) {
    return oct_cuda_step(site)->inputs[i].kind == OCT_OPERAND_TENSOR;
}

int64_t oct_cuda_rows(const oct_shape *shape) {
    return oct_shape_count(shape) / shape->dims[shape->rank - 1];
}

int32_t oct_cuda_channels(const oct_shape *shape) {
    return (int32_t)shape->dims[shape->rank - 1];
}

oct_view oct_cuda_form_view(const oct_form *form, int64_t channels) {
    const bool scaled = oct_format_has_scale(form->format) && form->granularity == OCT_PER_TENSOR;
    return (oct_view){.format = (int32_t)form->format,
                      .channels = (int32_t)channels,
                      .scale = scaled ? form->scale : 1.0f,
                      .inverse = scaled ? 1.0f / form->scale : 1.0f};
}

oct_view oct_cuda_view(const oct_cuda_site *site, const oct_cuda_memory *memory, int32_t index) {
    const oct_plan_tensor *tensor = &site->plan->tensors[index];
    const oct_cuda_place *place = &memory->places[index];
    oct_view view = oct_cuda_form_view(&tensor->form, oct_cuda_channels(&tensor->shape));
    view.data = memory->arena + place->offset;
    view.stride = place->stride;
    view.rows = oct_cuda_rows(&tensor->shape);
    if (tensor->form.granularity == OCT_PER_ROW) view.scales = (float *)(void *)(memory->arena + place->scales);
    return view;
}

int32_t oct_cuda_outputs(const oct_cuda_site *site, const oct_cuda_memory *memory, oct_view out[2]) {
    const oct_plan_step *step = oct_cuda_step(site);
    out[0] = oct_cuda_view(site, memory, step->output);
    if (!step->has_second) return 1;
    out[1] = oct_cuda_view(site, memory, step->second);
    return 2;
}

oct_epilogue oct_cuda_epilogue(const oct_cuda_site *site, const oct_cuda_memory *memory) {
    const oct_plan_step *step = oct_cuda_step(site);
    oct_epilogue epilogue = {.activation = (int32_t)step->attributes.activation};
    epilogue.out_count = oct_cuda_outputs(site, memory, epilogue.out);
    const int residual = oct_residual_index(&step->attributes);
    if (residual != OCT_NONE) epilogue.residual = oct_cuda_view(site, memory, step->inputs[residual].index);
    return epilogue;
}

void oct_cuda_numbers(const oct_cuda_site *site, const oct_constant *constant, float *numbers) {
    const size_t count = (size_t)oct_shape_count(&constant->shape);
    if (constant->data != NULL) {
        memcpy(numbers, constant->data, count * sizeof *numbers);
        return;
    }
    const oct_form *form = &constant->form;
    const bool channels = form->granularity == OCT_PER_CHANNEL;
    const size_t groups = channels ? (size_t)constant->shape.dims[0] : 1;
    oct_scaled_decode(form->format, constant->codes, groups, count / groups, count / groups,
                      channels ? site->weights->items[form->scales].data : &form->scale, numbers);
}

void oct_cuda_bias(const oct_cuda_site *site, float *bias) {
    const int index = oct_bias_index(&oct_cuda_step(site)->attributes);
    const size_t outputs = (size_t)oct_cuda_channels(&oct_cuda_output(site)->shape);
    if (index == OCT_NONE)
        memset(bias, 0, outputs * sizeof *bias);
    else
        oct_cuda_numbers(site, oct_cuda_input(site, index).constant, bias);
}

void oct_cuda_scales(const oct_cuda_site *site, float factor, float *scales) {
    const oct_form *form = oct_cuda_input(site, 1).form;
    const int32_t outputs = oct_cuda_channels(&oct_cuda_output(site)->shape);
    for (int32_t o = 0; o < outputs; o++)
        scales[o] =
            factor * (form->granularity == OCT_PER_CHANNEL ? site->weights->items[form->scales].data[o] : form->scale);
}

bool oct_cuda_is_int8_product(const oct_cuda_site *site) {
    const oct_plan_step *step = oct_cuda_step(site);
    const oct_cuda_operand x = oct_cuda_input(site, 0), weight = oct_cuda_input(site, 1);
    return oct_stored_is_int8_product(step->op, &step->attributes, weight.shape, x.form, weight.form);
}

const char *oct_cuda_form_refused(const oct_form *form) {
    if (form->held_wide) return "held as float32";
    if (form->factors != OCT_NONE) return "a factor a channel";
    switch (form->format) {
    case OCT_FORMAT_FP32:
    case OCT_FORMAT_FP16:
    case OCT_FORMAT_BF16:
        return NULL;
    case OCT_FORMAT_E4M3:
    case OCT_FORMAT_INT8:
        break;
    default:
        return "a format without kernels";
    }
    return form->granularity == OCT_PER_TENSOR || form->granularity == OCT_PER_ROW ? NULL
                                                                                   : "scales by channel or block";
}

const char *oct_cuda_forms_refused(const oct_cuda_site *site, bool rows) {
    const oct_plan_step *step = oct_cuda_step(site);
    for (int i = 0; i < step->input_count; i++) {
        if (!oct_cuda_is_tensor(site, i)) continue;
        const char *why = oct_cuda_form_refused(oct_cuda_input(site, i).form);
        if (why != NULL) return why;
    }
    for (int i = 0; i < (step->has_second ? 2 : 1); i++) {
        const oct_form *form = &site->plan->tensors[i == 0 ? step->output : step->second].form;
        const char *why = oct_cuda_form_refused(form);
        if (why != NULL) return why;
        if (form->granularity == OCT_PER_ROW && !rows) return "cannot store a scale a row";
    }
    return NULL;
}

bool oct_cuda_feeds_next(const oct_cuda_site *site) {
    const oct_plan *plan = site->plan;
    const oct_plan_step *step = oct_cuda_step(site);
    if (step->has_second || site->step + 1 >= plan->step_count || plan->tensors[step->output].is_output) return false;
    for (size_t s = 0; s < plan->step_count; s++)
        for (int i = 0; i < plan->steps[s].input_count; i++) {
            const oct_operand operand = plan->steps[s].inputs[i];
            if (operand.kind != OCT_OPERAND_TENSOR || operand.index != step->output) continue;
            if (s != site->step + 1 || i != 0) return false;
        }
    const oct_operand first = plan->steps[site->step + 1].inputs[0];
    return first.kind == OCT_OPERAND_TENSOR && first.index == step->output;
}
