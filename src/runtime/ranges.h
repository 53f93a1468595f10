/* SPDX-License-Identifier: Apache-2.0 */
/* What a calibration has seen so far: the tensors it watches, and the file that keeps it while it is not finished.
 *
 *     offset  size
 *     0       16   "octet ranges 1", zeros
 *     16      32   the key: SHA-256 of all that decides what is seen (checkpoint, recipe, data, orientation)
 *     48      8    pictures seen
 *     56      64   the data set's fingerprint up to there, as digits
 *     120     4    number of tensors, and for each:
 *                  text     its name (u32 length, bytes)
 *                  5 x 8    values, zeros, infinities, NaN, number of cells that follow
 *                  2 x 4    least and largest finite value, float32
 *                  12 each  cell (u32, rising) and its count (u64, above 0)
 *                  4        number of channels, and for each its least and largest value, float32
 *     end-32  32   SHA-256 of all before
 *
 * Little-endian. The file is read without trust. */
#ifndef OCT_RUNTIME_RANGES_H
#define OCT_RUNTIME_RANGES_H

#include "base/hash.h"
#include "base/text.h"
#include "quant/channels.h"
#include "quant/histogram.h"

#define OCT_RANGES_LIMIT ((size_t)4 << 30) /* bytes of a file */

typedef struct oct_range {
    char *name; /* of the value: as in the graph */
    oct_histogram *histogram;
    oct_channels channels; /* count 0: not wanted */
} oct_range;

typedef struct oct_ranges {
    oct_range *items;
    size_t count, capacity;
    uint64_t pictures;
    uint8_t key[OCT_SHA256_SIZE];
    char data[OCT_SHA256_HEX]; /* fingerprint of the pictures seen */
} oct_ranges;

void oct_ranges_free(oct_ranges *ranges);
/* The tensor called `name`, a new one if there is none yet; `channels` 0: no ranges a channel. Its index. */
octet_status oct_ranges_add(oct_ranges *ranges, const char *name, size_t channels, size_t *index);
uint64_t oct_ranges_memory(const oct_ranges *ranges); /* bytes */
uint64_t oct_ranges_values(const oct_ranges *ranges); /* seen */

void oct_ranges_write(const oct_ranges *ranges, oct_text *out);
/* Into `ranges` as it stands, what it has seen before forgotten: the same key and the same tensors, or MISMATCH. Any
 * damage is VERIFICATION or BAD_FORMAT. After a failure `ranges` has seen nothing. `name` stands in errors. */
octet_status oct_ranges_read(oct_ranges *ranges, const char *name, const void *data, size_t size);

#endif
