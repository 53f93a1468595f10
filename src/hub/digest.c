/* SPDX-License-Identifier: Apache-2.0 */
/* The two names a file may have on the hub: its SHA-256, and git's SHA-1 of "blob SIZE", a zero byte and its bytes. */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/repository.h"

#define PIECE ((size_t)1 << 20)

static bool begin_git(EVP_MD_CTX *sha1, uint64_t size) {
    char header[32];
    int length = snprintf(header, sizeof header, "blob %llu", (unsigned long long)size) + 1;
    return EVP_DigestInit_ex(sha1, EVP_sha1(), NULL) == 1 && EVP_DigestUpdate(sha1, header, (size_t)length) == 1;
}

static bool end_git(EVP_MD_CTX *sha1, char hex[41]) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_DigestFinal_ex(sha1, digest, &size) != 1 || size != 20) return false;
    for (unsigned i = 0; i < size; i++) (void)snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
    return true;
}

static octet_status read_all(const oct_file *file, uint8_t *piece, oct_sha256 *sha256, EVP_MD_CTX *sha1) {
    for (uint64_t at = 0; at < file->size;) {
        size_t size = file->size - at < PIECE ? (size_t)(file->size - at) : PIECE;
        OCT_TRY(oct_file_read_at(file, at, piece, size));
        OCT_TRY(oct_sha256_update(sha256, piece, size));
        if (EVP_DigestUpdate(sha1, piece, size) != 1)
            return oct_fail(OCTET_INTERNAL, "libcrypto could not continue a SHA-1");
        at += size;
    }
    return OCTET_OK;
}

octet_status oct_hub_digest(const char *path, char sha256[65], char git_sha1[41]) {
    oct_file file;
    OCT_TRY(oct_file_open(&file, path));
    oct_sha256 hash = {0};
    EVP_MD_CTX *sha1 = EVP_MD_CTX_new();
    uint8_t *piece = oct_alloc(PIECE), digest[OCT_SHA256_SIZE];
    octet_status status = piece == NULL || sha1 == NULL ? oct_fail_memory() : oct_sha256_begin(&hash);
    if (status == OCTET_OK && !begin_git(sha1, file.size))
        status = oct_fail(OCTET_INTERNAL, "libcrypto could not begin a SHA-1");
    if (status == OCTET_OK) status = read_all(&file, piece, &hash, sha1);
    if (status == OCTET_OK) status = oct_sha256_end(&hash, digest);
    if (status == OCTET_OK && !end_git(sha1, git_sha1))
        status = oct_fail(OCTET_INTERNAL, "libcrypto could not finish a SHA-1");
    if (status == OCTET_OK) oct_sha256_hex(digest, sha256);
    oct_sha256_drop(&hash);
    EVP_MD_CTX_free(sha1);
    oct_free(piece);
    oct_file_close(&file);
    return status;
}
