/* SPDX-License-Identifier: Apache-2.0 */
/* PBM, PGM and PPM (P1 .. P6), any maxval, as Pillow scales them: one to three channels of 8 bits to 255; a grey
 * picture above maxval 255 to 65535, and its conversion to RGB then clips at 255. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "image/codec.h"

typedef struct pnm {
    const uint8_t *data;
    size_t size, at;
    int kind; /* 1 .. 6 */
    uint64_t width, height;
    uint32_t maxval;
    int bands;
} pnm;

static bool is_space(uint8_t b) {
    return b == ' ' || (b >= '\t' && b <= '\r');
}

static octet_status truncated(void) {
    return oct_fail(OCTET_BAD_FORMAT, "truncated PPM");
}

/* Python's int() of at most ten bytes: a sign, digits, single underscores between them. */
static bool number_of(const uint8_t *token, size_t length, int64_t *value) {
    size_t i = length > 0 && (token[0] == '+' || token[0] == '-') ? 1 : 0;
    bool digit = false;
    *value = 0;
    for (; i < length; i++) {
        if (token[i] == '_' && digit && i + 1 < length) {
            digit = false;
            continue;
        }
        if (token[i] < '0' || token[i] > '9') return false;
        *value = *value * 10 + (token[i] - '0');
        digit = true;
    }
    if (digit && token[0] == '-') *value = -*value;
    return digit;
}

/* A number of the header: up to white space; comments may stand even inside it. */
static octet_status read_number(pnm *p, int64_t *value) {
    uint8_t token[16];
    size_t length = 0;
    while (length <= 10 && p->at < p->size) {
        uint8_t b = p->data[p->at++];
        if (is_space(b)) {
            if (length > 0) break;
        } else if (b == '#') {
            while (p->at < p->size && p->data[p->at] != '\r' && p->data[p->at] != '\n') p->at++;
            if (p->at < p->size) p->at++;
        } else {
            token[length++] = b;
        }
    }
    if (length == 0) return truncated();
    if (length > 10 || !number_of(token, length, value))
        return oct_fail(OCTET_BAD_FORMAT, "PPM header with \"%.*s\" for a number", (int)length, (const char *)token);
    return OCTET_OK;
}

static octet_status read_header(pnm *p) {
    uint8_t magic[6];
    size_t length = 0;
    while (length < sizeof magic && p->at < p->size) {
        uint8_t b = p->data[p->at++];
        if (is_space(b)) break;
        magic[length++] = b;
    }
    if (length == 2 && magic[1] == 'f') return oct_fail(OCTET_UNSUPPORTED, "cannot read PFM pictures");
    if (length != 2 || magic[1] < '1' || magic[1] > '6')
        return oct_fail(OCTET_BAD_FORMAT, "not a PPM picture: starts with \"%.*s\"", (int)length, (const char *)magic);
    p->kind = magic[1] - '0';
    p->bands = p->kind == 3 || p->kind == 6 ? 3 : 1;
    int64_t width, height, maxval = 1;
    OCT_TRY(read_number(p, &width));
    OCT_TRY(read_number(p, &height));
    if (width < 0 || height < 0) return oct_fail(OCTET_BAD_FORMAT, "PPM with a negative size");
    p->width = (uint64_t)width;
    p->height = (uint64_t)height;
    if (p->kind != 1 && p->kind != 4) OCT_TRY(read_number(p, &maxval));
    if (maxval < 1 || maxval > 65535)
        return oct_fail(OCTET_BAD_FORMAT, "PPM with maxval %lld, not 1 to 65535", (long long)maxval);
    p->maxval = (uint32_t)maxval;
    return oct_image_check_size(p->width, p->height);
}

/* Pillow's scaling of a sample, rounded half to even, then clipped to 8 bits. */
static uint8_t scale(const pnm *p, uint32_t value) {
    double most = p->bands == 1 && p->maxval > 255 ? 65535 : 255;
    double scaled = nearbyint((double)value / p->maxval * most);
    return scaled > 255 ? 255 : (uint8_t)scaled;
}

static octet_status decode_bits(const pnm *p, oct_image *image) {
    uint64_t stride = (p->width + 7) / 8;
    if (p->size - p->at < stride * p->height) return truncated();
    OCT_TRY(oct_image_make(image, p->width, p->height));
    uint8_t *rgb = image->rgb;
    for (uint64_t y = 0; y < p->height; y++) {
        const uint8_t *row = p->data + p->at + y * stride;
        for (uint64_t x = 0; x < p->width; x++, rgb += 3)
            rgb[0] = rgb[1] = rgb[2] = row[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
    }
    return OCTET_OK;
}

static octet_status decode_binary(const pnm *p, oct_image *image) {
    size_t bytes = p->maxval < 256 ? 1 : 2, bands = (size_t)p->bands;
    uint64_t pixels = p->width * p->height;
    if (p->size - p->at < pixels * bands * bytes) return truncated();
    OCT_TRY(oct_image_make(image, p->width, p->height));
    const uint8_t *in = p->data + p->at;
    uint8_t table[256];
    for (uint32_t v = 0; v < 256; v++) table[v] = scale(p, v);
    for (uint64_t i = 0; i < pixels; i++) {
        for (size_t c = 0; c < 3; c++) {
            const uint8_t *sample = in + (bands == 3 ? c : 0) * bytes;
            image->rgb[i * 3 + c] = bytes == 1 ? table[*sample] : scale(p, oct_be16(sample));
        }
        in += bands * bytes;
    }
    return OCTET_OK;
}

/* The next byte that is not in a comment; -1: the end. */
static int next_byte(pnm *p) {
    while (p->at < p->size && p->data[p->at] == '#') {
        while (p->at < p->size && p->data[p->at] != '\r' && p->data[p->at] != '\n') p->at++;
        if (p->at < p->size) p->at++;
    }
    return p->at < p->size ? p->data[p->at++] : -1;
}

/* Plain text needs a byte a sample at least, two where they are numbers. */
static octet_status check_plain(const pnm *p) {
    uint64_t samples = p->width * p->height * (uint64_t)p->bands;
    uint64_t least = p->kind == 1 ? samples : samples * 2 - 1;
    return p->size - p->at < least ? truncated() : OCTET_OK;
}

/* Pillow reads a mebibyte at a time and checks all of it, also what follows the last sample. */
static octet_status decode_plain_bits(pnm *p, oct_image *image) {
    const size_t block = (size_t)1 << 20, start = p->at;
    uint64_t pixels = p->width * p->height, done = 0;
    size_t end = p->size;
    while (p->at < end) {
        int b = next_byte(p);
        if (b < 0) break;
        if (is_space((uint8_t)b)) continue;
        if (b != '0' && b != '1') return oct_fail(OCTET_BAD_FORMAT, "PBM with a sample that is neither 0 nor 1");
        if (done < pixels) memset(image->rgb + done++ * 3, b == '1' ? 0 : 255, 3);
        if (done == pixels && end == p->size && start + ((p->at - 1 - start) / block + 1) * block < end)
            end = start + ((p->at - 1 - start) / block + 1) * block;
    }
    return done < pixels ? truncated() : OCTET_OK;
}

static octet_status decode_plain(pnm *p, oct_image *image) {
    uint64_t samples = p->width * p->height * (uint64_t)p->bands;
    uint8_t token[16];
    for (uint64_t i = 0; i < samples; i++) {
        size_t length = 0;
        int b = next_byte(p);
        while (b >= 0 && is_space((uint8_t)b)) b = next_byte(p);
        for (; b >= 0 && !is_space((uint8_t)b); b = next_byte(p)) {
            if (length > 10) break;
            token[length++] = (uint8_t)b;
        }
        if (length == 0) return truncated();
        int64_t value = -1;
        if (length > 10 || !number_of(token, length, &value))
            return oct_fail(OCTET_BAD_FORMAT, "PPM with \"%.*s\" for a sample", (int)length, (const char *)token);
        if (value < 0 || value > p->maxval)
            return oct_fail(OCTET_BAD_FORMAT, "PPM sample %lld outside 0 to %u", (long long)value, p->maxval);
        uint8_t level = scale(p, (uint32_t)value);
        if (p->bands == 3)
            image->rgb[i] = level;
        else
            memset(image->rgb + i * 3, level, 3);
    }
    return OCTET_OK;
}

octet_status oct_pnm_decode(oct_decoded *decoded, const uint8_t *data, size_t size) {
    pnm p = {.data = data, .size = size};
    OCT_TRY(read_header(&p));
    if (p.kind == 4) return decode_bits(&p, &decoded->image);
    if (p.kind > 4) return decode_binary(&p, &decoded->image);
    OCT_TRY(check_plain(&p));
    OCT_TRY(oct_image_make(&decoded->image, p.width, p.height));
    return p.kind == 1 ? decode_plain_bits(&p, &decoded->image) : decode_plain(&p, &decoded->image);
}
