/* SPDX-License-Identifier: Apache-2.0 */
/* What other tools say of their quantization, from any bytes, as config.json and as hf_quant_config.json: what is read
 * is a scheme that there is, what is refused names the file. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/import.h"

static void require(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int64_t live = oct_alloc_live();
    oct_document document = {0}, empty = {0};
    require(oct_document_parse_json(&empty, "empty", "{}", 2) == OCTET_OK);
    if (oct_document_parse_json(&document, "fuzz", (const char *)data, size) == OCTET_OK) {
        for (int own = 0; own < 2; own++) {
            oct_import_scheme scheme;
            if (oct_import_parse(own ? &empty : &document, own ? &document : NULL, &scheme) != OCTET_OK) {
                require(strncmp(oct_error_fact(), "fuzz:", 5) == 0);
            } else if (scheme.found) {
                require(scheme.format == OCT_FORMAT_E4M3 || scheme.format == OCT_FORMAT_INT8);
                require(scheme.weights == OCT_PER_TENSOR || scheme.weights == OCT_PER_CHANNEL);
                require(scheme.method != NULL && scheme.algorithm != NULL && (scheme.activations || !scheme.dynamic));
            }
        }
    }
    oct_document_free(&document);
    oct_document_free(&empty);
    require(oct_alloc_live() == live);
    return 0;
}
