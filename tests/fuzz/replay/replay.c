/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer's main: runs a fuzz target once over every file of the folders and files named, and over no
 * bytes at all. A crash or a sanitizer's report ends it; else it prints how many inputs it read. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The exact size, so that a sanitizer sees the first byte past the end. */
static int run_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    uint8_t *data = malloc(size ? size : 1);
    int failed = !data || fread(data, 1, size, file) != size;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed;
}

static int run_path(const char *path, size_t *count) {
    struct stat facts;
    if (stat(path, &facts)) return 0; /* a target without a corpus yet */
    if (!S_ISDIR(facts.st_mode)) {
        ++*count;
        return run_file(path, (size_t)facts.st_size);
    }
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        char inner[4096];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof inner)
            failed = 1;
        else
            failed |= run_path(inner, count);
    }
    closedir(folder);
    return failed;
}

int main(int argc, char **argv) {
    size_t count = 0;
    int failed = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; ++i) failed |= run_path(argv[i], &count);
    printf("%zu inputs\n", count);
    return failed;
}
