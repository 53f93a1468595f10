/* SPDX-License-Identifier: Apache-2.0 */
/* A shard, whole as it comes: every sample handed out has a picture's bytes and a class, and nothing stays behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int file = memfd_create("fuzz.tar", 0);
    char path[64];
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    oct_set *set = oct_calloc(1, sizeof *set);
    oct_sample *sample = NULL;
    const char **names = set != NULL ? oct_arena_alloc(&set->arena, sizeof *names) : NULL;
    if (names == NULL) abort();
    names[0] = path;
    set->options.name_count = 1000;
    octet_status status = oct_shards_open(set, names, 1);
    while (status == OCTET_OK && (status = oct_set_next(set, &sample)) == OCTET_OK && sample != NULL) {
        if (sample->label < 0 || sample->label > 999 || sample->name == NULL || sample->path != NULL) abort();
        oct_sample_free(sample);
    }
    if (sample != NULL) abort();
    oct_set_close(set);
    (void)close(file);
    if (oct_alloc_live() != 0) abort();
    return 0;
}
