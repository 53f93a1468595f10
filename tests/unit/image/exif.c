/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation in every type a TIFF directory may store it in, as Pillow 13's exif_transpose reads it: whatever
 * number equals 1 .. 8 counts, texts and bytes do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image/codec.h"

#define TAG 0x0112u

/* A block with one tag of one value, which lies in the directory (up to 4 bytes) or right behind it. */
static size_t make_block(uint8_t block[64], bool big, uint32_t type, const uint8_t *value, size_t size) {
    static const uint8_t little_head[8] = {'I', 'I', 42, 0, 8, 0, 0, 0}, big_head[8] = {'M', 'M', 0, 42, 0, 0, 0, 8};
    static const uint8_t little_entry[6] = {1, 0, 0x12, 0x01, 0, 0}, big_entry[6] = {0, 1, 0x01, 0x12, 0, 0};
    memset(block, 0, 64);
    memcpy(block, big ? big_head : little_head, 8);
    memcpy(block + 8, big ? big_entry : little_entry, 6);
    block[big ? 13 : 12] = (uint8_t)type;
    block[big ? 17 : 14] = 1; /* count */
    if (size <= 4) {
        memcpy(block + 18, value, size);
    } else {
        block[big ? 21 : 18] = 26;
        memcpy(block + 26, value, size);
    }
    return 48;
}

static int orientation(bool big, uint32_t type, const uint8_t *value, size_t size) {
    uint8_t block[64];
    oct_metadata metadata = {0};
    metadata.exif_size = make_block(block, big, type, value, size);
    metadata.exif = block;
    return oct_metadata_orientation(&metadata);
}

static void reads_every_type(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        size_t size;
        uint8_t little[8], big[8];
        int orientation;
    } cases[] = {
        {1, 1, {6}, {6}, 1},                                             /* BYTE: bytes in Pillow */
        {2, 2, {'6', 0}, {'6', 0}, 1},                                   /* ASCII */
        {3, 2, {6, 0}, {0, 6}, 6},                                       /* SHORT */
        {4, 4, {6, 0, 0, 0}, {0, 0, 0, 6}, 6},                           /* LONG */
        {5, 8, {12, 0, 0, 0, 2, 0, 0, 0}, {0, 0, 0, 12, 0, 0, 0, 2}, 6}, /* RATIONAL 12/2 */
        {5, 8, {6, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 6, 0, 0, 0, 0}, 1},   /* 6/0 */
        {5, 8, {13, 0, 0, 0, 2, 0, 0, 0}, {0, 0, 0, 13, 0, 0, 0, 2}, 1}, /* 13/2 */
        {6, 1, {6}, {6}, 6},                                             /* SIGNED BYTE */
        {7, 1, {6}, {6}, 1},                                             /* UNDEFINED: bytes */
        {8, 2, {6, 0}, {0, 6}, 6},                                       /* SIGNED SHORT */
        {9, 4, {6, 0, 0, 0}, {0, 0, 0, 6}, 6},                           /* SIGNED LONG */
        {9, 4, {0xfa, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xfa}, 1},   /* -6 */
        {10,
         8,
         {0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         {0xff, 0xff, 0xff, 0xfa, 0xff, 0xff, 0xff, 0xff},
         6},                                                                        /* -6/-1 */
        {10, 8, {6, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 6, 0, 0, 0, 0}, 1},             /* 6/0 */
        {11, 4, {0, 0, 0xc0, 0x40}, {0x40, 0xc0, 0, 0}, 6},                         /* FLOAT 6.0 */
        {12, 8, {0, 0, 0, 0, 0, 0, 0x18, 0x40}, {0x40, 0x18, 0, 0, 0, 0, 0, 0}, 6}, /* DOUBLE 6.0 */
        {13, 4, {6, 0, 0, 0}, {0, 0, 0, 6}, 6},                                     /* IFD */
        {16, 8, {6, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 6}, 6},             /* LONG8 */
        {14, 2, {6, 0}, {0, 6}, 1},                                                 /* no such type */
        {3, 2, {0, 0}, {0, 0}, 1},
        {3, 2, {9, 0}, {0, 9}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int little = orientation(false, cases[i].type, cases[i].little, cases[i].size);
        int big = orientation(true, cases[i].type, cases[i].big, cases[i].size);
        if (little != cases[i].orientation || big != cases[i].orientation)
            fail_msg("case %zu, type %u: expected %d, found %d and %d", i, cases[i].type, cases[i].orientation, little,
                     big);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_every_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
