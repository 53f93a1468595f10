/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ranges.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

static const char magic[16] = "octet ranges 1";
#define CELLS (2 * OCT_HISTOGRAM_BINS)

void oct_ranges_free(oct_ranges *ranges) {
    for (size_t i = 0; i < ranges->count; i++) {
        oct_free(ranges->items[i].name);
        oct_histogram_free(ranges->items[i].histogram);
        oct_channels_free(&ranges->items[i].channels);
    }
    oct_free(ranges->items);
    *ranges = (oct_ranges){0};
}

octet_status oct_ranges_add(oct_ranges *ranges, const char *name, size_t channels, size_t *index) {
    size_t i = 0;
    while (i < ranges->count && strcmp(ranges->items[i].name, name) != 0) i++;
    *index = i;
    if (i == ranges->count) {
        if (!oct_grow((void **)&ranges->items, sizeof *ranges->items, i + 1, &ranges->capacity))
            return oct_fail_memory();
        ranges->items[i] = (oct_range){.name = oct_strdup(name)};
        ranges->count++;
        if (ranges->items[i].name == NULL) return oct_fail_memory();
        OCT_TRY(oct_histogram_new(&ranges->items[i].histogram));
    }
    if (channels == 0 || ranges->items[i].channels.count > 0) return OCTET_OK;
    return oct_channels_new(&ranges->items[i].channels, channels);
}

uint64_t oct_ranges_memory(const oct_ranges *ranges) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < ranges->count; i++)
        bytes += sizeof(oct_histogram) + ranges->items[i].channels.count * 2 * sizeof(float);
    return bytes;
}

uint64_t oct_ranges_values(const oct_ranges *ranges) {
    uint64_t values = 0;
    for (size_t i = 0; i < ranges->count; i++) values += ranges->items[i].histogram->count;
    return values;
}

/* ---- writing */

static void put_range(const oct_range *range, oct_text *out) {
    const oct_histogram *h = range->histogram;
    uint64_t used = 0;
    for (size_t c = 0; c < CELLS; c++) used += h->cells[c] > 0;
    oct_put_text(out, range->name);
    oct_put_u64(out, h->count);
    oct_put_u64(out, h->zeros);
    oct_put_u64(out, h->infinities);
    oct_put_u64(out, h->nans);
    oct_put_u64(out, used);
    oct_put_f32(out, h->min);
    oct_put_f32(out, h->max);
    for (size_t c = 0; c < CELLS; c++) {
        if (h->cells[c] == 0) continue;
        oct_put_u32(out, (uint32_t)c);
        oct_put_u64(out, h->cells[c]);
    }
    oct_put_u32(out, (uint32_t)range->channels.count);
    for (size_t c = 0; c < range->channels.count; c++) {
        oct_put_f32(out, range->channels.min[c]);
        oct_put_f32(out, range->channels.max[c]);
    }
}

void oct_ranges_write(const oct_ranges *ranges, oct_text *out) {
    uint8_t digest[OCT_SHA256_SIZE];
    oct_text_append(out, magic, sizeof magic);
    oct_text_append(out, (const char *)ranges->key, sizeof ranges->key);
    oct_put_u64(out, ranges->pictures);
    oct_text_append(out, ranges->data, OCT_SHA256_HEX - 1);
    oct_put_u32(out, (uint32_t)ranges->count);
    for (size_t i = 0; i < ranges->count; i++) put_range(&ranges->items[i], out);
    if (out->failed || oct_sha256_of(out->data, out->length, digest) != OCTET_OK)
        out->failed = true;
    else
        oct_text_append(out, (const char *)digest, sizeof digest);
}

/* ---- reading */

static bool get_cells(oct_bytes *in, oct_histogram *h, uint64_t used) {
    uint64_t next = 0, finite = h->zeros;
    for (uint64_t i = 0; i < used && !in->failed; i++) {
        const uint32_t cell = oct_get_u32(in);
        const uint64_t count = oct_get_u64(in);
        if (in->failed || cell < next || cell >= CELLS || count == 0 || count > h->count - finite) return false;
        h->cells[cell] = count;
        finite += count;
        next = (uint64_t)cell + 1;
    }
    return !in->failed && finite <= h->count && h->infinities <= h->count - finite &&
           h->nans == h->count - finite - h->infinities;
}

static bool get_histogram(oct_bytes *in, oct_histogram *h) {
    h->count = oct_get_u64(in);
    h->zeros = oct_get_u64(in);
    h->infinities = oct_get_u64(in);
    h->nans = oct_get_u64(in);
    const uint64_t used = oct_get_u64(in);
    h->min = oct_get_f32(in);
    h->max = oct_get_f32(in);
    if (in->failed || h->zeros > h->count || used > CELLS || isnan(h->min) || isnan(h->max)) return false;
    if (!get_cells(in, h, used)) return false;
    return (h->min <= h->max) == (used > 0 || h->zeros > 0);
}

static bool get_channels(oct_bytes *in, oct_channels *channels) {
    if (oct_get_u32(in) != channels->count) return false;
    for (size_t c = 0; c < channels->count && !in->failed; c++) {
        channels->min[c] = oct_get_f32(in);
        channels->max[c] = oct_get_f32(in);
        if (isnan(channels->min[c]) || isnan(channels->max[c])) return false;
    }
    return !in->failed;
}

static bool get_range(oct_bytes *in, oct_range *range) {
    size_t length;
    const char *name = oct_get_text(in, 4096, &length);
    return name != NULL && length == strlen(range->name) && memcmp(name, range->name, length) == 0 &&
           get_histogram(in, range->histogram) && get_channels(in, &range->channels);
}

static octet_status forget(oct_ranges *ranges, octet_status status) {
    for (size_t i = 0; i < ranges->count; i++) {
        oct_range *range = &ranges->items[i];
        memset(range->histogram, 0, sizeof *range->histogram);
        range->histogram->min = FLT_MAX;
        range->histogram->max = -FLT_MAX;
        for (size_t c = 0; c < range->channels.count; c++) {
            range->channels.min[c] = FLT_MAX;
            range->channels.max[c] = -FLT_MAX;
        }
    }
    ranges->pictures = 0;
    return status;
}

static octet_status check_whole(const char *name, const uint8_t *data, size_t size) {
    uint8_t digest[OCT_SHA256_SIZE];
    if (size < sizeof magic + sizeof digest || memcmp(data, magic, sizeof magic) != 0)
        return oct_fail(OCTET_BAD_FORMAT, "%s: expected what octet calibrate keeps while it runs, found another file",
                        name);
    OCT_TRY(oct_sha256_of(data, size - sizeof digest, digest));
    if (memcmp(digest, data + size - sizeof digest, sizeof digest) == 0) return OCTET_OK;
    return oct_fail(OCTET_VERIFICATION, "%s: its SHA-256 is not that of its contents", name);
}

octet_status oct_ranges_read(oct_ranges *ranges, const char *name, const void *data, size_t size) {
    const uint8_t *bytes = data;
    (void)forget(ranges, OCTET_OK);
    OCT_TRY(check_whole(name, bytes, size));
    oct_bytes in = {.data = bytes, .size = size - OCT_SHA256_SIZE, .at = sizeof magic};
    if (in.size < in.at + OCT_SHA256_SIZE + OCT_SHA256_HEX + 11) return oct_fail(OCTET_BAD_FORMAT, "%s: cut off", name);
    if (memcmp(bytes + in.at, ranges->key, OCT_SHA256_SIZE) != 0)
        return oct_fail(OCTET_MISMATCH, "%s: kept by a calibration of another checkpoint, recipe or data set", name);
    in.at += OCT_SHA256_SIZE;
    const uint64_t pictures = oct_get_u64(&in);
    const uint8_t *fingerprint = bytes + in.at;
    in.at += OCT_SHA256_HEX - 1;
    if (oct_get_u32(&in) != ranges->count)
        return oct_fail(OCTET_MISMATCH, "%s: kept by a calibration of other tensors", name);
    for (size_t i = 0; i < ranges->count; i++)
        if (!get_range(&in, &ranges->items[i]))
            return forget(ranges, oct_fail(OCTET_BAD_FORMAT,
                                           "%s: byte %zu: tensor %s: expected its ranges, found "
                                           "something else",
                                           name, in.at, ranges->items[i].name));
    if (in.at != in.size) return forget(ranges, oct_fail(OCTET_BAD_FORMAT, "%s: bytes behind its end", name));
    ranges->pictures = pictures;
    memcpy(ranges->data, fingerprint, OCT_SHA256_HEX - 1);
    return OCTET_OK;
}
