/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/rows.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/stored.h"

/* ---- making */

octet_status oct_rows_new(oct_quant_rows **rows, size_t channels, size_t op_capacity, bool sample) {
    oct_quant_rows *own = oct_calloc(1, sizeof *own);
    *rows = own;
    if (own == NULL) return oct_fail_memory();
    own->channels = channels;
    own->ops = oct_calloc(op_capacity + 1, sizeof *own->ops);
    if (sample) own->sample = oct_calloc(OCT_SEARCH_ROWS * channels + 1, sizeof *own->sample);
    if (own->ops != NULL && (own->sample != NULL || !sample)) return OCTET_OK;
    oct_rows_free(own);
    *rows = NULL;
    return oct_fail_memory();
}

static void free_op(oct_rows_op *op) {
    for (int64_t g = 0; op->owns_grams && op->grams != NULL && g < op->product.groups; g++)
        oct_gram_free(&op->grams[g]);
    if (op->owns_grams) oct_free(op->grams);
    oct_free(op->sums);
    oct_free(op->rounded_sums);
}

void oct_rows_free(oct_quant_rows *rows) {
    if (rows == NULL) return;
    for (size_t i = 0; i < rows->op_count; i++) free_op(&rows->ops[i]);
    oct_free(rows->ops);
    oct_free(rows->sample);
    oct_free(rows);
}

/* Whether two ops that read the same value make their outputs of the same rows. */
static bool same_rows(const oct_rows_op *a, const oct_rows_op *b) {
    const oct_attributes *x = &a->node->attributes, *y = &b->node->attributes;
    return a->product.taps == 1 && b->product.taps == 1 && a->product.groups == b->product.groups &&
           (a->node->op == OCT_OP_CONV2D ? x->stride_h : 1) == (b->node->op == OCT_OP_CONV2D ? y->stride_h : 1) &&
           (a->node->op == OCT_OP_CONV2D ? x->stride_w : 1) == (b->node->op == OCT_OP_CONV2D ? y->stride_w : 1);
}

static octet_status add_grams(oct_quant_rows *rows, oct_rows_op *op) {
    for (size_t i = 0; i < rows->op_count; i++) {
        if (rows->ops[i].grams == NULL || !same_rows(&rows->ops[i], op)) continue;
        op->grams = rows->ops[i].grams;
        return OCTET_OK;
    }
    const size_t groups = (size_t)op->product.groups;
    op->grams = oct_calloc(groups, sizeof *op->grams);
    op->owns_grams = true;
    if (op->grams == NULL) return oct_fail_memory();
    for (size_t g = 0; g < groups; g++)
        OCT_TRY(oct_gram_new(&op->grams[g], (size_t)(op->product.taps * op->product.depth)));
    return OCTET_OK;
}

static size_t columns_of(const oct_product *product) {
    return (size_t)(product->groups * product->taps * product->depth);
}

oct_form oct_rows_form(const oct_quantize_numbers *numbers) {
    oct_form form = oct_form_of(numbers->format);
    const bool own_blocks = oct_format_get(numbers->format)->block > 1;
    form.granularity = own_blocks ? OCT_PER_BLOCK : numbers->granularity;
    form.block = own_blocks ? (int32_t)oct_format_get(numbers->format)->block : numbers->block;
    form.scale = numbers->scale;
    form.zero_point = numbers->zero_point;
    form.scale_rule = numbers->scale_rule;
    return form;
}

octet_status oct_rows_add_op(oct_quant_rows *rows, const oct_graph *graph, const oct_graph_node *node, bool gram,
                             bool sums, const oct_quantize_numbers *numbers) {
    oct_rows_op *op = &rows->ops[rows->op_count];
    *op = (oct_rows_op){.node = node, .kernel = graph->values[node->inputs[1]].shape};
    (void)oct_product_of(graph, node, &op->product);
    octet_status status = gram ? add_grams(rows, op) : OCTET_OK;
    rows->op_count++;
    OCT_TRY(status);
    op->is_rounded = numbers->format != OCT_FORMAT_FP32;
    op->form = oct_rows_form(numbers);
    op->scales = numbers->scales;
    if (!sums) return OCTET_OK;
    op->sums = oct_calloc(columns_of(&op->product), sizeof *op->sums);
    op->rounded_sums = oct_calloc(columns_of(&op->product), sizeof *op->rounded_sums);
    return op->sums != NULL && op->rounded_sums != NULL ? OCTET_OK : oct_fail_memory();
}

uint64_t oct_rows_bytes(const oct_quant_rows *rows) {
    uint64_t bytes = rows->sample != NULL ? OCT_SEARCH_ROWS * rows->channels * sizeof(float) : 0;
    for (size_t i = 0; i < rows->op_count; i++) {
        const oct_rows_op *op = &rows->ops[i];
        const size_t depth = (size_t)(op->product.taps * op->product.depth);
        if (op->owns_grams) bytes += (uint64_t)op->product.groups * oct_gram_bytes(depth);
        if (op->sums != NULL) bytes += 2 * columns_of(&op->product) * sizeof(double);
    }
    return bytes;
}

/* ---- seeing */

/* Height and width of a value, 1 x rows of what is no map. */
typedef struct map {
    int64_t height, width;
    size_t channels;
} map;

static map map_of(const oct_shape *shape) {
    map m = {.height = 1, .width = 1, .channels = (size_t)shape->dims[shape->rank - 1]};
    if (shape->rank == 4) m.height = shape->dims[1];
    if (shape->rank >= 3) m.width = shape->dims[shape->rank - 2];
    return m;
}

/* Rows that an op makes an output of. */
static map outputs_of(const oct_rows_op *op, const map *in) {
    if (op->node->op == OCT_OP_LINEAR) return *in;
    const oct_attributes *a = &op->node->attributes;
    return (map){.height = (in->height + a->pad_top + a->pad_bottom - op->kernel.dims[1]) / a->stride_h + 1,
                 .width = (in->width + a->pad_left + a->pad_right - op->kernel.dims[2]) / a->stride_w + 1};
}

/* Output number `position`'s row: of each group its taps, of each its channels; zeros outside the map. */
static void gather(const oct_rows_op *op, const map *in, const map *out, const float *values, int64_t position,
                   float *row) {
    const oct_product *p = &op->product;
    const size_t depth = (size_t)p->depth;
    if (op->node->op == OCT_OP_LINEAR) {
        memcpy(row, values + (size_t)position * depth, depth * sizeof *row);
        return;
    }
    const oct_attributes *a = &op->node->attributes;
    const int64_t top = position / out->width * a->stride_h - a->pad_top;
    const int64_t left = position % out->width * a->stride_w - a->pad_left;
    for (int64_t g = 0; g < p->groups; g++) {
        for (int64_t t = 0; t < p->taps; t++, row += depth) {
            const int64_t y = top + t / op->kernel.dims[2], x = left + t % op->kernel.dims[2];
            const float *from = values + (size_t)(y * in->width + x) * in->channels + (size_t)g * depth;
            if (y >= 0 && y < in->height && x >= 0 && x < in->width)
                memcpy(row, from, depth * sizeof *row);
            else
                memset(row, 0, depth * sizeof *row);
        }
    }
}

static void add_sums(double *sums, const float *rows, size_t count, size_t columns) {
    for (size_t r = 0; r < count; r++)
        for (size_t c = 0; c < columns; c++) sums[c] += (double)rows[r * columns + c];
}

/* What one op takes of one picture. `spare` is as large as the map. */
static octet_status see_op(oct_rows_op *op, uint64_t picture, const float *values, const map *in, float *spare) {
    const map out = outputs_of(op, in);
    const int64_t all = out.height * out.width;
    const size_t count = all < OCT_SEEN_POSITIONS ? (size_t)all : OCT_SEEN_POSITIONS;
    const size_t columns = columns_of(&op->product);
    if (out.height < 1 || out.width < 1) return OCTET_OK;
    float *rows = oct_alloc(count * columns * sizeof *rows);
    if (rows == NULL) return oct_fail_memory();
    /* another place between the evenly spread ones in each picture */
    const int64_t shift = (int64_t)(picture * 7 % (uint64_t)(all / (int64_t)count));
    for (size_t i = 0; i < count; i++)
        gather(op, in, &out, values, (int64_t)i * all / (int64_t)count + shift, rows + i * columns);
    const size_t depth = (size_t)(op->product.taps * op->product.depth);
    for (int64_t g = 0; op->owns_grams && g < op->product.groups; g++)
        oct_gram_add(&op->grams[g], rows + (size_t)g * depth, count, columns);
    if (op->sums != NULL) {
        add_sums(op->sums, rows, count, columns);
        if (op->is_rounded) {
            const oct_rounding rounding = {.form = &op->form, .scales = op->scales};
            oct_stored_round(&rounding, in->height * in->width, (int64_t)in->channels, values, spare, NULL, NULL);
            for (size_t i = 0; i < count; i++)
                gather(op, in, &out, spare, (int64_t)i * all / (int64_t)count + shift, rows + i * columns);
        }
        add_sums(op->rounded_sums, rows, count, columns);
    }
    op->count += count;
    oct_free(rows);
    return OCTET_OK;
}

static void take_sample(oct_quant_rows *rows, const float *values, int64_t all) {
    const size_t each = OCT_SEARCH_ROWS / OCT_SEARCH_PICTURES;
    const size_t count = all < (int64_t)each ? (size_t)all : each;
    for (size_t i = 0; i < count && rows->sampled < OCT_SEARCH_ROWS; i++) {
        const float *from = values + (i * (size_t)all / count) * rows->channels;
        memcpy(rows->sample + rows->sampled++ * rows->channels, from, rows->channels * sizeof *from);
    }
}

octet_status oct_rows_see(oct_quant_rows *rows, const float *values, const float *factors, const oct_shape *shape) {
    const map in = map_of(shape);
    const size_t all = (size_t)(in.height * in.width), size = all * in.channels;
    if (in.channels != rows->channels)
        return oct_fail(OCTET_MISMATCH, "watched value: expected %zu channels, found %zu", rows->channels, in.channels);
    float *own = oct_alloc(2 * size * sizeof *own);
    if (own == NULL) return oct_fail_memory();
    for (size_t r = 0; r < all; r++)
        for (size_t c = 0; c < in.channels; c++)
            own[r * in.channels + c] = values[r * in.channels + c] * (factors != NULL ? factors[c] : 1.0f);
    octet_status status = OCTET_OK;
    if (rows->sample != NULL) take_sample(rows, own, (int64_t)all);
    for (size_t i = 0; i < rows->op_count && status == OCTET_OK; i++)
        status = see_op(&rows->ops[i], rows->pictures, own, &in, own + size);
    rows->pictures++;
    oct_free(own);
    return status;
}
