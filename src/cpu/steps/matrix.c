/* SPDX-License-Identifier: Apache-2.0 */
/* Dense convolution and linear layers as products with packed weights.
 *
 * Weights [o][K] are packed in panels [K][width], zeros beyond the last output. A linear layer and a 1 x 1 convolution
 * of stride 1 multiply all their rows in blocks. Any other convolution goes line by line of its output: pixels whose
 * window lies inside the picture are read where they are, a piece a kernel row; the others are gathered first, zeros
 * outside. No pixel is copied otherwise, and no more than CHUNK windows at once.
 *
 * Weights that are codes are packed as the numbers they stand for. Outputs are rounded tile by tile, or, where rows
 * have scales of their own, when an item's rows are whole: its panels are then all there are. */
#include <string.h>

#include "cpu/kernels/gemm_f32.h"
#include "cpu/steps/shared.h"

#define CHUNK 56                     /* windows gathered at once */
#define BLOCK_BYTES (160 << 10)      /* of activations in an item: a part of a second-level cache */
#define ITEM_WORK ((int64_t)1 << 19) /* multiply-adds an item should have at least */

typedef struct matrix {
    oct_packed head;
    oct_gemm_f32_body *body;
    oct_storing storing;
    /* input [n, h, w, c], pixels in_stride apart; output lines of out_w pixels */
    int64_t h, w, c, in_stride;
    int64_t out_h, out_w, outputs, residual_stride;
    int64_t kernel_h, kernel_w, step_h, step_w, pad_top, pad_left;
    int64_t depth; /* K */
    bool flat;     /* all rows in blocks */
    bool direct;   /* a window's row is one piece of memory */
    uint64_t in, residual;
    bool has_residual;
    oct_activation activation;
    int64_t width, panels;
    int64_t rows;                         /* of the output; or its lines */
    int64_t block, blocks, group, groups; /* rows or lines an item, panels an item */
} matrix;

static void describe(const oct_site *site, const oct_kernel *kernel, matrix *m) {
    const oct_plan_step *step = site->step;
    const oct_attributes *a = &step->attributes;
    const oct_strided x = oct_site_input(site, 0), weight = oct_site_input(site, 1), out = oct_site_output(site);
    *m = (matrix){.body = (oct_gemm_f32_body *)kernel->body,
                  .c = x.channels,
                  .in_stride = x.stride,
                  .outputs = out.channels,
                  .storing = oct_site_storing(site, kernel->isa),
                  .kernel_h = 1,
                  .kernel_w = 1,
                  .step_h = 1,
                  .step_w = 1,
                  .flat = true,
                  .in = x.offset,
                  .activation = a->activation,
                  .width = kernel->columns,
                  .rows = out.rows};
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
    m->depth = m->kernel_h * m->kernel_w * m->c;
    m->direct = m->kernel_w == 1 || m->in_stride == m->c;
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
    int64_t block = oct_most(BLOCK_BYTES / (4 * m->depth * line), oct_ceil_div(kernel->rows * 2, line));
    if (m->flat) block = oct_ceil_div(block, kernel->rows) * kernel->rows;
    m->block = oct_least(oct_least(block, oct_ceil_div(448, line)), m->rows);
    m->blocks = oct_ceil_div(m->rows, m->block);
    m->group = oct_least(oct_ceil_div(ITEM_WORK, m->block * line * m->depth * m->width), m->panels);
    if (m->storing.whole_rows) m->group = m->panels;
    m->groups = oct_ceil_div(m->panels, m->group);
}

static uint64_t windows_bytes(const matrix *m) {
    return m->flat ? 0 : oct_round_up((uint64_t)(oct_least(m->out_w, CHUNK) * m->depth) * sizeof(float));
}
/* Columns of what is stored at once. */
static int64_t stored_columns(const matrix *m) {
    return m->storing.whole_rows ? m->outputs : m->width;
}
static uint64_t worker_bytes(const matrix *m) {
    return windows_bytes(m) + oct_storing_scratch(&m->storing, m->flat ? m->block : m->out_w, stored_columns(m));
}

static int64_t packed_floats(const matrix *m) {
    return m->panels * m->width * (m->depth + 1);
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    if (site->step->op == OCT_OP_CONV2D && site->step->attributes.groups != 1) return "groups";
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    matrix m;
    describe(site, kernel, &m);
    choice->packed = oct_round_up(sizeof m) + (uint64_t)packed_floats(&m) * sizeof(float);
    choice->worker = worker_bytes(&m);
}

/* Packing a panel: reads `width` rows of weights, writes the panel. */
typedef struct packing {
    const matrix *m;
    oct_weight weight;
    float *panels;
} packing;

static void pack_panel(void *argument, size_t index) {
    const packing *p = argument;
    const matrix *m = p->m;
    const int64_t first = (int64_t)index * m->width;
    const int64_t columns = oct_least(m->width, m->outputs - first);
    float *panel = p->panels + (int64_t)index * m->depth * m->width;
    for (int64_t begin = 0; begin < m->depth; begin += 16) {
        const int64_t end = oct_least(begin + 16, m->depth);
        for (int64_t j = 0; j < columns; j++)
            for (int64_t k = begin; k < end; k++) panel[k * m->width + j] = oct_weight_at(&p->weight, first + j, k);
    }
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    matrix *m = packed;
    const oct_packed head = m->head;
    describe(site, kernel, m);
    m->head = head;
    float *bias = oct_packed_floats(packed, sizeof *m);
    float *panels = bias + m->panels * m->width;
    const int bias_input = oct_bias_input(site->step);
    if (bias_input >= 0) memcpy(bias, oct_site_input(site, bias_input).constant, (size_t)m->outputs * sizeof *bias);
    packing p = {m, oct_site_weight(site, 1), panels};
    oct_pool_run(pool, (size_t)m->panels, pack_panel, &p);
}

/* One run: the step and where everything lies. */
typedef struct job {
    const matrix *m;
    uint8_t *arena;
    const float *in, *residual, *bias, *panels;
} job;

/* Some rows of the output, from row `row` on, times panels first .. last - 1. */
static void multiply(const job *j, oct_gemm_f32 *g, void *worker, int64_t row, int64_t first, int64_t last) {
    const matrix *m = j->m;
    const oct_storing *s = &m->storing;
    float *rows =
        s->wide ? oct_at(j->arena, s->out) + row * s->stride : (float *)(void *)((uint8_t *)worker + windows_bytes(m));
    const bool keeps_columns = s->wide || s->whole_rows;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t column = panel * m->width;
        g->panel = j->panels + column * m->depth;
        g->bias = j->bias + column;
        g->columns = (int)oct_least(m->width, m->outputs - column);
        g->out = keeps_columns ? rows + column : rows;
        g->residual = m->has_residual ? j->residual + row * m->residual_stride + column : NULL;
        m->body(g);
        if (!s->whole_rows) oct_store(s, j->arena, g->out, g->out_stride, row, column, g->rows, g->columns);
    }
    if (s->whole_rows) oct_store(s, j->arena, rows, g->out_stride, row, 0, g->rows, m->outputs);
}

static oct_gemm_f32 common(const matrix *m) {
    return (oct_gemm_f32){.residual_stride = m->residual_stride,
                          .out_stride = m->storing.wide ? m->storing.stride : stored_columns(m),
                          .activation = m->activation};
}

static void flat_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const int64_t row = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    oct_gemm_f32 g = common(m);
    g.a = j->in + row * m->in_stride;
    g.row_stride = m->in_stride;
    g.segments = 1;
    g.length = m->depth;
    g.rows = oct_least(m->block, m->rows - row);
    multiply(j, &g, worker, row, first, oct_least(first + m->group, m->panels));
}

/* The window of output pixel x, whose kernel row 0 lies on picture row `top`. */
static void gather(const matrix *m, const float *picture, int64_t top, int64_t x, float *window) {
    const int64_t left = x * m->step_w - m->pad_left;
    for (int64_t i = 0; i < m->kernel_h; i++) {
        for (int64_t k = 0; k < m->kernel_w; k++, window += m->c) {
            const int64_t row = top + i, column = left + k;
            if (row < 0 || row >= m->h || column < 0 || column >= m->w)
                memset(window, 0, (size_t)m->c * sizeof *window);
            else
                memcpy(window, picture + (row * m->w + column) * m->in_stride, (size_t)m->c * sizeof *window);
        }
    }
}

/* Pixels begin .. end - 1 of a line, gathered. */
static void gathered(const job *j, const float *picture, int64_t top, int64_t row, int64_t begin, int64_t end,
                     int64_t first, int64_t last, float *windows) {
    const matrix *m = j->m;
    oct_gemm_f32 g = common(m);
    g.a = windows;
    g.row_stride = m->depth;
    g.segments = 1;
    g.length = m->depth;
    for (int64_t x = begin; x < end; x += CHUNK) {
        g.rows = oct_least(CHUNK, end - x);
        for (int64_t i = 0; i < g.rows; i++) gather(m, picture, top, x + i, windows + i * m->depth);
        multiply(j, &g, windows, row + x, first, last);
    }
}

static void line(const job *j, int64_t index, int64_t first, int64_t last, float *windows) {
    const matrix *m = j->m;
    const int64_t n = index / m->out_h, y = index % m->out_h;
    const float *picture = j->in + n * m->h * m->w * m->in_stride;
    const int64_t top = y * m->step_h - m->pad_top, row = index * m->out_w;
    int64_t begin = m->out_w, end = m->out_w; /* pixels read in place */
    if (m->direct && top >= 0 && top + m->kernel_h <= m->h && m->w >= m->kernel_w) {
        begin = oct_least(oct_ceil_div(m->pad_left, m->step_w), m->out_w);
        const int64_t right = m->w - m->kernel_w + m->pad_left;
        end = oct_most(begin, oct_least(right / m->step_w + 1, m->out_w));
    }
    gathered(j, picture, top, row, 0, begin, first, last, windows);
    if (end > begin) {
        oct_gemm_f32 g = common(m);
        g.a = picture + (top * m->w + begin * m->step_w - m->pad_left) * m->in_stride;
        g.row_stride = m->step_w * m->in_stride;
        g.segments = m->kernel_h;
        g.segment_stride = m->w * m->in_stride;
        g.length = m->kernel_w * m->c;
        g.rows = end - begin;
        multiply(j, &g, windows, row + begin, first, last);
    }
    gathered(j, picture, top, row, end, m->out_w, first, last, windows);
}

static void line_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const int64_t begin = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    const int64_t end = oct_least(begin + m->block, m->rows);
    for (int64_t index = begin; index < end; index++)
        line(j, index, first, oct_least(first + m->group, m->panels), worker);
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const matrix *m = packed;
    const float *bias = oct_packed_floats_const(packed, sizeof *m);
    const job j = {.m = m,
                   .arena = arena,
                   .in = oct_at(arena, m->in),
                   .residual = oct_at(arena, m->residual),
                   .bias = bias,
                   .panels = bias + m->panels * m->width};
    oct_items_run(pool, (size_t)(m->blocks * m->groups), m->flat ? flat_item : line_item, &j, scratch,
                  (size_t)worker_bytes(m));
}

const oct_driver oct_driver_matrix = {refuses, size, pack, run, oct_forms_product};
