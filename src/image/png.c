/* SPDX-License-Identifier: Apache-2.0 */
/* PNG: chunks by Pillow's rules (png_chunks.h); libpng inflates, unfilters and interleaves. It is shown a file of the
 * header and the image data alone, palette pictures as grey ones of the same depth: what Pillow does not ask for cannot
 * refuse a picture. */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/alloc.h"
#include "image/png_chunks.h"

typedef struct png_reader {
    png_structp library;
    png_infop info;
    jmp_buf leave;
    bool no_memory;
    char message[128];
    const uint8_t *data; /* the file */
    size_t size;
    size_t at; /* of the next image data chunk's header in the file */
    bool ended;
    uint8_t head[64]; /* what is shown before the next piece of data */
    size_t head_at, head_size;
    const uint8_t *piece;
    size_t piece_size;
    uint8_t *rows; /* one line of samples, or all lines of an interlaced picture */
} png_reader;

static void on_error(png_structp library, png_const_charp message) {
    png_reader *reader = png_get_error_ptr(library);
    size_t length = strnlen(message, sizeof reader->message - 1);
    memcpy(reader->message, message, length);
    reader->message[length] = 0;
    longjmp(reader->leave, 1);
}

static void on_warning(png_structp library, png_const_charp message) {
    (void)library;
    (void)message;
}

static png_voidp on_allocate(png_structp library, png_alloc_size_t size) {
    png_reader *reader = png_get_mem_ptr(library);
    void *memory = oct_alloc(size);
    if (memory == NULL) reader->no_memory = true;
    return memory;
}

static void on_release(png_structp library, png_voidp memory) {
    (void)library;
    oct_free(memory);
}

static void put32(uint8_t *p, size_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A chunk's length and name to show; check sums are not looked at. */
static void show_chunk(png_reader *reader, size_t length, const char *name) {
    put32(reader->head + reader->head_size, length);
    memcpy(reader->head + reader->head_size + 4, name, 4);
    reader->head_size += 8;
}

/* Image data that the file promises, cut at its end. */
static void show_data(png_reader *reader, size_t data_at, size_t data_size) {
    size_t there = data_at < reader->size ? reader->size - data_at : 0;
    reader->piece = there > 0 ? reader->data + data_at : NULL;
    reader->piece_size = data_size < there ? data_size : there;
    reader->at = data_at + data_size + 4;
    show_chunk(reader, reader->piece_size, "IDAT");
}

/* The next chunk if it is image data, as Pillow goes on reading; else the file's end, once. */
static bool show_next(png_reader *reader) {
    if (reader->ended) return false;
    memset(reader->head, 0, 4);
    reader->head_at = 0;
    reader->head_size = 4; /* the last chunk's check sum */
    bool chunk = reader->at <= reader->size && reader->size - reader->at >= 8;
    const uint8_t *head = chunk ? reader->data + reader->at : NULL;
    bool animation = chunk && memcmp(head + 4, "fdAT", 4) == 0;
    chunk = chunk && (memcmp(head + 4, "IDAT", 4) == 0 || memcmp(head + 4, "DDAT", 4) == 0 || animation);
    if (chunk && !(animation && oct_be32(head) < 4)) {
        size_t skipped = animation ? 4 : 0;
        show_data(reader, reader->at + 8 + skipped, oct_be32(head) - skipped);
    } else {
        show_chunk(reader, 0, "IEND");
        reader->ended = true;
    }
    return true;
}

static void on_read(png_structp library, png_bytep out, size_t count) {
    png_reader *reader = png_get_io_ptr(library);
    while (count > 0) {
        const uint8_t *from = reader->head + reader->head_at;
        size_t there = reader->head_size - reader->head_at;
        bool head = there > 0;
        if (!head) {
            from = reader->piece;
            there = reader->piece_size;
        }
        if (there == 0 && show_next(reader)) continue;
        if (there == 0) png_error(library, "truncated");
        size_t n = there < count ? there : count;
        memcpy(out, from, n);
        if (head) {
            reader->head_at += n;
        } else {
            reader->piece += n;
            reader->piece_size -= n;
        }
        out += n;
        count -= n;
    }
}

/* Samples a pixel, by colour type. */
static int samples_of(int colour) {
    return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
}

static bool is_known(int depth, int colour) {
    if (colour == 0) return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    if (colour == 3) return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    return (colour == 2 || colour == 4 || colour == 6) && (depth == 8 || depth == 16);
}

/* One line as Pillow's modes give it in RGB. */
static void convert_row(const oct_png *png, const uint8_t palette[256][3], const uint8_t *in, uint8_t *rgb,
                        uint32_t width) {
    int samples = samples_of(png->colour), depth = png->depth;
    if (depth < 8) {
        uint32_t mask = (1u << depth) - 1, scale = 255 / mask;
        for (uint32_t x = 0; x < width; x++, rgb += 3) {
            uint32_t bit = x * (uint32_t)depth;
            uint32_t value = (in[bit / 8] >> (8 - (uint32_t)depth - bit % 8)) & mask;
            if (png->colour == 3)
                memcpy(rgb, palette[value], 3);
            else
                rgb[0] = rgb[1] = rgb[2] = (uint8_t)(value * scale);
        }
        return;
    }
    size_t step = (size_t)samples * (size_t)depth / 8, next = (size_t)depth / 8;
    if (png->colour == 3) {
        for (uint32_t x = 0; x < width; x++, rgb += 3) memcpy(rgb, palette[in[x]], 3);
    } else if (samples >= 3) { /* alpha is dropped; of 16 bits the high byte is taken */
        for (uint32_t x = 0; x < width; x++, rgb += 3, in += step) {
            rgb[0] = in[0];
            rgb[1] = in[next];
            rgb[2] = in[2 * next];
        }
    } else if (png->colour == 0 && depth == 16) { /* mode I;16, which clips */
        for (uint32_t x = 0; x < width; x++, rgb += 3, in += 2) rgb[0] = rgb[1] = rgb[2] = in[0] != 0 ? 255 : in[1];
    } else {
        for (uint32_t x = 0; x < width; x++, rgb += 3, in += step) rgb[0] = rgb[1] = rgb[2] = in[0];
    }
}

static void make_palette(const oct_png *png, uint8_t palette[256][3]) {
    memset(palette, 0, 256 * 3);
    for (size_t i = 0; i < 256 && i < png->palette_size / 3; i++) memcpy(palette[i], png->palette + i * 3, 3);
}

static uint32_t frame_width(const oct_png *png) {
    return png->frame[2] - png->frame[0];
}

static uint32_t frame_height(const oct_png *png) {
    return png->frame[3] - png->frame[1];
}

static size_t row_bytes(const oct_png *png, uint32_t width) {
    return ((size_t)width * (size_t)samples_of(png->colour) * (size_t)png->depth + 7) / 8;
}

/* Whether the picture's lines can be read straight into the output. */
static bool is_direct(const oct_png *png) {
    return png->colour == 2 && png->depth == 8 && frame_width(png) == png->width;
}

static uint8_t *line_of(const oct_png *png, oct_image *image, uint32_t y) {
    return image->rgb + ((size_t)(png->frame[1] + y) * (size_t)png->width + png->frame[0]) * 3;
}

/* Runs under setjmp of decode(): what is allocated here hangs on `reader`. */
static octet_status read_rows(png_reader *reader, const oct_png *png, oct_image *image) {
    uint32_t width = frame_width(png), height = frame_height(png);
    uint8_t palette[256][3];
    make_palette(png, palette);
    size_t stride = row_bytes(png, width);
    bool direct = is_direct(png);
    png_read_info(reader->library, reader->info);
    int passes = png_set_interlace_handling(reader->library);
    png_start_read_image(reader->library);
    if (!direct) {
        reader->rows = oct_calloc(passes > 1 ? height : 1, stride);
        if (reader->rows == NULL) return oct_fail_memory();
    }
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            uint8_t *out = line_of(png, image, y);
            uint8_t *row = direct ? out : reader->rows + (passes > 1 ? y * stride : 0);
            png_read_row(reader->library, row, NULL);
            if (!direct && pass + 1 == passes) convert_row(png, palette, row, out, width);
        }
    }
    return OCTET_OK;
}

static octet_status make_library(png_reader *reader) {
    reader->library =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning, reader, on_allocate, on_release);
    if (reader->library == NULL) return oct_fail_memory();
    reader->info = png_create_info_struct(reader->library);
    if (reader->info == NULL) return oct_fail_memory();
    return OCTET_OK;
}

static octet_status decode(png_reader *reader, const oct_png *png, oct_image *image) {
    if (setjmp(reader->leave) != 0) {
        if (reader->no_memory) return oct_fail_memory();
        return oct_fail(OCTET_BAD_FORMAT, "broken PNG: %s", reader->message);
    }
    OCT_TRY(make_library(reader));
    png_set_read_fn(reader->library, reader, on_read);
    png_set_user_limits(reader->library, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_crc_action(reader->library, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_benign_errors(reader->library, 1);
    png_set_compression_buffer_size(reader->library, 65536); /* the pieces in which Pillow inflates */
    return read_rows(reader, png, image);
}

static void free_reader(png_reader *reader) {
    if (reader->library != NULL) png_destroy_read_struct(&reader->library, &reader->info, NULL);
    oct_free(reader->rows);
    oct_free(reader);
}

/* The signature and a header for libpng, then the file's own image data. */
static void show_start(png_reader *reader, const oct_png *png) {
    memcpy(reader->head, "\x89PNG\r\n\x1a\n", 8);
    reader->head_size = 8;
    show_chunk(reader, 13, "IHDR");
    uint8_t *header = reader->head + reader->head_size;
    put32(header, png->frame[2] - png->frame[0]);
    put32(header + 4, png->frame[3] - png->frame[1] + !png->interlaced); /* after a last line libpng would read on */
    header[8] = (uint8_t)png->depth;
    header[9] = png->colour == 3 ? 0 : (uint8_t)png->colour;
    header[10] = header[11] = 0;
    header[12] = png->interlaced;
    put32(header + 13, 0); /* its check sum */
    reader->head_size += 17;
    reader->data = png->data;
    reader->size = png->size;
    show_data(reader, png->data_at, png->data_size);
}

static octet_status check_picture(const oct_png *png) {
    if (!is_known(png->depth, png->colour))
        return oct_fail(OCTET_BAD_FORMAT, "PNG with depth %d and colour type %d", png->depth, png->colour);
    OCT_TRY(oct_image_check_size(png->width, png->height));
    if (png->frame[0] == png->frame[2] || png->frame[1] == png->frame[3])
        return oct_fail(OCTET_BAD_FORMAT, "PNG with an empty frame");
    if (png->colour == 3 && png->palette_size / 3 > 256)
        return oct_fail(OCTET_BAD_FORMAT, "PNG palette of %zu entries", png->palette_size / 3);
    /* Deflate packs 1032 to 1 at most: a header that promises more than the file can hold takes no memory. */
    uint64_t bits = (uint64_t)(png->frame[2] - png->frame[0]) * (png->frame[3] - png->frame[1]) *
                    (uint64_t)(samples_of(png->colour) * png->depth);
    if (bits / 8 / 1032 > png->size)
        return oct_fail(OCTET_BAD_FORMAT, "truncated PNG: %zu bytes for %u x %u pixels", png->size, png->width,
                        png->height);
    return OCTET_OK;
}

static octet_status decode_picture(oct_decoded *decoded, oct_png *png) {
    OCT_TRY(check_picture(png));
    OCT_TRY(oct_image_make(&decoded->image, png->width, png->height));
    bool whole = png->frame[2] - png->frame[0] == png->width && png->frame[3] - png->frame[1] == png->height;
    for (size_t i = 0; !whole && i < (size_t)png->width * png->height * 3; i++)
        decoded->image.rgb[i] = png->colour == 3 && png->palette_size > 2 ? png->palette[i % 3] : 0;
    png_reader *reader = oct_calloc(1, sizeof *reader);
    if (reader == NULL) return oct_fail_memory();
    show_start(reader, png);
    octet_status status = decode(reader, png, &decoded->image);
    png->at = reader->at;
    free_reader(reader);
    OCT_TRY(status);
    OCT_TRY(oct_png_finish(png));
    return oct_png_orientation(png, &decoded->orientation);
}

octet_status oct_png_decode(oct_decoded *decoded, const uint8_t *data, size_t size) {
    oct_png png;
    OCT_TRY(oct_png_open(&png, data, size));
    octet_status status = decode_picture(decoded, &png);
    oct_png_close(&png);
    return status;
}
