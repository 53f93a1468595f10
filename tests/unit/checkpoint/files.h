/* SPDX-License-Identifier: Apache-2.0 */
/* What the checkpoint tests share: directories with files of our making, and errors compared word by word. */
#ifndef OCT_TESTS_CHECKPOINT_FILES_H
#define OCT_TESTS_CHECKPOINT_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "support/support.h"

/* A safetensors file of exactly this header and `data` bytes counting 0, 1, 2, ... behind it. */
static inline void files_write_raw(const char *path, const char *header, size_t length, size_t data) {
    uint8_t *bytes = malloc(8 + length + data);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) bytes[8 + length + i] = (uint8_t)i;
    support_write_file(path, bytes, 8 + length + data);
    free(bytes);
}

/* A temporary directory with config.json "{}"; files_drop frees it. */
static inline char *files_directory(void) {
    char *directory = support_temporary_directory();
    support_write_text(support_join(directory, "config.json"), "{}");
    return directory;
}

static inline void files_drop(char *directory) {
    support_remove_tree(directory);
    free(directory);
}

static inline void files_copy(const char *from, const char *to) {
    size_t size = 0;
    char *bytes = support_read_text(from, &size);
    assert_non_null(bytes);
    support_write_file(to, bytes, size);
    free(bytes);
}

/* The fact with each DIRECTORY/ taken out of it, so that expected texts do not depend on the place. */
static inline const char *files_fact(const char *directory) {
    static char text[8192];
    size_t length = strlen(directory), used = 0;
    for (const char *at = oct_error_fact(); *at != '\0' && used + 1 < sizeof text;) {
        if (strncmp(at, directory, length) == 0) {
            at += length;
            at += *at == '/';
        } else {
            text[used++] = *at++;
        }
    }
    text[used] = '\0';
    return text;
}

/* Opening fails with this status and fact. */
static inline void files_refused(const char *directory, octet_status status, const char *fact) {
    oct_checkpoint *checkpoint = NULL;
    octet_status got = oct_checkpoint_open(&checkpoint, directory);
    assert_null(checkpoint);
    assert_string_equal(files_fact(directory), fact);
    assert_int_equal(got, status);
}

static inline oct_checkpoint *files_open(const char *directory) {
    oct_checkpoint *checkpoint = NULL;
    if (oct_checkpoint_open(&checkpoint, directory) != OCTET_OK) fail_msg("%s", oct_error_text());
    return checkpoint;
}

static inline void files_fingerprint(const char *directory, char hex[OCT_SHA256_HEX]) {
    oct_checkpoint *checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_fingerprint(checkpoint, hex), OCTET_OK);
    oct_checkpoint_close(checkpoint);
}

#endif
