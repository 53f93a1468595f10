/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a stopped calibration from any bytes, under a right checksum: what is read is whole ranges, what is not
 * leaves none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/ranges.h"

static void require(int condition) {
    if (!condition) abort();
}

static void make(oct_ranges *ranges) {
    size_t index;
    require(oct_ranges_add(ranges, "a", 0, &index) == OCTET_OK);
    require(oct_ranges_add(ranges, "b", 2, &index) == OCTET_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int64_t live = oct_alloc_live();
    static oct_ranges ranges; /* half a megabyte, made once */
    if (ranges.count == 0) make(&ranges);
    uint8_t *sealed = malloc(size + OCT_SHA256_SIZE);
    require(sealed != NULL);
    if (size > 0) memcpy(sealed, data, size);
    require(oct_sha256_of(sealed, size, sealed + size) == OCTET_OK);
    if (oct_ranges_read(&ranges, "fuzz", sealed, size + OCT_SHA256_SIZE) == OCTET_OK) {
        for (size_t i = 0; i < ranges.count; i++) {
            const oct_histogram *h = ranges.items[i].histogram;
            require(oct_histogram_finite(h) + h->nans + h->infinities == h->count);
        }
    } else {
        require(oct_ranges_values(&ranges) == 0);
    }
    free(sealed);
    require(live == 0 || oct_alloc_live() == live);
    return 0;
}
