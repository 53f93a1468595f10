/* SPDX-License-Identifier: Apache-2.0 */
/* labels.txt: what is taken stays inside its folder, has a class, and stands once. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    oct_set *set = oct_calloc(1, sizeof *set);
    char *text = oct_alloc(size + 1);
    if (set == NULL || text == NULL) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    set->options = (oct_set_options){.names = names, .name_count = 10};
    if (oct_labels_parse(set, "folder", "labels.txt", text, size) == OCTET_OK) {
        if (set->row_count == 0) abort();
        for (size_t i = 0; i < set->row_count; i++) {
            const oct_row *row = &set->rows[i];
            if (row->label < 0 || row->label > 9 || row->name[0] == '/' || strcmp(row->name, "..") == 0) abort();
            if (strstr(row->path, "/../") != NULL || strncmp(row->path, "folder/", 7) != 0) abort();
        }
    }
    oct_free(text);
    oct_set_close(set);
    if (oct_alloc_live() != 0) abort();
    return 0;
}
