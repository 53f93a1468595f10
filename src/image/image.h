/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded pictures: 8-bit RGB as Pillow 13's `Image.open(f).convert("RGB")` gives it, to the byte, and refused where it
 * refuses. Format is told by content, never by name: JPEG (libjpeg-turbo: accurate integer DCT, fancy upsampling), PNG
 * (libpng under Pillow's rules for chunks), WebP (libwebp with the demuxer), BMP with bare DIB, and PPM/PGM/PBM (own
 * readers); the first frame of many. No function prints; no header above the pixel limit takes memory. Thread-safe. */
#ifndef OCT_IMAGE_IMAGE_H
#define OCT_IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OCT_IMAGE_FILE_LIMIT ((size_t)256 << 20) /* bytes of a picture file */
#define OCT_IMAGE_PIXEL_LIMIT 178956970u         /* Pillow's own limit (twice its warning) */

typedef struct oct_image {
    int width, height; /* pixels, both >= 1 */
    uint8_t *rgb;      /* height rows of width * 3 bytes, no padding; oct_alloc'd */
} oct_image;

typedef enum oct_orientation {
    OCT_ORIENTATION_UPRIGHT, /* EXIF orientation (else XMP's) applied, as transformers' load_image */
    OCT_ORIENTATION_STORED   /* as stored, as timm's and COCO's readers */
} oct_orientation;

/* `name` is used in errors only. On failure *image is all zero. */
octet_status oct_image_decode(oct_image *image, const char *name, const uint8_t *data, size_t size,
                              oct_orientation orientation);
octet_status oct_image_read(oct_image *image, const char *path, oct_orientation orientation);
void oct_image_free(oct_image *image);
/* Writes JPEG (quality 90) for .jpg/.jpeg, PNG otherwise; whole or not at all. */
octet_status oct_image_write(const oct_image *image, const char *path);

/* Pillow's filters. */
typedef enum oct_filter {
    OCT_FILTER_NEAREST,
    OCT_FILTER_BOX,
    OCT_FILTER_BILINEAR,
    OCT_FILTER_HAMMING,
    OCT_FILTER_BICUBIC,
    OCT_FILTER_LANCZOS
} oct_filter;

/* A window of what Image.resize((full_width, full_height), filter, box) would give, to the byte: the pixels
 * [left, left + out->width) x [top, top + out->height) of the resized picture. Pixels of the window outside the resized
 * picture are zero (timm's centre crop pads so). out->width and out->height are set by the caller, out->rgb is made
 * here. Only the rows and columns that the window needs are computed. box NULL: the whole source. */
typedef struct oct_resize {
    int full_width, full_height; /* >= 1, up to 2^31 - 1: never allocated whole */
    int left, top;               /* may be negative */
    oct_filter filter;
    double box[4]; /* x0, y0, x1, y1 in source pixels; all zero: the whole source */
} oct_resize;
octet_status oct_image_resize(const oct_image *source, const oct_resize *resize, oct_image *out);
const char *oct_filter_name(oct_filter filter);

/* Boxes with a label and a score on a copy-in-place of the picture (cairo); boxes in pixels. */
typedef struct oct_drawn_box {
    float x0, y0, x1, y1, score;
    int index;         /* class, chooses the colour */
    const char *label; /* UTF-8 or any bytes */
} oct_drawn_box;
octet_status oct_image_draw_boxes(oct_image *image, const oct_drawn_box *boxes, size_t count);
/* Lines of text on a band under the picture: for classifiers. Makes a new rgb. */
octet_status oct_image_draw_caption(oct_image *image, const char *const *lines, size_t count);

#endif
