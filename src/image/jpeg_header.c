/* SPDX-License-Identifier: Apache-2.0 */
/* The markers of a JPEG up to its first scan, read as Pillow reads them: what it refuses here is refused, though
 * libjpeg might decode it; and the EXIF and XMP blocks are found. */
#include <string.h>

#include "base/alloc.h"
#include "image/codec.h"

typedef struct scan {
    const uint8_t *data;
    size_t size, at;
    const uint8_t *profile; /* the least of the ICC chunks seen since the last frame header */
    size_t profile_size;
} scan;

static octet_status truncated(void) {
    return oct_fail(OCTET_BAD_FORMAT, "truncated JPEG header");
}

static bool begins(const uint8_t *s, size_t n, const char *text, size_t length) {
    return n >= length && memcmp(s, text, length) == 0;
}

/* The length-prefixed segment at the cursor. */
static octet_status take_segment(scan *in, const uint8_t **segment, size_t *length) {
    if (in->size - in->at < 2) return truncated();
    size_t n = oct_be16(in->data + in->at);
    in->at += 2;
    n = n < 2 ? 0 : n - 2;
    if (in->size - in->at < n) return truncated();
    *segment = in->data + in->at;
    *length = n;
    in->at += n;
    return OCTET_OK;
}

/* EXIF may be spread over several markers: the later ones follow the first without their prefix. */
static octet_status add_exif(oct_jpeg_header *header, const uint8_t *s, size_t n) {
    oct_metadata *metadata = &header->metadata;
    if (metadata->exif == NULL) {
        metadata->exif = s;
        metadata->exif_size = n;
        return OCTET_OK;
    }
    size_t joined_size = metadata->exif_size + n - 6;
    uint8_t *joined = oct_alloc(joined_size);
    if (joined == NULL) return oct_fail_memory();
    memcpy(joined, metadata->exif, metadata->exif_size);
    memcpy(joined + metadata->exif_size, s + 6, n - 6);
    oct_free(header->joined);
    header->joined = joined;
    metadata->exif = joined;
    metadata->exif_size = joined_size;
    return OCTET_OK;
}

/* Photoshop's resource block: Pillow raises only where a name's length byte lies beyond the end. */
static bool photoshop_is_readable(const uint8_t *s, size_t n) {
    size_t at = 14;
    while (at + 4 <= n && memcmp(s + at, "8BIM", 4) == 0) {
        at += 4;
        if (at + 2 > n) return true;
        at += 2;
        if (at >= n) return false;
        at += 1 + (size_t)s[at];
        at += at & 1;
        if (at + 4 > n) return true;
        at += 4 + (size_t)oct_be32(s + at);
        at += at & 1;
    }
    return true;
}

static octet_status read_application(scan *in, oct_jpeg_header *header, uint8_t marker) {
    static const char xap[] = "http://ns.adobe.com/xap/1.0/"; /* with its zero */
    const uint8_t *s = NULL;
    size_t n = 0;
    OCT_TRY(take_segment(in, &s, &n));
    if (marker == 0xe0 && begins(s, n, "JFIF", 4) && n < 7) return truncated();
    if (marker == 0xe1 && begins(s, n, "Exif\0\0", 6)) return add_exif(header, s, n);
    if (marker == 0xe1 && begins(s, n, xap, sizeof xap)) {
        header->metadata.xmp = s + sizeof xap;
        header->metadata.xmp_size = n - sizeof xap;
    } else if (marker == 0xe2 && begins(s, n, "ICC_PROFILE\0", 12)) {
        size_t shared = in->profile_size < n ? in->profile_size : n;
        int order = in->profile == NULL ? -1 : memcmp(s, in->profile, shared);
        if (order < 0 || (order == 0 && n < in->profile_size)) {
            in->profile = s;
            in->profile_size = n;
        }
    } else if (marker == 0xed && begins(s, n, "Photoshop 3.0\0", 14)) {
        if (!photoshop_is_readable(s, n)) return truncated();
    } else if (marker == 0xee && begins(s, n, "Adobe", 5)) {
        if (n < 7) return truncated();
    }
    return OCTET_OK;
}

static octet_status read_frame(scan *in, oct_jpeg_header *header) {
    const uint8_t *s = NULL;
    size_t n = 0;
    OCT_TRY(take_segment(in, &s, &n));
    if (n < 6 || (n - 6) % 3 != 0) return truncated();
    if (s[0] != 8) return oct_fail(OCTET_UNSUPPORTED, "cannot read JPEG with %d bits a sample, only 8", s[0]);
    header->height = (int)oct_be16(s + 1);
    header->width = (int)oct_be16(s + 3);
    header->layers = s[5];
    if (header->layers != 1 && header->layers != 3 && header->layers != 4)
        return oct_fail(OCTET_UNSUPPORTED, "cannot read JPEG with %d components, only 1, 3 or 4", header->layers);
    if (in->profile != NULL && in->profile_size < 14) return truncated();
    in->profile = NULL;
    return OCTET_OK;
}

static octet_status read_quantization(scan *in) {
    const uint8_t *s = NULL;
    size_t n = 0;
    OCT_TRY(take_segment(in, &s, &n));
    while (n > 0) {
        size_t length = s[0] / 16 == 0 ? 65 : 129;
        if (n < length) return oct_fail(OCTET_BAD_FORMAT, "bad JPEG quantization table");
        s += length;
        n -= length;
    }
    return OCTET_OK;
}

static octet_status read_marker(scan *in, oct_jpeg_header *header, uint8_t marker) {
    const uint8_t *skipped = NULL;
    size_t length = 0;
    if (marker >= 0xe0 && marker <= 0xef) return read_application(in, header, marker);
    if (marker == 0xc4 || marker == 0xcc || marker == 0xda || marker == 0xdc || marker == 0xdd || marker == 0xdf ||
        marker == 0xfe)
        return take_segment(in, &skipped, &length);
    if (marker == 0xdb) return read_quantization(in);
    if (marker == 0xde || (marker >= 0xc0 && marker <= 0xcf && marker != 0xc8)) return read_frame(in, header);
    return OCTET_OK;
}

static octet_status read_markers(scan *in, oct_jpeg_header *header) {
    while (in->at < in->size) {
        uint8_t byte = in->data[in->at++];
        if (byte != 0xff) continue; /* junk between segments */
        while (in->at < in->size && in->data[in->at] == 0xff) in->at++;
        if (in->at == in->size) break;
        uint8_t marker = in->data[in->at++];
        if (marker == 0) continue;
        if (marker < 0xc0) return oct_fail(OCTET_BAD_FORMAT, "no JPEG marker at byte %zu", in->at - 2);
        OCT_TRY(read_marker(in, header, marker));
        if (marker != 0xda) continue;
        if (header->layers == 0) return oct_fail(OCTET_BAD_FORMAT, "JPEG scan before its frame header");
        return oct_image_check_size((uint64_t)header->width, (uint64_t)header->height);
    }
    return oct_fail(OCTET_BAD_FORMAT, "JPEG without a scan");
}

octet_status oct_jpeg_header_read(oct_jpeg_header *header, const uint8_t *data, size_t size) {
    *header = (oct_jpeg_header){0};
    scan in = {.data = data, .size = size, .at = 2};
    octet_status status = read_markers(&in, header);
    if (status != OCTET_OK) oct_jpeg_header_free(header);
    return status;
}

void oct_jpeg_header_free(oct_jpeg_header *header) {
    oct_free(header->joined);
    *header = (oct_jpeg_header){0};
}
