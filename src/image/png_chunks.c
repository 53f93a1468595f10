/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png_chunks.h"

#include <string.h>

#include "base/alloc.h"

typedef struct chunk {
    const uint8_t *name;
    const uint8_t *data;
    size_t size; /* as promised; `data` may hold less only for image data */
} chunk;

enum { PROFILE, XMP_TEXT, XMP };
enum { TEXT_LIMIT = 1 << 20 }; /* Pillow's MAX_TEXT_CHUNK */

static bool named(const chunk *c, const char *name) {
    return memcmp(c->name, name, 4) == 0;
}

static octet_status bad_chunk(const chunk *c, const char *what) {
    return oct_fail(OCTET_BAD_FORMAT, "%s PNG chunk %.4s", what, (const char *)c->name);
}

static uint32_t crc_of(const uint8_t *data, size_t size) {
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

static bool is_word(uint8_t b) {
    return (b >= '0' && b <= '9') || (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') || b == '_';
}

/* The chunk header at png->at; false: none, or no name. */
static bool next_chunk(const oct_png *png, chunk *c) {
    if (png->at > png->size || png->size - png->at < 8) return false;
    *c = (chunk){png->data + png->at + 4, png->data + png->at + 8, oct_be32(png->data + png->at)};
    return is_word(c->name[0]) && is_word(c->name[1]) && is_word(c->name[2]) && is_word(c->name[3]);
}

static octet_status read_header(oct_png *png, const chunk *c) {
    if (c->size < 13) return bad_chunk(c, "truncated");
    png->width = oct_be32(c->data);
    png->height = oct_be32(c->data + 4);
    png->depth = c->data[8];
    png->colour = c->data[9];
    png->interlaced = c->data[12] != 0;
    if (c->data[11] != 0) return oct_fail(OCTET_UNSUPPORTED, "unknown PNG filter category %d", c->data[11]);
    return OCTET_OK;
}

/* Transparency is not asked for, but where it names a colour it must be there. */
static octet_status read_transparency(const oct_png *png, const chunk *c) {
    if ((png->colour == 0 && c->size < 2) || (png->colour == 2 && c->size < 6)) return bad_chunk(c, "truncated");
    return OCTET_OK;
}

/* Bytes up to the first zero, or all. */
static size_t length_of_key(const uint8_t *data, size_t size) {
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    return zero != NULL ? (size_t)(zero - data) : size;
}

static bool key_is(const chunk *c, size_t length, const char *key) {
    return length == strlen(key) && memcmp(c->data, key, length) == 0;
}

/* Keeps a text under one of the three keys that can carry an orientation; owned: NULL or the text's memory. */
static void keep(oct_png *png, int which, const uint8_t *text, size_t size, uint8_t *owned) {
    oct_free(png->owned[which]);
    png->owned[which] = owned;
    if (which == PROFILE) {
        png->profile = text;
        png->profile_size = size;
    } else if (which == XMP_TEXT) {
        png->xmp_text = text;
        png->xmp_text_size = size;
    } else {
        png->metadata.xmp = text;
        png->metadata.xmp_size = size;
    }
}

static octet_status read_text(oct_png *png, const chunk *c) {
    size_t key = length_of_key(c->data, c->size);
    bool packed = named(c, "zTXt");
    const uint8_t *text = key < c->size ? c->data + key + 1 : c->data + c->size;
    size_t size = (size_t)(c->data + c->size - text);
    if (packed && size > 0 && text[0] != 0) return bad_chunk(c, "unknown compression in");
    if (!packed && key_is(c, key, "exif")) {
        png->metadata.exif = text;
        png->metadata.exif_size = size;
    }
    int which = key_is(c, key, "Raw profile type exif") ? PROFILE : key_is(c, key, "XML:com.adobe.xmp") ? XMP_TEXT : -1;
    if (which < 0) return OCTET_OK;
    uint8_t *owned = NULL;
    if (packed) {
        bool too_long = false;
        OCT_TRY(oct_png_inflate(text + (size > 0), size - (size > 0), TEXT_LIMIT, &owned, &size, &too_long));
        if (too_long) {
            oct_free(owned);
            return bad_chunk(c, "too much text in");
        }
        text = owned;
    }
    keep(png, which, text, size, owned);
    return OCTET_OK;
}

static bool is_utf8(const uint8_t *text, size_t size) {
    for (size_t i = 0; i < size;) {
        uint8_t b = text[i];
        size_t more = b < 0x80                ? 0
                      : b >= 0xc2 && b < 0xe0 ? 1
                      : b >= 0xe0 && b < 0xf0 ? 2
                      : b >= 0xf0 && b < 0xf5 ? 3
                                              : 9;
        if (more > size - i - 1) return false;
        for (size_t k = 1; k <= more; k++) {
            if ((text[i + k] & 0xc0) != 0x80) return false;
        }
        if ((b == 0xe0 && text[i + 1] < 0xa0) || (b == 0xed && text[i + 1] >= 0xa0) ||
            (b == 0xf0 && text[i + 1] < 0x90) || (b == 0xf4 && text[i + 1] >= 0x90))
            return false;
        i += more + 1;
    }
    return true;
}

/* International text: only an XMP packet matters here. */
static octet_status read_international(oct_png *png, const chunk *c) {
    size_t key = length_of_key(c->data, c->size);
    if (!key_is(c, key, "XML:com.adobe.xmp") || c->size - key < 3) return OCTET_OK;
    const uint8_t *rest = c->data + key + 3, *end = c->data + c->size;
    bool packed = c->data[key + 1] != 0;
    if (packed && c->data[key + 2] != 0) return OCTET_OK;
    const uint8_t *language = rest;
    for (int i = 0; i < 2; i++) {
        const uint8_t *zero = rest < end ? memchr(rest, 0, (size_t)(end - rest)) : NULL;
        if (zero == NULL) return OCTET_OK;
        rest = zero + 1;
    }
    bool clean = is_utf8(language, (size_t)(rest - language));
    uint8_t *owned = NULL;
    size_t size = (size_t)(end - rest);
    if (packed) {
        bool too_long = false;
        OCT_TRY(oct_png_inflate(rest, size, TEXT_LIMIT, &owned, &size, &too_long));
        if (too_long) {
            oct_free(owned);
            return bad_chunk(c, "too much text in");
        }
        if (owned == NULL) return OCTET_OK;
        rest = owned;
    }
    if (clean && is_utf8(rest, size))
        keep(png, XMP_TEXT, rest, size, owned); /* the same text under both keys */
    else
        keep(png, XMP, rest, size, owned);
    return OCTET_OK;
}

static octet_status read_frame_control(oct_png *png, const chunk *c) {
    if (c->size < 26) return bad_chunk(c, "truncated");
    int64_t sequence = oct_be32(c->data);
    if (sequence != png->sequence + 1) return bad_chunk(c, "out of order");
    png->sequence = sequence;
    uint64_t width = oct_be32(c->data + 4), height = oct_be32(c->data + 8);
    uint64_t x = oct_be32(c->data + 12), y = oct_be32(c->data + 16);
    if (x + width > png->width || y + height > png->height) return bad_chunk(c, "frame outside the picture in");
    png->frame[0] = (uint32_t)x;
    png->frame[1] = (uint32_t)y;
    png->frame[2] = (uint32_t)(x + width);
    png->frame[3] = (uint32_t)(y + height);
    png->framed = true;
    return OCTET_OK;
}

static octet_status read_animation_control(oct_png *png, const chunk *c) {
    if (c->size < 8) return bad_chunk(c, "truncated");
    uint32_t frames = oct_be32(c->data);
    if (png->frames >= 0)
        png->frames = -1; /* two of them: not an animation */
    else if (frames > 0 && frames <= 0x80000000u)
        png->frames = frames;
    return OCTET_OK;
}

static octet_status read_profile(const chunk *c) {
    size_t name = length_of_key(c->data, c->size);
    size_t method = name == c->size ? 0 : name + 1; /* Pillow's find gives -1 where there is no zero */
    if (method >= c->size) return bad_chunk(c, "truncated");
    if (c->data[method] != 0) return bad_chunk(c, "unknown compression in");
    return OCTET_OK;
}

/* A chunk whose bytes are all there. */
static octet_status read_chunk(oct_png *png, const chunk *c) {
    static const struct {
        char name[5];
        uint8_t least;
    } sized[] = {{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}};
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++) {
        if (named(c, sized[i].name) && c->size < sized[i].least) return bad_chunk(c, "truncated");
    }
    if (named(c, "IHDR")) return read_header(png, c);
    if (named(c, "tRNS")) return read_transparency(png, c);
    if (named(c, "iCCP")) return read_profile(c);
    if (named(c, "tEXt") || named(c, "zTXt")) return read_text(png, c);
    if (named(c, "iTXt")) return read_international(png, c);
    if (named(c, "fcTL")) return read_frame_control(png, c);
    if (named(c, "acTL")) return read_animation_control(png, c);
    if (named(c, "PLTE") && png->colour == 3) {
        png->palette = c->data;
        png->palette_size = c->size;
    }
    if (named(c, "eXIf")) {
        png->metadata.exif = c->data;
        png->metadata.exif_size = c->size;
    }
    return OCTET_OK;
}

static octet_status read_animation_data(oct_png *png, chunk *c) {
    if (c->size < 4 || (size_t)(png->data + png->size - c->data) < 4) return bad_chunk(c, "truncated");
    int64_t sequence = oct_be32(c->data);
    if (png->sequence < 0 || sequence != png->sequence + 1) return bad_chunk(c, "out of order");
    png->sequence = sequence;
    c->data += 4;
    c->size -= 4;
    return OCTET_OK;
}

static octet_status open_chunks(oct_png *png) {
    chunk c;
    for (;;) {
        if (!next_chunk(png, &c)) return oct_fail(OCTET_BAD_FORMAT, "broken PNG: no chunk at byte %zu", png->at);
        if (named(&c, "IEND")) return oct_fail(OCTET_BAD_FORMAT, "PNG without image data");
        if (named(&c, "fdAT")) OCT_TRY(read_animation_data(png, &c));
        if (named(&c, "fdAT") || named(&c, "IDAT")) break;
        if (png->size - png->at - 8 < c.size) return bad_chunk(&c, "truncated");
        OCT_TRY(read_chunk(png, &c));
        if (png->size - png->at - 12 < c.size || png->size - png->at < 12) return bad_chunk(&c, "truncated");
        if (oct_be32(c.data + c.size) != crc_of(c.name, c.size + 4)) return bad_chunk(&c, "bad check sum in");
        png->at += c.size + 12;
    }
    png->data_at = (size_t)(c.data - png->data);
    png->data_size = c.size;
    if (!png->framed) {
        if (png->frames >= 0) png->frames++; /* the picture is not one of the animation's frames */
        png->frame[0] = png->frame[1] = 0;
        png->frame[2] = png->width;
        png->frame[3] = png->height;
    }
    return OCTET_OK;
}

octet_status oct_png_open(oct_png *png, const uint8_t *data, size_t size) {
    *png = (oct_png){.data = data, .size = size, .at = 8, .colour = -1, .sequence = -1, .frames = -1};
    octet_status status = open_chunks(png);
    if (status != OCTET_OK) oct_png_close(png);
    return status;
}

octet_status oct_png_finish(oct_png *png) {
    chunk c;
    while (next_chunk(png, &c) && !named(&c, "IEND")) {
        if (named(&c, "fcTL") && png->frames > 1) return OCTET_OK; /* the next frame begins */
        size_t there = png->size - png->at - 8;
        if (there < c.size) return bad_chunk(&c, "truncated");
        if (named(&c, "fdAT")) {
            OCT_TRY(read_animation_data(png, &c));
            png->at += 4;
        } else if (!named(&c, "IDAT")) {
            OCT_TRY(read_chunk(png, &c));
        }
        png->at += c.size + 12;
    }
    return OCTET_OK;
}

void oct_png_close(oct_png *png) {
    for (int i = 0; i < 3; i++) oct_free(png->owned[i]);
    *png = (oct_png){0};
}

static int digit_of(uint8_t b) {
    if (b >= '0' && b <= '9') return b - '0';
    if (b >= 'a' && b <= 'f') return b - 'a' + 10;
    if (b >= 'A' && b <= 'F') return b - 'A' + 10;
    return -1;
}

/* The hexadecimal digits after the third line feed; *size 0 where they are not all digits. */
static octet_status unhex(const uint8_t *text, size_t length, uint8_t **block, size_t *size) {
    size_t at = 0;
    *size = 0;
    for (int line = 0; line < 3 && at < length; at++) line += text[at] == '\n';
    *block = oct_alloc(length / 2 + 1);
    if (*block == NULL) return oct_fail_memory();
    while (at < length) {
        uint8_t b = text[at];
        if (b == ' ' || (b >= '\t' && b <= '\r')) {
            at++;
            continue;
        }
        int high = digit_of(b), low;
        at++;
        while (at < length && text[at] == '\n') at++; /* lines are joined before they are read */
        low = at < length ? digit_of(text[at]) : -1;
        if (high < 0 || low < 0) {
            *size = 0;
            return OCTET_OK;
        }
        (*block)[(*size)++] = (uint8_t)(high << 4 | low);
        at++;
    }
    return OCTET_OK;
}

octet_status oct_png_orientation(const oct_png *png, int *orientation) {
    oct_metadata metadata = png->metadata;
    uint8_t *block = NULL;
    if (metadata.exif == NULL && png->profile != NULL) {
        OCT_TRY(unhex(png->profile, png->profile_size, &block, &metadata.exif_size));
        metadata.exif = block;
    }
    if (png->xmp_text_size > 0) {
        metadata.xmp = png->xmp_text;
        metadata.xmp_size = png->xmp_text_size;
    }
    *orientation = oct_metadata_orientation(&metadata);
    oct_free(block);
    return OCTET_OK;
}
