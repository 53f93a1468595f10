/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of data share: folders of files, tar files made by hand, and a set read to its end as text. */
#ifndef OCT_TESTS_UNIT_DATA_SETS_H
#define OCT_TESTS_UNIT_DATA_SETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/set.h"
#include "support/support.h"

/* A file below a directory, its folders made. */
static inline void sets_put(const char *directory, const char *name, const char *text) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    for (char *slash = strchr(path + strlen(directory) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    support_write_text(path, text);
}

static inline void sets_drop(char *directory) {
    support_remove_tree(directory);
    free(directory);
}

/* The whole set: a line a sample, "name label bytes" with "id:label[x,y,w,h]area" for boxes; on failure the error text.
 */
static inline char *sets_read(const char *place, const oct_set_options *options) {
    static char text[65536];
    size_t at = 0;
    oct_set *set = NULL;
    oct_sample *sample = NULL;
    octet_status status = oct_set_open(&set, place, options);
    text[0] = '\0';
    while (status == OCTET_OK && (status = oct_set_next(set, &sample)) == OCTET_OK && sample != NULL) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s %d %.*s", sample->name, sample->label,
                               sample->size < 8 ? (int)sample->size : 0, (const char *)sample->data);
        for (size_t i = 0; i < sample->truth_count; i++) {
            const oct_truth *t = &sample->truths[i];
            at += (size_t)snprintf(text + at, sizeof text - at, " %lld:%d[%g,%g,%g,%g]%g%s", (long long)t->id, t->label,
                                   t->box[0], t->box[1], t->box[2], t->box[3], t->area, t->crowd ? "c" : "");
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
        oct_sample_free(sample);
    }
    if (status != OCTET_OK) (void)snprintf(text, sizeof text, "%s: %s", oct_status_name(status), oct_error_text());
    oct_set_close(set);
    return text;
}

static inline void sets_expect(const char *place, const oct_set_options *options, const char *wanted) {
    assert_string_equal(sets_read(place, options), wanted);
}

/* A failure that names all of these, up to a NULL. */
static inline void sets_refuse(const char *place, const oct_set_options *options, octet_status status, ...) {
    char *text = sets_read(place, options);
    va_list words;
    const char *word;
    if (!oct_starts_with(text, oct_status_name(status)))
        fail_msg("expected %s, found %s", oct_status_name(status), text);
    va_start(words, status);
    while ((word = va_arg(words, const char *)) != NULL)
        if (strstr(text, word) == NULL) fail_msg("expected \"%s\" in: %s", word, text);
    va_end(words);
}

/* ---- tar files: ustar headers by hand */

typedef struct sets_member {
    const char *name;
    char type; /* '0' file, '1' hard link, '2' symbolic link, '5' directory */
    const char *data;
} sets_member;

static inline void sets_tar_add(oct_text *tar, const sets_member *member) {
    uint8_t block[512] = {0};
    bool file = member->type == '0';
    size_t size = file ? strlen(member->data) : 0;
    memcpy(block, member->name, strlen(member->name));
    (void)snprintf((char *)block + 100, 8, "%07o", 0644);
    (void)snprintf((char *)block + 108, 8, "%07o", 0);
    (void)snprintf((char *)block + 116, 8, "%07o", 0);
    (void)snprintf((char *)block + 124, 12, "%011o", (unsigned)size);
    (void)snprintf((char *)block + 136, 12, "%011o", 0);
    memset(block + 148, ' ', 8);
    block[156] = (uint8_t)member->type;
    if (!file && member->type != '5') memcpy(block + 157, member->data, strlen(member->data));
    memcpy(block + 257, "ustar", 6);
    memcpy(block + 263, "00", 2);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof block; i++) sum += block[i];
    (void)snprintf((char *)block + 148, 8, "%06o", sum);
    oct_text_append(tar, (const char *)block, sizeof block);
    if (!file) return;
    oct_text_append(tar, member->data, size);
    static const char zeros[512];
    oct_text_append(tar, zeros, (512 - size % 512) % 512);
}

/* Ends with a member without a name. */
static inline void sets_tar(const char *path, const sets_member *members) {
    static const char zeros[1024];
    oct_text tar = {0};
    for (; members->name != NULL; members++) sets_tar_add(&tar, members);
    oct_text_append(&tar, zeros, sizeof zeros);
    assert_false(tar.failed);
    support_write_file(path, tar.data, tar.length);
    oct_text_free(&tar);
}

#endif
