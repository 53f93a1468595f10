/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (OpenSSL's libcrypto). */
#ifndef OCT_BASE_HASH_H
#define OCT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OCT_SHA256_SIZE 32
#define OCT_SHA256_HEX 65 /* 64 digits and the zero */

typedef struct oct_sha256 {
    void *context;
} oct_sha256;
octet_status oct_sha256_begin(oct_sha256 *hash);
octet_status oct_sha256_update(oct_sha256 *hash, const void *data, size_t size);
octet_status oct_sha256_end(oct_sha256 *hash, uint8_t digest[OCT_SHA256_SIZE]); /* frees the context either way */
void oct_sha256_drop(oct_sha256 *hash);
octet_status oct_sha256_of(const void *data, size_t size, uint8_t digest[OCT_SHA256_SIZE]);
void oct_sha256_hex(const uint8_t digest[OCT_SHA256_SIZE], char hex[OCT_SHA256_HEX]);

/* FNV-1a, 64 bits: for checksums in traces and seeds from names, not for integrity. */
uint64_t oct_fnv1a(const void *data, size_t size);
uint64_t oct_fnv1a_text(const char *text);

#endif
