/* SPDX-License-Identifier: Apache-2.0 */
/* COCO instances: whatever is taken has images, classes of the model and boxes of whole numbers of images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const oct_set *set, int32_t classes) {
    size_t truths = 0;
    for (size_t i = 0; i < set->row_count; i++) {
        const oct_row *row = &set->rows[i];
        if (row->name[0] == '/' || row->first_truth + row->truth_count > set->truth_count) abort();
        truths += row->truth_count;
    }
    if (truths != set->truth_count) abort();
    for (size_t i = 0; i < set->truth_count; i++) {
        const oct_truth *truth = &set->truths[i];
        if (truth->label < 0 || truth->label >= classes || !isfinite(truth->area)) abort();
        for (int k = 0; k < 4; k++)
            if (!isfinite(truth->box[k])) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[3] = {"a", "b", "a"};
    for (int with_names = 0; with_names < 2; with_names++) {
        oct_set *set = oct_calloc(1, sizeof *set);
        char *text = oct_alloc(size + 1);
        if (set == NULL || text == NULL) abort();
        memcpy(text, data, size);
        text[size] = '\0';
        if (with_names) set->options = (oct_set_options){.names = names, .name_count = 3};
        if (oct_coco_parse(set, "fuzz.json", NULL, NULL, text, size) == OCTET_OK)
            check(set, with_names ? 3 : INT32_MAX);
        oct_free(text);
        oct_set_close(set);
        if (oct_alloc_live() != 0) abort();
    }
    return 0;
}
