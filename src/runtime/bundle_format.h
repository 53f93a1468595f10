/* SPDX-License-Identifier: Apache-2.0 */
/* What reader and writer of bundles share; the layout stands in bundle.h. */
#ifndef OCT_RUNTIME_BUNDLE_FORMAT_H
#define OCT_RUNTIME_BUNDLE_FORMAT_H

#include "runtime/bundle.h"

#define OCT_BUNDLE_ALIGNMENT 64u
extern const uint8_t oct_bundle_magic[8];

static inline uint64_t oct_bundle_padding(uint64_t at) {
    return (OCT_BUNDLE_ALIGNMENT - at % OCT_BUNDLE_ALIGNMENT) % OCT_BUNDLE_ALIGNMENT;
}
/* kind and name as they stand in an entry */
void oct_bundle_label(const oct_section *section, uint8_t label[48]);
octet_status oct_bundle_identity(const oct_section *sections, size_t count, uint8_t identity[OCT_SHA256_SIZE]);
/* the SHA-256 in the footer's last 32 bytes */
octet_status oct_bundle_seal(const uint8_t header[OCT_BUNDLE_HEADER], const uint8_t footer[OCT_BUNDLE_FOOTER],
                             uint8_t seal[OCT_SHA256_SIZE]);

#endif
