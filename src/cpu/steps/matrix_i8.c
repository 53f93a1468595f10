/* SPDX-License-Identifier: Apache-2.0 */
/* Dense convolution and linear layers of int8 times int8, with packed weights; how the work is cut is matrix.c's.
 *
 * Pixels whose window lies inside the picture are read where they are, a piece a kernel row; the others are gathered
 * first, zeros outside. What is stored as neither fp32 nor int8 passes through the worker's scratch. */
#include <string.h>

#include "cpu/kernels/gemm_i8.h"
#include "cpu/steps/shared.h"

#define CHUNK 56                     /* windows gathered at once */
#define BLOCK_BYTES (160 << 10)      /* of activations in an item */
#define BLOCK_ROWS 448               /* and rows, at most */
#define ITEM_WORK ((int64_t)1 << 20) /* multiply-adds an item should have at least */

typedef struct matrix {
    oct_packed head;
    oct_gemm_i8_body *body;
    oct_storing storing;
    bool direct_codes; /* the body stores int8 codes itself */
    oct_sink codes;
    float inverse;
    /* input [n, h, w, c], pixels in_stride apart; output lines of out_w pixels */
    int64_t h, w, c, in_stride;
    int64_t out_h, out_w, outputs, residual_stride;
    int64_t kernel_h, kernel_w, step_h, step_w, pad_top, pad_left;
    int64_t depth;   /* K */
    int64_t segment; /* codes in a piece, a kernel row */
    int64_t panel_bytes;
    bool flat; /* all rows in blocks */
    uint64_t in, residual, row_scales;
    bool has_residual, has_row_scales;
    oct_activation activation;
    int unit;
    uint8_t shift;
    int64_t width, panels;
    int64_t rows;                         /* of the output; or its lines */
    int64_t block, blocks, group, groups; /* rows or lines an item, panels an item */
} matrix;

static int64_t most_rows(const matrix *m) {
    return m->flat ? m->block : m->out_w;
}

/* A worker's scratch: offsets of the rows, then windows gathered, then numbers on their way to a narrow form. */
static uint64_t offsets_bytes(const matrix *m) {
    return oct_round_up((uint64_t)most_rows(m) * sizeof(int32_t));
}
static uint64_t windows_bytes(const matrix *m) {
    return m->flat ? 0 : oct_round_up((uint64_t)(oct_least(m->out_w, CHUNK) * m->depth));
}
static bool through_scratch(const matrix *m) {
    return m->storing.count > 0 && !m->storing.wide;
}
/* Columns of what is stored at once. */
static int64_t stored_columns(const matrix *m) {
    return m->storing.whole_rows ? m->outputs : m->width;
}
static uint64_t worker_bytes(const matrix *m) {
    const uint64_t numbers = through_scratch(m) ? oct_storing_scratch(&m->storing, most_rows(m), stored_columns(m)) : 0;
    return offsets_bytes(m) + windows_bytes(m) + numbers;
}

static void describe(const oct_site *site, const oct_kernel *kernel, matrix *m) {
    const oct_plan_step *step = site->step;
    const oct_attributes *a = &step->attributes;
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1), out = oct_site_output(site);
    *m = (matrix){.body = (oct_gemm_i8_body *)kernel->body,
                  .storing = oct_site_storing(site, kernel->isa),
                  .c = x.channels,
                  .in_stride = x.stride,
                  .outputs = out.channels,
                  .kernel_h = 1,
                  .kernel_w = 1,
                  .step_h = 1,
                  .step_w = 1,
                  .flat = true,
                  .in = x.offset,
                  .has_row_scales = x.form->granularity == OCT_PER_ROW,
                  .row_scales = x.scales,
                  .activation = a->activation,
                  .unit = kernel->isa == OCT_ISA_AVX2 ? 2 : 4,
                  .shift = kernel->isa == OCT_ISA_VNNI ? 128 : 0,
                  .width = kernel->columns,
                  .rows = out.rows};
    m->direct_codes = oct_storing_take_codes(&m->storing, &m->codes);
    m->inverse = m->direct_codes ? 1.0f / m->codes.form.scale : 1.0f;
    if (step->op == OCT_OP_CONV2D) {
        m->h = x.shape.dims[1];
        m->w = x.shape.dims[2];
        m->out_h = out.shape.dims[1];
        m->out_w = out.shape.dims[2];
        m->kernel_h = weight.shape.dims[1];
        m->kernel_w = weight.shape.dims[2];
        m->step_h = a->stride_h;
        m->step_w = a->stride_w;
        m->pad_top = a->pad_top;
        m->pad_left = a->pad_left;
        m->flat = m->kernel_h == 1 && m->kernel_w == 1 && m->step_h == 1 && m->step_w == 1 && a->pad_top == 0 &&
                  a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0;
        if (!m->flat) m->rows = out.shape.dims[0] * m->out_h;
    }
    m->segment = m->kernel_w * m->c;
    m->depth = m->kernel_h * m->segment;
    m->panel_bytes = m->kernel_h * oct_ceil_div(m->segment, m->unit) * m->unit * m->width;
    const int residual = oct_residual_input(step);
    if (residual >= 0) {
        const oct_strided r = oct_site_input(site, residual);
        m->has_residual = true;
        m->residual = r.offset;
        m->residual_stride = r.stride;
    }
    m->panels = oct_ceil_div(m->outputs, m->width);
    /* Items: constants of the shape, never of the number of threads. */
    const int64_t line = m->flat ? 1 : m->out_w;
    int64_t block = oct_most(BLOCK_BYTES / (m->depth * line), oct_ceil_div(kernel->rows * 2, line));
    if (m->flat) block = oct_ceil_div(block, kernel->rows) * kernel->rows;
    m->block = oct_least(oct_least(block, oct_ceil_div(BLOCK_ROWS, line)), m->rows);
    m->blocks = oct_ceil_div(m->rows, m->block);
    m->group = oct_least(oct_ceil_div(ITEM_WORK, m->block * line * m->depth * m->width), m->panels);
    if (m->storing.whole_rows) m->group = m->panels;
    m->groups = oct_ceil_div(m->panels, m->group);
}

static const char *forms(const oct_site *site) {
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1);
    if (!oct_stored_is_int8_product(site->step->op, &site->step->attributes, &weight.shape, x.form, weight.form))
        return "no product of int8 codes";
    const char *why = oct_refuse_inputs(site, 2);
    return why != NULL ? why : oct_refuse_outputs(site, OCT_STORES_CODES | OCT_STORES_ROWS);
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    if (site->step->op == OCT_OP_CONV2D && site->step->attributes.groups != 1) return "groups";
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    matrix m;
    describe(site, kernel, &m);
    choice->packed = oct_round_up(sizeof m) + (uint64_t)(2 * m.panels * m.width) * sizeof(float) +
                     (uint64_t)(m.panels * m.panel_bytes);
    choice->worker = worker_bytes(&m);
}

typedef struct packing {
    const matrix *m;
    const uint8_t *weights;
    uint8_t *panels;
} packing;

static void pack_panel(void *argument, size_t index) {
    const packing *p = argument;
    const matrix *m = p->m;
    const int64_t first = (int64_t)index * m->width, columns = oct_least(m->width, m->outputs - first);
    const int64_t padded = oct_ceil_div(m->segment, m->unit) * m->unit;
    uint8_t *panel = p->panels + (int64_t)index * m->panel_bytes;
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t s = 0; s < m->kernel_h; s++) {
            const uint8_t *from = p->weights + (first + j) * m->depth + s * m->segment;
            uint8_t *to = panel + s * padded * m->width + j * m->unit;
            for (int64_t k = 0; k < m->segment; k++)
                to[k / m->unit * m->unit * m->width + k % m->unit] = (uint8_t)(from[k] ^ m->shift);
        }
    }
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    matrix *m = packed;
    const oct_packed head = m->head;
    describe(site, kernel, m);
    m->head = head;
    float *bias = oct_packed_floats(packed, sizeof *m), *scales = bias + m->panels * m->width;
    const int bias_input = oct_bias_input(site->step);
    if (bias_input >= 0) memcpy(bias, oct_site_input(site, bias_input).constant, (size_t)m->outputs * sizeof *bias);
    const oct_strided weight = oct_site_input(site, 1);
    const float *own = weight.form->scales != OCT_NONE ? site->weights->items[weight.form->scales].data : NULL;
    const float input = m->has_row_scales ? 1.0f : oct_site_input(site, 0).form->scale;
    for (int64_t o = 0; o < m->outputs; o++) scales[o] = input * (own != NULL ? own[o] : weight.form->scale);
    packing p = {m, weight.codes, (uint8_t *)(scales + m->panels * m->width)};
    oct_pool_run(pool, (size_t)m->panels, pack_panel, &p);
}

/* One run: the step and where everything lies. */
typedef struct job {
    const matrix *m;
    uint8_t *arena;
    const int8_t *in;
    const float *residual, *row_scales, *bias, *scales;
    const uint8_t *panels;
} job;

/* The scratch of the worker at hand. */
typedef struct desk {
    int32_t *offsets;
    int8_t *windows;
    float *numbers;
} desk;

static desk desk_of(const matrix *m, void *worker) {
    uint8_t *at = worker;
    return (desk){.offsets = (int32_t *)(void *)at,
                  .windows = (int8_t *)at + offsets_bytes(m),
                  .numbers = (float *)(void *)(at + offsets_bytes(m) + windows_bytes(m))};
}

/* -128 times the sum of each row's codes. */
static void sum_rows(const oct_gemm_i8 *g, int32_t *offsets) {
    for (int64_t r = 0; r < g->rows; r++) {
        int32_t sum = 0;
        for (int64_t s = 0; s < g->segments; s++) {
            const int8_t *a = g->a + r * g->row_stride + s * g->segment_stride;
            for (int64_t k = 0; k < g->length; k++) sum += a[k];
        }
        offsets[r] = -128 * sum;
    }
}

/* Some rows of the output, from row `row` on, times panels first .. last - 1. */
static void multiply(const job *j, oct_gemm_i8 *g, const desk *d, int64_t row, int64_t first, int64_t last) {
    const matrix *m = j->m;
    const oct_storing *s = &m->storing;
    float *rows = NULL; /* where the body's float32 goes, if anywhere */
    if (s->wide) rows = oct_at(j->arena, s->out) + row * s->stride;
    if (through_scratch(m)) rows = d->numbers;
    const bool keeps_columns = s->wide || s->whole_rows;
    if (m->shift != 0) sum_rows(g, d->offsets);
    g->offsets = d->offsets;
    g->row_scales = m->has_row_scales ? j->row_scales + row : NULL;
    g->out_stride = s->wide ? s->stride : stored_columns(m);
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t column = panel * m->width;
        g->panel = j->panels + panel * m->panel_bytes;
        g->bias = j->bias + column;
        g->scales = j->scales + column;
        g->columns = (int)oct_least(m->width, m->outputs - column);
        g->residual = m->has_residual ? j->residual + row * m->residual_stride + column : NULL;
        g->out = rows != NULL && keeps_columns ? rows + column : rows;
        g->codes = m->direct_codes ? (int8_t *)j->arena + m->codes.at + row * m->codes.stride + column : NULL;
        m->body(g);
        if (!s->whole_rows) oct_store(s, j->arena, g->out, g->out_stride, row, column, g->rows, g->columns);
    }
    if (s->whole_rows) oct_store(s, j->arena, rows, g->out_stride, row, 0, g->rows, m->outputs);
}

static oct_gemm_i8 common(const matrix *m) {
    return (oct_gemm_i8){.residual_stride = m->residual_stride,
                         .code_stride = m->codes.stride,
                         .inverse = m->inverse,
                         .activation = m->activation,
                         .segments = m->kernel_h,
                         .length = m->segment};
}

static void flat_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const desk d = desk_of(m, worker);
    const int64_t row = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    oct_gemm_i8 g = common(m);
    g.a = j->in + row * m->in_stride;
    g.row_stride = m->in_stride;
    g.rows = oct_least(m->block, m->rows - row);
    multiply(j, &g, &d, row, first, oct_least(first + m->group, m->panels));
}

/* The window of output pixel x, whose kernel row 0 lies on picture row `top`. */
static void gather(const matrix *m, const int8_t *picture, int64_t top, int64_t x, int8_t *window) {
    const int64_t left = x * m->step_w - m->pad_left;
    for (int64_t i = 0; i < m->kernel_h; i++) {
        for (int64_t k = 0; k < m->kernel_w; k++, window += m->c) {
            const int64_t row = top + i, column = left + k;
            if (row < 0 || row >= m->h || column < 0 || column >= m->w)
                memset(window, 0, (size_t)m->c);
            else
                memcpy(window, picture + (row * m->w + column) * m->in_stride, (size_t)m->c);
        }
    }
}

/* Pixels begin .. end - 1 of a line, gathered. */
static void gathered(const job *j, const int8_t *picture, const desk *d, int64_t top, int64_t row, int64_t begin,
                     int64_t end, int64_t first, int64_t last) {
    const matrix *m = j->m;
    oct_gemm_i8 g = common(m);
    g.a = d->windows;
    g.row_stride = m->depth;
    g.segment_stride = m->segment;
    for (int64_t x = begin; x < end; x += CHUNK) {
        g.rows = oct_least(CHUNK, end - x);
        for (int64_t i = 0; i < g.rows; i++) gather(m, picture, top, x + i, d->windows + i * m->depth);
        multiply(j, &g, d, row + x, first, last);
    }
}

static void line(const job *j, const desk *d, int64_t index, int64_t first, int64_t last) {
    const matrix *m = j->m;
    const int64_t n = index / m->out_h, y = index % m->out_h;
    const int8_t *picture = j->in + n * m->h * m->w * m->in_stride;
    const int64_t top = y * m->step_h - m->pad_top, row = index * m->out_w;
    const bool direct = m->kernel_w == 1 || m->in_stride == m->c; /* a window's row is one piece of memory */
    int64_t begin = m->out_w, end = m->out_w;                     /* pixels read in place */
    if (direct && top >= 0 && top + m->kernel_h <= m->h && m->w >= m->kernel_w) {
        begin = oct_least(oct_ceil_div(m->pad_left, m->step_w), m->out_w);
        const int64_t right = m->w - m->kernel_w + m->pad_left;
        end = oct_most(begin, oct_least(right / m->step_w + 1, m->out_w));
    }
    gathered(j, picture, d, top, row, 0, begin, first, last);
    if (end > begin) {
        oct_gemm_i8 g = common(m);
        g.a = picture + (top * m->w + begin * m->step_w - m->pad_left) * m->in_stride;
        g.row_stride = m->step_w * m->in_stride;
        g.segment_stride = m->w * m->in_stride;
        g.rows = end - begin;
        multiply(j, &g, d, row + begin, first, last);
    }
    gathered(j, picture, d, top, row, end, m->out_w, first, last);
}

static void line_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const desk d = desk_of(m, worker);
    const int64_t begin = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    const int64_t end = oct_least(begin + m->block, m->rows);
    for (int64_t index = begin; index < end; index++) line(j, &d, index, first, oct_least(first + m->group, m->panels));
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const matrix *m = packed;
    const float *bias = oct_packed_floats_const(packed, sizeof *m), *scales = bias + m->panels * m->width;
    const job j = {.m = m,
                   .arena = arena,
                   .in = (const int8_t *)arena + m->in,
                   .residual = oct_at(arena, m->residual),
                   .row_scales = oct_at(arena, m->row_scales),
                   .bias = bias,
                   .scales = scales,
                   .panels = (const uint8_t *)(scales + m->panels * m->width)};
    oct_items_run(pool, (size_t)(m->blocks * m->groups), m->flat ? flat_item : line_item, &j, scratch,
                  (size_t)worker_bytes(m));
}

const oct_driver oct_driver_matrix_i8 = {refuses, size, pack, run, forms};
