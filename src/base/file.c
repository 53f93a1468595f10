/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/c_locale.h"

#define LARGEST_CALL ((size_t)1 << 30) /* read and write take less than 2 GiB at a time */

/* Reading. */

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "not a regular file";
}

octet_status oct_file_open(oct_file *file, const char *path) {
    *file = (oct_file){.descriptor = -1};
    struct stat state;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0) {
        int reason = errno;
        if (reason == ENXIO && stat(path, &state) == 0 && !S_ISREG(state.st_mode))
            return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is %s, expected a file", path, kind_of(state.st_mode));
        errno = reason;
        return oct_fail_errno(path, "could not open");
    }
    octet_status status = OCTET_OK;
    if (fstat(descriptor, &state) != 0) {
        status = oct_fail_errno(path, "could not ask for its size");
    } else if (!S_ISREG(state.st_mode)) {
        status = oct_fail(OCTET_INVALID_ARGUMENT, "%s: is %s, expected a file", path, kind_of(state.st_mode));
    } else {
        file->path = oct_strdup(path);
        if (file->path == NULL) status = oct_fail_memory();
    }
    if (status != OCTET_OK) {
        (void)close(descriptor);
        return status;
    }
    file->descriptor = descriptor;
    file->size = (uint64_t)state.st_size;
    return OCTET_OK;
}

/* Up to `size` bytes from `offset`; fewer only at the end of the file. */
static octet_status read_upto(const oct_file *file, uint64_t offset, uint8_t *data, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        size_t ask = size - *got < LARGEST_CALL ? size - *got : LARGEST_CALL;
        ssize_t taken = pread(file->descriptor, data + *got, ask, (off_t)(offset + *got));
        if (taken < 0 && errno == EINTR) continue;
        if (taken < 0) return oct_fail_errno(file->path, "could not read");
        if (taken == 0) break;
        *got += (size_t)taken;
    }
    return OCTET_OK;
}

octet_status oct_file_read_at(const oct_file *file, uint64_t offset, void *data, size_t size) {
    if (offset > file->size || size > file->size - offset)
        return oct_fail(OCTET_BAD_FORMAT, "%s: ends at byte %llu, expected %zu bytes at byte %llu", file->path,
                        (unsigned long long)file->size, size, (unsigned long long)offset);
    size_t got = 0;
    OCT_TRY(read_upto(file, offset, data, size, &got));
    if (got < size)
        return oct_fail(OCTET_IO, "%s: shrank to %llu bytes while it was read", file->path,
                        (unsigned long long)(offset + got));
    return OCTET_OK;
}

void oct_file_close(oct_file *file) {
    /* an all-zero file was never opened: its descriptor 0 is not ours */
    if (file->path != NULL && file->descriptor >= 0) (void)close(file->descriptor);
    oct_free(file->path);
    *file = (oct_file){.descriptor = -1};
}

/* The file's bytes into a buffer that has one byte more than the file said it holds. */
static octet_status read_whole(const oct_file *file, size_t limit, uint8_t **data, size_t *size) {
    size_t capacity = (size_t)file->size + 1;
    uint8_t *bytes = oct_alloc(capacity);
    if (bytes == NULL) return oct_fail_memory();
    size_t used = 0;
    octet_status status = OCTET_OK;
    for (;;) {
        size_t got = 0;
        status = read_upto(file, used, bytes + used, capacity - used, &got);
        used += got;
        if (status != OCTET_OK || used < capacity) break;
        /* more than was said: files of the kernel say 0 and are read to their end, others changed under us */
        if (file->size != 0) {
            status = oct_fail(OCTET_IO, "%s: grew while it was read", file->path);
            break;
        }
        if (used > limit) {
            status = oct_fail(OCTET_LIMIT, "%s: more than the limit of %zu bytes", file->path, limit);
            break;
        }
        void *grown = bytes;
        if (!oct_grow(&grown, 1, capacity + 4096, &capacity)) {
            status = oct_fail_memory();
            break;
        }
        bytes = grown;
    }
    if (status == OCTET_OK && used > limit)
        status = oct_fail(OCTET_LIMIT, "%s: more than the limit of %zu bytes", file->path, limit);
    if (status == OCTET_OK && used < file->size)
        status = oct_fail(OCTET_IO, "%s: shrank to %zu bytes while it was read", file->path, used);
    if (status != OCTET_OK) {
        oct_free(bytes);
        return status;
    }
    bytes[used] = 0;
    *data = bytes;
    *size = used;
    return OCTET_OK;
}

octet_status oct_file_read(const char *path, size_t limit, uint8_t **data, size_t *size) {
    *data = NULL;
    *size = 0;
    oct_file file;
    OCT_TRY(oct_file_open(&file, path));
    octet_status status = OCTET_OK;
    if (file.size > limit || file.size >= SIZE_MAX) {
        status = oct_fail(OCTET_LIMIT, "%s: holds %llu bytes, more than the limit of %zu", path,
                          (unsigned long long)file.size, limit);
    } else {
        status = read_whole(&file, limit, data, size);
    }
    oct_file_close(&file);
    return status;
}

/* Paths. */

bool oct_file_exists(const char *path) {
    struct stat state;
    return stat(path, &state) == 0;
}

bool oct_file_is_directory(const char *path) {
    struct stat state;
    return stat(path, &state) == 0 && S_ISDIR(state.st_mode);
}

static octet_status make_directory(const char *path) {
    if (mkdir(path, 0777) == 0) return OCTET_OK;
    int reason = errno;
    if (oct_file_is_directory(path)) return OCTET_OK;
    if (reason == EEXIST) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is a file, expected a directory", path);
    errno = reason;
    return oct_fail_errno(path, "could not make the directory");
}

octet_status oct_make_directories(const char *path) {
    char *part = oct_strdup(path);
    if (part == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    for (char *slash = strchr(part, '/'); slash != NULL && status == OCTET_OK; slash = strchr(slash + 1, '/')) {
        if (slash == part || slash[-1] == '/') continue;
        *slash = '\0';
        status = make_directory(part);
        *slash = '/';
    }
    if (status == OCTET_OK && path[0] != '\0' && path[strlen(path) - 1] != '/') status = make_directory(path);
    oct_free(part);
    return status;
}

char *oct_path_join(const char *directory, const char *name) {
    size_t length = strlen(directory);
    if (length == 0) return oct_strdup(name);
    return oct_sprintf("%s%s%s", directory, directory[length - 1] == '/' ? "" : "/", name);
}

const char *oct_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Faults. */

static _Atomic uint64_t fault_at;
static _Atomic uint64_t fault_count;
static atomic_bool fault_forever;
static atomic_bool fault_met;

void oct_file_fail_at(uint64_t n, bool forever) {
    atomic_store(&fault_at, 0);
    atomic_store(&fault_count, 0);
    atomic_store(&fault_met, false);
    atomic_store(&fault_forever, forever);
    atomic_store(&fault_at, n);
}

bool oct_file_fault_met(void) {
    return atomic_load(&fault_met);
}

/* Counts one write, sync or rename; true: it is to fail, errno says how. */
static bool must_fail(void) {
    uint64_t number = atomic_fetch_add(&fault_count, 1) + 1;
    uint64_t at = atomic_load(&fault_at);
    if (at == 0 || number < at || (number > at && !atomic_load(&fault_forever))) return false;
    atomic_store(&fault_met, true);
    errno = ENOSPC;
    return true;
}

/* Writing. */

#define BUFFER_SIZE ((size_t)1 << 16)
#define NAME_KEPT 200 /* bytes of the target's name that the temporary name keeps */
#define NAME_TRIES 1000

struct oct_writer {
    char *path;      /* as given, for errors */
    char *target;    /* what is renamed over: `path` with links followed */
    char *temporary; /* NULL: written straight into a device or pipe */
    int descriptor;
    int failure; /* errno of the first write that failed */
    size_t used;
    uint8_t *buffer;
};

static void free_writer(oct_writer *writer) {
    oct_free(writer->path);
    oct_free(writer->target);
    oct_free(writer->temporary);
    oct_free(writer->buffer);
    oct_free(writer);
}

/* "DIRECTORY/" of a path, "" for a bare name: its length. */
static size_t directory_length(const char *path) {
    return (size_t)(oct_path_base(path) - path);
}

/* Takes the lock that says a temporary file is in use; it goes with the process, so what a killed one left is free.
 * False: another process found the file before it was locked and removed it. A file system without locks is fine. */
static bool lock_temporary(int descriptor, const char *name) {
    struct stat by_descriptor, by_name;
    int result = 0;
    do {
        result = flock(descriptor, LOCK_EX);
    } while (result != 0 && errno == EINTR);
    return fstat(descriptor, &by_descriptor) == 0 && stat(name, &by_name) == 0 &&
           by_descriptor.st_ino == by_name.st_ino && by_descriptor.st_dev == by_name.st_dev;
}

/* A new empty file beside the target. */
static octet_status make_temporary(oct_writer *writer) {
    static atomic_uint number;
    const char *base = oct_path_base(writer->target);
    int directory = (int)directory_length(writer->target);
    for (int i = 0; i < NAME_TRIES; i++) {
        unsigned own = atomic_fetch_add(&number, 1);
        char *name =
            oct_sprintf("%.*s.%.*s.tmp.%ld.%u", directory, writer->target, NAME_KEPT, base, (long)getpid(), own);
        if (name == NULL) return oct_fail_memory();
        writer->descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (writer->descriptor >= 0) {
            if (lock_temporary(writer->descriptor, name)) {
                writer->temporary = name;
                return OCTET_OK;
            }
            (void)close(writer->descriptor);
            writer->descriptor = -1;
            oct_free(name);
            continue;
        }
        int reason = errno;
        oct_free(name);
        errno = reason;
        if (reason != EEXIST && reason != EINTR) break;
    }
    return oct_fail_errno(writer->path, "could not create");
}

static octet_status open_target(oct_writer *writer) {
    struct stat state;
    bool exists = stat(writer->path, &state) == 0;
    if (exists && S_ISDIR(state.st_mode))
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is a directory, expected a file", writer->path);
    if (!exists && oct_path_base(writer->path)[0] == '\0')
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: is not the name of a file", writer->path);
    if (exists && !S_ISREG(state.st_mode)) {
        do {
            writer->descriptor = open(writer->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        } while (writer->descriptor < 0 && errno == EINTR);
        return writer->descriptor < 0 ? oct_fail_errno(writer->path, "could not open") : OCTET_OK;
    }
    char *followed = exists ? realpath(writer->path, NULL) : NULL;
    writer->target = oct_strdup(followed != NULL ? followed : writer->path);
    free(followed);
    if (writer->target == NULL) return oct_fail_memory();
    return make_temporary(writer);
}

/* Removes a temporary file that no process holds. */
static void remove_stray(int directory, const char *name) {
    int descriptor = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(directory, name, 0);
    (void)close(descriptor);
}

/* "PID.NUMBER" as make_temporary ends a name. */
static bool ends_as_temporary(const char *end) {
    size_t digits = strspn(end, "0123456789");
    const char *number = end + digits + 1;
    return digits > 0 && end[digits] == '.' && number[0] != '\0' && number[strspn(number, "0123456789")] == '\0';
}

void oct_writer_sweep(const char *path) {
    char *target = realpath(path, NULL); /* NULL: nothing there yet, so no link to follow */
    const char *followed = target != NULL ? target : path;
    size_t length = directory_length(followed);
    char *directory = length == 0 ? oct_strdup(".") : oct_strndup(followed, length);
    char *stem = oct_sprintf(".%.*s.tmp.", NAME_KEPT, oct_path_base(followed));
    DIR *entries = directory != NULL && stem != NULL ? opendir(directory) : NULL;
    while (entries != NULL) {
        const struct dirent *entry = readdir(entries);
        if (entry == NULL) break;
        if (strncmp(entry->d_name, stem, strlen(stem)) == 0 && ends_as_temporary(entry->d_name + strlen(stem)))
            remove_stray(dirfd(entries), entry->d_name);
    }
    if (entries != NULL) (void)closedir(entries);
    oct_free(stem);
    oct_free(directory);
    free(target);
}

octet_status oct_writer_open(oct_writer **writer, const char *path) {
    *writer = NULL;
    oct_writer *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->descriptor = -1;
    made->path = oct_strdup(path);
    made->buffer = oct_alloc(BUFFER_SIZE);
    octet_status status = made->path == NULL || made->buffer == NULL ? oct_fail_memory() : open_target(made);
    if (status != OCTET_OK) {
        free_writer(made);
        return status;
    }
    *writer = made;
    return OCTET_OK;
}

static octet_status write_failed(const oct_writer *writer) {
    errno = writer->failure;
    return oct_fail_errno(writer->path, "could not write");
}

static octet_status write_through(oct_writer *writer, const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t written = must_fail() ? -1 : write(writer->descriptor, data, size < LARGEST_CALL ? size : LARGEST_CALL);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            writer->failure = errno;
            return write_failed(writer);
        }
        data += written;
        size -= (size_t)written;
    }
    return OCTET_OK;
}

static octet_status flush(oct_writer *writer) {
    size_t used = writer->used;
    writer->used = 0;
    return write_through(writer, writer->buffer, used);
}

octet_status oct_writer_write(oct_writer *writer, const void *data, size_t size) {
    if (writer->failure != 0) return write_failed(writer);
    if (size > BUFFER_SIZE - writer->used) OCT_TRY(flush(writer));
    if (size >= BUFFER_SIZE) return write_through(writer, data, size);
    if (size > 0) memcpy(writer->buffer + writer->used, data, size);
    writer->used += size;
    return OCTET_OK;
}

octet_status oct_writer_printf(oct_writer *writer, const char *format, ...) {
    char brief[512];
    va_list arguments;
    va_start(arguments, format);
    size_t length = oct_vsnprintf(brief, sizeof brief, format, arguments);
    va_end(arguments);
    if (length < sizeof brief) return oct_writer_write(writer, brief, length);
    char *text = oct_alloc(length + 1);
    if (text == NULL) {
        writer->failure = ENOMEM; /* a hole in the text must not be committed */
        return oct_fail_memory();
    }
    va_start(arguments, format);
    (void)oct_vsnprintf(text, length + 1, format, arguments);
    va_end(arguments);
    octet_status status = oct_writer_write(writer, text, length);
    oct_free(text);
    return status;
}

/* A file system or device that knows no sync has nothing to sync. */
static bool sync_descriptor(int descriptor) {
    if (must_fail()) return false;
    int result = 0;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/* *descriptor is -1 where the directory may be written but not read: then it cannot be synced. Before the rename, so
 * that what can fail for want of memory fails while the old file stands. */
static octet_status open_directory(const oct_writer *writer, int *descriptor) {
    size_t length = directory_length(writer->target);
    char *directory = length == 0 ? oct_strdup(".") : oct_strndup(writer->target, length);
    if (directory == NULL) return oct_fail_memory();
    *descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oct_free(directory);
    return *descriptor >= 0 || errno == EACCES ? OCTET_OK
                                               : oct_fail_errno(writer->path, "could not open its directory");
}

/* The temporary file becomes the target, for good. */
static octet_status rename_into_place(const oct_writer *writer) {
    int directory = -1;
    OCT_TRY(open_directory(writer, &directory));
    octet_status status = OCTET_OK;
    if (must_fail() || rename(writer->temporary, writer->target) != 0) {
        status = oct_fail_errno(writer->path, "could not rename into place");
    } else if (directory >= 0 && !sync_descriptor(directory)) {
        status = oct_fail_errno(writer->path, "is written, could not sync its directory");
    }
    if (directory >= 0) (void)close(directory);
    return status;
}

octet_status oct_writer_commit(oct_writer *writer) {
    octet_status status = writer->failure != 0 ? write_failed(writer) : flush(writer);
    if (status == OCTET_OK && !sync_descriptor(writer->descriptor))
        status = oct_fail_errno(writer->path, "could not sync");
    int descriptor = writer->descriptor;
    int lock = fcntl(descriptor, F_DUPFD_CLOEXEC, 0); /* keeps the name ours until it is renamed */
    writer->descriptor = -1;
    if (close(descriptor) != 0 && status == OCTET_OK) status = oct_fail_errno(writer->path, "could not close");
    if (writer->temporary != NULL) {
        if (status == OCTET_OK) status = rename_into_place(writer);
        if (status != OCTET_OK) (void)unlink(writer->temporary); /* gone already if it was renamed */
    }
    if (lock >= 0) (void)close(lock);
    free_writer(writer);
    return status;
}

void oct_writer_abort(oct_writer *writer) {
    if (writer == NULL) return;
    (void)close(writer->descriptor);
    if (writer->temporary != NULL) (void)unlink(writer->temporary);
    free_writer(writer);
}

octet_status oct_file_write(const char *path, const void *data, size_t size) {
    oct_writer *writer = NULL;
    OCT_TRY(oct_writer_open(&writer, path));
    octet_status status = oct_writer_write(writer, data, size);
    if (status != OCTET_OK) {
        oct_writer_abort(writer);
        return status;
    }
    return oct_writer_commit(writer);
}
