/* SPDX-License-Identifier: Apache-2.0 */
/* A PNG file's chunks by Pillow's rules, which are not libpng's: every check sum before the image data counts and none
 * after, some chunks must be well formed though nobody needs them, a missing end is fine. */
#ifndef OCT_IMAGE_PNG_CHUNKS_H
#define OCT_IMAGE_PNG_CHUNKS_H

#include "image/codec.h"

typedef struct oct_png {
    const uint8_t *data;
    size_t size;
    size_t at;        /* of the next chunk's length field */
    size_t data_at;   /* first byte of the first image data */
    size_t data_size; /* bytes of that chunk, as promised (may pass the end of the file) */
    uint32_t width, height;
    int depth, colour;
    bool interlaced;
    uint32_t frame[4]; /* x0, y0, x1, y1 of what the image data covers: an animation's first frame may be smaller */
    bool framed;
    const uint8_t *palette;
    size_t palette_size;
    int64_t sequence; /* of the last animation chunk, -1: none */
    int64_t frames;   /* of an animation, -1: not one */
    oct_metadata metadata;
    const uint8_t *profile; /* "Raw profile type exif", a text with the EXIF block in hexadecimal */
    size_t profile_size;
    const uint8_t *xmp_text; /* "XML:com.adobe.xmp": asked before metadata.xmp */
    size_t xmp_text_size;
    uint8_t *owned[3]; /* inflated texts: profile, xmp_text, metadata.xmp */
} oct_png;

/* Up to the first image data. On failure nothing is owed. */
octet_status oct_png_open(oct_png *png, const uint8_t *data, size_t size);
/* What follows the image data, from png->at. */
octet_status oct_png_finish(oct_png *png);
void oct_png_close(oct_png *png);
/* The orientation, once all chunks are read. */
octet_status oct_png_orientation(const oct_png *png, int *orientation);
/* A zlib stream, as zTXt and iTXt chunks hold; *bytes NULL where it is broken. More than `limit` bytes are *too_long.
 */
octet_status oct_png_inflate(const uint8_t *data, size_t size, size_t limit, uint8_t **bytes, size_t *length,
                             bool *too_long);

#endif
