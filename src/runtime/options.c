/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/options.h"

#include <string.h>

/* No option struct will ever be larger; a size above it was never set, and what it says is not read. */
#define SIZE_LIMIT 4096

/* The caller's struct_size, which holds itself and one field at least and no part of a word. */
static octet_status read_size(const void *given, size_t known, const char *name, size_t *size) {
    memcpy(size, given, sizeof *size);
    if (*size > sizeof *size && *size <= SIZE_LIMIT && *size % sizeof *size == 0) return OCTET_OK;
    oct_fail(OCTET_INVALID_ARGUMENT, "%s.struct_size: expected %zu, found %zu", name, known, *size);
    return oct_hint("set it to sizeof(%s), or start from the struct's initialiser", name);
}

octet_status oct_options_take(void *own, size_t size, const void *given, const char *name) {
    size_t given_size;
    OCT_TRY(read_size(given, size, name, &given_size));
    const unsigned char *bytes = given;
    for (size_t i = size; i < given_size; i++) {
        if (bytes[i] == 0) continue;
        oct_fail(OCTET_UNSUPPORTED, "%s: byte %zu is set, %zu bytes are known", name, i, size);
        return oct_hint("the program was compiled for a newer octet, and uses an option of it");
    }
    memcpy(own, given, given_size < size ? given_size : size);
    memcpy(own, &size, sizeof size);
    return OCTET_OK;
}

octet_status oct_options_give(void *given, const void *own, size_t size, const char *name) {
    size_t given_size;
    OCT_TRY(read_size(given, size, name, &given_size));
    unsigned char *bytes = given;
    memset(bytes, 0, given_size);
    memcpy(bytes, own, given_size < size ? given_size : size);
    memcpy(bytes, &given_size, sizeof given_size);
    return OCTET_OK;
}
