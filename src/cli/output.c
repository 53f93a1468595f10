/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "octet/octet.h"
#include "options.h"

int print_failure(const char *verb) {
    const char *text = octet_error_text(); /* "": not the library's failure, and already printed */
    if (text[0] != '\0') fprintf(stderr, "octet %s: %s\n", verb, text);
    return EXIT_BAD;
}

static void print_warning(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "octet: warning: %s\n", line);
}

void print_warnings(void) {
    octet_set_log(print_warning, NULL);
}

/* Nine digits give every float back. */
#define FLOAT_DIGITS 9

bool print_json(json_t *object) {
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(FLOAT_DIGITS)) : NULL;
    json_decref(object);
    if (line == NULL) {
        fprintf(stderr, "octet: out of memory\n");
        return false;
    }
    bool written = puts(line) >= 0;
    free(line);
    return written;
}

int finish_output(const char *verb, int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "octet %s: standard output: %s\n", verb, strerror(errno));
    return EXIT_BAD;
}

/* ---- progress */

#define PROGRESS_SECONDS 0.1

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

progress_line progress_start(const char *what, size_t total, bool quiet) {
    double now = seconds_now();
    progress_line made = {
        .what = what, .total = quiet || !isatty(STDERR_FILENO) ? 0 : total, .start = now, .last = now};
    return made;
}

void progress_update(progress_line *progress, size_t done) {
    double now = seconds_now();
    if (progress->total == 0 || done == 0 || now - progress->last < PROGRESS_SECONDS) return;
    double left = (now - progress->start) / (double)done * (double)(progress->total - done);
    fprintf(stderr, "\r%s  %zu/%zu  %.0f s left \033[K", progress->what, done, progress->total, left);
    progress->last = now;
    progress->shown = true;
}

void progress_end(progress_line *progress) {
    if (progress->shown) fprintf(stderr, "\r\033[K");
    progress->shown = false;
}

/* ---- files */

bool make_directory(const char *path) {
    if (mkdir(path, 0777) == 0) return true;
    int reason = errno;
    struct stat facts;
    if (reason == EEXIST && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) return true;
    fprintf(stderr, "octet: %s: cannot be made a directory: %s\n", path, strerror(reason));
    return false;
}

char *output_path(const char *directory, const char *file, const char *suffix) {
    const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
    size_t size = strlen(directory) + strlen(name) + strlen(suffix) + 2;
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%s/%s%s", directory, name, suffix);
    return path;
}

/* The header of NumPy's format 1.0, padded so that the data starts at a multiple of 64. */
static size_t npy_header(char *header, size_t limit, const char *descr, int rank, const int64_t *shape) {
    char text[256];
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++) {
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%" PRId64 ",%s", shape[i], i + 1 < rank ? " " : "");
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    size_t total = (10 + (size_t)length + 1 + 63) / 64 * 64;
    if (total > limit) return 0;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    memset(header + 10, ' ', total - 10);
    memcpy(header + 10, text, (size_t)length);
    header[total - 1] = '\n';
    return total;
}

static bool write_parts(const char *path, const void *first, size_t first_size, const void *second,
                        size_t second_size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool written =
        fwrite(first, 1, first_size, file) == first_size && fwrite(second, 1, second_size, file) == second_size;
    written = fflush(file) == 0 && written;
    return fclose(file) == 0 && written;
}

bool write_npy(const char *path, const char *descr, size_t element, int rank, const int64_t *shape, const void *data) {
    char header[512];
    size_t count = element, length = strlen(path) + sizeof ".tmp";
    for (int i = 0; i < rank; i++) count *= (size_t)shape[i];
    size_t header_size = npy_header(header, sizeof header, descr, rank, shape);
    char *temporary = malloc(length);
    if (temporary == NULL) {
        fprintf(stderr, "octet: out of memory\n");
        return false;
    }
    snprintf(temporary, length, "%s.tmp", path);
    bool written = write_parts(temporary, header, header_size, data, count) && rename(temporary, path) == 0;
    if (!written) {
        fprintf(stderr, "octet: %s: %s\n", path, strerror(errno));
        remove(temporary);
    }
    free(temporary);
    return written;
}
