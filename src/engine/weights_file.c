/* SPDX-License-Identifier: Apache-2.0 */
/* The "weights" section; its layout stands in plan_file.h. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "engine/internal.h"
#include "engine/plan_file.h"

#define ALIGNMENT 64u
#define TABLE_LIMIT ((uint64_t)64 << 20)
#define TEXT_LIMIT 4096
#define CONSTANT_LEAST 21
#define ELEMENTS_LIMIT ((size_t)1 << 40)

/* Numbers held wide of fp16 and bf16 are written as their codes, half the bytes. */
static bool is_halved(oct_format format) {
    return format == OCT_FORMAT_FP16 || format == OCT_FORMAT_BF16;
}

/* And those of mxfp8 and nvfp4 by rows: of an output of a weight. */
static bool is_blocked(oct_format format) {
    return format == OCT_FORMAT_MXFP8 || format == OCT_FORMAT_NVFP4;
}

static oct_form file_form(const oct_constant *constant) {
    oct_form form = constant->form;
    if (is_halved(form.format) || is_blocked(form.format)) form.held_wide = false;
    return form;
}

static size_t columns_of(const oct_constant *constant) {
    return constant->shape.rank > 0 ? (size_t)(oct_shape_count(&constant->shape) / constant->shape.dims[0]) : 1;
}

static uint64_t constant_bytes(const oct_constant *constant) {
    const oct_form form = file_form(constant);
    const uint64_t count = (uint64_t)oct_shape_count(&constant->shape), columns = columns_of(constant);
    if (is_blocked(form.format)) return count / columns * oct_blocks_row_bytes(form.format, (size_t)columns);
    return count * oct_form_bits(&form) / 8;
}

static uint64_t padding(uint64_t at) {
    return (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
}

/* ---- writing */

static void put_table(const oct_weights *weights, oct_text *out) {
    oct_put_u32(out, (uint32_t)weights->count);
    for (size_t i = 0; i < weights->count; i++) {
        const oct_constant *constant = &weights->items[i];
        oct_put_text(out, constant->name);
        oct_put_u8(out, (uint8_t)constant->shape.rank);
        for (int d = 0; d < constant->shape.rank; d++) oct_put_i64(out, constant->shape.dims[d]);
        oct_put_text(out, oct_format_name(constant->form.format));
        const oct_form form = file_form(constant);
        if (form.format != OCT_FORMAT_FP32) oct_form_put(out, &form);
        oct_put_u64(out, constant_bytes(constant));
    }
}

uint64_t oct_weights_file_size(const oct_weights *weights) {
    oct_text table = {0};
    put_table(weights, &table);
    uint64_t size = 8 + table.length;
    oct_text_free(&table);
    size += padding(size);
    for (size_t i = 0; i < weights->count; i++) {
        size += constant_bytes(&weights->items[i]);
        size += padding(size);
    }
    return size;
}

static octet_status write_padded(oct_write_bytes write, void *user, const void *data, uint64_t size, uint64_t *at) {
    static const uint8_t zeros[ALIGNMENT];
    OCT_TRY(write(user, data, (size_t)size));
    *at += size;
    uint64_t rest = padding(*at);
    *at += rest;
    return rest > 0 ? write(user, zeros, (size_t)rest) : OCTET_OK;
}

/* Values that stay in the cache from being read over being hashed to being checked. */
#define PIECE ((size_t)1 << 14)

static octet_status write_halved(oct_write_bytes write, void *user, const oct_constant *constant, uint64_t *at) {
    static const uint8_t zeros[ALIGNMENT];
    const size_t count = (size_t)oct_shape_count(&constant->shape);
    const bool fp16 = constant->form.format == OCT_FORMAT_FP16;
    uint8_t codes[1024];
    for (size_t i = 0; i < count;) {
        size_t used = 0;
        for (; used < sizeof codes && i < count; i++) {
            const uint16_t code = fp16 ? oct_fp16_encode(constant->data[i]) : oct_bf16_encode(constant->data[i]);
            codes[used++] = (uint8_t)(code & 0xffu);
            codes[used++] = (uint8_t)(code >> 8);
        }
        OCT_TRY(write(user, codes, used));
    }
    *at += 2 * (uint64_t)count;
    const uint64_t rest = padding(*at);
    *at += rest;
    return rest > 0 ? write(user, zeros, (size_t)rest) : OCTET_OK;
}

static octet_status write_blocks(oct_write_bytes write, void *user, const oct_constant *constant, uint64_t *at) {
    const size_t columns = columns_of(constant), rows = (size_t)oct_shape_count(&constant->shape) / columns;
    const size_t row_bytes = oct_blocks_row_bytes(constant->form.format, columns);
    uint8_t *bytes = oct_alloc(rows * row_bytes);
    octet_status status = bytes == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t r = 0; r < rows && status == OCTET_OK; r++)
        if (!oct_blocks_row_write(&constant->form, constant->data + r * columns, columns, bytes + r * row_bytes))
            status = oct_fail(OCTET_INTERNAL, "constant %s: row %zu is not of %s", constant->name, r,
                              oct_format_name(constant->form.format));
    if (status == OCTET_OK) status = write_padded(write, user, bytes, (uint64_t)(rows * row_bytes), at);
    oct_free(bytes);
    return status;
}

octet_status oct_weights_write(const oct_weights *weights, oct_write_bytes write, void *user) {
    oct_text table = {0}, head = {0};
    uint64_t at = 0;
    put_table(weights, &table);
    oct_put_u64(&head, table.length);
    oct_text_append(&head, table.data, table.length);
    octet_status status =
        table.failed || head.failed ? oct_fail_memory() : write_padded(write, user, head.data, head.length, &at);
    for (size_t i = 0; i < weights->count && status == OCTET_OK; i++) {
        const oct_constant *constant = &weights->items[i];
        const void *data = constant->codes != NULL ? (const void *)constant->codes : constant->data;
        if (data == NULL)
            status = oct_fail(OCTET_INTERNAL, "constant %s: its data was released", constant->name);
        else if (is_halved(constant->form.format))
            status = write_halved(write, user, constant, &at);
        else if (is_blocked(constant->form.format))
            status = write_blocks(write, user, constant, &at);
        else
            status = write_padded(write, user, data, constant_bytes(constant), &at);
    }
    oct_text_free(&table);
    oct_text_free(&head);
    return status;
}

/* ---- reading */

typedef struct source {
    oct_read_bytes read;
    void *user;
    const char *name;
    uint64_t at, size;
} source;

static octet_status take(source *in, void *data, uint64_t size) {
    if (size > in->size - in->at) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: byte %llu: expected %llu more bytes, found %llu", in->name,
                        (unsigned long long)in->at, (unsigned long long)size, (unsigned long long)(in->size - in->at));
    }
    OCT_TRY(in->read(in->user, data, (size_t)size));
    in->at += size;
    return OCTET_OK;
}

static octet_status skip_padding(source *in) {
    uint8_t zeros[ALIGNMENT];
    uint64_t rest = padding(in->at);
    OCT_TRY(take(in, zeros, rest));
    for (uint64_t i = 0; i < rest; i++) {
        if (zeros[i] != 0)
            return oct_fail(OCTET_BAD_FORMAT, "%s: padding before byte %llu is not zero", in->name,
                            (unsigned long long)in->at);
    }
    return OCTET_OK;
}

/* OCT_FORMAT_COUNT: none that a constant may have. */
static oct_format format_named(const char *name, size_t length) {
    for (int i = 0; i < OCT_FORMAT_COUNT; i++) {
        const char *known = oct_format_name((oct_format)i);
        if (oct_format_is_weight((oct_format)i) && strlen(known) == length && memcmp(known, name, length) == 0)
            return (oct_format)i;
    }
    return OCT_FORMAT_COUNT;
}

/* A constant's form: codes of the formats that have them, with a scale a tensor or channel, else numbers. */
static void get_form(oct_bytes *in, oct_format format, oct_form *form) {
    *form = format == OCT_FORMAT_FP32 ? oct_form_of(format) : oct_form_get(in, format);
    if (form->granularity == OCT_PER_ROW || form->factors != OCT_NONE) in->failed = true;
    if (is_halved(format) && (form->held_wide || form->granularity != OCT_PER_TENSOR)) in->failed = true;
    if (is_blocked(format) && (form->held_wide || form->granularity != OCT_PER_BLOCK || !(form->scale > 0)))
        in->failed = true;
    if (format == OCT_FORMAT_FP32 || form->held_wide || is_halved(format) || is_blocked(format)) return;
    if (!oct_format_is_coded(format) || form->granularity > OCT_PER_CHANNEL) in->failed = true;
}

static octet_status get_constant(oct_bytes *in, const char *section, oct_weights *weights, oct_constant *constant) {
    size_t length, format_length;
    const char *name = oct_get_text(in, TEXT_LIMIT, &length);
    unsigned rank = oct_get_u8(in);
    if (rank > OCT_RANK) in->failed = true;
    constant->shape.rank = in->failed ? 0 : (int)rank;
    size_t count = 1;
    for (int d = 0; d < constant->shape.rank; d++) {
        constant->shape.dims[d] = oct_get_i64(in);
        if (constant->shape.dims[d] < 1 || !oct_mul_size(count, (size_t)constant->shape.dims[d], &count) ||
            count > ELEMENTS_LIMIT)
            in->failed = true;
    }
    const char *format = oct_get_text(in, TEXT_LIMIT, &format_length);
    const oct_format found = in->failed ? OCT_FORMAT_FP32 : format_named(format, format_length);
    if (found == OCT_FORMAT_COUNT) {
        return oct_fail(OCTET_UNSUPPORTED, "%s: constant %.*s: expected a format of weights, found %.*s", section,
                        (int)length, name, (int)format_length, format);
    }
    get_form(in, found, &constant->form);
    uint64_t bytes = oct_get_u64(in);
    size_t expected = 0;
    if (!in->failed && is_blocked(found))
        expected = (size_t)constant_bytes(constant);
    else if (in->failed || !oct_mul_size(count, oct_form_bits(&constant->form) / 8, &expected)) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: byte %zu of its table: malformed constant", section, in->at);
    }
    if (constant->shape.rank > 0)
        constant->form.channel_stride = (int32_t)constant->shape.dims[constant->shape.rank - 1];
    constant->form.held_wide = constant->form.held_wide || is_halved(found) || is_blocked(found);
    if (bytes != expected) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: constant %.*s: expected %zu bytes for its shape, found %llu", section,
                        (int)length, name, expected, (unsigned long long)bytes);
    }
    constant->name = oct_arena_strndup(&weights->arena, name, length);
    return constant->name == NULL ? oct_fail_memory() : OCTET_OK;
}

static octet_status get_table(source *in, const uint8_t *table, size_t size, oct_weights *weights) {
    oct_bytes bytes = {.data = table, .size = size};
    size_t count = oct_get_count(&bytes, CONSTANT_LEAST);
    weights->items = oct_calloc(count, sizeof *weights->items);
    if (weights->items == NULL) return oct_fail_memory();
    weights->count = count;
    for (size_t i = 0; i < count; i++) OCT_TRY(get_constant(&bytes, in->name, weights, &weights->items[i]));
    if (bytes.failed || bytes.at != size)
        return oct_fail(OCTET_BAD_FORMAT, "%s: its table has the wrong length", in->name);
    return OCTET_OK;
}

static octet_status read_table(source *in, oct_weights *weights) {
    uint8_t raw[8];
    OCT_TRY(take(in, raw, sizeof raw));
    oct_bytes bytes = {.data = raw, .size = sizeof raw};
    uint64_t size = oct_get_u64(&bytes);
    if (size > TABLE_LIMIT || size > in->size - in->at) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: a table of %llu bytes in a section of %llu", in->name,
                        (unsigned long long)size, (unsigned long long)in->size);
    }
    uint8_t *table = oct_alloc((size_t)size);
    if (table == NULL) return oct_fail_memory();
    octet_status status = take(in, table, size);
    if (status == OCTET_OK) status = skip_padding(in);
    if (status == OCTET_OK) status = get_table(in, table, (size_t)size, weights);
    oct_free(table);
    return status;
}

/* Without a way out, so that the compiler may take many at once. */
static bool all_finite(const float *values, size_t count) {
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return bad == 0;
}

/* Codes of two bytes, read to where the second half of their numbers goes and decoded from the first on: a number's
 * four bytes end before the codes still to come begin. */
static octet_status take_halved(source *in, oct_format format, float *data, size_t count) {
    uint8_t *codes = (uint8_t *)data + 2 * count;
    OCT_TRY(take(in, codes, 2 * (uint64_t)count));
    for (size_t i = 0; i < count; i++) {
        const uint16_t code = (uint16_t)(codes[2 * i] | codes[2 * i + 1] << 8);
        data[i] = format == OCT_FORMAT_FP16 ? oct_fp16_decode(code) : oct_bf16_decode(code);
    }
    return OCTET_OK;
}

static octet_status read_values(source *in, oct_constant *constant, size_t count) {
    const oct_format format = constant->form.format;
    for (size_t at = 0; at < count;) {
        size_t piece = count - at < PIECE ? count - at : PIECE;
        OCT_TRY(is_halved(format) ? take_halved(in, format, constant->data + at, piece)
                                  : take(in, constant->data + at, piece * sizeof(float)));
        if (all_finite(constant->data + at, piece)) {
            at += piece;
            continue;
        }
        while (isfinite(constant->data[at])) at++;
        return oct_fail(OCTET_BAD_FORMAT, "%s: constant %s: value %zu is not finite", in->name, constant->name, at);
    }
    return OCTET_OK;
}

/* There is one way to write numbers in blocks: another is refused. */
static octet_status read_blocks(source *in, oct_constant *constant) {
    const size_t columns = columns_of(constant), rows = (size_t)oct_shape_count(&constant->shape) / columns;
    const size_t row_bytes = oct_blocks_row_bytes(constant->form.format, columns);
    uint8_t *bytes = oct_alloc(2 * row_bytes);
    octet_status status = bytes == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t r = 0; r < rows && status == OCTET_OK; r++) {
        float *row = constant->data + r * columns;
        status = take(in, bytes, row_bytes);
        if (status != OCTET_OK) break;
        oct_blocks_row_read(&constant->form, bytes, columns, row);
        if (!all_finite(row, columns) || !oct_blocks_row_write(&constant->form, row, columns, bytes + row_bytes) ||
            memcmp(bytes, bytes + row_bytes, row_bytes) != 0)
            status = oct_fail(OCTET_BAD_FORMAT, "%s: constant %s: row %zu is not as %s is written", in->name,
                              constant->name, r, oct_format_name(constant->form.format));
    }
    oct_free(bytes);
    return status;
}

/* No NaN in e4m3, no -128 in int8. */
static octet_status check_codes(const source *in, const oct_constant *constant, size_t count) {
    const bool int8 = constant->form.format == OCT_FORMAT_INT8;
    for (size_t i = 0; i < count; i++) {
        const uint8_t code = constant->codes[i];
        if (int8 ? code != 0x80u : (code & OCT_E4M3_NAN) != OCT_E4M3_NAN) continue;
        return oct_fail(OCTET_BAD_FORMAT, "%s: constant %s: value %zu is no number of %s", in->name, constant->name, i,
                        oct_format_name(constant->form.format));
    }
    return OCTET_OK;
}

/* The scales of a constant of codes: positive and finite, one or one a channel. */
static octet_status check_scales(const source *in, const oct_weights *weights, const oct_constant *constant) {
    const oct_form *form = &constant->form;
    if (form->format == OCT_FORMAT_FP32) return OCTET_OK;
    if (form->held_wide && form->scales == OCT_NONE) return OCTET_OK; /* what was used up in rounding */
    const float *scales = &form->scale;
    int64_t count = 1;
    bool good = constant->shape.rank > 0 && (form->granularity == OCT_PER_CHANNEL || form->scales == OCT_NONE);
    if (good && form->granularity == OCT_PER_CHANNEL) {
        good = form->scales >= 0 && (size_t)form->scales < weights->count;
        const oct_constant *vector = good ? &weights->items[form->scales] : NULL;
        good =
            good && vector->data != NULL && vector->shape.rank == 1 && vector->shape.dims[0] == constant->shape.dims[0];
        if (good) {
            scales = vector->data;
            count = vector->shape.dims[0];
        }
    }
    for (int64_t i = 0; good && i < count; i++) good = scales[i] > 0 && isfinite(scales[i]);
    if (good) return OCTET_OK;
    return oct_fail(OCTET_BAD_FORMAT, "%s: constant %s: its scales are not possible", in->name, constant->name);
}

static octet_status read_data(source *in, oct_weights *weights) {
    for (size_t i = 0; i < weights->count; i++) {
        oct_constant *constant = &weights->items[i];
        uint64_t bytes = constant_bytes(constant);
        if (bytes > in->size - in->at)
            return oct_fail(OCTET_BAD_FORMAT, "%s: constant %s: beyond the end", in->name, constant->name);
        const size_t count = (size_t)oct_shape_count(&constant->shape);
        const bool numbers = oct_form_is_float(&constant->form);
        void *data = oct_alloc(numbers ? count * sizeof(float) : count);
        if (data == NULL) return oct_fail_memory();
        if (numbers) {
            constant->data = data;
            OCT_TRY(is_blocked(constant->form.format) ? read_blocks(in, constant) : read_values(in, constant, count));
        } else {
            constant->codes = data;
            OCT_TRY(take(in, data, bytes));
            OCT_TRY(check_codes(in, constant, (size_t)bytes));
        }
        OCT_TRY(skip_padding(in));
    }
    for (size_t i = 0; i < weights->count; i++) OCT_TRY(check_scales(in, weights, &weights->items[i]));
    if (in->at != in->size)
        return oct_fail(OCTET_BAD_FORMAT, "%s: %llu bytes after the last constant", in->name,
                        (unsigned long long)(in->size - in->at));
    return OCTET_OK;
}

octet_status oct_weights_read(oct_weights **weights, const char *name, uint64_t size, oct_read_bytes read, void *user) {
    *weights = NULL;
    oct_weights *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->references = 1;
    source in = {.read = read, .user = user, .name = name, .size = size};
    octet_status status = read_table(&in, made);
    if (status == OCTET_OK) status = read_data(&in, made);
    if (status != OCTET_OK) {
        oct_weights_release(made);
        return status;
    }
    *weights = made;
    return OCTET_OK;
}
