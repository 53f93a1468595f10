/* SPDX-License-Identifier: Apache-2.0 */
/* Scale files from any bytes: what is read has scales that are positive and finite, and is found by its names. */
#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/scales.h"

static void require(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t live = oct_alloc_live();
    oct_scale_file file;
    if (oct_scale_file_parse(&file, "fuzz", (const char *)data, size) == OCTET_OK) {
        for (size_t i = 0; i < file.count; i++) {
            const oct_scale *scale = &file.scales[i];
            require(scale->count > 0 && scale->threshold >= 0 && scale->threshold <= scale->amax);
            for (size_t s = 0; s < scale->count; s++) require(scale->scales[s] > 0 && scale->scales[s] <= FLT_MAX);
            require(oct_scale_file_find(&file, scale->op) == scale);
        }
        require(oct_scale_file_check(&file, &file.keys) == OCTET_OK);
    } else {
        require(file.scales == NULL && strncmp(oct_error_fact(), "fuzz:", 5) == 0);
    }
    oct_scale_file_free(&file);
    require(oct_alloc_live() == live);
    return 0;
}
