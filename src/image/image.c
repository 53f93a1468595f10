/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "image/codec.h"

typedef octet_status (*decode_function)(oct_decoded *decoded, const uint8_t *data, size_t size);

static bool starts(const uint8_t *data, size_t size, const char *prefix, size_t length) {
    return size >= length && memcmp(data, prefix, length) == 0;
}

static bool is_webp(const uint8_t *data, size_t size) {
    return starts(data, size, "RIFF", 4) && size >= 12 && memcmp(data + 8, "WEBP", 4) == 0;
}

/* The decoder that the first bytes ask for; NULL: none. */
static decode_function decoder_of(const uint8_t *data, size_t size) {
    if (starts(data, size, "\xff\xd8\xff", 3)) return oct_jpeg_decode;
    if (starts(data, size, "\x89PNG\r\n\x1a\n", 8)) return oct_png_decode;
    if (is_webp(data, size)) return oct_webp_decode;
    if (starts(data, size, "BM", 2)) return oct_bmp_decode;
    if (size >= 4 && data[1] == 0 && data[2] == 0 && data[3] == 0 && data[0] >= 12)
        return oct_bmp_decode; /* a bare DIB */
    if (size >= 2 && data[0] == 'P' && strchr("0123456fy", data[1]) != NULL && data[1] != 0) return oct_pnm_decode;
    return NULL;
}

/* Formats that people have, that Pillow or other readers open and octet does not: named in the refusal. */
static const struct {
    const char *name, *bytes;
    size_t offset, length;
} refused[] = {
    {"GIF", "GIF8", 0, 4},
    {"TIFF", "II*\0", 0, 4},
    {"TIFF", "MM\0*", 0, 4},
    {"BigTIFF", "II+\0", 0, 4},
    {"BigTIFF", "MM\0+", 0, 4},
    {"AVIF", "ftypavif", 4, 8},
    {"AVIF", "ftypavis", 4, 8},
    {"HEIF", "ftyphei", 4, 7},
    {"HEIF", "ftyphev", 4, 7},
    {"HEIF", "ftypmif1", 4, 8},
    {"HEIF", "ftypmsf1", 4, 8},
    {"JPEG XL", "\xff\x0a", 0, 2},
    {"JPEG XL", "\0\0\0\x0cJXL ", 0, 8},
    {"JPEG 2000", "\0\0\0\x0cjP  ", 0, 8},
    {"JPEG 2000", "\xff\x4f\xff\x51", 0, 4},
    {"Photoshop", "8BPS", 0, 4},
    {"icon", "\0\0\x01\0", 0, 4},
    {"cursor", "\0\0\x02\0", 0, 4},
    {"Radiance HDR", "#?RADIANCE", 0, 10},
    {"OpenEXR", "\x76\x2f\x31\x01", 0, 4},
    {"QOI", "qoif", 0, 4},
    {"DDS", "DDS ", 0, 4},
    {"PCX", "\x0a\x05\x01", 0, 3},
    {"farbfeld", "farbfeld", 0, 8},
    {"PDF", "%PDF", 0, 4},
    {"PostScript", "%!PS", 0, 4},
    {"SVG", "<svg", 0, 4},
    {"XML", "<?xml", 0, 5},
    {"FITS", "SIMPLE", 0, 6},
    {"RIFF", "RIFF", 0, 4},
    {"NumPy", "\x93NUMPY", 0, 6},
    {"zip", "PK\x03\x04", 0, 4},
    {"gzip", "\x1f\x8b", 0, 2},
};

static octet_status refuse(const uint8_t *data, size_t size) {
    if (size == 0) return oct_fail(OCTET_BAD_FORMAT, "the picture file is empty");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (size < refused[i].offset + refused[i].length) continue;
        if (memcmp(data + refused[i].offset, refused[i].bytes, refused[i].length) != 0) continue;
        oct_fail(OCTET_UNSUPPORTED, "cannot read %s pictures", refused[i].name);
        return oct_hint("JPEG, PNG, WebP, BMP and PPM are read");
    }
    oct_fail(OCTET_BAD_FORMAT, "not a picture: starts with bytes %02x %02x %02x %02x", data[0], size > 1 ? data[1] : 0u,
             size > 2 ? data[2] : 0u, size > 3 ? data[3] : 0u);
    return oct_hint("JPEG, PNG, WebP, BMP and PPM are read");
}

octet_status oct_image_check_size(uint64_t width, uint64_t height) {
    if (width == 0 || height == 0)
        return oct_fail(OCTET_BAD_FORMAT, "empty picture: %llu x %llu pixels", (unsigned long long)width,
                        (unsigned long long)height);
    if (width > INT32_MAX || height > INT32_MAX || width * height > OCT_IMAGE_PIXEL_LIMIT)
        return oct_fail(OCTET_LIMIT, "picture of %llu x %llu pixels is over the limit of %u pixels",
                        (unsigned long long)width, (unsigned long long)height, OCT_IMAGE_PIXEL_LIMIT);
    return OCTET_OK;
}

octet_status oct_image_make(oct_image *image, uint64_t width, uint64_t height) {
    OCT_TRY(oct_image_check_size(width, height));
    image->rgb = oct_alloc((size_t)(width * height) * 3);
    if (image->rgb == NULL) return oct_fail_memory();
    image->width = (int)width;
    image->height = (int)height;
    return OCTET_OK;
}

static inline void swap_pixels(uint8_t *a, uint8_t *b) {
    for (int c = 0; c < 3; c++) {
        uint8_t t = a[c];
        a[c] = b[c];
        b[c] = t;
    }
}

static void flip_rows(oct_image *image) {
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = image->rgb + (size_t)y * (size_t)image->width * 3;
        for (int l = 0, r = image->width - 1; l < r; l++, r--) swap_pixels(row + l * 3, row + r * 3);
    }
}

static void flip_columns(oct_image *image) {
    size_t stride = (size_t)image->width * 3;
    for (int t = 0, b = image->height - 1; t < b; t++, b--) {
        uint8_t *top = image->rgb + (size_t)t * stride, *bottom = image->rgb + (size_t)b * stride;
        for (size_t i = 0; i < stride; i++) {
            uint8_t v = top[i];
            top[i] = bottom[i];
            bottom[i] = v;
        }
    }
}

/* Rows become columns, in tiles so that reads and writes both stay near. */
static octet_status transpose(oct_image *image) {
    enum { TILE = 32 };
    oct_image turned = {0};
    OCT_TRY(oct_image_make(&turned, (uint64_t)image->height, (uint64_t)image->width));
    for (int y0 = 0; y0 < image->height; y0 += TILE) {
        int y1 = y0 + TILE < image->height ? y0 + TILE : image->height;
        for (int x0 = 0; x0 < image->width; x0 += TILE) {
            int x1 = x0 + TILE < image->width ? x0 + TILE : image->width;
            for (int y = y0; y < y1; y++) {
                for (int x = x0; x < x1; x++) {
                    const uint8_t *from = image->rgb + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
                    uint8_t *to = turned.rgb + ((size_t)x * (size_t)turned.width + (size_t)y) * 3;
                    to[0] = from[0];
                    to[1] = from[1];
                    to[2] = from[2];
                }
            }
        }
    }
    oct_image_free(image);
    *image = turned;
    return OCTET_OK;
}

/* Undoes EXIF orientation 1 .. 8. */
static octet_status turn_upright(oct_image *image, int orientation) {
    if (orientation >= 5) OCT_TRY(transpose(image)); /* 5 is that alone; 6, 7, 8 flip what it gives */
    if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) flip_rows(image);
    if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) flip_columns(image);
    return OCTET_OK;
}

octet_status oct_image_decode(oct_image *image, const char *name, const uint8_t *data, size_t size,
                              oct_orientation orientation) {
    *image = (oct_image){0};
    oct_decoded decoded = {.orientation = 1};
    decode_function decode = decoder_of(data, size);
    octet_status status = decode != NULL ? decode(&decoded, data, size) : refuse(data, size);
    if (status == OCTET_OK && orientation == OCT_ORIENTATION_UPRIGHT)
        status = turn_upright(&decoded.image, decoded.orientation);
    if (status != OCTET_OK) {
        oct_image_free(&decoded.image);
        return oct_error_prefix("%s", name);
    }
    *image = decoded.image;
    return OCTET_OK;
}

octet_status oct_image_read(oct_image *image, const char *path, oct_orientation orientation) {
    *image = (oct_image){0};
    uint8_t *data = NULL;
    size_t size = 0;
    OCT_TRY(oct_file_read(path, OCT_IMAGE_FILE_LIMIT, &data, &size));
    octet_status status = oct_image_decode(image, path, data, size, orientation);
    oct_free(data);
    return status;
}

void oct_image_free(oct_image *image) {
    oct_free(image->rgb);
    *image = (oct_image){0};
}
