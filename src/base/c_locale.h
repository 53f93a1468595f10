/* SPDX-License-Identifier: Apache-2.0 */
/* Inside base: formatting and reading numbers in the C locale, whatever the program's locale is. */
#ifndef OCT_BASE_C_LOCALE_H
#define OCT_BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* The calling thread speaks the C locale from enter to leave. */
locale_t oct_c_locale_enter(void);
void oct_c_locale_leave(locale_t before);

/* vsnprintf in the C locale; 0 and an empty text where vsnprintf fails. */
size_t oct_vsnprintf(char *buffer, size_t capacity, const char *format, va_list arguments);
double oct_strtod(const char *text, char **end);

#endif
