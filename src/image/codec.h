/* SPDX-License-Identifier: Apache-2.0 */
/* Between the decoders of this room. Each tells its format by the first bytes, decodes as Pillow does, and reports the
 * orientation that Pillow's exif_transpose would find; image.c chooses the decoder and turns the picture. */
#ifndef OCT_IMAGE_CODEC_H
#define OCT_IMAGE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"

/* What a decoder gives: the pixels as stored, and the EXIF orientation (1 where there is none, or it is not 1 .. 8). */
typedef struct oct_decoded {
    oct_image image;
    int orientation;
} oct_decoded;

/* On failure decoded->image may hold pixels; the caller frees them either way. */
octet_status oct_jpeg_decode(oct_decoded *decoded, const uint8_t *data, size_t size);
octet_status oct_png_decode(oct_decoded *decoded, const uint8_t *data, size_t size);
octet_status oct_webp_decode(oct_decoded *decoded, const uint8_t *data, size_t size);
octet_status oct_bmp_decode(oct_decoded *decoded, const uint8_t *data, size_t size);
octet_status oct_pnm_decode(oct_decoded *decoded, const uint8_t *data, size_t size);

/* Makes image->rgb, contents undefined: BAD_FORMAT for an empty picture, LIMIT above OCT_IMAGE_PIXEL_LIMIT. */
octet_status oct_image_make(oct_image *image, uint64_t width, uint64_t height);
octet_status oct_image_check_size(uint64_t width, uint64_t height);

/* Metadata as Pillow collects it; NULL and 0 where absent. */
typedef struct oct_metadata {
    const uint8_t *exif; /* the EXIF block, with or without its "Exif\0\0" */
    size_t exif_size;
    const uint8_t *xmp;
    size_t xmp_size;
} oct_metadata;
/* The orientation by Pillow's rules: EXIF's tag 274 of the first directory, else XMP's tiff:Orientation; 1 if neither.
 */
int oct_metadata_orientation(const oct_metadata *metadata);

/* What Pillow learns from a JPEG's markers before it decodes. */
typedef struct oct_jpeg_header {
    int width, height, layers;
    oct_metadata metadata;
    uint8_t *joined; /* EXIF spread over several markers, oct_alloc'd; else NULL */
} oct_jpeg_header;
octet_status oct_jpeg_header_read(oct_jpeg_header *header, const uint8_t *data, size_t size);
void oct_jpeg_header_free(oct_jpeg_header *header);

static inline uint32_t oct_be16(const uint8_t *p) {
    return (uint32_t)p[0] << 8 | p[1];
}
static inline uint32_t oct_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint32_t oct_le16(const uint8_t *p) {
    return (uint32_t)p[1] << 8 | p[0];
}
static inline uint32_t oct_le32(const uint8_t *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

#endif
