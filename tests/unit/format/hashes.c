/* SPDX-License-Identifier: Apache-2.0 */
/* What ml_dtypes makes of inputs too many to keep (tests/golden/formats/hashes.json, by tools/reference/formats.py): a
 * million floats by formula in every format, every midpoint of the 16-bit formats with its neighbours, and 60,000
 * blocks of MXFP8, NVFP4 and int8. The floats are made again here by the same formulas
 * (tools/reference/formats_blocks.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/document.h"
#include "base/hash.h"
#include "base/random.h"
#include "format/format.h"
#include "support/support.h"

#define MILLION 1000000
#define BLOCKS 60000
#define BLOCK 32

static oct_document golden;

static int read_golden(void **state) {
    (void)state;
    return oct_document_read(&golden, OCTET_SOURCE_DIR "/tests/golden/formats/hashes.json", OCT_DOCUMENT_LIMIT) !=
           OCTET_OK;
}

static int free_golden(void **state) {
    (void)state;
    oct_document_free(&golden);
    return 0;
}

static void *allocate(size_t size) {
    void *memory = malloc(size);
    assert_non_null(memory);
    return memory;
}

static void check_hash(const char *name, const void *first, size_t first_size, const void *second, size_t second_size) {
    oct_sha256 hash;
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX];
    assert_int_equal(oct_sha256_begin(&hash), OCTET_OK);
    assert_int_equal(oct_sha256_update(&hash, first, first_size), OCTET_OK);
    if (second_size > 0) assert_int_equal(oct_sha256_update(&hash, second, second_size), OCTET_OK);
    assert_int_equal(oct_sha256_end(&hash, digest), OCTET_OK);
    oct_sha256_hex(digest, hex);
    const char *expected = "";
    assert_int_equal(oct_node_string(&golden, golden.root, name, true, &expected), OCTET_OK);
    if (strcmp(hex, expected) != 0) fail_msg("%s: not what ml_dtypes makes of it", name);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The E4M3 cast of ml_dtypes has one NaN, that of the sign; so do all here. */
static void test_million(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint8_t (*encode)(float);
    } narrow[] = {{"million e4m3.cast", oct_e4m3_encode_nan}, {"million e4m3.saturating", oct_e4m3_encode},
                  {"million e5m2.cast", oct_e5m2_encode_inf}, {"million e5m2.saturating", oct_e5m2_encode},
                  {"million e2m1", oct_e2m1_encode},          {"million e8m0", oct_e8m0_encode}};
    static const struct {
        const char *name;
        uint16_t (*encode)(float);
    } half[] = {{"million fp16", oct_fp16_encode}, {"million bf16", oct_bf16_encode}};
    float *values = allocate(MILLION * sizeof *values);
    uint64_t random = 2026;
    for (size_t i = 0; i < MILLION; i++) {
        uint64_t z = oct_random_next(&random);
        uint32_t word = (uint32_t)z;
        if (i % 2 == 1) word = (word & 0x807fffffu) | (uint32_t)(127 - 24 + (z >> 40) % 48) << 23;
        values[i] = float_of(word);
    }
    uint16_t *codes = allocate(MILLION * sizeof *codes);
    for (size_t f = 0; f < sizeof narrow / sizeof *narrow; f++) {
        uint8_t *bytes = (uint8_t *)codes;
        for (size_t i = 0; i < MILLION; i++) bytes[i] = narrow[f].encode(values[i]);
        check_hash(narrow[f].name, bytes, MILLION, NULL, 0);
    }
    for (size_t f = 0; f < sizeof half / sizeof *half; f++) {
        for (size_t i = 0; i < MILLION; i++) codes[i] = half[f].encode(values[i]);
        check_hash(half[f].name, codes, MILLION * sizeof *codes, NULL, 0);
    }
    free(codes);
    free(values);
}

static void check_midpoints(const char *name, float (*decode)(uint16_t), uint16_t (*encode)(float)) {
    size_t finite = 0;
    while (isfinite(decode((uint16_t)finite))) finite++;
    uint16_t *codes = allocate(finite * 8 * sizeof *codes);
    double last = decode((uint16_t)(finite - 1)), before = decode((uint16_t)(finite - 2));
    for (size_t code = 0; code < finite; code++) {
        double low = decode((uint16_t)code);
        double high = code + 1 < finite ? decode((uint16_t)(code + 1)) : 2 * last - before;
        uint32_t middle = bits_of((float)((low + high) / 2));
        const float four[4] = {(float)low, float_of(middle), float_of(middle - 1), float_of(middle + 1)};
        for (size_t i = 0; i < 4; i++) {
            codes[code * 4 + i] = encode(four[i]);
            codes[(finite + code) * 4 + i] = encode(-four[i]);
        }
    }
    check_hash(name, codes, finite * 8 * sizeof *codes, NULL, 0);
    free(codes);
}

static void test_midpoints(void **state) {
    (void)state;
    check_midpoints("midpoints fp16", oct_fp16_decode, oct_fp16_encode);
    check_midpoints("midpoints bf16", oct_bf16_decode, oct_bf16_encode);
}

static float *draw_blocks(void) {
    float *values = allocate(sizeof *values * BLOCKS * BLOCK);
    uint64_t random = 7;
    for (size_t block = 0; block < BLOCKS; block++) {
        int64_t base = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            uint64_t z = oct_random_next(&random);
            if (i == 0) base = (int64_t)((z >> 33) % 256) - 13;
            int64_t exponent = base - (int64_t)((z >> 48) % 12);
            exponent = exponent < 0 ? 0 : exponent > 253 ? 253 : exponent;
            uint32_t word = ((uint32_t)z & 0x807fffffu) | (uint32_t)exponent << 23;
            if (block % 16 == 3 || (block % 8 == 5 && i % 2 == 1)) word &= 0x80000000u;
            values[block * BLOCK + i] = float_of(word);
        }
    }
    return values;
}

static void test_blocks(void **state) {
    (void)state;
    const size_t count = (size_t)BLOCKS * BLOCK;
    float *values = draw_blocks();
    uint8_t *scales = allocate(count / OCT_NVFP4_BLOCK), *codes = allocate(count);
    oct_mxfp8_encode(values, count, OCT_E8M0_FLOOR, scales, codes);
    check_hash("mxfp8 floor", scales, BLOCKS, codes, count);
    oct_mxfp8_encode(values, count, OCT_E8M0_CEIL, scales, codes);
    check_hash("mxfp8 ceil", scales, BLOCKS, codes, count);
    oct_nvfp4_encode(values, count, 1, scales, codes);
    check_hash("nvfp4", scales, count / OCT_NVFP4_BLOCK, codes, count / 2);
    oct_nvfp4_encode(values, count, 0x1p-12f, scales, codes);
    check_hash("nvfp4 small", scales, count / OCT_NVFP4_BLOCK, codes, count / 2);
    float *wide = allocate(BLOCKS * sizeof *wide);
    oct_scaled_scales(OCT_FORMAT_INT8, values, BLOCKS, BLOCK, BLOCK, wide);
    assert_int_equal(oct_scaled_encode(OCT_FORMAT_INT8, values, BLOCKS, BLOCK, BLOCK, wide, codes), 0);
    check_hash("int8", wide, BLOCKS * sizeof *wide, codes, count);
    for (size_t i = 0; i < count; i++) assert_int_not_equal(codes[i], 0x80);
    free(wide);
    free(codes);
    free(scales);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_midpoints),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, read_golden, free_golden);
}
