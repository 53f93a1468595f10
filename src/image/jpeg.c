/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG by libjpeg-turbo with the settings Pillow leaves alone: accurate integer DCT, fancy upsampling, block smoothing.
 * The source suspends at the end of the data, as Pillow's does, so a file is truncated exactly where it is for Pillow.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/alloc.h"
#include "image/codec.h"

typedef struct jpeg_reader {
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf leave;
    char message[JMSG_LENGTH_MAX];
    uint8_t *row; /* one line of grey or CMYK samples */
} jpeg_reader;

static void on_error(j_common_ptr common) {
    jpeg_reader *reader = common->client_data;
    common->err->format_message(common, reader->message);
    longjmp(reader->leave, 1);
}

static void on_message(j_common_ptr common) {
    (void)common;
}

static void on_start_or_end(j_decompress_ptr library) {
    (void)library;
}

static boolean on_more(j_decompress_ptr library) {
    (void)library;
    return FALSE; /* all data was there from the start */
}

static void on_skip(j_decompress_ptr library, long count) {
    struct jpeg_source_mgr *source = library->src;
    size_t skipped = (size_t)count < source->bytes_in_buffer ? (size_t)count : source->bytes_in_buffer;
    if (count <= 0) return;
    source->next_input_byte += skipped;
    source->bytes_in_buffer -= skipped;
}

/* Pillow's conversion of (inverted, as Adobe writes them) CMYK samples. */
static void cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, int width) {
    for (int x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        int rest = cmyk[3]; /* 255 - K, and K is stored inverted */
        for (int c = 0; c < 3; c++) {
            int product = (255 - cmyk[c]) * rest + 128;
            int value = rest - (((product >> 8) + product) >> 8);
            rgb[c] = (uint8_t)(value < 0 ? 0 : value);
        }
    }
}

static void grey_to_rgb(const uint8_t *grey, uint8_t *rgb, int width) {
    for (int x = 0; x < width; x++, rgb += 3) rgb[0] = rgb[1] = rgb[2] = grey[x];
}

/* Runs under setjmp of decode(): nothing here owns memory but through `reader` and `image`. */
static octet_status decode_rows(jpeg_reader *reader, const oct_jpeg_header *header, oct_image *image) {
    struct jpeg_decompress_struct *library = &reader->library;
    int found;
    do {
        found = jpeg_read_header(library, FALSE);
    } while (found == JPEG_HEADER_TABLES_ONLY);
    if (found == JPEG_SUSPENDED) return oct_fail(OCTET_BAD_FORMAT, "truncated JPEG");
    if ((int)library->image_width != header->width || (int)library->image_height != header->height ||
        library->num_components != header->layers)
        return oct_fail(OCTET_BAD_FORMAT, "JPEG with two frame headers that differ");
    library->out_color_space = header->layers == 1 ? JCS_GRAYSCALE : header->layers == 3 ? JCS_RGB : JCS_CMYK;
    if (!jpeg_start_decompress(library)) return oct_fail(OCTET_BAD_FORMAT, "truncated JPEG");
    if (header->layers != 3) {
        reader->row = oct_alloc((size_t)header->width * 4);
        if (reader->row == NULL) return oct_fail_memory();
    }
    for (int y = 0; y < header->height; y++) {
        uint8_t *rgb = image->rgb + (size_t)y * (size_t)header->width * 3;
        JSAMPROW row = reader->row != NULL ? reader->row : rgb;
        if (jpeg_read_scanlines(library, &row, 1) != 1)
            return oct_fail(OCTET_BAD_FORMAT, "truncated JPEG: %d of %d lines", y, header->height);
        if (header->layers == 1) grey_to_rgb(row, rgb, header->width);
        if (header->layers == 4) cmyk_to_rgb(row, rgb, header->width);
    }
    jpeg_finish_decompress(library); /* what follows the last line does not matter; its errors do, as in Pillow */
    return OCTET_OK;
}

static octet_status decode(jpeg_reader *reader, const oct_jpeg_header *header, oct_image *image, const uint8_t *data,
                           size_t size) {
    struct jpeg_decompress_struct *library = &reader->library;
    library->err = jpeg_std_error(&reader->errors);
    library->client_data = reader;
    reader->errors.error_exit = on_error;
    reader->errors.output_message = on_message;
    if (setjmp(reader->leave) != 0) {
        if (reader->errors.msg_code == JERR_OUT_OF_MEMORY) return oct_fail_memory();
        return oct_fail(OCTET_BAD_FORMAT, "broken JPEG: %s", reader->message);
    }
    jpeg_create_decompress(library);
    reader->source = (struct jpeg_source_mgr){.next_input_byte = data,
                                              .bytes_in_buffer = size,
                                              .init_source = on_start_or_end,
                                              .fill_input_buffer = on_more,
                                              .skip_input_data = on_skip,
                                              .resync_to_restart = jpeg_resync_to_restart,
                                              .term_source = on_start_or_end};
    library->src = &reader->source;
    return decode_rows(reader, header, image);
}

octet_status oct_jpeg_decode(oct_decoded *decoded, const uint8_t *data, size_t size) {
    oct_jpeg_header header;
    OCT_TRY(oct_jpeg_header_read(&header, data, size));
    decoded->orientation = oct_metadata_orientation(&header.metadata);
    octet_status status = oct_image_make(&decoded->image, (uint64_t)header.width, (uint64_t)header.height);
    jpeg_reader *reader = NULL;
    if (status == OCTET_OK) {
        reader = oct_calloc(1, sizeof *reader);
        if (reader == NULL) status = oct_fail_memory();
    }
    if (status == OCTET_OK) status = decode(reader, &header, &decoded->image, data, size);
    if (reader != NULL) {
        jpeg_destroy_decompress(&reader->library);
        oct_free(reader->row);
        oct_free(reader);
    }
    oct_jpeg_header_free(&header);
    return status;
}
