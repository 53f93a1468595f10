/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of any kind, plainly: an item an output line, weights as they are. */
#include <string.h>

#include "cpu/kernels/grouped_f32.h"
#include "cpu/steps/shared.h"

typedef struct grouped {
    oct_packed head;
    oct_grouped_f32_body *body;
    oct_grouped_f32 row;
    oct_storing storing;
    int64_t out_h, lines, step_h, pad_top;
    uint64_t in, residual;
    bool has_residual;
} grouped;

static void describe(const oct_site *site, const oct_kernel *kernel, grouped *g) {
    const oct_attributes *a = &site->step->attributes;
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1), out = oct_site_output(site);
    *g = (grouped){.body = (oct_grouped_f32_body *)kernel->body,
                   .out_h = out.shape.dims[1],
                   .lines = out.shape.dims[0] * out.shape.dims[1],
                   .step_h = a->stride_h,
                   .pad_top = a->pad_top,
                   .storing = oct_site_storing(site, kernel->isa),
                   .in = x.offset};
    g->row = (oct_grouped_f32){.height = x.shape.dims[1],
                               .width = x.shape.dims[2],
                               .row_stride = x.shape.dims[2] * x.stride,
                               .in_stride = x.stride,
                               .kernel_h = weight.shape.dims[1],
                               .kernel_w = weight.shape.dims[2],
                               .step = a->stride_w,
                               .pad = a->pad_left,
                               .channels = x.channels,
                               .groups = a->groups,
                               .outputs = out.channels,
                               .out_width = out.shape.dims[2],
                               .out_stride = g->storing.wide ? g->storing.stride : out.channels,
                               .activation = a->activation};
    const int residual = oct_residual_input(site->step);
    if (residual >= 0) {
        const oct_strided r = oct_site_input(site, residual);
        g->has_residual = true;
        g->residual = r.offset;
        g->row.residual_stride = r.stride;
    }
}

static int64_t weight_count(const grouped *g) {
    return g->row.outputs * g->row.kernel_h * g->row.kernel_w * (g->row.channels / g->row.groups);
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    grouped g;
    describe(site, kernel, &g);
    choice->worker = oct_storing_scratch(&g.storing, g.row.out_width, g.row.outputs);
    choice->packed = oct_round_up(sizeof g) + (uint64_t)(weight_count(&g) + g.row.outputs) * sizeof(float);
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    grouped *g = packed;
    const oct_packed head = g->head;
    describe(site, kernel, g);
    g->head = head;
    float *bias = oct_packed_floats(packed, sizeof *g);
    const oct_weight weight = oct_site_weight(site, 1);
    for (int64_t o = 0; o < g->row.outputs; o++)
        for (int64_t k = 0; k < weight.depth; k++)
            bias[g->row.outputs + o * weight.depth + k] = oct_weight_at(&weight, o, k);
    const int bias_input = oct_bias_input(site->step);
    if (bias_input >= 0) memcpy(bias, oct_site_input(site, bias_input).constant, (size_t)g->row.outputs * sizeof *bias);
}

typedef struct job {
    const grouped *g;
    oct_grouped_f32 row;
    uint8_t *arena;
    const float *in, *residual;
} job;

static void item(const void *argument, size_t index, void *worker) {
    const job *j = argument;
    const grouped *g = j->g;
    oct_grouped_f32 row = j->row;
    const int64_t line = (int64_t)index;
    row.picture = j->in + line / g->out_h * row.height * row.row_stride;
    row.top = line % g->out_h * g->step_h - g->pad_top;
    row.out = worker;
    if (g->storing.wide) row.out = oct_at(j->arena, g->storing.out) + line * row.out_width * row.out_stride;
    row.residual = g->has_residual ? j->residual + line * row.out_width * row.residual_stride : NULL;
    g->body(&row);
    oct_store(&g->storing, j->arena, row.out, row.out_stride, line * row.out_width, 0, row.out_width, row.outputs);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const grouped *g = packed;
    job j = {.g = g, .row = g->row, .arena = arena, .in = oct_at(arena, g->in), .residual = oct_at(arena, g->residual)};
    j.row.bias = oct_packed_floats_const(packed, sizeof *g);
    j.row.weights = j.row.bias + g->row.outputs;
    oct_items_run(pool, (size_t)g->lines, item, &j, scratch,
                  (size_t)oct_storing_scratch(&g->storing, g->row.out_width, g->row.outputs));
}

const oct_driver oct_driver_grouped = {refuses, size, pack, run, oct_forms_product};
