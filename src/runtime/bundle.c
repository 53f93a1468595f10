/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/bundle.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "runtime/bundle_format.h"

const uint8_t oct_bundle_magic[8] = {0x89, 'O', 'C', 'T', 'E', 'T', '\r', '\n'};

/* Kinds this version knows. */
static const char *const known_kinds[] = {"model", "labels", "weights", "plan", "provenance", "verdict", "signature"};

void oct_bundle_label(const oct_section *section, uint8_t label[48]) {
    memset(label, 0, 48);
    memcpy(label, section->kind, strlen(section->kind));
    memcpy(label + 16, section->name, strlen(section->name));
}

octet_status oct_bundle_identity(const oct_section *sections, size_t count, uint8_t identity[OCT_SHA256_SIZE]) {
    oct_sha256 hash;
    OCT_TRY(oct_sha256_begin(&hash));
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < count && status == OCTET_OK; i++) {
        uint8_t label[48];
        if ((sections[i].flags & OCT_BUNDLE_IDENTITY) == 0) continue;
        oct_bundle_label(&sections[i], label);
        status = oct_sha256_update(&hash, label, sizeof label);
        if (status == OCTET_OK) status = oct_sha256_update(&hash, sections[i].sha256, OCT_SHA256_SIZE);
    }
    if (status == OCTET_OK) return oct_sha256_end(&hash, identity);
    oct_sha256_drop(&hash);
    return status;
}

octet_status oct_bundle_seal(const uint8_t header[OCT_BUNDLE_HEADER], const uint8_t footer[OCT_BUNDLE_FOOTER],
                             uint8_t seal[OCT_SHA256_SIZE]) {
    uint8_t both[OCT_BUNDLE_HEADER + 96];
    memcpy(both, header, OCT_BUNDLE_HEADER);
    memcpy(both + OCT_BUNDLE_HEADER, footer, 96);
    return oct_sha256_of(both, sizeof both, seal);
}

bool oct_bundle_is(const char *path) {
    oct_file file = {0};
    uint8_t magic[8];
    bool is = oct_file_open(&file, path) == OCTET_OK && file.size >= sizeof magic &&
              oct_file_read_at(&file, 0, magic, sizeof magic) == OCTET_OK &&
              memcmp(magic, oct_bundle_magic, sizeof magic) == 0;
    oct_file_close(&file);
    oct_error_clear();
    return is;
}

/* ---- opening */

static bool all_zero(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0) return false;
    }
    return true;
}

static octet_status damaged(const oct_bundle *bundle, const char *what) {
    return oct_fail(OCTET_VERIFICATION, "%s: bundle damaged: %s", bundle->file.path, what);
}

/* The version is looked at before the seal, so that a newer bundle is told from a damaged one. */
static octet_status read_header(oct_bundle *bundle, uint8_t header[OCT_BUNDLE_HEADER]) {
    if (bundle->file.size < OCT_BUNDLE_HEADER + OCT_BUNDLE_ENTRY + OCT_BUNDLE_FOOTER) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: %llu bytes are too few for a bundle", bundle->file.path,
                        (unsigned long long)bundle->file.size);
    }
    OCT_TRY(oct_file_read_at(&bundle->file, 0, header, OCT_BUNDLE_HEADER));
    if (memcmp(header, oct_bundle_magic, sizeof oct_bundle_magic) != 0) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: not a bundle: it starts otherwise", bundle->file.path);
    }
    oct_bytes bytes = {.data = header + 8, .size = 4};
    bundle->version = oct_get_u32(&bytes);
    if (bundle->version > OCT_BUNDLE_VERSION) {
        oct_fail(OCTET_UNSUPPORTED, "%s: bundle version %u, expected at most %d", bundle->file.path, bundle->version,
                 OCT_BUNDLE_VERSION);
        return oct_hint("made by a newer octet, or damaged");
    }
    if (bundle->version == 0 || !all_zero(header + 12, OCT_BUNDLE_HEADER - 12)) return damaged(bundle, "its header");
    return OCTET_OK;
}

static octet_status read_footer(oct_bundle *bundle, const uint8_t *header, uint8_t footer[OCT_BUNDLE_FOOTER],
                                uint64_t *directory) {
    uint8_t seal[OCT_SHA256_SIZE];
    uint64_t size = bundle->file.size;
    OCT_TRY(oct_file_read_at(&bundle->file, size - OCT_BUNDLE_FOOTER, footer, OCT_BUNDLE_FOOTER));
    OCT_TRY(oct_bundle_seal(header, footer, seal));
    if (memcmp(seal, footer + 96, sizeof seal) != 0) return damaged(bundle, "its footer (cut off, or changed)");
    oct_bytes bytes = {.data = footer, .size = 32};
    *directory = oct_get_u64(&bytes);
    bundle->section_count = oct_get_u32(&bytes);
    uint32_t zero = oct_get_u32(&bytes);
    uint64_t written = oct_get_u64(&bytes), zeros = oct_get_u64(&bytes);
    if (zero != 0 || zeros != 0 || written != size) return damaged(bundle, "its footer's numbers");
    if (bundle->section_count < 1 || bundle->section_count > OCT_BUNDLE_SECTIONS)
        return damaged(bundle, "its number of sections");
    uint64_t entries = bundle->section_count * OCT_BUNDLE_ENTRY;
    if (*directory < OCT_BUNDLE_HEADER || *directory % OCT_BUNDLE_ALIGNMENT != 0 ||
        size - OCT_BUNDLE_FOOTER < entries || *directory != size - OCT_BUNDLE_FOOTER - entries) {
        return damaged(bundle, "its directory's place");
    }
    return OCTET_OK;
}

static bool known_kind(const char *kind) {
    for (size_t i = 0; i < sizeof known_kinds / sizeof known_kinds[0]; i++) {
        if (strcmp(kind, known_kinds[i]) == 0) return true;
    }
    return false;
}

/* Zero-padded printable ASCII into a string. */
static bool read_label(const uint8_t *data, size_t size, char *text) {
    size_t length = 0;
    while (length < size && data[length] > 0x20 && data[length] < 0x7f) length++;
    memcpy(text, data, length);
    text[length] = '\0';
    return all_zero(data + length, size - length);
}

static octet_status read_entry(const oct_bundle *bundle, const uint8_t *entry, oct_section *section) {
    if (!read_label(entry, 16, section->kind) || section->kind[0] == '\0' ||
        !read_label(entry + 16, 32, section->name)) {
        return damaged(bundle, "a section's name");
    }
    oct_bytes bytes = {.data = entry + 48, .size = 16};
    section->offset = oct_get_u64(&bytes);
    section->size = oct_get_u64(&bytes);
    memcpy(section->sha256, entry + 64, OCT_SHA256_SIZE);
    bytes = (oct_bytes){.data = entry + 96, .size = 4};
    section->flags = oct_get_u32(&bytes);
    if (!all_zero(entry + 100, 28) || section->flags > 3) return damaged(bundle, "an entry's flags or its spare bytes");
    if (!known_kind(section->kind) && (section->flags & OCT_BUNDLE_DETACHABLE) == 0) {
        return oct_fail(OCTET_UNSUPPORTED, "%s: unknown section kind \"%s\"", bundle->file.path, section->kind);
    }
    return OCTET_OK;
}

/* Sections follow each other from the header to the directory; what lies between is zero. */
static octet_status check_places(const oct_bundle *bundle, uint64_t directory) {
    uint64_t at = OCT_BUNDLE_HEADER;
    for (size_t i = 0; i < bundle->section_count; i++) {
        const oct_section *section = &bundle->sections[i];
        uint8_t zeros[OCT_BUNDLE_ALIGNMENT];
        if (section->offset != at || section->size > directory - at) return damaged(bundle, "a section's place");
        at += section->size;
        uint64_t rest = oct_bundle_padding(at);
        if (rest > directory - at) return damaged(bundle, "a section's place");
        OCT_TRY(oct_file_read_at(&bundle->file, at, zeros, (size_t)rest));
        if (!all_zero(zeros, (size_t)rest)) return damaged(bundle, "bytes between sections");
        at += rest;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(bundle->sections[j].kind, section->kind) == 0 &&
                strcmp(bundle->sections[j].name, section->name) == 0) {
                return oct_fail(OCTET_BAD_FORMAT, "%s: section %s %s stands twice", bundle->file.path, section->kind,
                                section->name);
            }
        }
    }
    return at == directory ? OCTET_OK : damaged(bundle, "bytes before the directory");
}

static octet_status read_directory(oct_bundle *bundle, const uint8_t *footer, uint64_t directory) {
    uint8_t digest[OCT_SHA256_SIZE];
    size_t size = bundle->section_count * OCT_BUNDLE_ENTRY;
    uint8_t *entries = oct_alloc(size);
    bundle->sections = oct_calloc(bundle->section_count, sizeof *bundle->sections);
    octet_status status = entries == NULL || bundle->sections == NULL ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK) status = oct_file_read_at(&bundle->file, directory, entries, size);
    if (status == OCTET_OK) status = oct_sha256_of(entries, size, digest);
    if (status == OCTET_OK && memcmp(digest, footer + 32, sizeof digest) != 0)
        status = damaged(bundle, "its directory");
    for (size_t i = 0; i < bundle->section_count && status == OCTET_OK; i++) {
        status = read_entry(bundle, entries + i * OCT_BUNDLE_ENTRY, &bundle->sections[i]);
    }
    oct_free(entries);
    OCT_TRY(status);
    OCT_TRY(check_places(bundle, directory));
    OCT_TRY(oct_bundle_identity(bundle->sections, bundle->section_count, bundle->identity));
    if (memcmp(bundle->identity, footer + 64, sizeof bundle->identity) != 0) return damaged(bundle, "its identity");
    return OCTET_OK;
}

octet_status oct_bundle_open(oct_bundle *bundle, const char *path) {
    uint8_t header[OCT_BUNDLE_HEADER], footer[OCT_BUNDLE_FOOTER];
    uint64_t directory = 0;
    memset(bundle, 0, sizeof *bundle);
    OCT_TRY(oct_file_open(&bundle->file, path));
    octet_status status = read_header(bundle, header);
    if (status == OCTET_OK) status = read_footer(bundle, header, footer, &directory);
    if (status == OCTET_OK) status = read_directory(bundle, footer, directory);
    if (status != OCTET_OK) oct_bundle_close(bundle);
    return status;
}

void oct_bundle_close(oct_bundle *bundle) {
    oct_file_close(&bundle->file);
    oct_free(bundle->sections);
    memset(bundle, 0, sizeof *bundle);
}

const oct_section *oct_bundle_find(const oct_bundle *bundle, const char *kind, const char *name) {
    for (size_t i = 0; i < bundle->section_count; i++) {
        const oct_section *section = &bundle->sections[i];
        if (strcmp(section->kind, kind) == 0 && (name == NULL || strcmp(section->name, name) == 0)) return section;
    }
    return NULL;
}

/* ---- sections */

octet_status oct_section_begin(oct_section_reader *reader, const oct_bundle *bundle, const oct_section *section) {
    *reader = (oct_section_reader){.bundle = bundle, .section = section};
    return oct_sha256_begin(&reader->hash);
}

octet_status oct_section_read(void *opaque, void *data, size_t size) {
    oct_section_reader *reader = opaque;
    if (size > reader->section->size - reader->at) {
        return oct_fail(OCTET_BAD_FORMAT, "%s: section %s ends early", reader->bundle->file.path,
                        reader->section->kind);
    }
    OCT_TRY(oct_file_read_at(&reader->bundle->file, reader->section->offset + reader->at, data, size));
    reader->at += size;
    return oct_sha256_update(&reader->hash, data, size);
}

octet_status oct_section_end(oct_section_reader *reader) {
    uint8_t digest[OCT_SHA256_SIZE];
    const oct_section *section = reader->section;
    bool whole = reader->at == section->size;
    OCT_TRY(oct_sha256_end(&reader->hash, digest));
    if (whole && memcmp(digest, section->sha256, sizeof digest) == 0) return OCTET_OK;
    return oct_fail(OCTET_VERIFICATION, "%s: bundle damaged: section %s%s%s has other contents than its SHA-256 says",
                    reader->bundle->file.path, section->kind, section->name[0] != '\0' ? " " : "", section->name);
}

void oct_section_drop(oct_section_reader *reader) {
    oct_sha256_drop(&reader->hash);
}

octet_status oct_bundle_read(const oct_bundle *bundle, const oct_section *section, size_t limit, uint8_t **data) {
    oct_section_reader reader;
    *data = NULL;
    if (section->size > limit) {
        return oct_fail(OCTET_LIMIT, "%s: section %s: %llu bytes, expected at most %zu", bundle->file.path,
                        section->kind, (unsigned long long)section->size, limit);
    }
    uint8_t *bytes = oct_alloc((size_t)section->size + 1);
    if (bytes == NULL) return oct_fail_memory();
    octet_status status = oct_section_begin(&reader, bundle, section);
    if (status == OCTET_OK) {
        status = oct_section_read(&reader, bytes, (size_t)section->size);
        if (status == OCTET_OK)
            status = oct_section_end(&reader);
        else
            oct_section_drop(&reader);
    }
    if (status != OCTET_OK) {
        oct_free(bytes);
        return status;
    }
    bytes[section->size] = 0;
    *data = bytes;
    return OCTET_OK;
}
