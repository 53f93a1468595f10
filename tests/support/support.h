/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share, header only: data outside the repository, temporary directories, NumPy files, skipping.
 *
 * A test that needs shared data:
 *
 *     const char *path = support_shared("data/NAME");
 *     if (path == NULL) SUPPORT_SKIP("shared data/NAME is not here");    (inside a cmocka test)
 *
 * Failures of the environment (no temporary directory, no memory) end the program with a message. */
#ifndef OCT_TESTS_SUPPORT_H
#define OCT_TESTS_SUPPORT_H

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ends a cmocka test as skipped, saying why. */
#define SUPPORT_SKIP(...)                                                                                              \
    do {                                                                                                               \
        fprintf(stderr, "skipped: " __VA_ARGS__);                                                                      \
        fprintf(stderr, "\n");                                                                                         \
        skip();                                                                                                        \
    } while (0)

static inline void support_die(const char *what) {
    fprintf(stderr, "tests/support: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* "ROOT/relative" where ROOT is the environment's OCTET_SHARED, else "shared" beside the repository; NULL: not there.
 * Valid until the eighth call after. */
static inline const char *support_shared(const char *relative) {
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    const char *root = getenv("OCTET_SHARED");
#ifdef OCTET_SOURCE_DIR
    if (root == NULL || root[0] == '\0') root = OCTET_SOURCE_DIR "/../shared";
#endif
    if (root == NULL || root[0] == '\0') root = "../shared";
    if ((size_t)snprintf(path, sizeof paths[0], "%s/%s", root, relative) >= sizeof paths[0]) return NULL;
    return access(path, R_OK) == 0 ? path : NULL;
}

/* "DIRECTORY/NAME" in a buffer that stays until the eighth call after. */
static inline const char *support_join(const char *directory, const char *name) {
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* A new empty directory under TMPDIR (else /tmp); the caller frees the path and removes the tree. */
static inline char *support_temporary_directory(void) {
    const char *root = getenv("TMPDIR");
    if (root == NULL || root[0] == '\0') root = "/tmp";
    size_t size = strlen(root) + sizeof "/octet-test-XXXXXX";
    char *path = malloc(size);
    if (path == NULL) support_die("temporary directory");
    (void)snprintf(path, size, "%s/octet-test-XXXXXX", root);
    if (mkdtemp(path) == NULL) support_die(path);
    return path;
}

/* Removes a file, or a directory with all in it; links are not followed. What is not there is fine. */
static inline void support_remove_tree(const char *path) {
    struct stat state;
    if (lstat(path, &state) != 0) return;
    if (S_ISDIR(state.st_mode)) {
        DIR *directory = opendir(path);
        struct dirent *entry = NULL;
        while (directory != NULL && (entry = readdir(directory)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            size_t size = strlen(path) + strlen(entry->d_name) + 2;
            char *inner = malloc(size);
            if (inner == NULL) support_die(path);
            (void)snprintf(inner, size, "%s/%s", path, entry->d_name);
            support_remove_tree(inner);
            free(inner);
        }
        if (directory != NULL) (void)closedir(directory);
        (void)rmdir(path);
    } else {
        (void)unlink(path);
    }
}

/* Entries of a directory, "." and ".." not counted; -1: no such directory. */
static inline int support_count_entries(const char *path) {
    DIR *directory = opendir(path);
    if (directory == NULL) return -1;
    int count = -2;
    while (readdir(directory) != NULL) count++;
    (void)closedir(directory);
    return count;
}

/* The whole file, a zero byte behind it; NULL: cannot be read. The caller frees. `size` may be NULL. */
static inline char *support_read_text(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t used = 0;
    size_t capacity = 0;
    for (;;) {
        if (used + 1 >= capacity) {
            capacity = capacity == 0 ? 4096 : capacity * 2;
            char *grown = realloc(text, capacity);
            if (grown == NULL) support_die(path);
            text = grown;
        }
        size_t got = fread(text + used, 1, capacity - used - 1, file);
        used += got;
        if (got == 0) break;
    }
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed) {
        free(text);
        return NULL;
    }
    text[used] = '\0';
    if (size != NULL) *size = used;
    return text;
}

static inline void support_write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) support_die(path);
}

static inline void support_write_text(const char *path, const char *text) {
    support_write_file(path, text, strlen(text));
}

/* A NumPy array: little-endian, C order, at most 8 axes. */
#define SUPPORT_NPY_AXES 8
typedef struct support_array {
    char dtype[8];  /* as NumPy says it, without the byte order: "f4", "f8", "f2", "i4", "i8", "u1", "i1", "b1" */
    size_t element; /* bytes of one */
    size_t axes;
    size_t shape[SUPPORT_NPY_AXES];
    size_t count; /* product of the shape */
    void *data;   /* malloc'd */
} support_array;

static inline void support_array_free(support_array *array) {
    free(array->data);
    memset(array, 0, sizeof *array);
}

static inline bool support_npy_refuse(const char *path, const char *why, char *bytes) {
    fprintf(stderr, "%s: %s\n", path, why);
    free(bytes);
    return false;
}

/* Reads a .npy file. False, with a line on standard error, if it is missing or not such an array. */
static inline bool support_npy_read(const char *path, support_array *array) {
    memset(array, 0, sizeof *array);
    size_t size = 0;
    char *bytes = support_read_text(path, &size);
    if (bytes == NULL) return support_npy_refuse(path, "cannot be read", NULL);
    const uint8_t *raw = (const uint8_t *)bytes;
    if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0) return support_npy_refuse(path, "is no .npy file", bytes);
    size_t begin = raw[6] == 1 ? 10 : 12;
    size_t length = raw[8] | (size_t)raw[9] << 8;
    if (raw[6] != 1) length |= (size_t)raw[10] << 16 | (size_t)raw[11] << 24;
    if (length > size - begin) return support_npy_refuse(path, "has a header longer than the file", bytes);

    char *header = malloc(length + 1);
    if (header == NULL) support_die(path);
    memcpy(header, bytes + begin, length);
    header[length] = '\0';
    const char *descr = strstr(header, "'descr':");
    const char *shape = strstr(header, "'shape':");
    bool known = descr != NULL && shape != NULL && strstr(header, "'fortran_order': False") != NULL;
    if (known) {
        descr += strlen("'descr':");
        while (*descr == ' ') descr++;
        known = descr[0] == '\'' && (descr[1] == '<' || descr[1] == '|') && isalpha((unsigned char)descr[2]) != 0;
        size_t end = known ? strcspn(descr + 1, "'") : 0;
        known = known && end >= 3 && end - 1 < sizeof array->dtype;
        if (known) {
            memcpy(array->dtype, descr + 2, end - 1);
            array->dtype[end - 1] = '\0';
            array->element = (size_t)strtoul(array->dtype + 1, NULL, 10);
            known = array->element > 0;
        }
    }
    if (known) {
        array->count = 1;
        shape = strchr(shape, '(');
        for (shape = shape == NULL ? "" : shape + 1; *shape != ')' && *shape != '\0';) {
            char *next = NULL;
            size_t extent = (size_t)strtoull(shape, &next, 10);
            if (next == shape || array->axes == SUPPORT_NPY_AXES) break;
            array->shape[array->axes++] = extent;
            array->count *= extent;
            shape = next + strspn(next, ", ");
        }
        known = *shape == ')';
    }
    free(header);
    size_t wanted = array->count * array->element;
    if (!known || size - begin - length < wanted) {
        memset(array, 0, sizeof *array);
        return support_npy_refuse(path, "is not a plain little-endian array in C order", bytes);
    }
    array->data = malloc(wanted > 0 ? wanted : 1);
    if (array->data == NULL) support_die(path);
    memcpy(array->data, bytes + begin + length, wanted);
    free(bytes);
    return true;
}

/* The elements of an array known to be float32 or int32; NULL if it holds something else. */
static inline const float *support_floats(const support_array *array) {
    return strcmp(array->dtype, "f4") == 0 ? array->data : NULL;
}
static inline const int32_t *support_ints(const support_array *array) {
    return strcmp(array->dtype, "i4") == 0 ? array->data : NULL;
}

#endif
