/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to files: encoded by libjpeg or libpng into the writer of base/file.h, which renames whole files only. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jpeglib.h>
#include <jerror.h>
#include <png.h>

#include "base/alloc.h"
#include "base/file.h"
#include "image/image.h"

enum { QUALITY = 90, BUFFER = 1 << 16 };

/* What both encoders write through; `status` keeps the first failure, whose text is set. */
typedef struct sink {
    oct_writer *writer;
    octet_status status;
    jmp_buf leave;
    bool no_memory;
} sink;

typedef struct jpeg_sink {
    sink common;
    struct jpeg_compress_struct library;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    uint8_t buffer[BUFFER];
} jpeg_sink;

static void on_jpeg_error(j_common_ptr common) {
    jpeg_sink *to = common->client_data;
    char message[JMSG_LENGTH_MAX];
    common->err->format_message(common, message);
    if (to->common.status == OCTET_OK)
        to->common.status = common->err->msg_code == JERR_OUT_OF_MEMORY
                                ? oct_fail_memory()
                                : oct_fail(OCTET_INTERNAL, "cannot encode JPEG: %s", message);
    longjmp(to->common.leave, 1);
}

static void on_jpeg_message(j_common_ptr common) {
    (void)common;
}

static void write_or_leave(sink *to, const void *data, size_t size) {
    to->status = oct_writer_write(to->writer, data, size);
    if (to->status != OCTET_OK) longjmp(to->leave, 1);
}

static void on_jpeg_start(j_compress_ptr library) {
    jpeg_sink *to = library->client_data;
    to->destination.next_output_byte = to->buffer;
    to->destination.free_in_buffer = BUFFER;
}

static boolean on_jpeg_full(j_compress_ptr library) {
    jpeg_sink *to = library->client_data;
    write_or_leave(&to->common, to->buffer, BUFFER);
    on_jpeg_start(library);
    return TRUE;
}

static void on_jpeg_end(j_compress_ptr library) {
    jpeg_sink *to = library->client_data;
    write_or_leave(&to->common, to->buffer, BUFFER - to->destination.free_in_buffer);
}

static void run_jpeg(jpeg_sink *to, const oct_image *image) {
    struct jpeg_compress_struct *library = &to->library;
    library->err = jpeg_std_error(&to->errors);
    library->client_data = to;
    to->errors.error_exit = on_jpeg_error;
    to->errors.output_message = on_jpeg_message;
    if (setjmp(to->common.leave) != 0) return;
    jpeg_create_compress(library);
    to->destination.init_destination = on_jpeg_start;
    to->destination.empty_output_buffer = on_jpeg_full;
    to->destination.term_destination = on_jpeg_end;
    library->dest = &to->destination;
    library->image_width = (JDIMENSION)image->width;
    library->image_height = (JDIMENSION)image->height;
    library->input_components = 3;
    library->in_color_space = JCS_RGB;
    jpeg_set_defaults(library);
    jpeg_set_quality(library, QUALITY, TRUE);
    for (int c = 0; c < 3; c++) library->comp_info[c].h_samp_factor = library->comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(library, TRUE);
    while (library->next_scanline < library->image_height) {
        JSAMPROW row = image->rgb + (size_t)library->next_scanline * (size_t)image->width * 3;
        jpeg_write_scanlines(library, &row, 1);
    }
    jpeg_finish_compress(library);
}

static octet_status write_jpeg(oct_writer *writer, const oct_image *image) {
    jpeg_sink *to = oct_calloc(1, sizeof *to);
    if (to == NULL) return oct_fail_memory();
    to->common.writer = writer;
    run_jpeg(to, image);
    octet_status status = to->common.status;
    jpeg_destroy_compress(&to->library);
    oct_free(to);
    return status;
}

typedef struct png_sink {
    sink common;
    png_structp library;
    png_infop info;
} png_sink;

static void on_png_error(png_structp library, png_const_charp message) {
    png_sink *to = png_get_error_ptr(library);
    if (to->common.status == OCTET_OK)
        to->common.status =
            to->common.no_memory ? oct_fail_memory() : oct_fail(OCTET_INTERNAL, "cannot encode PNG: %s", message);
    longjmp(to->common.leave, 1);
}

static void on_png_warning(png_structp library, png_const_charp message) {
    (void)library;
    (void)message;
}

static png_voidp on_png_allocate(png_structp library, png_alloc_size_t size) {
    png_sink *to = png_get_mem_ptr(library);
    void *memory = oct_alloc(size);
    if (memory == NULL) to->common.no_memory = true;
    return memory;
}

static void on_png_release(png_structp library, png_voidp memory) {
    (void)library;
    oct_free(memory);
}

static void on_png_write(png_structp library, png_bytep data, size_t size) {
    png_sink *to = png_get_io_ptr(library);
    write_or_leave(&to->common, data, size);
}

static void on_png_flush(png_structp library) {
    (void)library;
}

static void run_png(png_sink *to, const oct_image *image) {
    if (setjmp(to->common.leave) != 0) return;
    to->library = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, to, on_png_error, on_png_warning, to,
                                            on_png_allocate, on_png_release);
    if (to->library != NULL) to->info = png_create_info_struct(to->library);
    if (to->info == NULL) {
        to->common.status = oct_fail_memory();
        return;
    }
    png_set_write_fn(to->library, to, on_png_write, on_png_flush);
    png_set_user_limits(to->library, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(to->library, to->info, (png_uint_32)image->width, (png_uint_32)image->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(to->library, to->info);
    for (int y = 0; y < image->height; y++)
        png_write_row(to->library, image->rgb + (size_t)y * (size_t)image->width * 3);
    png_write_end(to->library, NULL);
}

static octet_status write_png(oct_writer *writer, const oct_image *image) {
    png_sink *to = oct_calloc(1, sizeof *to);
    if (to == NULL) return oct_fail_memory();
    to->common.writer = writer;
    run_png(to, image);
    octet_status status = to->common.status;
    if (to->library != NULL) png_destroy_write_struct(&to->library, &to->info);
    oct_free(to);
    return status;
}

static bool is_jpeg_name(const char *path) {
    const char *dot = strrchr(oct_path_base(path), '.');
    return dot != NULL && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

octet_status oct_image_write(const oct_image *image, const char *path) {
    bool jpeg = is_jpeg_name(path);
    if (jpeg && (image->width > JPEG_MAX_DIMENSION || image->height > JPEG_MAX_DIMENSION)) {
        oct_fail(OCTET_LIMIT, "%s: a picture of %d x %d pixels is too large for JPEG", path, image->width,
                 image->height);
        return oct_hint("name the file .png");
    }
    oct_writer *writer = NULL;
    OCT_TRY(oct_writer_open(&writer, path));
    octet_status status = jpeg ? write_jpeg(writer, image) : write_png(writer, image);
    if (status == OCTET_OK) return oct_writer_commit(writer);
    oct_writer_abort(writer);
    return status;
}
