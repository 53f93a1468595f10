/* SPDX-License-Identifier: Apache-2.0 */
/* BMP, and the bare DIB without its file header: 1, 4, 8, 16, 24 and 32 bits, RLE4 and RLE8, the bit fields that Pillow
 * knows, OS/2 headers, either direction. */
#include <string.h>

#include "base/alloc.h"
#include "image/codec.h"

enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

/* How samples are kept: an index into the palette, a level, white or black, or three colours. */
typedef enum mode { MODE_PALETTE, MODE_GREY, MODE_BILEVEL, MODE_COLOUR } mode;

typedef struct bmp {
    const uint8_t *data;
    size_t size, at; /* the file; the reading position */
    uint32_t header_size, width, height, bits, compression, colours;
    uint32_t masks[4]; /* red, green, blue, alpha */
    int padding;       /* bytes of a palette entry */
    bool top_down;
    mode mode;
    uint32_t sample_bits; /* bits a pixel as stored; a grey or bilevel palette changes it, as in Pillow */
    uint8_t palette[256][3];
    size_t pixels_at;
} bmp;

static octet_status truncated(void) {
    return oct_fail(OCTET_BAD_FORMAT, "truncated BMP");
}

static octet_status bad_fields(const bmp *b) {
    return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP with bit fields %08x %08x %08x %08x of %u bits", b->masks[0],
                    b->masks[1], b->masks[2], b->masks[3], b->bits);
}

static octet_status read_masks(bmp *b, const uint8_t *header, size_t length) {
    int count = length >= 52 ? 4 : 3;
    const uint8_t *from = header + 36;
    if (length < 48) { /* the short header: three masks follow it */
        if (b->size - b->at < 12) return truncated();
        from = b->data + b->at;
        b->at += 12;
    }
    for (int i = 0; i < count; i++) b->masks[i] = oct_le32(from + i * 4);
    return OCTET_OK;
}

static octet_status read_header(bmp *b) {
    if (b->size - b->at < 4) return truncated();
    b->header_size = oct_le32(b->data + b->at);
    b->at += 4;
    bool known = false;
    static const uint8_t sizes[] = {12, 40, 52, 56, 64, 108, 124};
    for (size_t i = 0; i < sizeof sizes; i++) known = known || b->header_size == sizes[i];
    if (!known) return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP with a header of %u bytes", b->header_size);
    size_t length = b->header_size - 4;
    if (b->size - b->at < length) return truncated();
    const uint8_t *header = b->data + b->at;
    b->at += length;
    if (b->header_size == 12) {
        b->width = oct_le16(header);
        b->height = oct_le16(header + 2);
        b->bits = oct_le16(header + 6);
        b->padding = 3;
        return OCTET_OK;
    }
    b->top_down = header[7] == 0xff;
    b->width = oct_le32(header);
    b->height = oct_le32(header + 4);
    if (b->top_down) b->height = 0u - b->height;
    b->bits = oct_le16(header + 10);
    b->compression = oct_le32(header + 12);
    b->colours = oct_le32(header + 28);
    b->padding = 4;
    return b->compression == BITFIELDS ? read_masks(b, header, length) : OCTET_OK;
}

/* The layouts of 32, 24 and 16 bits that Pillow takes. */
static octet_status check_masks(const bmp *b) {
    static const uint32_t wide[][4] = {{0xff0000, 0xff00, 0xff, 0},          {0xff000000, 0xff0000, 0xff00, 0},
                                       {0xff000000, 0xff00, 0xff, 0},        {0xff000000, 0xff0000, 0xff00, 0xff},
                                       {0xff, 0xff00, 0xff0000, 0xff000000}, {0xff0000, 0xff00, 0xff, 0xff000000},
                                       {0xff000000, 0xff00, 0xff, 0xff0000}, {0, 0, 0, 0}};
    if (b->bits == 32) {
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
            if (memcmp(wide[i], b->masks, sizeof b->masks) == 0) return OCTET_OK;
        }
        return bad_fields(b);
    }
    static const uint32_t full[3] = {0xff0000, 0xff00, 0xff};
    static const uint32_t six[3] = {0xf800, 0x7e0, 0x1f}, five[3] = {0x7c00, 0x3e0, 0x1f};
    if (b->bits == 24 && memcmp(full, b->masks, sizeof full) == 0) return OCTET_OK;
    if (b->bits == 16 && memcmp(six, b->masks, sizeof six) == 0) return OCTET_OK;
    if (b->bits == 16 && memcmp(five, b->masks, sizeof five) == 0) return OCTET_OK;
    return bad_fields(b);
}

/* A palette of greys in order is no palette: Pillow then reads levels, or one bit a pixel. */
static octet_status read_palette(bmp *b) {
    if (b->colours == 0 || b->colours > 65536)
        return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP with %u colours", b->colours);
    size_t padding = (size_t)b->padding, wanted = padding * b->colours, there = b->size - b->at;
    const uint8_t *palette = b->data + b->at;
    if (there > wanted) there = wanted;
    b->at += there;
    bool grey = there >= padding * (b->colours - 1) + 3;
    for (uint32_t i = 0; grey && i < b->colours; i++) {
        const uint8_t *entry = palette + i * padding;
        uint8_t level = b->colours == 2 && i == 1 ? 255 : (uint8_t)i;
        grey = entry[0] == level && entry[1] == level && entry[2] == level;
    }
    if (grey) {
        b->mode = b->colours <= 2 ? MODE_BILEVEL : MODE_GREY;
        b->sample_bits = b->colours <= 2 ? 1 : 8;
        return OCTET_OK;
    }
    if (there / padding > 256) return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP with %u colours", b->colours);
    for (size_t i = 0; i < there / padding; i++) {
        for (size_t c = 0; c < 3; c++) b->palette[i][c] = palette[i * padding + 2 - c];
    }
    return OCTET_OK;
}

static octet_status open_bmp(bmp *b) {
    uint64_t offset = 0;
    if (b->data[0] == 'B') {
        if (b->size < 14) return truncated();
        offset = oct_le32(b->data + 10);
        b->at = 14;
    }
    OCT_TRY(read_header(b));
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 && b->bits != 32)
        return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP of %u bits a pixel", b->bits);
    b->sample_bits = b->bits;
    b->mode = b->bits <= 8 ? MODE_PALETTE : MODE_COLOUR;
    if (b->colours == 0 && b->bits <= 8) b->colours = 1u << b->bits;
    if (b->bits <= 8 && offset == 14 + (uint64_t)b->header_size) offset += (uint64_t)b->padding * b->colours;
    if (b->compression == BITFIELDS)
        OCT_TRY(check_masks(b));
    else if (b->compression > BITFIELDS)
        return oct_fail(OCTET_UNSUPPORTED, "cannot read BMP with compression %u", b->compression);
    if (b->mode == MODE_PALETTE) OCT_TRY(read_palette(b));
    b->pixels_at = offset != 0 ? (size_t)offset : b->at;
    return oct_image_check_size(b->width, b->height);
}

static void grey_pixel(uint8_t *rgb, uint8_t level) {
    rgb[0] = rgb[1] = rgb[2] = level;
}

/* One line of `sample_bits` a pixel. */
static void convert_row(const bmp *b, const uint8_t *in, uint8_t *rgb) {
    uint32_t depth = b->sample_bits, order[3] = {2, 1, 0};
    if (depth == 16) {
        bool six = b->compression == BITFIELDS && b->masks[1] == 0x7e0;
        uint32_t green = six ? 63 : 31, red_at = six ? 11 : 10;
        for (uint32_t x = 0; x < b->width; x++, in += 2, rgb += 3) {
            uint32_t pixel = oct_le16(in);
            rgb[0] = (uint8_t)(((pixel >> red_at) & 31) * 255 / 31);
            rgb[1] = (uint8_t)(((pixel >> 5) & green) * 255 / green);
            rgb[2] = (uint8_t)((pixel & 31) * 255 / 31);
        }
        return;
    }
    if (depth >= 24) {
        for (int c = 0; c < 3 && depth == 32 && b->compression == BITFIELDS; c++) {
            if (b->masks[c] != 0) order[c] = (uint32_t)__builtin_ctz(b->masks[c]) / 8;
        }
        for (uint32_t x = 0; x < b->width; x++, in += depth / 8, rgb += 3) {
            for (int c = 0; c < 3; c++) rgb[c] = in[order[c]];
        }
        return;
    }
    for (uint32_t x = 0; x < b->width; x++, rgb += 3) {
        uint32_t bit = x * depth, value = (in[bit / 8] >> (8 - depth - bit % 8)) & ((1u << depth) - 1);
        if (b->mode == MODE_PALETTE)
            memcpy(rgb, b->palette[value], 3);
        else
            grey_pixel(rgb, b->mode == MODE_GREY ? (uint8_t)value : value != 0 ? 255 : 0);
    }
}

static uint8_t *line_of(const bmp *b, oct_image *image, uint32_t line) {
    uint32_t y = b->top_down ? line : b->height - 1 - line;
    return image->rgb + (size_t)y * b->width * 3;
}

static octet_status decode_raw(const bmp *b, oct_image *image) {
    uint64_t stride = (((uint64_t)b->width * b->bits + 31) >> 3) & ~(uint64_t)3;
    uint64_t bytes = ((uint64_t)b->width * b->sample_bits + 7) / 8;
    uint64_t there = b->pixels_at < b->size ? b->size - b->pixels_at : 0;
    if (stride < bytes) { /* eight grey bits declared as fewer: Pillow maps such files if they are long enough */
        stride = bytes;
        if (there < stride * b->height) return oct_fail(OCTET_BAD_FORMAT, "BMP lines of %u bits too short", b->bits);
    }
    if (there < stride * (b->height - 1) + bytes) return truncated();
    OCT_TRY(oct_image_make(image, b->width, b->height));
    for (uint32_t line = 0; line < b->height; line++)
        convert_row(b, b->data + b->pixels_at + line * stride, line_of(b, image, line));
    return OCTET_OK;
}

/* Run lengths, byte for byte as Pillow expands them; `done` counts pixels and may pass the last one. */
typedef struct runs {
    const uint8_t *data;
    size_t size, at;
    uint8_t *out;
    uint64_t total, done, x;
    uint32_t width;
} runs;

static void put(runs *r, uint8_t value) {
    if (r->done < r->total) r->out[r->done] = value;
    r->done++;
}

static void put_same(runs *r, uint64_t count, uint8_t value) {
    uint64_t left = r->done < r->total ? r->total - r->done : 0;
    memset(r->out + (r->done < r->total ? r->done : 0), value, (size_t)(count < left ? count : left));
    r->done += count;
}

static void put_run(runs *r, uint64_t count, uint8_t value, bool four) {
    if (r->x + count > r->width) count = r->width > r->x ? r->width - r->x : 0;
    if (!four) put_same(r, count, value);
    for (uint64_t i = 0; four && i < count; i++) put(r, i % 2 == 0 ? value >> 4 : value & 15);
    r->x += count;
}

/* Pixels given one by one, padded to two bytes; false: the data or the picture ends. */
static bool put_literal(runs *r, uint8_t count, bool four) {
    uint64_t left = r->total - r->done, pixels = count < left ? count : left;
    uint64_t bytes = four ? (pixels + 1) / 2 : pixels, there = r->size - r->at;
    uint64_t taken = bytes < there ? bytes : there;
    for (uint64_t i = 0; i < taken; i++) {
        uint8_t value = r->data[r->at + i];
        if (!four) {
            put(r, value);
            continue;
        }
        put(r, value >> 4);
        if (i * 2 + 1 < pixels) put(r, value & 15);
    }
    r->at += taken;
    if (taken < bytes || r->done == r->total) return false;
    r->x += count;
    r->at += r->at % 2;
    return true;
}

/* Two bytes of the stream; false: the end. */
static bool put_next(runs *r, bool four) {
    if (r->at >= r->size || r->size - r->at < 2) return false;
    uint8_t count = r->data[r->at], value = r->data[r->at + 1];
    r->at += 2;
    if (count != 0) {
        put_run(r, count, value, four);
    } else if (value == 0) { /* end of line */
        put_same(r, (r->width - r->done % r->width) % r->width, 0);
        r->x = 0;
    } else if (value == 1) { /* end of picture */
        return false;
    } else if (value == 2) { /* a step to the right and up */
        if (r->size - r->at < 2) return false;
        uint64_t step = r->data[r->at] + (uint64_t)r->data[r->at + 1] * r->width, left = r->total - r->done;
        r->at += 2;
        if (step > left) step = left;
        put_same(r, step, 0);
        r->x = r->done % r->width;
    } else {
        return put_literal(r, value, four);
    }
    return true;
}

static octet_status decode_runs(bmp *b, oct_image *image) {
    if (b->mode == MODE_COLOUR) return oct_fail(OCTET_UNSUPPORTED, "cannot read run-length BMP of %u bits", b->bits);
    runs r = {.data = b->data,
              .size = b->size,
              .at = b->pixels_at < b->size ? b->pixels_at : b->size,
              .total = (uint64_t)b->width * b->height,
              .width = b->width};
    /* A step of four bytes covers 255 lines at most: a header that promises more takes no memory. */
    if (r.total / 4 > ((uint64_t)(r.size - r.at) + 4) * 64 * b->width) return truncated();
    r.out = oct_alloc((size_t)r.total);
    if (r.out == NULL) return oct_fail_memory();
    while (r.done < r.total && put_next(&r, b->compression == RLE4)) continue;
    octet_status status = r.done < r.total ? truncated() : oct_image_make(image, b->width, b->height);
    b->sample_bits = 8;
    for (uint32_t line = 0; status == OCTET_OK && line < b->height; line++)
        convert_row(b, r.out + (size_t)line * b->width, line_of(b, image, line));
    oct_free(r.out);
    return status;
}

octet_status oct_bmp_decode(oct_decoded *decoded, const uint8_t *data, size_t size) {
    bmp b = {.data = data, .size = size};
    OCT_TRY(open_bmp(&b));
    if (b.compression == RLE8 || b.compression == RLE4) return decode_runs(&b, &decoded->image);
    return decode_raw(&b, &decoded->image);
}
