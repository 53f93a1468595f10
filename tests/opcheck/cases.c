/* SPDX-License-Identifier: Apache-2.0 */
/* Cases drawn from a seed: small, odd, with every attribute an op reads. */
#include <string.h>

#include "base/random.h"
#include "opcheck/opcheck.h"

static const int64_t channel_list[] = {1, 2, 3, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 48, 64, 65, 96, 100, 144};

static int64_t between(uint64_t *random, int64_t low, int64_t high) {
    return low + (int64_t)oct_random_below(random, (uint64_t)(high - low + 1));
}

static bool chance(uint64_t *random, int64_t in) {
    return between(random, 1, in) == 1;
}

static int64_t channels(uint64_t *random) {
    return channel_list[oct_random_below(random, sizeof channel_list / sizeof *channel_list)];
}

const char *fill_name(fill f) {
    static const char *const names[FILL_COUNT] = {"random", "zero", "subnormal", "large", "ties", "nan", "infinity"};
    return names[f];
}

static oct_shape shape(int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    return oct_shape_of(rank, (const int64_t[]){a, b, c, d});
}

static void add_input(opcase *c, oct_shape s, bool constant) {
    c->constant[c->count] = constant;
    c->shapes[c->count++] = s;
}

/* Bias, residual and activation of convolution and linear; the output's shape from the op's rule. */
static void draw_epilogue(uint64_t *random, opcase *c, int64_t outputs) {
    c->attributes.activation = (oct_activation)between(random, 0, OCT_ACTIVATION_COUNT - 1);
    if (chance(random, 2)) {
        c->attributes.has_bias = true;
        add_input(c, shape(1, outputs, 0, 0, 0), true);
    }
    oct_shape out;
    if (!chance(random, 3) || !case_shape(c, &out)) return;
    c->attributes.has_residual = true;
    if (chance(random, 2)) c->in_place = c->count;
    add_input(c, out, false);
}

static void draw_conv2d(uint64_t *random, opcase *c) {
    oct_attributes *a = &c->attributes;
    int64_t in = channels(random), out = channels(random), h = between(random, 1, 17), w = between(random, 1, 40);
    int64_t kernel_h = 3, kernel_w = 3;
    a->groups = 1;
    a->stride_h = a->stride_w = 1;
    switch (between(random, 0, 6)) {
    case 0:
        kernel_h = kernel_w = 1;
        break;
    case 1:
        out = in;
        a->groups = (int)in;
        a->stride_h = a->stride_w = (int)between(random, 1, 3);
        break;
    case 2:
        out = in;
        a->groups = (int)in;
        kernel_h = between(random, 1, 5);
        kernel_w = between(random, 1, 5);
        break;
    case 3:
        in = 3;
        a->stride_h = a->stride_w = 2;
        break;
    case 4: /* patches */
        in = between(random, 1, 4);
        kernel_h = kernel_w = a->stride_h = a->stride_w = (int)between(random, 2, 8);
        break;
    case 5:
        a->groups = (int)between(random, 2, 4);
        in = a->groups * between(random, 1, 9);
        out = a->groups * between(random, 1, 9);
        break;
    default:
        kernel_h = between(random, 1, 4);
        kernel_w = between(random, 1, 4);
        a->stride_h = (int)between(random, 1, 3);
        a->stride_w = (int)between(random, 1, 3);
    }
    if (!chance(random, 3)) {
        a->pad_top = (int)between(random, 0, kernel_h / 2 + 1);
        a->pad_bottom = (int)between(random, 0, kernel_h / 2 + 1);
        a->pad_left = (int)between(random, 0, kernel_w / 2 + 1);
        a->pad_right = (int)between(random, 0, kernel_w / 2 + 1);
    }
    h = h < kernel_h ? kernel_h : h;
    w = w < kernel_w ? kernel_w : w;
    add_input(c, shape(4, between(random, 1, 2), h, w, in), false);
    add_input(c, shape(4, out, kernel_h, kernel_w, in / a->groups), true);
    draw_epilogue(random, c, out);
}

static void draw_linear(uint64_t *random, opcase *c) {
    const int64_t in = channels(random) * between(random, 1, 3), out = channels(random);
    if (chance(random, 3))
        add_input(c, shape(2, between(random, 1, 40), in, 0, 0), false);
    else
        add_input(c, shape(3, between(random, 1, 3), between(random, 1, 60), in, 0), false);
    add_input(c, shape(2, out, in, 0, 0), true);
    draw_epilogue(random, c, out);
}

static void draw_norm(uint64_t *random, opcase *c, int vectors) {
    const int64_t width = channels(random) * between(random, 1, 4);
    c->attributes.epsilon = chance(random, 2) ? 1e-6 : 1e-5;
    add_input(c, shape(3, between(random, 1, 2), between(random, 1, 40), width, 0), false);
    for (int i = 0; i < vectors; i++) add_input(c, shape(1, width, 0, 0, 0), true);
}

static void draw_elementwise(uint64_t *random, opcase *c) {
    const oct_shape x = shape(3, between(random, 1, 3), between(random, 1, 50), channels(random), 0);
    add_input(c, x, false);
    if (c->op == OCT_OP_ACTIVATION) {
        c->attributes.activation = (oct_activation)between(random, 1, OCT_ACTIVATION_COUNT - 1);
        if (chance(random, 2)) c->in_place = 0;
        return;
    }
    c->attributes.activation = chance(random, 2) ? OCT_ACTIVATION_NONE : OCT_ACTIVATION_RELU;
    oct_shape y = x;
    const bool constant = chance(random, 3);
    if (constant) y.dims[0] = 1;
    add_input(c, y, constant);
    if (chance(random, 2)) c->in_place = constant || chance(random, 2) ? 0 : 1;
}

static void draw_attention(uint64_t *random, opcase *c) {
    static const int64_t depths[] = {1, 3, 8, 16, 24, 32, 33, 64, 80};
    const int64_t depth = depths[oct_random_below(random, 9)];
    c->attributes.heads = (int)between(random, 1, 3);
    c->attributes.scale = 1.0 / (double)between(random, 1, 8);
    const int64_t tokens = chance(random, 4) ? between(random, 240, 600) : between(random, 1, 80);
    for (int i = 0; i < 3; i++)
        add_input(c, shape(3, between(random, 1, 2), tokens, depth * c->attributes.heads, 0), false);
    c->shapes[1] = c->shapes[2] = c->shapes[0];
}

static void draw_moves(uint64_t *random, opcase *c) {
    const int64_t batch = between(random, 1, 3), width = channels(random);
    if (c->op == OCT_OP_RESHAPE) {
        const int64_t a = between(random, 1, 9), b = between(random, 1, 9);
        add_input(c, shape(4, batch, a, b, width), false);
        c->attributes.shape = chance(random, 2) ? shape(3, 1, a * b, width, 0) : shape(2, 1, a * b * width, 0, 0);
    } else if (c->op == OCT_OP_GLOBAL_POOL) {
        add_input(c, shape(4, batch, between(random, 1, 12), between(random, 1, 12), width), false);
    } else if (c->op == OCT_OP_SLICE) {
        const int64_t tokens = between(random, 1, 50);
        c->attributes.start = between(random, 0, tokens - 1);
        c->attributes.length = between(random, 1, tokens - c->attributes.start);
        add_input(c, shape(3, batch, tokens, width, 0), false);
    } else {
        const int64_t pieces = between(random, 2, OCT_NODE_INPUTS);
        add_input(c, shape(3, batch, between(random, 1, 20), width, 0), false);
        for (int64_t i = 1; i < pieces; i++) {
            const bool constant = chance(random, 2);
            add_input(c, shape(3, constant ? 1 : batch, between(random, 1, 20), width, 0), constant);
        }
    }
}

void case_fp32(opcase *c) {
    c->out_count = 1;
    for (int i = 0; i < OCT_NODE_INPUTS; i++) c->forms[i] = oct_form_of(OCT_FORMAT_FP32);
    c->out_forms[0] = c->out_forms[1] = oct_form_of(OCT_FORMAT_FP32);
}

opcase case_wide(const opcase *c) {
    opcase wide = *c;
    wide.out_count = 1;
    wide.out_forms[0] = oct_form_of(OCT_FORMAT_FP32);
    wide.out_factors[0] = false;
    wide.in_place = -1;
    return wide;
}

static oct_form draw_codes(uint64_t *random, bool rows) {
    oct_form form = oct_form_of(OCT_FORMAT_INT8);
    form.scale = 0.001f * (float)between(random, 1, 40);
    if (rows && chance(random, 2)) form.granularity = OCT_PER_ROW;
    return form;
}

/* Any form, float32 in memory. */
static oct_form draw_held(uint64_t *random) {
    static const oct_format formats[] = {OCT_FORMAT_FP16, OCT_FORMAT_BF16,  OCT_FORMAT_E4M3,  OCT_FORMAT_E5M2,
                                         OCT_FORMAT_INT8, OCT_FORMAT_UINT8, OCT_FORMAT_MXFP8, OCT_FORMAT_NVFP4};
    oct_form form = oct_form_of(formats[oct_random_below(random, 8)]);
    form.held_wide = true;
    if (form.format == OCT_FORMAT_FP16 || form.format == OCT_FORMAT_BF16) return form;
    form.scale = 0.001f * (float)between(random, 1, 40);
    form.granularity = chance(random, 3) ? OCT_PER_CHANNEL : OCT_PER_TENSOR;
    if (form.format == OCT_FORMAT_UINT8) form.zero_point = (uint8_t)between(random, 0, 255);
    if (form.format == OCT_FORMAT_MXFP8) form.scale_rule = chance(random, 2) ? OCT_E8M0_CEIL : OCT_E8M0_FLOOR;
    const bool own = form.format == OCT_FORMAT_MXFP8 || form.format == OCT_FORMAT_NVFP4;
    if (own || (form.format != OCT_FORMAT_UINT8 && chance(random, 2)))
        form.granularity = !own && chance(random, 2) ? OCT_PER_ROW : OCT_PER_BLOCK;
    if (form.granularity == OCT_PER_BLOCK) form.block = (int32_t)between(random, 1, 40);
    if (own) form.block = form.format == OCT_FORMAT_MXFP8 ? OCT_MXFP8_BLOCK : OCT_NVFP4_BLOCK;
    return form;
}

/* A form that is stored: int8 codes, or any. */
static void draw_stored(uint64_t *random, opcase *c, int f) {
    c->out_forms[f] = chance(random, 3) ? draw_codes(random, true) : draw_held(random);
    c->out_factors[f] = chance(random, 4);
}

/* Narrow forms: of products' inputs and weights, of outputs, alone or beside another. */
static void draw_forms(uint64_t *random, opcase *c) {
    const bool product = c->op == OCT_OP_CONV2D || c->op == OCT_OP_LINEAR;
    if (c->op == OCT_OP_QUANTIZE) {
        draw_stored(random, c, 0);
        return;
    }
    if (c->op == OCT_OP_ATTENTION && chance(random, 2)) {
        static const oct_format formats[] = {OCT_FORMAT_FP16, OCT_FORMAT_BF16, OCT_FORMAT_E4M3, OCT_FORMAT_INT8};
        c->attributes.probabilities = formats[oct_random_below(random, 4)];
    }
    if (product && chance(random, 2)) {
        c->forms[1].format = chance(random, 3) ? OCT_FORMAT_E4M3 : OCT_FORMAT_INT8;
        c->forms[1].granularity = chance(random, 3) ? OCT_PER_TENSOR : OCT_PER_CHANNEL;
        if (c->forms[1].format == OCT_FORMAT_INT8 && !chance(random, 3))
            c->forms[0] = draw_codes(random, c->op == OCT_OP_LINEAR);
    }
    if (product && c->forms[0].format == OCT_FORMAT_INT8 && chance(random, 2)) { /* codes in, codes out */
        c->out_forms[0] = draw_codes(random, false);
        c->out_forms[0].scale *= (float)between(random, 1, 8);
        c->in_place = -1;
        return;
    }
    if (!chance(random, 2) || oct_op_moves(c->op)) return;
    c->out_count = chance(random, 2) ? 2 : 1;
    if (c->out_count == 1 || chance(random, 2)) draw_stored(random, c, 0);
    if (c->out_count == 2) draw_stored(random, c, 1);
    if (!oct_form_is_float(&c->out_forms[0])) c->in_place = -1;
}

void case_draw(oct_op op, uint64_t *random, opcase *c) {
    memset(c, 0, sizeof *c);
    c->op = op;
    c->in_place = -1;
    case_fp32(c);
    c->times = 1;
    switch (op) {
    case OCT_OP_CONV2D:
        draw_conv2d(random, c);
        break;
    case OCT_OP_LINEAR:
        draw_linear(random, c);
        break;
    case OCT_OP_BATCH_NORM:
        draw_norm(random, c, 4);
        break;
    case OCT_OP_LAYER_NORM:
        draw_norm(random, c, 2);
        break;
    case OCT_OP_ACTIVATION:
    case OCT_OP_ADD:
        draw_elementwise(random, c);
        break;
    case OCT_OP_ATTENTION:
        draw_attention(random, c);
        break;
    case OCT_OP_QUANTIZE:
        add_input(c, shape(3, between(random, 1, 3), between(random, 1, 50), channels(random), 0), false);
        break;
    default:
        draw_moves(random, c);
    }
    draw_forms(random, c);
    c->fill = chance(random, 2) ? FILL_RANDOM : (fill)between(random, 0, FILL_COUNT - 1);
    c->seed = oct_random_next(random);
    if (!chance(random, 3)) return;
    /* padding lanes; in place asks for the same on both sides */
    for (int i = 0; i < c->count; i++)
        if (!c->constant[i]) c->padding[i] = (int)between(random, 0, 5);
    c->out_padding = c->in_place >= 0 ? c->padding[c->in_place] : (int)between(random, 0, 5);
}

bool case_shape(const opcase *c, oct_shape *out) {
    memset(out, 0, sizeof *out);
    return oct_op_rows[c->op].shape("case", &c->attributes, c->shapes, c->count, out) == OCTET_OK;
}

static void print_form(const oct_form *form, bool factors, oct_text *text) {
    if (form->format == OCT_FORMAT_FP32) return;
    oct_text_puts(text, ":");
    oct_form_print(form, text);
    if (form->granularity == OCT_PER_TENSOR) oct_text_printf(text, " %g", (double)form->scale);
    if (factors) oct_text_puts(text, " factors");
    if (!form->held_wide) oct_text_puts(text, " codes");
}

void case_print(const opcase *c, oct_text *text) {
    const oct_attributes *a = &c->attributes;
    oct_text_puts(text, oct_op_rows[c->op].name);
    for (int i = 0; i < c->count; i++) {
        oct_text_puts(text, " ");
        oct_shape_print(&c->shapes[i], text);
        if (c->constant[i]) oct_text_puts(text, "c");
        print_form(&c->forms[i], false, text);
        if (c->padding[i] > 0) oct_text_printf(text, "+%d", c->padding[i]);
    }
    oct_shape out;
    oct_text_puts(text, " -> ");
    if (case_shape(c, &out)) oct_shape_print(&out, text);
    for (int f = 0; f < c->out_count; f++) print_form(&c->out_forms[f], c->out_factors[f], text);
    if (c->out_padding > 0) oct_text_printf(text, "+%d", c->out_padding);
    if (c->op == OCT_OP_CONV2D)
        oct_text_printf(text, " stride %dx%d pad %d,%d,%d,%d groups %d", a->stride_h, a->stride_w, a->pad_top,
                        a->pad_left, a->pad_bottom, a->pad_right, a->groups);
    if (c->op == OCT_OP_ATTENTION)
        oct_text_printf(text, " heads %d scale %g probabilities %s", a->heads, a->scale,
                        oct_format_name(a->probabilities));
    if (c->op == OCT_OP_SLICE) oct_text_printf(text, " from %lld", (long long)a->start);
    if (a->activation != OCT_ACTIVATION_NONE) oct_text_printf(text, " %s", oct_activation_name(a->activation));
    if (a->has_bias) oct_text_puts(text, " bias");
    if (a->has_residual) oct_text_puts(text, " residual");
    if (c->in_place >= 0) oct_text_printf(text, " over input %d", c->in_place);
    oct_text_printf(text, " %s", fill_name(c->fill));
    if (c->name[0] != 0) oct_text_printf(text, " (%s x%d)", c->name, c->times);
}
