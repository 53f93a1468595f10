/* SPDX-License-Identifier: Apache-2.0 */
/* The status codes, from one list: code, number, text. Numbers never change once released. */
#ifndef OCTET_STATUS_H
#define OCTET_STATUS_H

#define OCTET_STATUS_LIST(X)                                                                                           \
    X(OK, 0, "ok")                                                                                                     \
    X(INVALID_ARGUMENT, 1, "invalid argument")                                                                         \
    X(NOT_FOUND, 2, "not found")                                                                                       \
    X(IO, 3, "input or output failed")                                                                                 \
    X(BAD_FORMAT, 4, "malformed input")                                                                                \
    X(UNSUPPORTED, 5, "not supported")                                                                                 \
    X(OUT_OF_MEMORY, 6, "out of memory")                                                                               \
    X(LIMIT, 7, "over a limit")                                                                                        \
    X(MISMATCH, 8, "parts do not fit together")                                                                        \
    X(CANCELLED, 9, "cancelled")                                                                                       \
    X(VERIFICATION, 10, "verification failed")                                                                         \
    X(NO_DEVICE, 11, "no such device")                                                                                 \
    X(INTERNAL, 12, "internal error")

typedef enum octet_status {
#define OCTET_STATUS_ENUM(name, number, text) OCTET_##name = number,
    OCTET_STATUS_LIST(OCTET_STATUS_ENUM)
#undef OCTET_STATUS_ENUM
} octet_status;

#endif
