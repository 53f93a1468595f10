/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that carry their size. A caller was compiled with the struct as its header had it then; the library has its
 * own idea of it. Both may be the newer one, so a field is never read where the caller has none, nor written.
 *
 * How such a struct grows: fields are appended, never moved or dropped, and never placed in what used to be padding at
 * the end (an older caller's padding holds anything); zero must mean what the library did before the field was there.
 */
#ifndef OCT_RUNTIME_OPTIONS_H
#define OCT_RUNTIME_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

/* Copies a caller's struct into `own`, which is `size` bytes and holds the defaults: fields that the caller's smaller
 * struct lacks keep them. A larger one is refused unless all that is not known here is zero. `name` is the struct's,
 * for errors. struct_size is the first field of both; own's becomes `size`. */
octet_status oct_options_take(void *own, size_t size, const void *given, const char *name);
/* The other way, for structs that the library fills: as much of `own` as the caller has room for, zeros behind what is
 * known here. struct_size stays the caller's. */
octet_status oct_options_give(void *given, const void *own, size_t size, const char *name);

#endif
