/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a safetensors file. What is accepted must lie inside the file, cover its data once, and convert. */
#include <stdlib.h>

#include "base/alloc.h"
#include "checkpoint/dtype.h"
#include "checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds) {
    if (!holds) abort();
}

static void convert(const uint8_t *data, size_t size, const oct_tensor *tensor) {
    float values[256];
    uint64_t count = tensor->count < 256 ? tensor->count : 256;
    require(tensor->offset <= size && tensor->size <= size - tensor->offset);
    require(tensor->size == tensor->count * oct_dtype_size(tensor->dtype));
    oct_dtype_to_float(tensor->dtype, data + tensor->offset, (size_t)count, values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t header = 0;
    if (size < 8 || oct_safetensors_header_size("fuzz.safetensors", data, size, &header) != OCTET_OK) return 0;
    require(header <= size - 8);
    oct_arena arena = {0};
    oct_tensor_list list = {0};
    if (oct_safetensors_parse("fuzz.safetensors", (const char *)data + 8, header, size, 0, &arena, &list) == OCTET_OK) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < list.count; i++) {
            convert(data, size, &list.items[i]);
            bytes += list.items[i].size;
        }
        require(bytes == size - 8 - header);
    } else {
        require(oct_error_fact()[0] != '\0');
    }
    oct_free(list.items);
    oct_arena_free(&arena);
    return 0;
}
