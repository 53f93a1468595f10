/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "runtime/bundle_format.h"

struct oct_bundle_writer {
    oct_writer *file;
    uint64_t at;
    uint8_t header[OCT_BUNDLE_HEADER];
    oct_section *sections;
    size_t count, capacity;
    oct_sha256 hash; /* of the section being written */
};

static octet_status put(oct_bundle_writer *writer, const void *data, size_t size) {
    OCT_TRY(oct_writer_write(writer->file, data, size));
    writer->at += size;
    return OCTET_OK;
}

static octet_status pad(oct_bundle_writer *writer) {
    static const uint8_t zeros[OCT_BUNDLE_ALIGNMENT];
    return put(writer, zeros, (size_t)oct_bundle_padding(writer->at));
}

octet_status oct_bundle_writer_open(oct_bundle_writer **writer, const char *path) {
    *writer = NULL;
    oct_bundle_writer *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    octet_status status = oct_writer_open(&made->file, path);
    if (status == OCTET_OK) {
        memcpy(made->header, oct_bundle_magic, sizeof oct_bundle_magic);
        made->header[8] = OCT_BUNDLE_VERSION;
        status = put(made, made->header, sizeof made->header);
    }
    if (status != OCTET_OK) {
        oct_bundle_writer_abort(made);
        return status;
    }
    *writer = made;
    return OCTET_OK;
}

octet_status oct_bundle_writer_begin(oct_bundle_writer *writer, const char *kind, const char *name, uint32_t flags) {
    if (writer->count == OCT_BUNDLE_SECTIONS)
        return oct_fail(OCTET_LIMIT, "bundle: more than %d sections", OCT_BUNDLE_SECTIONS);
    if (strlen(kind) > 16 || strlen(name) > 32)
        return oct_fail(OCTET_LIMIT, "section %s %s: its name is too long", kind, name);
    if (!oct_grow((void **)&writer->sections, sizeof *writer->sections, writer->count + 1, &writer->capacity))
        return oct_fail_memory();
    oct_section *section = &writer->sections[writer->count];
    memset(section, 0, sizeof *section);
    memcpy(section->kind, kind, strlen(kind));
    memcpy(section->name, name, strlen(name));
    section->flags = flags;
    section->offset = writer->at;
    OCT_TRY(oct_sha256_begin(&writer->hash));
    writer->count++;
    return OCTET_OK;
}

octet_status oct_bundle_writer_write(void *opaque, const void *data, size_t size) {
    oct_bundle_writer *writer = opaque;
    OCT_TRY(oct_sha256_update(&writer->hash, data, size));
    return put(writer, data, size);
}

octet_status oct_bundle_writer_end(oct_bundle_writer *writer) {
    oct_section *section = &writer->sections[writer->count - 1];
    section->size = writer->at - section->offset;
    OCT_TRY(oct_sha256_end(&writer->hash, section->sha256));
    return pad(writer);
}

octet_status oct_bundle_writer_add(oct_bundle_writer *writer, const char *kind, const char *name, uint32_t flags,
                                   const void *data, size_t size) {
    OCT_TRY(oct_bundle_writer_begin(writer, kind, name, flags));
    OCT_TRY(oct_bundle_writer_write(writer, data, size));
    return oct_bundle_writer_end(writer);
}

static void put_entry(oct_text *out, const oct_section *section) {
    static const char zeros[28];
    uint8_t label[48];
    oct_bundle_label(section, label);
    oct_text_append(out, (const char *)label, sizeof label);
    oct_put_u64(out, section->offset);
    oct_put_u64(out, section->size);
    oct_text_append(out, (const char *)section->sha256, sizeof section->sha256);
    oct_put_u32(out, section->flags);
    oct_text_append(out, zeros, sizeof zeros);
}

/* The footer for a directory of `directory`'s bytes at the present place. */
static octet_status make_footer(oct_bundle_writer *writer, const oct_text *directory,
                                uint8_t footer[OCT_BUNDLE_FOOTER]) {
    oct_text out = {0};
    uint8_t hashes[2][OCT_SHA256_SIZE];
    OCT_TRY(oct_sha256_of(directory->data, directory->length, hashes[0]));
    OCT_TRY(oct_bundle_identity(writer->sections, writer->count, hashes[1]));
    oct_put_u64(&out, writer->at);
    oct_put_u32(&out, (uint32_t)writer->count);
    oct_put_u32(&out, 0);
    oct_put_u64(&out, writer->at + directory->length + OCT_BUNDLE_FOOTER);
    oct_put_u64(&out, 0);
    oct_text_append(&out, (const char *)hashes, sizeof hashes);
    octet_status status = out.failed ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK) memcpy(footer, out.data, 96);
    oct_text_free(&out);
    return status == OCTET_OK ? oct_bundle_seal(writer->header, footer, footer + 96) : status;
}

static octet_status finish(oct_bundle_writer *writer, uint8_t identity[OCT_SHA256_SIZE]) {
    uint8_t footer[OCT_BUNDLE_FOOTER];
    oct_text directory = {0};
    for (size_t i = 0; i < writer->count; i++) put_entry(&directory, &writer->sections[i]);
    octet_status status = directory.failed ? oct_fail_memory() : make_footer(writer, &directory, footer);
    if (status == OCTET_OK) status = put(writer, directory.data, directory.length);
    if (status == OCTET_OK) status = put(writer, footer, sizeof footer);
    if (status == OCTET_OK) memcpy(identity, footer + 64, OCT_SHA256_SIZE);
    oct_text_free(&directory);
    return status;
}

octet_status oct_bundle_writer_commit(oct_bundle_writer *writer, uint8_t identity[OCT_SHA256_SIZE]) {
    octet_status status = finish(writer, identity);
    if (status == OCTET_OK) {
        status = oct_writer_commit(writer->file);
        writer->file = NULL;
    }
    oct_bundle_writer_abort(writer);
    return status;
}

void oct_bundle_writer_abort(oct_bundle_writer *writer) {
    if (writer == NULL) return;
    oct_writer_abort(writer->file);
    oct_sha256_drop(&writer->hash);
    oct_free(writer->sections);
    oct_free(writer);
}
