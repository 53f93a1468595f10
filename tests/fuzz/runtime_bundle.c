/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle from any bytes, its checksums made right first where its frame stands, so that what they guard is read too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "octet/octet.h"
#include "runtime/bundle_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t number(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Sections, directory, identity, seal; leaves the bytes as they are where the numbers make no sense. */
static void reseal(uint8_t *data, size_t size) {
    if (size < OCT_BUNDLE_HEADER + OCT_BUNDLE_ENTRY + OCT_BUNDLE_FOOTER) return;
    uint8_t *footer = data + size - OCT_BUNDLE_FOOTER;
    uint64_t directory = number(footer, 8), count = number(footer + 8, 4);
    if (count == 0 || count > 64 || directory > size || count * OCT_BUNDLE_ENTRY > size - directory) return;
    oct_section sections[64];
    memset(sections, 0, sizeof sections);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *entry = data + directory + i * OCT_BUNDLE_ENTRY;
        uint64_t offset = number(entry + 48, 8), bytes = number(entry + 56, 8);
        if (offset > size || bytes > size - offset) return;
        if (oct_sha256_of(data + offset, (size_t)bytes, entry + 64) != OCTET_OK) return;
        memcpy(sections[i].kind, entry, 16);
        memcpy(sections[i].name, entry + 16, 32);
        memcpy(sections[i].sha256, entry + 64, OCT_SHA256_SIZE);
        sections[i].flags = (uint32_t)number(entry + 96, 4);
    }
    if (oct_sha256_of(data + directory, (size_t)count * OCT_BUNDLE_ENTRY, footer + 32) != OCTET_OK) return;
    if (oct_bundle_identity(sections, (size_t)count, footer + 64) != OCTET_OK) return;
    oct_bundle_seal(data, footer, footer + 96);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    octet_model *model = NULL;
    if (path[0] == '\0') snprintf(path, sizeof path, "/tmp/octet-fuzz-%ld.octet", (long)getpid());
    uint8_t *copy = malloc(size + 1);
    FILE *file = fopen(path, "wb");
    if (copy == NULL || file == NULL) abort();
    memcpy(copy, data, size);
    reseal(copy, size);
    if (fwrite(copy, 1, size, file) != size) abort();
    fclose(file);
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    options.threads = 1;
    if (octet_model_open(path, &options, &model) != OCTET_OK && octet_error_text()[0] == '\0') abort();
    octet_model_close(&model);
    remove(path);
    free(copy);
    return 0;
}
