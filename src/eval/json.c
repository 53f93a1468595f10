/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 character at the start of `bytes`; 0: not UTF-8. */
static size_t character_length(const char *bytes) {
    size_t limit = strnlen(bytes, 4);
    for (size_t length = 1; length <= limit; length++) {
        json_t *value = json_stringn(bytes, length);
        json_decref(value);
        if (value != NULL) return length;
    }
    return 0;
}

json_t *json_text(const char *bytes) {
    static const char unknown[] = "\xef\xbf\xbd";
    json_t *value = json_string(bytes);
    if (value != NULL) return value;
    char *text = malloc(strlen(bytes) * (sizeof unknown - 1) + 1), *end = text;
    if (text == NULL) return NULL;
    while (*bytes != '\0') {
        size_t length = character_length(bytes);
        memcpy(end, length > 0 ? bytes : unknown, length > 0 ? length : sizeof unknown - 1);
        end += length > 0 ? length : sizeof unknown - 1;
        bytes += length > 0 ? length : 1;
    }
    value = json_stringn(text, (size_t)(end - text));
    free(text);
    return value;
}

json_t *json_float(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}
