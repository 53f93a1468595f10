/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

static bool complain(const char *path) {
    fprintf(stderr, "subjects-draw: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

static FILE *open_in(const char *directory, const char *name, char path[4096]) {
    snprintf(path, 4096, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file) complain(path);
    return file;
}

static bool close_file(FILE *file, const char *path) {
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) return complain(path);
    return true;
}

bool store_ppm(const char *path, const uint8_t *rgb, int width, int height) {
    FILE *file = fopen(path, "wb");
    if (!file) return complain(path);
    fprintf(file, "P6\n%d %d\n255\n", width, height);
    fwrite(rgb, 3, (size_t)width * (size_t)height, file);
    return close_file(file, path);
}

struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static void jpeg_leave(j_common_ptr info) {
    struct jpeg_failure *failure = (struct jpeg_failure *)(void *)info->err;
    info->err->output_message(info);
    longjmp(failure->back, 1);
}

static bool compress(FILE *file, const uint8_t *rgb, int width, int height) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_leave;
    if (setjmp(failure.back)) {
        jpeg_destroy_compress(&jpeg);
        return false;
    }
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)(rgb + (size_t)jpeg.next_scanline * (size_t)width * 3);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return true;
}

bool store_jpeg(const char *path, const uint8_t *rgb, int width, int height) {
    FILE *file = fopen(path, "wb");
    if (!file) return complain(path);
    bool done = compress(file, rgb, width, height);
    return close_file(file, path) && done;
}

bool store_labels(const char *directory, const char *suffix, uint64_t first, uint64_t count,
                  const struct record *records) {
    char path[4096];
    FILE *file = open_in(directory, "labels.txt", path);
    if (!file) return false;
    for (uint64_t i = 0; i < count; i++)
        fprintf(file, "%06" PRIu64 ".%s %d\n", first + i, suffix, records[i].scene.objects[0].label);
    return close_file(file, path);
}

bool store_classes(const char *directory, int classes) {
    char path[4096];
    FILE *file = open_in(directory, "classes.txt", path);
    if (!file) return false;
    for (int i = 0; i < classes; i++) fprintf(file, "%s\n", subject_class_name(i));
    return close_file(file, path);
}

/* A coordinate of 1/256 pixel in hundredths. */
static void print_pixels(FILE *file, const char *before, int32_t value) {
    int32_t hundredths = (value * 100 + 128) / 256;
    fprintf(file, "%s%d.%02d", before, hundredths / 100, hundredths % 100);
}

static void print_annotations(FILE *file, uint64_t count, const struct record *records) {
    unsigned id = 0;
    for (uint64_t i = 0; i < count; i++) {
        for (int k = 0; k < records[i].scene.count; k++) {
            const struct subject_object *o = &records[i].scene.objects[k];
            fprintf(file,
                    "%s\n    {\"id\": %u, \"image_id\": %" PRIu64
                    ", \"category_id\": %d, \"iscrowd\": 0, \"area\": %d, \"bbox\": ",
                    id ? "," : "", id + 1, i + 1, o->label + 1, o->area);
            id++;
            print_pixels(file, "[", o->x0);
            print_pixels(file, ", ", o->y0);
            print_pixels(file, ", ", o->x1 - o->x0);
            print_pixels(file, ", ", o->y1 - o->y0);
            fprintf(file, "]}");
        }
    }
}

bool store_coco(const char *directory, const char *suffix, uint64_t first, uint64_t count,
                const struct record *records) {
    char path[4096];
    FILE *file = open_in(directory, "instances.json", path);
    if (!file) return false;
    fprintf(file, "{\n  \"images\": [");
    for (uint64_t i = 0; i < count; i++) {
        fprintf(file,
                "%s\n    {\"id\": %" PRIu64 ", \"file_name\": \"%06" PRIu64 ".%s\", \"width\": %d, \"height\": %d}",
                i ? "," : "", i + 1, first + i, suffix, records[i].width, records[i].height);
    }
    fprintf(file, "\n  ],\n  \"annotations\": [");
    print_annotations(file, count, records);
    fprintf(file, "\n  ],\n  \"categories\": [");
    for (int i = 0; i < subject_classes(SUBJECT_DETECT); i++)
        fprintf(file, "%s\n    {\"id\": %d, \"name\": \"%s\"}", i ? "," : "", i + 1, subject_class_name(i));
    fprintf(file, "\n  ]\n}\n");
    return close_file(file, path);
}
