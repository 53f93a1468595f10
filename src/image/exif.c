/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation of a picture, found where Pillow finds it: tag 274 of the first directory of the EXIF block (a TIFF
 * file in small), else the first tiff:Orientation of the XMP text. A block that Pillow cannot open gives 1. */
#include <math.h>
#include <string.h>

#include "image/codec.h"

enum { TAG_ORIENTATION = 274 };

typedef struct tiff {
    const uint8_t *data;
    size_t size;
    bool big;
} tiff;

static uint32_t get16(const tiff *t, size_t at) {
    return t->big ? oct_be16(t->data + at) : oct_le16(t->data + at);
}

static uint32_t get32(const tiff *t, size_t at) {
    return t->big ? oct_be32(t->data + at) : oct_le32(t->data + at);
}

/* Bytes of one value of a TIFF type; 0: a type that Pillow passes over. */
static uint32_t type_size(uint32_t type) {
    static const uint8_t sizes[17] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    return type < 17 ? sizes[type] : 0;
}

/* The first value at `at` as a number, NAN for texts and bytes (which never equal an orientation). */
static double value_of(const tiff *t, uint32_t type, size_t at) {
    uint32_t low = type_size(type) >= 4 ? get32(t, at) : 0;
    uint32_t high = type_size(type) == 8 ? get32(t, at + 4) : 0;
    uint64_t wide = t->big ? (uint64_t)low << 32 | high : (uint64_t)high << 32 | low;
    float single;
    double real;
    switch (type) {
    case 3:
        return get16(t, at);
    case 4:
    case 13:
        return low;
    case 5:
        return high == 0 ? NAN : (double)low / high;
    case 6:
        return (int8_t)t->data[at];
    case 8:
        return (int16_t)get16(t, at);
    case 9:
        return (int32_t)low;
    case 10:
        return high == 0 ? NAN : (double)(int32_t)low / (int32_t)high;
    case 11:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    case 12:
        memcpy(&real, &wide, sizeof real);
        return real;
    case 16:
        return (double)wide;
    default:
        return NAN;
    }
}

/* Whether the block holds the tag; *orientation is its value if that is 1 .. 8, else 1. */
static bool find_orientation(const tiff *t, int *orientation) {
    uint64_t at = get32(t, 4);
    if (at > t->size || t->size - at < 2) return false;
    uint32_t count = get16(t, (size_t)at);
    at += 2;
    uint64_t total = 0; /* bytes kept outside the directory: Pillow passes over tags that claim more than there is */
    for (uint32_t i = 0; i < count; i++, at += 12) {
        if (t->size - at < 12) return false;
        uint32_t tag = get16(t, (size_t)at), type = get16(t, (size_t)at + 2), unit = type_size(type);
        uint64_t size = (uint64_t)get32(t, (size_t)at + 4) * unit, where = at + 8;
        if (unit == 0) continue;
        if (size > 4) {
            where = get32(t, (size_t)at + 8);
            total += size;
            if (total > t->size) continue;
            if (where > t->size || t->size - where < size) return false;
        }
        if (tag != TAG_ORIENTATION || size == 0) continue;
        double value = value_of(t, type, (size_t)where);
        for (int k = 2; k <= 8; k++) {
            if (value == k) *orientation = k;
        }
        return true;
    }
    return false;
}

static int orientation_of_xmp(const uint8_t *xmp, size_t size) {
    static const char key[] = "tiff:Orientation";
    const size_t length = sizeof key - 1;
    for (size_t i = 0; i + length + 2 <= size; i++) {
        const uint8_t *found = memchr(xmp + i, 't', size - i);
        if (found == NULL) break;
        i = (size_t)(found - xmp);
        if (i + length + 2 > size) break;
        if (memcmp(found, key, length) != 0) continue;
        const uint8_t *p = found + length, *end = xmp + size;
        if (*p == '>')
            p += 1;
        else if (end - p >= 2 && p[0] == '=' && p[1] == '"')
            p += 2;
        else
            continue;
        if (p >= end || *p < '0' || *p > '9') continue;
        return *p >= '2' && *p <= '8' ? *p - '0' : 1;
    }
    return 1;
}

int oct_metadata_orientation(const oct_metadata *metadata) {
    static const char prefix[6] = {'E', 'x', 'i', 'f', 0, 0};
    const uint8_t *data = metadata->exif;
    size_t size = metadata->exif_size;
    for (int i = 0; i < 2 && size >= sizeof prefix && memcmp(data, prefix, sizeof prefix) == 0; i++) {
        data += sizeof prefix;
        size -= sizeof prefix;
    }
    if (size > 0) {
        static const char heads[4][5] = {"MM\0*", "II*\0", "MM*\0", "II\0*"};
        bool known = false;
        for (int i = 0; i < 4; i++) known = known || (size >= 8 && memcmp(data, heads[i], 4) == 0);
        if (!known) return 1; /* Pillow raises here, and XMP is not asked */
        tiff t = {data, size, data[0] == 'M'};
        int orientation = 1;
        if (find_orientation(&t, &orientation)) return orientation;
    }
    if (metadata->xmp_size == 0) return 1;
    return orientation_of_xmp(metadata->xmp, metadata->xmp_size);
}
