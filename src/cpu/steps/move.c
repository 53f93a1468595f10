/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move rows: RESHAPE (as a view, or copied), CONCAT and SLICE along the tokens. */
#include <string.h>

#include "cpu/kernels/copy_f32.h"
#include "cpu/steps/shared.h"

/* One source, repeated for every picture. A constant one lies in packed memory, `at` floats from its start. */
typedef struct piece {
    bool constant;
    uint64_t offset, at;
    int64_t rows, stride, picture; /* rows a picture; floats from a picture to the next, 0: the same for all */
    int64_t place;                 /* first row in the output's picture */
} piece;

typedef struct moving {
    oct_packed head;
    oct_copy_f32_body *body;
    int count;
    piece pieces[OCT_PLAN_INPUTS];
    uint64_t out;
    int64_t batch, channels, out_stride, out_picture;
} moving;

static moving begin(const oct_site *site, const oct_kernel *kernel, oct_packed head) {
    const oct_strided out = oct_site_output(site);
    return (moving){.head = head,
                    .body = (oct_copy_f32_body *)kernel->body,
                    .out = out.offset,
                    .batch = out.shape.dims[0],
                    .channels = out.channels,
                    .out_stride = out.stride,
                    .out_picture = out.rows / out.shape.dims[0] * out.stride};
}

static const char *refuses_view(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    if (site->step->inputs[0].kind != OCT_OPERAND_TENSOR) return "a constant";
    const oct_strided in = oct_site_input(site, 0), out = oct_site_output(site);
    return in.offset == out.offset && in.stride == in.channels && out.stride == out.channels ? NULL : "not in place";
}

static void size_header(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)site, (void)kernel;
    choice->packed = sizeof(moving);
}

static void pack_view(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)site, (void)kernel, (void)packed, (void)pool;
}

static void run_view(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    (void)packed, (void)arena, (void)scratch, (void)pool;
}

const oct_driver oct_driver_view = {refuses_view, size_header, pack_view, run_view, oct_forms_moved};

/* ---- slice */

static const char *refuses_slice(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    return oct_refuse_operands(site, -1, -1);
}

static void pack_slice(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    moving *m = packed;
    const oct_strided in = oct_site_input(site, 0);
    *m = begin(site, kernel, m->head);
    m->count = 1;
    m->pieces[0] = (piece){.offset = in.offset + (uint64_t)(site->step->attributes.start * in.stride) * sizeof(float),
                           .rows = site->step->attributes.length,
                           .stride = in.stride,
                           .picture = in.shape.dims[1] * in.stride};
}

/* ---- concat */

static const char *refuses_concat(const oct_site *site, const oct_kernel *kernel) {
    (void)site, (void)kernel;
    return NULL;
}

static void size_concat(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)kernel;
    choice->packed = oct_round_up(sizeof(moving));
    for (int j = 0; j < site->step->input_count; j++) {
        const oct_strided in = oct_site_input(site, j);
        if (in.is_constant) choice->packed += (uint64_t)(in.rows * in.channels) * sizeof(float);
    }
}

static void pack_concat(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)pool;
    moving *m = packed;
    *m = begin(site, kernel, m->head);
    float *constants = oct_packed_floats(packed, sizeof *m);
    uint64_t at = 0;
    int64_t place = 0;
    for (int j = 0; j < site->step->input_count; j++) {
        const oct_strided in = oct_site_input(site, j);
        piece *p = &m->pieces[m->count++];
        *p = (piece){.constant = in.is_constant,
                     .offset = in.offset,
                     .at = at,
                     .rows = in.shape.dims[1],
                     .stride = in.stride,
                     .picture = in.shape.dims[0] == 1 ? 0 : in.shape.dims[1] * in.stride,
                     .place = place};
        place += p->rows;
        if (!in.is_constant) continue;
        memcpy(constants + at, in.constant, (size_t)(in.rows * in.channels) * sizeof *constants);
        at += (uint64_t)(in.rows * in.channels);
    }
}

typedef struct job {
    const moving *m;
    uint8_t *arena;
    const float *constants;
} job;

/* Item: one piece of one picture. */
static void item(const void *argument, size_t index, void *worker) {
    (void)worker;
    const job *j = argument;
    const moving *m = j->m;
    const piece *p = &m->pieces[index % (size_t)m->count];
    const int64_t n = (int64_t)(index / (size_t)m->count);
    const float *in = p->constant ? j->constants + p->at : oct_at(j->arena, p->offset);
    const oct_copy_f32 one = {.in = in + n * p->picture,
                              .out = oct_at(j->arena, m->out) + n * m->out_picture + p->place * m->out_stride,
                              .rows = p->rows,
                              .channels = m->channels,
                              .in_stride = p->stride,
                              .out_stride = m->out_stride};
    m->body(&one);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const moving *m = packed;
    const job j = {m, arena, oct_packed_floats_const(packed, sizeof *m)};
    oct_items_run(pool, (size_t)(m->batch * m->count), item, &j, scratch, 0);
}

const oct_driver oct_driver_slice = {refuses_slice, size_header, pack_slice, run, oct_forms_moved};
const oct_driver oct_driver_concat = {refuses_concat, size_concat, pack_concat, run, oct_forms_moved};

/* ---- reshape by copying: rows of one length become rows of another, element by element where they are padded */

typedef struct reshaping {
    oct_packed head;
    uint64_t in, out;
    bool constant;
    int64_t count, in_channels, in_stride, out_channels, out_stride;
} reshaping;

static void size_reshape(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    (void)kernel;
    const oct_strided in = oct_site_input(site, 0);
    choice->packed = oct_round_up(sizeof(reshaping));
    if (in.is_constant) choice->packed += (uint64_t)(in.rows * in.channels) * sizeof(float);
}

static void pack_reshape(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    (void)kernel, (void)pool;
    reshaping *r = packed;
    const oct_strided in = oct_site_input(site, 0), out = oct_site_output(site);
    *r = (reshaping){.head = r->head,
                     .in = in.offset,
                     .out = out.offset,
                     .constant = in.is_constant,
                     .count = in.rows * in.channels,
                     .in_channels = in.channels,
                     .in_stride = in.stride,
                     .out_channels = out.channels,
                     .out_stride = out.stride};
    if (in.is_constant) memcpy(oct_packed_floats(packed, sizeof *r), in.constant, (size_t)r->count * sizeof(float));
}

static void run_reshape(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    (void)scratch, (void)pool;
    const reshaping *r = packed;
    const float *in = r->constant ? oct_packed_floats_const(packed, sizeof *r) : oct_at(arena, r->in);
    float *out = oct_at(arena, r->out);
    if (r->in_stride == r->in_channels && r->out_stride == r->out_channels) {
        memcpy(out, in, (size_t)r->count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < r->count; i++)
        out[i / r->out_channels * r->out_stride + i % r->out_channels] =
            in[i / r->in_channels * r->in_stride + i % r->in_channels];
}

const oct_driver oct_driver_reshape = {refuses_concat, size_reshape, pack_reshape, run_reshape, oct_forms_moved};
