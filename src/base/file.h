/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads with a limit, ranges, and writes that are whole or not at all (temporary file beside the target,
 * sync, rename). All writes of the library pass here, so the N-th can be made to fail in tests/fault. */
#ifndef OCT_BASE_FILE_H
#define OCT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The whole regular file into *data (oct_alloc'd, caller frees; one zero byte follows the contents, not counted).
 * Fails with LIMIT above `limit` bytes, INVALID_ARGUMENT for a directory or device; *data is NULL then. */
octet_status oct_file_read(const char *path, size_t limit, uint8_t **data, size_t *size);

/* Random access reads. Open refuses what is not a regular file. */
typedef struct oct_file {
    int descriptor;
    uint64_t size;
    char *path;
} oct_file;
octet_status oct_file_open(oct_file *file, const char *path);
octet_status oct_file_read_at(const oct_file *file, uint64_t offset, void *data, size_t size);
void oct_file_close(oct_file *file); /* all-zero and closed files are fine */

bool oct_file_exists(const char *path); /* of any kind */
bool oct_file_is_directory(const char *path);
octet_status oct_make_directories(const char *path);
/* "DIRECTORY/NAME", oct_alloc'd. NULL: no memory. */
char *oct_path_join(const char *directory, const char *name);
const char *oct_path_base(const char *path); /* after the last slash */

/* A file written whole or not at all. */
typedef struct oct_writer oct_writer;
octet_status oct_writer_open(oct_writer **writer, const char *path);
octet_status oct_writer_write(oct_writer *writer, const void *data, size_t size);
octet_status oct_writer_printf(oct_writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sync, rename over `path` (links followed), sync the directory; frees the writer either way. On failure `path` is as
 * it was, or whole and new if only the sync of its directory failed. A device or pipe at `path` is written straight
 * into. */
octet_status oct_writer_commit(oct_writer *writer);
void oct_writer_abort(oct_writer *writer); /* removes the temporary file; NULL is fine */
/* Removes what killed processes left beside `path` while they wrote it; those that live keep theirs. Looks through the
 * directory, so once before something large, not for every file. Failures are passed over. */
void oct_writer_sweep(const char *path);
octet_status oct_file_write(const char *path, const void *data, size_t size);

/* Faults (tests): write, sync or rename number `n` from now fails as on a full disk; `forever`: all after it too. */
void oct_file_fail_at(uint64_t n, bool forever);
bool oct_file_fault_met(void);

#endif
