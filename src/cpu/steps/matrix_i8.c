/* SPDX-License-Identifier: Apache-2.0 */
/* Dense convolution and linear layers of int8 times int8, with packed weights.
 *
 * A linear layer and a 1 x 1 convolution of stride 1 multiply all their rows in blocks, where they are if the body
 * reads them so, else copied; any other convolution goes line by line of its output, its windows gathered, zeros
 * outside. What is stored as neither fp32 nor int8 passes through the worker's scratch. */
#include <string.h>

#include "cpu/kernels/gemm_i8.h"
#include "cpu/steps/int8.h"

#define CHUNK 112                    /* windows gathered at once */
#define BLOCK_BYTES (160 << 10)      /* of activations in an item */
#define BLOCK_ROWS 448               /* and rows, at most */
#define ITEM_WORK ((int64_t)1 << 20) /* multiply-adds an item should have at least */

typedef struct matrix {
    oct_packed head;
    oct_gemm_i8_body *body;
    oct_storing storing;
    bool direct_codes; /* the body stores int8 codes itself */
    oct_sink codes;
    oct_finish_i8 finish;
    oct_isa isa;
    /* input [n, h, w, c], pixels in_stride apart; output lines of out_w pixels */
    int64_t h, w, c, in_stride;
    int64_t out_h, out_w, outputs, residual_stride;
    int64_t kernel_h, kernel_w, step_h, step_w, pad_top, pad_left;
    int64_t depth;       /* K */
    int64_t copy_stride; /* of rows copied or gathered; 0: read where they are */
    int64_t places;      /* of the depth, in a panel */
    bool flat;           /* all rows in blocks */
    uint64_t in, residual, row_scales;
    bool has_residual, has_row_scales;
    int unit, weight_bytes;
    uint8_t shift; /* what copies are xored with: 128 turns signed codes into unsigned ones, 128 more */
    int64_t width, panels;
    int64_t rows;                         /* of the output; or its lines */
    int64_t block, blocks, group, groups; /* rows or lines an item, panels an item */
} matrix;

static int64_t most_rows(const matrix *m) {
    return m->flat ? m->block : m->out_w;
}

/* A worker's scratch: rows copied, then numbers on their way to a narrow form. */
static uint64_t copies_bytes(const matrix *m) {
    const int64_t rows = m->flat ? m->block : oct_least(m->out_w, CHUNK);
    return oct_round_up((uint64_t)(rows * m->copy_stride));
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
    return copies_bytes(m) + numbers;
}

static void describe_conv2d(const oct_site *site, matrix *m) {
    const oct_attributes *a = &site->step->attributes;
    const oct_shape x = oct_site_input(site, 0).shape, weight = oct_site_input(site, 1).shape;
    const oct_shape out = oct_site_output(site).shape;
    m->h = x.dims[1];
    m->w = x.dims[2];
    m->out_h = out.dims[1];
    m->out_w = out.dims[2];
    m->kernel_h = weight.dims[1];
    m->kernel_w = weight.dims[2];
    m->step_h = a->stride_h;
    m->step_w = a->stride_w;
    m->pad_top = a->pad_top;
    m->pad_left = a->pad_left;
    m->flat = m->kernel_h == 1 && m->kernel_w == 1 && m->step_h == 1 && m->step_w == 1 && a->pad_top == 0 &&
              a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0;
    if (!m->flat) m->rows = out.dims[0] * m->out_h;
}

/* What the body asks of rows and panels (gemm_i8.h). */
static void describe_operands(matrix *m) {
    const bool tiles = m->isa == OCT_ISA_AMX, fours = tiles && m->depth < OCT_AMX_DEPTH;
    m->unit = m->isa == OCT_ISA_AVX2 ? 2 : 4;
    m->weight_bytes = m->isa == OCT_ISA_AVX2 ? sizeof(int16_t) : 1;
    m->shift = m->isa == OCT_ISA_VNNI ? 128 : 0;
    m->places = tiles ? oct_gemm_i8_places(m->depth) : oct_ceil_div(m->depth, m->unit) * m->unit;
    if (!m->flat || m->shift != 0 || (fours && m->depth % 4 != 0)) m->copy_stride = oct_ceil_div(m->depth, 32) * 32;
}

/* Items: constants of the shape, never of the number of threads. */
static void describe_items(const oct_kernel *kernel, matrix *m) {
    const int64_t line = m->flat ? 1 : m->out_w;
    int64_t block = oct_most(BLOCK_BYTES / (m->depth * line), oct_ceil_div(kernel->rows * 2, line));
    if (m->flat) block = oct_ceil_div(block, kernel->rows) * kernel->rows;
    m->panels = oct_ceil_div(m->outputs, m->width);
    m->block = oct_least(oct_least(block, oct_ceil_div(BLOCK_ROWS, line)), m->rows);
    m->blocks = oct_ceil_div(m->rows, m->block);
    m->group = oct_least(oct_ceil_div(ITEM_WORK, m->block * line * m->depth * m->width), m->panels);
    if (m->storing.whole_rows) m->group = m->panels;
    m->groups = oct_ceil_div(m->panels, m->group);
}

static void describe(const oct_site *site, const oct_kernel *kernel, matrix *m) {
    const oct_strided x = oct_site_input(site, 0), out = oct_site_output(site);
    *m = (matrix){.body = (oct_gemm_i8_body *)kernel->body,
                  .storing = oct_site_storing(site, kernel->isa),
                  .isa = kernel->isa,
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
                  .width = kernel->columns,
                  .rows = out.rows};
    m->direct_codes = oct_storing_take_codes(&m->storing, &m->codes);
    if (site->step->op == OCT_OP_CONV2D) describe_conv2d(site, m);
    m->depth = m->kernel_h * m->kernel_w * m->c;
    const int residual = oct_residual_input(site->step);
    if (residual >= 0) {
        const oct_strided r = oct_site_input(site, residual);
        m->has_residual = true;
        m->residual = r.offset;
        m->residual_stride = r.stride;
    }
    describe_operands(m);
    describe_items(kernel, m);
}

static const char *refuses(const oct_site *site, const oct_kernel *kernel) {
    (void)kernel;
    if (site->step->op == OCT_OP_CONV2D && site->step->attributes.groups != 1) return "groups";
    return oct_refuse_operands(site, 1, oct_bias_input(site->step) > 0 ? 2 : 1);
}

/* ---- packed: bias, scales and offsets, panels */

typedef struct parts {
    float *bias, *scales;
    int32_t *offsets;
    uint8_t *panels;
} parts;

static uint64_t vector_bytes(const matrix *m) {
    return oct_round_up((uint64_t)(m->panels * m->width) * sizeof(float));
}

static parts parts_of(const matrix *m, const void *packed) {
    uint8_t *at = (uint8_t *)(uintptr_t)packed + oct_round_up(sizeof *m);
    const uint64_t bytes = vector_bytes(m);
    return (parts){.bias = (float *)(void *)at,
                   .scales = (float *)(void *)(at + bytes),
                   .offsets = (int32_t *)(void *)(at + 2 * bytes),
                   .panels = at + 3 * bytes};
}

static int64_t panel_bytes(const matrix *m) {
    return m->places * m->width * m->weight_bytes;
}

static void size(const oct_site *site, const oct_kernel *kernel, oct_tactic_choice *choice) {
    matrix m;
    describe(site, kernel, &m);
    choice->packed = oct_round_up(sizeof m) + 3 * vector_bytes(&m) + (uint64_t)(m.panels * panel_bytes(&m));
    choice->worker = worker_bytes(&m);
}

typedef struct packing {
    const matrix *m;
    const int8_t *weights;
    parts to;
} packing;

static void pack_panel(void *argument, size_t index) {
    const packing *p = argument;
    const matrix *m = p->m;
    const int64_t first = (int64_t)index * m->width, columns = oct_least(m->width, m->outputs - first);
    uint8_t *panel = p->to.panels + (int64_t)index * panel_bytes(m);
    for (int64_t j = 0; j < columns; j++) {
        const int8_t *from = p->weights + (first + j) * m->depth;
        int32_t sum = 0;
        for (int64_t k = 0; k < m->depth; k++) {
            const int64_t place = m->isa == OCT_ISA_AMX ? oct_gemm_i8_place(m->depth, k) : k;
            const int64_t at = place / m->unit * m->unit * m->width + j * m->unit + place % m->unit;
            if (m->weight_bytes == 2)
                ((int16_t *)(void *)panel)[at] = from[k];
            else
                panel[at] = (uint8_t)from[k];
            sum += from[k];
        }
        p->to.offsets[first + j] = -128 * sum;
    }
}

static void pack(const oct_site *site, const oct_kernel *kernel, void *packed, oct_pool *pool) {
    matrix *m = packed;
    const oct_packed head = m->head;
    describe(site, kernel, m);
    m->head = head;
    packing p = {m, (const int8_t *)oct_site_input(site, 1).codes, parts_of(m, packed)};
    oct_int8_vectors(site, m->outputs, p.to.scales, p.to.bias);
    m->finish = oct_int8_finish(site, m->direct_codes ? 1.0f / m->codes.form.scale : 1.0f, m->depth, p.to.scales,
                                p.to.bias, m->outputs);
    oct_pool_run(pool, (size_t)m->panels, pack_panel, &p);
}

/* One run: the step and where everything lies. */
typedef struct job {
    const matrix *m;
    uint8_t *arena;
    const int8_t *in;
    const float *residual, *row_scales;
    parts from;
} job;

/* `rows` rows of the output, from row `row` on, times panels first .. last - 1; a: their codes. `numbers`: the
 * worker's scratch for them. */
static void multiply(const job *j, const int8_t *a, int64_t a_stride, float *numbers, int64_t row, int64_t rows,
                     int64_t first, int64_t last) {
    const matrix *m = j->m;
    const oct_storing *s = &m->storing;
    float *out = NULL; /* where the body's float32 goes, if anywhere */
    if (s->wide) out = oct_at(j->arena, s->out) + row * s->stride;
    if (through_scratch(m)) out = numbers;
    const bool keeps_columns = s->wide || s->whole_rows;
    oct_gemm_i8 g = {.a = a,
                     .row_stride = a_stride,
                     .depth = m->depth,
                     .row_scales = m->has_row_scales ? j->row_scales + row : NULL,
                     .residual_stride = m->residual_stride,
                     .out_stride = s->wide ? s->stride : stored_columns(m),
                     .code_stride = m->codes.stride,
                     .rows = rows,
                     .finish = m->finish};
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t column = panel * m->width;
        g.panel = j->from.panels + panel * panel_bytes(m);
        g.bias = j->from.bias + column;
        g.scales = j->from.scales + column;
        g.offsets = j->from.offsets + column;
        g.columns = (int)oct_least(m->width, m->outputs - column);
        g.residual = m->has_residual ? j->residual + row * m->residual_stride + column : NULL;
        g.out = out != NULL && keeps_columns ? out + column : out;
        g.codes = m->direct_codes ? (int8_t *)j->arena + m->codes.at + row * m->codes.stride + column : NULL;
        m->body(&g);
        if (!s->whole_rows) oct_store(s, j->arena, g.out, g.out_stride, row, column, rows, g.columns);
    }
    if (s->whole_rows) oct_store(s, j->arena, out, g.out_stride, row, 0, rows, m->outputs);
}

/* What lies in scratch behind the copies. */
static float *numbers_of(const matrix *m, void *worker) {
    return (float *)(void *)((uint8_t *)worker + copies_bytes(m));
}

/* Eight at a time, the last eight perhaps twice: rows are short, and a call of memcpy costs more than most. */
static inline void copy_codes(int8_t *to, const int8_t *from, int64_t count, uint8_t shift) {
    const uint64_t shifts = shift * UINT64_C(0x0101010101010101);
    for (int64_t k = 0; count >= 8 && k < count; k += 8) {
        const int64_t at = k + 8 <= count ? k : count - 8;
        uint64_t eight;
        memcpy(&eight, from + at, sizeof eight);
        eight ^= shifts;
        memcpy(to + at, &eight, sizeof eight);
    }
    for (int64_t k = 0; count < 8 && k < count; k++) to[k] = (int8_t)((uint8_t)from[k] ^ shift);
}

static void flat_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const int64_t row = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    const int64_t rows = oct_least(m->block, m->rows - row);
    const int8_t *a = j->in + row * m->in_stride;
    for (int64_t r = 0; m->copy_stride > 0 && r < rows; r++)
        copy_codes((int8_t *)worker + r * m->copy_stride, a + r * m->in_stride, m->depth, m->shift);
    const bool copied = m->copy_stride > 0;
    multiply(j, copied ? worker : a, copied ? m->copy_stride : m->in_stride, numbers_of(m, worker), row, rows, first,
             oct_least(first + m->group, m->panels));
}

/* The window of output pixel x, whose kernel row 0 lies on picture row `top`: zeros, or what lies inside. */
static void gather(const matrix *m, const int8_t *picture, int64_t top, int64_t x, int8_t *window) {
    const int64_t left = x * m->step_w - m->pad_left;
    const int64_t begin = oct_most(0, -left), end = oct_most(begin, oct_least(m->kernel_w, m->w - left));
    if (top < 0 || top + m->kernel_h > m->h || begin > 0 || end < m->kernel_w)
        memset(window, m->shift, (size_t)m->depth);
    for (int64_t i = oct_most(0, -top); i < m->kernel_h && top + i < m->h; i++) {
        const int8_t *from = picture + ((top + i) * m->w + left) * m->in_stride;
        int8_t *to = window + i * m->kernel_w * m->c;
        if (m->in_stride == m->c) {
            copy_codes(to + begin * m->c, from + begin * m->c, (end - begin) * m->c, m->shift);
            continue;
        }
        for (int64_t k = begin; k < end; k++) copy_codes(to + k * m->c, from + k * m->in_stride, m->c, m->shift);
    }
}

/* One kernel row of `count` windows that lie inside the picture in one piece each. Pieces of two words, as a first
 * convolution of three channels has, are too short for a loop of their own. */
static void gather_pieces(const matrix *m, const int8_t *from, int64_t count, int8_t *to) {
    const int64_t piece = m->kernel_w * m->c, step = m->step_w * m->in_stride, stride = m->copy_stride;
    const uint8_t shift = m->shift;
    const uint64_t shifts = shift * UINT64_C(0x0101010101010101);
    for (int64_t x = 0; x < count; x++, from += step, to += stride) {
        if (piece < 8 || piece > 16) {
            copy_codes(to, from, piece, shift);
            continue;
        }
        uint64_t words[2];
        memcpy(&words[0], from, 8);
        memcpy(&words[1], from + piece - 8, 8);
        words[0] ^= shifts;
        words[1] ^= shifts;
        memcpy(to, &words[0], 8);
        memcpy(to + piece - 8, &words[1], 8);
    }
}

/* Windows of output pixels x .. x + count - 1 of a line. */
static void gather_line(const matrix *m, const int8_t *picture, int64_t top, int64_t x, int64_t count, int8_t *to) {
    int64_t begin = count, end = count; /* pixels whose windows lie inside */
    if (m->in_stride == m->c && top >= 0 && top + m->kernel_h <= m->h && m->w >= m->kernel_w) {
        const int64_t right = (m->w - m->kernel_w + m->pad_left) / m->step_w + 1;
        begin = oct_least(oct_most(oct_ceil_div(m->pad_left, m->step_w) - x, 0), count);
        end = oct_most(begin, oct_least(right - x, count));
    }
    for (int64_t i = 0; i < count; i++)
        if (i < begin || i >= end) gather(m, picture, top, x + i, to + i * m->copy_stride);
    const int8_t *from = picture + (top * m->w + (x + begin) * m->step_w - m->pad_left) * m->in_stride;
    for (int64_t i = 0; begin < end && i < m->kernel_h; i++)
        gather_pieces(m, from + i * m->w * m->in_stride, end - begin,
                      to + begin * m->copy_stride + i * m->kernel_w * m->c);
}

static void line_item(const void *argument, size_t item, void *worker) {
    const job *j = argument;
    const matrix *m = j->m;
    const int64_t begin = (int64_t)item / m->groups * m->block, first = (int64_t)item % m->groups * m->group;
    const int64_t end = oct_least(begin + m->block, m->rows), last = oct_least(first + m->group, m->panels);
    for (int64_t line = begin; line < end; line++) {
        const int8_t *picture = j->in + line / m->out_h * m->h * m->w * m->in_stride;
        const int64_t top = line % m->out_h * m->step_h - m->pad_top;
        for (int64_t x = 0; x < m->out_w; x += CHUNK) {
            const int64_t rows = oct_least(CHUNK, m->out_w - x);
            gather_line(m, picture, top, x, rows, worker);
            multiply(j, worker, m->copy_stride, numbers_of(m, worker), line * m->out_w + x, rows, first, last);
        }
    }
}

static void run(const void *packed, uint8_t *arena, uint8_t *scratch, oct_pool *pool) {
    const matrix *m = packed;
    const job j = {.m = m,
                   .arena = arena,
                   .in = (const int8_t *)arena + m->in,
                   .residual = oct_at(arena, m->residual),
                   .row_scales = oct_at(arena, m->row_scales),
                   .from = parts_of(m, packed)};
    oct_items_run(pool, (size_t)(m->blocks * m->groups), m->flat ? flat_item : line_item, &j, scratch,
                  (size_t)worker_bytes(m));
}

const oct_driver oct_driver_matrix_i8 = {refuses, size, pack, run, oct_forms_int8};
