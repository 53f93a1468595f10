/* SPDX-License-Identifier: Apache-2.0 */
/* What is where on pixels that are in memory already: a camera's frame, a decoder's output, a part of a larger picture.
 *
 *     cc detect.c -o detect $(pkg-config --cflags --libs octet)
 *     ./detect MODEL WIDTH HEIGHT FILE     FILE holds WIDTH * HEIGHT pixels, red, green, blue a byte each
 *     ./detect MODEL                       a picture drawn here
 *
 * Prints a line a detection: score, class, corners in pixels. */
#include <octet/octet.h>
#include <stdio.h>
#include <stdlib.h>

/* The pixels as many sources have them: 4 bytes each (the fourth unused), rows padded to 64 bytes. */
typedef struct frame {
    int32_t width, height;
    size_t row; /* bytes from a row to the next */
    unsigned char *data;
} frame;

static int frame_new(frame *made, long width, long height) {
    made->data = NULL;
    if (width < 1 || height < 1 || width > 1 << 14 || height > 1 << 14) return 0;
    made->width = (int32_t)width;
    made->height = (int32_t)height;
    made->row = ((size_t)width * 4 + 63) / 64 * 64;
    made->data = calloc((size_t)height, made->row);
    return made->data != NULL;
}

static int frame_read(frame *to, const char *path) {
    FILE *file = fopen(path, "rb");
    int whole = file != NULL;
    for (int32_t y = 0; whole && y < to->height; y++) {
        unsigned char *pixel = to->data + (size_t)y * to->row;
        for (int32_t x = 0; whole && x < to->width; x++, pixel += 4) whole = fread(pixel, 1, 3, file) == 3;
    }
    if (file != NULL) fclose(file);
    return whole;
}

/* A red disc on grey. */
static void frame_draw(frame *to) {
    for (int32_t y = 0; y < to->height; y++) {
        for (int32_t x = 0; x < to->width; x++) {
            unsigned char *pixel = to->data + (size_t)y * to->row + (size_t)x * 4;
            int32_t dx = x - to->width / 2, dy = y - to->height / 2;
            int inside = dx * dx + dy * dy < to->height * to->height / 9;
            pixel[0] = inside ? 200 : 128;
            pixel[1] = pixel[2] = inside ? 30 : 128;
        }
    }
}

/* No copy is made for the call: strides say where the pixels lie. Further uses of the same three numbers:
 *   blue before red      data = address of the first red byte, channel_stride = -1
 *   bottom row first     data = address of the top row, row_stride negative
 *   planes (CHW)         pixel_stride = 1, channel_stride = bytes of a plane
 *   a part of a picture  data = address of its first pixel, its own width and height, the picture's row_stride */
static octet_picture picture_of(const frame *from) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    picture.kind = OCTET_PICTURE_RGB8;
    picture.data = from->data;
    picture.width = from->width;
    picture.height = from->height;
    picture.pixel_stride = 4;
    picture.row_stride = (int64_t)from->row;
    return picture; /* channel_stride 0: green follows red, blue green */
}

static int print_detections(const octet_result *result, float threshold) {
    size_t count = octet_result_detections(result, threshold, NULL, 0); /* how many there are */
    octet_detection *found = calloc(count + 1, sizeof *found);
    if (found == NULL) return 1;
    octet_result_detections(result, threshold, found, count);
    for (size_t i = 0; i < count; i++) {
        const float *box = found[i].box;
        printf("%6.2f%%  %-16s %7.1f %7.1f %7.1f %7.1f\n", 100.0 * (double)found[i].score, found[i].label,
               (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
    }
    fprintf(stderr, "%zu found\n", count);
    free(found);
    return 0;
}

static int detect(const char *place, const frame *pixels) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    octet_result *result = NULL;
    octet_picture picture = picture_of(pixels);
    int status = 1;
    if (octet_model_open(place, NULL, &model) != OCTET_OK || octet_session_new(model, NULL, &session) != OCTET_OK ||
        octet_session_run(session, &picture, 1, &result) != OCTET_OK)
        fprintf(stderr, "%s\n", octet_error_text());
    else if (octet_result_task(result) != OCTET_DETECTION)
        fprintf(stderr, "%s classifies; it does not detect\n", octet_model_name(model));
    else
        status = print_detections(result, 0.5f);
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    return status;
}

int main(int argc, char **argv) {
    frame pixels = {0, 0, 0, NULL};
    int status = 1;
    if (argc != 2 && argc != 5) {
        fprintf(stderr, "usage: %s MODEL [WIDTH HEIGHT FILE]\n", argv[0]);
        return 2;
    }
    if (!frame_new(&pixels, argc == 5 ? strtol(argv[2], NULL, 10) : 320, argc == 5 ? strtol(argv[3], NULL, 10) : 240)) {
        fprintf(stderr, "width and height: expected 1 to 16384\n");
    } else if (argc == 5 && !frame_read(&pixels, argv[4])) {
        fprintf(stderr, "%s: could not read %d x %d pixels of 3 bytes\n", argv[4], (int)pixels.width,
                (int)pixels.height);
    } else {
        if (argc == 2) frame_draw(&pixels);
        status = detect(argv[1], &pixels);
    }
    free(pixels.data);
    return status;
}
