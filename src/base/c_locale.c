/* SPDX-License-Identifier: Apache-2.0 */
#include "base/c_locale.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t made = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* held for the life of the process */

static void make(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t oct_c_locale_enter(void) {
    (void)pthread_once(&made, make);
    return uselocale(c_locale); /* a null locale only asks */
}

void oct_c_locale_leave(locale_t before) {
    (void)uselocale(before);
}

size_t oct_vsnprintf(char *buffer, size_t capacity, const char *format, va_list arguments) {
    locale_t before = oct_c_locale_enter();
    int length = vsnprintf(buffer, capacity, format, arguments);
    oct_c_locale_leave(before);
    if (length < 0) {
        if (capacity > 0) buffer[0] = '\0';
        return 0;
    }
    return (size_t)length;
}

double oct_strtod(const char *text, char **end) {
    locale_t before = oct_c_locale_enter();
    double value = strtod(text, end);
    oct_c_locale_leave(before);
    return value;
}
