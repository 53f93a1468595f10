/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG application segments that Pillow 13 reads too, put behind the start of a good picture: which ones it takes and
 * which make it refuse the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/image.h"
#include "support/support.h"

#define PICTURE OCTET_SOURCE_DIR "/tests/golden/pictures/jpeg_420.jpg"
#define PHOTOSHOP "Photoshop 3.0\0"

typedef struct segment {
    uint8_t marker;
    size_t size;
    const char *bytes;
    bool good;
} segment;

static const segment segments[] = {
    {0xed, 14, PHOTOSHOP, true},
    {0xed, 18, PHOTOSHOP "8BIM", true}, /* cut where a number was due */
    {0xed, 19, PHOTOSHOP "8BIM\4", true},
    {0xed, 20, PHOTOSHOP "8BIM\4\4", false},    /* the name's length lies beyond the end */
    {0xed, 22, PHOTOSHOP "8BIM\4\4\0\0", true}, /* then no room for the size */
    {0xed, 28, PHOTOSHOP "8BIM\4\4\0\0\0\0\0\2ab", true},
    {0xed, 34, PHOTOSHOP "8BIM\4\4\0\0\0\0\0\2ab8BIM\4\4", false}, /* a second block, cut at its name */
    {0xed, 32, PHOTOSHOP "8BIM\4\4\3abc\0\0\0\2xy8BIM", true},     /* a name of three bytes */
    {0xed, 26, PHOTOSHOP "8BIM\4\4\0\0\x7f\xff\xff\xff", true},    /* a size beyond the end */
    {0xed, 20, PHOTOSHOP "8BXX\4\4", true},                        /* no block at all */
    {0xed, 5, "other", true},
    {0xe0, 6, "JFIF\0\1", false},
    {0xee, 6, "Adobe\0", false},
    {0xee, 4, "Adob", true},
    {0xe2, 14, "ICC_PROFILE\0\1\1", true},
    {0xfe, 7, "comment", true},
};

static void takes_what_pillow_takes(void **state) {
    (void)state;
    size_t size = 0;
    char *picture = support_read_text(PICTURE, &size);
    uint8_t *file = malloc(size + 64);
    for (size_t i = 0; i < sizeof segments / sizeof segments[0]; i++) {
        const segment *s = &segments[i];
        uint8_t head[6] = {0xff, 0xd8, 0xff, s->marker, (uint8_t)((s->size + 2) >> 8), (uint8_t)(s->size + 2)};
        memcpy(file, head, sizeof head);
        memcpy(file + 6, s->bytes, s->size);
        memcpy(file + 6 + s->size, picture + 2, size - 2);
        oct_image image = {0};
        octet_status status = oct_image_decode(&image, "picture", file, size + 4 + s->size, OCT_ORIENTATION_UPRIGHT);
        if ((status == OCTET_OK) != s->good)
            fail_msg("segment %zu: %s", i, status == OCTET_OK ? "taken" : oct_error_text());
        oct_image_free(&image);
    }
    free(file);
    free(picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_what_pillow_takes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
