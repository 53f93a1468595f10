/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's log (octet_set_log). */
#ifndef OCT_RUNTIME_LOG_H
#define OCT_RUNTIME_LOG_H

void oct_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
