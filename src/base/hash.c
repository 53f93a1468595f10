/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

#include <openssl/evp.h>

octet_status oct_sha256_begin(oct_sha256 *hash) {
    hash->context = EVP_MD_CTX_new();
    if (hash->context == NULL) return oct_fail_memory();
    if (EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1) {
        oct_sha256_drop(hash);
        return oct_fail(OCTET_INTERNAL, "libcrypto could not begin a SHA-256");
    }
    return OCTET_OK;
}

octet_status oct_sha256_update(oct_sha256 *hash, const void *data, size_t size) {
    if (size > 0 && EVP_DigestUpdate(hash->context, data, size) != 1)
        return oct_fail(OCTET_INTERNAL, "libcrypto could not continue a SHA-256");
    return OCTET_OK;
}

octet_status oct_sha256_end(oct_sha256 *hash, uint8_t digest[OCT_SHA256_SIZE]) {
    int done = EVP_DigestFinal_ex(hash->context, digest, NULL);
    oct_sha256_drop(hash);
    if (done != 1) return oct_fail(OCTET_INTERNAL, "libcrypto could not finish a SHA-256");
    return OCTET_OK;
}

void oct_sha256_drop(oct_sha256 *hash) {
    EVP_MD_CTX_free(hash->context);
    hash->context = NULL;
}

octet_status oct_sha256_of(const void *data, size_t size, uint8_t digest[OCT_SHA256_SIZE]) {
    oct_sha256 hash = {0};
    OCT_TRY(oct_sha256_begin(&hash));
    octet_status status = oct_sha256_update(&hash, data, size);
    if (status != OCTET_OK) {
        oct_sha256_drop(&hash);
        return status;
    }
    return oct_sha256_end(&hash, digest);
}

void oct_sha256_hex(const uint8_t digest[OCT_SHA256_SIZE], char hex[OCT_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < OCT_SHA256_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[OCT_SHA256_HEX - 1] = '\0';
}

uint64_t oct_fnv1a(const void *data, size_t size) {
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

uint64_t oct_fnv1a_text(const char *text) {
    return oct_fnv1a(text, strlen(text));
}
