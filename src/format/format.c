/* SPDX-License-Identifier: Apache-2.0 */
/* The list of formats as a table; the conversions are in format_NAME.c. */
#include "format/format.h"

#include <string.h>

static const oct_format_row rows[OCT_FORMAT_COUNT] = {
#define OCT_FORMAT(identifier, name, ...) {name, __VA_ARGS__},
#include "format/formats.def"
#undef OCT_FORMAT
};

const oct_format_row *oct_format_get(oct_format format) {
    return (unsigned)format < OCT_FORMAT_COUNT ? &rows[format] : NULL;
}

const char *oct_format_name(oct_format format) {
    const oct_format_row *row = oct_format_get(format);
    return row != NULL ? row->name : "unknown";
}

unsigned oct_format_bits(oct_format format) {
    const oct_format_row *row = oct_format_get(format);
    return row != NULL ? row->bits : 0;
}

int oct_format_by_name(const char *name) {
    for (int i = 0; i < OCT_FORMAT_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) return i;
    return -1;
}
