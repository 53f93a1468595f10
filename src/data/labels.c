/* SPDX-License-Identifier: Apache-2.0 */
/* A label list: labels.txt beside its pictures. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/read.h"

#define LABELS_LIMIT ((size_t)256 << 20)

static int by_name(const void *a, const void *b) {
    const oct_row *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order != 0 ? order : ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line);
}

/* Two lines of one picture would count it twice. */
static octet_status check_repeats(const oct_set *set, const char *file) {
    octet_status status = OCTET_OK;
    const oct_row **rows = oct_calloc(set->row_count, sizeof *rows);
    if (rows == NULL) return oct_fail_memory();
    for (size_t i = 0; i < set->row_count; i++) rows[i] = &set->rows[i];
    qsort(rows, set->row_count, sizeof *rows, by_name);
    for (size_t i = 1; i < set->row_count && status == OCTET_OK; i++) {
        if (strcmp(rows[i - 1]->name, rows[i]->name) != 0) continue;
        status = oct_fail(OCTET_BAD_FORMAT, "%s:%d: %s is on line %d too", file, rows[i]->line, rows[i]->name,
                          rows[i - 1]->line);
    }
    oct_free(rows);
    return status;
}

static octet_status parse_line(oct_set *set, const char *directory, const char *file, int line, char *text) {
    char *space = strrchr(text, ' ');
    int64_t label = 0;
    if (space == NULL)
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: expected a name, a space and a class index, found \"%s\"", file, line,
                        text);
    *space = '\0';
    if (!oct_parse_int(space + 1, INT64_MIN, INT64_MAX, &label))
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: expected a class index after the last space, found \"%s\"", file,
                        line, space + 1);
    if (!oct_name_is_inside(text))
        return oct_fail(OCTET_BAD_FORMAT, "%s:%d: expected a name inside the directory, found \"%s\"", file, line,
                        text);
    if (oct_set_check_label(set, label) != OCTET_OK) return oct_error_prefix("%s:%d", file, line);
    oct_row *row = oct_set_add_row(set);
    if (row == NULL) return oct_fail_memory();
    row->line = line;
    row->label = (int32_t)label;
    row->name = oct_arena_strdup(&set->arena, text);
    row->path = oct_arena_sprintf(&set->arena, "%s/%s", directory, text);
    return row->name != NULL && row->path != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status oct_labels_parse(oct_set *set, const char *directory, const char *file, char *text, size_t size) {
    int line = 0;
    set->kind = OCT_SET_LABEL_LIST;
    set->order = "labels.txt";
    char *at = text, *end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) at += 3;
    while (at < end) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        char *next = stop < end ? stop + 1 : end;
        line++;
        if (memchr(at, '\0', (size_t)(stop - at)) != NULL)
            return oct_fail(OCTET_BAD_FORMAT, "%s:%d: a zero byte in text", file, line);
        if (stop > at && stop[-1] == '\r') stop--;
        *stop = '\0'; /* one byte follows the text */
        if (stop > at) OCT_TRY(parse_line(set, directory, file, line, at));
        at = next;
    }
    if (set->row_count == 0) return oct_fail(OCTET_BAD_FORMAT, "%s: no line in it", file);
    return check_repeats(set, file);
}

octet_status oct_labels_open(oct_set *set, const char *directory, const char *file) {
    uint8_t *text = NULL;
    size_t size = 0;
    OCT_TRY(oct_file_read(file, LABELS_LIMIT, &text, &size));
    octet_status status = oct_labels_parse(set, directory, file, (char *)text, size);
    oct_free(text);
    for (size_t i = 0; status == OCTET_OK && i < set->row_count && !set->options.facts_only; i++) {
        const oct_row *row = &set->rows[i];
        if (!oct_file_exists(row->path))
            status = oct_fail(OCTET_NOT_FOUND, "%s:%d: %s: no such picture", file, row->line, row->path);
    }
    return status;
}
