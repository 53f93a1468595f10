/* SPDX-License-Identifier: Apache-2.0 */
/* A zlib stream, inflated by libpng as the text of a one-pixel file made around it. */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/alloc.h"
#include "image/png_chunks.h"

typedef struct text_reader {
    png_structp library;
    png_infop info;
    jmp_buf leave;
    bool no_memory;
    uint8_t head[64], tail[16];
    struct {
        const uint8_t *data;
        size_t size;
    } parts[3];
    int part;
} text_reader;

static void on_error(png_structp library, png_const_charp message) {
    text_reader *reader = png_get_error_ptr(library);
    (void)message;
    longjmp(reader->leave, 1);
}

static void on_warning(png_structp library, png_const_charp message) {
    (void)library;
    (void)message;
}

static png_voidp on_allocate(png_structp library, png_alloc_size_t size) {
    text_reader *reader = png_get_mem_ptr(library);
    void *memory = oct_alloc(size);
    if (memory == NULL) reader->no_memory = true;
    return memory;
}

static void on_release(png_structp library, png_voidp memory) {
    (void)library;
    oct_free(memory);
}

static void on_read(png_structp library, png_bytep out, size_t count) {
    text_reader *reader = png_get_io_ptr(library);
    while (count > 0) {
        if (reader->part == 3) png_error(library, "end");
        size_t there = reader->parts[reader->part].size, n = there < count ? there : count;
        memcpy(out, reader->parts[reader->part].data, n);
        reader->parts[reader->part].data += n;
        reader->parts[reader->part].size -= n;
        if (n == there) reader->part++;
        out += n;
        count -= n;
    }
}

/* Runs under setjmp; *text is what libpng kept of the chunk, its own memory. */
static octet_status inflate_text(text_reader *reader, size_t limit, png_textp *text) {
    if (setjmp(reader->leave) != 0) return reader->no_memory ? oct_fail_memory() : OCTET_OK;
    reader->library =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning, reader, on_allocate, on_release);
    if (reader->library == NULL) return oct_fail_memory();
    reader->info = png_create_info_struct(reader->library);
    if (reader->info == NULL) return oct_fail_memory();
    png_set_read_fn(reader->library, reader, on_read);
    png_set_crc_action(reader->library, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_benign_errors(reader->library, 1);
    png_set_chunk_malloc_max(reader->library, limit + 4096);
    png_read_info(reader->library, reader->info);
    int count = 0;
    if (png_get_text(reader->library, reader->info, text, &count) == 0 || count == 0) *text = NULL;
    return reader->no_memory ? oct_fail_memory() : OCTET_OK; /* libpng goes on without the text */
}

octet_status oct_png_inflate(const uint8_t *data, size_t size, size_t limit, uint8_t **bytes, size_t *length,
                             bool *too_long) {
    static const uint8_t start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0crc.";
    *bytes = NULL;
    *length = 0;
    *too_long = false;
    if (size > PNG_UINT_31_MAX - 16) return OCTET_OK;
    text_reader *reader = oct_calloc(1, sizeof *reader);
    if (reader == NULL) return oct_fail_memory();
    size_t at = sizeof start - 1, shown = size + 3; /* a key of one letter, its zero, the method */
    memcpy(reader->head, start, at);
    for (int i = 0; i < 4; i++) reader->head[at++] = (uint8_t)(shown >> (24 - 8 * i));
    memcpy(reader->head + at, "zTXtk\0\0", 7);
    memcpy(reader->tail, "crc.\0\0\0\0IDAT", 12);
    reader->parts[0].data = reader->head;
    reader->parts[0].size = at + 7;
    reader->parts[1].data = data;
    reader->parts[1].size = size;
    reader->parts[2].data = reader->tail;
    reader->parts[2].size = 12;
    png_textp found = NULL;
    octet_status status = inflate_text(reader, limit, &found);
    if (status == OCTET_OK && found != NULL && found->text != NULL) {
        *too_long = found->text_length > limit;
        *bytes = oct_alloc(found->text_length);
        if (*bytes == NULL) {
            status = oct_fail_memory();
        } else {
            memcpy(*bytes, found->text, found->text_length);
            *length = found->text_length;
        }
    }
    if (reader->library != NULL) png_destroy_read_struct(&reader->library, &reader->info, NULL);
    oct_free(reader);
    return status;
}
