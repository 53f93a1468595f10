/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle: one file (.octet) that holds all a model needs to run. Little-endian. Nothing in it is executed.
 *
 * offset        size  what
 * 0             8     magic: 89 4f 43 54 45 54 0d 0a ("\x89OCTET\r\n": a text-mode copy breaks it)
 * 8             4     version: 1
 * 12            52    zero
 * 64            ...   sections, each at a multiple of 64, zeros between; in the directory's order, without other gaps
 * D             128*n directory: an entry a section, D a multiple of 64
 * D + 128*n     128   footer, the last bytes of the file
 *
 * entry, 128 bytes                                       footer, 128 bytes
 * 0    16  kind, zero-padded ("weights")                 0    8   D
 * 16   32  name, zero-padded (plans; else empty)         8    4   n, 1 .. 1024
 * 48   8   offset, a multiple of 64                      12   4   zero
 * 56   8   size in bytes                                 16   8   size of the file
 * 64   32  SHA-256 of the section                        24   8   zero
 * 96   4   flags: 1 part of the identity, 2 detachable   32   32  SHA-256 of the directory
 * 100  28  zero                                          64   32  identity
 *                                                        96   32  SHA-256 of the first 64 bytes of the file and of the
 *                                                                 footer's first 96
 *
 * identity = SHA-256 over the entries with flag 1, in the directory's order: kind, name, SHA-256 (16 + 32 + 32 bytes
 * each). So any flipped bit is noticed: in a section by its entry, in the directory and the file's head by the footer,
 * between sections because it must be zero.
 *
 * kind         flags  contents
 * model        1      JSON: family, architecture, task, classes, tokens, input, preprocessing
 * labels       1      JSON: a list of class names
 * weights      1      neutral weights (engine/plan_file.h)
 * plan         1      one engine's plan, a section each (engine/plan_file.h); name: DEVICE-FORMAT-bBATCH-HEIGHTxWIDTH
 * provenance   0      JSON: where it came from and what made it
 * verdict      2      a study's decision; signature 2: over the identity. Detachable: outside the identity
 *
 * Versions: a reader refuses a newer version by name and reads every older one. Kinds it does not know are refused
 * unless detachable. */
#ifndef OCT_RUNTIME_BUNDLE_H
#define OCT_RUNTIME_BUNDLE_H

#include <stdbool.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

#define OCT_BUNDLE_VERSION 1
#define OCT_BUNDLE_SECTIONS 1024
#define OCT_BUNDLE_ENTRY 128
#define OCT_BUNDLE_FOOTER 128
#define OCT_BUNDLE_HEADER 64
#define OCT_BUNDLE_IDENTITY 1u /* flags */
#define OCT_BUNDLE_DETACHABLE 2u

typedef struct oct_section {
    char kind[17], name[33];
    uint64_t offset, size;
    uint8_t sha256[OCT_SHA256_SIZE];
    uint32_t flags;
} oct_section;

/* ---- reading */
typedef struct oct_bundle {
    oct_file file;
    oct_section *sections;
    size_t section_count;
    uint8_t identity[OCT_SHA256_SIZE];
    uint32_t version;
} oct_bundle;

/* Whether the file starts as a bundle does. False also for what cannot be read. */
bool oct_bundle_is(const char *path);
/* Opens and checks header, directory, footer and padding; sections are checked when read. Caller closes. */
octet_status oct_bundle_open(oct_bundle *bundle, const char *path);
void oct_bundle_close(oct_bundle *bundle);
const oct_section *oct_bundle_find(const oct_bundle *bundle, const char *kind,
                                   const char *name); /* name NULL: the first */
/* A whole section, checked (oct_alloc'd, a zero byte behind it; caller frees). Fails with LIMIT above `limit`. */
octet_status oct_bundle_read(const oct_bundle *bundle, const oct_section *section, size_t limit, uint8_t **data);
/* A section in pieces: hashed as they pass, checked at the end (which fails unless all was read). */
typedef struct oct_section_reader {
    const oct_bundle *bundle;
    const oct_section *section;
    uint64_t at;
    oct_sha256 hash;
} oct_section_reader;
octet_status oct_section_begin(oct_section_reader *reader, const oct_bundle *bundle, const oct_section *section);
octet_status oct_section_read(void *reader, void *data, size_t size); /* an oct_read_bytes */
octet_status oct_section_end(oct_section_reader *reader);             /* frees, also after a failure */
void oct_section_drop(oct_section_reader *reader);

/* ---- writing: sections in order, then commit; whole or not at all (base/file.h) */
typedef struct oct_bundle_writer oct_bundle_writer;
octet_status oct_bundle_writer_open(oct_bundle_writer **writer, const char *path);
octet_status oct_bundle_writer_begin(oct_bundle_writer *writer, const char *kind, const char *name, uint32_t flags);
octet_status oct_bundle_writer_write(void *writer, const void *data, size_t size); /* an oct_write_bytes */
octet_status oct_bundle_writer_end(oct_bundle_writer *writer);
/* begin, write, end */
octet_status oct_bundle_writer_add(oct_bundle_writer *writer, const char *kind, const char *name, uint32_t flags,
                                   const void *data, size_t size);
octet_status oct_bundle_writer_commit(oct_bundle_writer *writer,
                                      uint8_t identity[OCT_SHA256_SIZE]); /* frees either way */
void oct_bundle_writer_abort(oct_bundle_writer *writer);                  /* NULL is fine */

#endif
